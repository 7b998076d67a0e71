//! A content part that is being written: output text, a refusal, raw reasoning, or a summary of it.

use wire::json::{ObjectWriter, escape_into, sanitize_into, unescape};
use wire::responses::EventKind;

use super::emit::Emitter;
use super::slot::SlotKind;

/// What kind of text a part holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartKind {
    Text,
    Refusal,
    Reasoning,
    /// Reasoning where the client asked for `reasoning.summary`.
    Summary,
}

/// The events and members of one kind of part.
struct Names {
    type_name: &'static str,
    /// The member that holds the text.
    member: &'static str,
    index: &'static str,
    added: EventKind,
    delta: EventKind,
    text_done: EventKind,
    done: EventKind,
}

impl PartKind {
    /// The kind of item that has such parts.
    pub(super) const fn slot(self) -> SlotKind {
        match self {
            Self::Text | Self::Refusal => SlotKind::Message,
            Self::Reasoning | Self::Summary => SlotKind::Reasoning,
        }
    }

    const fn names(self) -> Names {
        let content = Names {
            type_name: "output_text",
            member: "text",
            index: "content_index",
            added: EventKind::ContentPartAdded,
            delta: EventKind::OutputTextDelta,
            text_done: EventKind::OutputTextDone,
            done: EventKind::ContentPartDone,
        };
        match self {
            Self::Text => content,
            Self::Refusal => Names {
                type_name: "refusal",
                member: "refusal",
                delta: EventKind::RefusalDelta,
                text_done: EventKind::RefusalDone,
                ..content
            },
            Self::Reasoning => Names {
                type_name: "reasoning_text",
                delta: EventKind::ReasoningTextDelta,
                text_done: EventKind::ReasoningTextDone,
                ..content
            },
            Self::Summary => Names {
                type_name: "summary_text",
                member: "text",
                index: "summary_index",
                added: EventKind::ReasoningSummaryPartAdded,
                delta: EventKind::ReasoningSummaryTextDelta,
                text_done: EventKind::ReasoningSummaryTextDone,
                done: EventKind::ReasoningSummaryPartDone,
            },
        }
    }
}

/// Where a part stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) item_id: &'a str,
    pub(super) output_index: u32,
    /// Among the parts of its item.
    pub(super) index: u32,
}

impl Place<'_> {
    fn members(self, names: &Names, event: &mut ObjectWriter<'_>) {
        event.text("item_id", self.item_id);
        event.int("output_index", self.output_index).int(names.index, self.index);
    }
}

#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) kind: PartKind,
    /// The text so far, escaped.
    text: Vec<u8>,
    /// Half a surrogate pair, until its other half comes.
    held: String,
    delta_head: Vec<u8>,
    /// JSON, comma between them.
    logprobs: Vec<u8>,
    annotations: Vec<u8>,
    annotation_count: u32,
}

impl Part {
    /// Announces the part.
    pub(super) fn open(kind: PartKind, place: Place<'_>, emitter: &mut Emitter, out: &mut Vec<u8>) -> Self {
        let names = kind.names();
        let mut part = Self {
            kind,
            text: Vec::new(),
            held: String::new(),
            delta_head: Vec::new(),
            logprobs: Vec::new(),
            annotations: Vec::new(),
            annotation_count: 0,
        };
        emitter.event(names.added, out, |event| {
            place.members(&names, event);
            part.write(event.key("part"));
        });
        part.delta_head = emitter.delta_head(names.delta, |event| {
            place.members(&names, event);
            if kind == PartKind::Text {
                event.json("logprobs", b"[]");
            }
        });
        part
    }

