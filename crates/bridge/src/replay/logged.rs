//! What a log of events comes to: the items that were finished, and the one that was being written when the writer went.
//! That one is closed as far as it had come, so that the stream is whole with its end.

use wire::json::{Raw, Text};
use wire::responses::EventKind;

use super::lost::{Lost, under_way};
use super::{elements, parse, text, with};
use crate::escaped::EscapedBuf;
use crate::events::Events;
use crate::json::join;
use crate::response::{CUSTOM, CallKind, FUNCTION, HostedKind, PartIndex, PartKind};

/// The items of a response, read from the events in its log, in their order.
#[derive(Debug, Clone, Default)]
pub struct LoggedItems {
    /// JSON, comma between them.
    finished: Vec<u8>,
    count: u32,
    open: Option<OpenItem>,
}

#[derive(Debug, Clone)]
struct OpenItem {
    /// As it was announced.
    item: String,
    content: List,
    summary: List,
    part: Option<OpenPart>,
    /// Of a call.
    text: EscapedBuf,
    text_is_done: bool,
    /// Of what a hosted tool did: the events that only its kind has.
    own: Vec<EventKind>,
}

/// The closed parts of one list: JSON, comma between them.
#[derive(Debug, Clone, Default)]
struct List {
    json: Vec<u8>,
    count: u32,
}

#[derive(Debug, Clone)]
struct OpenPart {
    kind: PartKind,
    text: EscapedBuf,
    text_is_done: bool,
    /// JSON, comma between them.
    logprobs: Vec<u8>,
    annotations: Vec<u8>,
}

impl LoggedItems {
    /// The next event of the log, as JSON.
    pub fn event(&mut self, event: &[u8]) {
        let Some(event) = parse(event) else { return };
        let name = event.get("type").and_then(Raw::text).map(Text::decode).unwrap_or_default();
        match EventKind::named(&name) {
            Some(EventKind::OutputItemAdded) => self.open = event.get("item").map(OpenItem::new),
            Some(EventKind::OutputItemDone) => {
                self.open = None;
                self.finish(event.get("item").unwrap_or(Raw::NULL).as_str().as_bytes());
            }
            Some(kind) => {
                if let Some(open) = &mut self.open {
                    open.event(kind, event);
                }
            }
            None => {}
        }
    }

    fn finish(&mut self, item: &[u8]) {
        join(&mut self.finished, item);
        self.count += 1;
    }

    /// Ends a response of which the object is stored as it was when it began, and whose log this is: gives the object at its
    /// end. The events, from this number on, are those that close the item that was open, `error` for a failure, and the
    /// terminal one. None, and no event, for what is no object of a response under way.
    pub fn end(&self, object: &[u8], lost: Lost<'_>, mut sequence: u64, out: &mut Events) -> Option<Vec<u8>> {
        let object = under_way(object)?;
        let mut output = self.finished.clone();
        if let Some(open) = &self.open {
            join(&mut output, &open.close(self.count, &mut sequence, out));
        }
        lost.end(object, &output, sequence, out)
    }
}

impl OpenItem {
    fn new(item: Raw<'_>) -> Self {
        Self {
            item: item.as_str().to_owned(),
            content: List::default(),
            summary: List::default(),
            part: None,
            text: EscapedBuf::default(),
            text_is_done: false,
            own: Vec::new(),
        }
    }

    fn event(&mut self, kind: EventKind, event: Raw<'_>) {
        let part_of = |event: Raw<'_>| event.get("part")?.get("type").and_then(Raw::text).and_then(PartKind::named);
        match kind {
            EventKind::ContentPartAdded | EventKind::ReasoningSummaryPartAdded => {
                self.part = part_of(event).map(OpenPart::new);
            }
            EventKind::ContentPartDone | EventKind::ReasoningSummaryPartDone => {
                self.part = None;
                let list = self.list(kind == EventKind::ReasoningSummaryPartDone);
                list.push(event.get("part").unwrap_or(Raw::NULL).as_str().as_bytes());
            }
            kind if kind == FUNCTION.delta || kind == CUSTOM.delta => self.text.push(text(event, "delta")),
            kind if kind == FUNCTION.done || kind == CUSTOM.done => self.text_is_done = true,
            EventKind::McpCallArgumentsDelta => self.text.push(text(event, "delta")),
            kind => match &mut self.part {
                Some(part) => part.event(kind, event),
                None => self.own.push(kind),
            },
        }
    }

