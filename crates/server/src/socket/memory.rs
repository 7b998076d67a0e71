//! What a connection remembers: responses that are not stored, so that the next request of the same connection can
//! continue them. It ends with the connection, is bounded, and nothing of it reaches any file.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use store::{Item, Tenant};

use super::request::StreamId;
use crate::body::{Budget, Share};
use crate::session::Unstored;

/// Responses that one connection remembers; the oldest go first.
const MOST: usize = 256;

/// What an item costs beside its text.
const PER_ITEM: usize = 128;

#[derive(Debug)]
pub(super) struct Memory {
    known: VecDeque<Remembered>,
    /// Whose they are.
    tenant: Tenant,
    /// How many bytes are kept here, and how many may be.
    used: Arc<AtomicUsize>,
    limit: usize,
    /// Of all connections.
    budget: Arc<Budget>,
}

#[derive(Debug)]
struct Remembered {
    id: String,
    /// The lane that made it.
    lane: Option<StreamId>,
    turn: Arc<RememberedTurn>,
}

/// One turn's items, and the turn before it, which others may follow as well.
#[derive(Debug)]
pub(super) struct RememberedTurn {
    before: Option<Arc<Self>>,
    items: Vec<Item>,
    bytes: usize,
    used: Arc<AtomicUsize>,
    _share: Share,
}

impl Memory {
    pub(super) fn new(tenant: Tenant, limit: usize, budget: Arc<Budget>) -> Self {
        Self { known: VecDeque::new(), tenant, used: Arc::default(), limit, budget }
    }

    /// Whoever asks now is another than before: what was remembered is not theirs.
    pub(super) fn belongs_to(&mut self, tenant: &Tenant) {
        if self.tenant != *tenant {
            self.known.clear();
            self.tenant = tenant.clone();
        }
    }

    /// Whose it is.
    pub(super) const fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    pub(super) fn clear(&mut self) {
        self.known.clear();
    }

    /// The response of that id.
    pub(super) fn find(&self, id: &str) -> Option<Arc<RememberedTurn>> {
        self.known.iter().rev().find(|known| known.id == id).map(|known| Arc::clone(&known.turn))
    }

    /// Remembers a response that follows `before`. Where there is no room it is not: then its client is told that there
    /// is no such response, and sends everything.
    pub(super) fn keep(
        &mut self,
        id: String,
        lane: Option<StreamId>,
        before: Option<Arc<RememberedTurn>>,
        unstored: &Unstored,
    ) {
        let items = unstored.items();
        let bytes = items.iter().map(|item| item.body.len() + item.id.len() + PER_ITEM).sum();
        let Some(share) = self.make_room(bytes) else {
            tracing::debug!(bytes, "a connection has no room to remember a response");
            return;
        };
        self.used.fetch_add(bytes, Ordering::Relaxed);
        let (items, used) = (compact(items), Arc::clone(&self.used));
        let turn = Arc::new(RememberedTurn { before, items, bytes, used, _share: share });
        self.known.push_back(Remembered { id, lane, turn });
    }

    /// Forgets the oldest until there is room for so much.
    fn make_room(&mut self, bytes: usize) -> Option<Share> {
        if bytes > self.limit {
            return None;
        }
        loop {
            let fits = self.used.load(Ordering::Relaxed).saturating_add(bytes) <= self.limit;
            if self.known.len() < MOST
                && fits
                && let Ok(share) = self.budget.reserve(bytes)
            {
                return Some(share);
            }
            self.known.pop_front()?;
        }
    }

    /// A continuation on this lane failed. What another lane made stays: that lane may still go on with it.
    pub(super) fn forget(&mut self, id: &str, lane: Option<&StreamId>) {
        self.known.retain(|known| known.id != id || known.lane.as_ref() != lane);
    }
}

