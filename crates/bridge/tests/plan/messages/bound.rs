//! Whole conversations: what was thought comes back after exactly what it was signed after, whatever stood there, and beside
//! what else was said in its answer.

use std::sync::Arc;

use bridge::{
    AnswerDialect, Dialect, End, Events, HeldCall, Hosted, HostedEnd, HostedStart, Hosting, Reader, Replay,
    ResponseWriter, Round, RoundEnd, SealedSummary, SearchFunctions, Setup,
};
use serde_json::{Value, json};
use testkit::messages::check_request;
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

/// The items of an answer of these blocks. What godex runs of it finds something.
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
    let held = match &end {
        RoundEnd::Hosted(calls) => calls.iter().cloned().map(HeldCall::Hosted).collect(),
        _ => reader.take_hosted(),
    };
    let mut told = Vec::new();
    for call in held {
        match call {
            HeldCall::Hosted(call) => {
                let item = response.open_hosted(HostedStart::WebSearch, &mut out);
                let action = json!({"type": "search", "query": "q", "queries": ["q"]}).to_string();
                response.close_hosted(&item, &HostedEnd::Searched { action }, &mut out);
                told.push((item.id().to_string(), call.call_id));
            }
            HeldCall::Client(call) => response.client_call(&call, &mut out),
        }
    }
    response.finish(end);
    let mut object = Vec::new();
    response.object(1_700_000_001, false, &mut object);
    let mut items = serde_json::from_slice::<Value>(&object).unwrap()["output"].as_array().unwrap().clone();
    for (id, call_id) in told {
        let item = items.iter_mut().find(|item| item["id"] == id).unwrap();
        item["godex_output"] = json!({"call_id": call_id, "output": "Found."});
    }
    items
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

/// The outputs of all calls among these.
fn outputs(items: &[Value]) -> Vec<Value> {
    let calls = items.iter().filter(|item| item["type"] == "function_call");
    calls.map(|call| output(call["call_id"].as_str().unwrap())).collect()
}

/// An answer's items as some clients give them back: calls first.
fn calls_first(items: Vec<Value>) -> Vec<Value> {
    let (calls, others): (Vec<Value>, Vec<Value>) = items.into_iter().partition(|item| item["type"] == "function_call");
    [calls, others].concat()
}

/// What the provider searched, and what it found.
fn search() -> [Value; 2] {
    [
        json!({"type": "server_tool_use", "id": "u", "name": "web_search", "input": {"query": "q"}}),
        json!({"type": "web_search_tool_result", "tool_use_id": "u", "content": []}),
    ]
}

