//! The answer side against the clock: what a delta costs, beside parsing the same chunk with nothing done about it.
//! Prints KEY=VALUE lines.
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "a bench: it measures real time")]
#![expect(clippy::print_stdout, reason = "what it prints is its interface")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use bridge::{Framing, Machine, OfferedTool, Reading, Setup, ToolKind};
use serde_json::{Value, json};
use wire::chat::Answer;
use wire::id::Ids;

const DELTAS: u32 = 20_000;

fn main() {
    let text = chunk(&json!({"content": " world,\nand \"so\" on"}));
    println!("parse_ns={}", best(|| parse(&text), DELTAS).as_nanos());
    println!("text_ns={}", delta(&text, &text).as_nanos());
    for (key, name, first) in [("call_ns", "f", "{\"a\":\""), ("custom_ns", "patch", "{\"input\":\"")] {
        println!("{key}={}", delta(&call(name, first), &call(name, "some \\\"more\\\" text")).as_nanos());
    }
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

fn parse(chunk: &str) {
    let _ = black_box(Answer::parse(black_box(chunk)));
}

fn machine() -> Machine {
    let offered =
        |name: &str, kind| OfferedTool { provider_name: name.into(), kind, name: name.into(), namespace: None };
    let tools = vec![offered("f", ToolKind::Function), offered("patch", ToolKind::Custom)];
    let reading = Reading { tools, ..Reading::default() };
    Machine::new(reading, Setup::default(), Ids::new([7; 24]), 1, Framing::Sse)
}

/// One delta in the middle of an answer.
fn delta(first: &str, chunk: &str) -> Duration {
    let (mut machine, mut out) = (machine(), Vec::with_capacity(1 << 16));
    machine.open(&mut out);
    let _ = machine.chunk(first.as_bytes(), &mut out);
    best(
        || {
            out.clear();
            let _ = black_box(machine.chunk(black_box(chunk.as_bytes()), &mut out));
        },
        DELTAS,
    )
}

/// Arguments of that many bytes, byte by byte.
fn arguments(bytes: u32) -> Duration {
    let (mut machine, mut out) = (machine(), Vec::with_capacity(1 << 16));
    let _ = machine.chunk(call("f", "{\"a\":\"").as_bytes(), &mut out);
    let piece = call("f", "x");
    let start = Instant::now();
    for _ in 0..bytes {
        out.clear();
        let _ = black_box(machine.chunk(piece.as_bytes(), &mut out));
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
