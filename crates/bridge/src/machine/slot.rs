//! An open item that is made of parts: a message, or reasoning.

use wire::id::{Id, IdKind};
use wire::json::ObjectWriter;
use wire::responses::{EventKind, Status};

use super::emit::Emitter;
use super::part::{Part, PartKind, Place};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotKind {
    Message,
    Reasoning,
}

impl SlotKind {
    pub(super) const fn id_kind(self) -> IdKind {
        match self {
            Self::Message => IdKind::Message,
            Self::Reasoning => IdKind::Reasoning,
        }
    }
}

#[derive(Debug)]
pub(super) struct Slot {
    kind: SlotKind,
    id: Id,
    output_index: u32,
    /// The closed parts, comma between them.
    closed: Vec<u8>,
    content_index: u32,
    part: Option<Part>,
}

impl Slot {
    pub(super) const fn new(kind: SlotKind, id: Id, output_index: u32) -> Self {
        Self { kind, id, output_index, closed: Vec::new(), content_index: 0, part: None }
    }

    pub(super) const fn kind(&self) -> SlotKind {
        self.kind
    }

    pub(super) fn announce(&self, emitter: &mut Emitter, out: &mut Vec<u8>) {
        emitter.event(EventKind::OutputItemAdded, out, |event| {
            event.int("output_index", self.output_index);
            self.write(Status::InProgress, event.key("item"));
        });
    }

    pub(super) fn push(&mut self, kind: PartKind, escaped: &str, emitter: &mut Emitter, out: &mut Vec<u8>) {
        if self.part.as_ref().is_some_and(|part| part.kind != kind) {
            self.close_part(emitter, out);
        }
        let place =
            Place { item_id: self.id.as_str(), output_index: self.output_index, content_index: self.content_index };
        let part = self.part.get_or_insert_with(|| Part::open(kind, place, emitter, out));
        part.push(escaped, emitter, out);
    }

    fn close_part(&mut self, emitter: &mut Emitter, out: &mut Vec<u8>) {
        let Some(part) = self.part.take() else { return };
        let place =
            Place { item_id: self.id.as_str(), output_index: self.output_index, content_index: self.content_index };
        let json = part.close(place, emitter, out);
        if self.content_index > 0 {
            self.closed.push(b',');
        }
        self.closed.extend_from_slice(&json);
        self.content_index += 1;
    }

    /// Closes the item; gives its JSON.
    pub(super) fn close(mut self, status: Status, emitter: &mut Emitter, out: &mut Vec<u8>) -> Vec<u8> {
        self.close_part(emitter, out);
        let mut item = Vec::with_capacity(self.closed.len() + 160);
        self.write(status, &mut item);
        emitter.event(EventKind::OutputItemDone, out, |event| {
            event.int("output_index", self.output_index).json("item", &item);
        });
        item
    }

    fn write(&self, status: Status, out: &mut Vec<u8>) {
        let mut item = ObjectWriter::new(out);
        item.text("id", self.id.as_str());
        match self.kind {
            SlotKind::Message => item.text("type", "message").text("status", status.name()).text("role", "assistant"),
            SlotKind::Reasoning => item.text("type", "reasoning").text("status", status.name()).json("summary", b"[]"),
        };
        let content = item.key("content");
        content.push(b'[');
        content.extend_from_slice(&self.closed);
        content.push(b']');
        item.end();
    }
}
