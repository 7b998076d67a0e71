//! Writes events. Sequence numbers are given out here and nowhere else.

use wire::json::ObjectWriter;
use wire::responses::{EventKind, ResponseError};

use super::Framing;

#[derive(Debug, Clone)]
pub(super) struct Emitter {
    framing: Framing,
    sequence: u64,
}

impl Emitter {
    pub(super) const fn new(framing: Framing) -> Self {
        Self { framing, sequence: 0 }
    }

    pub(super) fn is_silent(&self) -> bool {
        self.framing == Framing::Silent
    }

    /// One event; `members` writes what is particular to it.
    pub(super) fn event(&mut self, kind: EventKind, out: &mut Vec<u8>, members: impl FnOnce(&mut ObjectWriter<'_>)) {
        if self.is_silent() {
            return;
        }
        let name = kind.name();
        out.extend_from_slice(b"event: ");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\ndata: ");
        let start = out.len();
        let mut event = ObjectWriter::new(out);
        event.text("type", name).int("sequence_number", self.sequence);
        members(&mut event);
        event.end();
        one_line(&mut out[start..]);
        out.extend_from_slice(b"\n\n");
        self.sequence += 1;
    }

    /// The constant head of an item's delta events: everything before the sequence number.
    pub(super) fn delta_head(&self, kind: EventKind, members: impl FnOnce(&mut ObjectWriter<'_>)) -> Vec<u8> {
        if self.is_silent() {
            return Vec::new();
        }
        let name = kind.name();
        let mut head = Vec::with_capacity(256);
        head.extend_from_slice(b"event: ");
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b"\ndata: ");
        let mut event = ObjectWriter::new(&mut head);
        event.text("type", name);
        members(&mut event);
        event.key("sequence_number");
        head
    }

    /// A delta event: the head, the number, the text as it is escaped already.
    pub(super) fn delta(&mut self, head: &[u8], escaped: &[u8], out: &mut Vec<u8>) {
        if self.is_silent() {
            return;
        }
        let mut number = itoa::Buffer::new();
        out.reserve(head.len() + escaped.len() + 48);
        out.extend_from_slice(head);
        out.extend_from_slice(number.format(self.sequence).as_bytes());
        out.extend_from_slice(b",\"delta\":\"");
        out.extend_from_slice(escaped);
        out.extend_from_slice(b"\"}\n\n");
        self.sequence += 1;
    }

    /// The `error` event, flat and nested: clients read one or the other.
    pub(super) fn error(&mut self, error: &ResponseError, out: &mut Vec<u8>) {
        self.event(EventKind::Error, out, |event| {
            error.members(event);
            error.write(event.key("error"));
        });
    }
}

/// JSON that came from outside may be written on many lines; an event's data is one line. Inside strings line
/// ends are escaped, so what is left of them is white space.
fn one_line(json: &mut [u8]) {
    let mut at = 0;
    while let Some(hit) = memchr::memchr2(b'\n', b'\r', &json[at..]) {
        json[at + hit] = b' ';
        at += hit + 1;
    }
}
