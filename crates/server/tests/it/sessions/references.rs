//! `item_reference`: stored items named instead of sent.

use serde_json::json;

use super::*;

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
