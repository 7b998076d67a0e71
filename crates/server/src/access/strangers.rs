//! Keys that are not known here, and may have been made on another instance a moment ago: before they are refused, the store
//! is looked at once more. That is bounded, so that whoever guesses makes the store no work.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;

/// So often a second, whoever asks, and however many.
const LOOKS: usize = 5;
const SECOND: u64 = 1000;
/// So many are not looked for again.
const REMEMBERED: usize = 4096;

#[derive(Debug)]
pub(super) struct Strangers {
    /// Held by the one who looks.
    pub(super) looking: Semaphore,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// When the last ones looked, in milliseconds.
    looks: VecDeque<u64>,
    refused: HashSet<[u8; 32]>,
    oldest: VecDeque<[u8; 32]>,
}

impl Strangers {
    pub(super) fn new() -> Self {
        Self { looking: Semaphore::new(1), state: Mutex::default() }
    }

    /// Whether the store may be looked at for one more of them, which is counted.
    pub(super) fn may_look(&self, now: u64) -> bool {
        let mut state = self.state();
        if state.looks.len() >= LOOKS {
            if state.looks.front().is_some_and(|first| now.saturating_sub(*first) < SECOND) {
                return false;
            }
            state.looks.pop_front();
        }
        state.looks.push_back(now);
        true
    }

    /// The store does not know it either, and nobody makes a key that somebody has shown before.
    pub(super) fn refuse(&self, hash: &[u8; 32]) {
        let mut state = self.state();
        if !state.refused.insert(*hash) {
            return;
        }
        state.oldest.push_back(*hash);
        if state.oldest.len() > REMEMBERED
            && let Some(oldest) = state.oldest.pop_front()
        {
            state.refused.remove(&oldest);
        }
    }

    pub(super) fn is_refused(&self, hash: &[u8; 32]) -> bool {
        self.state().refused.contains(hash)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_guesses_asks_for_little() {
        let strangers = Strangers::new();
        let looks = |from: u64, to: u64| (from..to).filter(|now| strangers.may_look(*now)).count();
        assert_eq!(looks(0, 1000), LOOKS);
        assert_eq!(looks(1000, 10_000), 9 * LOOKS);
        assert_eq!(looks(60_000, 60_001), 1);

        let hash = |number: usize| {
            let mut hash = [0; 32];
            hash[..8].copy_from_slice(&number.to_le_bytes());
            hash
        };
        for number in 0..=REMEMBERED {
            strangers.refuse(&hash(number));
            strangers.refuse(&hash(number));
        }
        assert!(!strangers.is_refused(&hash(0)) && strangers.is_refused(&hash(1)));
        assert!(strangers.is_refused(&hash(REMEMBERED)));
        assert_eq!(strangers.state().refused.len(), REMEMBERED);
    }
}
