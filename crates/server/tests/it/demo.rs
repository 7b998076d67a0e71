//! The offline model's commands, over HTTP.

use serde_json::{Value, json};

use crate::chat;
use crate::rig::{Rig, error, object, stream};

fn ask(input: &str) -> Value {
    json!({"model": "demo", "input": input})
}

fn with_tool(input: &str) -> Value {
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let mut body = ask(input);
    body["tools"] = json!([{"type": "function", "name": "weather", "parameters": parameters}]);
    body
}

/// The demo model's ids of calls depend on the whole request, `stream` included.
fn anonymous(response: Value) -> Value {
    let mut response = crate::rig::anonymous(response);
    for item in response["output"].as_array_mut().into_iter().flatten().filter(|item| !item["call_id"].is_null()) {
        item["call_id"] = json!("call");
    }
    response
}

#[tokio::test]
async fn commands_are_obeyed_streamed_and_not() {
    let rig = Rig::start(chat::answer(false)).await;
    let schema = json!({
        "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false,
    });
    let mut json_schema = ask("Give me a number.");
    json_schema["text"] = json!({"format": {"type": "json_schema", "name": "number", "schema": schema}});
    for (body, status, items) in [
        (ask("Hello"), "completed", vec!["message"]),
        (ask("echo é😀\n\"x\""), "completed", vec!["message"]),
        (ask("think about it"), "completed", vec!["reasoning", "message"]),
        (ask("refuse"), "completed", vec!["message"]),
        (ask("length"), "incomplete", vec!["message"]),
        (with_tool("call weather {\"city\": \"Oslo\"}"), "completed", vec!["function_call"]),
        (with_tool("call weather\ncall weather {\"city\": \"Rome\"}"), "completed", vec!["function_call"; 2]),
        (json_schema, "completed", vec!["message"]),
    ] {
        let (whole, streamed) = rig.both(&body).await;
        let (whole, streamed) = (object(&whole), stream(&streamed));
        assert_eq!(whole["status"], status, "{body}");
        let found: Vec<&str> =
            whole["output"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect();
        assert_eq!(found, items, "{body}");
        assert_eq!(anonymous(whole), anonymous(streamed.response), "{body}");
    }
    assert_eq!(rig.upstream.requests().len(), 0);
}

#[tokio::test]
async fn what_the_answers_hold() {
    let rig = Rig::start(chat::answer(false)).await;
    let text = |response: &Value| response["output"][0]["content"][0]["text"].clone();
    assert_eq!(text(&object(&rig.post(&ask("echo é😀\n\"x\"")).await)), "é😀\n\"x\"");

    let refused = object(&rig.post(&ask("refuse")).await);
    assert_eq!(refused["output"][0]["content"][0]["type"], "refusal");

    let cut = object(&rig.post(&ask("length")).await);
    assert_eq!(cut["incomplete_details"], json!({"reason": "max_output_tokens"}));

    let called = object(&rig.post(&with_tool("call weather {\"city\": \"Oslo\"}")).await);
    let call = &called["output"][0];
    assert_eq!((&call["name"], &call["arguments"]), (&json!("weather"), &json!("{\"city\": \"Oslo\"}")));

    let output = json!({"type": "function_call_output", "call_id": call["call_id"], "output": "12 degrees"});
    let mut next = with_tool("");
    next["input"] = json!([{"role": "user", "content": "call weather"}, call, output]);
    assert_eq!(text(&object(&rig.post(&next).await)), "The tool answered: \"12 degrees\"");
}

#[tokio::test]
async fn failures_on_demand() {
    let rig = Rig::start(chat::answer(false)).await;
    for (command, status, code) in [
        ("fail 400 no", 400, "invalid_request"),
        ("fail 401", 502, "provider_auth"),
        ("fail 429", 429, "rate_limit_exceeded"),
        ("fail 500", 502, "upstream_error"),
        ("fail 503", 503, "upstream_overloaded"),
    ] {
        let (whole, streamed) = rig.both(&ask(command)).await;
        for answer in [whole, streamed] {
            assert_eq!((answer.status, error(&answer).code.as_str()), (status, code), "{command}");
            assert_eq!(answer.header("retry-after"), (status == 429).then_some("1"), "{command}");
        }
    }
    for (command, code) in [("fail cut", "upstream_truncated"), ("fail stream", "upstream_error")] {
        let (whole, streamed) = rig.both(&ask(command)).await;
        assert_eq!((whole.status, error(&whole).code.as_str()), (502, code), "{command}");
        let streamed = stream(&streamed);
        assert_eq!(streamed.response["status"], "failed", "{command}");
        assert_eq!(streamed.text, "This answer will not", "{command}");
    }
}
