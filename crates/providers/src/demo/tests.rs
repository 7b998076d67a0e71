use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn ask(message: &str, extra: Value) -> Demo {
    let mut body = json!({
        "model": "demo",
        "stream": true,
        "stream_options": {"include_usage": true},
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": message}],
    });
    let Value::Object(extra) = extra else { panic!("{extra}") };
    body.as_object_mut().unwrap().extend(extra);
    answer(body.to_string().as_bytes())
}

fn chunks(demo: &Demo) -> Vec<Value> {
    let chunk = |step: &Step| if let Step::Chunk(bytes) = step { serde_json::from_slice(bytes).ok() } else { None };
    demo.steps.iter().filter_map(chunk).collect()
}

fn folded(demo: &Demo) -> (u16, Value) {
    let Step::Status { status, body, .. } = demo.fold() else { panic!("{demo:?}") };
    (status, serde_json::from_slice(&body).unwrap())
}

/// The one choice of the folded answer: its message and its finish reason.
fn said(demo: &Demo) -> (Value, String) {
    let (status, mut whole) = folded(demo);
    assert_eq!(status, 200, "{whole}");
    let choice = whole["choices"][0].take();
    (choice["message"].clone(), choice["finish_reason"].as_str().unwrap().to_owned())
}

fn tools() -> Value {
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let tool = |name: &str| json!({"type": "function", "function": {"name": name, "parameters": parameters}});
    json!([tool("weather"), tool("time")])
}

#[test]
fn an_ordinary_stream_has_the_usual_order() {
    let demo = ask("Hello there", json!({}));
    let chunks = chunks(&demo);
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    assert!(chunks.len() > 6, "{chunks:?}");
    let [.., finish, usage] = chunks.as_slice() else { panic!() };
    assert_eq!(finish["choices"][0]["finish_reason"], "stop");
    assert_eq!(usage["choices"], json!([]));
    assert_eq!(usage["usage"]["prompt_tokens"], 10);
    assert_eq!(demo.steps.last(), Some(&Step::Done));
    let (message, _) = said(&demo);
    assert!(message["content"].as_str().unwrap().contains("\"Hello there\""));
    assert_eq!(demo, ask("Hello there", json!({})), "deterministic");
    assert!(self::chunks(&ask("Hi", json!({"stream_options": null}))).iter().all(|chunk| chunk["usage"].is_null()));
}

#[test]
fn texts() {
    let cases = [
        ("echo exactly this", json!({}), "exactly this", "stop"),
        ("long 3", json!({}), "word1 word2 word3", "stop"),
        ("long 9", json!({"max_completion_tokens": 2}), "word1 word2 ", "length"),
        ("call nothing", json!({}), "I cannot call nothing: there are no tools to call.", "stop"),
        (
            "call time",
            json!({"tools": tools(), "tool_choice": "none"}),
            "I cannot call time: there are no tools to call.",
            "stop",
        ),
        ("call x {}", json!({"tools": tools()}), "I cannot call x: the declared tools are weather, time.", "stop"),
        ("length\nHi", json!({}), "You said: \"Hi\". There is much to say about this, and", "length"),
        ("echo {\"a\":1}", json!({"response_format": {"type": "json_object"}}), "{\"a\":1}", "stop"),
        (
            "Hi",
            json!({"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object", "properties": {"ok": {"type": "boolean"}}}}}}),
            "{\"ok\":true}",
            "stop",
        ),
        (
            "x",
            json!({"tool_choice": "required", "tools": tools(), "messages": [{"role": "user", "content": "x"}, {"role": "tool", "tool_call_id": "c", "content": "42"}]}),
            "The tool answered: \"42\"",
            "stop",
        ),
    ];
    for (message, extra, content, finish) in cases {
        let (answer, reason) = said(&ask(message, extra));
        assert_eq!((answer["content"].as_str(), reason.as_str()), (Some(content), finish), "{message}");
    }
}