    /// More text. `logprobs`: those of its tokens, as JSON with commas between; nearly always none.
    pub(super) fn push(
        &mut self,
        escaped: &str,
        logprobs: &[u8],
        place: Place<'_>,
        emitter: &mut Emitter,
        out: &mut Vec<u8>,
    ) {
        let from = self.text.len();
        if self.held.is_empty() {
            self.held.push_str(sanitize_into(&mut self.text, escaped));
        } else {
            let joined = std::mem::take(&mut self.held) + escaped;
            self.held.push_str(sanitize_into(&mut self.text, &joined));
        }
        join(&mut self.logprobs, logprobs);
        if self.text.len() == from {
            return;
        }
        if logprobs.is_empty() {
            emitter.delta(&self.delta_head, &self.text[from..], out);
        } else {
            let names = self.kind.names();
            emitter.event(names.delta, out, |event| {
                place.members(&names, event);
                quoted(event.key("delta"), &self.text[from..]);
                bracketed(event.key("logprobs"), logprobs);
            });
        }
    }

    /// The whole text, where the far side repeats it at the end: what was not sent of it is, and is given back,
    /// escaped. `None` for another text.
    pub(super) fn complete(
        &mut self,
        whole: &str,
        place: Place<'_>,
        emitter: &mut Emitter,
        out: &mut Vec<u8>,
    ) -> Option<String> {
        // No escape is longer than six bytes: a short text is not held against a long one, however often it comes.
        if self.text.len() > 6 * whole.len() {
            return None;
        }
        let mut rest = Vec::new();
        escape_into(&mut rest, whole.strip_prefix(&*unescape(str::from_utf8(&self.text).ok()?))?);
        let rest = String::from_utf8(rest).ok()?;
        self.held.clear();
        self.push(&rest, &[], place, emitter, out);
        Some(rest)
    }

    pub(super) const fn annotation_count(&self) -> u32 {
        self.annotation_count
    }

    /// A citation of what the text says.
    pub(super) fn annotate(&mut self, annotation: &[u8], place: Place<'_>, emitter: &mut Emitter, out: &mut Vec<u8>) {
        let names = self.kind.names();
        emitter.event(EventKind::OutputTextAnnotationAdded, out, |event| {
            place.members(&names, event);
            event.int("annotation_index", self.annotation_count).json("annotation", annotation);
        });
        join(&mut self.annotations, annotation);
        self.annotation_count += 1;
    }

    /// Closes the part; gives its JSON and its text.
    pub(super) fn close(mut self, place: Place<'_>, emitter: &mut Emitter, out: &mut Vec<u8>) -> (Vec<u8>, Vec<u8>) {
        let names = self.kind.names();
        if !self.held.is_empty() {
            let from = self.text.len();
            self.text.extend_from_slice(b"\\ufffd");
            emitter.delta(&self.delta_head, &self.text[from..], out);
        }
        emitter.event(names.text_done, out, |event| {
            place.members(&names, event);
            quoted(event.key(names.member), &self.text);
            if self.kind == PartKind::Text {
                bracketed(event.key("logprobs"), &self.logprobs);
            }
        });
        let mut part = Vec::with_capacity(self.text.len() + 80);
        self.write(&mut part);
        emitter.event(names.done, out, |event| {
            place.members(&names, event);
            event.json("part", &part);
        });
        (part, self.text)
    }

    /// The part as items show it.
    fn write(&self, out: &mut Vec<u8>) {
        let names = self.kind.names();
        let mut part = ObjectWriter::new(out);
        part.text("type", names.type_name);
        if self.kind == PartKind::Text {
            bracketed(part.key("annotations"), &self.annotations);
            bracketed(part.key("logprobs"), &self.logprobs);
        }
        quoted(part.key(names.member), &self.text);
        part.end();
    }
}

/// Text that is escaped already, as a JSON string.
pub(super) fn quoted(out: &mut Vec<u8>, escaped: &[u8]) {
    out.push(b'"');
    out.extend_from_slice(escaped);
    out.push(b'"');
}

/// JSON values with commas between, as an array.
pub(super) fn bracketed(out: &mut Vec<u8>, values: &[u8]) {
    out.push(b'[');
    out.extend_from_slice(values);
    out.push(b']');
}

/// Appends JSON values to others, comma between.
pub(super) fn join(list: &mut Vec<u8>, values: &[u8]) {
    if !list.is_empty() && !values.is_empty() {
        list.push(b',');
    }
    list.extend_from_slice(values);
}
