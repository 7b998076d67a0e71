//! Compaction items: what takes their place, and what they take the place of.

use bridge::{CompactionWish, Dialect, Policy, SealedSummary};
use serde_json::{Value, json};
use wire::json::{FromRaw, Raw};
use wire::responses::CreateResponse;

use crate::forward::forward;
use crate::run::{Planned, TransparentSeal, plan_with};

fn item(stands_for_all: bool, instructions: &Value, kept: &Value) -> Value {
    item_after(stands_for_all, "", instructions, kept)
}

fn item_after(stands_for_all: bool, after: &str, instructions: &Value, kept: &Value) -> Value {
    let summary = SealedSummary {
        after: after.to_owned(),
        text: "They met.".to_owned(),
        stands_for_all,
        instructions: instructions.to_string(),
        kept: kept.to_string(),
    };
    let sealed = format!("glass:{}", String::from_utf8(summary.encode()).unwrap());
    json!({"type": "compaction", "id": "cmp_1", "encrypted_content": sealed})
}

fn planned(past: &[Value], input: &[Value]) -> Planned {
    let request = json!({"model": "m", "input": input});
    plan_with(&request, past, &Dialect::default(), Policy::default(), &TransparentSeal).unwrap()
}

/// Each message as `role: text`, the summary by its words alone.
fn said(planned: &Planned) -> Vec<String> {
    let word = |message: &Value| {
        let text = message["content"].as_str().unwrap_or("-");
        let text = if text.ends_with("\nThey met.") { "SUMMARY" } else { text };
        format!("{}: {text}", message["role"].as_str().unwrap())
    };
    planned.messages().iter().map(word).collect()
}

fn message(role: &str, text: &str) -> Value {
    json!({"type": "message", "role": role, "content": text})
}

#[test]
fn what_a_summary_stands_for_is_not_sent() {
    let none = json!([]);
    let before = [message("developer", "rules"), message("user", "old"), message("assistant", "answer")];
    let kept = json!([message("user", "asked"), {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "done"}]);
    let go_on = message("user", "go on");
    for (name, items, expected) in [
        (
            "it stands for what the client has left out",
            [&before[..], &[item(false, &none, &none), go_on.clone()]].concat(),
            "developer: rules, user: old, assistant: answer, user: SUMMARY, user: go on",
        ),
        (
            "it stands for what is still there, and no client has left out",
            vec![
                message("user", "old"),
                json!({"type": "message", "id": "msg_1", "role": "assistant", "content": "answer"}),
                item_after(false, "msg_1", &none, &none),
                go_on.clone(),
            ],
            "user: SUMMARY, user: go on",
        ),
        (
            "it stands for what a client has left out",
            vec![message("user", "old"), item_after(false, "msg_1", &none, &none), go_on.clone()],
            "user: old, user: SUMMARY, user: go on",
        ),
        (
            "it stands for everything",
            [&before[..], &[item(true, &none, &kept), go_on.clone()]].concat(),
            "developer: rules, user: SUMMARY, user: asked, assistant: -, tool: done, user: go on",
        ),
        (
            "and everything is gone",
            vec![item(true, &json!([message("developer", "rules")]), &kept), go_on.clone()],
            "developer: rules, user: SUMMARY, user: asked, assistant: -, tool: done, user: go on",
        ),
        (
            "the application has said something else since",
            vec![
                message("developer", "new"),
                item(true, &json!([message("developer", "rules")]), &none),
                go_on.clone(),
            ],
            "developer: new, user: SUMMARY, user: go on",
        ),
        (
            "the application says something more later: what was sent before stays as it was",
            vec![
                item(true, &json!([message("developer", "rules")]), &none),
                go_on.clone(),
                message("developer", "be brief"),
            ],
            "developer: rules, user: SUMMARY, user: go on, developer: be brief",
        ),
        (
            "an output whose call was summarised and left out",
            vec![item(true, &none, &none), json!({"type": "function_call_output", "call_id": "c", "output": "late"})],
            "user: SUMMARY, user: [Result of a tool call that is not in this conversation: c]\nlate",
        ),
        (
            "the last one counts",
            [&[item(true, &none, &kept)], &before[..], &[item(true, &none, &none), go_on.clone()]].concat(),
            "developer: rules, user: SUMMARY, user: go on",
        ),
        (
            "an output whose call is summarised",
            vec![
                json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}),
                item(true, &none, &none),
                json!({"type": "function_call_output", "call_id": "c", "output": "late"}),
            ],
            "user: SUMMARY, user: [Result of a tool call that is not in this conversation: c]\nlate",
        ),
    ] {
        // Wherever the past ends and the input begins.
        for cut in 0..items.len() {
            let planned = planned(&items[..cut], &items[cut..]);
            assert_eq!(
                said(&planned).join(", ").replace("developer", "system"),
                expected.replace("developer", "system"),
                "{name}, {cut}"
            );
        }
    }
}

