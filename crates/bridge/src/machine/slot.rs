//! An open item that is made of parts: a message, or reasoning.

use wire::id::{Id, IdKind};
use wire::json::ObjectWriter;
use wire::responses::{EventKind, Status};

use super::part::{Part, PartKind, Place, bracketed, join};
use super::sink::Sink;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotKind {
    Message,
    Reasoning,
}

#[derive(Debug, Clone)]
pub(super) struct Slot {
    kind: SlotKind,
    id: Id,
    output_index: u32,
    /// The closed parts, comma between them.
    content: Vec<u8>,
    summary: Vec<u8>,
    /// The number of closed parts.
    closed: u32,
    /// What the closed parts of reasoning say, escaped.
    thought: Vec<u8>,
    part: Option<Part>,
}

impl Slot {
    /// Announces the item.
    pub(super) fn open(kind: SlotKind, sink: &mut Sink, out: &mut Vec<u8>) -> Self {
        let id = sink.ids.make(match kind {
            SlotKind::Message => IdKind::Message,
            SlotKind::Reasoning => IdKind::Reasoning,
        });
        let slot = Self {
            kind,
            id,
            output_index: sink.output.count,
            content: Vec::new(),
            summary: Vec::new(),
            closed: 0,
            thought: Vec::new(),
            part: None,
        };
        sink.emitter.event(EventKind::OutputItemAdded, out, |event| {
            event.int("output_index", slot.output_index);
            slot.write(Status::InProgress, "", event.key("item"));
        });
        slot
    }

    pub(super) const fn kind(&self) -> SlotKind {
        self.kind
    }

    /// More text. `logprobs`: see [`Part::push`].
    pub(super) fn push(&mut self, kind: PartKind, escaped: &str, logprobs: &[u8], sink: &mut Sink, out: &mut Vec<u8>) {
        if self.part.as_ref().is_some_and(|part| part.kind != kind) {
            self.close_part(sink, out);
        }
        let place = Place { item_id: self.id.as_str(), output_index: self.output_index, index: self.closed };
        let part = self.part.get_or_insert_with(|| Part::open(kind, place, &mut sink.emitter, out));
        part.push(escaped, logprobs, place, &mut sink.emitter, out);
    }

    /// Whether output text is being written.
    pub(super) fn is_text(&self) -> bool {
        self.part.as_ref().is_some_and(|part| part.kind == PartKind::Text)
    }

    pub(super) fn annotate(&mut self, annotation: &[u8], sink: &mut Sink, out: &mut Vec<u8>) {
        let place = Place { item_id: self.id.as_str(), output_index: self.output_index, index: self.closed };
        if let Some(part) = &mut self.part {
            part.annotate(annotation, place, &mut sink.emitter, out);
        }
    }

    fn close_part(&mut self, sink: &mut Sink, out: &mut Vec<u8>) {
        let Some(part) = self.part.take() else { return };
        let place = Place { item_id: self.id.as_str(), output_index: self.output_index, index: self.closed };
        let list = if part.kind == PartKind::Summary { &mut self.summary } else { &mut self.content };
        let (json, text) = part.close(place, &mut sink.emitter, out);
        join(list, &json);
        self.closed += 1;
        if self.kind == SlotKind::Reasoning {
            self.thought = text;
        }
    }

    /// Closes the item and puts it into the output. `seal` makes `encrypted_content` out of the reasoning's text.
    pub(super) fn close(
        mut self,
        status: Status,
        seal: impl FnOnce(&str) -> String,
        sink: &mut Sink,
        out: &mut Vec<u8>,
    ) {
        self.close_part(sink, out);
        let sealed = match self.kind {
            SlotKind::Reasoning => seal(str::from_utf8(&self.thought).unwrap_or_default()),
            SlotKind::Message => String::new(),
        };
        let mut item = Vec::with_capacity(self.content.len() + self.summary.len() + sealed.len() + 160);
        self.write(status, &sealed, &mut item);
        sink.emitter.event(EventKind::OutputItemDone, out, |event| {
            event.int("output_index", self.output_index).json("item", &item);
        });
        sink.output.push(&item);
    }

    fn write(&self, status: Status, sealed: &str, out: &mut Vec<u8>) {
        let mut item = ObjectWriter::new(out);
        item.text("id", self.id.as_str());
        match self.kind {
            SlotKind::Message => {
                item.text("type", "message").text("status", status.name()).text("role", "assistant");
            }
            SlotKind::Reasoning => {
                item.text("type", "reasoning").text("status", status.name());
                bracketed(item.key("summary"), &self.summary);
                // Left out where there is none: one of the published schemas refuses null.
                if !sealed.is_empty() {
                    item.text("encrypted_content", sealed);
                }
            }
        }
        bracketed(item.key("content"), &self.content);
        item.end();
    }
}
