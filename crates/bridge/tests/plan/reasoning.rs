//! Reasoning that comes back: to whom it is given, under which name, and what never leaves.

use bridge::{Dialect, Policy, Replay, ReplayField, SealedReasoning, Unsealed};
use serde_json::{Value, json};

use crate::dialects::named;
use crate::run::{TransparentSeal, plan_with};
use bridge::Seal;

fn sealed(family: &str, replay_data: Option<&str>) -> Value {
    let replay_data = replay_data.map(str::to_owned);
    let reasoning =
        SealedReasoning { family: family.to_owned(), text: "I think.".to_owned(), replay_data, native: None };
    json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": TransparentSeal.seal(&reasoning.encode())})
}

fn turn(reasoning: &Value) -> Value {
    json!({"model": "m", "input": [
        {"role": "user", "content": "Hi"}, reasoning,
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "ok"},
    ]})
}

fn assistant(request: &Value, dialect: &Dialect) -> Value {
    let planned = plan_with(request, &[], dialect, Policy::default(), &TransparentSeal).unwrap();
    planned.messages().iter().find(|message| message["role"] == "assistant").unwrap().clone()
}

#[test]
fn only_the_same_family_gets_it_back() {
    for (family, expected) in [("deepseek", json!("I think.")), ("moonshot", json!(" ")), ("chat", json!(" "))] {
        let message = assistant(&turn(&sealed(family, None)), &named("deepseek"));
        assert_eq!(message["reasoning_content"], expected, "{family}");
    }
    let message = assistant(&turn(&sealed("chat", None)), &named("generic"));
    assert_eq!(message.get("reasoning_content"), None, "it never asks for any");
}

#[test]
fn a_foreign_seal_is_never_forwarded() {
    let foreign = json!({"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "S."}],
        "content": null, "encrypted_content": "gAAAAABfixed"});
    for name in ["deepseek", "zhipu", "minimax", "xiaomi", "generic", "rich", "openrouter"] {
        let planned = plan_with(&turn(&foreign), &[], &named(name), Policy::default(), &Unsealed).unwrap();
        let sent = String::from_utf8(planned.bytes.clone()).unwrap();
        assert!(!sent.contains("gAAAA"), "{name}");
        let replays = named(name).request.reasoning.replay != Replay::Never;
        assert_eq!(planned.has_note("bridge.reasoning.ignored", "input[1].encrypted_content"), replays, "{name}");
    }
}

#[test]
fn plain_reasoning_serves_where_it_is_wanted() {
    let plain = json!({"type": "reasoning", "id": "rs", "summary": [],
        "content": [{"type": "reasoning_text", "text": "one"}, {"type": "reasoning_text", "text": "two"}]});
    assert_eq!(assistant(&turn(&plain), &named("deepseek"))["reasoning_content"], "one\ntwo");
    assert_eq!(assistant(&turn(&plain), &named("openrouter"))["reasoning"], "one\ntwo");
}

#[test]
fn a_placeholder_is_sent_only_while_the_model_thinks() {
    let mut request = turn(&json!({"type": "reasoning", "id": "rs", "summary": []}));
    assert_eq!(assistant(&request, &named("deepseek"))["reasoning_content"], " ");
    request["reasoning"] = json!({"effort": "none"});
    assert_eq!(assistant(&request, &named("deepseek")).get("reasoning_content"), None);
    assert_eq!(assistant(&request, &named("minimax")).get("reasoning_content"), None);
}

#[test]
fn what_came_with_it_returns_untouched() {
    let details = r#"[{"type":"reasoning.encrypted","data":"xyz"}]"#;
    let message = assistant(&turn(&sealed("openrouter", Some(details))), &named("openrouter"));
    assert_eq!(message["reasoning_details"], serde_json::from_str::<Value>(details).unwrap());
    assert_eq!(message["reasoning"], "I think.");
    let signatures = r#"{"calls":{"c1":{"google":{"thought_signature":"abc"}}}}"#;
    let gemini = named("gemini");
    assert_eq!(gemini.request.reasoning.field, ReplayField::Bag);
    let message = assistant(&turn(&sealed("gemini", Some(signatures))), &gemini);
    assert_eq!(message["tool_calls"][0]["extra_content"], json!({"google": {"thought_signature": "abc"}}));
    assert_eq!(message.get("reasoning_content"), None);
}

#[test]
fn thinking_is_asked_for_in_the_dialects_words() {
    let ask = |name: &str, reasoning: Value| {
        let request = json!({"model": "m", "input": "Hi", "reasoning": reasoning});
        let body = plan_with(&request, &[], &named(name), Policy::default(), &TransparentSeal).unwrap().body;
        json!([
            body["thinking"]["type"],
            body["reasoning_effort"],
            body["reasoning"]["effort"],
            body["enable_thinking"]
        ])
    };
    for (name, effort, expected) in [
        ("deepseek", "high", json!(["enabled", "high", null, null])),
        ("deepseek", "xhigh", json!(["enabled", "max", null, null])),
        ("deepseek", "minimal", json!(["enabled", "low", null, null])),
        ("deepseek", "none", json!(["disabled", null, null, null])),
        ("zhipu", "high", json!(["enabled", null, null, null])),
        ("zhipu", "none", json!(["disabled", null, null, null])),
        ("minimax", "low", json!(["adaptive", null, null, null])),
        ("xiaomi", "max", json!(["enabled", "high", null, null])),
        ("generic", "xhigh", json!([null, "xhigh", null, null])),
        ("openrouter", "low", json!([null, null, "low", null])),
        ("qwen", "none", json!([null, null, null, false])),
        ("qwen/qwen3.8-max", "high", json!([null, "medium", null, true])),
        ("mistral", "low", json!([null, null, null, null])),
        ("mistral/magistral-small", "low", json!([null, "high", null, null])),
        ("mistral/magistral-small", "none", json!([null, "none", null, null])),
        ("moonshot/kimi-k2.6", "medium", json!(["enabled", null, null, null])),
        ("moonshot/Kimi-K3", "medium", json!([null, "high", null, null])),
    ] {
        assert_eq!(ask(name, json!({"effort": effort})), expected, "{name} {effort}");
    }
    assert_eq!(ask("deepseek", json!({"summary": "auto"})), json!(["enabled", null, null, null]));
}
