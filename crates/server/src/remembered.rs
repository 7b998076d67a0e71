//! What was found out about something that clients send again with every turn, such as an image or a file: remembered for
//! as long as there is room, so that the same thing is the same words in every later turn, and the provider's cache of the
//! prefix holds.
//!
//! In memory only, and never written anywhere. A thing is known by a hash of it and of whose it is, so nobody learns from
//! what is remembered what somebody else has sent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_lc_rs::digest::{Context, SHA256};
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// What a thing costs beside what is known of it.
const OVERHEAD: usize = 256;
/// For so long what could not be found out is not tried again: each try would hold up a turn.
pub(crate) const REST: Duration = Duration::from_mins(1);

/// Something of a tenant's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RememberedKey([u8; 32]);

impl RememberedKey {
    /// Of all that makes it what it is, the tenant first.
    pub(crate) fn new<const N: usize>(parts: [&str; N]) -> Self {
        let mut hash = Context::new(&SHA256);
        for part in parts {
            hash.update(&(part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        let mut key = [0; 32];
        key.copy_from_slice(hash.finish().as_ref());
        Self(key)
    }
}

/// What can be remembered.
pub(crate) trait Memorable: Clone {
    fn bytes(&self) -> usize;
}

impl Memorable for Arc<str> {
    fn bytes(&self) -> usize {
        self.len()
    }
}

/// All that is remembered of one kind.
#[derive(Debug)]
pub(crate) struct Remembered<V> {
    known: Mutex<Known<V>>,
    room: usize,
}

#[derive(Debug)]
struct Known<V> {
    entries: HashMap<RememberedKey, Entry<V>>,
    bytes: usize,
    /// Counts looks: the larger, the later.
    looks: u64,
}

#[derive(Debug)]
struct Entry<V> {
    state: State<V>,
    looked_at: u64,
}

#[derive(Debug, Clone)]
enum State<V> {
    Found(V),
    Failed {
        until: Instant,
    },
    /// Somebody finds it out; who else wants to know waits for this.
    Asked(Arc<Semaphore>),
}

impl<V: Memorable> Entry<V> {
    fn bytes(&self) -> usize {
        OVERHEAD + if let State::Found(found) = &self.state { found.bytes() } else { 0 }
    }
}

impl<V: Memorable> Known<V> {
    fn look(&mut self, key: RememberedKey) -> Option<State<V>> {
        self.looks += 1;
        let looks = self.looks;
        let entry = self.entries.get_mut(&key)?;
        entry.looked_at = looks;
        Some(entry.state.clone())
    }

    fn put(&mut self, key: RememberedKey, state: State<V>, room: usize) {
        self.looks += 1;
        let entry = Entry { state, looked_at: self.looks };
        self.bytes += entry.bytes();
        if let Some(before) = self.entries.insert(key, entry) {
            self.bytes -= before.bytes();
        }
        if self.bytes > room {
            self.make_room(room);
        }
    }

    /// Forgets what was not looked at for longest, a quarter at once: so it is seldom done.
    fn make_room(&mut self, room: usize) {
        let mut ages: Vec<(u64, RememberedKey)> =
            self.entries.iter().map(|(key, entry)| (entry.looked_at, *key)).collect();
        ages.sort_unstable_by_key(|(looked_at, _)| *looked_at);
        for (_, key) in ages {
            if self.bytes <= room / 4 * 3 {
                break;
            }
            if let Some(gone) = self.entries.remove(&key) {
                self.bytes -= gone.bytes();
            }
        }
    }
}

impl<V: Memorable> Remembered<V> {
    /// With room for so many bytes.
    pub(crate) fn new(room: usize) -> Self {
        Self { known: Mutex::new(Known { entries: HashMap::new(), bytes: 0, looks: 0 }), room }
    }

    fn known(&self) -> MutexGuard<'_, Known<V>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets all that nobody is finding out.
    pub(crate) fn forget(&self) {
        let mut known = self.known();
        known.entries.retain(|_, entry| matches!(entry.state, State::Asked(_)));
        known.entries.shrink_to_fit();
        known.bytes = known.entries.values().map(Entry::bytes).sum();
    }

    /// What was found out, if anything was.
    pub(crate) fn get(&self, key: RememberedKey) -> Option<V> {
        match self.known().look(key) {
            Some(State::Found(found)) => Some(found),
            _ => None,
        }
    }

    /// Whether it was found out, or could not be a moment ago.
    pub(crate) fn is_known(&self, key: RememberedKey) -> bool {
        match self.known().look(key) {
            Some(State::Found(_)) => true,
            Some(State::Failed { until }) => Instant::now() < until,
            Some(State::Asked(_)) | None => false,
        }
    }

    /// Who finds it out holds the one permit of it meanwhile: of two who want to know at the same time, the second finds
    /// it known when it gets it. None: it is known by now.
    pub(crate) fn asking(&self, key: RememberedKey) -> Option<Arc<Semaphore>> {
        let mut known = self.known();
        match known.look(key) {
            Some(State::Found(_)) => return None,
            Some(State::Failed { until }) if Instant::now() < until => return None,
            Some(State::Asked(asking)) => return Some(asking),
            Some(State::Failed { .. }) | None => {}
        }
        let asking = Arc::new(Semaphore::new(1));
        known.put(key, State::Asked(Arc::clone(&asking)), self.room);
        Some(asking)
    }

    /// What came of it, or nothing.
    pub(crate) fn put(&self, key: RememberedKey, found: Option<V>) {
        let state = match found {
            Some(found) => State::Found(found),
            None => State::Failed { until: Instant::now() + REST },
        };
        self.known().put(key, state, self.room);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever looked before it was found out, and comes to ask only now, does not ask again.
    #[test]
    fn what_is_known_is_not_asked_for_again() {
        let (remembered, key) = (Remembered::<Arc<str>>::new(1000), RememberedKey::new(["one", "a"]));
        assert!(remembered.asking(key).is_some());
        remembered.put(key, Some("a cat".into()));
        assert!(remembered.asking(key).is_none());
        assert_eq!(remembered.get(key).as_deref(), Some("a cat"));
        remembered.put(key, None);
        assert!(remembered.asking(key).is_none(), "it rests");
        // Parts do not run into each other.
        assert_ne!(RememberedKey::new(["a", "bc"]), RememberedKey::new(["ab", "c"]));
    }

    #[tokio::test(start_paused = true)]
    async fn what_failed_rests_and_what_is_old_makes_room() {
        let remembered = Remembered::<Arc<str>>::new(8 * (OVERHEAD + 100));
        let key = |number: usize| RememberedKey::new(["m", &number.to_string()]);
        assert!(Arc::ptr_eq(&remembered.asking(key(0)).unwrap(), &remembered.asking(key(0)).unwrap()));
        assert!(!remembered.is_known(key(0)));
        remembered.put(key(0), None);
        assert!(remembered.is_known(key(0)) && remembered.get(key(0)).is_none());
        tokio::time::advance(REST).await;
        assert!(!remembered.is_known(key(0)));
        let words: Arc<str> = "x".repeat(100).into();
        for number in 1..100 {
            remembered.put(key(number), Some(Arc::clone(&words)));
            assert!(remembered.get(key(1)).is_some(), "what is looked at stays");
            assert!(remembered.known().bytes <= 8 * (OVERHEAD + 100));
        }
        let known = remembered.known();
        assert!(known.entries.len() < 10);
        assert_eq!(known.bytes, known.entries.values().map(Entry::bytes).sum::<usize>());
    }
}
