//! Parameters whose names a provider refuses: it knows them by others, and the client never sees those.

use std::sync::Arc;

use bridge::{AnswerDialect, End, Events, HeldCall, Hosting, Reader, ResponseWriter, RoundEnd, Setup};
use serde_json::{Value, json};
use testkit::messages::{check_for_model, check_request};
use wire::id::Ids;
use wire::json::{FromRaw, Raw};
use wire::responses::CreateResponse;

use super::{named, plan, plan_hosting, without_marks};
use crate::run::{MEND, Planned, TransparentSeal};

const OPUS: &str = "anthropic/claude-opus-5-5";

fn odd() -> Value {
    json!({"type": "object", "required": ["filter[id]", "plain"], "properties":
        {"filter[id]": {"type": "string", "description": "Which."}, "$top": {"type": "integer"}, "plain": {}}})
}

/// The stream of an answer that thinks and calls a tool with these pieces of arguments.
fn stream(name: &str, pieces: &[&str]) -> Vec<String> {
    let delta = |delta: Value| json!({"type": "content_block_delta", "index": 1, "delta": delta});
    let start = json!({"type": "tool_use", "id": "toolu_1", "name": name, "input": {}});
    let thought = json!({"type": "thinking", "thinking": "So.", "signature": "c2ln"});
    let mut events = vec![
        json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 5, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": thought}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": start}),
    ];
    events.extend(pieces.iter().map(|piece| delta(json!({"type": "input_json_delta", "partial_json": piece}))));
    events.extend([
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ]);
    events.iter().map(Value::to_string).collect()
}

