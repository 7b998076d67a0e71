//! A budget of bytes for the bodies of all requests together. What a client sends in a kilobyte may become
//! megabytes here, and stays as long as a provider takes to answer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;

use crate::error::ApiError;

/// The largest page of a list.
const PAGE: usize = 32 << 20;

#[derive(Debug)]
pub(crate) struct Budget {
    limit: usize,
    used: AtomicUsize,
    /// What this is a part of.
    whole: Option<Arc<Self>>,
    /// Its own parts, as long as anybody holds them.
    parts: Mutex<Parts>,
}

#[derive(Debug, Default)]
struct Parts {
    known: HashMap<Box<str>, Weak<Budget>>,
    /// So many are not looked through for those that are gone.
    enough: usize,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Self::of(limit, None)
    }

    fn of(limit: usize, whole: Option<Arc<Self>>) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicUsize::new(0), whole, parts: Mutex::default() })
    }

    /// A part of this budget: what is taken from it is taken from the whole as well. All who name it share it.
    pub(crate) fn part(self: &Arc<Self>, name: &str, limit: u64) -> Arc<Self> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = parts.known.get(name).and_then(Weak::upgrade).filter(|known| known.limit == limit) {
            return known;
        }
        if parts.known.len() >= parts.enough {
            parts.known.retain(|_, part| part.strong_count() > 0);
            parts.enough = (parts.known.len() * 2).max(64);
        }
        let part = Self::of(limit, Some(Arc::clone(self)));
        parts.known.insert(name.into(), Arc::downgrade(&part));
        part
    }

    /// Room for bytes that are held elsewhere.
    pub(crate) fn reserve(self: &Arc<Self>, bytes: usize) -> Result<Share, ApiError> {
        let mut share = Share::new(self);
        share.grow_to(bytes)?;
        Ok(share)
    }

    /// Bytes that are made here, counted from now until the last reference to them is gone.
    pub(crate) fn hold(self: &Arc<Self>, bytes: Vec<u8>) -> Result<Bytes, ApiError> {
        Ok(self.reserve(bytes.len())?.hold(bytes))
    }

    /// `all`: what whoever takes them has then.
    fn take(&self, bytes: usize, all: usize) -> Result<(), ApiError> {
        let more = |used: usize| used.checked_add(bytes).filter(|used| *used <= self.limit);
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        let Some(whole) = &self.whole else {
            return taken.map(drop).map_err(|_| ApiError::too_many_bytes());
        };
        if taken.is_err() {
            self.check(all)?;
            return Err(ApiError::too_many_bytes_of_one());
        }
        whole.take(bytes, all).inspect_err(|_| _ = self.used.fetch_sub(bytes, Ordering::Relaxed))
    }

    /// Whether so much could be had at all, of what one key or tenant may hold.
    fn check(&self, bytes: usize) -> Result<(), ApiError> {
        match &self.whole {
            Some(_) if bytes > self.limit => Err(ApiError::body_beyond_limit(self.limit)),
            Some(whole) => whole.check(bytes),
            None => Ok(()),
        }
    }

    fn most(&self) -> usize {
        self.whole.as_ref().map_or(self.limit, |whole| whole.most().min(self.limit))
    }

    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(whole) = &self.whole {
            whole.give_back(bytes);
        }
    }

    /// Room for what one request reads from the store.
    pub(crate) fn room(self: &Arc<Self>) -> Arc<Room> {
        Arc::new(Room { budget: Arc::clone(self), bytes: AtomicUsize::new(0) })
    }

    /// What is held now.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// How much one page of a list may show: few pages that nobody reads must not take everything.
    pub(crate) fn page(&self) -> usize {
        PAGE.min(self.limit / 4)
    }
}

