//! A delta costs next to no allocation: memory traffic is what makes translators slow.

use bridge::{End, Events, Flow};
use serde_json::json;

use crate::run::{Run, delta};

/// Whatever the events are written into.
const SINKS: [fn() -> Events; 4] = [Events::sse, Events::frames, Events::both, Events::silent];

/// Allocations per delta, over many, after a first chunk.
fn per_delta(first: &str, chunk: &str, sink: Events) -> f64 {
    const COUNT: u32 = 1000;
    let mut turn = Run::default().start(sink);
    turn.out.reserve(1 << 20);
    for chunk in [first, chunk] {
        assert_eq!(turn.chunk(chunk.as_bytes()), Flow::More);
    }
    let counted = allocation_counter::measure(|| {
        for _ in 0..COUNT {
            turn.out.clear();
            assert_eq!(turn.chunk(chunk.as_bytes()), Flow::More);
        }
    });
    assert!(!turn.out.is_empty() || turn.out.is_silent(), "{chunk}: nothing was sent");
    f64::from(u32::try_from(counted.count_total).unwrap()) / f64::from(COUNT)
}

#[test]
fn text_deltas_allocate_at_most_once() {
    for member in ["content", "reasoning_content"] {
        for text in ["plain", "with \"escapes\" and\nlines", "é😀"] {
            let chunk = delta(&json!({ member: text }));
            for sink in SINKS {
                let count = per_delta(&chunk, &chunk, sink());
                assert!(count <= 1.0, "{count} allocations per delta of {text:?}");
            }
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
            for sink in SINKS {
                let count = per_delta(&call(name, first), &call(name, arguments), sink());
                assert!(count <= 2.0, "{count} allocations per delta of {name}");
            }
        }
    }
}

/// A megabyte of arguments, byte by byte: eight times the bytes, eight times the memory traffic. What it takes in
/// time is in the bench.
#[test]
fn long_arguments_cost_in_proportion() {
    let traffic = |name: &str, first: &str, bytes: usize| -> u64 {
        let mut turn = Run::default().start(Events::sse());
        let piece = call(name, "x");
        assert_eq!(turn.chunk(call(name, first).as_bytes()), Flow::More);
        let counted = allocation_counter::measure(|| {
            for _ in 0..bytes {
                turn.out.clear();
                assert_eq!(turn.chunk(piece.as_bytes()), Flow::More);
            }
            turn.end(End::Done);
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
