//! How requests are built, and what they prepare for the answer, line by line.
//! Where the design decided otherwise, the test says so.

use bridge::{OutputContract, ToolKind};
use serde_json::{Value, json};

use crate::dialects::named;
use crate::run::plan;

fn messages(input: Value) -> Value {
    plan(&json!({"model": "m", "input": input}), &named("deepseek")).unwrap().body["messages"].clone()
}

fn call(name: &str, arguments: &str) -> Value {
    json!({"role": "assistant", "content": null, "reasoning_content": " ", "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}]})
}

fn tool(content: &str) -> Value {
    json!({"role": "tool", "tool_call_id": "c", "content": content})
}

/// "Input Normalization": each item type's mapping.
#[test]
fn mapping() {
    let assistant = json!({"role": "assistant", "content": "a"});
    for (input, expected) in [
        (json!([{"role": "developer", "content": "d"}]), json!([{"role": "system", "content": "d"}])),
        (json!([{"role": "system", "content": "s"}]), json!([{"role": "system", "content": "s"}])),
        (json!([{"role": "user", "content": "u"}]), json!([{"role": "user", "content": "u"}])),
        (json!([{"role": "assistant", "content": "a"}]), json!([assistant])),
        (
            json!([{"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "r"}]},
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}, {"type": "function_call_output", "call_id": "c", "output": "o"}]),
            json!([{"role": "assistant", "content": null, "reasoning_content": "r", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}, tool("o")]),
        ),
        (
            json!([{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{\"a\":1}"}, {"type": "function_call_output", "call_id": "c", "output": "o"}]),
            json!([call("f", "{\"a\":1}"), tool("o")]),
        ),
        (
            json!([{"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}}, {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "x", "stderr": "y", "outcome": {"type": "exit", "exit_code": 1}}]}]),
            json!([call("shell", "{\"commands\":[\"ls\"]}"), tool("[exit 1]\nx\n[stderr]\ny")]),
        ),
        (
            json!([{"type": "local_shell_call", "call_id": "c", "action": {"type": "exec", "command": ["ls"], "env": {}}}, {"type": "local_shell_call_output", "call_id": "c", "output": "o"}]),
            json!([call("local_shell", "{\"command\":[\"ls\"]}"), tool("o")]),
        ),
        (
            json!([{"type": "apply_patch_call", "call_id": "c", "operation": {"type": "delete_file", "path": "p"}}, {"type": "apply_patch_call_output", "call_id": "c", "status": "failed", "output": "o"}]),
            json!([
                call("apply_patch", "{\"operation\":{\"type\":\"delete_file\",\"path\":\"p\"}}"),
                tool("failed:\no")
            ]),
        ),
        (
            json!([{"type": "custom_tool_call", "call_id": "c", "name": "x", "input": "i"}, {"type": "custom_tool_call_output", "call_id": "c", "output": "o"}]),
            json!([call("x", "{\"input\":\"i\"}"), tool("o")]),
        ),
    ] {
        assert_eq!(messages(input.clone()), expected, "{input}");
    }
    let request = json!({"model": "m", "instructions": "i", "input": "u"});
    let body = plan(&request, &named("deepseek")).unwrap().body;
    assert_eq!(body["messages"], json!([{"role": "system", "content": "i"}, {"role": "user", "content": "u"}]));
}

/// "Message Merging": the four rules, and no merging elsewhere.
#[test]
fn merging() {
    let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"});
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "o"});
    let said = |text: &str| json!({"role": "assistant", "content": text});
    let shape = |input: Value| {
        let told = |message: &Value| {
            let calls = message["tool_calls"].as_array().map_or(0, Vec::len);
            format!("{}:{}+{calls}", message["role"].as_str().unwrap(), message["content"].as_str().unwrap_or("-"))
        };
        messages(input).as_array().unwrap().iter().map(told).collect::<Vec<_>>().join(" ")
    };
    let results = json!([output("a"), output("b")]);
    let with = |items: Value| [items.as_array().unwrap().clone(), results.as_array().unwrap().clone()].concat();
    assert_eq!(shape(with(json!([call("a"), call("b")])).into()), "assistant:-+2 tool:o+0 tool:o+0");
    assert_eq!(shape(json!([said("x"), said("y")])), "assistant:x\ny+0");
    assert_eq!(shape(with(json!([said("x"), call("a"), call("b")])).into()), "assistant:x+2 tool:o+0 tool:o+0");
    assert_eq!(shape(with(json!([call("a"), call("b"), said("x")])).into()), "assistant:x+2 tool:o+0 tool:o+0");
    let users = json!([{"role": "user", "content": "1"}, {"role": "user", "content": "2"}]);
    assert_eq!(shape(users), "user:1+0 user:2+0");
}

/// "Request Options Mapping" and "Reasoning Effort Mapping".
#[test]
fn options() {
    let body = |name: &str, extra: Value| {
        let mut request = json!({"model": "m", "input": "u"});
        request.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        plan(&request, &named(name)).unwrap().body
    };
    let all = json!({"stream": true, "temperature": 0.5, "top_p": 0.9, "max_output_tokens": 64, "safety_identifier": "s", "user": "u"});
    let deepseek = body("deepseek", all.clone());
    assert_eq!(deepseek["stream_options"], json!({"include_usage": true}));
    assert_eq!((&deepseek["temperature"], &deepseek["top_p"]), (&json!(0.5), &json!(0.9)));
    assert_eq!((&deepseek["max_tokens"], &deepseek["user_id"]), (&json!(64), &json!("s")));
    let minimax = body("minimax", all);
    assert_eq!((&minimax["max_completion_tokens"], &minimax["user_id"]), (&json!(64), &json!("u")));
    assert_eq!(minimax["reasoning_split"], json!(true));
    // native, boolean, none
    assert_eq!(body("deepseek", json!({"reasoning": {"effort": "high"}}))["reasoning_effort"], "high");
    assert_eq!(body("zhipu", json!({"reasoning": {"effort": "high"}}))["thinking"]["type"], "enabled");
    assert_eq!(body("strict", json!({"reasoning": {"effort": "high"}})).get("reasoning_effort"), None);
}

/// "Session History Integration": system prefix, synthetic instruction, history, current.
#[test]
fn order() {
    let request = json!({"model": "m", "instructions": "sys", "input": [{"role": "user", "content": "now"}],
        "text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}, "strict": true}}});
    let past = [json!({"role": "user", "content": "then"}), json!({"role": "assistant", "content": "yes"})];
    let planned =
        crate::run::plan_with(&request, &past, &named("deepseek"), bridge::Policy::default(), &bridge::Unsealed);
    let planned = planned.unwrap();
    let contents: Vec<&str> = planned.messages().iter().map(|message| message["content"].as_str().unwrap()).collect();
    let [first, "then", "yes", "now"] = contents[..] else { panic!("{contents:?}") };
    assert!(first.starts_with("sys\n") && first.contains("JSON Schema"), "{first}");
    // The answer is held to the schema, not only to being JSON.
    let contract = OutputContract::JsonSchema {
        name: "x".into(),
        schema: r#"{"type":"object"}"#.into(),
        strict: true,
        native: false,
    };
    assert_eq!(planned.context.output, contract);
    assert_eq!(planned.body["response_format"], json!({"type": "json_object"}));
}

/// Templates of some models take one system message, at the start. What the developer says later is a message of its own, or
/// the user's; a provider that knows developers is told what each of them said.
#[test]
fn what_comes_first_is_said_as_one() {
    let request = |model: &str| {
        json!({"model": model, "instructions": "sys", "input": [
            {"role": "developer", "content": "dev"}, {"role": "system", "content": "more"}, {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "yes"}, {"role": "developer", "content": "late"}, {"role": "user", "content": "now"}]})
    };
    let first = ("system", "sys\ndev\nmore");
    let rest = |late| [("user", "hi"), ("assistant", "yes"), (late, "late"), ("user", "now")];
    for (spec, expected) in [
        ("vllm/llama-4", [vec![first], rest("system").to_vec()].concat()),
        ("vllm/Qwen/Qwen3.6-27B", [vec![first], rest("user").to_vec()].concat()),
        ("together/Qwen/Qwen3.5-397B", [vec![first], rest("user").to_vec()].concat()),
        (
            "openai/gpt-5",
            [vec![("developer", "sys"), ("developer", "dev"), ("system", "more")], rest("developer").to_vec()].concat(),
        ),
    ] {
        let (_, model) = spec.split_once('/').unwrap();
        let planned = plan(&request(model), &named(spec)).unwrap();
        let messages = planned.messages();
        let said: Vec<(&str, &str)> = messages
            .iter()
            .map(|message| (message["role"].as_str().unwrap(), message["content"].as_str().unwrap()))
            .collect();
        assert_eq!(said, expected, "{spec}");
    }
}

/// "Tool Identity Map": both directions; a clash gets another name.
#[test]
fn identity() {
    let request = json!({"model": "m", "input": [
        {"type": "custom_tool_call", "call_id": "c", "name": "a.b", "input": "x"}, {"type": "custom_tool_call_output", "call_id": "c", "output": "o"}],
        "tools": [{"type": "function", "name": "a_b"}, {"type": "custom", "name": "a.b"}, {"type": "shell"}, {"type": "local_shell"}, {"type": "apply_patch"},
            {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "a_b"}]}]});
    let planned = plan(&request, &named("deepseek")).unwrap();
    let map: Vec<(&str, ToolKind, &str, Option<&str>)> = planned
        .context
        .tools
        .iter()
        .map(|tool| (&*tool.provider_name, tool.kind, &*tool.name, tool.namespace.as_deref()))
        .collect();
    let custom = map[1].0;
    assert_eq!(
        map,
        [
            ("a_b", ToolKind::Function, "a_b", None),
            (custom, ToolKind::Custom, "a.b", None),
            ("shell", ToolKind::Shell, "shell", None),
            ("local_shell", ToolKind::LocalShell, "local_shell", None),
            ("apply_patch", ToolKind::ApplyPatch, "apply_patch", None),
            ("n__a_b", ToolKind::Function, "a_b", Some("n")),
        ]
    );
    assert!(custom.starts_with("a_b_") && custom != "a_b");
    let calls = &planned.body["messages"][0]["tool_calls"];
    assert_eq!(calls[0]["function"]["name"], custom, "calls of the history have the provider's names");
}
