//! The retry budget of one target: when it is in trouble, retries must not be what keeps it there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::health::ModelHealth;

/// A request that is alone may be retried.
const FLOOR: usize = 3;

/// Requests that wait for their answer to begin, and how many of them are retries.
#[derive(Debug)]
pub(super) struct Budget {
    percent: usize,
    live: AtomicUsize,
    retrying: AtomicUsize,
}

/// One of those that are counted; it leaves when it is dropped.
#[derive(Debug)]
pub(super) struct Counted {
    model: Arc<ModelHealth>,
    retry: bool,
}

impl Budget {
    pub(super) const fn new(percent: usize) -> Self {
        Self { percent, live: AtomicUsize::new(0), retrying: AtomicUsize::new(0) }
    }

    /// A request begins.
    pub(super) fn live(model: &Arc<ModelHealth>) -> Counted {
        model.budget.live.fetch_add(1, Ordering::Relaxed);
        Counted { model: Arc::clone(model), retry: false }
    }

    /// Room for one more retry, from its wait to its outcome; None when too many are at it.
    pub(super) fn retry(model: &Arc<ModelHealth>) -> Option<Counted> {
        let Self { percent, live, retrying } = &model.budget;
        let most = FLOOR.max(live.load(Ordering::Relaxed) * percent / 100);
        let one_more = |now: usize| (now < most).then_some(now + 1);
        retrying.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        Some(Counted { model: Arc::clone(model), retry: true })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let budget = &self.model.budget;
        let counter = if self.retry { &budget.retrying } else { &budget.live };
        counter.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::health::HealthByModel;
    use super::*;
    use crate::config::ResilienceConfig;

    #[tokio::test]
    async fn a_fifth_of_what_is_live_but_always_a_few() {
        let target = HealthByModel::new(ResilienceConfig::default()).of("m");
        for (live, expected) in [(1, FLOOR), (15, FLOOR), (100, 20), (1000, 200)] {
            let requests: Vec<_> = (0..live).map(|_| Budget::live(&target)).collect();
            let retries: Vec<_> = std::iter::from_fn(|| Budget::retry(&target)).collect();
            assert_eq!(retries.len(), expected, "{live}");
            drop((requests, retries));
        }
        assert!(Budget::retry(&target).is_some(), "what has ended counts no more");
    }
}
