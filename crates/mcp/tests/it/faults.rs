//! Whatever goes wrong in a call ends it, says what it was, and hurts no other.

use std::time::Duration;

use mcp::{CallTimes, Failure};
use serde_json::json;
use testkit::Fate;
use testkit::mcp::McpEra;

use crate::help::{BOTH, call, soon, start};

#[tokio::test]
async fn every_fault_has_its_failure() {
    let kind = |failure: &Failure| match failure {
        Failure::Tool { text } => format!("tool: {text}"),
        Failure::Protocol { code, message } => format!("protocol {code}: {message}"),
        Failure::Http { code, .. } => format!("http {code}"),
    };
    let cases = [
        ("fail", "tool: it did not work"),
        ("rpc_error", "protocol -32602: Unknown tool"),
        ("status_401", "http 401"),
        ("status_500", "http 500"),
        ("cut", "http 502"),
        ("cut_stream", "http 502"),
        ("no_json", "http 502"),
        ("wrong_id", "http 502"),
        ("empty", "http 502"),
        ("huge", "http 502"),
        ("input_required", "http 502"),
        ("redirect_away", "http 307"),
        ("nobody_knows_it", "protocol -32602: Unknown tool"),
    ];
    for era in BOTH {
        let (_server, client) = start(era).await;
        for (tool, expected) in cases {
            let failure = soon(call(&client, tool, json!({}))).await.unwrap_err();
            assert_eq!(kind(&failure), expected, "{era:?} {tool}: {failure:?}");
            let text = call(&client, "echo", json!({"text": "still here"})).await.unwrap().text;
            assert_eq!(text, "still here", "after {tool}");
        }
    }
}

#[tokio::test]
async fn who_says_nothing_is_not_waited_for_and_who_makes_progress_is() {
    for era in BOTH {
        let (server, client) = start(era).await;
        for tool in ["hang", "hang_in_stream"] {
            let times = CallTimes { idle: Duration::from_millis(50), total: Duration::from_secs(5) };
            let failure = soon(client.call(tool, "{}", times)).await.unwrap_err();
            assert!(matches!(failure, Failure::Http { code: 504, .. }), "{failure:?}");
        }
        if era == McpEra::Legacy {
            assert!(server.asked("notifications/cancelled", 2).await);
        }
        let times = CallTimes { idle: Duration::from_secs(5), total: Duration::from_millis(50) };
        let failure = soon(client.call("hang", "{}", times)).await.unwrap_err();
        assert!(matches!(failure, Failure::Http { code: 504, .. }), "{failure:?}");
    }
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_is_cancelled() {
    for era in BOTH {
        for tool in ["hang", "hang_in_stream"] {
            let (server, client) = start(era).await;
            {
                let mut calling = Box::pin(call(&client, tool, json!({})));
                tokio::select! {
                    _ = &mut calling => panic!("it answers"),
                    asked = server.asked("tools/call", 1) => assert!(asked),
                }
                if tool == "hang_in_stream" {
                    // Until the beginning of the answer has been read.
                    tokio::time::timeout(Duration::from_millis(100), calling).await.unwrap_err();
                }
            }
            let index = server.methods().iter().position(|method| method == "tools/call").unwrap();
            soon(server.upstream().closed_after(index)).await;
            assert_eq!(server.upstream().fate(index), Some(Fate::PeerClosed));
            if era == McpEra::Legacy {
                assert!(server.asked("notifications/cancelled", 1).await);
            }
            assert_eq!(call(&client, "echo", json!({"text": "a"})).await.unwrap().text, "a");
        }
    }
}

#[tokio::test]
async fn a_client_that_is_dropped_closes_everything() {
    for era in BOTH {
        let (server, client) = start(era).await;
        let mut calling = Box::pin(async move { call(&client, "hang", json!({})).await });
        tokio::select! {
            _ = &mut calling => panic!("it answers"),
            asked = server.asked("tools/call", 1) => assert!(asked),
        }
        drop(calling);
        let index = server.methods().iter().position(|method| method == "tools/call").unwrap();
        soon(server.upstream().closed_after(index)).await;
        if era == McpEra::Legacy {
            assert!(server.asked("DELETE", 1).await);
        }
    }
}

#[tokio::test]
async fn arguments_that_are_no_object_are_not_sent() {
    let (server, client) = start(McpEra::Modern).await;
    for arguments in ["[]", "{", "7", "null", "{} x", &"[".repeat(100_000)] {
        let failure = client.call("echo", arguments, CallTimes::default()).await.unwrap_err();
        assert!(matches!(failure, Failure::Protocol { code: -32602, .. }), "{failure:?}");
    }
    assert_eq!(server.count("tools/call"), 0);
    assert_eq!(client.call("echo", "", CallTimes::default()).await.unwrap().text, "nothing");
    assert_eq!(server.calls(), [("echo".to_owned(), json!({}))]);
}
