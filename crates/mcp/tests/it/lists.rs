//! Which tools a server has.

use std::time::Duration;

use mcp::Failure;
use serde_json::json;
use testkit::mcp::{McpEra, McpOptions, SESSION, tool};
use testkit::{McpServer, Script};

use crate::help::{BOTH, call, connect, soon, start};

#[tokio::test]
async fn both_eras_list_and_end_as_they_should() {
    for (era, version, methods) in [
        (McpEra::Modern, "2026-07-28", vec!["server/discover", "tools/list"]),
        (
            McpEra::Legacy,
            "2025-11-25",
            vec!["server/discover", "initialize", "notifications/initialized", "tools/list", "DELETE"],
        ),
    ] {
        let (server, client) = start(era).await;
        assert_eq!(client.version(), version);
        assert_eq!(client.server().as_deref(), Some("scripted 1.0.0"));
        let list = client.list().await.unwrap();
        assert_eq!(list.tools.len(), testkit::mcp::tools().len());
        let echo = &list.tools[0];
        assert_eq!(
            (echo.name.as_str(), echo.description.as_deref(), echo.read_only),
            ("echo", Some("Says it again."), true)
        );
        assert_eq!(
            echo.input_schema,
            r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#
        );
        assert!(!list.tools[1].read_only);
        drop(client);
        if era == McpEra::Legacy {
            assert!(server.asked("DELETE", 1).await);
            assert_eq!(server.requests().last().unwrap().header("mcp-session-id"), Some(SESSION));
        }
        assert_eq!(server.methods(), methods);
    }
}

#[tokio::test]
async fn headers_go_along_with_every_request() {
    for era in BOTH {
        let options = McpOptions { authorization: Some("Bearer abcdef".to_owned()), ..McpOptions::new(era) };
        let server = McpServer::start(options).await.unwrap();
        let client = connect(&server.url(), &[("authorization", "Bearer abcdef"), ("x-team", "blue")]).await.unwrap();
        client.list().await.unwrap();
        call(&client, "echo", json!({"text": "a"})).await.unwrap();
        drop(client);
        if era == McpEra::Legacy {
            assert!(server.asked("DELETE", 1).await);
        }
        for received in server.requests() {
            assert_eq!(received.header("authorization"), Some("Bearer abcdef"));
            assert_eq!(received.header("x-team"), Some("blue"));
        }
        let refused = connect(&server.url(), &[("authorization", "Bearer wrong-token")]).await.unwrap_err();
        let Failure::Http { code: 401, message } = refused else { panic!("{refused:?}") };
        assert!(message.contains("not authorized: [redacted]") && !message.contains("wrong"), "{message}");
    }
}

#[tokio::test]
async fn pages_are_followed_and_bounded() {
    let many = |count: usize| (0..count).map(|n| tool(&format!("tool_{n}"))).collect::<Vec<_>>();
    for (count, page, pages, fits) in
        [(1000, 50, 20, true), (1024, 0, 1, true), (1025, 0, 1, false), (1000, 10, 20, false), (0, 0, 1, true)]
    {
        for era in BOTH {
            let options = McpOptions { page, ttl_ms: 5000, ..McpOptions::new(era).tools(many(count)) };
            let server = McpServer::start(options).await.unwrap();
            let list = connect(&server.url(), &[]).await.unwrap().list().await;
            assert_eq!(server.count("tools/list"), pages, "{count} by {page}");
            match list {
                Ok(list) => {
                    assert_eq!((fits, list.tools.len()), (true, count));
                    let ttl = if era == McpEra::Modern { 5 } else { 0 };
                    assert_eq!((list.ttl, list.public), (Duration::from_secs(ttl), false));
                }
                Err(failure) => assert!(!fits && failure.to_string().contains("too long"), "{failure:?}"),
            }
        }
    }
    let large = json!({"name": "a", "description": "d".repeat(5 << 20), "inputSchema": {"type": "object"}});
    let server = McpServer::start(McpOptions::new(McpEra::Modern).tools(vec![large])).await.unwrap();
    let failure = connect(&server.url(), &[]).await.unwrap().list().await.unwrap_err();
    assert!(failure.to_string().contains("too long"), "{failure:?}");
}

#[tokio::test]
async fn a_server_that_cannot_list_says_why() {
    for era in BOTH {
        for (fault, code) in [
            (Script::json(403, &json!({"error": "not for you"})), 403),
            (Script::body(503, "text/html", "<h1>later</h1>"), 503),
            (Script::body(200, "text/html", "<h1>hello</h1>"), 502),
            (Script::body(200, "application/json", "{"), 502),
            (Script::hang_up(), 502),
            (Script::event_stream().cut(), 502),
        ] {
            let options = McpOptions { list_fault: Some(fault), ..McpOptions::new(era) };
            let server = McpServer::start(options).await.unwrap();
            let client = connect(&server.url(), &[]).await.unwrap();
            let failure = soon(client.list()).await.unwrap_err();
            assert!(matches!(failure, Failure::Http { code: found, .. } if found == code), "{code}: {failure:?}");
        }
    }
}

#[tokio::test]
async fn what_is_no_server_is_told_apart() {
    for (fault, code) in [
        (Script::json(401, &json!({})), 401),
        (Script::body(404, "text/plain", "nothing here"), 404),
        (Script::body(405, "text/plain", ""), 405),
        (Script::body(500, "text/plain", "it fell over"), 500),
        (Script::body(200, "text/html", "<h1>hello</h1>"), 502),
        (Script::body(200, "application/json", "[]"), 502),
        (Script::hang_up(), 502),
        (Script::garbage("not HTTP\r\n\r\n"), 502),
    ] {
        let options = McpOptions { fault: Some(fault), ..McpOptions::new(McpEra::Modern) };
        let server = McpServer::start(options).await.unwrap();
        let failure = soon(connect(&server.url(), &[])).await.unwrap_err();
        assert!(matches!(failure, Failure::Http { code: found, .. } if found == code), "{code}: {failure:?}");
    }
    let failure = soon(connect("http://127.0.0.1:9/mcp", &[])).await.unwrap_err();
    assert!(matches!(failure, Failure::Http { code: 502, .. }), "{failure:?}");
}
