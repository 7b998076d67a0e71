//! An item that is open, of one of three forms.

use wire::json::{Raw, Text};
use wire::responses::{Incoming, Status};

use super::call::NativeCall;
use super::event::{Key, Op};
use super::other::OtherItem;
use super::text::TextItem;
use super::{Ctx, fits, string};
use crate::json::compact;
use crate::response::{CUSTOM, FUNCTION, SlotKind};

#[derive(Debug, Clone)]
pub(super) struct Open {
    pub(super) key: Key,
    pub(super) item: Item,
}

#[derive(Debug, Clone)]
pub(super) enum Item {
    /// A message, or reasoning.
    Text(TextItem),
    /// A call whose arguments stream.
    Call(NativeCall),
    Other(OtherItem),
}

impl Open {
    pub(super) fn new(key: Key) -> Self {
        let id = key.id.clone();
        let item = match &*key.item_type {
            "message" => Item::Text(TextItem::new(SlotKind::Message, id)),
            "reasoning" => Item::Text(TextItem::new(SlotKind::Reasoning, id)),
            "function_call" => Item::Call(NativeCall::new(&FUNCTION, id)),
            "custom_tool_call" => Item::Call(NativeCall::new(&CUSTOM, id)),
            other => Item::Other(OtherItem::new(other.to_owned(), id)),
        };
        Self { key, item }
    }
}

impl Item {
    pub(super) fn apply(&mut self, op: Op, event: &Incoming<'_>, ctx: &mut Ctx<'_>) {
        match self {
            Self::Text(item) => item.apply(op, event, ctx),
            Self::Call(item) => item.apply(op, event, ctx),
            Self::Other(item) => item.apply(op, event, ctx),
        }
    }

    /// How many bytes of content it has.
    pub(super) fn held(&self) -> usize {
        match self {
            Self::Text(item) => item.held(),
            Self::Call(item) => item.held(),
            Self::Other(item) => item.held(),
        }
    }

    /// Closes it. `last` is the whole item, where the upstream repeats it; `status` counts where that has none.
    pub(super) fn close(self, last: Option<Raw<'_>>, status: Status, ctx: &mut Ctx<'_>) {
        let said = string(last.and_then(|item| item.get("status"))).map(Text::decode);
        let status = match said.as_deref() {
            Some("completed") => Status::Completed,
            Some("incomplete") => Status::Incomplete,
            Some("failed") => Status::Failed,
            _ => status,
        };
        // Only what somebody else ran can fail without the answer being cut.
        let may_fail = matches!(self, Self::Other(_));
        let plain = if status == Status::Completed { status } else { Status::Incomplete };
        ctx.tally.cut |= if may_fail { status == Status::Incomplete } else { plain == Status::Incomplete };
        match self {
            Self::Text(item) => item.close(last, plain, ctx),
            Self::Call(item) => item.close(last, plain, ctx),
            Self::Other(item) => item.close(last, status, ctx),
        }
    }
}

/// The members of an item that we have no place for and that say something: they go along.
pub(super) fn more(item: Raw<'_>, known: &[&str]) -> Vec<(String, String)> {
    let unknown = item.fields().filter(|(key, value)| !value.is_null() && !known.iter().any(|name| key.is(name)));
    let clean = |value: Raw<'_>| {
        let mut out = Vec::new();
        compact(value.as_str(), &mut out);
        String::from_utf8(out).unwrap_or_default()
    };
    unknown.filter(|(_, value)| fits(*value)).map(|(key, value)| (key.decode().into_owned(), clean(value))).collect()
}
