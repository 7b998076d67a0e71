//! A response that the store does not have, and what continues it: the items of its turn, for a connection that remembers
//! them. Nothing here is ever written anywhere.

use std::sync::Arc;

use bytes::Bytes;
use store::Item;
use wire::responses::Status;

use super::object::{self, Beside};
use crate::body::Room;

/// The items of one turn, with everything before them that its connection does not remember already.
#[derive(Debug)]
pub(crate) struct Unstored {
    items: Vec<Item>,
    /// Of those that were read from the store.
    _rooms: Vec<Arc<Room>>,
    include_incomplete: bool,
}

impl Unstored {
    pub(super) const fn new(items: Vec<Item>, rooms: Vec<Arc<Room>>, include_incomplete: bool) -> Self {
        Self { items, _rooms: rooms, include_incomplete }
    }

    #[cfg(test)]
    pub(crate) const fn of(items: Vec<Item>) -> Self {
        Self::new(items, Vec::new(), true)
    }

    /// Whether another turn may follow one that ended so.
    pub(crate) const fn may_follow(&self, status: Status) -> bool {
        match status {
            Status::Completed => true,
            Status::Incomplete => self.include_incomplete,
            _ => false,
        }
    }

    /// Takes the items of the response itself, with what is kept beside them.
    pub(crate) fn answer(&mut self, object: &Bytes, kept: &[Beside]) {
        self.items.extend(object::split(object, kept).output);
    }

    pub(crate) fn items(&self) -> &[Item] {
        &self.items
    }
}
