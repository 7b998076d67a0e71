//! Generated items: every kind, sane and broken, with few ids, so that they meet.

use proptest::prelude::*;
use serde_json::{Value, json};

/// Stands for half a surrogate pair until the text goes out: a `Value` cannot hold one.
const HALF: &str = "\u{e000}";

/// The JSON text of a value, halves of pairs included.
pub(crate) fn text_of(value: &Value) -> String {
    value.to_string().replace(HALF, "\\ud83d")
}

pub(crate) fn text() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "a", "two words", "\"quoted\"\n\\", "é😀", HALF, "x\u{e000}y", " "])
        .prop_map(str::to_owned)
}

fn id() -> impl Strategy<Value = Value> {
    let ids = ["c1", "c1", "c2", "c1_2", "call_0", "toolu_01ABC!weird id", "abcdefghi", "", "\u{e000}"];
    prop_oneof![9 => prop::sample::select(ids.to_vec()).prop_map(Value::from), 1 => Just(Value::Null)]
}

fn name() -> impl Strategy<Value = Value> {
    let names = [
        "f",
        "files.read",
        "exec",
        "apply_patch",
        "",
        "é",
        "a_very_long_name_that_goes_on_and_on_and_on_and_on_and_on_for_ever",
    ];
    prop_oneof![9 => prop::sample::select(names.to_vec()).prop_map(Value::from), 1 => Just(Value::Null)]
}

fn arguments() -> impl Strategy<Value = Value> {
    let all = ["{}", "{\"a\":1}", "", "{\"a\":", "[1]", "null", "\"x\"", " {} ", "{\"a\":\"\\ud83d\"}", "\u{feff}{}"];
    prop::sample::select(all.to_vec()).prop_map(Value::from)
}

fn part() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => text().prop_map(|text| json!({"type": "input_text", "text": text})),
        1 => text().prop_map(|text| json!({"type": "output_text", "text": text, "annotations": []})),
        1 => text().prop_map(|text| json!({"type": "refusal", "refusal": text})),
        1 => Just(json!({"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "high"})),
        1 => Just(json!({"type": "input_image", "file_id": "file_1"})),
        1 => Just(json!({"type": "input_file", "filename": "a.txt", "file_data": "data:text/plain;base64,aGk="})),
        1 => Just(json!({"type": "input_file", "file_url": "https://x/y.pdf"})),
        1 => Just(json!({"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}})),
        1 => Just(json!({"type": "smell"})),
        1 => Just(json!({"type": "input_text"})),
    ]
}

fn content() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => text().prop_map(Value::from),
        4 => prop::collection::vec(part(), 0..3).prop_map(Value::from),
        1 => Just(Value::Null),
    ]
}

fn output() -> impl Strategy<Value = Value> {
    prop_oneof![4 => content(), 1 => Just(json!({"ok": [1, "\u{e000}"]})), 1 => Just(json!([{"type": "input_text", "text": "t"}, 5]))]
}

fn message() -> impl Strategy<Value = Value> {
    let roles = ["user", "user", "assistant", "assistant", "system", "developer", "critic"];
    (prop::sample::select(roles.to_vec()), content())
        .prop_map(|(role, content)| json!({"role": role, "content": content}))
}

fn call() -> impl Strategy<Value = Value> {
    (id(), name(), arguments(), text(), 0..8).prop_map(|(id, name, arguments, text, kind)| match kind {
        0..=2 => json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments, "namespace": if kind == 1 { json!("ns") } else { json!(null) }}),
        3 => json!({"type": "custom_tool_call", "call_id": id, "name": name, "input": text}),
        4 => json!({"type": "shell_call", "call_id": id, "action": {"commands": [text]}}),
        5 => json!({"type": "local_shell_call", "call_id": id, "action": {"type": "exec", "command": [text]}}),
        6 => json!({"type": "apply_patch_call", "call_id": id, "operation": {"type": "create_file", "path": "p", "diff": text}}),
        _ => json!({"type": "tool_search_call", "call_id": id, "arguments": {"query": text}}),
    })
}

