//! Responses of several upstream answers, with a hosted tool that exists only here.

mod dropped;
mod grammars;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bridge::{HostedCall, OfferedTool};
use bytes::Bytes;
use futures_util::StreamExt;
use http::{HeaderMap, Method};
use serde_json::{Value, json};
use testkit::{Script, Upstream};
use wire::id::IdKind;

use super::{Ended, Start, Started, Turn};
use crate::account::Account;
use crate::app::App;
use crate::ask::{HostedItem, HostedOutput, HostedTools};
use crate::caller::Caller;
use crate::clock;
use crate::config::{Overrides, Sources, load};
use crate::request::RequestContext;

/// Knows what time it is; says so twice as late each time it is asked.
#[derive(Debug)]
struct Clock;

impl HostedTools for Clock {
    fn runs(&self, tool: &OfferedTool) -> bool {
        tool.name == "clock"
    }

    fn call(&self, call: HostedCall) -> Pin<Box<dyn Future<Output = HostedOutput> + Send>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            let item = |status: &str| {
                json!({"type": "mcp_call", "id": format!("mcp_{}", call.call_id), "server_label": "clock", "name": "clock",
                    "arguments": call.arguments, "output": if status == "completed" { json!("noon") } else { Value::Null },
                    "error": null, "status": status, "approval_request_id": null})
                .to_string()
                .into_bytes()
            };
            let item = Some(HostedItem { added: item("in_progress"), done: item("completed") });
            HostedOutput { item, output: "noon".to_owned() }
        })
    }
}

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
        caller: Caller::of(&headers),
        account: Account::open(&Method::POST, "/v1/responses", &headers, &id),
        ids,
    }
}

async fn start(app: &Arc<App>, request: &Value) -> Box<Turn> {
    let bytes = Bytes::from(request.to_string());
    let start = Start { hosted: Some(Arc::new(Clock)), ..Start::default() };
    match Box::pin(Turn::start(context(app), bytes, start)).await.unwrap() {
        Started::Turn(turn) => turn,
        other => panic!("{other:?}"),
    }
}

/// The same request both ways: the stream keeps the grammar, and the object is the same without it.
async fn both(app: &Arc<App>, request: &Value) -> (testkit::grammar::Stream, Value) {
    let mut streamed = request.clone();
    streamed["stream"] = json!(true);
    let frames: Vec<Bytes> = start(app, &streamed).await.into_stream().collect().await;
    let stream = testkit::grammar::check(&frames.concat()).unwrap_or_else(|problem| panic!("{problem}"));
    let object = match start(app, request).await.run().await.ended {
        Ended::Object(object) => serde_json::from_slice(&object).unwrap(),
        other => panic!("{other:?}"),
    };
    (stream, object)
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

fn request() -> Value {
    let tool =
        |name: &str| json!({"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}});
    json!({"model": "up/m", "input": "What time is it?", "tools": [tool("clock"), tool("theirs")]})
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

#[tokio::test]
async fn a_hosted_tools_result_goes_back_and_the_response_goes_on() {
    let upstream = Upstream::start_with(|received| {
        let request = received.json();
        let stream = request["stream"] == true;
        match results(&request) {
            0 => {
                let calls = json!([call("call_1", "clock"), call("call_2", "clock")]);
                script(
                    stream,
                    &json!({"role": "assistant", "content": "Let me see.", "tool_calls": calls}),
                    "tool_calls",
                )
            }
            2 => {
                let calls = json!([call("call_3", "clock")]);
                script(stream, &json!({"role": "assistant", "content": null, "tool_calls": calls}), "tool_calls")
            }
            _ => script(stream, &json!({"role": "assistant", "content": "It is noon."}), "stop"),
        }
    })
    .await
    .unwrap();
    let app = app(&upstream, "").await;
    let (stream, object) = both(&app, &request()).await;
    for response in [&stream.response, &object] {
        assert_eq!(kinds(response), ["message", "mcp_call", "mcp_call", "mcp_call", "message"], "{response}");
        assert_eq!(response["output"][4]["content"][0]["text"], "It is noon.");
        assert_eq!((&response["status"], &response["usage"]["total_tokens"]), (&json!("completed"), &json!(21)));
    }
    // Each round extends the one before it, so that the provider's cache keeps hitting.
    let asked: Vec<Value> = upstream.requests().iter().map(testkit::Received::json).collect();
    assert_eq!(asked.len(), 6);
    for rounds in asked.chunks(3) {
        for pair in rounds.windows(2) {
            let [before, after] = [0, 1].map(|at| pair[at]["messages"].as_array().unwrap().clone());
            assert_eq!(after[..before.len()], before[..], "{after:?}");
        }
    }
    // All rounds went over one connection each way.
    let connections: Vec<usize> = upstream.requests().iter().map(|request| request.connection).collect();
    assert!(connections.iter().max() <= Some(&1), "{connections:?}");
}

#[tokio::test]
async fn with_a_call_for_the_client_the_hosted_one_runs_too_and_the_client_acts() {
    let upstream = Upstream::start_with(|received| {
        let stream = received.json()["stream"] == true;
        let calls = json!([call("call_1", "theirs"), call("call_2", "clock")]);
        script(stream, &json!({"role": "assistant", "content": null, "tool_calls": calls}), "tool_calls")
    })
    .await
    .unwrap();
    let app = app(&upstream, "").await;
    let (stream, object) = both(&app, &request()).await;
    for response in [&stream.response, &object] {
        assert_eq!(kinds(response), ["function_call", "mcp_call"], "{response}");
    }
    assert_eq!(upstream.requests().len(), 2, "the model is asked once for each");
}

#[tokio::test]
async fn a_model_that_calls_for_ever_is_stopped() {
    let upstream = Upstream::start_with(|received| {
        let stream = received.json()["stream"] == true;
        let calls = json!([call(&format!("call_{}", results(&received.json())), "clock")]);
        script(stream, &json!({"role": "assistant", "content": null, "tool_calls": calls}), "tool_calls")
    })
    .await
    .unwrap();
    let app = app(&upstream, "").await;
    let ended = start(&app, &request()).await.run().await.ended;
    assert!(matches!(&ended, Ended::Failed(failure) if failure.message.contains("without an end")), "{ended:?}");
    assert_eq!(upstream.requests().len(), 33);
}

/// Another round is an attempt like the first: it is retried, and it fails over.
#[tokio::test]
async fn a_later_round_is_retried_and_its_failure_ends_the_response() {
    let upstream = Upstream::start(Script::json(400, &json!({"error": {"message": "no more"}}))).await.unwrap();
    let calls = json!({"role": "assistant", "content": null, "tool_calls": [call("call_1", "clock")]});
    let done = json!({"role": "assistant", "content": "It is noon."});
    let app = app(&upstream, "").await;
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
    assert_eq!(kinds(&stream.response), ["mcp_call"], "what was shown stays");
}

/// What is kept for another round is kept only where there may be one.
#[tokio::test]
async fn a_plain_stream_keeps_nothing_of_its_request() {
    let upstream = Upstream::start(script(true, &json!({"role": "assistant", "content": "Hi"}), "stop")).await.unwrap();
    let app = app(&upstream, "output: {repair: reask}\n").await;
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
