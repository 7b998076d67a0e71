//! Whatever JSON is sent, the server lives, and answers with a response or with OpenAI's error object.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};
use testkit::{Script, grammar};

use crate::chat;
use crate::rig::{Rig, error};

/// Any JSON, small.
fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter_map("finite", |number| serde_json::Number::from_f64(number).map(Value::Number)),
        ".{0,6}".prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::vec((prop_oneof![word().prop_map(str::to_owned), ".{0,4}"], inner), 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Words that mean something at some place.
fn word() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "type",
        "role",
        "content",
        "text",
        "name",
        "id",
        "call_id",
        "output",
        "arguments",
        "function",
        "message",
        "user",
        "assistant",
        "system",
        "developer",
        "input_text",
        "output_text",
        "input_image",
        "image_url",
        "function_call",
        "function_call_output",
        "reasoning",
        "summary",
        "format",
        "json_schema",
        "schema",
        "auto",
        "required",
        "m",
        "custom",
        "tools",
        "namespace",
        "web_search",
        "item_reference",
        "shell_call",
        "action",
        "\u{0}",
        "\u{1f600}",
    ])
}

/// A request that uses much of the API.
fn valid() -> Value {
    json!({
        "model": "m", "instructions": "Be brief.", "stream": false, "temperature": 1, "top_p": 0.5,
        "max_output_tokens": 99, "metadata": {"k": "v"}, "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "low", "summary": "auto"}, "parallel_tool_calls": false, "truncation": "auto",
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}, "verbosity": "low"},
        "tools": [
            {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": true},
            {"type": "custom", "name": "c", "format": {"type": "text"}},
        ],
        "tool_choice": {"type": "function", "name": "f"},
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "data:,"}]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "h"}]},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "1"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "b", "annotations": []}]},
        ],
    })
}

/// How many places a document has, itself not counted.
fn places(value: &Value) -> usize {
    match value {
        Value::Array(list) => list.iter().map(|inner| 1 + places(inner)).sum(),
        Value::Object(fields) => fields.values().map(|inner| 1 + places(inner)).sum(),
        _ => 0,
    }
}

/// Puts `new` at the given place.
fn replace(value: &mut Value, place: &mut usize, new: &Value) -> bool {
    let children: Vec<&mut Value> = match value {
        Value::Array(list) => list.iter_mut().collect(),
        Value::Object(fields) => fields.values_mut().collect(),
        _ => return false,
    };
    for child in children {
        if *place == 0 {
            *child = new.clone();
            return true;
        }
        *place -= 1;
        if replace(child, place, new) {
            return true;
        }
    }
    false
}

fn request() -> impl Strategy<Value = Value> {
    let mutations = prop::collection::vec((0..places(&valid()), tree()), 1..3).prop_map(|mutations| {
        let mut body = valid();
        for (mut place, new) in mutations {
            replace(&mut body, &mut place, &new);
        }
        body
    });
    let half = (tree(), tree()).prop_map(|(input, tools)| json!({"model": "m", "input": input, "tools": tools}));
    let input = tree().prop_map(|item| json!({"model": "m", "input": [item, {"role": "user", "content": "x"}]}));
    prop_oneof![1 => tree(), 4 => mutations, 1 => half, 1 => input]
}

#[tokio::test]
async fn any_json_gets_a_response_or_an_error() {
    // An answer that is text and JSON.
    let mut completion = chat::completion();
    completion["choices"][0]["message"]["content"] = json!("{}");
    let rig = Rig::start(Script::json(200, &completion)).await;
    let mut runner = TestRunner::deterministic();
    let strategy = request();
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..500 {
        let body = strategy.new_tree(&mut runner).unwrap().current();
        let answer = rig.client.post_json(&rig.url("/v1/responses"), &body).await;
        let answer = answer.unwrap_or_else(|problem| panic!("{problem:#}: {body}"));
        // An answer that does not fit a random schema is the one failure that is the model's.
        let wants_json = body["text"]["format"]["type"].as_str().is_some_and(|kind| kind.starts_with("json"));
        let off_format = wants_json && answer.json()["error"]["code"] == "invalid_output_format";
        assert!(answer.status < 500 || off_format, "{} {body}", String::from_utf8_lossy(&answer.body));
        if answer.status != 200 {
            error(&answer);
            refused += 1;
        } else if body["stream"] == json!(true) {
            grammar::check(&answer.body).unwrap_or_else(|problem| panic!("{problem}: {body}"));
            accepted += 1;
        } else {
            grammar::check_response(&answer.json()).unwrap_or_else(|problem| panic!("{problem}: {body}"));
            accepted += 1;
        }
    }
    assert!(accepted > 50 && refused > 50, "{accepted} accepted, {refused} refused: too one-sided");
}
