//! What is known of the models of one provider: whether each is up, what it does not take, how often it was asked.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use bridge::{Proof, Refusal, Unsupported};
use tokio::time::Instant;

use super::breaker::Breaker;
use super::budget::Budget;
use crate::config::ResilienceConfig;

/// Clients may name any model: beyond this many, the rest is known as one.
const MODELS: usize = 512;

/// One model of a provider.
#[derive(Debug)]
pub(crate) struct ModelHealth {
    pub(super) breaker: Breaker,
    pub(super) budget: Budget,
    pub(super) counts: Counts,
    /// What it does not take, and how long we may believe it.
    learned: RwLock<Vec<(Unsupported, Instant)>>,
}

/// How often what happened; for metrics.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) sent: AtomicU64,
    pub(super) accepted: AtomicU64,
    pub(super) retried: AtomicU64,
    /// Sent once more because a connection had ended.
    pub(super) resent: AtomicU64,
    pub(super) repaired: AtomicU64,
    /// Requests that went on to another target.
    pub(super) left: AtomicU64,
    /// Requests that the open breaker kept away.
    pub(super) kept_away: AtomicU64,
}

/// The models of one provider that were asked for.
#[derive(Debug)]
pub(crate) struct HealthByModel {
    policy: ResilienceConfig,
    known: Mutex<HashMap<String, Arc<ModelHealth>>>,
}

impl HealthByModel {
    pub(crate) fn new(policy: ResilienceConfig) -> Self {
        Self { policy, known: Mutex::default() }
    }

    pub(crate) fn of(&self, model: &str) -> Arc<ModelHealth> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(target) = known.get(model) {
            return Arc::clone(target);
        }
        let name = if known.len() < MODELS { model } else { "" };
        let new = || Arc::new(ModelHealth::new(&self.policy));
        Arc::clone(known.entry(name.to_owned()).or_insert_with(new))
    }
}

impl ModelHealth {
    /// More than this is not learned of one model.
    const LESSONS: usize = 16;

    /// A lesson is forgotten after this time: models change, and some refusals had another cause.
    const MEMORY: Duration = Duration::from_hours(1);

    /// One that was read out of words, after this: they may mean something else.
    const SHORT_MEMORY: Duration = Duration::from_mins(10);

    fn new(policy: &ResilienceConfig) -> Self {
        Self {
            breaker: Breaker::new(policy.breaker_failures),
            budget: Budget::new(policy.budget_percent),
            counts: Counts::default(),
            learned: RwLock::default(),
        }
    }

    /// What it turned out not to take, in the order in which that was learned.
    pub(super) fn lessons(&self) -> Vec<Unsupported> {
        let learned = self.learned.read().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        learned.iter().filter(|(_, until)| now < *until).map(|(unsupported, _)| *unsupported).collect()
    }

    /// Remembers what is not taken, for all who come later, if it can be believed. Says whether.
    pub(super) fn learn(&self, refusal: Refusal) -> bool {
        let Refusal { unsupported, proof } = refusal;
        let now = Instant::now();
        let until = match proof {
            Proof::Hearsay => return false,
            Proof::Words => now + Self::SHORT_MEMORY,
            Proof::Fields => now + Self::MEMORY,
        };
        let mut learned = self.learned.write().unwrap_or_else(PoisonError::into_inner);
        learned.retain(|(_, until)| now < *until);
        let known = learned.iter().any(|(before, _)| *before == unsupported);
        if learned.len() < Self::LESSONS && !known {
            learned.push((unsupported, until));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use bridge::Parameter;

    use super::*;

    #[tokio::test]
    async fn a_flood_of_names_costs_only_so_much() {
        let targets = HealthByModel::new(ResilienceConfig::default());
        for number in 0..MODELS + 100 {
            targets.of(&number.to_string());
        }
        assert!(Arc::ptr_eq(&targets.of("x"), &targets.of("y")));
        assert!(!Arc::ptr_eq(&targets.of("1"), &targets.of("2")));
        assert!(targets.known.lock().unwrap().len() <= MODELS + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn lessons_are_learned_once_and_forgotten_in_time() {
        let target = ModelHealth::new(&ResilienceConfig::default());
        let of = |unsupported, proof| Refusal { unsupported, proof };
        let temperature = Unsupported::Parameter(Parameter::Temperature);
        assert!(!target.learn(of(temperature, Proof::Hearsay)));
        assert_eq!(target.lessons(), []);
        for (proof, memory) in [(Proof::Words, ModelHealth::SHORT_MEMORY), (Proof::Fields, ModelHealth::MEMORY)] {
            for _ in 0..3 {
                assert!(target.learn(of(temperature, proof)));
            }
            assert_eq!(target.lessons(), [temperature]);
            tokio::time::advance(memory).await;
            assert_eq!(target.lessons(), []);
        }
        // Requests that found out at the same time have found out one thing.
        for _ in 0..2 {
            target.learn(of(Unsupported::ResponseFormat, Proof::Words));
        }
        assert_eq!(target.lessons(), [Unsupported::ResponseFormat]);
    }
}
