//! A delta costs next to no allocation: memory traffic is what makes translators slow.

use bridge::{End, Flow, Framing};
use serde_json::json;

use crate::run::{Run, delta, start};

/// Allocations per delta, over many, behind a first chunk.
fn per_delta(first: &str, chunk: &str) -> f64 {
    const COUNT: u32 = 1000;
    let run = Run::default();
    let mut machine = start(run.reading, run.setup, Framing::Sse);
    let mut out = Vec::with_capacity(1 << 20);
    machine.open(&mut out);
    for chunk in [first, chunk] {
        assert_eq!(machine.chunk(chunk.as_bytes(), &mut out), Flow::More);
    }
    let counted = allocation_counter::measure(|| {
        for _ in 0..COUNT {
            out.clear();
            assert_eq!(machine.chunk(chunk.as_bytes(), &mut out), Flow::More);
        }
    });
    assert!(!out.is_empty(), "{chunk}: nothing was sent");
    f64::from(u32::try_from(counted.count_total).unwrap()) / f64::from(COUNT)
}

#[test]
fn text_deltas_allocate_at_most_once() {
    for member in ["content", "reasoning_content"] {
        for text in ["plain", "with \"escapes\" and\nlines", "é😀"] {
            let chunk = delta(&json!({ member: text }));
            let count = per_delta(&chunk, &chunk);
            assert!(count <= 1.0, "{count} allocations per delta of {text:?}");
        }
    }
}

fn call(name: &str, arguments: &str) -> String {
    delta(&json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": name, "arguments": arguments}}]}))
}

#[test]
fn tool_call_deltas_allocate_at_most_twice() {
    for (name, first) in [("f", "{\"a\":\""), ("undeclared", "{\"a\":\""), ("patch", "{\"input\":\"")] {
        for arguments in ["plain", "a\\\"b\\n", "é"] {
            let count = per_delta(&call(name, first), &call(name, arguments));
            assert!(count <= 2.0, "{count} allocations per delta of {name}");
        }
    }
}

/// A megabyte of arguments, byte by byte: eight times the bytes, eight times the memory traffic. What it takes in
/// time is in the bench.
#[test]
fn long_arguments_cost_in_proportion() {
    let traffic = |name: &str, first: &str, bytes: usize| -> u64 {
        let run = Run::default();
        let mut machine = start(run.reading, run.setup, Framing::Sse);
        let mut out = Vec::new();
        let piece = call(name, "x");
        assert_eq!(machine.chunk(call(name, first).as_bytes(), &mut out), Flow::More);
        let counted = allocation_counter::measure(|| {
            for _ in 0..bytes {
                out.clear();
                assert_eq!(machine.chunk(piece.as_bytes(), &mut out), Flow::More);
            }
            machine.end(End::Done, &mut out);
        });
        counted.bytes_total
    };
    for (name, first, bytes) in [
        ("f", "{\"a\":\"", 1 << 20),
        ("patch", "{\"input\":\"", 1 << 17),
        ("shell", "{\"commands\":[\"", 1 << 17),
        ("f", "junk", 1 << 17),
    ] {
        let (small, large) = (traffic(name, first, bytes / 8), traffic(name, first, bytes));
        assert!(large <= small * 12, "{name}: {small} bytes, then {large}");
    }
}