#[test]
fn tool_calls() {
    let both = "call weather {\"city\": \"Zürich, Switzerland\"}\ncall time {broken";
    let (message, reason) = said(&ask(both, json!({"tools": tools()})));
    assert_eq!(reason, "tool_calls");
    assert_eq!(message["content"], Value::Null);
    let calls = message["tool_calls"].as_array().unwrap();
    assert_eq!(calls[0]["function"], json!({"name": "weather", "arguments": "{\"city\": \"Zürich, Switzerland\"}"}));
    assert_eq!(calls[1]["function"], json!({"name": "time", "arguments": "{broken"}));
    assert_ne!(calls[0]["id"], calls[1]["id"]);
    let (message, _) = said(&ask(both, json!({"tools": tools(), "parallel_tool_calls": false})));
    assert_eq!(message["tool_calls"].as_array().unwrap().len(), 1);
    let named = json!({"type": "function", "function": {"name": "time"}});
    for (choice, expected) in [(json!("required"), "weather"), (named, "time")] {
        let (message, _) = said(&ask("Hi", json!({"tools": tools(), "tool_choice": choice})));
        let function = json!({"name": expected, "arguments": "{\"city\":\"example\"}"});
        assert_eq!(message["tool_calls"][0]["function"], function);
    }
}

#[test]
fn thinking_and_refusing() {
    let (message, _) = said(&ask("think about it", json!({})));
    assert!(message["reasoning_content"].as_str().unwrap().contains("about it"));
    assert!(message["content"].as_str().unwrap().contains("about it"));
    let (message, _) = said(&ask("refuse", json!({})));
    assert_eq!(message["content"], Value::Null);
    assert!(message["refusal"].as_str().unwrap().starts_with("I'm sorry"));
}

#[test]
fn slow_answers_take_their_time() {
    let demo = ask("slow 5\nHi", json!({}));
    assert_eq!(demo.duration(), Duration::from_millis(800));
    let content = chunks(&demo).iter().filter(|chunk| chunk["choices"][0]["delta"]["content"].is_string()).count();
    assert_eq!(content, 6, "the role chunk and five of text");
}

#[test]
fn failures() {
    let Step::Status { status, headers, body } = &ask("fail 429 slow down", json!({})).steps[0] else { panic!() };
    assert_eq!((*status, headers.as_slice()), (429, [("retry-after", "1".to_owned())].as_slice()));
    let body: Value = serde_json::from_slice(body).unwrap();
    assert_eq!(body["error"]["message"], "slow down");
    let demo = ask("fail stream", json!({}));
    assert_eq!(chunks(&demo).last().unwrap()["error"]["type"], "server_error");
    assert!(!demo.steps.contains(&Step::Done));
    assert_eq!(folded(&demo).0, 500);
    let demo = ask("fail cut", json!({}));
    assert_eq!((demo.steps.last(), demo.fold()), (Some(&Step::Cut), Step::Cut));
}

#[test]
fn a_broken_request_is_a_400() {
    for body in
        ["", "nonsense", "[]", "{}", r#"{"model":"m"}"#, r#"{"model":"m","messages":[]}"#, r#"{"messages":[1]}"#]
    {
        assert!(matches!(answer(body.as_bytes()).steps.as_slice(), [Step::Status { status: 400, .. }]), "{body}");
    }
    assert_eq!(folded(&answer(br#"{"model":"m","messages":[1,null,{"role":7,"content":{}}]}"#)).0, 200);
}

proptest! {
    #[test]
    fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        answer(&bytes).fold();
    }

    #[test]
    fn never_panics_on_messages(message in "(call|think|slow|long|echo|fail)?[ ]?[0-9]{0,9}.{0,300}", limit in any::<u64>()) {
        let demo = ask(&message, json!({"tools": tools(), "max_tokens": limit}));
        prop_assert!(!demo.steps.is_empty());
        demo.fold();
    }
}
