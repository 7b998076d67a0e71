//! Providers that speak the Responses API themselves: godex keeps the state, the ids and the grammar.

use std::time::Duration;

use serde_json::{Value, json};
use server::config::Config;
use testkit::{Received, Script, Upstream};

use crate::rig::{KEY, Rig, Settings, anonymous, error, object, stream};

const NATIVE: &str = "responses-compatible";

fn event(name: &str, members: Value) -> Value {
    let mut event = members;
    event["type"] = json!(format!("response.{name}"));
    event
}

fn delta(text: &str) -> Value {
    event("output_text.delta", json!({"item_id": "msg_up", "delta": text}))
}

fn message(text: &str) -> Value {
    let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
    json!({"type": "message", "id": "msg_up", "role": "assistant", "status": "completed", "content": content})
}

fn response(output: &Value) -> Value {
    let usage = json!({"input_tokens": 5, "output_tokens": 2, "total_tokens": 7});
    json!({"id": "resp_up", "object": "response", "status": "completed", "output": output, "usage": usage})
}

/// One item, streamed without `[DONE]` and without numbers, or whole.
fn answered(received: &Received, item: &Value) -> Script {
    let whole = response(&json!([item]));
    if received.json()["stream"] != json!(true) {
        return Script::json(200, &whole);
    }
    let mut begun = item.clone();
    begun["content"] = json!([]);
    [
        event("created", json!({"response": {"id": "resp_up", "status": "in_progress"}})),
        event("output_item.added", json!({"item": begun})),
        event("output_item.done", json!({"item": item})),
        event("completed", json!({"response": whole})),
    ]
    .iter()
    .fold(Script::event_stream(), Script::event)
}

/// Names the caller if the items say who it is, and says how many items there were.
fn who(received: &Received) -> Script {
    let request = received.json();
    let text = request["input"].to_string();
    let name = text.split("my name is ").nth(1).and_then(|rest| rest.split(['.', '"', '\\']).next());
    let count = request["input"].as_array().map_or(0, Vec::len);
    answered(received, &message(&format!("{} ({count})", name.unwrap_or("nobody"))))
}

fn settings(spec: &'static str) -> Settings {
    Settings { spec, ..Settings::default() }
}

async fn rig() -> Rig {
    Rig::before(Upstream::start_with(who).await.unwrap(), settings(NATIVE)).await
}

async fn turn(rig: &Rig, mut body: Value, streamed: bool) -> Value {
    body["model"] = json!("m");
    body["stream"] = json!(streamed);
    let answer = rig.post(&body).await;
    if streamed { stream(&answer).response } else { object(&answer) }
}

fn text(response: &Value) -> &str {
    response["output"][0]["content"][0]["text"].as_str().unwrap()
}

#[tokio::test]
async fn requests_go_to_responses_and_leave_no_state_there() {
    let rig = rig().await;
    for streamed in [false, true] {
        let body = json!({
            "input": "Hi", "instructions": "Be brief.", "metadata": {"a": "b"}, "temperature": 0.5, "store": true,
        });
        let answer = turn(&rig, body, streamed).await;
        assert_eq!(
            (text(&answer), &answer["metadata"], &answer["store"]),
            ("nobody (1)", &json!({"a": "b"}), &json!(true))
        );
        assert_eq!(answer["usage"]["total_tokens"], 7);
        let received = rig.upstream.requests().pop().unwrap();
        assert_eq!(
            (received.path.as_str(), received.header("authorization")),
            ("/v1/responses", Some(&*format!("Bearer {KEY}")))
        );
        let sent = received.json();
        assert_eq!(
            sent,
            json!({
                "model": "m", "instructions": "Be brief.", "temperature": 0.5, "include": [], "store": false,
                "stream": streamed, "input": [{"type": "message", "role": "user", "content": "Hi"}],
            })
        );
    }
}

