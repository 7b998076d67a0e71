//! How many tokens a request has, for each model of each provider: counted where its tokenizer is known, estimated
//! elsewhere, and corrected by what the provider reports of requests that it answered. What a model takes at most is
//! learned from its refusals, where they say it.
//!
//! All of it is in memory and bounded: clients may name any model. Nothing of a request's text is kept. It is known to the
//! tenant only from whose requests it was learned: odd texts skew an estimate, and others cut their histories by it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bridge::Tokenizer;
use tokens::{Encoding, Learned};
use tokio::time::Instant;

use crate::output::aside;
use crate::per_tenant::PerTenant;

/// Models of which something is remembered for a tenant; then the one that was not heard of for longest is forgotten.
const MODELS: usize = 128;

/// Names are remembered up to this length, both together.
const LONGEST_NAME: usize = 512;

/// So many requests of a model are learned from, and then one of each of these: estimating takes time.
const LEARNED_AT_FIRST: u64 = 16;
const THEN_ONE_OF: u64 = 16;

/// Bodies up to this size are estimated where the request is; larger ones where nobody waits.
const SMALL: usize = 256 << 10;

/// How long a model's word on what it takes counts.
const REMEMBERED: Duration = Duration::from_hours(1);

/// How many tokens a request has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) tokens: u64,
    /// Counted with the model's own tokenizer; else estimated.
    pub(crate) exact: bool,
}

/// What each tenant has come to know of the tokens of models.
pub(crate) type TokensByTenant = PerTenant<TokenCounts>;

/// What is known of the tokens of models.
#[derive(Debug, Default)]
pub(crate) struct TokenCounts {
    models: Mutex<Models>,
}

#[derive(Debug, Default)]
struct Models {
    known: HashMap<String, Known>,
    /// Counts up with each use.
    now: u64,
}

#[derive(Debug, Default)]
struct Known {
    learned: Learned,
    /// Requests that could have been learned from.
    answered: u64,
    /// What it said that it takes, and when: whoever runs it may have started it anew since.
    window: Option<(u64, Instant)>,
    /// The largest input that was answered: no window is smaller.
    largest: u64,
    used_at: u64,
}

impl TokenCounts {
    /// Counts the body of a request to this model, as exactly as can be. It takes a while for large ones: for whether a
    /// request is anywhere near a limit, ask for an estimate.
    pub(crate) fn count(&self, provider: &str, model: &str, tokenizer: Tokenizer, body: &[u8]) -> Count {
        let encoding = match tokenizer {
            Tokenizer::Estimate => None,
            Tokenizer::O200k => Some(Encoding::O200k),
            Tokenizer::O200kHarmony => Some(Encoding::O200kHarmony),
            Tokenizer::Cl100k => Some(Encoding::Cl100k),
        };
        // The tables of a tokenizer are read when it is used first.
        match encoding.and_then(|encoding| aside(|| tokens::count(encoding, body))) {
            Some(tokens::Count { tokens, exact }) => Count { tokens, exact },
            None => Count { tokens: self.estimate(provider, model, body), exact: false },
        }
    }

    /// About how many tokens the body has for this model. Cheap.
    pub(crate) fn estimate(&self, provider: &str, model: &str, body: &[u8]) -> u64 {
        let raw = raw(body);
        self.enter().with(provider, model, |known| known.learned.correct(raw)).unwrap_or(raw)
    }

    /// The plain estimate of a body that was accepted, to be given to [`TokenCounts::learn`] with what the provider
    /// reports. None where nothing is to be learned from it.
    pub(crate) fn sample(&self, provider: &str, model: &str, body: &[u8]) -> Option<u64> {
        let answered = self.enter().entry(provider, model, |known| {
            known.answered += 1;
            known.answered
        });
        (answered <= LEARNED_AT_FIRST || answered.is_multiple_of(THEN_ONE_OF)).then(|| raw(body))
    }

    /// A request of which so much was estimated has so many tokens, as its provider says.
    pub(crate) fn learn(&self, provider: &str, model: &str, estimated: u64, reported: u64) {
        self.enter().entry(provider, model, |known| {
            known.learned.learn(estimated, reported);
            known.largest = known.largest.max(reported);
            known.window = known.window.filter(|(window, _)| known.largest <= *window);
        });
    }

    /// A model refused a request because it is too long, with these words of its own.
    pub(crate) fn overflowed(&self, provider: &str, model: &str, message: &str) {
        if let Some(window) = tokens::window_in(message) {
            if self.learned_window(provider, model) != Some(window) {
                tracing::info!(provider, model, window, "as many tokens as it takes, it says");
            }
            let said = (window, Instant::now());
            self.enter().entry(provider, model, |known| known.window = Some(said).filter(|_| known.largest <= window));
        }
    }

