//! Calls of tools that godex runs: they are never shown, and the answer's end says that they are to be run.

use bridge::{
    End, Events, Failure, FailureClass, Flow, HeldCall, HostedCall, HostedEnd, HostedStart, OfferedTool, Reader,
    ResponseWriter, RoundEnd, ToolKind,
};
use serde_json::{Value, json};

use crate::quirks::{done, short, text};
use crate::run::{Run, delta, object};

fn look() -> OfferedTool {
    let (provider_name, name) = ("mcp__look".to_owned(), "look".to_owned());
    OfferedTool { provider_name, kind: ToolKind::Mcp, name, namespace: Some("mcp".to_owned()) }
}

fn hosting(mut run: Run) -> Run {
    run.context.tools.push(look());
    run
}

fn calls(list: &[(&str, &str, &str)]) -> String {
    let call = |(index, (id, name, arguments)): (usize, &(&str, &str, &str))| json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}});
    delta(&json!({"tool_calls": list.iter().enumerate().map(call).collect::<Vec<_>>()}))
}

fn native_calls(list: &[(&str, &str, &str)]) -> Vec<String> {
    let item = |(id, name, arguments): &(&str, &str, &str)| json!({"type": "function_call", "id": id, "call_id": id, "name": name, "arguments": arguments, "status": "completed"});
    native_items(&list.iter().map(item).collect::<Vec<_>>())
}

fn native_items(output: &[Value]) -> Vec<String> {
    let mut events: Vec<Value> = Vec::new();
    for (index, item) in output.iter().enumerate() {
        events.push(json!({"type": "response.output_item.added", "output_index": index, "item": item}));
        events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }
    let usage = json!({"input_tokens": 1, "output_tokens": 2});
    let response = json!({"status": "completed", "output": output, "usage": usage});
    events.push(json!({"type": "response.completed", "response": response}));
    events.iter().map(Value::to_string).collect()
}

/// Shows what was held, in its order.
pub(crate) fn show(held: &[HeldCall], response: &mut ResponseWriter, out: &mut Events) {
    for call in held {
        match call {
            HeldCall::Hosted(call) => {
                let start = HostedStart::McpCall {
                    server_label: call.tool.namespace.clone().unwrap_or_default(),
                    name: call.tool.name.clone(),
                    arguments: call.arguments.clone(),
                    approval_request_id: None,
                };
                let item = response.open_hosted(start, out);
                response.close_hosted(&item, &HostedEnd::Output("noon".to_owned()), out);
            }
            HeldCall::Client(call) => response.client_call(call, out),
        }
    }
}

/// How the answer ends, the calls that are left to take, and the response in short: the same without a stream.
fn read(run: &Run, chunks: &[String], end: &End) -> (RoundEnd, Vec<HeldCall>, String) {
    let read = |out: Events| {
        let mut turn = run.start(out);
        let over = chunks.iter().any(|chunk| turn.chunk(chunk.as_bytes()) == Flow::Over);
        let end = turn.reader.end(if over { End::Done } else { end.clone() }, &mut turn.response, &mut turn.out);
        let left = turn.reader.take_hosted();
        show(&left, &mut turn.response, &mut turn.out);
        turn.response.finish(end.clone());
        (end, left, object(&turn.terminal()), turn.out)
    };
    let (end, left, response, out) = read(Events::sse());
    let stream = testkit::grammar::check(out.bytes()).unwrap();
    for (_, event) in &stream.events {
        assert_eq!(crate::strict_types::problem(event), None);
    }
    assert_eq!(read(Events::silent()).2, stream.response, "streamed and not");
    (end, left, short(&response))
}

/// The hosted ones among them.
fn to_run(held: &[HeldCall]) -> Vec<HostedCall> {
    held.iter().filter_map(|call| if let HeldCall::Hosted(call) = call { Some(call.clone()) } else { None }).collect()
}

