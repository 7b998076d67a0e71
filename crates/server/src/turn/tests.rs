//! Responses of several upstream answers, seen from within.

mod dropped;
mod grammars;

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use http::{HeaderMap, Method};
use serde_json::{Value, json};
use testkit::{McpServer, Script, Upstream};
use wire::id::IdKind;

use super::{Start, Started, Turn};
use crate::account::Account;
use crate::app::App;
use crate::caller::Caller;
use crate::clock;
use crate::config::{Overrides, Sources, load};
use crate::request::RequestContext;

async fn app(upstream: &Upstream, more: &str) -> Arc<App> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("godex.yaml");
    let text = format!(
        "session: {{backend: memory}}\nresilience: {{backoff_ms: 2, breaker_failures: 0}}\nproviders:\n  up:\n    spec: \
         openai-compatible\n    endpoint: {{base_url: '{}/v1'}}\n    credentials: {{api_key: k}}\n{more}",
        upstream.url()
    );
    std::fs::write(&path, text).unwrap();
    let overrides = Overrides { port: Some(0), ..Overrides::default() };
    let sources = Sources { config_path: Some(&path), cwd: folder.path(), home: None, env: &|_| None, overrides };
    let config = load(&sources).unwrap_or_else(|problems| panic!("{problems}"));
    Arc::new(App::new(config).await.unwrap())
}

fn context(app: &Arc<App>) -> RequestContext {
    let mut ids = clock::ids();
    let id = ids.make(IdKind::Request);
    let headers = HeaderMap::new();
    RequestContext {
        app: Arc::clone(app),
        snapshot: app.snapshot(),
        caller: Caller::new(None, &headers),
        account: Account::open(&Method::POST, "/v1/responses", &headers, &id),
        ids,
    }
}

async fn start(app: &Arc<App>, request: &Value) -> Box<Turn> {
    let bytes = Bytes::from(request.to_string());
    match Box::pin(Turn::start(context(app), bytes, Start::default())).await.unwrap() {
        Started::Turn(turn) => turn,
        other => panic!("{other:?}"),
    }
}

fn usage() -> Value {
    json!({"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7})
}

fn completion(message: &Value, reason: &str) -> Value {
    json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "usage": usage(),
        "choices": [{"index": 0, "message": message, "finish_reason": reason}]})
}

/// The answer in the way that the request asks for: one delta, or whole.
fn script(stream: bool, message: &Value, reason: &str) -> Script {
    if !stream {
        return Script::json(200, &completion(message, reason));
    }
    let mut delta = message.clone();
    for (at, call) in delta["tool_calls"].as_array_mut().into_iter().flatten().enumerate() {
        call["index"] = json!(at);
    }
    let chunk = |delta: &Value, reason: Option<&str>| {
        json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
    };
    let last = json!({"id": "c", "object": "chat.completion.chunk", "choices": [], "usage": usage()});
    Script::sse(&[chunk(&delta, None), chunk(&json!({}), Some(reason)), last])
}

fn call(id: &str, name: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}})
}

/// The configuration of a server with the label `a`.
fn with(server: &McpServer) -> String {
    format!("tools: {{mcp: {{servers: {{a: {{url: '{}', require_approval: never}}}}}}}}\n", server.url())
}

fn request() -> Value {
    json!({"model": "up/m", "input": "Say it again.", "tools": [{"type": "mcp", "server_label": "a"}]})
}

/// How many results of tools the model was shown.
fn results(request: &Value) -> usize {
    let messages = request["messages"].as_array().unwrap();
    messages.iter().filter(|message| message["role"] == "tool").count()
}

fn kinds(response: &Value) -> Vec<String> {
    let items = response["output"].as_array().unwrap().iter();
    items.map(|item| item["type"].as_str().unwrap().to_owned()).collect()
}

/// Another round is an attempt like the first: it is retried, and it fails over.
#[tokio::test]
async fn a_later_round_is_retried_and_its_failure_ends_the_response() {
    let upstream = Upstream::start(Script::json(400, &json!({"error": {"message": "no more"}}))).await.unwrap();
    let calls = json!({"role": "assistant", "content": null, "tool_calls": [call("call_1", "a__echo")]});
    let done = json!({"role": "assistant", "content": "It is noon."});
    let server = McpServer::modern().await.unwrap();
    let app = app(&upstream, &with(&server)).await;
    upstream.queue(script(true, &calls, "tool_calls"));
    upstream.queue(Script::json(503, &json!({"error": {"message": "busy"}})));
    upstream.queue(script(true, &done, "stop"));
    let mut streamed = request();
    streamed["stream"] = json!(true);
    let events = |turn: Box<Turn>| async {
        let frames: Vec<Bytes> = turn.into_stream().collect().await;
        testkit::grammar::check(&frames.concat()).unwrap_or_else(|problem| panic!("{problem}"))
    };
    let stream = events(start(&app, &streamed).await).await;
    assert_eq!((stream.response["status"].clone(), upstream.requests().len()), (json!("completed"), 3));
    upstream.queue(script(true, &calls, "tool_calls"));
    let stream = events(start(&app, &streamed).await).await;
    assert_eq!(stream.response["status"], "failed");
    assert_eq!(kinds(&stream.response), ["mcp_list_tools", "mcp_call"], "what was shown stays");
}

/// What is kept for another round is kept only where there may be one.
#[tokio::test]
async fn a_plain_stream_keeps_nothing_of_its_request() {
    let upstream = Upstream::start(script(true, &json!({"role": "assistant", "content": "Hi"}), "stop")).await.unwrap();
    let server = McpServer::modern().await.unwrap();
    let app = app(&upstream, &format!("output: {{repair: reask}}\n{}", with(&server))).await;
    let plain = json!({"model": "up/m", "input": "x".repeat(1 << 20), "stream": true});
    let turn = start(&app, &plain).await;
    assert!(turn.material.is_none());
    assert!(app.runtime.budget.used() < 1 << 20, "{}", app.runtime.budget.used());
    let turn = start(&app, &{
        let mut hosted = request();
        hosted["stream"] = json!(true);
        hosted
    })
    .await;
    assert!(turn.material.is_some());
}
