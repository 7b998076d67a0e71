//! All subjects of one kind, by name, in parts that are locked one by one and for a moment only.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::HashMap;
use tokio::time::Instant;

use super::subject::Subject;

const PARTS: usize = 16;

type Part = HashMap<Box<str>, Arc<Subject>>;

#[derive(Debug, Default)]
pub(super) struct Shards {
    parts: [Mutex<Part>; PARTS],
}

impl Shards {
    pub(super) fn find(&self, key: &str, name: impl FnOnce() -> String) -> Arc<Subject> {
        // Ids differ at their ends.
        let at = key.bytes().rev().take(4).fold(0_usize, |at, byte| at * 7 + usize::from(byte)) % PARTS;
        let mut part = lock(&self.parts[at]);
        if let Some(known) = part.get(key) {
            return Arc::clone(known);
        }
        let subject = Arc::new(Subject::new(name(), Instant::now()));
        part.insert(key.into(), Arc::clone(&subject));
        subject
    }

    pub(super) fn each(&self, act: &mut impl FnMut(&Arc<Subject>)) {
        for part in &self.parts {
            let subjects: Vec<Arc<Subject>> = lock(part).values().cloned().collect();
            subjects.iter().for_each(&mut *act);
        }
    }

    /// Those who use nothing, and whom nobody holds.
    pub(super) fn forget(&self, now: Instant) {
        for part in &self.parts {
            let mut part = lock(part);
            part.retain(|_, subject| Arc::strong_count(subject) > 1 || !subject.state().is_idle(now));
            if part.len() * 4 < part.capacity() {
                part.shrink_to_fit();
            }
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(|part| lock(part).len()).sum()
    }
}

fn lock(part: &Mutex<Part>) -> MutexGuard<'_, Part> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}
