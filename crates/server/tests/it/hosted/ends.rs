//! What goes wrong with servers and tools, and who is told.

use serde_json::json;
use testkit::mcp::{McpEra, McpOptions};
use testkit::{McpServer, Script};

use super::{NEVER, asked, both, calls, kinds, mcp, model, request, rig, says};
use crate::rig::{error, stream};

#[tokio::test]
async fn a_server_that_cannot_be_listed_fails_the_response() {
    let server = McpServer::modern().await.unwrap();
    server.change(|options| options.list_fault = Some(Script::json(500, &json!({"error": "broken"}))));
    let rig = rig(model(vec![says("Never.")]).await, &[("a", &server, NEVER)]).await;
    let (whole, streamed) = rig.both(&request(&json!([mcp("a")]))).await;
    let failed = error(&whole);
    assert_eq!(failed.key(), (424, "external_connector_error", "http_error", Some("tools")));
    assert!(failed.message.contains("'a'"), "{failed:?}");
    let streamed = stream(&streamed);
    assert_eq!(streamed.response["status"], "failed");
    assert!(streamed.events.iter().any(|(name, _)| name == "response.mcp_list_tools.failed"));
    assert!(asked(&rig).is_empty(), "no model is asked");
}

#[tokio::test]
async fn an_optional_server_is_done_without() {
    let (broken, whole) = (McpServer::modern().await.unwrap(), McpServer::modern().await.unwrap());
    broken.change(|options| options.list_fault = Some(Script::json(500, &json!({"error": "broken"}))));
    let servers = [("a", &broken, ", require_approval: never, optional: true"), ("b", &whole, NEVER)];
    let rig = rig(model(vec![calls(&[("c1", "b__echo", json!({"text": "x"}))]), says("Done.")]).await, &servers).await;
    let response = both(&rig, &request(&json!([mcp("a"), mcp("b")]))).await;
    assert_eq!(kinds(&response), ["mcp_list_tools", "mcp_list_tools", "mcp_call", "message"]);
    assert!(response["output"][0]["error"].is_object() || response["output"][0]["error"].is_string());
}

/// Whatever becomes of a call, the model is told, and the response goes on.
#[tokio::test]
async fn a_call_that_fails_is_the_models_business() {
    for era in [McpEra::Modern, McpEra::Legacy] {
        let server = McpServer::start(McpOptions::new(era)).await.unwrap();
        for (tool, kind) in [
            ("fail", "mcp_tool_execution_error"),
            ("rpc_error", "mcp_protocol_error"),
            ("status_401", "http_error"),
            ("status_500", "http_error"),
            ("cut", "http_error"),
            ("no_json", ""),
            ("huge", ""),
        ] {
            let upstream = model(vec![calls(&[("c1", &format!("a__{tool}"), json!({}))]), says("Done.")]).await;
            let rig = rig(upstream, &[("a", &server, NEVER)]).await;
            let response = both(&rig, &request(&json!([mcp("a")]))).await;
            assert_eq!(kinds(&response), ["mcp_list_tools", "mcp_call", "message"], "{tool}");
            let call = &response["output"][1];
            assert_eq!((call["status"].as_str(), &call["output"]), (Some("failed"), &json!(null)), "{tool}");
            assert!(kind.is_empty() || call["error"]["type"] == kind, "{tool}: {call}");
            let told = asked(&rig)[1]["messages"][2]["content"].as_str().unwrap().to_owned();
            assert!(!told.is_empty(), "{tool}");
        }
    }
}

#[tokio::test]
async fn arguments_that_are_none_call_nothing() {
    let server = McpServer::modern().await.unwrap();
    let mut wrong = calls(&[("c1", "a__echo", json!({}))]);
    wrong["tool_calls"][0]["function"]["arguments"] = json!("[1]");
    let rig = rig(model(vec![wrong, says("Done.")]).await, &[("a", &server, NEVER)]).await;
    let response = both(&rig, &request(&json!([mcp("a")]))).await;
    assert_eq!((response["output"][1]["status"].as_str(), server.calls().len()), (Some("failed"), 0));
}

/// The provider fails in a later round: what was shown stays.
#[tokio::test]
async fn a_provider_that_fails_later_fails_the_response() {
    let server = McpServer::modern().await.unwrap();
    let upstream =
        testkit::Upstream::start(Script::json(400, &json!({"error": {"message": "no more"}}))).await.unwrap();
    let rig = rig(upstream, &[("a", &server, NEVER)]).await;
    let call = calls(&[("c1", "a__echo", json!({"text": "x"}))]);
    rig.upstream.queue(super::answer(&call, true));
    let mut streamed = request(&json!([mcp("a")]));
    streamed["stream"] = json!(true);
    let failed = stream(&rig.post(&streamed).await);
    assert_eq!(
        (failed.response["status"].as_str(), kinds(&failed.response)),
        (Some("failed"), vec!["mcp_list_tools", "mcp_call"])
    );
    rig.upstream.queue(super::answer(&call, false));
    assert_eq!(error(&rig.post(&request(&json!([mcp("a")]))).await).status, 400);
}
