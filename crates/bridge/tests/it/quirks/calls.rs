//! Tool calls.

use serde_json::{Value, json};

use super::{Quirk, done, quirk, text};
use crate::run::delta;

/// One entry of `tool_calls` in a chunk of its own; empty members are left out.
fn call(index: Option<i64>, id: &str, name: &str, arguments: &str) -> String {
    entry(index, id, name, &json!(arguments))
}

fn entry(index: Option<i64>, id: &str, name: &str, arguments: &Value) -> String {
    let mut function = json!({"arguments": arguments});
    if !name.is_empty() {
        function["name"] = json!(name);
    }
    let mut call = json!({"function": function});
    if let Some(index) = index {
        call["index"] = json!(index);
    }
    if !id.is_empty() {
        call["id"] = json!(id);
    }
    delta(&json!({"tool_calls": [call]}))
}

fn calls(chunks: Vec<String>) -> Vec<String> {
    done(chunks, "tool_calls")
}

pub(super) fn quirks() -> Vec<Quirk> {
    [identity(), arguments(), kinds()].concat()
}

/// All calls in one whole message.
fn message(entries: &Value) -> Vec<String> {
    let message = json!({"role": "assistant", "content": null, "tool_calls": entries});
    let usage = json!({"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3});
    let choice = json!({"index": 0, "message": message, "finish_reason": "tool_calls"});
    vec![json!({"choices": [choice], "usage": usage}).to_string()]
}

fn identity() -> Vec<Quirk> {
    let whole =
        |id: &str, name: &str, arguments: &str| json!({"id": id, "function": {"name": name, "arguments": arguments}});
    vec![
        quirk(
            "B2 two tools under one id",
            calls(vec![call(Some(0), "a", "f", r#"{"x":1}"#), call(Some(0), "a", "g", r#"{"y":2}"#)]),
            r#"completed: call f {"x":1} | call g {"y":2}"#,
        ),
        quirk(
            "B2 two tools under one id, both without arguments",
            calls(vec![call(None, "a", "f", "{}"), call(None, "a", "g", "{}")]),
            "completed: call f {} | call g {}",
        ),
        quirk(
            "B2 two calls under one id in a whole message",
            message(&json!([whole("a", "f", r#"{"x":1}"#), whole("a", "g", r#"{"y":2}"#)])),
            r#"completed: call f {"x":1} | call g {"y":2}"#,
        ),
        quirk(
            "B4 the same call twice in a whole message",
            message(&json!([whole("a", "f", r#"{"x":1}"#), whole("a", "f", r#"{"x":1}"#)])),
            r#"completed: call f {"x":1} | call f {"x":1}"#,
        ),
        quirk(
            "B3 the name behind the arguments",
            calls(vec![call(Some(0), "a", "", r#"{"x":1}"#), call(Some(0), "", "f", "")]),
            r#"completed: call f {"x":1}"#,
        ),
        quirk(
            "B1 all on index 0, told apart by id",
            calls(vec![call(Some(0), "a", "f", r#"{"x":1}"#), call(Some(0), "b", "g", r#"{"y":2}"#)]),
            r#"completed: call f {"x":1} | call g {"y":2}"#,
        ),
        quirk(
            "B1 all on index 0, without ids",
            calls(vec![call(Some(0), "", "f", r#"{"x":1}"#), call(Some(0), "", "f", r#"{"x":2}"#)]),
            r#"completed: call f {"x":1} | call f {"x":2}"#,
        ),
        quirk(
            "B2 no index, no id",
            calls(vec![call(None, "", "f", r#"{"x":"#), call(None, "", "", "1}"), call(None, "", "g", "{}")]),
            r#"completed: call f {"x":1} | call g {}"#,
        ),
        quirk(
            "B2 no index, id only at the start",
            calls(vec![call(None, "a", "f", ""), call(None, "", "", r#"{"x":1}"#), call(None, "b", "g", "{}")]),
            r#"completed: call f {"x":1} | call g {}"#,
        ),
        quirk(
            "B2 empty id",
            calls(vec![delta(
                &json!({"tool_calls": [{"index": 0, "id": "", "function": {"name": "f", "arguments": "{}"}}]}),
            )]),
            "completed: call f {}",
        ),
        quirk(
            "B2 the id changes with every delta",
            calls(vec![call(Some(0), "a", "f", r#"{"x""#), call(Some(0), "b", "", ":1"), call(Some(0), "c", "", "}")]),
            r#"completed: call f {"x":1}"#,
        ),
        quirk(
            "B2 one id for two calls",
            calls(vec![call(Some(0), "a", "f", "{}"), call(Some(1), "a", "g", r#"{"y":2}"#)]),
            r#"completed: call f {} | call g {"y":2}"#,
        ),
        quirk(
            "B2 huge and negative indexes",
            calls(vec![call(Some(i64::MAX), "a", "f", "{}"), call(Some(-7), "b", "g", "{}")]),
            "completed: call f {} | call g {}",
        ),
        quirk(
            "B2 the index is no number",
            calls(vec![delta(
                &json!({"tool_calls": [{"index": "0", "id": "a", "function": {"name": "f", "arguments": "{}"}}]}),
            )]),
            "completed: call f {}",
        ),
        quirk(
            "B2 an index is used again for the next call",
            calls(vec![
                call(Some(0), "a", "f", "{}"),
                call(Some(1), "b", "g", "{}"),
                call(Some(0), "c", "f", r#"{"z":3}"#),
            ]),
            r#"completed: call f {} | call g {} | call f {"z":3}"#,
        ),
        quirk(
            "A4 parallel calls interleave and come in index order",
            calls(vec![
                call(Some(0), "a", "f", r#"{"x":"#),
                call(Some(2), "c", "f", "{}"),
                call(Some(1), "b", "g", r#"{"y":"#),
                call(Some(0), "", "", "1}"),
                call(Some(1), "", "", "2}"),
            ]),
            r#"completed: call f {"x":1} | call g {"y":2} | call f {}"#,
        ),
        quirk(
            "B3 the name comes in pieces",
            calls(vec![call(Some(0), "a", "get_", ""), call(Some(0), "", "weather", ""), call(Some(0), "", "", "{}")]),
            "completed: call get_weather {}",
        ),
        quirk(
            "B3 the name grows",
            calls(vec![call(Some(0), "a", "get", ""), call(Some(0), "a", "get_weather", "{}")]),
            "completed: call get_weather {}",
        ),
        quirk(
            "B3 id, type and name in every delta",
            calls(vec![
                call(Some(0), "a", "f", r#"{"x""#),
                call(Some(0), "a", "f", ":"),
                call(Some(0), "a", "f", "1}"),
            ]),
            r#"completed: call f {"x":1}"#,
        ),
        quirk(
            "B3 later deltas have null for a name and an empty one",
            calls(vec![
                call(Some(0), "a", "f", ""),
                delta(&json!({"tool_calls": [{"index": 0, "id": null, "function": {"name": null, "arguments": "{"}}]})),
                delta(&json!({"tool_calls": [{"index": 0, "id": "", "function": {"name": "", "arguments": "}"}}]})),
            ]),
            "completed: call f {}",
        ),
        quirk("B3 no name at all", calls(vec![text("a"), call(Some(0), "a", "", "{}")]), "completed: \"a\"")
            .noted(&["tool_calls"]),
        quirk(
            "C2 a training prefix before the name",
            calls(vec![call(Some(0), "a", "functions.f", "{}")]),
            "completed: call f {}",
        ),
    ]
}

fn arguments() -> Vec<Quirk> {
    vec![
        quirk(
            "B4 two objects in the arguments of one call",
            calls(vec![call(Some(0), "a", "f", r#"{"x":1}{"x":2}"#)]),
            r#"completed: call f {"x":1} | call f {"x":2}"#,
        )
        .noted(&["tool_calls"]),
        quirk(
            "B4 a second object follows in the next delta",
            calls(vec![call(Some(0), "a", "f", r#"{"x":1}"#), call(Some(0), "", "", r#"{"x":2}"#)]),
            r#"completed: call f {"x":1} | call f {"x":2}"#,
        )
        .noted(&["tool_calls"]),
        quirk(
            "B4 the last chunk repeats the whole call",
            calls(vec![call(Some(0), "a", "f", r#"{"x":1}"#), call(Some(0), "a", "f", r#"{"x":1}"#)]),
            r#"completed: call f {"x":1}"#,
        )
        .noted(&["tool_calls"]),
        quirk(
            "B4 something else behind the object: nothing is told apart",
            calls(vec![call(Some(0), "a", "f", r#"{"x":1}}"#), call(Some(0), "", "", r#"{"x":2}"#)]),
            r#"completed: call f {"x":1}}{"x":2}"#,
        ),
        quirk("B10 no arguments", calls(vec![call(Some(0), "a", "f", "")]), "completed: call f {}"),
        quirk("B10 arguments null", calls(vec![entry(Some(0), "a", "f", &Value::Null)]), "completed: call f {}"),
        quirk("B10 arguments \"null\"", calls(vec![call(Some(0), "a", "f", "null")]), "completed: call f {}"),
        quirk(
            "B10 arguments as an object",
            calls(vec![entry(Some(0), "a", "f", &json!({"x": "\"é\n"}))]),
            r#"completed: call f {"x":"\"é\n"}"#,
        ),
        quirk(
            "B10 arguments encoded twice",
            calls(vec![call(Some(0), "a", "f", r#""{\"x\":"#), call(Some(0), "", "", r#"1}""#)]),
            r#"completed: call f {"x":1}"#,
        ),
        quirk(
            "B10 broken arguments of a finished call stay as they are",
            calls(vec![call(Some(0), "a", "f", r#"{"x":"#)]),
            r#"completed: call f {"x":"#,
        ),
        quirk("B11 stop with tool calls", done(vec![call(Some(0), "a", "f", "{}")], "stop"), "completed: call f {}"),
        quirk(
            "B11 an empty reason with tool calls",
            done(vec![call(Some(0), "a", "f", "{}")], ""),
            "completed: call f {}",
        ),
        quirk(
            "A14 a whole call and text in one chunk",
            calls(vec![delta(
                &json!({"content": "a", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]}),
            )]),
            "completed: \"a\" | call f {}",
        ),
        quirk(
            "A4 text between the deltas of a call waits",
            calls(vec![call(Some(0), "a", "f", "{"), text("\n"), call(Some(0), "", "", "}"), text("b")]),
            r#"completed: call f {} | "\nb""#,
        ),
        quirk(
            "B3 the old function_call",
            done(
                vec![
                    delta(&json!({"function_call": {"name": "f", "arguments": ""}})),
                    delta(&json!({"function_call": {"arguments": "{}"}})),
                ],
                "function_call",
            ),
            "completed: call f {}",
        ),
        quirk(
            "B3 the old function_call beside the new one",
            calls(vec![delta(
                &json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}],
                "function_call": {"name": "f", "arguments": "{}"}}),
            )]),
            "completed: call f {}",
        ),
    ]
}

fn kinds() -> Vec<Quirk> {
    let one = |name: &str, arguments: &str| calls(vec![call(Some(0), "a", name, arguments)]);
    vec![
        quirk("C2 a namespace is given back apart", one("ns__look", "{}"), "completed: call ns/look {}"),
        quirk("C6 a custom tool's input", one("patch", r#"{"input":"a\nb"}"#), "completed: custom patch a\nb"),
        quirk("C6 a custom tool's input called patch", one("patch", r#"{"patch":"p"}"#), "completed: custom patch p"),
        quirk("C6 a bare string", one("patch", r#""p q""#), "completed: custom patch p q"),
        quirk("C6 plain text", one("patch", "*** Begin"), "completed: custom patch *** Begin"),
        quirk("C6 in a namespace", one("ns__write", r#"{"input":"p"}"#), "completed: custom ns/write p"),
        quirk("C6 other members", one("patch", r#"{"other":1}"#), r#"completed: call patch {"other":1}"#)
            .noted(&["tool_calls"]),
        quirk("A13 a custom tool without arguments", one("patch", ""), "completed: custom patch "),
        quirk(
            "C8 shell",
            one("shell", r#"{"commands":["ls"],"timeout_ms":5}"#),
            r#"completed: shell_call {"commands":["ls"],"max_output_length":null,"timeout_ms":5}"#,
        ),
        quirk("C8 shell, malformed", one("shell", r#"{"commands":7}"#), r#"completed: call shell {"commands":7}"#)
            .noted(&["tool_calls"]),
        quirk(
            "C8 local shell",
            one("local_shell", r#"{"command":["ls"],"env":{}}"#),
            r#"completed: local_shell_call {"command":["ls"],"env":{},"type":"exec"}"#,
        ),
        quirk(
            "C8 apply_patch",
            one("apply_patch", r#"{"operation":{"type":"create_file","path":"a","diff":"+x"}}"#),
            r#"completed: apply_patch_call {"diff":"+x","path":"a","type":"create_file"}"#,
        ),
        quirk("C9 tool search", one("tool_search", r#"{"query":"q"}"#), r#"completed: tool_search_call {"query":"q"}"#),
        quirk("C11 a tool that nobody offered", one("other", "{}"), "completed: call other {}").noted(&["tool_calls"]),
    ]
}