fn answer() -> impl Strategy<Value = Value> {
    (id(), output(), text(), 0..8).prop_map(|(id, output, text, kind)| match kind {
        0..=2 => json!({"type": "function_call_output", "call_id": id, "output": output}),
        3 => json!({"type": "custom_tool_call_output", "call_id": id, "output": output}),
        4 => json!({"type": "shell_call_output", "call_id": id, "output": [{"stdout": text, "stderr": text, "outcome": {"type": "exit", "exit_code": 0}}]}),
        5 => json!({"type": "local_shell_call_output", "id": id, "output": text}),
        6 => json!({"type": "apply_patch_call_output", "call_id": id, "status": "failed", "output": text}),
        _ => json!({"type": "tool_search_output", "call_id": id, "tools": [{"type": "function", "name": "found"}]}),
    })
}

fn other() -> impl Strategy<Value = Value> {
    let sealed = |family: &str| format!(r#"glass:{{"v":1,"family":"{family}","text":"Hm."}}"#);
    prop_oneof![
        text().prop_map(|text| json!({"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": text}]})),
        prop::sample::select(vec!["deepseek", "rich", "chat"]).prop_map(move |family| json!({"type": "reasoning", "summary": [], "encrypted_content": sealed(family)})),
        Just(json!({"type": "reasoning", "summary": [], "encrypted_content": "foreign"})),
        (id(), arguments()).prop_map(|(id, arguments)| json!({"type": "mcp_call", "id": id, "server_label": "s", "name": "n", "arguments": arguments, "output": null})),
        id().prop_map(|id| json!({"type": "file_search_call", "id": id, "queries": ["q"], "results": null})),
        id().prop_map(|id| json!({"type": "image_generation_call", "id": id, "result": "AAAA"})),
        id().prop_map(|id| json!({"type": "code_interpreter_call", "id": id, "code": "1"})),
        Just(json!({"type": "web_search_call", "id": "ws"})),
        Just(json!({"type": "mcp_approval_response", "approve": false, "approval_request_id": "r"})),
        Just(json!({"type": "mcp_approval_request", "name": "n", "server_label": "s"})),
        hosted(),
        hosted(),
        hosted(),
        Just(json!({"type": "compaction", "encrypted_content": "foreign"})),
        Just(json!({"type": "compaction_trigger"})),
        text().prop_map(|text| json!({"type": "agent_message", "author": text, "recipient": {}, "content": text})),
        (id(), text()).prop_map(|(id, text)| json!({"type": "program", "call_id": id, "code": text})),
        (id(), text()).prop_map(|(id, text)| json!({"type": "program_output", "call_id": id, "result": text})),
        id().prop_map(|id| json!({"type": "computer_call", "call_id": id, "action": {"type": "wait"}})),
        id().prop_map(|id| json!({"type": "computer_call_output", "call_id": id, "output": {"image_url": "data:,"}})),
        name().prop_map(|name| json!({"type": "additional_tools", "tools": [{"type": "namespace", "name": "ns", "tools": [{"type": "function", "name": name.as_str().filter(|name| !name.is_empty()).unwrap_or("g")}]}]})),
        Just(json!({"type": "hologram", "role": "user"})),
        Just(json!({"type": "whisper", "role": "user", "content": "psst"})),
        Just(json!({"id": "msg_1"})),
        Just(json!({})),
    ]
}