fn hosted(list: &[(&str, &str)]) -> Vec<HostedCall> {
    let call = |(call_id, arguments): &(&str, &str)| {
        let (call_id, arguments) = ((*call_id).to_owned(), (*arguments).to_owned());
        HostedCall { call_id, tool: look(), arguments }
    };
    list.iter().map(call).collect()
}

#[test]
fn an_answer_of_hosted_calls_asks_for_another_round() {
    let list =
        [("a", "mcp__look", "{\"q\":1}"), ("b", "functions.mcp__look", ""), ("c", "mcp__look", "\"{\\\"q\\\":2}\"")];
    let chat = done(vec![text("Let me see."), calls(&list)], "tool_calls");
    let (end, left, _) = read(&hosting(Run::default()), &chat, &End::Eof);
    assert_eq!(end, RoundEnd::Hosted(hosted(&[("a", "{\"q\":1}"), ("b", "{}"), ("c", "{\"q\":2}")])));
    assert!(left.is_empty());
    let native = native_calls(&[("a", "mcp__look", "{\"q\":1}"), ("b", "mcp__look", "")]);
    let (end, left, _) = read(&hosting(crate::native::native()), &native, &End::Eof);
    assert_eq!(end, RoundEnd::Hosted(hosted(&[("a", "{\"q\":1}"), ("b", "{}")])));
    assert!(left.is_empty());
}

