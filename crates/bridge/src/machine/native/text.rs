//! A message, or reasoning: items made of parts. Announced when there is something in them.

use wire::id::{Id, IdKind};
use wire::json::{ObjectWriter, Raw, Text, unescape};
use wire::responses::{EventKind, Incoming, Status};

use super::super::cite;
use super::super::part::{Part, PartKind, Place, bracketed, join};
use super::super::restore::compact;
use super::super::slot::SlotKind;
use super::event::{Op, index, part_kind};
use super::item::more;
use super::{Way, fits, string};
use crate::note::Action;
use crate::seal::{Encrypted, Thought};

#[derive(Debug, Clone)]
pub(super) struct TextItem {
    kind: SlotKind,
    upstream_id: String,
    /// Our id and place, once it was announced.
    shown: Option<(Id, u32)>,
    /// Members beside the usual ones.
    more: Vec<(String, String)>,
    content: List,
    summary: List,
    open: Option<OpenPart>,
    /// What the closed parts of reasoning say, escaped.
    thought: Vec<u8>,
}

/// The closed parts of one list: JSON, comma between them.
#[derive(Debug, Clone, Default)]
struct List {
    json: Vec<u8>,
    count: u32,
    /// The far side's index of the next part.
    next: u64,
}

#[derive(Debug, Clone)]
struct OpenPart {
    part: Part,
    /// The far side's index of it, if it gives one.
    index: Option<u64>,
}

/// A part as the far side repeats it at its end.
#[derive(Clone, Copy)]
struct Whole<'a> {
    kind: PartKind,
    index: Option<u64>,
    text: Text<'a>,
    annotations: Option<Raw<'a>>,
    logprobs: Option<Raw<'a>>,
}

impl<'a> Whole<'a> {
    fn of(part: Raw<'a>, index: Option<u64>) -> Option<Self> {
        let kind = part_kind(part)?;
        let text = part.get(if kind == PartKind::Refusal { "refusal" } else { "text" })?.text()?;
        Some(Self { kind, index, text, annotations: part.get("annotations"), logprobs: part.get("logprobs") })
    }
}

impl TextItem {
    pub(super) fn new(kind: SlotKind, upstream_id: String) -> Self {
        let (content, summary) = (List::default(), List::default());
        Self { kind, upstream_id, shown: None, more: Vec::new(), content, summary, open: None, thought: Vec::new() }
    }

    pub(super) fn apply(&mut self, op: Op, event: &Incoming<'_>, way: &mut Way<'_>, out: &mut Vec<u8>) {
        let index = index(event.content_index.or(event.summary_index));
        match op {
            Op::Added => {
                if let Some(item) = event.item {
                    self.learn(item);
                }
            }
            Op::Delta(kind) => {
                if let Some(delta) = string(event.delta) {
                    self.say(kind, index, delta.escaped(), event.logprobs, way, out);
                }
            }
            Op::TextDone(kind) => {
                if let Some(text) = event.text.or(event.refusal).and_then(Raw::text) {
                    let whole = Whole { kind, index, text, annotations: None, logprobs: event.logprobs };
                    self.complete(whole, way, out);
                }
            }
            Op::PartDone => {
                if let Some(whole) = event.part.and_then(|part| Whole::of(part, index)) {
                    self.complete(whole, way, out);
                    if self.holds(whole.kind, index) {
                        self.close_part(way, out);
                    }
                }
            }
            Op::Annotation => self.annotate(event.annotation, way, out),
            _ => {}
        }
    }

    fn learn(&mut self, item: Raw<'_>) {
        let known = ["id", "type", "status", "role", "content", "summary", "encrypted_content"];
        self.more = more(item, &known);
    }

    const fn list(&mut self, kind: PartKind) -> &mut List {
        if matches!(kind, PartKind::Summary) { &mut self.summary } else { &mut self.content }
    }

