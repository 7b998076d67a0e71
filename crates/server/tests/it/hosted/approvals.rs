//! Approvals: asked for, given, refused, and used once.

use http::Method;
use serde_json::{Value, json};
use testkit::McpServer;

use super::{asked, both, calls, kinds, mcp, model, request, rig, says};
use crate::rig::{Rig, error, object};

async fn waiting(server: &McpServer) -> (Rig, Value) {
    let upstream = model(vec![calls(&[("c1", "a__echo", json!({"text": "x"}))]), says("Done.")]).await;
    let rig = rig(upstream, &[("a", server, "")]).await;
    let before = server.calls().len();
    let response = both(&rig, &request(&json!([mcp("a")]))).await;
    assert_eq!(kinds(&response), ["mcp_list_tools", "mcp_approval_request"]);
    assert_eq!((response["status"].as_str(), server.calls().len()), (Some("completed"), before));
    (rig, response)
}

fn answered(response: &Value, approve: bool) -> Value {
    let id = &response["output"][1]["id"];
    json!({"type": "mcp_approval_response", "approval_request_id": id, "approve": approve, "reason": "because"})
}

fn next(response: &Value, input: &Value) -> Value {
    json!({"model": "up/m", "tools": [mcp("a")], "previous_response_id": response["id"], "input": input})
}

#[tokio::test]
async fn an_approved_call_runs_before_the_model_is_asked() {
    let server = McpServer::modern().await.unwrap();
    let (rig, response) = waiting(&server).await;
    let approved = next(&response, &json!([answered(&response, true)]));
    let done = object(&rig.post(&approved).await);
    assert_eq!(kinds(&done), ["mcp_call", "message"]);
    assert_eq!(done["output"][0]["approval_request_id"], response["output"][1]["id"]);
    assert_eq!((server.calls().len(), server.count("tools/list")), (1, 2));
    let last = asked(&rig).pop().unwrap();
    let roles: Vec<&str> =
        last["messages"].as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool"]);
    assert_eq!(last["messages"][1]["tool_calls"][0]["id"], "c1");
    // The same once more runs nothing.
    let again = error(&rig.post(&approved).await);
    assert!((400..500).contains(&again.status) && again.param.as_deref() == Some("input"), "{again:?}");
    assert_eq!(server.calls().len(), 1);
}

#[tokio::test]
async fn a_refused_call_does_not_run_and_the_model_is_told_why() {
    let server = McpServer::modern().await.unwrap();
    let (rig, response) = waiting(&server).await;
    let done = object(&rig.post(&next(&response, &json!([answered(&response, false)]))).await);
    assert_eq!((kinds(&done), server.calls().len()), (vec!["message"], 0));
    let last = asked(&rig).pop().unwrap();
    let told = last["messages"][2]["content"].as_str().unwrap();
    assert!(told.contains("did not approve") && told.contains("because"), "{told}");
}

#[tokio::test]
async fn a_question_that_nobody_answers_is_no_approval() {
    let server = McpServer::modern().await.unwrap();
    let (rig, response) = waiting(&server).await;
    let done = object(&rig.post(&next(&response, &json!("Something else."))).await);
    assert_eq!((kinds(&done), server.calls().len()), (vec!["message"], 0));
}

#[tokio::test]
async fn approvals_come_by_reference_in_conversations_and_in_a_clients_own_history() {
    let server = McpServer::modern().await.unwrap();
    let (rig, response) = waiting(&server).await;
    let (list, asked_for) = (&response["output"][0], &response["output"][1]);
    let user = json!({"role": "user", "content": "Go."});
    // By reference, as Vercel's SDK sends it.
    let reference = json!({"model": "up/m", "tools": [mcp("a")], "input": [
        user, {"type": "item_reference", "id": list["id"]}, {"type": "item_reference", "id": asked_for["id"]},
        answered(&response, true)]});
    assert_eq!(kinds(&object(&rig.post(&reference).await)), ["mcp_call", "message"]);
    // As items, which may not have been changed.
    let (rig, response) = waiting(&server).await;
    let (list, asked_for) = (&response["output"][0], &response["output"][1]);
    let history = |asked_for: &Value| json!({"model": "up/m", "store": false, "tools": [mcp("a")], "input": [user, list, asked_for, answered(&response, true)]});
    for (name, value) in [("arguments", "{\"text\":\"y\"}"), ("name", "write"), ("server_label", "b")] {
        let mut changed = asked_for.clone();
        changed[name] = json!(value);
        let refused = error(&rig.post(&history(&changed)).await);
        assert_eq!((refused.status, refused.param.as_deref()), (400, Some("input")), "{refused:?}");
    }
    let before = server.calls().len();
    assert_eq!(kinds(&object(&rig.post(&history(asked_for)).await)), ["mcp_call", "message"]);
    assert_eq!(server.calls().len(), before + 1);
    // In a conversation.
    let upstream = model(vec![calls(&[("c1", "a__echo", json!({"text": "x"}))]), says("Done.")]).await;
    let rig = super::rig(upstream, &[("a", &server, "")]).await;
    let conversation = rig.send(Method::POST, "/v1/conversations", &json!({})).await.json()["id"].clone();
    let mut first = request(&json!([mcp("a")]));
    first["conversation"] = conversation.clone();
    let response = object(&rig.post(&first).await);
    let mut second = first.clone();
    second["input"] = json!([answered(&response, true)]);
    assert_eq!(kinds(&object(&rig.post(&second).await)), ["mcp_call", "message"]);
}

#[tokio::test]
async fn an_approval_of_nothing_is_refused() {
    let server = McpServer::modern().await.unwrap();
    let (rig, response) = waiting(&server).await;
    let unknown = json!({"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": true});
    for input in [json!([unknown]), json!([answered(&response, true), answered(&response, false)])] {
        let refused = error(&rig.post(&next(&response, &input)).await);
        assert_eq!((refused.status, refused.param.as_deref()), (400, Some("input")), "{refused:?}");
    }
    assert!(server.calls().is_empty());
}

#[tokio::test]
async fn what_needs_no_approval_runs_beside_what_does() {
    let server = McpServer::modern().await.unwrap();
    let both_called = calls(&[("c1", "a__echo", json!({"text": "x"})), ("c2", "a__write", json!({"text": "y"}))]);
    let rig = rig(model(vec![both_called, says("Done.")]).await, &[("a", &server, "")]).await;
    let mut tool = mcp("a");
    tool["require_approval"] = json!({"never": {"read_only": true}});
    let response = both(&rig, &request(&json!([tool]))).await;
    assert_eq!(kinds(&response), ["mcp_list_tools", "mcp_call", "mcp_approval_request"]);
    assert_eq!(asked(&rig).len(), 2);
}

/// It is not used up, and can be sent again with what it lacks.
#[tokio::test]
async fn an_approval_without_its_server_is_refused() {
    let server = McpServer::modern().await.unwrap();
    let (rig, response) = waiting(&server).await;
    let mut approved = next(&response, &json!([answered(&response, true)]));
    for tools in [json!([]), json!([{"type": "mcp", "server_label": "a", "allowed_tools": ["fail"]}])] {
        approved["tools"] = tools;
        let refused = error(&rig.post(&approved).await);
        assert_eq!((refused.status, refused.param.as_deref()), (400, Some("input")), "{refused:?}");
    }
    approved["tools"] = json!([mcp("a")]);
    assert_eq!(kinds(&object(&rig.post(&approved).await)), ["mcp_call", "message"]);
    assert_eq!(server.calls().len(), 1);
}
