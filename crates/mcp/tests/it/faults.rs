//! Whatever goes wrong in a call ends it, says what it was, and hurts no other.

use std::time::Instant;

use serde_json::json;
use testkit::Fate;

use super::*;

#[tokio::test]
async fn every_fault_has_its_failure() {
    let http =
        |code: u16| move |failure: &Failure| matches!(failure, Failure::Http { code: found, .. } if *found == code);
    for era in BOTH {
        let (_server, client) = start(era).await;
        let cases: [(&str, Box<dyn Fn(&Failure) -> bool>); 13] = [
            ("fail", Box::new(|failure| *failure == Failure::Tool { text: "it did not work".to_owned() })),
            (
                "rpc_error",
                Box::new(|failure| *failure == Failure::Protocol { code: -32602, message: "Unknown tool".to_owned() }),
            ),
            ("status_401", Box::new(http(401))),
            ("status_500", Box::new(http(500))),
            ("cut", Box::new(http(502))),
            ("cut_stream", Box::new(http(502))),
            ("no_json", Box::new(http(502))),
            ("wrong_id", Box::new(http(502))),
            ("empty", Box::new(http(502))),
            ("huge", Box::new(http(502))),
            ("input_required", Box::new(http(502))),
            ("redirect_away", Box::new(http(307))),
            ("nobody_knows_it", Box::new(|failure| matches!(failure, Failure::Protocol { code: -32602, .. }))),
        ];
        for (tool, fits) in cases {
            let failure = soon(call(&client, tool, json!({}))).await.unwrap_err();
            assert!(fits(&failure), "{era:?} {tool}: {failure:?}");
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
            let began = Instant::now();
            soon(server.upstream().closed_after(index)).await;
            assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
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
