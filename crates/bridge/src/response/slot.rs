//! An open item that is made of parts: a message, or reasoning.

use std::sync::Arc;

use wire::id::{Id, IdKind};
use wire::json::ObjectWriter;
use wire::responses::{EventKind, Status};

use super::ResponseWriter;
use super::part::{Part, PartIndex, PartKind};
use crate::escaped::{Escaped, EscapedBuf};
use crate::events::Events;
use crate::json::{bracketed, join};
use crate::reader::Sources;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotKind {
    Message,
    Reasoning,
}

#[derive(Debug, Clone)]
pub(crate) struct Slot {
    kind: SlotKind,
    id: Id,
    output_index: u32,
    /// The closed parts, comma between them.
    content: Vec<u8>,
    summary: Vec<u8>,
    /// The number of closed parts.
    closed: u32,
    /// What the closed parts of reasoning say.
    said: EscapedBuf,
    part: Option<Part>,
    /// What its text may cite.
    sources: Option<Arc<Sources>>,
}

impl Slot {
    /// Announces the item.
    pub(crate) fn open(kind: SlotKind, response: &mut ResponseWriter, out: &mut Events) -> Self {
        let id = response.make_id(match kind {
            SlotKind::Message => IdKind::Message,
            SlotKind::Reasoning => IdKind::Reasoning,
        });
        let slot = Self {
            kind,
            id,
            output_index: response.output_index(),
            content: Vec::new(),
            summary: Vec::new(),
            closed: 0,
            said: EscapedBuf::default(),
            part: None,
            sources: None,
        };
        response.event(EventKind::OutputItemAdded, out, |event| {
            event.int("output_index", slot.output_index);
            slot.write(Status::InProgress, "", event.key("item"));
        });
        slot
    }

    /// Whose text may cite these.
    pub(crate) fn citing(self, sources: Option<Arc<Sources>>) -> Self {
        Self { sources, ..self }
    }

    pub(crate) const fn kind(&self) -> SlotKind {
        self.kind
    }

    /// How many bytes of content it has.
    pub(crate) fn held(&self) -> usize {
        self.content.len() + self.summary.len() + self.part.as_ref().map_or(0, Part::held)
    }

    /// More text. `logprobs`: see [`Part::push`].
    pub(crate) fn push(
        &mut self,
        kind: PartKind,
        text: Escaped<'_>,
        logprobs: &[u8],
        response: &mut ResponseWriter,
        out: &mut Events,
    ) {
        if self.part.as_ref().is_some_and(|part| part.kind != kind) {
            self.close_part(response, out);
        }
        let at = PartIndex { item_id: self.id.as_str(), output_index: self.output_index, index: self.closed };
        let sources = self.sources.as_ref();
        let part = self.part.get_or_insert_with(|| Part::open(kind, sources, at, response, out));
        part.push(text, logprobs, at, response, out);
    }

    /// Whether output text is being written.
    pub(crate) fn is_text(&self) -> bool {
        self.part.as_ref().is_some_and(|part| part.kind == PartKind::Text)
    }

    pub(crate) fn annotate(&mut self, annotation: &[u8], response: &mut ResponseWriter, out: &mut Events) {
        let at = PartIndex { item_id: self.id.as_str(), output_index: self.output_index, index: self.closed };
        if let Some(part) = &mut self.part {
            part.annotate(annotation, at, response, out);
        }
    }

    /// The text of the part that is being written, if it is output text.
    pub(crate) fn written(&self) -> Escaped<'_> {
        self.part.as_ref().filter(|part| part.kind == PartKind::Text).map(Part::written).unwrap_or_default()
    }

    /// What comes next is another part, also if it is of the same kind.
    pub(crate) fn end_part(&mut self, response: &mut ResponseWriter, out: &mut Events) {
        self.close_part(response, out);
    }

    fn close_part(&mut self, response: &mut ResponseWriter, out: &mut Events) {
        let Some(part) = self.part.take() else { return };
        let at = PartIndex { item_id: self.id.as_str(), output_index: self.output_index, index: self.closed };
        let list = if part.kind == PartKind::Summary { &mut self.summary } else { &mut self.content };
        let (json, text) = part.close(at, response, out);
        join(list, &json);
        self.closed += 1;
        if self.kind == SlotKind::Reasoning {
            self.said.push(text.get());
        }
    }

    /// Closes the item and puts it into the output. `seal` makes `encrypted_content` out of the reasoning's text.
    pub(crate) fn close(
        mut self,
        status: Status,
        seal: impl FnOnce(Escaped<'_>) -> String,
        response: &mut ResponseWriter,
        out: &mut Events,
    ) {
        self.close_part(response, out);
        let sealed = match self.kind {
            SlotKind::Reasoning => seal(self.said.get()),
            SlotKind::Message => String::new(),
        };
        let mut item = Vec::with_capacity(self.content.len() + self.summary.len() + sealed.len() + 160);
        self.write(status, &sealed, &mut item);
        response.close_item(self.output_index, &item, out);
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
