//! Any events, sane and insane, cut anywhere, give a lawful stream, the same object without one, and the same bytes
//! however the network cuts them.

use bridge::{
    AnswerDialect, AnswerWire, End, EofTolerance, Events, Failure, FailureClass, OutputContract, Repair, ThinkTags,
};
use wire::sse::Decoder;

use super::messages;
use crate::laws::{Chance, for_all};
use crate::run::{OTHER_FORMS, Run};

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

struct Answer {
    run: Run,
    events: Vec<String>,
    end: End,
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
    Answer { run, events, end }
}

/// The fewest events that still break the law.
fn shrunk(answer: &Answer) -> Vec<String> {
    let mut events = answer.events.clone();
    let mut at = 0;
    while at < events.len() {
        let mut fewer = events.clone();
        fewer.remove(at);
        if answer.run.run(&fewer, answer.end.clone()).is_err() {
            events = fewer;
        } else {
            at += 1;
        }
    }
    events
}

#[test]
fn any_events_give_a_lawful_stream() {
    for_all(20_000, |number| {
        let mut answer = answer(number);
        if number % 3 == 0 {
            answer.run.forms = OTHER_FORMS;
        }
        answer.run.run(&answer.events, answer.end.clone()).map(drop).map_err(|_| {
            let events = shrunk(&answer);
            let problem = answer.run.run(&events, answer.end.clone()).err().unwrap_or_default();
            format!("answer {number}: {problem}\n{}\n{:?}", events.join("\n"), answer.end)
        })
    });
}

/// SSE bytes in pieces through decoder and reader.
fn bytes(run: &Run, pieces: &[&[u8]]) -> Vec<u8> {
    let mut decoder = Decoder::new(1 << 20);
    let mut turn = run.start(Events::sse());
    let mut end = End::Eof;
    'read: for piece in pieces {
        decoder.push(piece);
        while let Some(event) = decoder.next_event().unwrap() {
            if turn.chunk(event.data) == bridge::Flow::Over {
                end = End::Done;
                break 'read;
            }
        }
    }
    turn.end(end);
    turn.terminal();
    turn.out.take()
}

#[test]
fn any_split_of_the_bytes_gives_the_same_answer() {
    for_all(2_000, |number| {
        let answer = answer(number);
        let framed =
            answer.events.iter().map(|event| format!("event: x\ndata: {event}\n\n")).collect::<Vec<_>>().concat();
        let whole = bytes(&answer.run, &[framed.as_bytes()]);
        let size = 1 + usize::try_from(number % 23).unwrap();
        let pieces: Vec<&[u8]> = framed.as_bytes().chunks(size).collect();
        if bytes(&answer.run, &pieces) == whole { Ok(()) } else { Err(format!("answer {number} by {size}:\n{framed}")) }
    });
}

/// The laws are worth what the answers reach.
#[test]
fn the_events_reach_everything() {
    let mut seen = std::collections::BTreeMap::<String, u32>::new();
    for number in 0..6000 {
        let answer = answer(number);
        let ran = answer.run.run(&answer.events, answer.end).unwrap();
        let response = &ran.stream.response;
        let items = response["output"].as_array().unwrap().iter().map(|item| &item["type"]);
        let words = items.chain([&response["status"]]).filter_map(|word| word.as_str());
        for word in words.chain(ran.notes.iter().map(|note| &*note.message)) {
            *seen.entry(word.to_owned()).or_default() += 1;
        }
    }
    for word in [
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
    ] {
        assert!(seen.get(word).is_some_and(|count| *count >= 3), "{word}: {seen:#?}");
    }
}
