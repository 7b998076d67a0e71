//! What the model saw is what it sees in later turns, byte for byte; clients see nothing of that.

use http::Method;
use serde_json::{Value, json};
use testkit::McpServer;

use super::{NEVER, asked, both, calls, each_extends_the_last, kinds, mcp, model, request, rig, says};
use crate::rig::object;

#[tokio::test]
async fn a_later_turn_extends_what_the_loop_sent() {
    let server = McpServer::legacy().await.unwrap();
    for continues in ["previous_response_id", "conversation"] {
        let messages = vec![
            calls(&[("c1", "a__echo", json!({"text": "one"})), ("c2", "a__image", json!({}))]),
            calls(&[("c3", "a__fail", json!({}))]),
            says("Done."),
            calls(&[("c4", "a__echo", json!({"text": "two"}))]),
            says("Done again."),
        ];
        let rig = rig(model(messages).await, &[("a", &server, NEVER)]).await;
        let mut first = request(&json!([mcp("a")]));
        if continues == "conversation" {
            let made = rig.send(Method::POST, "/v1/conversations", &json!({})).await.json();
            first["conversation"] = made["id"].clone();
        }
        let response = object(&rig.post(&first).await);
        assert_eq!(kinds(&response), ["mcp_list_tools", "mcp_call", "mcp_call", "mcp_call", "message"]);
        let mut second = first.clone();
        if continues == "previous_response_id" {
            second[continues] = response["id"].clone();
        }
        let again = object(&rig.post(&second).await);
        assert_eq!(kinds(&again), ["mcp_call", "message"], "it is listed already");
        let asked = asked(&rig);
        assert_eq!(asked.len(), 5);
        each_extends_the_last(&asked);
        let text = serde_json::to_string(&asked[4]).unwrap();
        assert!(text.contains("data:image/png;base64,"), "the image, too");
    }
}

#[tokio::test]
async fn clients_see_nothing_of_what_is_kept_beside_items() {
    let server = McpServer::modern().await.unwrap();
    let upstream = model(vec![calls(&[("c1", "a__image", json!({}))]), says("Done.")]).await;
    let rig = rig(upstream, &[("a", &server, NEVER)]).await;
    let made = rig.send(Method::POST, "/v1/conversations", &json!({})).await.json();
    let conversation = made["id"].as_str().unwrap().to_owned();
    let mut first = request(&json!([mcp("a")]));
    first["conversation"] = json!(conversation);
    let response = object(&rig.post(&first).await);
    let id = response["id"].as_str().unwrap();
    let call = response["output"][1]["id"].as_str().unwrap();
    let next = json!({"model": "up/m", "input": "Next.", "previous_response_id": id});
    let next = object(&rig.post(&next).await);
    let next = next["id"].as_str().unwrap();
    for path in [
        format!("/v1/responses/{id}"),
        format!("/v1/responses/{next}/input_items"),
        format!("/v1/conversations/{conversation}/items"),
        format!("/v1/conversations/{conversation}/items/{call}"),
    ] {
        let answer = rig.get(&path).await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!(answer.status, 200, "{path}: {text}");
        assert!(!text.contains("godex_output") && !text.contains("base64"), "{path}: {text}");
    }
}

/// Whoever keeps the history himself sends the items back as they came.
#[tokio::test]
async fn items_that_a_client_sends_back_are_understood() {
    let server = McpServer::modern().await.unwrap();
    let messages = vec![
        calls(&[("c1", "a__echo", json!({"text": "one"}))]),
        calls(&[("c2", "a__echo", json!({"text": "two"}))]),
        says("Done."),
        says("Done again."),
    ];
    let rig = rig(model(messages).await, &[("a", &server, NEVER)]).await;
    let mut first = request(&json!([mcp("a")]));
    first["store"] = json!(false);
    let response = both(&rig, &first).await;
    let mut input = vec![json!({"role": "user", "content": "Go."})];
    input.extend(response["output"].as_array().unwrap().iter().cloned());
    input.push(json!({"role": "user", "content": "More."}));
    let mut second = first.clone();
    second["input"] = json!(input);
    let before = server.count("tools/list");
    let again = object(&rig.post(&second).await);
    assert_eq!((kinds(&again), server.count("tools/list")), (vec!["message"], before));
    let asked = asked(&rig);
    let last: &Value = asked.last().unwrap();
    let roles: Vec<&str> =
        last["messages"].as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant", "tool", "assistant", "user"], "{last}");
}

/// Some clients leave out what an item came with; what the model was told is known by the item's id, stored or not.
#[tokio::test]
async fn what_a_client_leaves_out_of_an_item_is_not_lost() {
    let server = McpServer::modern().await.unwrap();
    for store in [true, false] {
        let messages = vec![calls(&[("c1", "a__image", json!({}))]), says("Done."), says("Done again.")];
        let rig = rig(model(messages).await, &[("a", &server, NEVER)]).await;
        let mut first = request(&json!([mcp("a")]));
        first["store"] = json!(store);
        let response = object(&rig.post(&first).await);
        let mut output = response["output"].as_array().unwrap().clone();
        output[1].as_object_mut().unwrap().remove("output");
        let mut input = vec![json!({"role": "user", "content": "Go."})];
        input.extend(output);
        input.push(json!({"role": "user", "content": "More."}));
        let mut second = first.clone();
        second["input"] = json!(input);
        object(&rig.post(&second).await);
        let asked = asked(&rig);
        each_extends_the_last(&asked);
        assert!(asked[2].to_string().contains("data:image/png;base64,"), "store: {store}");
    }
}