/// The deltas of arguments, the items, and the calls that godex runs.
fn read(planned: &Planned, events: &[String]) -> (Vec<String>, Vec<Value>, Vec<String>) {
    let request = CreateResponse::from_raw(Raw::ours(r#"{"model":"m","input":"Hi"}"#)).unwrap();
    let mut response = ResponseWriter::new(Ids::new([7; 24]), 1_700_000_000, bridge::echo(&request).unwrap(), true);
    let dialect = Arc::new(AnswerDialect { family: "one".to_owned(), ..AnswerDialect::default() });
    let setup = Setup { dialect, seal: Arc::new(TransparentSeal), ..Setup::default() };
    let (mut reader, mut out) = (Reader::new(planned.context.clone(), setup), Events::sse());
    for event in events {
        let _ = reader.chunk(event.as_bytes(), &mut response, &mut out);
    }
    let end = reader.end(End::Done, &mut response, &mut out);
    let hosted = match &end {
        RoundEnd::Hosted(calls) => calls.iter().map(|call| call.arguments.clone()).collect(),
        _ => {
            let held = reader.take_hosted().into_iter();
            held.filter_map(|held| if let HeldCall::Hosted(call) = held { Some(call.arguments) } else { None })
                .collect()
        }
    };
    response.finish(end);
    let mut object = Vec::new();
    response.object(1_700_000_001, false, &mut object);
    let object: Value = serde_json::from_slice(&object).unwrap();
    let sent = String::from_utf8(out.take().clone()).unwrap();
    let data = sent.lines().filter_map(|line| line.strip_prefix("data: "));
    let events = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    let deltas = events.filter(|event| event["type"] == "response.function_call_arguments.delta");
    let deltas = deltas.map(|event| event["delta"].as_str().unwrap().to_owned()).collect();
    (deltas, object["output"].as_array().unwrap().clone(), hosted)
}

#[test]
fn the_client_knows_its_own_names() {
    let tools = json!([{"type": "function", "name": "odd", "parameters": odd()}, {"type": "function", "name": "even",
        "parameters": {"type": "object", "properties": {"filter_id_": {}}}}]);
    let request = |input: Value| json!({"model": "m", "input": input, "tools": tools});
    let hello = json!({"role": "user", "content": "Hi"});
    let first = plan(&request(json!([hello])), &named(OPUS), MEND).unwrap();
    assert_eq!(check_request(&first.body), Ok(()));
    assert_eq!(check_for_model("claude-opus-5-5", &first.body), Ok(()));
    let schema = &first.body["tools"][0]["input_schema"];
    assert_eq!(schema["required"], json!(["filter_id_", "plain"]));
    let about = "Which. (The tool itself calls it `filter[id]`.)";
    assert_eq!(schema["properties"]["filter_id_"], json!({"type": "string", "description": about}));
    assert!(first.has_note("bridge.tool.degraded", "tools[0]"), "{:?}", first.notes);
    let pieces = [r#"{"filter_id_": "#, r#""a", "_top":1"#, r#".0, "plain": {"_top": 2}}"#];
    for (name, expected, streams) in [
        ("odd", r#"{"filter[id]": "a", "$top":1.0, "plain": {"_top": 2}}"#, false),
        ("even", r#"{"filter_id_": "a", "_top":1.0, "plain": {"_top": 2}}"#, true),
    ] {
        let (deltas, items, _) = read(&first, &stream(name, &pieces));
        let call = items.iter().find(|item| item["type"] == "function_call").unwrap();
        assert_eq!((&call["name"], &call["arguments"]), (&json!(name), &json!(expected)));
        assert_eq!((deltas.concat().as_str(), deltas.len() > 1), (expected, streams));
        // It goes back as the model wrote it: what it thought before is signed.
        let output = json!({"type": "function_call_output", "call_id": call["call_id"], "output": "1"});
        let input = [vec![hello.clone()], items, vec![output]].concat();
        let second = plan(&request(json!(input)), &named(OPUS), MEND).unwrap();
        let sent = String::from_utf8(second.bytes.clone()).unwrap();
        assert!(sent.contains(&pieces.concat()), "{sent}");
        assert_eq!(check_request(&second.body), Ok(()));
        let blocks = without_marks(&second.body["messages"][1]["content"]);
        assert_eq!(blocks[0]["signature"], "c2ln", "{blocks}");
        // The tools are the same bytes each time.
        assert_eq!(second.body["tools"], first.body["tools"]);
    }
    // What breaks off stays what it is.
    let (_, items, _) = read(&first, &stream("odd", &pieces[..1])[..5]);
    assert_eq!(items.last().unwrap()["arguments"], pieces[0]);
}

#[test]
fn servers_that_godex_asks_know_theirs() {
    let list = json!({"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": [
        {"name": "look", "input_schema": odd()}]});
    let request = |input: Value| {
        let tools =
            json!([{"type": "mcp", "server_label": "s", "server_url": "https://x.test", "require_approval": "never"}]);
        json!({"model": "m", "input": input, "tools": tools}).to_string()
    };
    let planned = |input: Value| {
        let hosting = Hosting { mcp: true, ..Hosting::default() };
        plan_hosting(&request(input), &named(OPUS), MEND, &TransparentSeal, hosting).unwrap().0
    };
    let hello = json!({"role": "user", "content": "Hi"});
    let first = planned(json!([hello, list]));
    assert_eq!(check_for_model("claude-opus-5-5", &first.body), Ok(()), "{}", first.body);
    let name = first.body["tools"][0]["name"].as_str().unwrap();
    let (_, _, hosted) = read(&first, &stream(name, &[r#"{"_top": 1}"#]));
    assert_eq!(hosted, [r#"{"$top": 1}"#]);
    let call = json!({"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "look",
        "arguments": hosted[0], "output": "x"});
    // One that was not made is told under the provider's name.
    let skipped = json!({"type": "function_call", "call_id": "c", "name": name, "arguments": hosted[0]});
    let output = json!({"type": "function_call_output", "call_id": "c", "output": "no"});
    let second = planned(json!([hello, list, call, skipped, output]));
    let sent = String::from_utf8(second.bytes).unwrap();
    assert_eq!(sent.matches(r#""input":{"_top": 1}"#).count(), 2, "{sent}");
}
