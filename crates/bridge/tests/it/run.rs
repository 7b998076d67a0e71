//! Runs an upstream answer through plan and machine, as the server does.

use bridge::{Dialect, End, Flow, Framing, Machine, Policy, Reading, Target, Unsealed};
use serde_json::Value;
use wire::id::Ids;
use wire::json::{FromRaw, Raw};
use wire::responses::CreateResponse;
use wire::sse::Decoder;

pub(crate) const REQUEST: &str = r#"{"model":"m","input":"Hello"}"#;

pub(crate) fn reading(request: &str) -> Reading {
    let request = CreateResponse::from_raw(Raw::parse(request).unwrap()).unwrap();
    let dialect = Dialect::default();
    bridge::plan(&request, &[], target(&dialect)).unwrap().reading
}

fn target(dialect: &Dialect) -> Target<'_> {
    Target { model: "m", dialect, policy: Policy::default(), seal: &Unsealed }
}

pub(crate) fn machine(framing: Framing) -> Machine {
    Machine::new(reading(REQUEST), Ids::new([7; 24]), 1_700_000_000, framing)
}

/// Chunks (the `data` of each event) through a machine; `end` unless the chunks say `[DONE]` first.
pub(crate) fn chunks<T: AsRef<[u8]>>(framing: Framing, chunks: &[T], end: End) -> Vec<u8> {
    let mut machine = machine(framing);
    let mut out = Vec::new();
    machine.open(&mut out);
    let over = chunks.iter().any(|chunk| machine.chunk(chunk.as_ref(), &mut out) == Flow::Over);
    machine.end(if over { End::Done } else { end }, &mut out);
    machine.terminal(1_700_000_001, true, &mut out);
    out
}

/// SSE bytes in pieces through decoder and machine.
pub(crate) fn bytes(pieces: &[&[u8]]) -> Vec<u8> {
    let mut decoder = Decoder::new(1 << 20);
    let mut machine = machine(Framing::Sse);
    let mut out = Vec::new();
    machine.open(&mut out);
    let mut end = End::Eof;
    'read: for piece in pieces {
        decoder.push(piece);
        while let Some(event) = decoder.next_event().unwrap() {
            if machine.chunk(event.data, &mut out) == Flow::Over {
                end = End::Done;
                break 'read;
            }
        }
    }
    machine.end(end, &mut out);
    machine.terminal(1_700_000_001, true, &mut out);
    out
}

/// The whole completion that a list of chunks amounts to, for the comparison of the two roads.
pub(crate) fn object(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

pub(crate) fn delta(delta: &Value) -> String {
    serde_json::json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}).to_string()
}

pub(crate) fn finish(reason: &str) -> String {
    serde_json::json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}).to_string()
}
