//! The answer side against the clock: what a delta costs, beside parsing the same chunk with nothing done about it, and
//! what it costs in each form that events can have.
//! Prints KEY=VALUE lines.
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "a bench: it measures real time")]
#![expect(clippy::print_stdout, reason = "what it prints is its interface")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use bridge::{AnswerContext, AnswerWire, Events, Flow, OfferedTool, Reader, ResponseWriter, Setup, ToolKind};
use serde_json::{Value, json};
use wire::chat::Answer;
use wire::id::Ids;
use wire::responses::Tail;

const DELTAS: u32 = 20_000;

fn main() {
    let text = chunk(&json!({"content": " world,\nand \"so\" on"}));
    println!("parse_ns={}", best(|| parse(&text), DELTAS).as_nanos());
    println!("text_ns={}", delta(&text, &text, Events::sse()).as_nanos());
    for (key, events) in [
        ("sse_ns", Events::sse()),
        ("frames_ns", Events::frames()),
        ("both_ns", Events::both()),
        ("silent_ns", Events::silent()),
    ] {
        println!("{key}={}", delta(&text, &text, events).as_nanos());
    }
    for (key, name, first) in [("call_ns", "f", "{\"a\":\""), ("custom_ns", "patch", "{\"input\":\"")] {
        println!(
            "{key}={}",
            delta(&call(name, first), &call(name, "some \\\"more\\\" text"), Events::sse()).as_nanos()
        );
    }
    // A chunk of the same text in the other API, beside what it costs in this one.
    let message = block_delta(" world,\nand \"so\" on");
    let (chat, messages) = (delta(&text, &text, Events::sse()), in_messages(&message));
    println!("messages_ns={}", messages.as_nanos());
    println!("messages_per_chat={:.2}", messages.as_secs_f64() / chat.as_secs_f64());
    let (small, large) = (arguments(1 << 17), arguments(1 << 20));
    println!("growth={:.2}", large.as_secs_f64() / small.as_secs_f64() / 8.0);
}

/// A chunk as providers send them, with all that nobody reads.
fn chunk(delta: &Value) -> String {
    json!({
        "id": "chatcmpl-8f2d1c0e9b7a4f63a5d2", "object": "chat.completion.chunk", "created": 1_700_000_000,
        "model": "some-model-2026-01-01", "service_tier": "default", "system_fingerprint": "fp_0123456789",
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": null}], "usage": null,
    })
    .to_string()
}

fn call(name: &str, arguments: &str) -> String {
    chunk(&json!({"tool_calls": [{"index": 0, "id": "call_1", "function": {"name": name, "arguments": arguments}}]}))
}

/// An event of a Messages answer.
fn block_delta(text: &str) -> String {
    json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}).to_string()
}

fn parse(chunk: &str) {
    let _ = black_box(Answer::parse(black_box(chunk)));
}

/// A response that is being read.
struct Turn {
    reader: Reader,
    response: ResponseWriter,
    out: Events,
}

impl Turn {
    fn new(wire: AnswerWire, out: Events) -> Self {
        let offered =
            |name: &str, kind| OfferedTool { provider_name: name.into(), kind, name: name.into(), namespace: None };
        let tools = vec![offered("f", ToolKind::Function), offered("patch", ToolKind::Custom)];
        let reader = Reader::new(AnswerContext { wire, tools, ..AnswerContext::default() }, Setup::default());
        let response = ResponseWriter::new(Ids::new([7; 24]), 1, Tail::default(), true);
        let mut turn = Self { reader, response, out };
        turn.out.reserve(1 << 16);
        turn.response.open(&mut turn.out);
        turn
    }

    fn chunk(&mut self, chunk: &str) -> Flow {
        self.out.clear();
        self.reader.chunk(chunk.as_bytes(), &mut self.response, &mut self.out)
    }
}

/// One delta in the middle of an answer.
fn delta(first: &str, chunk: &str, out: Events) -> Duration {
    again(Turn::new(AnswerWire::Chat, out), first, chunk)
}

/// The same in a Messages answer.
fn in_messages(event: &str) -> Duration {
    again(Turn::new(AnswerWire::Messages, Events::sse()), event, event)
}

fn again(mut turn: Turn, first: &str, chunk: &str) -> Duration {
    let _ = turn.chunk(first);
    best(
        || {
            let _ = black_box(turn.chunk(black_box(chunk)));
        },
        DELTAS,
    )
}

/// Arguments of that many bytes, byte by byte.
fn arguments(bytes: u32) -> Duration {
    let mut turn = Turn::new(AnswerWire::Chat, Events::sse());
    let _ = turn.chunk(&call("f", "{\"a\":\""));
    let piece = call("f", "x");
    let start = Instant::now();
    for _ in 0..bytes {
        let _ = black_box(turn.chunk(&piece));
    }
    start.elapsed()
}

/// The best average of several rounds: what the work costs when nothing else happens.
fn best(mut run: impl FnMut(), count: u32) -> Duration {
    let round = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        (0..count).for_each(|_| run());
        start.elapsed() / count
    };
    (0..7).map(|_| round(&mut run)).min().unwrap_or_default()
}