/// One request's part of the budget.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Share {
    pub(crate) fn new(budget: &Arc<Budget>) -> Self {
        Self { budget: Arc::clone(budget), bytes: 0 }
    }

    /// Refuses what could not be taken if nobody else took anything: no wait helps.
    pub(crate) fn expects(&self, bytes: usize) -> Result<(), ApiError> {
        self.budget.check(bytes)
    }

    /// Takes what is missing up to `bytes`.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> Result<(), ApiError> {
        let missing = bytes.saturating_sub(self.bytes);
        if missing > 0 {
            self.budget.take(missing, bytes)?;
            self.bytes += missing;
        }
        Ok(())
    }

    /// What it could take if nobody else took anything.
    pub(crate) fn most(&self) -> usize {
        self.budget.most()
    }

    /// Bytes that give the share back when the last reference to them is gone; what was taken beyond them, now.
    pub(crate) fn hold(mut self, bytes: Vec<u8>) -> Bytes {
        let spare = self.bytes.saturating_sub(bytes.len());
        self.budget.give_back(spare);
        self.bytes -= spare;
        self.hold_all(bytes)
    }

    /// The same, and what was taken beyond them is kept as long.
    pub(crate) fn hold_all(self, bytes: Vec<u8>) -> Bytes {
        if bytes.is_empty() {
            return Bytes::new();
        }
        Bytes::from_owner(Held { bytes, _share: self })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}

/// What was read from the store for one request; counted while it is read, until this is gone.
#[derive(Debug)]
pub(crate) struct Room {
    budget: Arc<Budget>,
    bytes: AtomicUsize,
}

impl store::Room for Room {
    fn take(&self, bytes: usize) -> bool {
        let taken = self.budget.take(bytes, bytes).is_ok();
        self.bytes.fetch_add(if taken { bytes } else { 0 }, Ordering::Relaxed);
        taken
    }

    fn give_back(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.budget.give_back(bytes);
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.budget.give_back(*self.bytes.get_mut());
    }
}

struct Held {
    bytes: Vec<u8>,
    _share: Share,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    #[test]
    fn what_is_taken_comes_back_with_the_last_reference() {
        let budget = Budget::new(100);
        let mut share = Share::new(&budget);
        share.grow_to(90).unwrap();
        let body = share.hold(vec![0; 60]);
        assert_eq!(budget.used.load(Ordering::Relaxed), 60, "what was taken too much is given back");
        let slice = body.slice(..1);
        drop(body);
        let refused = budget.hold(vec![0; 41]).unwrap_err();
        assert_eq!((refused.status.as_u16(), refused.retry_after), (503, Some(1)));
        assert_eq!(budget.hold(vec![0; 40]).unwrap().len(), 40);
        drop(slice);
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_part_is_taken_from_the_whole_and_shared_by_all_who_name_it() {
        let whole = Budget::new(100);
        let (one, same, other) = (whole.part("a", 60), whole.part("a", 60), whole.part("b", 60));
        let held = one.hold(vec![0; 40]).unwrap();
        assert_eq!((same.used(), whole.used()), (40, 40));
        assert_eq!(same.reserve(21).unwrap_err().code, Code::BodyBytes);
        // What is more than there will ever be is refused for good, also if it comes in pieces, or others hold it all.
        let mut pieces = Share::new(&same);
        pieces.grow_to(10).unwrap();
        assert_eq!(pieces.grow_to(61).unwrap_err().code, Code::RequestBeyondLimit);
        assert_eq!(pieces.expects(61).unwrap_err().code, Code::RequestBeyondLimit);
        assert_eq!(pieces.grow_to(60).unwrap_err().code, Code::BodyBytes);
        assert!(pieces.expects(60).is_ok());
        drop(pieces);
        // Of the whole there is not as much left as of the part; nothing of a refused share stays.
        let more = other.reserve(60).unwrap();
        assert_eq!(same.reserve(1).unwrap_err().status.as_u16(), 503);
        assert_eq!((same.used(), other.used(), whole.used()), (40, 60, 100));
        drop((held, more));
        assert_eq!((same.used(), other.used(), whole.used()), (0, 0, 0));
        // Those that nobody holds are forgotten, and another limit counts at once.
        drop((one, same, other));
        for name in 0..1000 {
            whole.part(&name.to_string(), 1);
        }
        assert!(whole.parts.lock().unwrap().known.len() <= 65);
        assert!(whole.part("a", 80).reserve(61).is_ok());
    }

    #[test]
    fn what_is_read_counts_until_its_room_is_gone() {
        let budget = Budget::new(100);
        let (one, other) = (budget.room(), budget.room());
        assert!(store::Room::take(&*one, 60) && !store::Room::take(&*other, 41));
        store::Room::give_back(&*one, 20);
        assert!(store::Room::take(&*other, 41));
        drop(one);
        assert_eq!(budget.used.load(Ordering::Relaxed), 41);
        drop(other);
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }
}