/// The client must act, so the response is complete; what godex can do of it, it does. Items keep the model's order.
#[test]
fn beside_calls_of_the_client_they_are_left_to_be_run() {
    let (look, f) = (("a", "mcp__look", "{\"q\":1}"), ("b", "f", "{}"));
    for (list, held, shown) in [
        (vec![look, f], 2, r#"mcp_call "{\"q\":1}" | call f {}"#),
        (vec![f, look], 1, r#"call f {} | mcp_call "{\"q\":1}""#),
        (vec![f, look, f, f], 3, r#"call f {} | mcp_call "{\"q\":1}" | call f {} | call f {}"#),
        (vec![look, f, look, f], 4, r#"mcp_call "{\"q\":1}" | call f {} | mcp_call "{\"q\":1}" | call f {}"#),
    ] {
        let list: Vec<_> =
            list.iter().zip(["0", "1", "2", "3"]).map(|((_, name, text), id)| (id, *name, *text)).collect();
        for (run, chunks) in
            [(Run::default(), done(vec![calls(&list)], "tool_calls")), (crate::native::native(), native_calls(&list))]
        {
            let (end, left, found) = read(&hosting(run), &chunks, &End::Eof);
            assert_eq!((end, left.len()), (RoundEnd::Completed, held));
            assert!(!to_run(&left).is_empty());
            assert_eq!(found, format!("completed: {shown}"));
        }
    }
}

/// Every kind of call that the client runs comes out as its own kind after a hosted one, too; with its text before them.
#[test]
fn every_kind_of_call_keeps_its_place() {
    let list = [
        ("a", "f", "{\"b\":1}"),
        ("b", "mcp__look", "{}"),
        ("c", "patch", "{\"input\":\"x\\ny\"}"),
        ("d", "shell", "{\"commands\":[\"ls\",\"pwd\"]}"),
        ("e", "local_shell", "{\"command\":[\"ls\"]}"),
        ("f", "apply_patch", "{\"type\":\"delete_file\",\"path\":\"a\"}"),
        ("g", "tool_search", "{\"query\":\"q\"}"),
        ("h", "ns__look", "{}"),
        ("i", "never_offered", ""),
        ("j", "mcp__look", "{\"z\":2}"),
        ("k", "ns__write", "plain"),
    ];
    let pieces: Vec<String> = list
        .iter()
        .enumerate()
        .flat_map(|(index, (id, name, arguments))| {
            let head = json!({"tool_calls": [{"index": index, "id": id, "function": {"name": name, "arguments": ""}}]});
            let rest = arguments
                .chars()
                .map(move |c| json!({"tool_calls": [{"index": index, "function": {"arguments": c.to_string()}}]}));
            [head].into_iter().chain(rest).map(|entry| delta(&entry)).collect::<Vec<_>>()
        })
        .collect();
    let expected = concat!(
        r#"completed: "Let me see." | call f {"b":1} | mcp_call "{}" | custom patch x"#,
        "\ny | ",
        r#"shell_call {"commands":["ls","pwd"],"timeout_ms":null,"max_output_length":null} | "#,
        r#"local_shell_call {"type":"exec","command":["ls"],"env":{}} | "#,
        r#"apply_patch_call {"type":"delete_file","path":"a"} | tool_search_call {"query":"q"} | "#,
        r#"call ns/look {} | call never_offered {} | mcp_call "{\"z\":2}" | custom ns/write plain"#,
    );
    for chunks in [vec![text("Let me see."), calls(&list)], [vec![text("Let me see.")], pieces].concat()] {
        let (end, left, shown) = read(&hosting(Run::default()), &done(chunks, "tool_calls"), &End::Eof);
        assert_eq!((end, left.len(), shown.as_str()), (RoundEnd::Completed, 10, expected));
    }
}

/// A provider's own items for tools that the client runs wait, too, and make the answer the client's.
#[test]
fn a_native_call_of_a_built_in_tool_keeps_its_place() {
    let call = |item: Value| {
        let mut item = item;
        item["id"] = json!(format!("i{}", item["call_id"].as_str().unwrap()));
        item["status"] = json!("completed");
        item
    };
    let look = call(json!({"type": "function_call", "call_id": "a", "name": "mcp__look", "arguments": "{}"}));
    for (item, shown) in [
        (
            json!({"type": "shell_call", "call_id": "b", "action": {"commands": ["ls"], "timeout_ms": null, "max_output_length": null}, "environment": null}),
            r#"shell_call {"commands":["ls"],"timeout_ms":null,"max_output_length":null}"#,
        ),
        (
            json!({"type": "local_shell_call", "call_id": "b", "action": {"type": "exec", "command": ["ls"], "env": {}}}),
            r#"local_shell_call {"type":"exec","command":["ls"],"env":{}}"#,
        ),
        (
            json!({"type": "apply_patch_call", "call_id": "b", "operation": {"type": "delete_file", "path": "a"}}),
            r#"apply_patch_call {"type":"delete_file","path":"a"}"#,
        ),
        (
            json!({"type": "tool_search_call", "call_id": "b", "execution": "client", "arguments": {"query": "q"}}),
            r#"tool_search_call {"query":"q"}"#,
        ),
        (json!({"type": "custom_tool_call", "call_id": "b", "name": "patch", "input": "x"}), "custom patch x"),
    ] {
        let item = call(item);
        let chunks: Vec<String> = native_items(&[look.clone(), item.clone()]);
        let (end, left, found) = read(&hosting(crate::native::native()), &chunks, &End::Eof);
        assert_eq!((end, left.len()), (RoundEnd::Completed, 2), "{item}");
        assert_eq!(found, format!("completed: mcp_call \"{{}}\" | {shown}"));
    }
}

#[test]
fn what_broke_off_is_not_run() {
    let whole = calls(&[("a", "mcp__look", "{\"q\":1}"), ("b", "mcp__look", "{\"q\":")]);
    let mixed = calls(&[("a", "mcp__look", "{}"), ("b", "f", "{}"), ("c", "mcp__look", "{}"), ("d", "f", "{\"q\":")]);
    let cut = || End::Failed(Failure::new(FailureClass::Truncated, "cut"));
    for (chunks, end, status) in [
        (done(vec![whole.clone()], "length"), End::Eof, "incomplete(max_output_tokens): "),
        (vec![whole.clone()], cut(), "failed(server_error): "),
        (vec![whole], End::Eof, "failed(server_error): "),
        (done(vec![mixed.clone()], "length"), End::Eof, "incomplete(max_output_tokens): call f {} | ~call f {\"q\":"),
        (vec![mixed], cut(), "failed(server_error): call f {} | ~call f {\"q\":"),
    ] {
        let (end, left, shown) = read(&hosting(Run::default()), &chunks, &end);
        assert!(left.is_empty() && !matches!(end, RoundEnd::Hosted(_)), "{end:?}");
        assert_eq!(shown, status);
    }
    let mut native = native_calls(&[("a", "mcp__look", "{}"), ("b", "f", "{}")]);
    native.pop();
    let (end, left, shown) = read(&hosting(crate::native::native()), &native, &cut());
    assert!(left.is_empty() && matches!(end, RoundEnd::Failed(_)));
    assert_eq!(shown, "failed(server_error): call f {}");
}

#[test]
fn a_response_that_ends_before_its_tools_were_run_has_failed() {
    let chunks = done(vec![calls(&[("a", "mcp__look", "{}")])], "tool_calls");
    let (_, _, shown) = read(&hosting(Run::default()), &chunks, &End::Eof);
    assert_eq!(shown, "failed(server_error): ");
}

/// Two rounds, the tool's item between them, and an upstream that begins its ids anew with each answer.
#[test]
fn rounds_run_on() {
    let run = hosting(Run::default());
    let (mut response, mut out) = (run.response(), Events::sse());
    response.open(&mut out);
    let rounds = [
        done(vec![text("Let me see."), calls(&[("call_0", "mcp__look", "{}")])], "tool_calls"),
        done(vec![text("There."), calls(&[("call_0", "f", "{}"), ("call_1", "f", "{}")])], "tool_calls"),
    ];
    let mut ends = Vec::new();
    for chunks in &rounds {
        let mut reader: Reader = run.reader();
        let over = chunks.iter().any(|chunk| reader.chunk(chunk.as_bytes(), &mut response, &mut out) == Flow::Over);
        assert!(over);
        let end = reader.end(End::Done, &mut response, &mut out);
        if let RoundEnd::Hosted(calls) = &end {
            show(&calls.iter().cloned().map(HeldCall::Hosted).collect::<Vec<_>>(), &mut response, &mut out);
        }
        ends.push(end);
    }
    assert_eq!(
        ends,
        [
            RoundEnd::Hosted(vec![HostedCall { call_id: "call_0".into(), ..hosted(&[("", "{}")]).remove(0) }]),
            RoundEnd::Completed
        ]
    );
    response.finish(ends.remove(1));
    let mut whole = Vec::new();
    response.object(1, true, &mut whole);
    response.terminal(&whole, &mut out);
    let stream = testkit::grammar::check(out.bytes()).unwrap();
    let output = stream.response["output"].as_array().unwrap();
    let types: Vec<&Value> = output.iter().map(|item| &item["type"]).collect();
    assert_eq!(types, ["message", "mcp_call", "message", "function_call", "function_call"]);
    assert_eq!(stream.response["usage"]["total_tokens"], 6);
    let first = output[3]["call_id"].as_str().unwrap();
    assert!(first.starts_with("call_") && first.len() > 20, "{first} was used in the round before");
    assert_eq!(output[4]["call_id"], "call_1");
}

/// An answer that is asked for again: what it said is forgotten, what it cost is not.
#[test]
fn an_earlier_try_is_paid_for_and_not_shown() {
    let run = Run::default();
    let (mut response, mut out) = (run.response(), Events::silent());
    response.open(&mut out);
    for said in ["a", "b"] {
        let mut reader = run.reader();
        for chunk in done(vec![text(said)], "stop") {
            let _ = reader.chunk(chunk.as_bytes(), &mut response, &mut out);
        }
        let end = reader.end(End::Done, &mut response, &mut out);
        response.finish(end);
        if said == "a" {
            response.discard();
            assert_eq!(response.status(), None);
        }
    }
    let mut whole = Vec::new();
    response.object(1, true, &mut whole);
    assert_eq!(short(&object(&whole)), "completed: \"b\"");
    assert_eq!(object(&whole)["usage"]["total_tokens"], 6);
}
