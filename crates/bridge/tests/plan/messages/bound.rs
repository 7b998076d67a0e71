//! Whole conversations: what was thought comes back after exactly what it was signed after, whatever stood there, and beside
//! what else was said in its answer.

use std::sync::Arc;

use bridge::{AnswerDialect, Dialect, End, Events, Hosted, Hosting, Reader, ResponseWriter, Setup};
use serde_json::{Value, json};
use wire::id::Ids;
use wire::json::{FromRaw, Raw};
use wire::responses::CreateResponse;

use super::{named, plan_hosting, without_marks};
use crate::run::{MEND, Planned, TransparentSeal};

const OPUS: &str = "anthropic/claude-opus-5-5";
const SONNET: &str = "anthropic/claude-sonnet-5-5";
const OTHER: &str = "messages-compatible/m";

fn plan(request: &Value, dialect: &Dialect, resumes: bool) -> Planned {
    let hosting = Hosting { resumes, ..Hosting::default() };
    plan_hosting(&request.to_string(), dialect, MEND, &TransparentSeal, hosting).unwrap().0
}

fn messages(planned: &Planned) -> Vec<Value> {
    without_marks(&planned.body["messages"]).as_array().unwrap().clone()
}

/// The items of an answer of these blocks.
fn answered(planned: &Planned, blocks: &[Value], reason: &str) -> Vec<Value> {
    let request = CreateResponse::from_raw(Raw::ours(r#"{"model":"m","input":"Hi"}"#)).unwrap();
    let ids = Ids::new([7; 24]);
    let mut response = ResponseWriter::new(ids, 1_700_000_000, bridge::echo(&request).unwrap(), true);
    let dialect = Arc::new(AnswerDialect { family: "one".to_owned(), ..AnswerDialect::default() });
    let setup = Setup { dialect, seal: Arc::new(TransparentSeal), ..Setup::default() };
    let (mut reader, mut out) = (Reader::new(planned.context.clone(), setup), Events::silent());
    let usage = json!({"input_tokens": 5, "output_tokens": 5});
    let whole = json!({"type": "message", "id": "m", "content": blocks, "stop_reason": reason, "usage": usage});
    let _ = reader.chunk(whole.to_string().as_bytes(), &mut response, &mut out);
    let end = reader.end(End::Done, &mut response, &mut out);
    response.finish(end);
    let mut object = Vec::new();
    response.object(1_700_000_001, false, &mut object);
    serde_json::from_slice::<Value>(&object).unwrap()["output"].as_array().unwrap().clone()
}

fn thought(text: &str) -> Value {
    json!({"type": "thinking", "thinking": text, "signature": "c2ln"})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn used(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "f", "input": {}})
}

fn said(role: &str, text: &str) -> Value {
    json!({"role": role, "content": text})
}

fn call(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"})
}

fn output(id: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": "Real."})
}

fn request(input: &[Value], choice: &Value) -> Value {
    json!({"model": "m", "input": input, "tools": [{"type": "function", "name": "f"}], "tool_choice": choice})
}

/// A request with this choice and its answer; and the next request, in which nothing is demanded.
fn two_turns(dialect: &str, input: &[Value], choice: &Value, blocks: &[Value], more: &[Value]) -> [Vec<Value>; 2] {
    let dialect = named(dialect);
    let first = plan(&request(input, choice), &dialect, false);
    let items = [input, &answered(&first, blocks, "end_turn"), more].concat();
    let second = plan(&request(&items, &json!("auto")), &dialect, false);
    [messages(&first), messages(&second)]
}

#[test]
fn thoughts_return_after_what_they_were_signed_after() {
    let (hi, more) = (|| said("user", "Hi"), || said("user", "And?"));
    let lost = json!({"type": "reasoning", "summary": [], "encrypted_content": "glass:{\"v\":1,\"family\":\"one\",\"text\":\"\",\"bag\":[{\"type\":\"thinking\",\"thinking\":\"x\",\"signature\":\"c2ln\"}]}"});
    let plainly = vec![thought("1"), text("So.")];
    let late = vec![text("First."), thought("1"), text("So."), thought("2"), text("Then.")];
    let calls = vec![thought("1"), used("y")];
    let auto = json!("auto");
    let required = json!("required");
    let cases = [
        // The user has nothing to say.
        (vec![hi(), said("assistant", "Hm.")], &auto, plainly.clone(), vec![more()]),
        (vec![hi(), said("assistant", "Hm.")], &auto, late.clone(), vec![more()]),
        (vec![said("assistant", "Hm."), said("developer", "Go on.")], &auto, plainly.clone(), vec![more()]),
        (vec![hi(), said("assistant", "Hm.")], &auto, calls.clone(), vec![output("y")]),
        (vec![hi(), said("assistant", "Hm."), lost.clone()], &auto, plainly.clone(), vec![more()]),
        (vec![hi(), lost], &auto, plainly.clone(), vec![more()]),
        // Nobody has answered the call, and then somebody has.
        (vec![hi(), call("x")], &auto, plainly.clone(), vec![more()]),
        (vec![hi(), call("x"), said("assistant", "Hm.")], &auto, late.clone(), vec![more()]),
        (vec![hi(), call("x")], &auto, plainly.clone(), vec![output("x"), more()]),
        (vec![hi(), call("x")], &auto, calls.clone(), vec![output("x"), output("y")]),
        (vec![hi(), call("x"), call("z"), output("z")], &auto, calls.clone(), vec![output("x"), output("y")]),
        // Blocks that follow each other.
        (
            vec![hi()],
            &auto,
            vec![thought("1"), text("a b"), text("\u{e9}\u{1f600}\n"), text("c"), thought("2"), text("d"), text("e")],
            vec![more()],
        ),
        (vec![hi()], &auto, vec![text("a"), text("b"), thought("1"), used("y")], vec![output("y")]),
        // A call that can only be asked for.
        (vec![hi()], &required, plainly.clone(), vec![more()]),
        (vec![hi()], &required, late.clone(), vec![more()]),
        (vec![hi()], &required, calls.clone(), vec![output("y")]),
        (vec![hi(), said("assistant", "Hm.")], &required, calls.clone(), vec![output("y")]),
        (vec![hi(), call("z"), output("z")], &required, calls.clone(), vec![output("y")]),
        (vec![said("developer", "Go on.")], &required, calls.clone(), vec![output("y")]),
    ];
    for (input, choice, blocks, more) in cases {
        for dialect in [OPUS, SONNET, OTHER] {
            let [before, after] = two_turns(dialect, &input, choice, &blocks, &more);
            assert_eq!(before, after[..before.len()], "{dialect} {input:?} {choice}");
            // What comes after the last thought is bound to nothing.
            let signed = blocks.iter().rposition(|block| block["type"] == "thinking").unwrap() + 1;
            let shown = after[before.len()]["content"].as_array().unwrap();
            assert_eq!(after[before.len()]["role"], "assistant");
            assert_eq!(shown[..signed], blocks[..signed], "{dialect} {input:?}");
            // What was late is told, and the placeholder stays.
            let is_late = more.contains(&output("x"));
            assert_eq!(json!(after).to_string().contains("[Late result of the call x]"), is_late, "{after:?}");
        }
    }
}

/// A client that gives calls back before what led to them still gets its answers to them.
#[test]
fn items_in_another_order_are_no_other_answers() {
    let dialect = named(OPUS);
    let input = [said("user", "Hi")];
    let first = plan(&request(&input, &json!("required")), &dialect, false);
    let mut items = answered(&first, &[thought("1"), used("y")], "tool_use");
    items.reverse();
    let items = [&input[..], &items, &[output("y")]].concat();
    let after = messages(&plan(&request(&items, &json!("auto")), &dialect, false));
    let result = json!({"type": "tool_result", "tool_use_id": "y", "content": [text("Real.")]});
    assert_eq!(
        after[1..],
        [
            json!({"role": "assistant", "content": [thought("1"), used("y")]}),
            json!({"role": "user", "content": [result]})
        ]
    );
}

#[test]
fn what_is_demanded_is_said_where_it_can_only_be_said() {
    let words = |choice: &Value, dialect: &str| {
        let body = plan(&request(&[said("user", "Hi")], choice), &named(dialect), false).body;
        let last = body["messages"].as_array().unwrap().last().unwrap().clone();
        (last["role"].clone(), last["content"].as_array().unwrap().last().unwrap()["text"].as_str().unwrap().to_owned())
    };
    let any = "Answer this with a call of one of your tools: nothing else counts as an answer.".to_owned();
    let one = "Answer this with a call of the tool f: nothing else counts as an answer.".to_owned();
    let (required, function) = (json!("required"), json!({"type": "function", "name": "f"}));
    assert_eq!(words(&required, OPUS), (json!("system"), any));
    assert_eq!(words(&function, OPUS), (json!("system"), one));
    assert_eq!(words(&json!("auto"), OPUS), (json!("user"), "Hi".to_owned()));
    // It can be made to.
    assert_eq!(words(&required, "anthropic/claude-sonnet-5"), (json!("user"), "Hi".to_owned()));
}

/// An answer that paused is resent as it was, and goes on in the same message.
#[test]
fn a_pause_is_no_turn() {
    let search = json!({"type": "server_tool_use", "id": "u", "name": "web_search", "input": {"query": "q"}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "u", "content": []});
    let mut dialect = named(OPUS);
    let native = r#"{"type":"web_search_20250305","name":"web_search"}"#;
    dialect.request.tools.native = vec![(Hosted::WebSearch, native.to_owned())];
    let request = |items: &[Value]| json!({"model": "m", "input": items, "tools": [{"type": "web_search"}]});
    let input = [said("user", "Hi")];
    for paused in [
        vec![text("One.")],
        vec![thought("1"), text("One.")],
        vec![thought("1")],
        vec![thought("1"), search.clone(), found.clone()],
        vec![thought("1"), search, found, text("One.")],
        vec![text("One."), thought("1")],
    ] {
        for more in [vec![thought("2"), text("Two.")], vec![text("Two."), thought("2"), text("Three.")]] {
            let first = plan(&request(&input), &dialect, false);
            let items = [&input[..], &answered(&first, &paused, "pause_turn")].concat();
            let resumed = plan(&request(&items), &dialect, true);
            let mut expected = messages(&first);
            expected.push(json!({"role": "assistant", "content": paused}));
            assert_eq!(messages(&resumed), expected, "{paused:?}");
            let items = [&items[..], &answered(&resumed, &more, "end_turn"), &[said("user", "And?")]].concat();
            let after = messages(&plan(&request(&items), &dialect, false));
            let whole = [&paused[..], &more].concat();
            assert_eq!(after[1], json!({"role": "assistant", "content": whole}), "{paused:?} {more:?}");
            assert_eq!(after[2..], [json!({"role": "user", "content": [text("And?")]})]);
        }
    }
}
