//! What is known of the models of one provider: whether each is up, what it does not take, how often it was asked.
//!
//! Whether a model is up is about the provider, and known to all. What it does not take is what it said of somebody's
//! request, and that somebody may have seen to it that it says so: it is known to that tenant only.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use bridge::{Proof, Refusal, Unsupported};
use store::Tenant;
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
    learned: RwLock<Vec<Lesson>>,
}

/// What a model does not take of a tenant's requests, and how long we may believe it.
#[derive(Debug)]
struct Lesson {
    tenant: Tenant,
    unsupported: Unsupported,
    until: Instant,
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

/// How a model fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ModelState {
    /// `closed`, `open` or `half_open`.
    pub(crate) breaker: &'static str,
    /// In a row, while the breaker is closed.
    pub(crate) failures: u32,
    pub(crate) sent: u64,
    pub(crate) accepted: u64,
    pub(crate) retried: u64,
    pub(crate) left: u64,
    pub(crate) kept_away: u64,
}

impl ModelState {
    /// The same model at another address as well: it fails only if it does at both.
    pub(super) fn and(self, other: Self) -> Self {
        let better = if self.breaker == "closed" || other.breaker == "open" { self } else { other };
        Self {
            breaker: better.breaker,
            failures: self.failures.min(other.failures),
            sent: self.sent + other.sent,
            accepted: self.accepted + other.accepted,
            retried: self.retried + other.retried,
            left: self.left + other.left,
            kept_away: self.kept_away + other.kept_away,
        }
    }
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

    /// Of all that were asked for, by name.
    pub(super) fn states(&self) -> Vec<(String, ModelState)> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut states: Vec<_> = known.iter().map(|(name, health)| (name.clone(), health.state())).collect();
        states.sort_by(|one, other| one.0.cmp(&other.0));
        states
    }

    pub(crate) fn of(&self, model: &str) -> Arc<ModelHealth> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(target) = known.get(model) {
            return Arc::clone(target);
        }
        if known.len() >= MODELS {
            // Names that no model answers to make room: whoever invents them takes nothing from others.
            known.retain(|_, health| {
                Arc::strong_count(health) > 1 || health.counts.accepted.load(Ordering::Relaxed) > 0
            });
        }
        let name = if known.len() < MODELS { model } else { "" };
        let new = || Arc::new(ModelHealth::new(&self.policy));
        Arc::clone(known.entry(name.to_owned()).or_insert_with(new))
    }
}

impl ModelHealth {
    /// More than this is not learned of one model from one tenant's requests.
    const LESSONS: usize = 16;

    /// Nor more than this from all of them: whoever comes then finds out by each request.
    const ALL_LESSONS: usize = 64 * Self::LESSONS;

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

    fn state(&self) -> ModelState {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (breaker, failures) = self.breaker.shown();
        let Counts { sent, accepted, retried, left, kept_away, .. } = &self.counts;
        ModelState {
            breaker,
            failures,
            sent: count(sent),
            accepted: count(accepted),
            retried: count(retried),
            left: count(left),
            kept_away: count(kept_away),
        }
    }

    /// What it turned out not to take of this tenant's requests, in the order in which that was learned.
    pub(super) fn lessons(&self, tenant: &Tenant) -> Vec<Unsupported> {
        let learned = self.learned.read().unwrap_or_else(PoisonError::into_inner);
        if learned.is_empty() {
            return Vec::new();
        }
        let now = Instant::now();
        let known = learned.iter().filter(|lesson| lesson.tenant == *tenant && now < lesson.until);
        known.map(|lesson| lesson.unsupported).collect()
    }

    /// Remembers what is not taken, for later requests of the tenant, if it can be believed. Says whether.
    pub(super) fn learn(&self, tenant: &Tenant, refusal: Refusal) -> bool {
        let Refusal { unsupported, proof } = refusal;
        let now = Instant::now();
        let until = match proof {
            Proof::Hearsay => return false,
            Proof::Words => now + Self::SHORT_MEMORY,
            Proof::Fields => now + Self::MEMORY,
        };
        let mut learned = self.learned.write().unwrap_or_else(PoisonError::into_inner);
        learned.retain(|lesson| now < lesson.until);
        let theirs = || learned.iter().filter(|lesson| lesson.tenant == *tenant);
        let known = theirs().any(|lesson| lesson.unsupported == unsupported);
        if theirs().count() < Self::LESSONS && learned.len() < Self::ALL_LESSONS && !known {
            learned.push(Lesson { tenant: tenant.clone(), unsupported, until });
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
        let answers = |name: &str| targets.of(name).counts.accepted.fetch_add(1, Ordering::Relaxed);
        answers("mine");
        let mine = targets.of("mine");
        for number in 0..3 * MODELS {
            targets.of(&number.to_string());
            assert!(targets.known.lock().unwrap().len() <= MODELS);
        }
        assert!(Arc::ptr_eq(&mine, &targets.of("mine")) && !Arc::ptr_eq(&targets.of("x"), &targets.of("y")));
        for number in 0..MODELS + 100 {
            answers(&number.to_string());
        }
        assert!(Arc::ptr_eq(&targets.of("x"), &targets.of("y")));
        assert!(!Arc::ptr_eq(&targets.of("1"), &targets.of("2")));
        assert!(targets.known.lock().unwrap().len() <= MODELS + 1);
    }

    /// One tenant's refusals say nothing to another, and cannot take all of the room.
    #[tokio::test(start_paused = true)]
    async fn lessons_are_the_tenants_whose_requests_were_refused() {
        let target = ModelHealth::new(&ResilienceConfig::default());
        let (one, two) = (Tenant::new("one"), Tenant::new("two"));
        let lesson = Refusal { unsupported: Unsupported::ResponseFormat, proof: Proof::Fields };
        assert!(target.learn(&one, lesson));
        assert_eq!((target.lessons(&one), target.lessons(&two)), (vec![Unsupported::ResponseFormat], vec![]));
        for number in 0..2 * ModelHealth::ALL_LESSONS {
            target.learn(&Tenant::new(&number.to_string()), lesson);
        }
        assert_eq!(target.learned.read().unwrap().len(), ModelHealth::ALL_LESSONS);
        assert_eq!(target.lessons(&one), [Unsupported::ResponseFormat]);
    }

    #[tokio::test(start_paused = true)]
    async fn lessons_are_learned_once_and_forgotten_in_time() {
        let (target, tenant) = (ModelHealth::new(&ResilienceConfig::default()), Tenant::default());
        let of = |unsupported, proof| Refusal { unsupported, proof };
        let temperature = Unsupported::Parameter(Parameter::Temperature);
        assert!(!target.learn(&tenant, of(temperature, Proof::Hearsay)));
        assert_eq!(target.lessons(&tenant), []);
        for (proof, memory) in [(Proof::Words, ModelHealth::SHORT_MEMORY), (Proof::Fields, ModelHealth::MEMORY)] {
            for _ in 0..3 {
                assert!(target.learn(&tenant, of(temperature, proof)));
            }
            assert_eq!(target.lessons(&tenant), [temperature]);
            tokio::time::advance(memory).await;
            assert_eq!(target.lessons(&tenant), []);
        }
        // Requests that found out at the same time have found out one thing.
        for _ in 0..2 {
            target.learn(&tenant, of(Unsupported::ResponseFormat, Proof::Words));
        }
        assert_eq!(target.lessons(&tenant), [Unsupported::ResponseFormat]);
    }
}