/// With a walk over all items before each of them this would take minutes.
#[test]
fn many_of_them_are_no_burden() {
    let none = json!([]);
    let items = vec![item_after(false, "msg_not_here", &none, &none); 20_000];
    assert_eq!(planned(&[], &items).messages().len(), items.len());
}

#[test]
fn tools_that_were_found_before_are_still_offered() {
    let tool =
        |name: &str| json!({"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}});
    let items = [
        json!({"type": "additional_tools", "role": "developer", "tools": [tool("one")]}),
        json!({"type": "tool_search_call", "call_id": "s", "execution": "client", "arguments": {"query": "x"}}),
        json!({"type": "tool_search_output", "call_id": "s", "execution": "client", "tools": [tool("two")]}),
        item(true, &json!([]), &json!([])),
        message("user", "go on"),
    ];
    let sent = planned(&items[..2], &items[2..]);
    let names: Vec<&str> =
        sent.body["tools"].as_array().unwrap().iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["one", "two"]);
    assert_eq!(said(&sent), ["user: SUMMARY", "user: go on"]);
    let native = forward(&json!({"model": "m", "input": items}).to_string(), &[], &Dialect::default(), false).unwrap();
    let kinds: Vec<&str> =
        native.body["input"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["additional_tools", "additional_tools", "message", "message"]);
}

#[test]
fn what_was_not_made_here_goes_to_nobody_but_a_responses_api() {
    let foreign = json!({"type": "compaction", "encrypted_content": "gAAAA"});
    // Reasoning is no summary.
    let reasoning = json!({"type": "compaction", "encrypted_content": r#"glass:{"v":1,"family":"f","text":"t"}"#});
    for item in [foreign, reasoning] {
        let input = [item.clone(), message("user", "go on")];
        let sent = planned(&[], &input);
        assert_eq!(said(&sent), ["user: go on"]);
        assert!(sent.has_note("bridge.item.ignored", "input[0]"));
        let request = json!({"model": "m", "input": input});
        let strict = Policy { strict: true, repair_history: false };
        let refused = plan_with(&request, &[], &Dialect::default(), strict, &TransparentSeal).err().unwrap();
        assert_eq!(refused.path, "input[0]");
        let native = forward(&request.to_string(), &[], &Dialect::default(), false).unwrap();
        assert_eq!(native.body["input"][0], item);
        assert_eq!(native.notes, ["input[0]=degraded"]);
    }
}

#[test]
fn a_responses_api_gets_our_summary_in_words() {
    let input =
        [message("user", "old"), item(true, &json!([]), &json!([message("user", "asked")])), message("user", "go on")];
    let request = json!({"model": "m", "input": input, "context_management": [{"type": "compaction"}]});
    let native = forward(&request.to_string(), &[], &Dialect::default(), true).unwrap();
    let texts: Vec<&str> =
        native.body["input"].as_array().unwrap().iter().map(|item| item["content"].as_str().unwrap()).collect();
    assert!(texts[0].ends_with("They met."), "{texts:?}");
    assert_eq!(texts[1..], ["asked", "go on"]);
    assert_eq!(native.body.get("context_management"), None);
}

#[test]
fn wishes_are_read() {
    let wish = |request: &str| CompactionWish::of(&CreateResponse::from_raw(Raw::parse(request).unwrap()).unwrap());
    for (request, expected) in [
        (r#"{"input":"x"}"#, CompactionWish::No),
        (r#"{"input":[],"context_management":[]}"#, CompactionWish::No),
        (r#"{"context_management":[{"type":"compaction"}]}"#, CompactionWish::No),
        (
            r#"{"context_management":[{"type":"compaction","compact_threshold":5000},{"type":"compaction","compact_threshold":1000}]}"#,
            CompactionWish::Above(1000),
        ),
        (r#"{"input":[{"role":"user","content":"x"},{"type":"compaction_trigger"}]}"#, CompactionWish::Only),
    ] {
        assert_eq!(wish(request).unwrap(), expected, "{request}");
    }
    let early = wish(r#"{"input":[{"type":"compaction_trigger"},{"role":"user","content":"x"}]}"#).unwrap_err();
    assert_eq!(early.path, "input[0]");
}