    /// How many tokens the model takes, if it has said so.
    fn learned_window(&self, provider: &str, model: &str) -> Option<u64> {
        let (window, said) = self.enter().with(provider, model, |known| known.window).flatten()?;
        (said.elapsed() < REMEMBERED).then_some(window)
    }

    /// How many tokens the model takes: as declared, unless it has said that it takes fewer.
    pub(crate) fn window(&self, provider: &str, model: &str, declared: Option<u64>) -> Option<u64> {
        let learned = self.learned_window(provider, model);
        declared.into_iter().chain(learned).min()
    }

    fn enter(&self) -> MutexGuard<'_, Models> {
        self.models.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Models {
    fn with<T>(&mut self, provider: &str, model: &str, read: impl FnOnce(&Known) -> T) -> Option<T> {
        self.known.get(&name(provider, model)).map(read)
    }

    fn entry<T>(&mut self, provider: &str, model: &str, change: impl FnOnce(&mut Known) -> T) -> T {
        let name = name(provider, model);
        self.now += 1;
        if self.known.len() >= MODELS && !self.known.contains_key(&name) {
            let oldest = self.known.iter().min_by_key(|(_, known)| known.used_at).map(|(name, _)| name.clone());
            oldest.map(|oldest| self.known.remove(&oldest));
        }
        let known = self.known.entry(name).or_default();
        known.used_at = self.now;
        change(known)
    }
}

fn name(provider: &str, model: &str) -> String {
    format!("{provider}/{model}").chars().take(LONGEST_NAME).collect()
}

fn raw(body: &[u8]) -> u64 {
    if body.len() > SMALL { aside(|| tokens::estimate(body)) } else { tokens::estimate(body) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = br#"{"model":"m","messages":[{"role":"user","content":"Say hello"}]}"#;

    #[test]
    fn what_is_learned_of_one_model_is_not_known_of_another() {
        let counts = TokenCounts::default();
        let raw = counts.sample("p", "m", BODY).unwrap();
        for _ in 0..8 {
            counts.learn("p", "m", raw, raw + 50);
        }
        let count = |provider, model| counts.count(provider, model, Tokenizer::Estimate, BODY);
        assert!(count("p", "m").tokens > raw + 30, "{:?}", count("p", "m"));
        assert_eq!(count("p", "n"), Count { tokens: raw, exact: false });
        assert_eq!(count("q", "m"), Count { tokens: raw, exact: false });
    }

    #[cfg(feature = "tokenizer")]
    #[test]
    fn what_can_be_counted_is_not_estimated() {
        let counts = TokenCounts::default();
        counts.learn("p", "m", 10, 60);
        let count = |tokenizer| counts.count("p", "m", tokenizer, BODY);
        assert_eq!(count(Tokenizer::O200k), Count { tokens: 9, exact: true });
        assert_eq!(count(Tokenizer::Cl100k), Count { tokens: 9, exact: true });
        assert!(!count(Tokenizer::Estimate).exact);
    }

    #[test]
    fn most_requests_of_a_known_model_are_not_estimated() {
        let counts = TokenCounts::default();
        let taken = (0..160).filter(|_| counts.sample("p", "m", BODY).is_some()).count();
        assert_eq!(taken, 16 + 9);
    }

    #[test]
    fn windows_are_learned_and_forgotten_when_they_are_wrong() {
        let counts = TokenCounts::default();
        let overflow = "This model's maximum context length is 4096 tokens. However, you requested 8205 tokens.";
        assert_eq!(counts.learned_window("p", "m"), None);
        counts.overflowed("p", "m", "too long");
        assert_eq!(counts.learned_window("p", "m"), None);
        counts.overflowed("p", "m", overflow);
        assert_eq!((counts.learned_window("p", "m"), counts.learned_window("p", "n")), (Some(4096), None));
        // It took more than that.
        counts.learn("p", "m", 5000, 5000);
        assert_eq!(counts.learned_window("p", "m"), None);
        counts.overflowed("p", "m", overflow);
        assert_eq!(counts.learned_window("p", "m"), None);
    }

    #[test]
    fn a_flood_of_names_costs_only_so_much() {
        let counts = TokenCounts::default();
        for number in 0..MODELS + 100 {
            counts.learn("p", "kept", 100, 150);
            counts.overflowed("p", &number.to_string(), "context window of 4096");
        }
        counts.learn("p", &"x".repeat(1 << 20), 100, 150);
        let models = counts.enter();
        assert!(models.known.len() <= MODELS && models.known.keys().all(|name| name.len() <= LONGEST_NAME));
        drop(models);
        assert_eq!(counts.learned_window("p", "0"), None);
        assert_eq!(counts.learned_window("p", &(MODELS + 99).to_string()), Some(4096));
    }
}
