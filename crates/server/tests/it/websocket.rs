//! `GET /v1/responses` as a WebSocket.

pub(crate) mod client;
mod continuing;
mod ends;
mod faults;
mod lanes;
mod limits;

use http::Method;
use serde_json::{Value, json};
use testkit::Script;
use testkit::grammar::Stream;

use crate::chat;
use crate::rig::{Rig, Settings, anonymous, object};
pub(crate) use client::Client;

/// A request for a response that nobody stores.
fn create(input: &str) -> Value {
    json!({"type": "response.create", "model": "m", "store": false, "input": input})
}

fn with(mut message: Value, fields: &Value) -> Value {
    for (name, value) in fields.as_object().unwrap() {
        message[name] = value.clone();
    }
    message
}

fn hello() -> Script {
    Script::sse(&[chat::text("Hel"), chat::text("lo"), chat::stop()])
}

/// What a stream says, without what is each response's own.
fn gist(stream: &Stream) -> Vec<Value> {
    let strip = |event: &Value| {
        let mut event = event.clone();
        for name in ["item_id", "stream_id"] {
            event.as_object_mut().unwrap().remove(name);
        }
        if event.get("item").is_some() {
            event["item"]["id"] = json!(null);
        }
        if let Some(response) = event.get("response") {
            event["response"] = anonymous(response.clone());
        }
        event
    };
    stream.events.iter().map(|(_, event)| strip(event)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_those_of_the_stream() {
    let rig = Rig::start(hello()).await;
    let body = json!({"model": "m", "input": "Hi", "store": false, "metadata": {"a": "b"}});
    let streamed = crate::rig::stream(&rig.post(&with(body.clone(), &json!({"stream": true}))).await);
    let mut client = Client::connect(&rig).await;
    // What means something only over HTTP, or only here, changes nothing and reaches no provider.
    for fields in [
        json!({}),
        json!({"stream": true}),
        json!({"stream": false, "background": true, "stream_options": {"include_obfuscation": true}, "generate": true}),
        json!({"stream_id": "one"}),
    ] {
        let message = with(with(body.clone(), &json!({"type": "response.create"})), &fields);
        let over_socket = client.respond(&message).await;
        assert_eq!(gist(&over_socket), gist(&streamed), "{fields}");
        for (_, event) in &over_socket.events {
            assert_eq!(event.get("stream_id"), fields.get("stream_id"), "{event}");
        }
    }
    let requests = rig.upstream.requests();
    for request in &requests[1..] {
        assert_eq!(request.json(), requests[0].json());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_stored_is_found_by_everybody() {
    let rig = Rig::start(hello()).await;
    let mut client = Client::connect(&rig).await;
    let stored = client.respond(&json!({"type": "response.create", "model": "m", "input": "Hi"})).await.response;
    let got = object(&rig.get(&format!("/v1/responses/{}", stored["id"].as_str().unwrap())).await);
    assert_eq!(got, stored);
    // Continued over HTTP, and what HTTP made over the socket.
    let next = json!({"model": "m", "input": "More", "previous_response_id": stored["id"]});
    let over_http = object(&rig.post(&next).await);
    let last = with(create("Again"), &json!({"previous_response_id": over_http["id"]}));
    client.respond(&last).await;
    let said: Vec<Value> = history(&rig, 2);
    assert_eq!(said, ["Hi", "Hello", "More", "Hello", "Again"]);
    // With `store: false` there is nothing to be found.
    let unstored = client.respond(&create("Hi")).await.response;
    let answer = rig.get(&format!("/v1/responses/{}", unstored["id"].as_str().unwrap())).await;
    assert_eq!(answer.status, 404);
}

/// The texts of the messages that the provider was sent with its nth request.
fn history(rig: &Rig, nth: usize) -> Vec<Value> {
    let request = rig.upstream.requests()[nth].json();
    request["messages"].as_array().unwrap().iter().map(|message| message["content"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_goes_on_over_the_socket() {
    let rig = Rig::start(hello()).await;
    let conversation = rig.send(Method::POST, "/v1/conversations", &json!({})).await.json();
    let mut client = Client::connect(&rig).await;
    for input in ["One", "Two"] {
        let message =
            json!({"type": "response.create", "model": "m", "input": input, "conversation": conversation["id"]});
        client.respond(&message).await;
    }
    assert_eq!(history(&rig, 1), ["One", "Hello", "Two"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_is_a_message_and_the_connection_goes_on() {
    let rig = Rig::start(hello()).await;
    let mut client = Client::connect(&rig).await;
    for (message, status, code, param, lane) in [
        ("{".to_owned(), 400, "invalid_json", None, None),
        ("[1]".to_owned(), 400, "invalid_body", None, None),
        (json!({"model": "m"}).to_string(), 400, "missing_required_parameter", Some("type"), None),
        (json!({"type": "response.append"}).to_string(), 400, "unknown_message_type", Some("type"), None),
        (
            json!({"type": "session.update", "stream_id": "a"}).to_string(),
            400,
            "unknown_message_type",
            Some("type"),
            Some("a"),
        ),
        (
            json!({"type": "response.create", "input": "x"}).to_string(),
            400,
            "missing_required_parameter",
            Some("model"),
            None,
        ),
        (with(create("x"), &json!({"model": ""})).to_string(), 400, "missing_required_parameter", Some("model"), None),
        (with(create("x"), &json!({"model": "up/"})).to_string(), 404, "model_not_found", Some("model"), None),
        (with(create("x"), &json!({"input": 7})).to_string(), 400, "invalid_type", Some("input"), None),
        (
            with(create("x"), &json!({"stream_id": "no spaces"})).to_string(),
            400,
            "invalid_stream_id",
            Some("stream_id"),
            None,
        ),
        (
            with(create("x"), &json!({"stream_id": "b", "previous_response_id": "resp_none"})).to_string(),
            400,
            "previous_response_not_found",
            Some("previous_response_id"),
            Some("b"),
        ),
        (
            with(create("x"), &json!({"conversation": "conv_none"})).to_string(),
            404,
            "conversation_not_found",
            Some("conversation"),
            None,
        ),
    ] {
        client.send(&message).await;
        let error = client.next().await;
        assert_eq!(error["type"], "error", "{message}: {error}");
        assert_eq!((&error["status"], &error["error"]["code"]), (&json!(status), &json!(code)), "{message}: {error}");
        assert_eq!(error["error"]["param"].as_str(), param, "{message}: {error}");
        assert_eq!(error["error"]["type"], "invalid_request_error", "{error}");
        assert!(error["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{error}");
        assert!(error["headers"]["x-request-id"].as_str().is_some_and(|id| id.starts_with("req_")), "{error}");
        assert_eq!(error.get("stream_id").and_then(Value::as_str), lane, "{message}: {error}");
    }
    assert_eq!(client.respond(&create("Hi")).await.text, "Hello");
    assert_eq!(rig.upstream.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_providers_error_keeps_its_class_and_its_wait() {
    let quick = Settings { resilience: "retries: 0, breaker_failures: 0", ..Settings::default() };
    let rig = Rig::with(hello(), quick).await;
    let mut client = Client::connect(&rig).await;
    let slow_down = Script::json(429, &json!({"error": {"message": "slow down"}})).header("retry-after", "7");
    for (script, status, code, wait) in [
        (slow_down, 429, "rate_limit_exceeded", Some("7")),
        (Script::json(500, &json!({"error": {"message": "broken"}})), 502, "upstream_error", None),
        (Script::json(400, &json!({"error": {"message": "no such thing"}})), 400, "upstream_invalid_request", None),
    ] {
        rig.upstream.queue(script);
        client.say(&create("Hi")).await;
        let error = client.next().await;
        assert_eq!((&error["type"], &error["status"]), (&json!("error"), &json!(status)), "{error}");
        assert_eq!(error["error"]["code"], code, "{error}");
        assert_eq!(error["headers"].get("retry-after").and_then(Value::as_str), wait, "{error}");
    }
    // What is too long for the model is an answer that clients act on.
    rig.upstream.queue(Script::json(
        400,
        &json!({"error": {"message": "maximum context length is 10 tokens", "code": "context_length_exceeded"}}),
    ));
    let failed = client.respond(&create("Hi")).await.response;
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!("context_length_exceeded")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steering_is_refused_and_the_input_comes_back() {
    let rig = Rig::start(hello()).await;
    let mut client = Client::connect(&rig).await;
    let input = json!([{"role": "user", "content": "Stop, \"please\""}]);
    client.say(&json!({"type": "response.steer", "previous_response_id": "resp_1", "input": input})).await;
    let event = client.next().await;
    assert_eq!((&event["type"], &event["sequence_number"]), (&json!("response.steer.failed"), &json!(0)));
    assert_eq!(event["error"]["code"], "steering_not_supported");
    assert_eq!(event["error"]["type"], "invalid_request_error");
    assert_eq!(event["steer"], json!({"previous_response_id": "resp_1", "input": input}));
    assert_eq!(client.respond(&create("Hi")).await.text, "Hello");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_who_may_ask_gets_a_socket() {
    let rig = Rig::start(hello()).await;
    for (headers, status) in [
        (&[("origin", "https://evil.example")][..], 403),
        (&[("origin", "null")], 403),
        (&[("host", "evil.example")], 403),
        (&[("sec-fetch-site", "cross-site")], 403),
        (&[("origin", "http://localhost")], 101),
        (&[("origin", "http://localhost"), ("sec-fetch-site", "same-origin")], 101),
        (&[], 101),
        (&[("sec-websocket-version", "12")], 426),
        (&[("sec-websocket-key", "short")], 400),
        (&[("upgrade", "h2c")], 426),
        (&[("sec-websocket-extensions", "permessage-deflate; client_max_window_bits")], 101),
    ] {
        let (found, head) = client::handshake(&rig, headers).await;
        assert_eq!(found, status, "{headers:?}\n{head}");
        assert_eq!(head.contains("sec-websocket-version: 13"), status == 426, "{head}");
        assert!(head.contains("x-request-id: req_"), "{head}");
        assert!(!head.contains("sec-websocket-extensions"), "{head}");
    }
    let without = rig.get("/v1/responses").await;
    assert_eq!(without.status, 405);
    assert_eq!(rig.upstream.requests().len(), 0);
}
