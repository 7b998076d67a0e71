//! How much of a request's bytes the provider has seen before: what it may have cached. Providers cache by prefix, so a
//! request is compared with the last one of its session that went to the same model, from the first byte on.
//!
//! Only fingerprints are kept, never text: the hash of everything up to the end of each block. They are bounded in all,
//! and the session that was not heard of for longest is forgotten first. What a client claims to be its session is
//! within its tenant.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

/// The smallest block; bodies are compared to this, or to the multiple of it that their earlier one was cut into.
const BLOCK: usize = 256;
/// A fingerprint has at most so many hashes: the blocks of a larger body are larger.
const MOST_BLOCKS: usize = 512;
/// Nothing is cached of what is shorter.
const SMALLEST: usize = 1 << 10;
/// Agents of one session take turns under one key.
const PER_SESSION: usize = 4;
/// All fingerprints together.
const BYTES: usize = 8 << 20;
/// What a session takes beside the hashes.
const OVERHEAD: usize = 192;

/// How much of a body its session's earlier body has, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shared {
    /// Bytes from the beginning that both have, to the block; all, if the earlier body's last block is the first that
    /// differs: that is where the new messages come.
    pub(crate) shared: usize,
    /// Of so many that the earlier body had: what extends it shares all of them.
    pub(crate) earlier: usize,
}

/// A session's name for the request that follows this one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionKey<'a> {
    pub(crate) tenant: &'a str,
    pub(crate) session: &'a str,
    /// `provider/model`.
    pub(crate) target: &'a str,
}

/// The fingerprints of the last requests of all sessions.
#[derive(Debug, Default)]
pub(crate) struct Prefixes {
    state: RandomState,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    sessions: HashMap<u64, Session>,
    /// By when they were used last.
    order: BTreeMap<u64, u64>,
    now: u64,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Session {
    used_at: u64,
    prints: Vec<Print>,
}

/// What is kept of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Print {
    length: usize,
    /// How many bytes a block has: [`BLOCK`] times a power of two.
    block: usize,
    /// Of all bytes up to the end of each whole block.
    hashes: Box<[u64]>,
}

impl Prefixes {
    /// Compares a body with the last one of the session `before`, and remembers it for what follows under `after`. None
    /// where there is nothing to compare it with.
    pub(crate) fn measure(&self, before: Option<SessionKey<'_>>, after: SessionKey<'_>, body: &[u8]) -> Option<Shared> {
        if body.len() < SMALLEST {
            return None;
        }
        let hashes = hashes(body);
        let (before, after) = (before.map(|key| self.hash(key)), self.hash(after));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let session = before.and_then(|before| known.sessions.get(&before));
        let best = session.and_then(|session| {
            let shared = session.prints.iter().map(|print| print.shared(&hashes));
            shared.enumerate().max_by_key(|(_, shared)| shared.shared)
        });
        let replaces = best.filter(|(_, best)| before == Some(after) && best.shared * 2 >= best.earlier);
        known.remember(after, Print::new(body.len(), &hashes), replaces.map(|(at, _)| at));
        best.map(|(_, shared)| shared)
    }

    /// Forgets all.
    pub(crate) fn clear(&self) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Known::default();
    }

    fn hash(&self, key: SessionKey<'_>) -> u64 {
        self.state.hash_one((key.tenant, key.session, key.target))
    }
}

impl Known {
    fn remember(&mut self, key: u64, print: Print, replaces: Option<usize>) {
        self.now += 1;
        let session = self.sessions.entry(key).or_default();
        self.order.remove(&session.used_at);
        self.bytes -= if session.used_at > 0 { session.bytes() } else { 0 };
        session.used_at = self.now;
        match replaces {
            Some(at) => drop(session.prints.remove(at)),
            None if session.prints.len() >= PER_SESSION => drop(session.prints.remove(0)),
            None => {}
        }
        session.prints.push(print);
        self.bytes += session.bytes();
        self.order.insert(self.now, key);
        while self.bytes > BYTES {
            let Some((_, oldest)) = self.order.pop_first() else { return };
            self.bytes -= self.sessions.remove(&oldest).map_or(0, |session| session.bytes());
        }
    }
}

impl Session {
    fn bytes(&self) -> usize {
        OVERHEAD
            + self.prints.iter().map(|print| print.hashes.len() * size_of::<u64>() + size_of::<Print>()).sum::<usize>()
    }
}

impl Print {
    fn new(length: usize, hashes: &[u64]) -> Self {
        let step = hashes.len().div_ceil(MOST_BLOCKS).max(1).next_power_of_two();
        let hashes = hashes.iter().copied().skip(step - 1).step_by(step).collect();
        Self { length, block: step * BLOCK, hashes }
    }

    /// How much of this body begins the one with these hashes.
    fn shared(&self, hashes: &[u64]) -> Shared {
        let step = self.block / BLOCK;
        let theirs = hashes.iter().skip(step - 1).step_by(step);
        let same = self.hashes.iter().zip(theirs).take_while(|(ours, theirs)| ours == theirs).count();
        let shared = if same == self.hashes.len() { self.length } else { same * self.block };
        Shared { shared, earlier: self.length }
    }
}