impl RememberedTurn {
    /// Every item up to and including this turn.
    pub(super) fn history(&self) -> Vec<Item> {
        let mut turns = vec![self];
        while let Some(before) = turns.last().and_then(|turn| turn.before.as_deref()) {
            turns.push(before);
        }
        turns.iter().rev().flat_map(|turn| turn.items.iter().cloned()).collect()
    }
}

impl Drop for RememberedTurn {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Ordering::Relaxed);
        // One after the other: a long history must not be taken apart by recursion.
        let mut before = self.before.take();
        while let Some(mut turn) = before.and_then(Arc::into_inner) {
            before = turn.before.take();
        }
    }
}

/// The items in memory of their own: where they came from is a request's body, or what the store read.
fn compact(items: &[Item]) -> Vec<Item> {
    let mut all = Vec::with_capacity(items.iter().map(|item| item.body.len()).sum());
    for item in items {
        all.extend_from_slice(&item.body);
    }
    let mut all = Bytes::from(all);
    items.iter().map(|item| Item { id: item.id.clone(), body: all.split_to(item.body.len()) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(text: &str) -> Item {
        Item { id: format!("id_{text}"), body: Bytes::copy_from_slice(text.as_bytes()) }
    }

    fn memory(limit: usize, budget: &Arc<Budget>) -> Memory {
        Memory::new(Tenant::default(), limit, Arc::clone(budget))
    }

    fn unstored(texts: &[&str]) -> Unstored {
        Unstored::of(texts.iter().map(|text| item(text)).collect())
    }

    fn texts(turn: &RememberedTurn) -> Vec<String> {
        turn.history().iter().map(|item| String::from_utf8_lossy(&item.body).into_owned()).collect()
    }

    #[test]
    fn forks_share_what_is_before_them_and_all_of_it_is_counted_once() {
        let budget = Budget::new(1 << 20);
        let mut memory = memory(1 << 20, &budget);
        let lane: StreamId = "fork".into();
        memory.keep("r1".to_owned(), None, None, &unstored(&["a", "b"]));
        let one = memory.find("r1").unwrap();
        memory.keep("r2".to_owned(), None, Some(Arc::clone(&one)), &unstored(&["c"]));
        memory.keep("r3".to_owned(), Some(Arc::clone(&lane)), Some(one), &unstored(&["d"]));
        assert_eq!(texts(&memory.find("r2").unwrap()), ["a", "b", "c"]);
        assert_eq!(texts(&memory.find("r3").unwrap()), ["a", "b", "d"]);
        assert_eq!(budget.used(), 4 * (PER_ITEM + 5));
        memory.forget("r1", Some(&lane));
        assert!(memory.find("r1").is_some(), "a failed fork leaves the lane its response");
        memory.forget("r1", None);
        assert!(memory.find("r1").is_none());
        assert_eq!(texts(&memory.find("r3").unwrap()), ["a", "b", "d"]);
        drop(memory);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn the_oldest_go_and_what_is_too_large_is_not_remembered() {
        let budget = Budget::new(1 << 20);
        let mut memory = memory(3 * (PER_ITEM + 5), &budget);
        for id in ["r1", "r2", "r3", "r4"] {
            memory.keep(id.to_owned(), None, None, &unstored(&["a"]));
        }
        assert!(memory.find("r1").is_none() && memory.find("r2").is_some());
        memory.keep("large".to_owned(), None, None, &unstored(&[&"x".repeat(1000)]));
        assert!(memory.find("large").is_none());
        memory.belongs_to(&Tenant::default());
        assert!(memory.find("r4").is_some(), "nothing went for it");
    }

    #[test]
    fn a_very_long_history_ends_quietly() {
        let budget = Budget::new(1 << 30);
        let mut memory = memory(1 << 30, &budget);
        let mut before = None;
        for _ in 0..100_000 {
            memory.keep("r".to_owned(), None, before, &unstored(&["a"]));
            before = memory.find("r");
        }
        drop(memory);
        drop(before);
        assert_eq!(budget.used(), 0);
    }
}