    fn list(&mut self, is_summary: bool) -> &mut List {
        if is_summary { &mut self.summary } else { &mut self.content }
    }

    /// Writes what is missing of its events; gives the item.
    fn close(&self, output_index: u32, sequence: &mut u64, out: &mut Events) -> Vec<u8> {
        let Ok(item) = Raw::parse(&self.item) else { return Vec::new() };
        let (item_type, item_id) = (text(item, "type").decode(), text(item, "id").decode());
        if let Some(kind) = HostedKind::of(&item_type) {
            return self.give_up(kind, item, output_index, sequence, out);
        }
        let (mut content, mut summary) = (self.content.clone(), self.summary.clone());
        if let Some(part) = &self.part {
            let list = if part.kind == PartKind::Summary { &mut summary } else { &mut content };
            let at = PartIndex { item_id: &item_id, output_index, index: list.count };
            list.push(&part.close(at, sequence, out));
        }
        let call = CallKind::of(&item_type);
        if let Some(call) = call.filter(|_| !self.text_is_done) {
            out.event(call.done, sequence, |event| {
                call.done_members(&item_id, output_index, text(item, "name"), self.text.get(), event);
            });
        }
        let mut last = vec![("status", "\"incomplete\"".to_owned())];
        match &*item_type {
            "message" => last.push(("content", content.array())),
            "reasoning" => last.extend([("summary", summary.array()), ("content", content.array())]),
            _ => last.extend(call.map(|call| (call.member, format!("\"{}\"", self.text.get().as_written())))),
        }
        let last: Vec<(&str, &str)> = last.iter().map(|(name, json)| (*name, json.as_str())).collect();
        let mut closed = Vec::new();
        with(item, &last, &[], &mut closed);
        out.event(EventKind::OutputItemDone, sequence, |event| {
            event.int("output_index", output_index).json("item", &closed);
        });
        closed
    }

    /// The same of what a hosted tool was doing.
    fn give_up(
        &self,
        kind: &HostedKind,
        item: Raw<'_>,
        output_index: u32,
        sequence: &mut u64,
        out: &mut Events,
    ) -> Vec<u8> {
        let (mut closed, item_id) = (Vec::new(), text(item, "id").decode());
        for (kind, member) in kind.give_up(item, self.text.get(), &self.own, &mut closed) {
            out.event(kind, sequence, |event| {
                event.int("output_index", output_index).text("item_id", &item_id);
                if let Some((name, text)) = member {
                    text.write(event.key(name));
                }
            });
        }
        out.event(EventKind::OutputItemDone, sequence, |event| {
            event.int("output_index", output_index).json("item", &closed);
        });
        closed
    }
}

impl List {
    fn push(&mut self, part: &[u8]) {
        join(&mut self.json, part);
        self.count += 1;
    }

    fn array(&self) -> String {
        format!("[{}]", String::from_utf8_lossy(&self.json))
    }
}

impl OpenPart {
    fn new(kind: PartKind) -> Self {
        let (logprobs, annotations) = (Vec::new(), Vec::new());
        Self { kind, text: EscapedBuf::default(), text_is_done: false, logprobs, annotations }
    }

    fn event(&mut self, kind: EventKind, event: Raw<'_>) {
        let names = self.kind.names();
        if kind == names.delta {
            self.text.push(text(event, "delta"));
            join(&mut self.logprobs, elements(event.get("logprobs")));
        } else if kind == names.text_done {
            self.text_is_done = true;
        } else if kind == EventKind::OutputTextAnnotationAdded {
            join(&mut self.annotations, event.get("annotation").unwrap_or(Raw::NULL).as_str().as_bytes());
        }
    }

    fn close(&self, at: PartIndex<'_>, sequence: &mut u64, out: &mut Events) -> Vec<u8> {
        let (kind, names) = (self.kind, self.kind.names());
        if !self.text_is_done {
            out.event(names.text_done, sequence, |event| {
                kind.text_done_members(at, self.text.get(), &self.logprobs, event);
            });
        }
        let mut part = Vec::with_capacity(self.text.get().len() + 80);
        kind.write(self.text.get(), (&self.annotations, &self.logprobs), &mut part);
        out.event(names.done, sequence, |event| {
            at.members(&names, event);
            event.json("part", &part);
        });
        part
    }
}
