//! Any events, sane and insane, give a lawful stream, and the same object without one.

use bridge::{AnswerWire, End, Failure, FailureClass, ItemIds, NativeContext, OutputContract};

use super::native;
use crate::laws::{Answer, Chance, all_are_lawful, all_are_reached};

const TYPES: &[&str] = &[
    "message",
    "message",
    "reasoning",
    "function_call",
    "custom_tool_call",
    "web_search_call",
    "mcp_call",
    "mcp_list_tools",
    "mcp_approval_request",
    "shell_call",
    "new_kind",
];
const IDS: &[&str] = &["a", "b", "c", ""];
const TEXTS: &[&str] = &["", "x", "x y", "{}", "{\\\"a\\\":1}", "\\ud83d", "\\ude00", "\\u00e9\\n", "\u{e9}"];
const PARTS: &[&str] = &["output_text", "refusal", "reasoning_text", "summary_text", "odd"];

fn item(chance: &mut Chance) -> String {
    let status = chance.one_of(&["\"completed\"", "\"incomplete\"", "\"in_progress\"", "null", "7"]);
    let parts: Vec<String> = (0..chance.below(3)).map(|_| part(chance)).collect();
    format!(
        r#"{{"type":"{}","id":"{}","status":{status},"server_label":"{}","tools":[],"error":{},"output":null,"call_id":"{}","name":"{}","arguments":"{}","input":"{}","content":[{}],"summary":[{}],"encrypted_content":{},"phase":{},"extra":{}}}"#,
        chance.one_of(TYPES),
        chance.one_of(IDS),
        chance.one_of(&["s", "t"]),
        chance.one_of(&["null", "null", "\"odd\""]),
        chance.one_of(&["k1", "k2", ""]),
        chance.one_of(&["f", "f", "g", ""]),
        chance.one_of(TEXTS),
        chance.one_of(TEXTS),
        parts.join(","),
        part(chance),
        chance.one_of(&["null", "\"gAAA\"", "\"\""]),
        chance.one_of(&["null", "\"commentary\"", "\"odd\"", "7"]),
        chance.one_of(&["null", "{\"a\":[1]}", "\"x\""]),
    )
}

fn part(chance: &mut Chance) -> String {
    let (kind, text) = (chance.one_of(PARTS), chance.one_of(TEXTS));
    format!(r#"{{"type":"{kind}","text":"{text}","refusal":"{text}","annotations":[{{"type":"file_path"}},7]}}"#)
}

fn event(chance: &mut Chance) -> String {
    let name = chance.one_of(&[
        "response.output_item.added",
        "response.output_item.added",
        "response.output_item.done",
        "response.output_item.done",
        "response.content_part.added",
        "response.content_part.done",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.refusal.delta",
        "response.reasoning_text.delta",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.custom_tool_call_input.delta",
        "response.web_search_call.searching",
        "response.output_text.annotation.added",
        "response.in_progress",
        "response.unheard_of",
    ]);
    let mut members = vec![format!(r#""type":"{name}""#)];
    if name.contains("output_item") {
        members.push(format!(r#""item":{}"#, item(chance)));
    } else {
        members.push(format!(r#""delta":"{}","text":"{}""#, chance.one_of(TEXTS), chance.one_of(TEXTS)));
        members.push(format!(r#""part":{},"annotation":{{"type":"file_path"}}"#, part(chance)));
        members.push(format!(r#""arguments":"{}","name":"{}""#, chance.one_of(TEXTS), chance.one_of(&["f", ""])));
        if chance.below(4) > 0 {
            members.push(format!(r#""item_id":"{}""#, chance.one_of(IDS)));
        }
    }
    for (name, most) in [("output_index", 3), ("content_index", 2), ("summary_index", 2)] {
        if chance.below(2) == 0 {
            members.push(format!(r#""{name}":{}"#, chance.below(most)));
        }
    }
    format!("{{{}}}", members.join(","))
}

pub(crate) fn answer(number: u64) -> Answer {
    let mut chance = Chance(number);
    let mut run = native();
    run.echo = b",\"model\":\"m\"".to_vec().into();
    let item_ids = if chance.below(2) == 0 { ItemIds::Ours } else { ItemIds::Theirs };
    let silent_limit = (chance.below(3) == 0).then_some(4);
    run.context.wire = AnswerWire::Responses(NativeContext { item_ids, silent_limit });
    if chance.below(4) == 0 {
        run.context.output = OutputContract::JsonObject;
    }
    let mut events: Vec<String> = (0..chance.below(14)).map(|_| event(&mut chance)).collect();
    if chance.below(3) > 0 {
        let output: Vec<String> = (0..chance.below(4)).map(|_| item(&mut chance)).collect();
        let status = chance.one_of(&["completed", "incomplete", "failed", "odd"]);
        let name = chance.one_of(&["completed", "completed", "incomplete", "failed"]);
        events.push(format!(
            r#"{{"type":"response.{name}","response":{{"status":"{status}","output":[{}],"usage":{{"input_tokens":1,"output_tokens":4}}}}}}"#,
            output.join(",")
        ));
    }
    let end = match chance.below(5) {
        0 => End::Failed(Failure::new(FailureClass::Truncated, "cut")),
        1 => End::Done,
        _ => End::Eof,
    };
    Answer { run, chunks: events, end }
}

#[test]
fn any_events_give_a_lawful_stream() {
    all_are_lawful(20_000, answer);
}

#[test]
fn the_events_reach_everything() {
    let notes = [
        "an item that was never announced was",
        "what came for an item after its end was left out",
        "an event that belongs to no item was left out",
        "an item with nothing in it was left out",
        "a call without a name was left out",
        "what came in pieces counts, not the whole that differs from it",
        "the event 'response.unheard_of' is not known",
        "the response counts as incomplete: it is as long as was allowed",
    ];
    all_are_reached(3000, answer, &[TYPES, &["completed", "incomplete", "failed"], &notes].concat());
}
