//! Each kind of item, tool, choice, format and option on each dialect, as text files beside this one.

use std::fmt::Write;
use std::path::Path;

use bridge::Policy;
use serde_json::{Value, json};

use crate::dialects::{TABLE, named};
use crate::run::{TransparentSeal, plan_with};

/// For each case: the request's part in question, then what the dialects make of it; those that agree together.
fn table(name: &str, cases: &[(&str, Value)], shown: &[&str]) {
    table_with(name, cases, shown, Policy::default());
}

fn table_with(name: &str, cases: &[(&str, Value)], shown: &[&str], policy: Policy) {
    let mut text = String::new();
    for (title, asked) in cases {
        let mut request = json!({"model": "m", "input": "Hi"});
        request.as_object_mut().unwrap().extend(asked.as_object().unwrap().clone());
        writeln!(text, "== {title}\n   {asked}").unwrap();
        let mut outcomes: Vec<(String, Vec<&str>)> = Vec::new();
        for dialect in TABLE {
            let outcome = outcome(&request, dialect, shown, policy);
            match outcomes.iter_mut().find(|(known, _)| *known == outcome) {
                Some((_, dialects)) => dialects.push(dialect),
                None => outcomes.push((outcome, vec![dialect])),
            }
        }
        for (outcome, dialects) in outcomes {
            writeln!(text, " * {}\n{outcome}", dialects.join(", ")).unwrap();
        }
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plan/tables").join(name);
    testkit::table::compare(&file, &text).unwrap();
}

fn outcome(request: &Value, dialect: &str, shown: &[&str], policy: Policy) -> String {
    let mut text = String::new();
    match plan_with(request, &[], &named(dialect), policy, &TransparentSeal) {
        Err(invalid) => write!(text, "     400 {} at {}: {invalid}", invalid.code().name(), invalid.path).unwrap(),
        Ok(planned) => {
            if shown.contains(&"tool names") {
                let tools = planned.body["tools"].as_array().into_iter().flatten();
                let names: Vec<&str> = tools
                    .filter_map(|tool| tool["function"]["name"].as_str().or(tool["custom"]["name"].as_str()))
                    .collect();
                writeln!(text, "     tools: {}", names.join(" ")).unwrap();
            }
            for (key, value) in planned.body.as_object().unwrap() {
                match (key.as_str(), value.as_array()) {
                    (key, _) if shown != ["*"] && !shown.contains(&key) => {}
                    ("messages" | "tools", Some(list)) => {
                        for element in list {
                            writeln!(text, "     {element}").unwrap();
                        }
                    }
                    _ => writeln!(text, "     {key}: {value}").unwrap(),
                }
            }
            for note in &planned.notes {
                let (code, severity) = (note.code.name(), note.severity.name());
                writeln!(text, "     ! {note} {severity} {code}: {}", note.message).unwrap();
            }
        }
    }
    text.trim_end().to_owned()
}

fn input(items: Value) -> Value {
    json!({"input": items})
}

#[test]
fn items() {
    let call = |kind: &str, rest: Value| {
        let mut call = json!({"type": kind, "call_id": "c1"});
        call.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        call
    };
    let sealed = r#"glass:{"v":1,"family":"deepseek","text":"So."}"#;
    let cases = [
        (
            "messages of all roles",
            input(json!([
            {"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hi"},
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "Hello", "annotations": []}]},
            {"role": "system", "content": "Now in French."}, {"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]}])),
        ),
        (
            "function_call",
            input(json!([
                call("function_call", json!({"name": "f", "arguments": "{\"a\":1}"})),
                call("function_call_output", json!({"output": "ok"}))
            ])),
        ),
        (
            "function_call with broken arguments",
            input(json!([
                call("function_call", json!({"name": "f", "arguments": "{\"a\":"})),
                call("function_call_output", json!({"output": ""}))
            ])),
        ),
        (
            "custom_tool_call with two outputs",
            input(json!([
                call("custom_tool_call", json!({"name": "exec", "input": "say \"hi\"\n"})),
                call("custom_tool_call_output", json!({"output": "one"})),
                call("custom_tool_call_output", json!({"output": "two"}))
            ])),
        ),
        (
            "shell_call",
            input(json!([
                call("shell_call", json!({"action": {"commands": ["ls"], "timeout_ms": 5}})),
                call(
                    "shell_call_output",
                    json!({"output": [{"stdout": "a\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}, {"stdout": "", "stderr": "late", "outcome": {"type": "timeout"}}]})
                )
            ])),
        ),
        (
            "local_shell_call",
            input(
                json!([call("local_shell_call", json!({"action": {"type": "exec", "command": ["ls", "-l"], "env": {"A": "b"}, "user": null}})), {"type": "local_shell_call_output", "id": "c1", "output": "x"}]),
            ),
        ),
        (
            "apply_patch_call",
            input(json!([
                call("apply_patch_call", json!({"operation": {"type": "delete_file", "path": "a.txt"}})),
                call("apply_patch_call_output", json!({"status": "completed", "output": "gone"}))
            ])),
        ),
        (
            "tool_search_call",
            input(json!([
                call("tool_search_call", json!({"execution": "client", "arguments": {"query": "add"}})),
                call(
                    "tool_search_output",
                    json!({"execution": "client", "tools": [{"type": "namespace", "name": "mcp__demo", "description": "", "tools": [{"type": "function", "name": "add", "parameters": {}}]}]})
                )
            ])),
        ),
        (
            "computer_call",
            input(json!([
                call("computer_call", json!({"action": {"type": "screenshot"}})),
                call(
                    "computer_call_output",
                    json!({"output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,AA=="}})
                )
            ])),
        ),
        (
            "program",
            input(json!([
                call("program", json!({"id": "p", "code": "1+1"})),
                call("program_output", json!({"result": "2"}))
            ])),
        ),
        (
            "reasoning, sealed",
            input(
                json!([{"role": "user", "content": "Hi"}, {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": sealed}, call("function_call", json!({"name": "f", "arguments": "{}"})), call("function_call_output", json!({"output": "ok"}))]),
            ),
        ),
        (
            "reasoning, plain, before text",
            input(
                json!([{"role": "user", "content": "Hi"}, {"type": "reasoning", "id": "rs", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]}, {"role": "assistant", "content": "Hello"}, {"role": "user", "content": "Go on"}]),
            ),
        ),
        (
            "reasoning, foreign",
            input(
                json!([{"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "gAAAA"}, {"role": "assistant", "content": "Hello"}, {"role": "user", "content": "Go on"}]),
            ),
        ),
        (
            "web_search_call",
            input(
                json!([{"role": "user", "content": "Hi"}, {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search", "query": "q"}}]),
            ),
        ),
        (
            "file_search_call",
            input(json!([{"type": "file_search_call", "id": "fs_1", "queries": ["q"], "results": [{"text": "t"}]}])),
        ),
        (
            "code_interpreter_call",
            input(
                json!([{"type": "code_interpreter_call", "id": "ci_1", "code": "1", "outputs": [{"type": "logs", "logs": "1"}]}]),
            ),
        ),
        (
            "image_generation_call",
            input(json!([{"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "AAAA"}])),
        ),
        (
            "mcp items",
            input(
                json!([{"type": "mcp_list_tools", "id": "l", "server_label": "s", "tools": []}, {"type": "mcp_approval_request", "id": "r", "server_label": "s", "name": "n", "arguments": "{}"}, {"type": "mcp_approval_response", "approval_request_id": "r", "approve": true}, {"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "n", "arguments": "{}", "output": "done"}]),
            ),
        ),
        (
            "compaction",
            input(
                json!([{"type": "compaction", "id": "cmp", "encrypted_content": "glass:{\"v\":1,\"kind\":\"compaction\",\"summary\":\"They met.\",\"all\":false}"}, {"role": "user", "content": "Go on"}, {"type": "compaction_trigger"}]),
            ),
        ),
        (
            "agent_message",
            input(
                json!([{"type": "agent_message", "author": "/lead", "recipient": "/lead/a", "content": [{"type": "input_text", "text": "Go"}]}]),
            ),
        ),
        // Where nobody encrypts the arguments of calls, the client hands on what the model wrote.
        (
            "agent_message with what the other model wrote",
            input(
                json!([{"type": "agent_message", "author": "/lead", "recipient": "/lead/a", "content": [{"type": "input_text", "text": "Payload:"}, {"type": "encrypted_content", "encrypted_content": "Find \"it\"."}]}]),
            ),
        ),
        (
            "agent_message that another server encrypted",
            input(
                json!([{"type": "agent_message", "author": "/lead", "recipient": "/lead/a", "content": [{"type": "input_text", "text": "Payload:"}, {"type": "encrypted_content", "encrypted_content": format!("gAAAAABq{}==", "Zm9v_-".repeat(20))}]}]),
            ),
        ),
        (
            "unknown kinds",
            input(
                json!([{"role": "user", "content": "Hi"}, {"type": "hologram", "depth": 3}, {"type": "whisper", "role": "user", "content": "psst"}, {"type": "configuration_update", "reasoning": {}}]),
            ),
        ),
        (
            "content of all kinds",
            input(json!([{"role": "user", "content": [
            {"type": "input_text", "text": "look"}, {"type": "input_image", "image_url": "https://x/y.png", "detail": "original"},
            {"type": "input_file", "filename": "a.txt", "file_data": "data:text/plain;base64,aGk="}, {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi1vbmU="},
            {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}, {"type": "smell", "of": "rain"}]}])),
        ),
        (
            "an image in a tool's output",
            input(
                json!([call("function_call", json!({"name": "f", "arguments": "{}"})), call("function_call_output", json!({"output": [{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": "data:image/png;base64,AA=="}]})), {"role": "user", "content": "Well?"}]),
            ),
        ),
    ];
    table("items.txt", &cases, &["messages"]);
}

/// Broken histories, without and with `compat.repair_history`.
#[test]
fn repairs() {
    let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"});
    let output = |id: &str, text: &str| json!({"type": "function_call_output", "call_id": id, "output": text});
    let user = json!({"role": "user", "content": "Hi"});
    let said = json!({"role": "assistant", "content": "Well."});
    let cases = [
        ("a call without output", input(json!([call("a"), user]))),
        (
            "a message between call and output",
            input(json!([call("a"), call("b"), user, output("b", "2"), output("a", "1")])),
        ),
        ("the assistant speaks between call and output", input(json!([call("a"), said, output("a", "1")]))),
        ("the assistant goes on without an output", input(json!([call("a"), user, said, output("a", "1"), user]))),
        ("an output before its call", input(json!([user, output("a", "1"), call("a")]))),
        ("a second output", input(json!([call("a"), output("a", "1"), output("a", "2"), user]))),
        ("the same call twice, one output", input(json!([call("a"), call("a"), output("a", "1")]))),
        (
            "one id for two calls, each with its output",
            input(json!([call("a"), output("a", "1"), call("a"), output("a", "2")])),
        ),
        (
            "one id for two calls, the first interrupted",
            input(json!([call("a"), user, call("a"), output("a", "of the second")])),
        ),
        (
            "one id for two calls, a second output of the first",
            input(json!([call("a"), output("a", "1"), output("a", "again"), said, user, call("a"), output("a", "2")])),
        ),
        (
            "one id for two calls, the first answered late",
            input(json!([call("a"), user, call("a"), output("a", "2"), said, output("a", "late")])),
        ),
        ("an output of no call", input(json!([user, output("x", "1")]))),
        ("an event by name", input(json!([user, {"type": "function_call_output", "name": "timer", "output": "ring"}]))),
        ("a call without id and name", input(json!([{"type": "function_call", "arguments": "5"}]))),
        ("an id from elsewhere", input(json!([call("toolu_01ABC!weird id"), output("toolu_01ABC!weird id", "1")]))),
        (
            "empty messages",
            input(
                json!([{"role": "user", "content": ""}, {"role": "assistant", "content": ""}, {"role": "user", "content": []}]),
            ),
        ),
        ("nothing that can be sent", input(json!([{"type": "web_search_call", "id": "ws"}]))),
        (
            "reasoning that leads to nothing",
            input(
                json!([{"type": "reasoning", "id": "rs", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}]}, user]),
            ),
        ),
    ];
    table("repairs.txt", &cases, &["messages"]);
    table_with("repairs-mended.txt", &cases, &["messages"], crate::run::MEND);
}

#[test]
fn tools() {
    let one = |tool: Value| json!({"tools": [tool]});
    let cases = [
        (
            "function",
            one(
                json!({"type": "function", "name": "f", "description": "Does.", "strict": true, "parameters": {"type": "object", "properties": {"a": {"type": ["string", "null"], "enum": ["x", 1]}}}}),
            ),
        ),
        ("function without parameters", one(json!({"type": "function", "name": "f", "parameters": {}}))),
        ("function with another alphabet", one(json!({"type": "function", "name": "files.read"}))),
        (
            "custom, text",
            one(json!({"type": "custom", "name": "note", "description": "Writes.", "format": {"type": "text"}})),
        ),
        (
            "custom, lark",
            one(
                json!({"type": "custom", "name": "patch", "format": {"type": "grammar", "syntax": "lark", "definition": "start: \"x\"\n"}}),
            ),
        ),
        (
            "custom, regex",
            one(
                json!({"type": "custom", "name": "digits", "format": {"type": "grammar", "syntax": "regex", "definition": "\\d+"}}),
            ),
        ),
        ("shell", one(json!({"type": "shell"}))),
        ("local_shell", one(json!({"type": "local_shell"}))),
        ("apply_patch", one(json!({"type": "apply_patch"}))),
        (
            "namespace",
            one(
                json!({"type": "namespace", "name": "mcp__demo", "description": "Sums.", "tools": [{"type": "function", "name": "add", "description": "Adds."}, {"type": "custom", "name": "raw"}]}),
            ),
        ),
        (
            "tool_search",
            one(
                json!({"type": "tool_search", "execution": "client", "description": "Finds.", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}}),
            ),
        ),
        ("web_search", one(json!({"type": "web_search", "external_web_access": true}))),
        ("file_search", one(json!({"type": "file_search", "vector_store_ids": ["v"]}))),
        ("code_interpreter", one(json!({"type": "code_interpreter", "container": "c"}))),
        ("image_generation", one(json!({"type": "image_generation"}))),
        ("computer", one(json!({"type": "computer"}))),
        ("mcp", one(json!({"type": "mcp", "server_label": "s", "server_url": "https://s"}))),
        ("unknown", one(json!({"type": "teleport"}))),
        (
            "one name, three tools",
            json!({"tools": [{"type": "apply_patch"}, {"type": "custom", "name": "apply_patch"}, {"type": "function", "name": "apply_patch"}]}),
        ),
        (
            "declared twice",
            json!({"tools": [{"type": "function", "name": "f", "description": "old"}, {"type": "function", "name": "g"}, {"type": "function", "name": "f", "description": "new"}]}),
        ),
        (
            "the same declared twice",
            json!({"tools": [{"type": "function", "name": "f"}, {"type": "function", "name": "f"}]}),
        ),
        (
            "tools in the input",
            json!({"tools": [{"type": "function", "name": "a"}], "input": [{"type": "additional_tools", "role": "developer", "tools": [{"type": "namespace", "name": "functions", "tools": [{"type": "custom", "name": "exec"}]}]}, {"role": "user", "content": "Hi"}]}),
        ),
        (
            "five functions",
            json!({"tools": (["a", "b", "c", "d", "e"].map(|name| json!({"type": "function", "name": name}))), "tool_choice": "auto"}),
        ),
    ];
    table("tools.txt", &cases, &["tools"]);
}

#[test]
fn choices() {
    let with = |choice: Value| json!({"tools": [{"type": "function", "name": "f"}, {"type": "custom", "name": "c"}, {"type": "shell"}], "tool_choice": choice});
    let cases = [
        ("auto", with(json!("auto"))),
        ("none", with(json!("none"))),
        ("required", with(json!("required"))),
        ("function", with(json!({"type": "function", "name": "f"}))),
        ("custom", with(json!({"type": "custom", "name": "c"}))),
        ("shell", with(json!({"type": "shell"}))),
        ("a tool that is not there", with(json!({"type": "function", "name": "nope"}))),
        ("hosted", with(json!({"type": "web_search_preview"}))),
        ("mcp", with(json!({"type": "mcp", "server_label": "s"}))),
        (
            "allowed_tools, auto",
            with(
                json!({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}, {"type": "shell"}]}),
            ),
        ),
        (
            "allowed_tools, required",
            with(json!({"type": "allowed_tools", "mode": "required", "tools": [{"type": "custom", "name": "c"}]})),
        ),
        ("required without tools", json!({"tool_choice": "required"})),
        (
            "required, nothing left",
            json!({"tools": [{"type": "file_search"}, {"type": "new"}], "tool_choice": "required"}),
        ),
        ("hosted, nothing left", json!({"tools": [{"type": "file_search"}], "tool_choice": {"type": "file_search"}})),
        (
            "hosted, functions left",
            json!({"tools": [{"type": "web_search"}, {"type": "function", "name": "f"}], "tool_choice": {"type": "web_search_preview"}}),
        ),
        (
            "mcp, functions left",
            json!({"tools": [{"type": "mcp", "server_label": "s"}, {"type": "function", "name": "f"}], "tool_choice": {"type": "mcp", "server_label": "s"}}),
        ),
        (
            "mcp of another server",
            json!({"tools": [{"type": "mcp", "server_label": "s"}, {"type": "function", "name": "f"}], "tool_choice": {"type": "mcp", "server_label": "t"}}),
        ),
        (
            "a function, nothing left",
            json!({"tools": [{"type": "file_search"}], "tool_choice": {"type": "function", "name": "f"}}),
        ),
        ("none, nothing left", json!({"tools": [{"type": "file_search"}], "tool_choice": "none"})),
        (
            "allowed_tools, one not declared",
            with(
                json!({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}, {"type": "function", "name": "nope"}]}),
            ),
        ),
        (
            "allowed_tools, hosted and not declared",
            with(json!({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "image_generation"}]})),
        ),
        (
            "allowed_tools, nothing left",
            json!({"tools": [{"type": "file_search"}, {"type": "function", "name": "f"}], "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [{"type": "file_search"}]}}),
        ),
        (
            "allowed_tools, nothing left, auto",
            json!({"tools": [{"type": "file_search"}, {"type": "function", "name": "f"}], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "file_search"}]}}),
        ),
        (
            "allowed_tools, a namespace",
            json!({"tools": [{"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "g"}]}, {"type": "function", "name": "f"}], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "namespace", "name": "n"}]}}),
        ),
        ("allowed_tools, a mode of its own", with(json!({"type": "allowed_tools", "mode": "any", "tools": []}))),
        ("allowed_tools without tools", with(json!({"type": "allowed_tools", "mode": "auto"}))),
        ("allowed_tools, no name", with(json!({"type": "allowed_tools", "tools": [{"type": "function"}]}))),
        ("not in parallel", json!({"tools": [{"type": "function", "name": "f"}], "parallel_tool_calls": false})),
        (
            "forced while thinking",
            json!({"tools": [{"type": "function", "name": "f"}], "tool_choice": "required", "reasoning": {"effort": "high"}}),
        ),
    ];
    table("choices.txt", &cases, &["tool names", "tool_choice", "parallel_tool_calls", "thinking", "reasoning_effort"]);
}

#[test]
fn formats() {
    let format = |format: Value| json!({"text": {"format": format}});
    let schema = json!({"type": "json_schema", "name": "person", "description": "Who.", "strict": true, "schema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"], "additionalProperties": false}});
    let mut with_tools = format(schema.clone());
    with_tools["tools"] = json!([{"type": "function", "name": "f"}]);
    let mut streamed = format(schema.clone());
    streamed["instructions"] = json!("Be brief.");
    streamed["stream"] = json!(true);
    let cases = [
        ("text", format(json!({"type": "text"}))),
        ("json_object", format(json!({"type": "json_object"}))),
        ("json_schema", format(schema)),
        ("json_schema with tools", with_tools),
        ("json_schema, streamed, with instructions", streamed),
        ("a schema of nothing", format(json!({"type": "json_schema", "name": "x", "schema": {"type": "objct"}}))),
        ("a schema elsewhere", format(json!({"type": "json_schema", "name": "x", "schema": {"$ref": "http://x/y"}}))),
        ("a name with a blank", format(json!({"type": "json_schema", "name": "a b", "schema": {}}))),
    ];
    table("formats.txt", &cases, &["response_format", "messages"]);
}

#[test]
fn options() {
    let cases = [
        ("sampling", json!({"temperature": 1.8, "top_p": 0.5, "presence_penalty": 1, "frequency_penalty": -1})),
        ("max_output_tokens", json!({"max_output_tokens": 100})),
        ("logprobs", json!({"top_logprobs": 3, "include": ["message.output_text.logprobs"]})),
        (
            "logprobs by include",
            json!({"include": ["message.output_text.logprobs", "reasoning.encrypted_content", "web_search_call.action.sources"]}),
        ),
        ("stop", json!({"stop": ["END"]})),
        ("stream", json!({"stream": true, "stream_options": {"include_obfuscation": false}})),
        ("users", json!({"safety_identifier": "s", "user": "u"})),
        ("user alone", json!({"user": "u"})),
        ("prompt_cache_key", json!({"prompt_cache_key": "k", "prompt_cache_retention": "24h"})),
        ("service_tier", json!({"service_tier": "priority"})),
        ("service_tier, the usual one", json!({"service_tier": "default"})),
        ("service_tier, whichever", json!({"service_tier": "auto"})),
        ("verbosity", json!({"text": {"verbosity": "low"}})),
        ("effort none", json!({"reasoning": {"effort": "none"}})),
        ("effort minimal", json!({"reasoning": {"effort": "minimal"}})),
        ("effort medium", json!({"reasoning": {"effort": "medium", "summary": "auto"}})),
        ("effort xhigh", json!({"reasoning": {"effort": "xhigh"}})),
        ("effort of its own", json!({"reasoning": {"effort": "heroic"}})),
        ("ours alone", json!({"metadata": {"a": "b"}, "store": false, "client_metadata": {"secret": "x"}})),
        ("without equivalent", json!({"max_tool_calls": 3, "moderation": {}, "foo": 1})),
        ("a stored prompt", json!({"prompt": {"id": "pmpt_1"}})),
    ];
    table("options.txt", &cases, &["*"]);
}
