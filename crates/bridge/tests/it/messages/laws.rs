//! Any events, sane and insane, cut anywhere, give a lawful stream, the same object without one, and the same bytes
//! however the network cuts them.

use bridge::{AnswerDialect, AnswerWire, End, EofTolerance, Failure, FailureClass, OutputContract, Repair, ThinkTags};

use super::messages;
use crate::laws::{Answer, Chance, all_are_lawful, all_are_reached, no_split_matters};

const TEXTS: &[&str] =
    &["", "x", "x y", "{}", "{\\\"a\\\":1}", "```json\\n", "<think>", "\\ud83d", "\\ude00", "\\u00e9\\n", "\u{e9}"];
const PIECES: &[&str] = &["", "{", "{\\\"input\\\":", "\\\"x\\\"", "}", "{\\\"commands\\\":[\\\"ls\\\"]}", "{}", " "];
const NAMES: &[&str] =
    &["f", "g", "patch", "shell", "apply_patch", "tool_search", "local_shell", "ns__look", "odd", ""];

fn block(chance: &mut Chance) -> String {
    let text = chance.one_of(TEXTS);
    match chance.below(12) {
        0..=2 => format!(r#"{{"type":"text","text":"{text}"}}"#),
        3 => format!(
            r#"{{"type":"text","text":"{text}","citations":[{{"type":"web_search_result_location","url":"https://a.b/"}},7]}}"#
        ),
        4 | 5 => format!(r#"{{"type":"thinking","thinking":"{text}","signature":"{}"}}"#, chance.one_of(&["", "s"])),
        6 => r#"{"type":"redacted_thinking","data":"d"}"#.to_owned(),
        7 | 8 => format!(
            r#"{{"type":"tool_use","id":"{}","name":"{}","input":{}}}"#,
            chance.one_of(&["a", "b", ""]),
            chance.one_of(NAMES),
            chance.one_of(&["{}", "{}", "{\"input\":\"y\"}", "null", "7"])
        ),
        9 => format!(
            r#"{{"type":"server_tool_use","id":"{}","name":"{}","input":{{"query":"q"}}}}"#,
            chance.one_of(&["u", "v"]),
            chance.one_of(&["web_search", "web_fetch", "bash_code_execution"])
        ),
        10 => format!(
            r#"{{"type":"web_search_tool_result","tool_use_id":"{}","content":{}}}"#,
            chance.one_of(&["u", "v"]),
            chance.one_of(&["[{\"url\":\"https://a.b/\"}]", "{\"error_code\":\"x\"}", "null"])
        ),
        _ => chance.one_of(&["{}", "7", "null", r#"{"type":"hologram"}"#, r#"{"type":"fallback"}"#]).to_owned(),
    }
}

fn event(chance: &mut Chance) -> String {
    let index = chance.below(3);
    match chance.below(14) {
        0..=3 => format!(r#"{{"type":"content_block_start","index":{index},"content_block":{}}}"#, block(chance)),
        4 | 5 => format!(r#"{{"type":"content_block_stop","index":{index}}}"#),
        6 => format!(r#"{{"type":"message_start","message":{{"id":"{}"}}}}"#, chance.one_of(&["m", "m", "m", "n", ""])),
        7 => chance
            .one_of(&[r#"{"type":"ping"}"#, r#"{"type":"odd"}"#, r#"{"type":"message_delta","delta":{}}"#])
            .to_owned(),
        _ => {
            let delta = match chance.below(6) {
                0 | 1 => format!(r#"{{"type":"text_delta","text":"{}"}}"#, chance.one_of(TEXTS)),
                2 => format!(r#"{{"type":"thinking_delta","thinking":"{}"}}"#, chance.one_of(TEXTS)),
                3 => chance
                    .one_of(&[
                        r#"{"type":"signature_delta","signature":"s"}"#,
                        r#"{"type":"citations_delta","citation":{"type":"char_location","document_index":0}}"#,
                        r#"{"type":"odd_delta"}"#,
                        r#"{"type":"reasoning_delta","text":"r"}"#,
                    ])
                    .to_owned(),
                _ => format!(r#"{{"type":"input_json_delta","partial_json":"{}"}}"#, chance.one_of(PIECES)),
            };
            format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#)
        }
    }
}

/// A block as it should come.
fn calm(chance: &mut Chance) -> Vec<String> {
    const CALLS: &[(&str, &str)] = &[
        ("f", "{\\\"a\\\":1}"),
        ("patch", "{\\\"input\\\":\\\"x\\\"}"),
        ("shell", "{\\\"commands\\\":[\\\"ls\\\"]}"),
        ("apply_patch", "{\\\"type\\\":\\\"delete_file\\\",\\\"path\\\":\\\"x\\\"}"),
        ("tool_search", "{}"),
    ];
    let text = chance.one_of(TEXTS);
    let (start, delta) = match chance.below(4) {
        0 | 1 => (r#"{"type":"text","text":""}"#.to_owned(), format!(r#"{{"type":"text_delta","text":"{text}"}}"#)),
        2 => {
            let start = r#"{"type":"thinking","thinking":"","signature":"s"}"#.to_owned();
            (start, format!(r#"{{"type":"thinking_delta","thinking":"{text}"}}"#))
        }
        _ => {
            let (name, input) = CALLS[chance.below(CALLS.len())];
            let start = format!(r#"{{"type":"tool_use","id":"c","name":"{name}","input":{{}}}}"#);
            (start, format!(r#"{{"type":"input_json_delta","partial_json":"{input}"}}"#))
        }
    };
    vec![
        format!(r#"{{"type":"content_block_start","index":0,"content_block":{start}}}"#),
        format!(r#"{{"type":"content_block_delta","index":0,"delta":{delta}}}"#),
        r#"{"type":"content_block_stop","index":0}"#.to_owned(),
    ]
}

fn answer(number: u64) -> Answer {
    let mut chance = Chance(number);
    let mut run = messages();
    run.echo = b",\"model\":\"m\"".to_vec().into();
    run.context.wire = AnswerWire::Messages;
    run.context.reasoning_summary = chance.below(3) == 0;
    let think_tags = if chance.below(5) == 0 { ThinkTags::Leading } else { ThinkTags::Off };
    let eof = if chance.below(5) == 0 { EofTolerance::Any } else { EofTolerance::Never };
    run.setup.dialect = std::sync::Arc::new(AnswerDialect { think_tags, eof, ..AnswerDialect::default() });
    if chance.below(4) == 0 {
        run.context.output = OutputContract::JsonObject;
        run.setup.repair = Repair::Syntax;
    }
    let is_calm = chance.below(2) == 0;
    let some = |chance: &mut Chance| if is_calm { calm(chance) } else { vec![event(chance)] };
    let count = if is_calm { chance.below(6) } else { chance.below(14) };
    let mut events: Vec<String> = (0..count).flat_map(|_| some(&mut chance)).collect();
    if chance.below(4) > 0 {
        let reason = chance.one_of(&["end_turn", "end_turn", "tool_use", "max_tokens", "refusal", "pause_turn", "odd"]);
        let details = chance.one_of(&["null", r#"{"explanation":"No."}"#]);
        events.push(format!(
            r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}","stop_details":{details}}},"usage":{{"input_tokens":1,"output_tokens":4}}}}"#
        ));
        if chance.below(4) > 0 {
            events.push(r#"{"type":"message_stop"}"#.to_owned());
        }
    }
    if chance.below(20) == 0 {
        let blocks: Vec<String> = (0..chance.below(4)).map(|_| block(&mut chance)).collect();
        events = vec![format!(r#"{{"type":"message","content":[{}],"stop_reason":"end_turn"}}"#, blocks.join(","))];
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
fn any_split_of_the_bytes_gives_the_same_answer() {
    let framed = |answer: &Answer| {
        answer.chunks.iter().map(|event| format!("event: x\ndata: {event}\n\n")).collect::<Vec<_>>().concat()
    };
    no_split_matters(2_000, answer, framed);
}

#[test]
fn the_events_reach_everything() {
    let words = [
        "completed",
        "incomplete",
        "failed",
        "message",
        "reasoning",
        "function_call",
        "custom_tool_call",
        "shell_call",
        "web_search_call",
        "a call without a name was left out",
        "a signature of nothing was left out",
        "citations without a text were left out",
        "a block that could not be read was left out",
        "the code fence around the answer was taken off",
        "what the provider did with 'bash_code_execution' is not shown",
    ];
    all_are_reached(6000, answer, &words);
}
