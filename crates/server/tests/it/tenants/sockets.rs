//! The same over a WebSocket: what another tenant has stored, or what its own connection remembers, is not there.

use serde_json::{Value, json};

use super::*;
use crate::websocket::client::Client;

async fn connect(rig: &Rig, key: &str) -> Client {
    Client::connect_as(rig, &[("authorization", &format!("Bearer {key}"))]).await.0
}

async fn asked(client: &mut Client, body: Value) -> Value {
    let mut message = body;
    message["type"] = json!("response.create");
    message["model"] = json!("m");
    client.say(&message).await;
    client.next().await
}

#[tokio::test]
async fn a_foreign_id_is_an_unknown_id_over_a_socket() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(&format!("sqlite: {{path: '{}'}}", folder.path().join("sessions.db").display())).await;
    let (mut theirs, mut mine) = (connect(&world.rig, OWNER).await, connect(&world.rig, OTHER).await);
    // One that no store has, but the owner's connection remembers.
    let body = json!({"type": "response.create", "model": "m", "input": format!("hello {SECRET}"), "store": false});
    let remembered = id(&theirs.respond(&body).await.response);
    let mut chance = Chance(7);
    for id in world.ids().iter().chain([&remembered]) {
        let never = unknown(id, &mut chance);
        let ways = |id: &str| {
            [
                json!({"input": "x", "previous_response_id": id}),
                json!({"input": "x", "previous_response_id": id, "store": false}),
                json!({"input": "x", "conversation": id}),
                json!({"input": [{"type": "item_reference", "id": id}]}),
            ]
        };
        for (foreign, absent) in ways(id).into_iter().zip(ways(&never)) {
            let answer = asked(&mut mine, foreign.clone()).await.to_string();
            assert!(!answer.contains(SECRET) && answer.contains("\"error\""), "{foreign}: {answer}");
            let expected = asked(&mut mine, absent).await.to_string();
            let alone = |answer: &str, id: &str| {
                let mut answer: Value = serde_json::from_str(&answer.replace(id, "ID")).unwrap();
                if let Some(headers) = answer.get_mut("headers").and_then(Value::as_object_mut) {
                    headers.remove("x-request-id");
                }
                answer
            };
            assert_eq!(alone(&answer, id), alone(&expected, &never), "{foreign}");
        }
    }
    // Its owner goes on with it.
    let next = json!({"type": "response.create", "model": "m", "input": "on", "previous_response_id": remembered, "store": false});
    assert_eq!(theirs.respond(&next).await.response["status"], "completed");
}