/// A dialect of a provider that searches by itself.
fn searching(name: &str) -> Dialect {
    let mut dialect = named(name);
    let native = r#"{"type":"web_search_20250305","name":"web_search"}"#;
    dialect.request.tools.native = vec![(Hosted::WebSearch, native.to_owned())];
    dialect
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

/// A provider that does not take its thoughts any more is asked without them. What it thinks then is signed without them, so
/// later turns go on from there, and need not be asked twice.
#[test]
fn after_thoughts_that_did_not_fit_new_ones_return() {
    let takes = named(OPUS);
    let mut refuses = named(OPUS);
    refuses.request.reasoning.replay = Replay::Never;
    let auto = json!("auto");
    let (hi, more) = (said("user", "Hi"), said("user", "And?"));
    let first = plan(&request(std::slice::from_ref(&hi), &auto), &takes, false);
    let items = [vec![hi], answered(&first, &[thought("1"), used("x")], "tool_use"), vec![output("x")]].concat();
    // Refused as they were, and asked again without; then twice as ever.
    let second = plan(&request(&items, &auto), &refuses, false);
    assert!(!second.body.to_string().contains("signature"), "{}", second.body);
    let items = [items, answered(&second, &[thought("2"), text("So.")], "end_turn"), vec![more.clone()]].concat();
    let third = plan(&request(&items, &auto), &takes, false);
    let items = [items, answered(&third, &[thought("3"), text("Well.")], "end_turn"), vec![more]].concat();
    let fourth = plan(&request(&items, &auto), &takes, false);
    for (before, after) in [(&second, &third), (&third, &fourth)] {
        let (before, after) = (messages(before), messages(after));
        assert_eq!(after[..before.len()], before, "{after:#?}");
    }
    for (planned, returned) in [(&third, &["2"][..]), (&fourth, &["2", "3"])] {
        let blocks = messages(planned)
            .into_iter()
            .flat_map(|message| message["content"].as_array().cloned().unwrap_or_default());
        let thoughts: Vec<Value> =
            blocks.filter(|block| block["type"] == "thinking").map(|block| block["thinking"].clone()).collect();
        assert_eq!(thoughts, returned);
    }
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

/// A client that gives calls back before what led to them still gets its answers to them, and thoughts their places.
#[test]
fn items_in_another_order_are_no_other_answers() {
    let hi = || said("user", "Hi");
    let prompts = [
        vec![hi()],
        vec![hi(), said("assistant", "Hm.")],
        vec![hi(), call("x")],
        vec![hi(), call("x"), said("assistant", "Hm.")],
        vec![hi(), call("z"), output("z")],
    ];
    let answers = [
        vec![thought("1"), used("y")],
        vec![thought("1"), text("So."), used("y")],
        vec![text("So."), thought("1"), used("y")],
        vec![thought("1"), text("So."), thought("2"), used("y")],
        vec![thought("1"), used("y"), thought("2"), used("w")],
        vec![used("y"), thought("1"), used("w")],
    ];
    let result =
        |output: &Value| json!({"type": "tool_result", "tool_use_id": output["call_id"], "content": [text("Real.")]});
    for dialect in [OPUS, SONNET, OTHER].map(named) {
        for (input, choice) in prompts.iter().flat_map(|input| [(input, "auto"), (input, "required")]) {
            for blocks in &answers {
                let first = plan(&request(input, &json!(choice)), &dialect, false);
                let items = calls_first(answered(&first, blocks, "tool_use"));
                let outputs = outputs(&items);
                let items = [&input[..], &items, &outputs].concat();
                let before = messages(&first);
                let after = messages(&plan(&request(&items, &json!("auto")), &dialect, false));
                assert_eq!(before, after[..before.len()], "{input:?} {choice} {blocks:?}");
                let results: Vec<Value> = outputs.iter().map(result).collect();
                let expected =
                    [json!({"role": "assistant", "content": blocks}), json!({"role": "user", "content": results})];
                assert_eq!(after[before.len()..], expected, "{input:?} {choice}");
            }
        }
    }
}

/// The item of such a call always has an `env`, or what it was not given as null. The model that wrote none of that has
/// thought on after its own words.
#[test]
fn a_shell_call_returns_as_the_model_wrote_it() {
    let hello = [said("user", "Hi")];
    for (name, input, always) in [
        ("local_shell", json!({"command": ["ls"]}), "env"),
        ("local_shell", json!({"command": ["ls"], "env": {"A": "b"}}), "env"),
        ("shell", json!({"commands": ["ls"]}), "timeout_ms"),
        ("shell", json!({"commands": ["ls", "pwd"], "max_output_length": 9}), "timeout_ms"),
        ("shell", json!({"commands": ["ls"], "timeout_ms": 5, "max_output_length": 9}), "max_output_length"),
    ] {
        let request = |items: &[Value]| json!({"model": "m", "input": items, "tools": [{"type": name}]});
        let first = plan(&request(&hello), &named(OPUS), false);
        let used = |id: &str| json!({"type": "tool_use", "id": id, "name": name, "input": input});
        let blocks = [thought("1"), used("x"), thought("2"), used("y")];
        let items = answered(&first, &blocks, "tool_use");
        assert!(items.iter().any(|item| item["action"].get(always).is_some()), "{items:?}");
        let kind = format!("{name}_call_output");
        let outputs = ["x", "y"].map(|id| json!({"type": kind, "id": id, "call_id": id, "output": "a"}));
        let second = plan(&request(&[&hello[..], &items, &outputs].concat()), &named(OPUS), false);
        assert_eq!(messages(&second)[1], json!({"role": "assistant", "content": blocks}), "{items:?}");
    }
}

fn summary(text: &str, kept: &[Value]) -> Value {
    let (text, kept) = (text.to_owned(), json!(kept).to_string());
    let summary =
        SealedSummary { text, stands_for_all: true, after: String::new(), instructions: "[]".to_owned(), kept };
    let sealed = String::from_utf8(summary.encode()).unwrap();
    json!({"type": "compaction", "encrypted_content": format!("glass:{sealed}")})
}

/// A summary takes the place of what was before: thoughts that were signed after that are good no more, those that were
/// signed after the summary are.
#[test]
fn thoughts_from_before_a_summary_are_left_out() {
    let opus = named(OPUS);
    let sent = |items: &[Value]| plan(&request(items, &json!("auto")), &opus, false);
    let thoughts = |planned: &Planned| {
        let all = messages(planned);
        let blocks = all.iter().flat_map(|message| message["content"].as_array().cloned().unwrap_or_default());
        let words = blocks.filter_map(|block| block["thinking"].as_str().map(str::to_owned));
        words.collect::<Vec<_>>().join(" ")
    };
    let hello = [said("user", "Hi")];
    let old = answered(&sent(&hello), &[thought("a"), used("x"), thought("b"), used("y")], "tool_use");
    let old = [&hello[..], &old, &outputs(&old)].concat();
    assert_eq!(thoughts(&sent(&old)), "a b");
    // What a summary keeps word for word was thought before it; so is what a client puts after it.
    for start in [vec![summary("They met.", &old)], [vec![summary("They met.", &[])], old.clone()].concat()] {
        let compacted = sent(&start);
        assert_eq!(thoughts(&compacted), "", "{start:?}");
        assert!(compacted.notes.iter().any(|note| note.code.name() == "bridge.reasoning.ignored"));
        // What is thought now stays, and what was sent stays before it.
        let new = answered(&compacted, &[thought("c"), used("z"), thought("d"), used("w")], "tool_use");
        let on = [&start[..], &new, &outputs(&new)].concat();
        let second = sent(&on);
        assert_eq!(thoughts(&second), "c d", "{on:?}");
        assert!(messages(&second).starts_with(&messages(&compacted)), "{on:?}");
        let newer = answered(&second, &[thought("e"), text("So.")], "end_turn");
        let on = [&on[..], &newer, &[said("user", "More")]].concat();
        assert_eq!(thoughts(&sent(&on)), "c d e");
        // The next summary ends that, too; and so does a client that goes without.
        assert_eq!(thoughts(&sent(&[&on[..], &[summary("They met again.", &new)], &newer].concat())), "");
        assert_eq!(thoughts(&sent(&[&hello[..], &newer, &[said("user", "More")]].concat())), "");
    }
}

/// A request with a search that godex runs.
fn plan_searching(items: &[Value], round: Round) -> Planned {
    let mut dialect = named(OPUS);
    dialect.request.tools.native.clear();
    let tools = json!([{"type": "function", "name": "f"}, {"type": "web_search"}]);
    let request = json!({"model": "m", "input": items, "tools": tools});
    let hosting = Hosting { web_search: Some(SearchFunctions { pages: false }), round, ..Hosting::default() };
    plan_hosting(&request.to_string(), &dialect, MEND, &TransparentSeal, hosting).unwrap().0
}

fn searched(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "web_search", "input": {"queries": ["q"]}})
}

