//! What is known of the models of one provider: whether each is up, what it does not take, how often it was asked.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use bridge::{Dialect, Unsupported};
use tokio::time::Instant;

use super::breaker::Breaker;
use super::budget::Budget;
use crate::config::ResilienceConfig;

/// Clients may name any model: beyond this many, the rest is known as one.
const MODELS: usize = 512;

/// One model of a provider.
#[derive(Debug)]
pub(crate) struct Target {
    pub(super) breaker: Breaker,
    pub(super) budget: Budget,
    pub(super) counts: Counts,
    /// What it does not take, and since when we know.
    learned: RwLock<Vec<(Unsupported, Instant)>>,
}

/// How often what happened; for metrics.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) sent: AtomicU64,
    pub(super) accepted: AtomicU64,
    pub(super) retried: AtomicU64,
    pub(super) repaired: AtomicU64,
    /// Requests that went on to another target.
    pub(super) left: AtomicU64,
    /// Requests that the open breaker kept away.
    pub(super) kept_away: AtomicU64,
}

/// The models of one provider that were asked for.
#[derive(Debug)]
pub(crate) struct Targets {
    policy: ResilienceConfig,
    known: Mutex<HashMap<String, Arc<Target>>>,
}

impl Targets {
    pub(crate) fn new(policy: ResilienceConfig) -> Self {
        Self { policy, known: Mutex::default() }
    }

    pub(crate) fn of(&self, model: &str) -> Arc<Target> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(target) = known.get(model) {
            return Arc::clone(target);
        }
        let name = if known.len() < MODELS { model } else { "" };
        let new = || Arc::new(Target::new(&self.policy));
        Arc::clone(known.entry(name.to_owned()).or_insert_with(new))
    }
}

impl Target {
    /// More than this is not learned of one model.
    const LESSONS: usize = 16;

    /// A lesson is forgotten after this time: models change, and some refusals had another cause.
    const MEMORY: Duration = Duration::from_hours(1);

    fn new(policy: &ResilienceConfig) -> Self {
        Self {
            breaker: Breaker::new(policy.breaker_failures),
            budget: Budget::new(policy.budget_percent),
            counts: Counts::default(),
            learned: RwLock::default(),
        }
    }

    /// The dialect as it turned out to be; None: as it is declared.
    pub(super) fn adapted(&self, declared: &Dialect) -> Option<Dialect> {
        let learned = self.learned.read().unwrap_or_else(PoisonError::into_inner);
        let fresh = learned.iter().filter(|(_, since)| since.elapsed() < Self::MEMORY);
        let fresh: Vec<Unsupported> = fresh.map(|(unsupported, _)| *unsupported).collect();
        (!fresh.is_empty()).then(|| bridge::adapted(declared, &fresh))
    }

    /// Remembers what is not taken.
    pub(super) fn learn(&self, unsupported: Unsupported) {
        let mut learned = self.learned.write().unwrap_or_else(PoisonError::into_inner);
        learned.retain(|(_, since)| since.elapsed() < Self::MEMORY);
        // A response format has several rungs; of the rest, once is enough.
        let known = learned.iter().any(|(before, _)| *before == unsupported);
        if learned.len() < Self::LESSONS && (!known || unsupported == Unsupported::ResponseFormat) {
            learned.push((unsupported, Instant::now()));
        }
    }
}

#[cfg(test)]
mod tests {
    use bridge::Parameter;

    use super::*;

    #[tokio::test]
    async fn a_flood_of_names_costs_only_so_much() {
        let targets = Targets::new(ResilienceConfig::default());
        for number in 0..MODELS + 100 {
            targets.of(&number.to_string());
        }
        assert!(Arc::ptr_eq(&targets.of("x"), &targets.of("y")));
        assert!(!Arc::ptr_eq(&targets.of("1"), &targets.of("2")));
        assert!(targets.known.lock().unwrap().len() <= MODELS + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn lessons_are_learned_once_and_forgotten_in_time() {
        let target = Target::new(&ResilienceConfig::default());
        let dialect = Dialect::default();
        assert_eq!(target.adapted(&dialect), None);
        for _ in 0..3 {
            target.learn(Unsupported::Parameter(Parameter::Temperature));
        }
        assert_eq!(target.adapted(&dialect).unwrap().drop, [Parameter::Temperature]);
        tokio::time::advance(Target::MEMORY).await;
        assert_eq!(target.adapted(&dialect), None);
        for _ in 0..Target::LESSONS + 5 {
            target.learn(Unsupported::ResponseFormat);
        }
        assert_eq!(target.learned.read().unwrap().len(), Target::LESSONS);
    }
}
