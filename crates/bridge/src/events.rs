//! Where the events of a response go: server-sent events, frames with boundaries, both, or nothing.
//!
//! One type and no trait: whether text is written and whether it is indexed are two flags, so a delta costs a branch
//! instead of a virtual call, and the code that writes events exists once. Sequence numbers are the response's; nothing
//! is buffered here beyond what nobody has taken yet.

use wire::json::ObjectWriter;
use wire::responses::{EventKind, ResponseError, Status};

use crate::escaped::Escaped;

/// The events that were written and not taken yet. A response goes into events of one form from its beginning to its
/// end.
#[derive(Debug, Clone)]
pub struct Events {
    bytes: Vec<u8>,
    index: Vec<Indexed>,
    form: Form,
}

#[derive(Debug, Clone, Copy)]
struct Form {
    /// Written as server-sent events, with all that is around the JSON.
    sse: bool,
    /// The boundaries of each event's JSON are kept.
    indexed: bool,
}

/// One event among others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    pub kind: EventKind,
    pub sequence: u64,
}

#[derive(Debug, Clone, Copy)]
struct Indexed {
    frame: Frame,
    start: usize,
    end: usize,
}

/// The constant beginning of an item's delta events: everything before the sequence number.
#[derive(Debug, Clone)]
pub(crate) struct DeltaHead {
    kind: EventKind,
    text: Vec<u8>,
    /// Where the JSON begins.
    json_at: usize,
}

impl Events {
    /// The text of server-sent events.
    pub const fn sse() -> Self {
        Self::new(Form { sse: true, indexed: false })
    }

    /// The JSON of each event, with its boundaries: for a WebSocket, or a log of events.
    pub const fn frames() -> Self {
        Self::new(Form { sse: false, indexed: true })
    }

    /// Server-sent events whose JSON can also be taken one by one: a frame is a range of the same bytes.
    pub const fn both() -> Self {
        Self::new(Form { sse: true, indexed: true })
    }

    /// `stream: false`: nothing is written, and nothing is formatted.
    pub const fn silent() -> Self {
        Self::new(Form { sse: false, indexed: false })
    }

    const fn new(form: Form) -> Self {
        Self { bytes: Vec::new(), index: Vec::new(), form }
    }

    pub const fn is_silent(&self) -> bool {
        !self.form.sse && !self.form.indexed
    }

    /// How many bytes wait.
    pub const fn len(&self) -> usize {
        self.bytes.len()
    }

    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Makes room for about this many bytes.
    pub fn reserve(&mut self, bytes: usize) {
        if !self.is_silent() {
            self.bytes.reserve(bytes);
        }
    }

    /// The events that wait, each with its JSON; none where they are not indexed.
    pub fn iter(&self) -> impl Iterator<Item = (Frame, &[u8])> {
        self.index.iter().map(|at| (at.frame, self.bytes.get(at.start..at.end).unwrap_or_default()))
    }

    /// Takes the bytes; the frames are forgotten with them.
    pub fn take(&mut self) -> Vec<u8> {
        self.index.clear();
        std::mem::take(&mut self.bytes)
    }

    /// Forgets all that waits, and keeps the memory.
    pub fn clear(&mut self) {
        self.index.clear();
        self.bytes.clear();
    }

    /// One event; `members` writes what is particular to it.
    pub(crate) fn event(&mut self, kind: EventKind, sequence: &mut u64, members: impl FnOnce(&mut ObjectWriter<'_>)) {
        let frame = Frame { kind, sequence: *sequence };
        *sequence += 1;
        if self.is_silent() {
            return;
        }
        if self.form.sse {
            begin(kind, &mut self.bytes);
        }
        let start = self.bytes.len();
        let mut event = ObjectWriter::new(&mut self.bytes);
        event.text("type", kind.name()).int("sequence_number", frame.sequence);
        members(&mut event);
        event.end();
        one_line(&mut self.bytes[start..]);
        self.close(frame, start);
    }

    /// The head of an item's deltas. Empty where nothing is written.
    pub(crate) fn delta_head(&self, kind: EventKind, members: impl FnOnce(&mut ObjectWriter<'_>)) -> DeltaHead {
        if self.is_silent() {
            return DeltaHead { kind, text: Vec::new(), json_at: 0 };
        }
        let mut text = Vec::with_capacity(256);
        if self.form.sse {
            begin(kind, &mut text);
        }
        let json_at = text.len();
        let mut event = ObjectWriter::new(&mut text);
        event.text("type", kind.name());
        members(&mut event);
        event.key("sequence_number");
        DeltaHead { kind, text, json_at }
    }

    /// A delta: the head, the number, the text as it is escaped already.
    pub(crate) fn delta(&mut self, head: &DeltaHead, sequence: &mut u64, text: Escaped<'_>) {
        let frame = Frame { kind: head.kind, sequence: *sequence };
        *sequence += 1;
        if self.is_silent() {
            return;
        }
        let start = self.bytes.len() + head.json_at;
        let mut number = itoa::Buffer::new();
        self.bytes.reserve(head.text.len() + text.len() + 48);
        self.bytes.extend_from_slice(&head.text);
        self.bytes.extend_from_slice(number.format(frame.sequence).as_bytes());
        self.bytes.extend_from_slice(b",\"delta\":\"");
        self.bytes.extend_from_slice(text.as_written().as_bytes());
        self.bytes.extend_from_slice(b"\"}");
        self.close(frame, start);
    }

    fn close(&mut self, frame: Frame, start: usize) {
        if self.form.indexed {
            self.index.push(Indexed { frame, start, end: self.bytes.len() });
        }
        if self.form.sse {
            self.bytes.extend_from_slice(b"\n\n");
        }
    }

    /// A line that is no event, where there are lines.
    pub(crate) fn comment(&mut self, text: &str) {
        if self.form.sse {
            self.bytes.extend_from_slice(b": ");
            self.bytes.extend_from_slice(text.as_bytes());
            self.bytes.extend_from_slice(b"\n\n");
        }
    }

    /// What goes before the terminal event of a failure: flat and nested, as clients read one or the other.
    pub(crate) fn error(&mut self, error: &ResponseError, sequence: &mut u64) {
        self.event(EventKind::Error, sequence, |event| {
            error.members(event);
            error.write(event.key("error"));
        });
    }

    /// The terminal event of a response with this status, and the end of a stream of server-sent events. The API has no
    /// event for what was cancelled: it is `failed` around an object that says so.
    pub(crate) fn terminal(&mut self, status: Status, sequence: &mut u64, object: &[u8]) {
        let kind = match status {
            Status::Completed => EventKind::Completed,
            Status::Incomplete => EventKind::Incomplete,
            Status::Failed | Status::Cancelled | Status::Queued | Status::InProgress => EventKind::Failed,
        };
        self.event(kind, sequence, |event| {
            event.json("response", object);
        });
        if self.form.sse {
            self.bytes.extend_from_slice(wire::sse::DONE);
        }
    }
}

fn begin(kind: EventKind, out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(kind.name().as_bytes());
    out.extend_from_slice(b"\ndata: ");
}

/// JSON that came from outside may be written on many lines; an event's data is one line. Inside strings line ends are
/// escaped, so what is left of them is white space.
fn one_line(json: &mut [u8]) {
    let mut at = 0;
    while let Some(hit) = memchr::memchr2(b'\n', b'\r', &json[at..]) {
        json[at + hit] = b' ';
        at += hit + 1;
    }
}
