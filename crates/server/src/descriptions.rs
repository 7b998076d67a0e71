//! What images show, in words, as a model that sees has said: remembered for as long as there is room, so that the same
//! image is the same words in every later turn, and the provider's cache of the prefix holds.
//!
//! In memory only, and never written anywhere: an image is known by a hash of it, the tenant that sent it and the model
//! that was asked, so nobody learns from these words what somebody else has sent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::digest::{Context, SHA256};
use bridge::ImageTexts;
use store::Tenant;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Bytes of words that are remembered.
const ROOM: usize = 16 << 20;
/// What an image costs beside its words.
const OVERHEAD: usize = 256;
/// For so long an image that could not be described is not tried again: each try would hold up a turn.
const REST: Duration = Duration::from_mins(1);
/// How many are described at the same time, over all requests.
const AT_ONCE: usize = 8;

/// An image of a tenant, as one model sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ImageKey([u8; 32]);

impl ImageKey {
    pub(crate) fn new(tenant: &Tenant, model: &str, url: &str) -> Self {
        let mut hash = Context::new(&SHA256);
        for part in [tenant.name(), model, url] {
            hash.update(&(part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        let mut key = [0; 32];
        key.copy_from_slice(hash.finish().as_ref());
        Self(key)
    }
}

/// All that is remembered.
#[derive(Debug)]
pub(crate) struct Descriptions {
    known: Mutex<Known>,
    /// Whoever describes holds one.
    pub(crate) turns: Semaphore,
    room: usize,
}

#[derive(Debug, Default)]
struct Known {
    images: HashMap<ImageKey, Entry>,
    bytes: usize,
    /// Counts looks: the larger, the later.
    looks: u64,
}

#[derive(Debug)]
struct Entry {
    state: State,
    looked_at: u64,
}

#[derive(Debug, Clone)]
enum State {
    Described(Arc<str>),
    Failed {
        until: Instant,
    },
    /// Somebody asks; who else wants to know waits for this.
    Asked(Arc<Semaphore>),
}

impl Default for Descriptions {
    fn default() -> Self {
        Self { known: Mutex::default(), turns: Semaphore::new(AT_ONCE), room: ROOM }
    }
}

impl Entry {
    fn bytes(&self) -> usize {
        OVERHEAD + if let State::Described(text) = &self.state { text.len() } else { 0 }
    }
}

impl Known {
    fn look(&mut self, key: ImageKey) -> Option<State> {
        self.looks += 1;
        let looks = self.looks;
        let entry = self.images.get_mut(&key)?;
        entry.looked_at = looks;
        Some(entry.state.clone())
    }

    fn put(&mut self, key: ImageKey, state: State, room: usize) {
        self.looks += 1;
        let entry = Entry { state, looked_at: self.looks };
        self.bytes += entry.bytes();
        if let Some(before) = self.images.insert(key, entry) {
            self.bytes -= before.bytes();
        }
        if self.bytes > room {
            self.make_room(room);
        }
    }

    /// Forgets what was not looked at for longest, a quarter at once: so it is seldom done.
    fn make_room(&mut self, room: usize) {
        let mut ages: Vec<(u64, ImageKey)> = self.images.iter().map(|(key, entry)| (entry.looked_at, *key)).collect();
        ages.sort_unstable_by_key(|(looked_at, _)| *looked_at);
        for (_, key) in ages {
            if self.bytes <= room / 4 * 3 {
                break;
            }
            if let Some(gone) = self.images.remove(&key) {
                self.bytes -= gone.bytes();
            }
        }
    }
}

impl Descriptions {
    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets all that was described.
    pub(crate) fn clear(&self) {
        let mut known = self.known();
        known.images.retain(|_, entry| matches!(entry.state, State::Asked(_)));
        known.bytes = known.images.values().map(Entry::bytes).sum();
    }

    /// The words for an image, if there are some.
    pub(crate) fn get(&self, key: ImageKey) -> Option<Arc<str>> {
        match self.known().look(key) {
            Some(State::Described(text)) => Some(text),
            _ => None,
        }
    }

    /// Whether it is described, or could not be a moment ago.
    pub(crate) fn is_known(&self, key: ImageKey) -> bool {
        match self.known().look(key) {
            Some(State::Described(_)) => true,
            Some(State::Failed { until }) => Instant::now() < until,
            Some(State::Asked(_)) | None => false,
        }
    }

    /// Who asks holds the one permit of it meanwhile: of two who want to know at the same time, the second finds the words
    /// when it gets it. None: it is known by now.
    pub(crate) fn asking(&self, key: ImageKey) -> Option<Arc<Semaphore>> {
        let mut known = self.known();
        match known.look(key) {
            Some(State::Described(_)) => return None,
            Some(State::Failed { until }) if Instant::now() < until => return None,
            Some(State::Asked(asking)) => return Some(asking),
            Some(State::Failed { .. }) | None => {}
        }
        let asking = Arc::new(Semaphore::new(1));
        known.put(key, State::Asked(Arc::clone(&asking)), self.room);
        Some(asking)
    }

    /// What came of asking: the words, or none.
    pub(crate) fn put(&self, key: ImageKey, text: Option<&str>) {
        let state = match text {
            Some(text) => State::Described(text.into()),
            None => State::Failed { until: Instant::now() + REST },
        };
        self.known().put(key, state, self.room);
    }

    /// As one tenant sees them.
    pub(crate) fn of<'d>(&'d self, tenant: &'d Tenant, model: &'d str) -> TenantDescriptions<'d> {
        TenantDescriptions { all: self, tenant, model }
    }
}

/// What one tenant's images show, as one model sees them.
#[derive(Debug)]
pub(crate) struct TenantDescriptions<'d> {
    all: &'d Descriptions,
    tenant: &'d Tenant,
    model: &'d str,
}

