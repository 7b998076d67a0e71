//! Where an item is, and all items of a turn in their order. Paths become text only when a note or an
//! error needs them.

use std::fmt;

use wire::json::Invalid;
use wire::responses::{CreateResponse, Input, InputItem, Item};

use super::compaction::{Sent, Standing, Unfolded};
use super::tools::names::fnv;

const PAST: &str = "history";

/// The path of an item: `history[3]`, `input[0]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ItemPath {
    list: &'static str,
    index: usize,
}

impl ItemPath {
    /// An error inside this item.
    pub(super) fn locate(self, invalid: Invalid) -> Invalid {
        invalid.at_index(self.index).at(self.list)
    }

    /// Whether it is of the past: this request cannot put it right.
    pub(super) fn is_past(self) -> bool {
        self.list == PAST
    }

    /// A member of this item.
    pub(super) const fn member(self, name: &'static str) -> MemberPath {
        MemberPath { path: self, name, index: None }
    }
}

impl fmt::Display for ItemPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.list, self.index)
    }
}

/// A member of an item, or an element of it: `input[0].content[1]`.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemberPath {
    path: ItemPath,
    name: &'static str,
    index: Option<usize>,
}

impl MemberPath {
    pub(super) const fn element(self, index: usize) -> Self {
        Self { index: Some(index), ..self }
    }
}

impl fmt::Display for MemberPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.path, self.name)?;
        self.index.map_or(Ok(()), |index| write!(f, "[{index}]"))
    }
}

/// Every item of the turn that is sent: the past, then the input. And those of which only the tools that they declare
/// are left.
#[derive(Debug)]
pub(super) struct Items<'r, 'a> {
    pub(super) sent: Vec<(&'r Item<'a>, ItemPath)>,
    pub(super) declaring: Vec<(&'r Item<'a>, ItemPath)>,
    /// A summary has taken the place of some.
    pub(super) summarised: bool,
    /// Where summaries are among those that are sent, and what each is known by.
    pub(super) summaries: Vec<(usize, u64)>,
}

impl<'r, 'a> Items<'r, 'a> {
    pub(super) fn of(request: &'r CreateResponse<'a>, past: &'r [InputItem<'a>], unfolded: &'r [Unfolded<'a>]) -> Self {
        let summarised = !unfolded.is_empty();
        let mut items = Self { sent: Vec::new(), declaring: Vec::new(), summarised, summaries: Vec::new() };
        each(request, past, unfolded, |item, path, sent| {
            if sent == Sent::Summary {
                items.summaries.push((items.sent.len(), fnv(item.raw.as_str().as_bytes())));
            }
            match sent {
                Sent::Whole | Sent::Summary => items.sent.push((&item.value, path)),
                Sent::Tools => items.declaring.push((&item.value, path)),
                Sent::Nothing => {}
            }
        });
        items
    }

    /// Whether anything that was thought is among them.
    pub(super) fn have_thoughts(&self) -> bool {
        self.sent.iter().any(|(item, _)| matches!(item, Item::Reasoning(_)))
    }
}

/// Every item of the turn with its place and what is sent of it; in the place of a compaction item of ours, what it holds.
pub(super) fn each<'r, 'a>(
    request: &'r CreateResponse<'a>,
    past: &'r [InputItem<'a>],
    unfolded: &'r [Unfolded<'a>],
    mut item: impl FnMut(&'r InputItem<'a>, ItemPath, Sent),
) {
    let input: &'r [InputItem<'a>] = match &request.input {
        Some(Input::Items(items)) => items.as_slice(),
        Some(Input::Text(_)) | None => &[],
    };
    let standing = Standing::of(unfolded);
    for kept in standing.dropped_instructions(past.iter().chain(input)) {
        item(kept, ItemPath { list: PAST, index: 0 }, Sent::Whole);
    }
    let placed = |list| move |(index, kept): (usize, &'r InputItem<'a>)| (kept, ItemPath { list, index });
    let past = past.iter().enumerate().map(placed(PAST));
    for (place, (kept, path)) in past.chain(input.iter().enumerate().map(placed("input"))).enumerate() {
        match (standing.sent(place, &kept.value), standing.replacement(place)) {
            (Sent::Whole, Some(unfolded)) => {
                let how = std::iter::once(Sent::Summary).chain(std::iter::repeat(Sent::Whole));
                unfolded.items.iter().zip(how).for_each(|(kept, how)| item(kept, path, how));
            }
            (sent, _) => item(kept, path, sent),
        }
    }
}