/// An item of a tool that godex ran, with or without what it kept of it.
fn hosted() -> impl Strategy<Value = Value> {
    let kept = (id(), prop::option::of(output()), prop::bool::ANY).prop_map(|(call_id, output, ends_round)| {
        json!({"call_id": call_id.as_str(), "output": output, "ends_round": ends_round})
    });
    let request = || prop::sample::select(vec!["r", "q"]);
    let item = (id(), name(), arguments(), prop::option::of(request()), 0..9).prop_map(|(id, name, arguments, request, kind)| match kind {
        0 | 1 => json!({"type": "mcp_call", "id": id, "server_label": "s", "name": name, "arguments": arguments, "output": "done", "approval_request_id": request}),
        2 => json!({"type": "mcp_call", "id": id, "server_label": "s", "name": name, "arguments": arguments, "status": "failed", "error": {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": "No."}]}}),
        3 => json!({"type": "mcp_approval_request", "id": request, "server_label": "s", "name": name, "arguments": arguments}),
        4 => json!({"type": "mcp_approval_response", "approval_request_id": request.unwrap_or("r"), "approve": true, "reason": name}),
        5 => json!({"type": "web_search_call", "id": id, "status": "completed", "action": {"type": "search", "query": "q", "sources": [{"type": "url", "url": "https://a.b"}]}}),
        6 => json!({"type": "web_search_call", "id": id, "status": "failed", "action": {"type": "open_page", "url": name}}),
        7 => json!({"type": "web_search_call", "id": id, "action": {"type": "find_in_page", "url": "u", "pattern": name}}),
        _ => json!({"type": "mcp_list_tools", "server_label": "s", "tools": [{"name": name, "input_schema": {"$ref": "#"}}]}),
    });
    (item, prop::option::of(kept)).prop_map(|(mut item, kept)| {
        let keeps = ["mcp_call", "web_search_call", "mcp_approval_request"].iter().any(|kind| item["type"] == *kind);
        if let Some(kept) = kept.filter(|_| keeps) {
            item["godex_output"] = kept;
        }
        item
    })
}

/// Any list of items.
pub(crate) fn items() -> impl Strategy<Value = Vec<Value>> {
    prop::collection::vec(prop_oneof![3 => message(), 4 => call(), 4 => answer(), 2 => other()], 1..14)
}

/// One turn of a lawful conversation: what the user's side sends, and what the model answers.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    pub(crate) input: Vec<Value>,
    pub(crate) output: Vec<Value>,
}

/// A lawful conversation: every call is answered in the next turn.
pub(crate) fn conversation(family: &'static str) -> impl Strategy<Value = Vec<Turn>> {
    let said = || prop::sample::select(vec!["a", "Look \"here\".\n", "é😀"]);
    let turn = (said(), prop::option::of(said()), 0..4_usize, prop::bool::ANY, prop::bool::ANY);
    prop::collection::vec(turn, 1..6).prop_map(move |turns| {
        let mut conversation: Vec<Turn> = Vec::new();
        let mut open: Vec<Value> = Vec::new();
        for (number, (text, answer, calls, thinks, image)) in turns.into_iter().enumerate() {
            let mut input = std::mem::take(&mut open);
            if input.is_empty() || image {
                input.push(json!({"role": "user", "content": [{"type": "input_text", "text": text}]}));
            }
            let mut output = Vec::new();
            if thinks {
                let sealed = format!(r#"glass:{{"v":1,"family":"{family}","text":"{number}?"}}"#);
                output.push(json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": sealed}));
            }
            output.extend(answer.map(|text| json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})));
            for call in 0..calls {
                let id = format!("call_{number}_{call}");
                output.push(json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{\"a\":1}"}));
                let result = if image { json!([{"type": "input_image", "image_url": "data:image/png;base64,AA=="}]) } else { json!("ok") };
                open.push(json!({"type": "function_call_output", "call_id": id, "output": result}));
            }
            if output.iter().all(|item| item["type"] == "reasoning") {
                output.push(json!({"type": "message", "role": "assistant", "content": "Done."}));
            }
            conversation.push(Turn { input, output });
        }
        conversation
    })
}

/// Any request, sane or not.
pub(crate) fn request() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        prop::bool::ANY.prop_map(Value::from),
        prop::sample::select(vec![0, 1, -1, 20]).prop_map(Value::from),
        prop::sample::select(vec!["auto", "none", "required", "function", "json_schema", "low", "c1", "", "\u{e000}"])
            .prop_map(Value::from),
    ];
    let keys = [
        "type",
        "name",
        "mode",
        "tools",
        "format",
        "schema",
        "effort",
        "summary",
        "verbosity",
        "parameters",
        "properties",
        "items",
        "x",
    ];
    let any = leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(keys.to_vec()), inner), 0..4)
                .prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    });
    let members = [
        "instructions",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "text",
        "reasoning",
        "temperature",
        "top_p",
        "top_logprobs",
        "include",
        "max_output_tokens",
        "metadata",
        "stop",
        "stream",
        "stream_options",
        "user",
        "prompt_cache_key",
        "truncation",
        "foo",
    ];
    let extra = prop::collection::vec((prop::sample::select(members.to_vec()), any), 0..5);
    (items(), extra).prop_map(|(items, extra)| {
        let mut request = json!({"model": "m", "input": items});
        for (key, value) in extra {
            request[key] = value;
        }
        request
    })
}
