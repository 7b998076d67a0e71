//! Turns of this process that have a place of their tenant and wait for what their key may use: in a line for each key, the
//! oldest first. Only the first of a line tries; it leaves when it has what it needs, or gives up.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// When it was made (Unix milliseconds), and a number for those of one moment.
type Ticket = (i64, u64);

#[derive(Debug, Default)]
pub(crate) struct Lines {
    by_key: Mutex<HashMap<String, BTreeSet<Ticket>>>,
    next: AtomicU64,
    /// Somebody has left, or something has ended that a place may be free after.
    moved: Notify,
}

impl Lines {
    /// Puts a turn of the key that was made then into its line, until this is dropped.
    pub(crate) fn join(self: &Arc<Self>, key: &str, made_at: i64) -> InLine {
        let ticket = (made_at, self.next.fetch_add(1, Ordering::Relaxed));
        self.by_key().entry(key.to_owned()).or_default().insert(ticket);
        InLine { lines: Arc::clone(self), key: key.to_owned(), ticket }
    }

    /// Whether any turn of the key waits here.
    pub(crate) fn any(&self, key: &str) -> bool {
        self.by_key().contains_key(key)
    }

    /// Has whoever is first look again.
    pub(crate) fn ring(&self) {
        self.moved.notify_waiters();
    }

    fn by_key(&self) -> MutexGuard<'_, HashMap<String, BTreeSet<Ticket>>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A turn in the line of its key.
#[derive(Debug)]
pub(crate) struct InLine {
    lines: Arc<Lines>,
    key: String,
    ticket: Ticket,
}

impl InLine {
    /// Whether no older one waits. One that has left waits for nobody.
    pub(crate) fn is_first(&self) -> bool {
        let by_key = self.lines.by_key();
        by_key.get(&self.key).and_then(BTreeSet::first).is_none_or(|first| *first >= self.ticket)
    }

    /// Ready when the line may have moved since this was called.
    pub(crate) fn moved(&self) -> Notified<'_> {
        self.lines.moved.notified()
    }

    /// It has what it waited for: the next one may try.
    pub(crate) fn leave(&self) {
        let mut by_key = self.lines.by_key();
        let Some(line) = by_key.get_mut(&self.key) else { return };
        let was_there = line.remove(&self.ticket);
        if line.is_empty() {
            by_key.remove(&self.key);
        }
        drop(by_key);
        if was_there {
            self.lines.ring();
        }
    }
}

impl Drop for InLine {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn the_oldest_of_a_key_is_first() {
        let lines = Arc::new(Lines::default());
        let (later, older, other) = (lines.join("a", 7), lines.join("a", 5), lines.join("b", 9));
        let same = lines.join("a", 5);
        assert!(older.is_first() && other.is_first() && !later.is_first() && !same.is_first());
        let moved = later.moved();
        older.leave();
        assert_eq!(moved.now_or_never(), Some(()));
        assert!(same.is_first() && older.is_first() && !later.is_first());
        drop(same);
        assert!(later.is_first() && lines.any("a"));
        drop(later);
        assert!(!lines.any("a") && lines.any("b"));
    }
}
