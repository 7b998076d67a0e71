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
    [identity(), arguments(), repeated(), late(), side_by_side(), senseless(), kinds(), custom()].concat()
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
            "two tools under one id",
            calls(vec![call(Some(0), "a", "f", r#"{"x":1}"#), call(Some(0), "a", "g", r#"{"y":2}"#)]),
            r#"completed: call f {"x":1} | call g {"y":2}"#,
        ),
        quirk(
            "two tools under one id, both without arguments",
            calls(vec![call(None, "a", "f", "{}"), call(None, "a", "g", "{}")]),
            "completed: call f {} | call g {}",
        ),
        quirk(
            "two calls under one id in a whole message",
            message(&json!([whole("a", "f", r#"{"x":1}"#), whole("a", "g", r#"{"y":2}"#)])),
            r#"completed: call f {"x":1} | call g {"y":2}"#,
        ),
        quirk(
            "the same call twice in a whole message",
            message(&json!([whole("a", "f", r#"{"x":1}"#), whole("a", "f", r#"{"x":1}"#)])),
            r#"completed: call f {"x":1} | call f {"x":1}"#,
        ),
        quirk(
            "the name after the arguments",
            calls(vec![call(Some(0), "a", "", r#"{"x":1}"#), call(Some(0), "", "f", "")]),
            r#"completed: call f {"x":1}"#,
        ),
        quirk(
            "all on index 0, told apart by id",
            calls(vec![call(Some(0), "a", "f", r#"{"x":1}"#), call(Some(0), "b", "g", r#"{"y":2}"#)]),
            r#"completed: call f {"x":1} | call g {"y":2}"#,
        ),
        quirk(
            "all on index 0, without ids",
            calls(vec![call(Some(0), "", "f", r#"{"x":1}"#), call(Some(0), "", "f", r#"{"x":2}"#)]),
            r#"completed: call f {"x":1} | call f {"x":2}"#,
        ),
        quirk(
            "no index, no id",
            calls(vec![call(None, "", "f", r#"{"x":"#), call(None, "", "", "1}"), call(None, "", "g", "{}")]),
            r#"completed: call f {"x":1} | call g {}"#,
        ),
        quirk(
            "no index, id only at the start",
            calls(vec![call(None, "a", "f", ""), call(None, "", "", r#"{"x":1}"#), call(None, "b", "g", "{}")]),
            r#"completed: call f {"x":1} | call g {}"#,
        ),
        quirk(
            "empty id",
            calls(vec![delta(
                &json!({"tool_calls": [{"index": 0, "id": "", "function": {"name": "f", "arguments": "{}"}}]}),
            )]),
            "completed: call f {}",
        ),
        quirk(
            "the id changes with every delta",
            calls(vec![call(Some(0), "a", "f", r#"{"x""#), call(Some(0), "b", "", ":1"), call(Some(0), "c", "", "}")]),
            r#"completed: call f {"x":1}"#,
        ),
        quirk(
            "one id for two calls",
            calls(vec![call(Some(0), "a", "f", "{}"), call(Some(1), "a", "g", r#"{"y":2}"#)]),
            r#"completed: call f {} | call g {"y":2}"#,
        ),
        quirk(
            "huge and negative indexes",
            calls(vec![call(Some(i64::MAX), "a", "f", "{}"), call(Some(-7), "b", "g", "{}")]),
            "completed: call f {} | call g {}",
        ),
        quirk(
            "the index is no number",
            calls(vec![delta(
                &json!({"tool_calls": [{"index": "0", "id": "a", "function": {"name": "f", "arguments": "{}"}}]}),
            )]),
            "completed: call f {}",
        ),
        quirk(
            "an index is used again for the next call",
            calls(vec![
                call(Some(0), "a", "f", "{}"),
                call(Some(1), "b", "g", "{}"),
                call(Some(0), "c", "f", r#"{"z":3}"#),
            ]),
            r#"completed: call f {} | call g {} | call f {"z":3}"#,
        ),
        quirk(
            "parallel calls interleave and come in index order",
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
            "the name comes in pieces",
            calls(vec![call(Some(0), "a", "get_", ""), call(Some(0), "", "weather", ""), call(Some(0), "", "", "{}")]),
            "completed: call get_weather {}",
        ),
        quirk(
            "the name grows",
            calls(vec![call(Some(0), "a", "get", ""), call(Some(0), "a", "get_weather", "{}")]),
            "completed: call get_weather {}",
        ),
        quirk(
            "id, type and name in every delta",
            calls(vec![
                call(Some(0), "a", "f", r#"{"x""#),
                call(Some(0), "a", "f", ":"),
                call(Some(0), "a", "f", "1}"),
            ]),
            r#"completed: call f {"x":1}"#,
        ),
        quirk(
            "later deltas have null for a name and an empty one",
            calls(vec![
                call(Some(0), "a", "f", ""),
                delta(&json!({"tool_calls": [{"index": 0, "id": null, "function": {"name": null, "arguments": "{"}}]})),
                delta(&json!({"tool_calls": [{"index": 0, "id": "", "function": {"name": "", "arguments": "}"}}]})),
            ]),
            "completed: call f {}",
        ),
        quirk("no name at all", calls(vec![text("a"), call(Some(0), "a", "", "{}")]), "completed: \"a\"")
            .noted(&["tool_calls"]),
        quirk(
            "a training prefix before the name",
            calls(vec![call(Some(0), "a", "functions.f", "{}")]),
            "completed: call f {}",
        ),
    ]
}

fn arguments() -> Vec<Quirk> {
    vec![
        quirk(
            "two objects in the arguments of one call",
            calls(vec![call(Some(0), "a", "f", r#"{"x":1}{"x":2}"#)]),
            r#"completed: call f {"x":1} | call f {"x":2}"#,
        )
        .noted(&["tool_calls"]),
        quirk(
            "a second object follows in the next delta",
            calls(vec![call(Some(0), "a", "f", r#"{"x":1}"#), call(Some(0), "", "", r#"{"x":2}"#)]),
            r#"completed: call f {"x":1} | call f {"x":2}"#,
        )
        .noted(&["tool_calls"]),
        quirk(
            "the last chunk repeats the whole call",
            calls(vec![call(Some(0), "a", "f", r#"{"x":1}"#), call(Some(0), "a", "f", r#"{"x":1}"#)]),
            r#"completed: call f {"x":1}"#,
        )
        .noted(&["tool_calls"]),
        quirk(
            "something else after the object: nothing is told apart",
            calls(vec![call(Some(0), "a", "f", r#"{"x":1}}"#), call(Some(0), "", "", r#"{"x":2}"#)]),
            r#"completed: call f {"x":1}}{"x":2}"#,
        ),
        quirk("no arguments", calls(vec![call(Some(0), "a", "f", "")]), "completed: call f {}"),
        quirk("arguments null", calls(vec![entry(Some(0), "a", "f", &Value::Null)]), "completed: call f {}"),
        quirk("arguments \"null\"", calls(vec![call(Some(0), "a", "f", "null")]), "completed: call f {}"),
        quirk(
            "arguments as an object",
            calls(vec![entry(Some(0), "a", "f", &json!({"x": "\"é\n"}))]),
            r#"completed: call f {"x":"\"é\n"}"#,
        ),
        quirk(
            "arguments encoded twice",
            calls(vec![call(Some(0), "a", "f", r#""{\"x\":"#), call(Some(0), "", "", r#"1}""#)]),
            r#"completed: call f {"x":1}"#,
        ),
        quirk(
            "broken arguments of a finished call stay as they are",
            calls(vec![call(Some(0), "a", "f", r#"{"x":"#)]),
            r#"completed: call f {"x":"#,
        ),
        quirk("stop with tool calls", done(vec![call(Some(0), "a", "f", "{}")], "stop"), "completed: call f {}"),
        quirk("an empty reason with tool calls", done(vec![call(Some(0), "a", "f", "{}")], ""), "completed: call f {}"),
        quirk(
            "a whole call and text in one chunk",
            calls(vec![delta(
                &json!({"content": "a", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]}),
            )]),
            "completed: \"a\" | call f {}",
        ),
        quirk(
            "text between the deltas of a call waits",
            calls(vec![call(Some(0), "a", "f", "{"), text("\n"), call(Some(0), "", "", "}"), text("b")]),
            r#"completed: call f {} | "\nb""#,
        ),
        quirk(
            "the old function_call",
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
            "the old function_call beside the new one",
            calls(vec![delta(
                &json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}],
                "function_call": {"name": "f", "arguments": "{}"}}),
            )]),
            "completed: call f {}",
        ),
    ]
}

/// What comes for a call that is over.
fn late() -> Vec<Quirk> {
    let (f, g) = (call(Some(0), "a", "f", r#"{"x":1}"#), call(Some(1), "b", "g", r#"{"y":2}"#));
    let both = r#"completed: call f {"x":1} | call g {"y":2}"#;
    let after = |name: &'static str, last: String| {
        quirk(name, calls(vec![f.clone(), g.clone(), last]), both).noted(&["tool_calls"])
    };
    vec![
        after("the name again, without arguments", call(Some(0), "", "f", "")),
        after("the name again, with null", entry(Some(0), "", "f", &json!(null))),
        after("the name again, with {}", call(Some(0), "", "f", "{}")),
        after("the whole again without its id, at the end", call(Some(0), "", "f", r#"{"x":1}"#)),
        quirk(
            "the whole again without its id, after text",
            calls(vec![f.clone(), text("t"), call(Some(0), "", "f", r#"{"x":1}"#)]),
            r#"completed: call f {"x":1} | "t""#,
        )
        .noted(&["tool_calls"]),
        quirk(
            "all on index 0 without ids, the first tool again",
            calls(vec![
                call(Some(0), "", "f", r#"{"x":1}"#),
                call(Some(0), "", "g", r#"{"y":2}"#),
                call(Some(0), "", "f", r#"{"x":3}"#),
            ]),
            r#"completed: call f {"x":1} | call g {"y":2} | call f {"x":3}"#,
        ),
    ]
}

/// Calls of one tool at once.
fn side_by_side() -> Vec<Quirk> {
    let torn = |name: &'static str, index: Option<i64>| {
        let chunks = vec![
            call(index, "a", "f", "{\"x\""),
            call(index, "b", "f", "{\"y\""),
            call(index, "a", "", ":1}"),
            call(index, "b", "", ":2}"),
        ];
        quirk(name, calls(chunks), r#"failed(server_error): ~call f {"x"{"y""#)
    };
    let two = "completed: custom patch one | custom patch two";
    let patch =
        |index: Option<i64>, id: &str, input: &str| call(index, id, "patch", &format!(r#"{{"input":"{input}"}}"#));
    vec![
        torn("two calls of one tool in turns, by id alone", None),
        torn("two calls of one tool in turns, all on index 0", Some(0)),
        quirk("two custom calls without ids", calls(vec![patch(None, "", "one"), patch(None, "", "two")]), two),
        quirk("two custom calls on index 0", calls(vec![patch(Some(0), "", "one"), patch(Some(0), "", "two")]), two),
        quirk(
            "{} first, the name without id and index after",
            calls(vec![call(None, "a", "f", "{}"), call(None, "", "f", r#"{"x":1}"#)]),
            r#"completed: call f {"x":1}"#,
        )
        .noted(&["tool_calls"]),
        quirk("a list as arguments", calls(vec![entry(Some(0), "a", "f", &json!([1, 2]))]), "completed: call f [1,2]"),
    ]
}

/// One call, said more than once on its way.
fn repeated() -> Vec<Quirk> {
    let at = |index: i64, arguments: &str| call(Some(index), "", "", arguments);
    let first = |arguments: &str| call(Some(0), "a", "f", arguments);
    let one = r#"completed: call f {"x":1}"#;
    let all = |name: &'static str, chunks: Vec<String>, expected: &'static str| {
        quirk(name, calls(chunks), expected).noted(&["tool_calls"])
    };
    vec![
        all("{} first, the arguments after", vec![first("{}"), at(0, r#"{"x":1}"#)], one),
        all(
            "{} first, the arguments after, in pieces",
            vec![first("{"), at(0, "}"), at(0, r#"{"x""#), at(0, ":1}")],
            one,
        ),
        all("{} and the arguments in one delta", vec![first(r#"{}{"x":1}"#)], one),
        all("{} first, the same id and name after", vec![first("{}"), first(r#"{"x":1}"#)], one),
        all("{} first, the same name after", vec![first("{}"), call(Some(0), "", "f", r#"{"x":1}"#)], one),
        all("{} first, the id is another after", vec![first("{}"), call(Some(0), "b", "", r#"{"x":1}"#)], one),
        all(
            "{} as an object first",
            vec![entry(Some(0), "a", "f", &json!({})), entry(Some(0), "a", "", &json!({"x": 1}))],
            one,
        ),
        all(
            "{} first for two calls at once",
            vec![first("{}"), call(Some(1), "b", "g", "{}"), at(0, r#"{"x":1}"#), at(1, r#"{"y":2}"#)],
            r#"completed: call f {"x":1} | call g {"y":2}"#,
        ),
        all(
            "{} first for a custom tool",
            vec![call(Some(0), "a", "patch", "{}"), at(0, r#"{"input":"p"}"#)],
            "completed: custom patch p",
        ),
        all(
            "all so far with every delta",
            vec![first("{\""), at(0, "{\"x"), at(0, "{\"x\":"), at(0, r#"{"x":1}"#)],
            one,
        ),
        all(
            "all so far, id and name as well",
            vec![first("{"), first("{\"x\":"), first("{\"x\":"), first(r#"{"x":1}"#), first(r#"{"x":1}"#)],
            one,
        )
        .noted(&["tool_calls", "tool_calls"]),
        all(
            "all so far, from the middle of a value",
            vec![first("{\"x\":"), at(0, "{\"x\":1"), at(0, r#"{"x":1}"#)],
            one,
        ),
        all("all so far in two deltas", vec![first("{\"x\":"), at(0, r#"{"x":1}"#)], one),
        all(
            "all so far, of two calls at once",
            vec![first("{\""), call(Some(1), "b", "g", "{\"y"), at(0, r#"{"x":1}"#), at(1, r#"{"y":2}"#)],
            r#"completed: call f {"x":1} | call g {"y":2}"#,
        ),
        all(
            "all so far for a custom tool",
            vec![call(Some(0), "a", "patch", "{\"inp"), at(0, "{\"input\":\"p"), at(0, r#"{"input":"p"}"#)],
            "completed: custom patch p",
        ),
        quirk(
            "a member of the same name inside is no repetition",
            calls(vec![first("{\"x\":"), at(0, "{\"x\":"), at(0, "1}}")]),
            r#"completed: call f {"x":{"x":1}}"#,
        ),
        all("the whole again, in pieces", vec![first(r#"{"x":1}"#), at(0, "{\"x"), at(0, "\":1}")], one),
        all("the arguments first, {} after", vec![first(r#"{"x":1}"#), at(0, "{}")], one),
        all("the whole again, with other white space", vec![first(r#"{"x":1}"#), at(0, r#"{ "x": 1 }"#)], one),
        all(
            "the whole again, without an id",
            vec![call(Some(0), "", "f", r#"{"x":1}"#), call(Some(0), "", "f", r#"{"x":1}"#)],
            one,
        ),
        all(
            "the whole again, members turned round",
            vec![first(r#"{"x":1,"y":2}"#), at(0, r#"{"y":2,"x":1}"#)],
            r#"completed: call f {"x":1,"y":2}"#,
        ),
        all(
            "the whole again, when the next call has begun",
            vec![
                first(r#"{"x":1}"#),
                call(Some(1), "b", "g", "{"),
                at(0, "{\"x"),
                at(0, "\":1}"),
                first(""),
                at(1, "}"),
            ],
            r#"completed: call f {"x":1} | call g {}"#,
        ),
    ]
}

/// What could be one call or two, or neither: nobody is to act on it.
fn senseless() -> Vec<Quirk> {
    let at = |index: i64, arguments: &str| call(Some(index), "", "", arguments);
    let first = |arguments: &str| call(Some(0), "a", "f", arguments);
    let failed = r#"failed(server_error): ~call f {"x":1}"#;
    let all = |name: &'static str, chunks: Vec<String>, expected| quirk(name, calls(chunks), expected);
    vec![
        all("two objects under one id and index", vec![first(r#"{"x":1}"#), first(r#"{"x":2}"#)], failed),
        all("an object that grows", vec![first(r#"{"x":1}"#), at(0, r#"{"x":1,"y":2}"#)], failed),
        all(
            "an object that grows, not as a string",
            vec![entry(Some(0), "a", "f", &json!({"x": 1})), entry(Some(0), "", "", &json!({"x": 1, "y": 2}))],
            failed,
        ),
        all(
            "all so far, and then something else",
            vec![first("{\""), at(0, "{\"x\":1"), at(0, "7}")],
            "failed(server_error): ~call f {\"x\":1",
        )
        .noted(&["tool_calls"]),
        all(
            "other arguments for a call that is over",
            vec![first(r#"{"x":1}"#), call(Some(1), "b", "g", "{"), at(0, r#"{"x":2}"#), at(1, "}")],
            r#"failed(server_error): call f {"x":1} | ~call g {"#,
        )
        .noted(&["tool_calls"]),
        all(
            "arguments after {} and a text",
            vec![first("{}"), text("a"), at(0, r#"{"x":1}"#)],
            "failed(server_error): call f {} | ~\"a\"",
        )
        .noted(&["tool_calls"]),
    ]
}

fn kinds() -> Vec<Quirk> {
    let one = |name: &str, arguments: &str| calls(vec![call(Some(0), "a", name, arguments)]);
    vec![
        quirk("a namespace is given back apart", one("ns__look", "{}"), "completed: call ns/look {}"),
        quirk("a custom tool's input", one("patch", r#"{"input":"a\nb"}"#), "completed: custom patch a\nb"),
        quirk("a custom tool's input called patch", one("patch", r#"{"patch":"p"}"#), "completed: custom patch p"),
        quirk("a bare string", one("patch", r#""p q""#), "completed: custom patch p q"),
        quirk("plain text", one("patch", "*** Begin"), "completed: custom patch *** Begin"),
        quirk("in a namespace", one("ns__write", r#"{"input":"p"}"#), "completed: custom ns/write p"),
        quirk("other members", one("patch", r#"{"other":1}"#), r#"completed: custom patch {"other":1}"#)
            .noted(&["tool_calls"]),
        quirk("no members", one("patch", "{}"), "completed: custom patch {}").noted(&["tool_calls"]),
        quirk("no input", one("patch", r#"{"input":null}"#), r#"completed: custom patch {"input":null}"#)
            .noted(&["tool_calls"]),
        quirk("a number for an input", one("patch", r#"{"input":5}"#), r#"completed: custom patch {"input":5}"#)
            .noted(&["tool_calls"]),
        quirk("lines", one("patch", r#"{"input":["a","b"]}"#), "completed: custom patch a\nb").noted(&["tool_calls"]),
        quirk("an input in an input", one("patch", r#"{"input":{"input":"p"}}"#), "completed: custom patch p")
            .noted(&["tool_calls"]),
        quirk("an input without its last bracket", one("patch", r#"{"input":"p""#), "completed: custom patch p"),
        quirk(
            "half an input",
            one("patch", r#"{"input":"rm -rf bui"#),
            "failed(server_error): ~custom patch rm -rf bui",
        )
        .noted(&["tool_calls"]),
        quirk("half a string", one("patch", r#""rm -rf bui"#), "failed(server_error): ~custom patch rm -rf bui")
            .noted(&["tool_calls"]),
        quirk("half a member", one("patch", r#"{"inp"#), r#"failed(server_error): ~custom patch {"inp"#)
            .noted(&["tool_calls"]),
        quirk("a custom tool without arguments", one("patch", ""), "completed: custom patch "),
        quirk(
            "shell",
            one("shell", r#"{"commands":["ls"],"timeout_ms":5}"#),
            r#"completed: shell_call {"commands":["ls"],"timeout_ms":5,"max_output_length":null}"#,
        ),
        quirk("shell, malformed", one("shell", r#"{"commands":7}"#), r#"completed: call shell {"commands":7}"#)
            .noted(&["tool_calls"]),
        quirk(
            "local shell",
            one("local_shell", r#"{"command":["ls"],"env":{}}"#),
            r#"completed: local_shell_call {"type":"exec","command":["ls"],"env":{}}"#,
        ),
        quirk(
            "apply_patch",
            one("apply_patch", r#"{"operation":{"type":"create_file","path":"a","diff":"+x"}}"#),
            r#"completed: apply_patch_call {"type":"create_file","path":"a","diff":"+x"}"#,
        ),
        quirk("tool search", one("tool_search", r#"{"query":"q"}"#), r#"completed: tool_search_call {"query":"q"}"#),
        quirk("a tool that nobody offered", one("other", "{}"), "completed: call other {}").noted(&["tool_calls"]),
    ]
}

/// Custom tools that are called as such: any text is input, whatever it looks like.
fn custom() -> Vec<Quirk> {
    let entry = |index: i64, id: &str, name: &str, input: &str| {
        let mut call = json!({"index": index, "id": null, "type": null, "function": null, "custom": {"input": input}});
        if !name.is_empty() {
            call["id"] = json!(id);
            call["type"] = json!("custom");
            call["custom"]["name"] = json!(name);
        }
        call
    };
    let piece =
        move |index, id: &str, name: &str, input: &str| delta(&json!({"tool_calls": [entry(index, id, name, input)]}));
    let one = |input: &str| calls(vec![piece(0, "a", "patch", ""), piece(0, "", "", input)]);
    vec![
        quirk("custom in one piece", calls(vec![piece(0, "a", "patch", "x y")]), "completed: custom patch x y"),
        quirk(
            "custom in pieces",
            calls(vec![piece(0, "a", "patch", ""), piece(0, "", "", "*** B"), piece(0, "", "", "egin\n")]),
            "completed: custom patch *** Begin\n",
        ),
        quirk("custom like arguments", one(r#"{"input":"x"}"#), r#"completed: custom patch {"input":"x"}"#),
        quirk("custom like a string", one(r#""x""#), r#"completed: custom patch "x""#),
        quirk("custom like two objects", one("{} {}"), "completed: custom patch {} {}"),
        quirk("custom like half an object", one(r#"{"a":"#), r#"completed: custom patch {"a":"#),
        quirk("custom, blank", one(" \n "), "completed: custom patch  \n "),
        quirk("custom, empty", one(""), "completed: custom patch "),
        quirk(
            "custom, two at once",
            calls(vec![
                piece(0, "a", "patch", "{}"),
                piece(1, "b", "ns__write", "b"),
                piece(0, "", "", " x"),
                piece(1, "", "", " y"),
            ]),
            "completed: custom patch {} x | custom ns/write b y",
        ),
        quirk(
            "custom beside a function",
            calls(vec![piece(0, "a", "patch", "p"), call(Some(1), "b", "f", "{}")]),
            "completed: custom patch p | call f {}",
        ),
        quirk(
            "custom in a whole message",
            message(&json!([entry(0, "a", "patch", "{}"), entry(1, "b", "patch", "q")])),
            "completed: custom patch {} | custom patch q",
        ),
        quirk("custom that nobody offered", calls(vec![piece(0, "a", "other", "x")]), "completed: custom other x")
            .noted(&["tool_calls"]),
    ]
}