/// One provider may serve some models by its Responses API and the others by chat; a chain may change between them.
#[tokio::test]
async fn a_single_model_may_be_native() {
    let upstream = Upstream::start_with(|received| match received.path.as_str() {
        "/v1/responses" => who(received),
        _ => testkit::forgetful(received),
    });
    let spec = "{extends: openai-compatible, models: [{match: 'native-*', wire: responses}]}";
    let rig = Rig::before(upstream.await.unwrap(), settings(spec)).await;
    let mut last = json!(null);
    for (round, (model, path)) in
        [("up/m", "/v1/chat/completions"), ("up/native-1", "/v1/responses"), ("up/m", "/v1/chat/completions")]
            .into_iter()
            .enumerate()
    {
        let input = if round == 0 { "my name is Alice." } else { "And now?" };
        let body = json!({"model": model, "input": input, "previous_response_id": last});
        let answer = object(&rig.post(&body).await);
        assert_eq!(text(&answer), format!("Alice ({})", 2 * round + 1));
        assert_eq!(rig.upstream.requests().pop().unwrap().path, path);
        last = answer["id"].clone();
    }
}

#[tokio::test]
async fn streamed_and_not_streamed_are_the_same() {
    let rig = rig().await;
    let (whole, streamed) = rig.both(&json!({"model": "m", "input": "my name is Zoe."})).await;
    let streamed = stream(&streamed);
    assert_eq!(anonymous(object(&whole)), anonymous(streamed.response.clone()));
    // No id of the provider is seen anywhere.
    let body = String::from_utf8(whole.body.to_vec()).unwrap();
    assert!(!body.contains("resp_up") && !body.contains("msg_up"), "{body}");
    let ids: Vec<&Value> = streamed.events.iter().filter_map(|(_, event)| event.pointer("/response/id")).collect();
    assert!(ids.len() >= 3 && ids.windows(2).all(|pair| pair[0] == pair[1]), "{ids:?}");
}

#[tokio::test]
async fn the_next_turn_knows_the_one_before() {
    let rig = rig().await;
    for (first, second) in [(false, true), (true, false), (true, true)] {
        let alice = turn(&rig, json!({"input": "Hello, my name is Alice."}), first).await;
        let id = alice["id"].as_str().unwrap();
        assert!(id.starts_with("resp_") && id.len() > 40, "{id}");
        assert_eq!(rig.get(&format!("/v1/responses/{id}")).await.json(), alice);
        let next = turn(&rig, json!({"input": "What's my name?", "previous_response_id": id}), second).await;
        assert_eq!(text(&next), "Alice (3)");
        let sent = rig.upstream.requests().pop().unwrap().json();
        assert_eq!((sent.get("previous_response_id"), &sent["store"]), (None, &json!(false)));
        assert!(sent["input"].as_array().unwrap().iter().all(|item| item.get("id").is_none()), "{sent}");
        let again = turn(&rig, json!({"input": "And now?", "previous_response_id": next["id"]}), first).await;
        assert_eq!(text(&again), "Alice (5)");
    }
    let unknown = rig.post(&json!({"model": "m", "input": "x", "previous_response_id": "resp_up"})).await;
    assert_eq!(error(&unknown).code, "previous_response_not_found");
}

#[tokio::test]
async fn conversations_are_ours_too() {
    let rig = rig().await;
    let created = rig.send(http::Method::POST, "/v1/conversations", &json!({})).await.json();
    turn(&rig, json!({"input": "my name is Bob.", "conversation": created["id"]}), true).await;
    let answer = turn(&rig, json!({"input": "Who am I?", "conversation": created["id"]}), false).await;
    assert_eq!(text(&answer), "Bob (3)");
    let sent = rig.upstream.requests().pop().unwrap().json();
    assert!(sent.get("conversation").is_none(), "{sent}");
}

