//! `item_reference`: stored items named instead of sent.

use serde_json::json;

use super::*;
use crate::rig::error;

#[tokio::test]
async fn references_stand_for_what_they_name() {
    let rig = rig("").await;
    for streamed in [false, true] {
        let first = turn(&rig, json!({"input": [{"role": "user", "content": "my name is Alice."}]}), streamed).await;
        let said = &first["output"][0]["id"];
        for reference in [json!({"type": "item_reference", "id": said}), json!({"id": said})] {
            let input = json!([{"role": "user", "content": "Hello"}, reference, {"role": "user", "content": "Who?"}]);
            let second = turn(&rig, json!({"input": input}), streamed).await;
            assert_eq!(text(&second), "nobody (3)");
            let sent = rig.upstream.requests().pop().unwrap().json();
            assert_eq!(sent["messages"][1], json!({"role": "assistant", "content": "Alice (1)"}), "{sent}");
            // The turn is whole by itself: what it refers to may go.
            assert_eq!(text(&say(&rig, "Still?", Some(&second)).await), "nobody (5)");
            let items = rig.get(&format!("/v1/responses/{}/input_items?order=asc", id(&second))).await;
            assert_eq!(listed(&items)[1], said.as_str().unwrap());
        }
        // What the chain brings along already is not said twice.
        let input = json!([{"type": "item_reference", "id": said}, {"role": "user", "content": "Who?"}]);
        let next = turn(&rig, json!({"input": input, "previous_response_id": first["id"]}), streamed).await;
        assert_eq!(text(&next), "Alice (3)");
        // `store: false` may refer, too.
        let input = json!([{"type": "item_reference", "id": said}, {"role": "user", "content": "Who?"}]);
        assert_eq!(text(&turn(&rig, json!({"input": input, "store": false}), streamed).await), "nobody (2)");
    }
}

#[tokio::test]
async fn many_references_are_one_question() {
    let rig = rig("").await;
    let mut input = Vec::new();
    for round in 0..30 {
        input.push(json!({"role": "user", "content": format!("round {round}")}));
        let response = turn(&rig, json!({"input": input}), false).await;
        assert_eq!(text(&response), format!("nobody ({})", 2 * round + 1));
        input.push(json!({"type": "item_reference", "id": response["output"][0]["id"]}));
    }
}

#[tokio::test]
async fn an_item_that_is_referred_to_twice_stands_once() {
    let rig = rig("").await;
    let first = turn(&rig, json!({"input": "my name is Alice."}), false).await;
    let said = json!({"type": "item_reference", "id": first["output"][0]["id"]});
    let own = json!({"type": "message", "id": "msg_own", "role": "user", "content": "Hello"});
    let conversation = rig.send(Method::POST, "/v1/conversations", &json!({"items": [said, said]})).await.json();
    let items = format!("/v1/conversations/{}/items", id(&conversation));
    let who = json!({"role": "user", "content": "Who?"});
    for (input, more, messages) in [
        (json!([said, said, who]), json!({}), 2),
        (json!([own, {"id": "msg_own"}, who]), json!({}), 2),
        (json!([said, who, said]), json!({"previous_response_id": first["id"]}), 3),
        (json!([said, own, said, who]), json!({"conversation": conversation["id"]}), 3),
    ] {
        let mut body = more;
        body["model"] = json!("m");
        body["input"] = input.clone();
        let answer = rig.post(&body).await;
        let response = object(&answer);
        assert!(text(&response).ends_with(&format!("({messages})")), "{input}: {response}");
        assert!(
            answer.header("x-godex-compat").is_some_and(|notes| notes.contains("=ignored")),
            "{:?}",
            answer.headers
        );
        let inputs = rig.get(&format!("/v1/responses/{}/input_items", id(&response))).await;
        assert_eq!(listed(&inputs).len(), messages, "{input}");
    }
    // Adding what is there adds nothing.
    let before = listed(&rig.get(&items).await).len();
    assert!(listed(&rig.send(Method::POST, &items, &json!({"items": [said]})).await).is_empty());
    assert_eq!(listed(&rig.get(&items).await).len(), before);
}

#[tokio::test]
async fn too_many_references_are_refused_before_any_is_looked_for() {
    let rig = rig("").await;
    let conversation = rig.send(Method::POST, "/v1/conversations", &json!({})).await.json();
    for (count, key) in [
        (4096, (404, "invalid_request_error", "item_not_found", Some("input"))),
        (4097, (400, "invalid_request_error", "array_above_max_length", Some("input"))),
    ] {
        let references: Vec<Value> =
            (0..count).map(|n| json!({"type": "item_reference", "id": format!("msg_{n}")})).collect();
        let body = json!({"model": "m", "input": references, "conversation": conversation["id"]});
        assert_eq!(error(&rig.post(&body).await).key(), key);
    }
    // The conversation is free.
    turn(&rig, json!({"input": "Hi", "conversation": conversation["id"]}), false).await;
}