/// Calls that godex runs are items only after the whole answer. What was thought after them still is.
#[test]
fn thoughts_keep_their_places_among_calls_that_are_run_here() {
    let input = [said("user", "Hi")];
    for blocks in [
        vec![thought("1"), searched("s"), thought("2"), used("y")],
        vec![thought("1"), used("y"), thought("2"), searched("s"), thought("3"), used("w")],
        vec![thought("1"), searched("s"), thought("2"), searched("t")],
        vec![thought("1"), used("y"), searched("s"), thought("2"), searched("t")],
        vec![searched("s"), thought("1"), used("y")],
    ] {
        let first = plan_searching(&input, Round::First);
        let items = answered(&first, &blocks, "tool_use");
        let items = [&input[..], &items, &outputs(&items)].concat();
        let after = messages(&plan_searching(&items, Round::Later));
        assert_eq!(after.len(), 3, "{after:?}");
        assert_eq!(after[1], json!({"role": "assistant", "content": blocks}));
    }
}

/// The same client gives a call back before what was searched before it: its output is no late one.
#[test]
fn a_call_after_a_search_that_is_run_here_is_answered() {
    let input = [said("user", "Hi")];
    let first = plan_searching(&input, Round::First);
    let items = answered(&first, &[thought("1"), searched("s")], "tool_use");
    let second = plan_searching(&[&input[..], &items].concat(), Round::Later);
    let mut items = [items, answered(&second, &[thought("2"), used("y")], "tool_use")].concat();
    for item in &mut items {
        item.as_object_mut().unwrap().remove("godex_output");
    }
    let items = [&input[..], &calls_first(items), &[output("y")]].concat();
    let after = json!(messages(&plan_searching(&items, Round::First))).to_string();
    assert!(after.contains("Real.") && !after.contains("interrupted") && !after.contains("Late result"), "{after}");
}

/// Models with a budget insist on a thought before calls; what the provider did with tools of its own is none.
#[test]
fn what_the_provider_did_is_no_thought() {
    let dialect = searching("anthropic/claude-haiku-4-5");
    let tools = json!([{"type": "function", "name": "f"}, {"type": "web_search"}]);
    let request = |items: &[Value], effort: &str| json!({"model": "m", "input": items, "tools": tools, "reasoning": {"effort": effort}, "max_output_tokens": 40_000});
    let input = [said("user", "Hi")];
    for (thoughts, kind) in [(vec![], "disabled"), (vec![thought("1")], "enabled")] {
        let first = plan(&request(&input, "none"), &dialect, false);
        let blocks = [&thoughts[..], &search(), &[used("y")]].concat();
        let items = [&input[..], &answered(&first, &blocks, "tool_use"), &[output("y")]].concat();
        let second = plan(&request(&items, "high"), &dialect, false);
        assert_eq!(messages(&second)[1], json!({"role": "assistant", "content": blocks}));
        assert_eq!(second.body["thinking"]["type"], kind);
    }
}