/// The hash of everything up to the end of each whole block.
fn hashes(body: &[u8]) -> Vec<u64> {
    let mut hash = 0x9E37_79B9_7F4A_7C15;
    let mut hashes = Vec::with_capacity(body.len() / BLOCK);
    for block in body.chunks_exact(BLOCK) {
        let (words, _) = block.as_chunks::<8>();
        hash = words.iter().fold(hash, |hash, word| mixed(hash ^ u64::from_le_bytes(*word)));
        hashes.push(hash);
    }
    hashes
}

/// Both halves of the product with an odd constant: every bit of the input changes about half of the result.
#[expect(clippy::cast_possible_truncation, reason = "the halves of a product")]
const fn mixed(word: u64) -> u64 {
    let product = word as u128 * 0xA076_1D64_78BD_642F_u128;
    (product as u64) ^ ((product >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(session: &str) -> SessionKey<'_> {
        SessionKey { tenant: "t", session, target: "p/m" }
    }

    /// Bytes that do not repeat.
    fn body(seed: u64, length: usize) -> Vec<u8> {
        (0..length as u64).map(|at| mixed(seed ^ at.wrapping_mul(0x9E37_79B9)).to_le_bytes()[4]).collect()
    }

    fn again(prefixes: &Prefixes, session: &str, body: &[u8]) -> Option<(usize, usize)> {
        prefixes.measure(Some(key(session)), key(session), body).map(|it| (it.shared, it.earlier))
    }

    #[test]
    fn what_extends_the_last_body_shares_all_of_it() {
        for (first, second) in [(1024, 2000), (40_000, 41_000), (200_000, 3_000_000), (3_000_000, 3_000_100)] {
            let prefixes = Prefixes::default();
            let whole = body(1, second);
            assert_eq!(again(&prefixes, "s", &whole[..first]), None);
            assert_eq!(again(&prefixes, "s", &whole), Some((first, first)), "{first} {second}");
            // The same once more.
            assert_eq!(again(&prefixes, "s", &whole), Some((second, second)));
        }
    }

    #[test]
    fn what_changes_in_the_middle_shares_what_is_before() {
        for length in [40_000, 400_000, 4_000_000] {
            for changed in [0, length / 2, length * 9 / 10] {
                let prefixes = Prefixes::default();
                let mut whole = body(2, length);
                again(&prefixes, "s", &whole);
                whole[changed] ^= 1;
                let (shared, earlier) = again(&prefixes, "s", &whole).unwrap();
                let block = (length / MOST_BLOCKS).next_power_of_two().max(BLOCK);
                assert!(shared <= changed && changed - shared <= block, "{length} {changed}: {shared}");
                assert_eq!(earlier, length);
            }
        }
    }

    #[test]
    fn sessions_tenants_and_models_are_apart() {
        let prefixes = Prefixes::default();
        let whole = body(3, 5000);
        again(&prefixes, "s", &whole);
        for other in [SessionKey { tenant: "u", ..key("s") }, SessionKey { target: "p/n", ..key("s") }, key("r")] {
            assert_eq!(prefixes.measure(Some(other), other, &whole), None, "{other:?}");
        }
        // A chain has another name at each of its links.
        assert!(prefixes.measure(Some(key("s")), key("s2"), &whole).is_some());
        assert!(prefixes.measure(Some(key("s2")), key("s3"), &whole).is_some());
        assert_eq!(prefixes.measure(None, key("s4"), &whole), None);
    }

    #[test]
    fn agents_that_take_turns_under_one_key_are_told_apart() {
        let prefixes = Prefixes::default();
        let agents: Vec<Vec<u8>> = (10..13).map(|seed| body(seed, 50_000)).collect();
        for length in [20_000, 30_000, 40_000, 50_000] {
            for agent in &agents {
                let shared = again(&prefixes, "s", &agent[..length]);
                assert!(length == 20_000 || shared == Some((length - 10_000, length - 10_000)), "{length}: {shared:?}");
            }
        }
    }

    #[test]
    fn a_flood_of_sessions_costs_only_so_much() {
        let prefixes = Prefixes::default();
        let whole = body(4, 150_000);
        for number in 0..4000 {
            again(&prefixes, &number.to_string(), &whole[..2000 + number * 37]);
            again(&prefixes, "kept", &whole);
        }
        assert_eq!(again(&prefixes, "tiny", &whole[..SMALLEST - 1]), None);
        let known = prefixes.known.lock().unwrap();
        let bytes: usize = known.sessions.values().map(Session::bytes).sum();
        assert_eq!((known.bytes, known.order.len()), (bytes, known.sessions.len()));
        assert!(bytes <= BYTES && bytes > BYTES / 2, "{bytes}");
        drop(known);
        assert!(again(&prefixes, "kept", &whole).is_some());
        assert!(again(&prefixes, "0", &whole).is_none());
    }
}
