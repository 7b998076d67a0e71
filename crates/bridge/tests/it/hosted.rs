//! Calls of tools that godex runs: they are never shown, and the answer's end says that they are to be run.

use bridge::{End, Events, Failure, FailureClass, Flow, HeldCall, HostedCall, OfferedTool, Reader, RoundEnd, ToolKind};
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
    let output: Vec<Value> = list.iter().map(item).collect();
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

/// How the answer ends, the hosted calls that are left to take, and the response in short.
fn read(run: &Run, chunks: &[String], end: End) -> (RoundEnd, Vec<HostedCall>, String) {
    let mut turn = run.start(Events::sse());
    let over = chunks.iter().any(|chunk| turn.chunk(chunk.as_bytes()) == Flow::Over);
    let end = turn.reader.end(if over { End::Done } else { end }, &mut turn.response, &mut turn.out);
    let left = turn.reader.take_hosted().into_iter();
    let left = left.filter_map(|call| if let HeldCall::Hosted(call) = call { Some(call) } else { None }).collect();
    turn.response.finish(end.clone());
    let response = object(&turn.terminal());
    testkit::grammar::check(turn.out.bytes()).unwrap();
    (end, left, short(&response))
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
    let (end, left, _) = read(&hosting(Run::default()), &chat, End::Eof);
    assert_eq!(end, RoundEnd::Hosted(hosted(&[("a", "{\"q\":1}"), ("b", "{}"), ("c", "{\"q\":2}")])));
    assert!(left.is_empty());
    let native = native_calls(&[("a", "mcp__look", "{\"q\":1}"), ("b", "mcp__look", "")]);
    let (end, left, _) = read(&hosting(crate::native::native()), &native, End::Eof);
    assert_eq!(end, RoundEnd::Hosted(hosted(&[("a", "{\"q\":1}"), ("b", "{}")])));
    assert!(left.is_empty());
}

/// The client must act, so the response is complete; what godex can do of it, it does.
#[test]
fn beside_calls_of_the_client_they_are_left_to_be_run() {
    let list = [("a", "mcp__look", "{\"q\":1}"), ("b", "f", "{}")];
    for (run, chunks) in
        [(Run::default(), done(vec![calls(&list)], "tool_calls")), (crate::native::native(), native_calls(&list))]
    {
        let (end, left, shown) = read(&hosting(run), &chunks, End::Eof);
        assert_eq!((end, left), (RoundEnd::Completed, hosted(&[("a", "{\"q\":1}")])));
        assert_eq!(shown, "completed: call f {}");
    }
}

#[test]
fn what_broke_off_is_not_run() {
    let whole = calls(&[("a", "mcp__look", "{\"q\":1}"), ("b", "mcp__look", "{\"q\":")]);
    let cut = End::Failed(Failure::new(FailureClass::Truncated, "cut"));
    for (chunks, end, status) in [
        (done(vec![whole.clone()], "length"), End::Eof, "incomplete(max_output_tokens): "),
        (vec![whole.clone()], cut, "failed(server_error): "),
        (vec![whole], End::Eof, "failed(server_error): "),
    ] {
        let (end, left, shown) = read(&hosting(Run::default()), &chunks, end);
        assert!(left.is_empty() && !matches!(end, RoundEnd::Hosted(_)), "{end:?}");
        assert_eq!(shown, status);
    }
}

#[test]
fn a_response_that_ends_before_its_tools_were_run_has_failed() {
    let chunks = done(vec![calls(&[("a", "mcp__look", "{}")])], "tool_calls");
    let (_, _, shown) = read(&hosting(Run::default()), &chunks, End::Eof);
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
        if matches!(end, RoundEnd::Hosted(_)) {
            let id = response.make_id(wire::id::IdKind::Item);
            let item = |status: &str| json!({"id": id.as_str(), "type": "mcp_call", "status": status}).to_string();
            response.item(item("in_progress").as_bytes(), item("completed").as_bytes(), &mut out);
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