    /// Whether the open part is this one.
    fn holds(&mut self, kind: PartKind, index: Option<u64>) -> bool {
        let next = self.list(kind).next;
        self.open
            .as_ref()
            .is_some_and(|open| open.part.kind == kind && index.is_none_or(|index| open.index.unwrap_or(next) == index))
    }

    fn announce(&mut self, way: &mut Way<'_>, out: &mut Vec<u8>) {
        if self.shown.is_some() {
            return;
        }
        let id = way.id(
            &self.upstream_id,
            match self.kind {
                SlotKind::Message => IdKind::Message,
                SlotKind::Reasoning => IdKind::Reasoning,
            },
        );
        let output_index = way.sink.output.count;
        way.sink.emitter.event(EventKind::OutputItemAdded, out, |event| {
            event.int("output_index", output_index);
            self.write(&id, Status::InProgress, "", event.key("item"));
        });
        self.shown = Some((id, output_index));
    }

    /// More text, escaped.
    fn say(
        &mut self,
        kind: PartKind,
        index: Option<u64>,
        escaped: &str,
        logprobs: Option<Raw<'_>>,
        way: &mut Way<'_>,
        out: &mut Vec<u8>,
    ) {
        if kind.slot() != self.kind {
            return way.sink.note(Action::Ignored, "stream", "a part that its item cannot have was left out");
        }
        let goes_on =
            self.holds(kind, index) || self.open.as_ref().is_some_and(|o| o.part.kind == kind && o.index.is_none());
        if !goes_on {
            self.close_part(way, out);
        }
        self.announce(way, out);
        tally(kind, escaped, way);
        let count = self.list(kind).count;
        let Some((id, output_index)) = &self.shown else { return };
        let place = Place { item_id: id.as_str(), output_index: *output_index, index: count };
        let emitter = &mut way.sink.emitter;
        let open = self.open.get_or_insert_with(|| OpenPart { part: Part::open(kind, place, emitter, out), index });
        let wanted = logprobs.filter(|_| way.reading.logprobs && kind == PartKind::Text);
        open.part.push(escaped, &wanted.map(cite::tokens).unwrap_or_default(), place, &mut way.sink.emitter, out);
    }

    /// A part as it is at its end: what did not come in deltas follows.
    fn complete(&mut self, whole: Whole<'_>, way: &mut Way<'_>, out: &mut Vec<u8>) {
        let Whole { kind, index, text, annotations, logprobs } = whole;
        if self.holds(kind, index) {
            let count = self.list(kind).count;
            let (Some(open), Some((id, output_index))) = (&mut self.open, &self.shown) else { return };
            let place = Place { item_id: id.as_str(), output_index: *output_index, index: count };
            let decoded = text.decode();
            match open.part.complete(&decoded, place, &mut way.sink.emitter, out) {
                Some(rest) => tally(kind, &rest, way),
                None => {
                    let message = "what came in pieces counts, not the whole that differs from it";
                    way.sink.note(Action::Repaired, "stream", message);
                }
            }
        } else {
            let list = self.list(kind);
            let is_old = index.map_or(list.count > 0, |index| index < list.next);
            if is_old || text.is_empty() {
                return;
            }
            self.say(kind, index, text.escaped(), logprobs, way, out);
        }
        let known = self.open.as_ref().map_or(0, |open| open.part.annotation_count());
        for annotation in annotations.into_iter().flat_map(Raw::elements).skip(known as usize) {
            self.annotate(Some(annotation), way, out);
        }
    }

    fn annotate(&mut self, annotation: Option<Raw<'_>>, way: &mut Way<'_>, out: &mut Vec<u8>) {
        let annotation = annotation.filter(|raw| string(raw.get("type")).is_some() && fits(*raw));
        let count = self.content.count;
        let (Some(open), Some((id, output_index))) = (&mut self.open, &self.shown) else { return };
        let Some(annotation) = annotation.filter(|_| open.part.kind == PartKind::Text) else { return };
        let place = Place { item_id: id.as_str(), output_index: *output_index, index: count };
        let mut clean = Vec::with_capacity(annotation.as_str().len());
        compact(annotation.as_str(), &mut clean);
        open.part.annotate(&clean, place, &mut way.sink.emitter, out);
    }

