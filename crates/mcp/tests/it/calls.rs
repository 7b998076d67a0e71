//! What calls come to.

use serde_json::json;
use testkit::McpServer;
use testkit::mcp::{McpEra, McpOptions, PIXEL};

use crate::help::{BOTH, call, connect, soon, start};

#[tokio::test]
async fn results_are_texts_and_images() {
    for era in BOTH {
        let (server, client) = start(era).await;
        for (tool, text, images) in [
            ("echo", "grüß", 0),
            ("image", "a pixel\n[image/png, 72 bytes]", 1),
            ("audio", "[audio/wav, 72 bytes]", 0),
            ("link", "notes: file:///notes.txt", 0),
            ("resource", "in the file", 0),
            ("structured", r#"{"sum":3}"#, 0),
            ("progress", "done", 0),
            ("redirect", "moved", 0),
        ] {
            let result = soon(call(&client, tool, json!({"text": "grüß"}))).await.unwrap();
            assert_eq!((result.text.as_str(), result.images.len()), (text, images), "{tool}");
            if images == 1 {
                assert_eq!(result.images[0], format!("data:image/png;base64,{PIXEL}"));
            }
        }
        assert_eq!(server.calls()[0], ("echo".to_owned(), json!({"text": "grüß"})));
        assert!(call(&client, "long", json!({})).await.unwrap().text.ends_with("\n[cut: 65536 of 100000 bytes]"));
    }
}

#[tokio::test]
async fn calls_run_side_by_side() {
    for era in BOTH {
        let (_server, client) = start(era).await;
        let calls = (0..12).map(|n| {
            let client = &client;
            async move { call(client, "echo", json!({"text": n.to_string()})).await.unwrap().text }
        });
        let texts = soon(futures_util::future::join_all(calls)).await;
        assert_eq!(texts, (0..12).map(|n| n.to_string()).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn arguments_that_a_tool_wants_as_headers_are_sent_so() {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string", "x-mcp-header": "Text"}}});
    let bad = json!({"type": "object", "properties": {"text": {"type": "string", "x-mcp-header": "not a name"}}});
    let tools =
        vec![json!({"name": "needs_header", "inputSchema": schema}), json!({"name": "echo", "inputSchema": bad})];
    for listed in [true, false] {
        let server = McpServer::start(McpOptions::new(McpEra::Modern).tools(tools.clone())).await.unwrap();
        let client = connect(&server.url(), &[]).await.unwrap();
        if listed {
            let names: Vec<String> = client.list().await.unwrap().tools.into_iter().map(|tool| tool.name).collect();
            assert_eq!(names, ["needs_header"], "a tool with an annotation that is none is left out");
        }
        let result = call(&client, "needs_header", json!({"text": "abc"})).await.unwrap();
        assert_eq!(result.text, "abc");
        assert_eq!(server.count("tools/list"), 1);
    }
}
