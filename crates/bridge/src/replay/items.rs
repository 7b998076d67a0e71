//! The events of one finished item.

use wire::json::{ObjectWriter, Raw, Text};
use wire::responses::EventKind;

use super::with;
use crate::escaped::Escaped;
use crate::events::Events;
use crate::response::{CUSTOM, CallKind, FUNCTION, PartIndex, PartKind};

/// `added`, what its kind has in between, `done`.
pub(super) fn write(item: &str, index: usize, sequence: &mut u64, out: &mut Events) {
    let Ok(item) = Raw::parse(item) else { return };
    let text = |name| item.get(name).and_then(Raw::text).map(Text::decode).unwrap_or_default();
    let (kind, id) = (text("type"), text("id"));
    let output_index = u32::try_from(index).unwrap_or(u32::MAX);
    let mut item = ItemReplay { item, id: &id, output_index, sequence, out };
    match &*kind {
        "message" => {
            item.added(&[("content", "[]")], &[]);
            item.parts("content");
        }
        "reasoning" => {
            // What is sealed is known at the end only.
            item.added(&[("summary", "[]"), ("content", "[]")], &["encrypted_content"]);
            item.parts("summary");
            item.parts("content");
        }
        _ => match [&FUNCTION, &CUSTOM].into_iter().find(|call| call.item_type == kind) {
            Some(call) => {
                item.added(&[(call.member, "\"\"")], &[]);
                item.call(call);
            }
            None => item.added(&[], &[]),
        },
    }
    item.done();
}

/// An item whose events are being written.
struct ItemReplay<'a> {
    item: Raw<'a>,
    id: &'a str,
    output_index: u32,
    sequence: &'a mut u64,
    out: &'a mut Events,
}

impl ItemReplay<'_> {
    fn event(&mut self, kind: EventKind, members: impl FnOnce(&mut ObjectWriter<'_>)) {
        self.out.event(kind, self.sequence, members);
    }

    /// The item as it began: these members were empty, or not there yet.
    fn added(&mut self, empty: &[(&str, &str)], absent: &[&str]) {
        let (item, output_index) = (self.item, self.output_index);
        self.event(EventKind::OutputItemAdded, |event| {
            event.int("output_index", output_index);
            let begun: Vec<_> = empty.iter().copied().chain([("status", "\"in_progress\"")]).collect();
            with(item, &begun, absent, event.key("item"));
        });
    }

    fn done(&mut self) {
        let (item, output_index) = (self.item, self.output_index);
        self.event(EventKind::OutputItemDone, |event| {
            event.int("output_index", output_index).raw("item", item);
        });
    }

    /// The text of a call in one piece.
    fn call(&mut self, call: &CallKind) {
        let (item, id, output_index) = (self.item, self.id, self.output_index);
        let text = item.get(call.member).and_then(Raw::text).map(Escaped::of).unwrap_or_default();
        if !text.is_empty() {
            self.event(call.delta, |event| {
                event.text("item_id", id).int("output_index", output_index);
                text.write(event.key("delta"));
            });
        }
        self.event(call.done, |event| {
            event.text("item_id", id).int("output_index", output_index);
            if call.is_named() {
                event.raw_or_null("name", item.get("name"));
            }
            text.write(event.key(call.member));
        });
    }

    /// The parts in one of the item's lists.
    fn parts(&mut self, list: &str) {
        let parts = self.item.get(list).into_iter().flat_map(Raw::elements);
        for (part, index) in parts.zip(0..) {
            let at = PartIndex { item_id: self.id, output_index: self.output_index, index };
            match part.get("type").and_then(Raw::text).and_then(kind_of) {
                Some(kind) => self.part(part, kind, at),
                None => self.unknown_part(part, at),
            }
        }
    }

    fn part(&mut self, part: Raw<'_>, kind: PartKind, at: PartIndex<'_>) {
        let names = kind.names();
        let text = part.get(names.member).and_then(Raw::text).map(Escaped::of).unwrap_or_default();
        let logprobs = part.get("logprobs").filter(|list| !list.is_null()).map_or("[]", Raw::as_str).as_bytes();
        self.event(names.added, |event| {
            at.members(&names, event);
            kind.write_empty(event.key("part"));
        });
        if !text.is_empty() {
            self.event(names.delta, |event| {
                at.members(&names, event);
                text.write(event.key("delta"));
                if kind == PartKind::Text {
                    event.json("logprobs", logprobs);
                }
            });
        }
        let annotations = part.get("annotations").into_iter().flat_map(Raw::elements);
        for (annotation, number) in annotations.filter(|_| kind == PartKind::Text).zip(0_u32..) {
            self.event(EventKind::OutputTextAnnotationAdded, |event| {
                at.members(&names, event);
                event.int("annotation_index", number).raw("annotation", annotation);
            });
        }
        self.event(names.text_done, |event| {
            at.members(&names, event);
            text.write(event.key(names.member));
            if kind == PartKind::Text {
                event.json("logprobs", logprobs);
            }
        });
        self.event(names.done, |event| {
            at.members(&names, event);
            event.raw("part", part);
        });
    }

    /// Nothing is known of what it would be made of.
    fn unknown_part(&mut self, part: Raw<'_>, at: PartIndex<'_>) {
        let names = PartKind::Text.names();
        for kind in [names.added, names.done] {
            self.event(kind, |event| {
                at.members(&names, event);
                event.raw("part", part);
            });
        }
    }
}

fn kind_of(part_type: Text<'_>) -> Option<PartKind> {
    [PartKind::Text, PartKind::Refusal, PartKind::Reasoning, PartKind::Summary]
        .into_iter()
        .find(|kind| part_type.is(kind.names().type_name))
}
