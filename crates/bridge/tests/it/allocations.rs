//! A delta costs next to no allocation: memory traffic is what makes translators slow.

use bridge::{Flow, Framing};
use serde_json::json;

use crate::run::{delta, machine};

/// Allocations per delta, over many.
fn per_delta(chunk: &str) -> f64 {
    const COUNT: u32 = 1000;
    let mut machine = machine(Framing::Sse);
    let mut out = Vec::with_capacity(1 << 20);
    machine.open(&mut out);
    assert_eq!(machine.chunk(chunk.as_bytes(), &mut out), Flow::More);
    let counted = allocation_counter::measure(|| {
        for _ in 0..COUNT {
            out.clear();
            assert_eq!(machine.chunk(chunk.as_bytes(), &mut out), Flow::More);
        }
    });
    f64::from(u32::try_from(counted.count_total).unwrap()) / f64::from(COUNT)
}

#[test]
fn text_deltas_allocate_at_most_once() {
    for text in ["plain", "with \"escapes\" and\nlines", "é😀"] {
        let count = per_delta(&delta(&json!({"content": text})));
        assert!(count <= 1.0, "{count} allocations per delta of {text:?}");
    }
}

#[test]
fn tool_call_deltas_allocate_at_most_twice() {
    let call = json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "a\"b"}}]});
    let count = per_delta(&delta(&call));
    assert!(count <= 2.0, "{count} allocations per delta");
}
