//! Where an item is, and all items of a turn in their order. Paths become text only when a note or an
//! error needs them.

use std::fmt;

use wire::json::Invalid;
use wire::responses::{CreateResponse, Input, InputItem, Item};

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

/// Every item of the turn: the past, then the input.
#[derive(Debug)]
pub(super) struct Items<'r, 'a>(pub(super) Vec<(&'r Item<'a>, ItemPath)>);

impl<'r, 'a> Items<'r, 'a> {
    pub(super) fn of(request: &'r CreateResponse<'a>, past: &'r [InputItem<'a>]) -> Self {
        let input = match &request.input {
            Some(Input::Items(items)) => items.as_slice(),
            Some(Input::Text(_)) | None => &[],
        };
        let placed = |list| {
            move |(index, kept): (usize, &'r InputItem<'a>)| {
                let item: &'r Item<'a> = &kept.value;
                (item, ItemPath { list, index })
            }
        };
        let past = past.iter().enumerate().map(placed(PAST));
        Self(past.chain(input.iter().enumerate().map(placed("input"))).collect())
    }
}
