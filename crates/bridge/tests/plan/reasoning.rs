//! Reasoning that comes back: to whom it is given, under which name, and what never leaves.

use bridge::{Dialect, Policy, Replay, ReplayField, SealedReasoning, ThoughtPlace, Unsealed};
use serde_json::{Value, json};

use crate::dialects::named;
use crate::run::{TransparentSeal, plan_with};
use bridge::Seal;

fn sealed(family: &str, replay_data: Option<&str>) -> Value {
    let (family, text, place) = (family.to_owned(), "I think.".to_owned(), ThoughtPlace::default());
    let replay_data = replay_data.map(str::to_owned);
    let reasoning = SealedReasoning { family, text, replay_data, native: None, place };
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
fn a_placeholder_is_sent_unless_thinking_is_switched_off() {
    let mut request = turn(&json!({"type": "reasoning", "id": "rs", "summary": []}));
    assert_eq!(assistant(&request, &named("deepseek"))["reasoning_content"], " ");
    request["reasoning"] = json!({"effort": "none"});
    assert_eq!(assistant(&request, &named("deepseek")).get("reasoning_content"), None);
    assert_eq!(assistant(&request, &named("minimax")).get("reasoning_content"), None);
    // An effort of none is no switch to those who know only the other one.
    assert_eq!(assistant(&request, &named("openai-compatible/deepseek-v4-pro"))["reasoning_content"], " ");
}

/// It is said that it cannot be switched off, and what it thought must still go back.
#[test]
fn a_model_that_always_thinks_is_treated_as_one() {
    let mut request = turn(&json!({"type": "reasoning", "id": "rs", "summary": []}));
    request["reasoning"] = json!({"effort": "none"});
    let dialect = named("moonshot/kimi-k2.7-code");
    assert_eq!(assistant(&request, &dialect)["reasoning_content"], " ");
    let planned = plan_with(&request, &[], &dialect, Policy::default(), &TransparentSeal).unwrap();
    assert!(planned.has_note("bridge.param.degraded", "reasoning.effort"), "{:?}", planned.notes);
    assert_eq!(assistant(&request, &named("moonshot/kimi-k2.6")).get("reasoning_content"), None);
}

/// What a model needs does not depend on who serves it.
#[test]
fn families_get_back_what_they_thought_wherever_they_are_served() {
    let thought = |spec: &str| {
        let dialect = named(spec);
        let message = assistant(&turn(&sealed(dialect.family(), None)), &dialect);
        json!([message["reasoning_content"], message["reasoning"]])
    };
    let lost = |spec: &str| {
        let message = assistant(&turn(&sealed("nobody", None)), &named(spec));
        json!([message["reasoning_content"], message["reasoning"]])
    };
    for (spec, expected, without) in [
        ("openai-compatible/deepseek/deepseek-v4-pro", json!(["I think.", null]), json!([" ", null])),
        ("openai-compatible/Kimi-K2.6-Instruct", json!(["I think.", null]), json!([" ", null])),
        ("openai-compatible/kimi-k2-instruct", json!([null, null]), json!([null, null])),
        ("openai-compatible/zai-org/GLM-5.2-FP8", json!(["I think.", null]), json!([null, null])),
        ("openai-compatible/gpt-5.2", json!([null, null]), json!([null, null])),
        ("fireworks/accounts/fireworks/models/kimi-k2p5", json!(["I think.", null]), json!([" ", null])),
        ("together/deepseek-ai/DeepSeek-V4-Pro", json!(["I think.", null]), json!([" ", null])),
        // The host's own way.
        ("openrouter/deepseek/deepseek-v4-pro", json!([null, "I think."]), json!([null, " "])),
        ("vllm/deepseek-ai/DeepSeek-V4-Pro", json!([null, "I think."]), json!([null, " "])),
        ("groq/moonshotai/kimi-k2.6", json!([null, null]), json!([null, null])),
    ] {
        assert_eq!((thought(spec), lost(spec)), (expected, without), "{spec}");
    }
}

#[test]
fn a_call_without_what_must_come_with_it_gets_what_stands_for_it() {
    let request = json!({"model": "m", "input": [
        {"role": "user", "content": "Hi"},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call", "call_id": "c2", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "ok"},
        {"type": "function_call_output", "call_id": "c2", "output": "ok"},
    ]});
    let stands = json!({"google": {"thought_signature": "skip_thought_signature_validator"}});
    let extras = |request: &Value, spec: &str| {
        let message = assistant(request, &named(spec));
        message["tool_calls"].as_array().unwrap().iter().map(|call| call["extra_content"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(extras(&request, "gemini/gemini-3-pro"), [stands.clone(), Value::Null]);
    assert_eq!(extras(&request, "gemini/gemini-2.5-pro"), [Value::Null, Value::Null]);
    // Two answers in a row may have become one message: what the later one had does not stand for the first.
    let mut known = request.clone();
    let signatures = r#"{"calls":{"c2":{"google":{"thought_signature":"abc"}}}}"#;
    known["input"].as_array_mut().unwrap().insert(1, sealed("gemini", Some(signatures)));
    let signed = json!({"google": {"thought_signature": "abc"}});
    assert_eq!(extras(&known, "gemini/gemini-3-pro"), [stands, signed.clone()]);
    let signatures = r#"{"calls":{"c1":{"google":{"thought_signature":"abc"}}}}"#;
    known["input"][1] = sealed("gemini", Some(signatures));
    assert_eq!(extras(&known, "gemini/gemini-3-pro"), [signed, Value::Null]);
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
        ("deepseek", "xhigh", json!(["enabled", "high", null, null])),
        ("deepseek", "max", json!(["enabled", "max", null, null])),
        ("deepseek", "minimal", json!(["enabled", "low", null, null])),
        ("deepseek", "none", json!(["disabled", null, null, null])),
        ("zhipu", "high", json!(["enabled", null, null, null])),
        ("zhipu", "none", json!(["disabled", null, null, null])),
        ("zhipu/glm-5.2", "low", json!(["enabled", "high", null, null])),
        ("zhipu/glm-5.2", "xhigh", json!(["enabled", "max", null, null])),
        ("zhipu/glm-5.2", "none", json!(["disabled", null, null, null])),
        ("zhipu/glm-5.3", "low", json!(["enabled", "low", null, null])),
        ("zhipu/glm-5.3", "medium", json!(["enabled", "high", null, null])),
        ("zhipu/glm-5.3", "none", json!(["enabled", "low", null, null])),
        ("ollama", "xhigh", json!([null, "max", null, null])),
        ("gemini/gemini-2.5-flash", "none", json!([null, "none", null, null])),
        ("gemini/gemini-3-flash", "none", json!([null, "minimal", null, null])),
        ("gemini/gemini-3.7-flash", "minimal", json!([null, "low", null, null])),
        ("gemini/gemini-3.1-pro-preview", "none", json!([null, "low", null, null])),
        ("xai/grok-4.3", "none", json!([null, "none", null, null])),
        ("xai/grok-4.5", "none", json!([null, "low", null, null])),
        ("sglang", "xhigh", json!([null, "xhigh", null, null])),
        ("fireworks", "xhigh", json!([null, "xhigh", null, null])),
        ("groq/qwen/qwen3.6-27b", "high", json!([null, "default", null, null])),
        ("lmstudio/openai/gpt-oss-20b", "high", json!([null, null, null, null])),
        ("openai-compatible/openai/gpt-oss-120b", "max", json!([null, "high", null, null])),
        ("openrouter/openai/gpt-oss-120b", "max", json!([null, null, "high", null])),
        ("openai-compatible/zai-org/GLM-5.3-FP8", "medium", json!([null, "high", null, null])),
        ("together/zai-org/GLM-5.3", "none", json!([null, "low", null, null])),
        ("together/openai/gpt-oss-120b", "none", json!([null, "low", null, null])),
        ("minimax", "low", json!(["adaptive", null, null, null])),
        ("xiaomi", "max", json!(["enabled", "high", null, null])),
        ("generic", "xhigh", json!([null, "xhigh", null, null])),
        ("openrouter", "low", json!([null, null, "low", null])),
        ("qwen", "none", json!([null, null, null, false])),
        ("qwen/qwen3.8-max", "high", json!([null, "medium", null, true])),
        ("mistral", "low", json!([null, null, null, null])),
        ("mistral/mistral-medium-3-5", "medium", json!([null, "high", null, null])),
        ("mistral/mistral-large-4-0", "medium", json!([null, "medium", null, null])),
        ("mistral/magistral-small", "low", json!([null, "high", null, null])),
        ("mistral/magistral-small", "none", json!([null, "none", null, null])),
        ("moonshot/kimi-k2.6", "medium", json!(["enabled", null, null, null])),
        ("moonshot/Kimi-K3", "medium", json!([null, "high", null, null])),
        ("moonshot/k3.1-pro", "xhigh", json!([null, "max", null, null])),
        ("moonshot/kimi-k3", "none", json!([null, "low", null, null])),
        ("openrouter/moonshotai/kimi-k3", "none", json!([null, null, "low", null])),
        ("moonshot/kimi-k2.7-code", "none", json!([null, null, null, null])),
        ("moonshot/kimi-k2.6", "none", json!(["disabled", null, null, null])),
    ] {
        assert_eq!(ask(name, json!({"effort": effort})), expected, "{name} {effort}");
    }
    assert_eq!(ask("deepseek", json!({"summary": "auto"})), json!(["enabled", null, null, null]));
}