/// A client that turns the search off later: what was searched returns as it came, so that the thoughts after it are good,
/// and is not told once more. Where it is lost, that there was a search is told.
#[test]
fn what_the_provider_searched_is_told_once() {
    let dialect = searching(OPUS);
    let request = |items: &[Value], tools: Value| json!({"model": "m", "input": items, "tools": tools});
    let input = [said("user", "Hi")];
    let page = [
        json!({"type": "server_tool_use", "id": "v", "name": "web_fetch", "input": {"url": "https://a.b/"}}),
        json!({"type": "web_fetch_tool_result", "tool_use_id": "v", "content": {}}),
    ];
    let unfinished = json!({"type": "server_tool_use", "id": "w", "name": "web_search", "input": {"query": "other"}});
    let more = [said("user", "And?")];
    for (blocks, returned) in [
        ([&[thought("1")][..], &search(), &[text("So.")]].concat(), None),
        ([&search()[..], &[thought("1"), text("So.")]].concat(), None),
        ([&[thought("1")][..], &search(), &[thought("2")], &page, &[text("So.")]].concat(), None),
        ([&[thought("1")][..], &search(), &[text("So."), used("y")]].concat(), None),
        // What has no result cannot return, and is told.
        ([&[thought("1"), unfinished][..], &search(), &[text("So.")]].concat(), Some("other")),
    ] {
        let first = plan(&request(&input, json!([{"type": "web_search"}])), &dialect, false);
        let items = answered(&first, &blocks, "end_turn");
        let outputs = outputs(&items);
        let mut moved = items.clone();
        moved.sort_by_key(|item| item["type"] != "web_search_call");
        for items in [&items, &moved] {
            let items = [&input[..], items, &outputs, &more].concat();
            for tools in [json!([{"type": "web_search"}]), json!([]), json!([{"type": "function", "name": "f"}])] {
                let has_search = tools[0]["type"] == "web_search";
                let second = plan(&request(&items, tools), &dialect, false);
                assert_eq!(check_request(&second.body), Ok(()), "{}", second.body);
                let searches = told_searches(&second);
                let told = returned.filter(|_| !has_search);
                assert_eq!(searches.len(), usize::from(told.is_some()), "{}", second.body);
                assert!(told.is_none_or(|query| searches[0].to_string().contains(query)), "{searches:?}");
                if told.is_none() && returned.is_none() {
                    assert_eq!(messages(&second)[1]["content"], json!(blocks), "{items:?}");
                }
            }
        }
        // Another family's thoughts do not return, nor do the blocks among them.
        let stranger = Dialect { family: "two".to_owned(), ..dialect.clone() };
        let items = [&input[..], &items, &outputs, &more].concat();
        let told = plan(&request(&items, json!([])), &stranger, false);
        assert!(
            !told_searches(&told).is_empty() && !told.body.to_string().contains("server_tool_use"),
            "{}",
            told.body
        );
    }
}

/// The searches that are told as calls.
fn told_searches(plan: &Planned) -> Vec<Value> {
    let messages = messages(plan);
    let blocks = messages.iter().flat_map(|message| message["content"].as_array().into_iter().flatten());
    blocks.filter(|block| block["type"] == "tool_use" && block["name"] == "web_search").cloned().collect()
}

/// A thought at the end of what the provider did cannot be sent where the user says nothing, so it is not there later.
#[test]
fn a_thought_that_ends_a_pause_is_left_out_for_good() {
    let dialect = searching(OPUS);
    let request = |items: &[Value]| json!({"model": "m", "input": items, "tools": [{"type": "web_search"}]});
    let input = [said("user", "Hi")];
    let first = plan(&request(&input), &dialect, false);
    let blocks = [&[text("One.")][..], &search(), &[thought("1")]].concat();
    let items = [&input[..], &answered(&first, &blocks, "pause_turn")].concat();
    let second = plan(&request(&items), &dialect, false);
    let more = [thought("2"), text("Two.")];
    let items = [&items[..], &answered(&second, &more, "end_turn"), &[said("user", "And?")]].concat();
    let (before, after) = (messages(&second), messages(&plan(&request(&items), &dialect, false)));
    assert_eq!(before[1], json!({"role": "assistant", "content": blocks[..3]}));
    assert_eq!(before, after[..before.len()]);
    assert_eq!(after[before.len()], json!({"role": "assistant", "content": more}));
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
    let ([search, found], dialect) = (search(), searching(OPUS));
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
