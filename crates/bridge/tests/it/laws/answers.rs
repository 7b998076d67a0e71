//! Answers that some upstream might give, and answers that none should. Number n is always the same answer.

use std::fmt::Write;
use std::sync::{Arc, LazyLock};

use bridge::{AnswerDialect, End, EofTolerance, Failure, FailureClass, OutputContract, Repair, Setup, ThinkTags};

use crate::run::Run;

pub(crate) struct Answer {
    pub(crate) run: Run,
    pub(crate) chunks: Vec<String>,
    pub(crate) end: End,
}

/// A small generator of numbers (splitmix64).
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }

    pub(crate) fn one_of(&mut self, choices: &[&'static str]) -> &'static str {
        choices[self.below(choices.len())]
    }
}

pub(crate) fn answer(number: u64) -> Answer {
    let mut chance = Chance(number);
    let run = RUNS[chance.below(RUNS.len())].clone();
    let length = chance.below(12);
    // One in four is calm: text and reasoning only.
    let calm = chance.below(4) == 0;
    let mut chunks: Vec<String> =
        (0..length).map(|_| if calm { text(&mut chance) } else { chunk(&mut chance) }).collect();
    if chance.below(3) > 0 {
        chunks.push(format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":{}}}]}}"#, chance.one_of(REASONS)));
    }
    let end = match chance.below(6) {
        0 => End::Eof,
        1 => End::Failed(Failure::new(FailureClass::Truncated, "cut")),
        2 => End::Failed(Failure::new(FailureClass::Timeout, "late")),
        _ => End::Done,
    };
    Answer { run, chunks, end }
}

/// Every setting that changes how an answer reads. The echo is short: it costs time and decides nothing here.
static RUNS: LazyLock<Vec<Run>> = LazyLock::new(|| {
    let dialects = [
        AnswerDialect::default(),
        AnswerDialect { think_tags: ThinkTags::Leading, eof: EofTolerance::Any, ..AnswerDialect::default() },
        AnswerDialect { think_tags: ThinkTags::Opened, eof: EofTolerance::ToolCalls, ..AnswerDialect::default() },
    ];
    let mut runs = Vec::new();
    for (number, dialect) in dialects.into_iter().cycle().take(6).enumerate() {
        let mut run = Run::dialect(dialect);
        run.echo = b",\"model\":\"m\"".to_vec().into();
        run.context.reasoning_summary = number % 2 == 1;
        run.context.logprobs = number >= 3;
        if number >= 4 {
            run.context.output = OutputContract::JsonObject;
        }
        if number == 5 {
            let setup = Setup { repair: Repair::Off, seal: Arc::new(bridge::Unsealed), ..run.setup.clone() };
            run.setup = setup;
        }
        runs.push(run);
    }
    runs
});

const REASONS: &[&str] = &[
    r#""stop""#,
    r#""stop""#,
    r#""stop""#,
    r#""tool_calls""#,
    r#""length""#,
    r#""content_filter""#,
    r#""abort""#,
    r#""??""#,
    r#""""#,
    "3",
    "null",
];

const TEXTS: &[&str] = &[
    "a",
    "b c",
    "",
    " ",
    r"\n",
    r#"é\n\"😀"#,
    "<think>",
    r#"```json\n{\"a\":1}\n```"#,
    "</think>",
    "<th",
    "ink>",
    "```",
    r"json\n",
    "{",
    r#"{\"a\":1}"#,
    "}",
    r"\ud83d",
    r"\ude00",
    r"\u0000",
    r"\u003c",
    "[",
    r#"\""#,
    r"\\",
];

const NAMES: &[&str] = &[
    "f",
    "g",
    "get_",
    "weather",
    "ns__look",
    "patch",
    "patch",
    "shell",
    "local_shell",
    "apply_patch",
    "tool_search",
    "other",
    "functions.f",
    "",
];

const ARGUMENTS: &[&str] = &[
    "",
    "{",
    "}",
    "{}",
    r#"{\"a\":1}"#,
    r#"{\"input\":\"x"#,
    r#"y\"}"#,
    r#"\"p\""#,
    r#"{\"commands\":[\"ls\"]}"#,
    " ",
    "null",
    "[1]",
    r#"{\"operation\":{\"type\":\"delete_file\",\"path\":\"a\"}}"#,
    r#"{\"a\":\"}\"}{\"b\":2}"#,
    r"\ud83d",
    r"\\\\",
    r#"\\\""#,
    r#"\"{\\\"a\\\":1}\""#,
    "*** Begin",
    r#"{\"command\":[\"ls\"],\"env\":{}}"#,
];

fn chunk(chance: &mut Chance) -> String {
    const ODD: &[&str] = &[
        "{}",
        "[]",
        "nonsense",
        r#"{"error":"x"}"#,
        r#"{"choices":{}}"#,
        "",
        r#"{"choices":null,"usage":null}"#,
        "[DONE]",
        r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}"#,
        r#"{"base_resp":{"status_code":1}}"#,
        r#"{"choices":[{"index":1,"delta":{"content":"other"}}]}"#,
        r#"{"choices":[{"message":{"content":"whole"}}]}"#,
        r#"{"choices":[{"delta":null}]}"#,
        r#"{"detail":"x"}"#,
    ];
    if chance.below(24) == 0 {
        return chance.one_of(ODD).to_owned();
    }
    let mut chunk = String::from(r#"{"choices":[{"index":0,"delta":{"#);
    delta(chance, &mut chunk);
    chunk.push('}');
    if chance.below(24) == 0 {
        write!(chunk, r#","finish_reason":{}"#, chance.one_of(REASONS)).unwrap();
    }
    if chance.below(12) == 0 {
        chunk.push_str(r#","logprobs":{"content":[{"token":"a","logprob":-1,"bytes":null,"top_logprobs":[]}]}"#);
    }
    chunk.push_str("}]}");
    chunk
}

fn text(chance: &mut Chance) -> String {
    let member = chance.one_of(&["content", "content", "content", "reasoning"]);
    format!(r#"{{"choices":[{{"delta":{{"{member}":"{}"}}}}]}}"#, chance.one_of(TEXTS))
}

fn delta(chance: &mut Chance, out: &mut String) {
    let text = chance.one_of(TEXTS);
    match chance.below(16) {
        0..=4 => write!(out, r#""content":"{text}""#),
        5 => write!(out, r#""reasoning_content":"{text}""#),
        6 => write!(out, r#""reasoning":"{text}","content":null,"reasoning_details":[{{"type":"t","text":"{text}"}}]"#),
        7 => write!(out, r#""refusal":"{text}""#),
        8 => {
            write!(out, r#""content":[{{"type":"text","text":"{text}"}},5,{{"type":"thinking","thinking":"{text}"}}]"#)
        }
        9 => write!(out, r#""content":7,"tool_calls":"x","annotations":[{{"url":"https://a.b/"}},1]"#),
        10 => write!(out, r#""function_call":{{"name":"f","arguments":"{}"}}"#, chance.one_of(ARGUMENTS)),
        _ => {
            out.push_str(r#""tool_calls":["#);
            for number in 0..=chance.below(2) {
                if number > 0 {
                    out.push(',');
                }
                call(chance, out);
            }
            out.push(']');
            Ok(())
        }
    }
    .unwrap();
}

fn call(chance: &mut Chance, out: &mut String) {
    const INDEXES: &[&str] = &[
        "",
        r#""index":0,"#,
        r#""index":0,"#,
        r#""index":1,"#,
        r#""index":2,"#,
        r#""index":"x","#,
        r#""index":null,"#,
    ];
    const IDS: &[&str] = &["", r#""id":"c1","#, r#""id":"c2","#, r#""id":"","#, r#""id":null,"#, r#""id":"\ud83d","#];
    const EXTRAS: &[&str] = &["", "", "", r#","extra_content":{"s":1}"#];
    let (index, id, extra) = (chance.one_of(INDEXES), chance.one_of(IDS), chance.one_of(EXTRAS));
    let (name, arguments) = (chance.one_of(NAMES), chance.one_of(ARGUMENTS));
    let name = if chance.below(2) == 0 { format!(r#""name":"{name}","#) } else { String::new() };
    write!(out, r#"{{{index}{id}"function":{{{name}"arguments":"{arguments}"}}{extra}}}"#).unwrap();
}
