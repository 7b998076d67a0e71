//! Restarts, and several instances on one database.

use serde_json::json;
use testkit::Postgres;

use super::*;

#[tokio::test]
async fn a_turn_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let session = format!("sqlite: {{path: '{}'}}", folder.path().join("sessions.db").display());
    let before = rig(&session).await;
    let alice = say(&before, "my name is Alice.", None).await;
    let conversation = before.send(Method::POST, "/v1/conversations", &json!({})).await.json();
    let body = json!({"input": "my name is Carol.", "conversation": conversation["id"]});
    turn(&before, body, true).await;
    before.stop().await;

    let after = rig(&session).await;
    assert_eq!(after.get(&format!("/v1/responses/{}", id(&alice))).await.json(), alice);
    assert_eq!(text(&say(&after, "What's my name?", Some(&alice)).await), "Alice (3)");
    let body = json!({"input": "What's my name?", "conversation": {"id": conversation["id"]}});
    assert_eq!(text(&turn(&after, body, false).await), "Carol (3)");
}

#[tokio::test]
async fn a_second_process_on_the_same_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let session = format!("sqlite: {{path: '{}'}}", folder.path().join("sessions.db").display());
    let first = rig(&session).await;
    let upstream = Upstream::start_with(forgetful).await.unwrap();
    let settings = Settings { session, ..Settings::default() };
    let refused = Rig::try_before(upstream, settings).await.map(drop).unwrap_err();
    assert!(refused.to_string().contains("is used by another process"), "{refused}");
    first.stop().await;
}

#[tokio::test]
async fn two_instances_share_one_postgres() {
    let Some(postgres) = Postgres::start() else { return };
    let session = format!("backend: postgres, postgres: {{url: '{}'}}", postgres.url());
    let (one, two) = (rig(&session).await, rig(&session).await);
    for (first, second) in [(&one, &two), (&two, &one)] {
        for streamed in [false, true] {
            let alice = turn(first, json!({"input": "my name is Alice."}), streamed).await;
            // At once, elsewhere.
            assert_eq!(text(&say(second, "What's my name?", Some(&alice)).await), "Alice (3)");
            assert_eq!(second.get(&format!("/v1/responses/{}", id(&alice))).await.json(), alice);
        }
    }
    // A chain that changes the instance with each turn.
    let mut last = say(&one, "my name is Alice.", None).await;
    for round in 1..20 {
        let rig = if round % 2 == 0 { &one } else { &two };
        last = say(rig, "And now?", Some(&last)).await;
        assert_eq!(text(&last), format!("Alice ({})", 2 * round + 1));
    }
    let conversation = one.send(Method::POST, "/v1/conversations", &json!({})).await.json();
    turn(&one, json!({"input": "my name is Dora.", "conversation": conversation["id"]}), false).await;
    let body = json!({"input": "What's my name?", "conversation": conversation["id"]});
    assert_eq!(text(&turn(&two, body, true).await), "Dora (3)");
    // What is deleted here is gone there.
    assert_eq!(delete(&one, &format!("/v1/responses/{}", id(&last))).await.status, 200);
    assert_eq!(two.get(&format!("/v1/responses/{}", id(&last))).await.status, 404);
}
