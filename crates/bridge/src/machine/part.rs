//! A content part that is being written: output text, a refusal, or raw reasoning.

use wire::json::{ObjectWriter, sanitize_into};
use wire::responses::EventKind;

use super::emit::Emitter;
use super::slot::SlotKind;

/// What kind of text a part holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartKind {
    Text,
    Refusal,
    Reasoning,
}

impl PartKind {
    /// The kind of item that has such parts.
    pub(super) const fn slot(self) -> SlotKind {
        match self {
            Self::Text | Self::Refusal => SlotKind::Message,
            Self::Reasoning => SlotKind::Reasoning,
        }
    }

    const fn type_name(self) -> &'static str {
        match self {
            Self::Text => "output_text",
            Self::Refusal => "refusal",
            Self::Reasoning => "reasoning_text",
        }
    }

    /// The member that holds the text.
    const fn member(self) -> &'static str {
        match self {
            Self::Text | Self::Reasoning => "text",
            Self::Refusal => "refusal",
        }
    }

    const fn delta(self) -> EventKind {
        match self {
            Self::Text => EventKind::OutputTextDelta,
            Self::Refusal => EventKind::RefusalDelta,
            Self::Reasoning => EventKind::ReasoningTextDelta,
        }
    }

    const fn done(self) -> EventKind {
        match self {
            Self::Text => EventKind::OutputTextDone,
            Self::Refusal => EventKind::RefusalDone,
            Self::Reasoning => EventKind::ReasoningTextDone,
        }
    }
}

/// Where a part stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) item_id: &'a str,
    pub(super) output_index: u32,
    pub(super) content_index: u32,
}

impl Place<'_> {
    fn members(self, event: &mut ObjectWriter<'_>) {
        event.text("item_id", self.item_id);
        event.int("output_index", self.output_index).int("content_index", self.content_index);
    }
}

#[derive(Debug)]
pub(super) struct Part {
    pub(super) kind: PartKind,
    /// The text so far, escaped.
    text: Vec<u8>,
    /// Half a surrogate pair, until its other half comes.
    held: String,
    delta_head: Vec<u8>,
}

impl Part {
    /// Announces the part.
    pub(super) fn open(kind: PartKind, place: Place<'_>, emitter: &mut Emitter, out: &mut Vec<u8>) -> Self {
        emitter.event(EventKind::ContentPartAdded, out, |event| {
            place.members(event);
            write(kind, b"", event.key("part"));
        });
        let delta_head = emitter.delta_head(kind.delta(), |event| {
            place.members(event);
            if kind == PartKind::Text {
                event.json("logprobs", b"[]");
            }
        });
        Self { kind, text: Vec::new(), held: String::new(), delta_head }
    }

    pub(super) fn push(&mut self, escaped: &str, emitter: &mut Emitter, out: &mut Vec<u8>) {
        let from = self.text.len();
        if self.held.is_empty() {
            self.held.push_str(sanitize_into(&mut self.text, escaped));
        } else {
            let joined = std::mem::take(&mut self.held) + escaped;
            self.held.push_str(sanitize_into(&mut self.text, &joined));
        }
        if self.text.len() > from {
            emitter.delta(&self.delta_head, &self.text[from..], out);
        }
    }

    /// Closes the part; gives its JSON.
    pub(super) fn close(mut self, place: Place<'_>, emitter: &mut Emitter, out: &mut Vec<u8>) -> Vec<u8> {
        if !self.held.is_empty() {
            let from = self.text.len();
            self.text.extend_from_slice(b"\\ufffd");
            emitter.delta(&self.delta_head, &self.text[from..], out);
        }
        emitter.event(self.kind.done(), out, |event| {
            place.members(event);
            quoted(event.key(self.kind.member()), &self.text);
            if self.kind == PartKind::Text {
                event.json("logprobs", b"[]");
            }
        });
        let mut part = Vec::with_capacity(self.text.len() + 80);
        write(self.kind, &self.text, &mut part);
        emitter.event(EventKind::ContentPartDone, out, |event| {
            place.members(event);
            event.json("part", &part);
        });
        part
    }
}

/// A part as items show it.
fn write(kind: PartKind, escaped: &[u8], out: &mut Vec<u8>) {
    let mut part = ObjectWriter::new(out);
    part.text("type", kind.type_name());
    if kind == PartKind::Text {
        part.json("annotations", b"[]").json("logprobs", b"[]");
    }
    quoted(part.key(kind.member()), escaped);
    part.end();
}

/// Text that is escaped already, as a JSON string.
pub(super) fn quoted(out: &mut Vec<u8>, escaped: &[u8]) {
    out.push(b'"');
    out.extend_from_slice(escaped);
    out.push(b'"');
}
