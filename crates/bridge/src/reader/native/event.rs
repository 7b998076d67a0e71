//! What an event says, by its name, and which item it is about.

use wire::json::{Raw, Text};
use wire::responses::{EventKind, Incoming};

use super::string;
use crate::response::{CUSTOM, CallKind, FUNCTION, PartKind, SlotKind};

/// What an event says.
#[derive(Debug, Clone, Copy)]
pub(super) enum EventMeaning {
    /// Nothing that we do not say ourselves.
    Nothing,
    Unknown,
    Error,
    /// The end, with this status.
    Over(&'static str),
    Item(Op),
}

/// What is said of an item.
#[derive(Debug, Clone, Copy)]
pub(super) enum Op {
    Added,
    Done,
    PartAdded,
    PartDone,
    Delta(PartKind),
    TextDone(PartKind),
    Annotation,
    CallDelta(&'static CallKind),
    CallDone(&'static CallKind),
    /// An event that only items of one kind have.
    Own(EventKind),
}

impl Op {
    /// Whether the event has something of an answer in it: a message and reasoning are announced with nothing in them.
    pub(super) fn says_something(self, event: &Incoming<'_>) -> bool {
        let item = || string(event.item.and_then(|item| item.get("type")));
        match self {
            Self::Added => item().is_some_and(|name| !name.is("message") && !name.is("reasoning")),
            Self::PartAdded => false,
            Self::Delta(_) | Self::CallDelta(_) => string(event.delta).is_some(),
            _ => true,
        }
    }
}

pub(super) fn read(name: &str) -> EventMeaning {
    let op = match name {
        // Another name for the same, in one of the published schemas.
        "response.reasoning.delta" => Op::Delta(PartKind::Reasoning),
        "response.reasoning.done" => Op::TextDone(PartKind::Reasoning),
        "response.cancelled" => return EventMeaning::Over("cancelled"),
        _ => match EventKind::named(name) {
            None => return EventMeaning::Unknown,
            Some(kind) => match known(kind) {
                Ok(op) => op,
                Err(meaning) => return meaning,
            },
        },
    };
    EventMeaning::Item(op)
}

fn known(kind: EventKind) -> Result<Op, EventMeaning> {
    use EventKind as E;
    Ok(match kind {
        E::Created | E::Queued | E::InProgress => return Err(EventMeaning::Nothing),
        E::Error => return Err(EventMeaning::Error),
        E::Completed => return Err(EventMeaning::Over("completed")),
        E::Incomplete => return Err(EventMeaning::Over("incomplete")),
        E::Failed => return Err(EventMeaning::Over("failed")),
        E::OutputItemAdded => Op::Added,
        E::OutputItemDone => Op::Done,
        E::ContentPartAdded | E::ReasoningSummaryPartAdded => Op::PartAdded,
        E::ContentPartDone | E::ReasoningSummaryPartDone => Op::PartDone,
        E::OutputTextDelta => Op::Delta(PartKind::Text),
        E::OutputTextDone => Op::TextDone(PartKind::Text),
        E::RefusalDelta => Op::Delta(PartKind::Refusal),
        E::RefusalDone => Op::TextDone(PartKind::Refusal),
        E::ReasoningTextDelta => Op::Delta(PartKind::Reasoning),
        E::ReasoningTextDone => Op::TextDone(PartKind::Reasoning),
        E::ReasoningSummaryTextDelta => Op::Delta(PartKind::Summary),
        E::ReasoningSummaryTextDone => Op::TextDone(PartKind::Summary),
        E::OutputTextAnnotationAdded => Op::Annotation,
        E::FunctionCallArgumentsDelta => Op::CallDelta(&FUNCTION),
        E::FunctionCallArgumentsDone => Op::CallDone(&FUNCTION),
        E::CustomToolCallInputDelta => Op::CallDelta(&CUSTOM),
        E::CustomToolCallInputDone => Op::CallDone(&CUSTOM),
        own => Op::Own(own),
    })
}

/// The kind of a part, by its `type`.
pub(super) fn part_kind(part: Raw<'_>) -> Option<PartKind> {
    Some(match &*part.get("type")?.text()?.decode() {
        "output_text" | "text" => PartKind::Text,
        "refusal" => PartKind::Refusal,
        "reasoning_text" => PartKind::Reasoning,
        "summary_text" => PartKind::Summary,
        _ => return None,
    })
}

const fn slot_type(kind: PartKind) -> &'static str {
    match kind.slot() {
        SlotKind::Message => "message",
        SlotKind::Reasoning => "reasoning",
    }
}

/// By what the upstream knows an item: an id, a place in the output, a type.
#[derive(Debug, Clone)]
pub(super) struct Key {
    pub(super) id: String,
    index: Option<u64>,
    pub(super) item_type: String,
}

impl Key {
    /// The item that an event speaks of first; `None` where it does not tell what it would be.
    pub(super) fn of(op: Op, event: &Incoming<'_>) -> Option<Self> {
        let item_type = match op {
            Op::Added | Op::Done => string(event.item?.get("type"))?.decode().into_owned(),
            Op::PartAdded | Op::PartDone => slot_type(part_kind(event.part?)?).to_owned(),
            Op::Delta(kind) | Op::TextDone(kind) => slot_type(kind).to_owned(),
            Op::CallDelta(kind) | Op::CallDone(kind) => kind.item_type.to_owned(),
            Op::Annotation | Op::Own(_) => return None,
        };
        Some(Self { id: id(event).unwrap_or_default(), index: index(event.output_index), item_type })
    }

    /// An item of the object at the end.
    pub(super) fn of_item(item: Raw<'_>) -> Option<Self> {
        let item_type = string(item.get("type"))?.decode().into_owned();
        let id = string(item.get("id")).map(Text::decode).unwrap_or_default().into_owned();
        Some(Self { id, index: None, item_type })
    }

    /// Whether the event is about this item. Not every server repeats ids, or places, or keeps to them.
    pub(super) fn is_of(&self, op: Op, event: &Incoming<'_>) -> bool {
        let id = id(event);
        match &id {
            Some(id) if *id == self.id => return true,
            Some(_) if !self.id.is_empty() && matches!(op, Op::Added) => return false,
            _ => {}
        }
        let fits = match op {
            Op::Added => return false,
            Op::Done => {
                string(event.item.and_then(|item| item.get("type"))).is_some_and(|name| name.is(&self.item_type))
            }
            Op::PartAdded | Op::PartDone | Op::Annotation => matches!(&*self.item_type, "message" | "reasoning"),
            Op::Delta(kind) | Op::TextDone(kind) => slot_type(kind) == self.item_type,
            Op::CallDelta(kind) | Op::CallDone(kind) => kind.item_type == self.item_type,
            Op::Own(kind) => own_of(kind, &self.item_type),
        };
        match (self.index, index(event.output_index)) {
            (Some(a), Some(b)) => a == b && fits,
            _ => fits && (id.is_none() || self.id.is_empty()),
        }
    }
}

/// Whether an item of this type has such an event.
pub(super) fn own_of(kind: EventKind, item_type: &str) -> bool {
    kind.name().strip_prefix("response.").is_some_and(|name| name.starts_with(item_type))
}

pub(super) fn id(event: &Incoming<'_>) -> Option<String> {
    let id = string(event.item_id).or_else(|| string(event.item?.get("id")));
    id.map(|id| id.decode().into_owned())
}

pub(super) fn index(raw: Option<Raw<'_>>) -> Option<u64> {
    raw?.as_str().parse().ok()
}