    fn close_part(&mut self, way: &mut Way<'_>, out: &mut Vec<u8>) {
        let Some(OpenPart { part, index }) = self.open.take() else { return };
        let kind = part.kind;
        let count = self.list(kind).count;
        let Some((id, output_index)) = &self.shown else { return };
        let place = Place { item_id: id.as_str(), output_index: *output_index, index: count };
        let (json, text) = part.close(place, &mut way.sink.emitter, out);
        let list = self.list(kind);
        join(&mut list.json, &json);
        list.count += 1;
        list.next = index.unwrap_or(list.next) + 1;
        if kind == PartKind::Reasoning {
            self.thought.extend_from_slice(&text);
        }
    }

    pub(super) fn close(mut self, last: Option<Raw<'_>>, status: Status, way: &mut Way<'_>, out: &mut Vec<u8>) {
        let mut encrypted = None;
        if let Some(item) = last {
            self.learn(item);
            for name in ["summary", "content"] {
                for (index, part) in (0..).zip(item.get(name).into_iter().flat_map(Raw::elements)) {
                    if let Some(whole) = Whole::of(part, Some(index)) {
                        self.complete(whole, way, out);
                    }
                }
            }
            encrypted = string(item.get("encrypted_content")).map(|text| text.decode().into_owned());
        }
        self.close_part(way, out);
        if self.shown.is_none() && encrypted.is_none() {
            return way.sink.note(Action::Ignored, "output", "an item with nothing in it was left out");
        }
        self.announce(way, out);
        let sealed = if self.kind == SlotKind::Reasoning { self.seal(encrypted, way) } else { String::new() };
        let Some((id, output_index)) = &self.shown else { return };
        let mut item = Vec::with_capacity(self.content.json.len() + self.summary.json.len() + sealed.len() + 160);
        self.write(id, status, &sealed, &mut item);
        way.sink.emitter.event(EventKind::OutputItemDone, out, |event| {
            event.int("output_index", *output_index).json("item", &item);
        });
        way.sink.output.push(&item);
    }

    /// What goes out instead of the far side's own seal: ours around it, so that nobody else ever gets it (D7).
    fn seal(&self, encrypted: Option<String>, way: &Way<'_>) -> String {
        let thought = Thought {
            family: way.setup.dialect.family.clone(),
            text: unescape(str::from_utf8(&self.thought).unwrap_or_default()).into_owned(),
            bag: None,
            native: encrypted.map(|content| Encrypted { id: self.upstream_id.clone(), content }),
        };
        way.setup.seal.seal(&thought.encode())
    }

    fn write(&self, id: &Id, status: Status, sealed: &str, out: &mut Vec<u8>) {
        let mut item = ObjectWriter::new(out);
        item.text("id", id.as_str());
        match self.kind {
            SlotKind::Message => {
                item.text("type", "message").text("status", status.name()).text("role", "assistant");
            }
            SlotKind::Reasoning => {
                item.text("type", "reasoning").text("status", status.name());
                bracketed(item.key("summary"), &self.summary.json);
                if !sealed.is_empty() {
                    item.text("encrypted_content", sealed);
                }
            }
        }
        bracketed(item.key("content"), &self.content.json);
        for (name, json) in &self.more {
            item.json(name, json.as_bytes());
        }
        item.end();
    }
}

/// Counts what is said.
fn tally(kind: PartKind, escaped: &str, way: &mut Way<'_>) {
    match kind {
        PartKind::Reasoning | PartKind::Summary => way.tally.reasoned += escaped.len(),
        PartKind::Text | PartKind::Refusal => way.tally.answered += escaped.len(),
    }
    way.tally.refused |= kind == PartKind::Refusal && !escaped.is_empty();
    if kind == PartKind::Text && way.promises() {
        way.tally.promised.extend_from_slice(escaped.as_bytes());
    }
}