/// Encrypted reasoning leaves under our seal and comes home as it was, under the id for which it was made.
#[tokio::test]
async fn encrypted_reasoning_goes_home_and_nowhere_else() {
    let upstream = Upstream::start_with(|received| {
        let reasoning = json!({"type": "reasoning", "id": "rs_up", "summary": [], "encrypted_content": "gAAAA-secret"});
        Script::json(
            200,
            &response(&json!([reasoning, message(&received.json()["input"].to_string().len().to_string())])),
        )
    });
    let spec = "{extends: responses-compatible, family: home, request: {native: {encrypted: true}}}";
    let session = || "backend: memory, seal_key: 0123456789abcdef0123456789abcdef".to_owned();
    let settings = |spec| Settings { spec, session: session(), ..Settings::default() };
    let rig = Rig::before(upstream.await.unwrap(), settings(spec)).await;
    let first = turn(&rig, json!({"input": "Hi", "store": false}), false).await;
    assert!(!first.to_string().contains("gAAAA"), "{first}");
    let mut input = first["output"].as_array().unwrap().clone();
    input.push(json!({"role": "user", "content": "Go on."}));
    turn(&rig, json!({"input": input}), false).await;
    let sent = rig.upstream.requests().pop().unwrap().json();
    assert_eq!(sent["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(
        sent["input"][0],
        json!({"type": "reasoning", "id": "rs_up", "summary": [], "encrypted_content": "gAAAA-secret"})
    );
    // A provider of another family never gets it.
    let other = Rig::before(Upstream::start_with(who).await.unwrap(), settings(NATIVE)).await;
    turn(&other, json!({"input": input}), false).await;
    let sent = other.upstream.requests().pop().unwrap().json();
    assert_eq!(sent["input"].as_array().unwrap().len(), 2, "{sent}");
}

#[tokio::test]
async fn tool_calls_and_their_outputs() {
    let upstream = Upstream::start_with(|received| {
        let asked = received.json()["input"].as_array().map_or(0, Vec::len);
        let call = json!({
            "type": "function_call", "id": "fc_up", "call_id": "call_up", "name": "f", "arguments": "{\"a\":1}",
            "status": "completed",
        });
        answered(received, &if asked == 1 { call } else { message("done") })
    });
    let rig = Rig::before(upstream.await.unwrap(), settings(NATIVE)).await;
    let tool = json!({"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}});
    for streamed in [false, true] {
        let first = turn(&rig, json!({"input": "Call", "tools": [tool]}), streamed).await;
        let call = &first["output"][0];
        assert_eq!((&call["call_id"], &call["arguments"]), (&json!("call_up"), &json!("{\"a\":1}")));
        let output = json!([{"type": "function_call_output", "call_id": "call_up", "output": "ok"}]);
        let next = json!({"input": output, "previous_response_id": first["id"], "tools": [tool]});
        assert_eq!(text(&turn(&rig, next, streamed).await), "done");
        let sent = rig.upstream.requests().pop().unwrap().json();
        assert_eq!(sent["tools"], json!([tool]));
        assert_eq!((&sent["input"][1]["name"], &sent["input"][2]["output"]), (&json!("f"), &json!("ok")));
    }
}

/// What a provider does wrong: the script, the error of a sync request, and that of a stream.
#[tokio::test]
async fn failures_are_told_as_on_the_other_road() {
    let begun = || Script::event_stream().event(&delta("Hel"));
    let failed = json!({"status": "failed", "error": {"code": "server_error", "message": "broken"}});
    let overflow =
        json!({"error": {"message": "This model's maximum context length is 10", "type": "x", "code": null}});
    let slow = json!({"error": {"message": "slow down", "type": "x", "code": null}});
    for (name, script, status, sync, streamed) in [
        ("cut", begun().cut(), 502, "upstream_truncated", Some("server_error")),
        ("ended", begun(), 502, "upstream_truncated", Some("server_error")),
        ("done", begun().done(), 502, "upstream_truncated", Some("server_error")),
        ("done at once", Script::event_stream().done(), 502, "upstream_empty", None),
        (
            "an error of a shape of its own",
            begun().event(&json!({"code": 429, "message": "no"})).done(),
            429,
            "upstream_rate_limit",
            Some("rate_limit_exceeded"),
        ),
        (
            "in-band",
            begun().event(&json!({"type": "error", "code": "rate_limit_exceeded", "message": "no"})),
            429,
            "upstream_rate_limit",
            Some("rate_limit_exceeded"),
        ),
        (
            "failed",
            begun().event(&event("failed", json!({"response": failed}))),
            502,
            "upstream_error",
            Some("server_error"),
        ),
        ("garbage", Script::sse_bytes("data: nonsense\n\n"), 502, "upstream_protocol", None),
        ("empty", Script::json(200, &response(&json!([]))), 502, "upstream_empty", Some("server_error")),
        ("429", Script::json(429, &slow), 429, "upstream_rate_limit", None),
        ("overflow", Script::json(400, &overflow), 400, "context_length_exceeded", Some("context_length_exceeded")),
    ] {
        let rig = Rig::with(script, settings(NATIVE)).await;
        let (whole, stream_answer) = rig.both(&json!({"model": "m", "input": "Hi"})).await;
        let found = error(&whole);
        assert_eq!((found.status, found.domain.as_str()), (status, sync), "{name}: {}", found.message);
        match streamed {
            None => assert_eq!(error(&stream_answer).domain, sync, "{name}"),
            Some(code) => {
                let response = stream(&stream_answer).response;
                assert_eq!(
                    (&response["status"], &response["error"]["code"]),
                    (&json!("failed"), &json!(code)),
                    "{name}"
                );
                let stored = rig.get(&format!("/v1/responses/{}", response["id"].as_str().unwrap())).await;
                assert_eq!(stored.json(), response, "{name}");
            }
        }
    }
}

#[tokio::test]
async fn an_answer_ends_with_its_terminal_event() {
    // No [DONE], and a provider that keeps the connection open.
    let script = Script::event_stream()
        .event(&delta("Hello"))
        .event(&event("completed", json!({"response": response(&json!([message("Hello")]))})))
        .stall();
    let rig = Rig::with(script, settings(NATIVE)).await;
    for streamed in [true, false] {
        assert_eq!(text(&turn(&rig, json!({"input": "Hi"}), streamed).await), "Hello");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silence_is_filled_and_a_gone_client_is_noticed() {
    let script = Script::event_stream().event(&delta("Hel")).stall();
    let tweak: fn(&mut Config) = |config| config.server.heartbeat = Duration::from_millis(50);
    let settings = Settings { spec: NATIVE, tweak: Some(tweak), ..Settings::default() };
    let rig = Rig::with(script, settings).await;
    let request = json!({"model": "m", "input": "Hi", "stream": true});
    let mut socket = crate::socket::Socket::post(rig.address, &request).await;
    let read = socket.read_until(": heartbeat").await;
    assert!(read.contains("\"delta\":\"Hel\""), "{read}");
    drop(socket);
    let closed = tokio::time::timeout(Duration::from_secs(10), rig.upstream.closed_after(0)).await;
    assert!(closed.is_ok(), "the provider still works");
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_asked_for_again() {
    let upstream = Upstream::start_with(|received| {
        let asked = received.json()["input"].as_array().map_or(0, Vec::len);
        answered(received, &message(if asked == 1 { "Sure!" } else { "{\"a\":1}" }))
    });
    let tweak: fn(&mut Config) = |config| config.output.repair = bridge::Repair::Reask;
    let settings = Settings { spec: NATIVE, tweak: Some(tweak), ..Settings::default() };
    let rig = Rig::before(upstream.await.unwrap(), settings).await;
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
    let format = json!({"format": {"type": "json_schema", "name": "n", "schema": schema, "strict": true}});
    let answer = turn(&rig, json!({"input": "JSON, please", "text": format}), false).await;
    assert_eq!((text(&answer), &answer["usage"]["total_tokens"]), ("{\"a\":1}", &json!(14)));
    assert_eq!(rig.upstream.requests().pop().unwrap().json()["text"], format);
}

/// A provider that speaks the Responses API is asked for the summary in that, and reads it as a message.
#[tokio::test]
async fn compaction_works_the_same_there() {
    let choose = |received: &Received| {
        let asked = received.json()["input"].to_string();
        let text = if asked.contains("Write a summary of the conversation above") { "They met." } else { "Hello" };
        answered(received, &message(text))
    };
    let rig = Rig::before(Upstream::start_with(choose).await.unwrap(), settings(NATIVE)).await;
    let request = json!({"model": "m", "input": [{"role": "user", "content": "Hi"}]});
    let compacted = rig.send(http::Method::POST, "/v1/responses/compact", &request).await.json();
    let mut input = compacted["output"].as_array().unwrap().clone();
    assert_eq!((input.len(), &input[1]["type"]), (2, &json!("compaction")), "{compacted}");
    assert_eq!(compacted["usage"]["total_tokens"], 7);
    input.push(json!({"role": "user", "content": "Go on"}));
    object(&rig.post(&json!({"model": "m", "input": input})).await);
    let sent = rig.upstream.requests()[1].json()["input"].clone();
    assert!(sent[1]["content"].as_str().unwrap().ends_with("They met."), "{sent}");
    assert!(!sent.to_string().contains("encrypted_content"), "{sent}");
}