impl ImageTexts for TenantDescriptions<'_> {
    fn of(&self, url: &str) -> Option<Arc<str>> {
        self.all.get(ImageKey::new(self.tenant, self.model, url))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever looked before it was described, and comes to ask only now, does not ask again.
    #[test]
    fn what_is_described_is_not_asked_for_again() {
        let (descriptions, key) = (Descriptions::default(), ImageKey::new(&Tenant::new("one"), "seer", "data:a"));
        assert!(descriptions.asking(key).is_some());
        descriptions.put(key, Some("a cat"));
        assert!(descriptions.asking(key).is_none());
        assert_eq!(descriptions.get(key).as_deref(), Some("a cat"));
        descriptions.put(key, None);
        assert!(descriptions.asking(key).is_none(), "it rests");
    }

    #[test]
    fn an_image_is_known_to_whom_it_was_described_only() {
        let (one, two) = (Tenant::new("one"), Tenant::new("two"));
        let descriptions = Descriptions::default();
        descriptions.put(ImageKey::new(&one, "seer", "data:a"), Some("a cat"));
        let found = |tenant: &Tenant, model: &str, url: &str| descriptions.of(tenant, model).of(url);
        assert_eq!(found(&one, "seer", "data:a").as_deref(), Some("a cat"));
        assert_eq!(found(&two, "seer", "data:a"), None);
        assert_eq!(found(&one, "other", "data:a"), None);
        assert_eq!(found(&one, "seer", "data:b"), None);
        // Parts do not run into each other.
        assert_ne!(ImageKey::new(&one, "a", "bc"), ImageKey::new(&one, "ab", "c"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_failed_rests_and_what_is_old_makes_room() {
        let descriptions = Descriptions { room: 8 * (OVERHEAD + 100), ..Descriptions::default() };
        let tenant = Tenant::default();
        let key = |number: usize| ImageKey::new(&tenant, "m", &number.to_string());
        assert!(Arc::ptr_eq(&descriptions.asking(key(0)).unwrap(), &descriptions.asking(key(0)).unwrap()));
        assert!(!descriptions.is_known(key(0)));
        descriptions.put(key(0), None);
        assert!(descriptions.is_known(key(0)) && descriptions.get(key(0)).is_none());
        tokio::time::advance(REST).await;
        assert!(!descriptions.is_known(key(0)));
        let words = "x".repeat(100);
        for number in 1..100 {
            descriptions.put(key(number), Some(&words));
            assert!(descriptions.get(key(1)).is_some(), "what is looked at stays");
            assert!(descriptions.known().bytes <= 8 * (OVERHEAD + 100));
        }
        let known = descriptions.known();
        assert!(known.images.len() < 10);
        assert_eq!(known.bytes, known.images.values().map(Entry::bytes).sum::<usize>());
    }
}
