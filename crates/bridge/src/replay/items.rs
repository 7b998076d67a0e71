//! The events of one finished item.

use wire::json::{ObjectWriter, Raw};
use wire::responses::EventKind;

use super::{elements, text, with};
use crate::escaped::Escaped;
use crate::events::Events;
use crate::json::bracketed;
use crate::response::{CallKind, HostedKind, PartIndex, PartKind};

/// `added`, what its kind has in between, `done`.
pub(super) fn write(item: &str, index: usize, sequence: &mut u64, out: &mut Events) {
    let Ok(item) = Raw::parse(item) else { return };
    let (kind, id) = (text(item, "type").decode(), text(item, "id").decode());
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
        kind => match (CallKind::of(kind), HostedKind::of(kind)) {
            (Some(call), _) => {
                item.added(&[(call.member, "\"\"")], &[]);
                item.call(call);
            }
            (None, Some(hosted)) => item.hosted(hosted),
            (None, None) => item.added(&[], &[]),
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

    /// What a hosted tool did, from its announcement on.
    fn hosted(&mut self, kind: &HostedKind) {
        let (item, id, output_index) = (self.item, self.id, self.output_index);
        self.event(EventKind::OutputItemAdded, |event| {
            event.int("output_index", output_index);
            kind.announced(item, event.key("item"));
        });
        let begun = kind.begun.iter().map(|kind| (*kind, None));
        for (kind, member) in begun.chain(kind.rest(item)) {
            self.event(kind, |event| {
                event.int("output_index", output_index).text("item_id", id);
                if let Some((name, text)) = member {
                    text.write(event.key(name));
                }
            });
        }
    }

    /// The text of a call in one piece.
    fn call(&mut self, call: &CallKind) {
        let (item, id, output_index) = (self.item, self.id, self.output_index);
        let text = text(item, call.member);
        if !text.is_empty() {
            self.event(call.delta, |event| {
                event.text("item_id", id).int("output_index", output_index);
                text.write(event.key("delta"));
            });
        }
        self.event(call.done, |event| {
            call.done_members(id, output_index, super::text(item, "name"), text, event);
        });
    }

    /// The parts in one of the item's lists.
    fn parts(&mut self, list: &str) {
        let parts = self.item.get(list).into_iter().flat_map(Raw::elements);
        for (part, index) in parts.zip(0..) {
            let at = PartIndex { item_id: self.id, output_index: self.output_index, index };
            match part.get("type").and_then(Raw::text).and_then(PartKind::named) {
                Some(kind) => self.part(part, kind, at),
                None => self.unknown_part(part, at),
            }
        }
    }

    fn part(&mut self, part: Raw<'_>, kind: PartKind, at: PartIndex<'_>) {
        let names = kind.names();
        let text = text(part, names.member);
        let logprobs = elements(part.get("logprobs"));
        self.event(names.added, |event| {
            at.members(&names, event);
            kind.write(Escaped::default(), (b"", b""), event.key("part"));
        });
        if !text.is_empty() {
            self.event(names.delta, |event| {
                at.members(&names, event);
                text.write(event.key("delta"));
                if kind == PartKind::Text {
                    bracketed(event.key("logprobs"), logprobs);
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
            kind.text_done_members(at, text, logprobs, event);
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
