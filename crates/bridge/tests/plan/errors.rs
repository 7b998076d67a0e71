//! What is refused, with OpenAI's wording, and what the two switches change about it.

use bridge::{Dialect, Policy, Severity, Unsealed};
use serde_json::{Value, json};

use crate::dialects::named;
use crate::run::{MEND, plan, plan_with};

const STRICT: Policy = Policy { strict: true, repair_history: false };

fn input(items: Value) -> Value {
    json!({"model": "m", "input": items})
}

#[test]
fn broken_items_are_refused_with_a_path() {
    for (items, path, message) in [
        (
            json!([{"type": "function_call_output", "call_id": "call_x", "output": "y"}]),
            "input",
            "No tool call found for function call output with call_id call_x.",
        ),
        (
            json!([{"type": "custom_tool_call_output", "call_id": "call_x", "output": "y"}]),
            "input",
            "No tool call found for custom tool call output with call_id call_x.",
        ),
        (json!([{"role": "user"}]), "input[0].content", "Missing required parameter: 'input[0].content'."),
        (
            json!([{"role": "tool", "content": "x"}]),
            "input[0].role",
            "Invalid value: 'tool'. Supported values are: 'assistant', 'system', 'developer', and 'user'.",
        ),
        (
            json!([{"type": "function_call", "call_id": "c", "arguments": "{}"}]),
            "input[0].name",
            "Missing required parameter: 'input[0].name'.",
        ),
        (
            json!([{"type": "function_call", "name": "f", "arguments": "{}"}]),
            "input[0].call_id",
            "Missing required parameter: 'input[0].call_id'.",
        ),
        (json!([]), "input", "Invalid 'input': expected at least one message."),
    ] {
        let request = input(items);
        let invalid = plan(&request, &Dialect::default()).map(|planned| planned.body).unwrap_err();
        assert_eq!((invalid.path.as_str(), invalid.to_string().as_str()), (path, message), "{request}");
        if request["input"] != json!([]) {
            let mended = plan_with(&request, &[], &Dialect::default(), MEND, &Unsealed).map(|planned| planned.notes);
            assert!(mended.is_ok_and(|notes| !notes.is_empty()), "mended, with a note: {request}");
        }
    }
}

#[test]
fn strict_refuses_what_would_be_ignored() {
    for (extra, code, path) in [
        (json!({"foo": 1}), "unknown_parameter", "foo"),
        (json!({"moderation": {}}), "unsupported_parameter", "moderation"),
        (json!({"tools": [{"type": "web_search"}]}), "unsupported_value", "tools[0]"),
        (json!({"input": [{"type": "hologram"}]}), "unsupported_value", "input[0]"),
        (json!({"prompt_cache_key": "k"}), "unsupported_parameter", "prompt_cache_key"),
    ] {
        let mut request = json!({"model": "m", "input": "Hi"});
        request.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let dialect = named("generic");
        let invalid = plan_with(&request, &[], &dialect, STRICT, &Unsealed).map(|planned| planned.body).unwrap_err();
        assert_eq!((invalid.code().name(), invalid.path.as_str()), (code, path), "{request}");
        let lenient = plan(&request, &dialect).unwrap();
        assert!(lenient.notes.iter().any(|note| note.path == path), "{request}");
    }
    // What is only done differently stays allowed.
    let custom = json!({"model": "m", "input": "Hi", "tools": [{"type": "custom", "name": "c"}]});
    assert!(plan_with(&custom, &[], &named("generic"), STRICT, &Unsealed).is_ok());
}

#[test]
fn notes_say_all_there_is_to_say() {
    let request = json!({"model": "m", "input": "Hi", "reasoning": {"effort": "xhigh"}, "temperature": 2});
    let planned = plan(&request, &named("xiaomi")).unwrap();
    let effort = planned.notes.iter().find(|note| note.path == "reasoning.effort").unwrap();
    assert_eq!((effort.code.name(), effort.severity), ("bridge.param.degraded", Severity::Warn));
    assert_eq!(effort.message, "high: the nearest that this provider has");
    let heat = planned.notes.iter().find(|note| note.path == "temperature").unwrap();
    assert_eq!(heat.message, "1.5: this provider goes from 0 to 1.5");
    assert_eq!(planned.body["temperature"], json!(1.5));
}

#[test]
fn thousands_of_notes_are_cut() {
    let items: Vec<Value> = (0..5000).map(|_| json!({"type": "hologram"})).collect();
    let planned = plan(&input(items.into()), &Dialect::default()).unwrap();
    assert_eq!(planned.notes.len(), 101);
    assert!(planned.has_note("bridge.notes.more", "notes"));
}

#[test]
fn too_many_tools_name_the_limit() {
    let tools: Vec<Value> = (0..129).map(|i| json!({"type": "function", "name": format!("f{i}")})).collect();
    let request = json!({"model": "m", "input": "Hi", "tools": tools});
    let invalid = plan(&request, &named("deepseek")).map(|planned| planned.body).unwrap_err();
    assert_eq!((invalid.code().name(), invalid.path.as_str()), ("array_above_max_length", "tools"));
    assert!(invalid.to_string().contains("at most 128 tools, but got 129"), "{invalid}");
    assert!(plan(&request, &named("generic")).is_ok());
}
