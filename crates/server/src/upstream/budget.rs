//! The retry budget of one target: when it is in trouble, retries must not be what keeps it there.

use std::sync::atomic::{AtomicUsize, Ordering};

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
pub(super) struct Counted<'b>(&'b AtomicUsize);

impl Budget {
    pub(super) const fn new(percent: usize) -> Self {
        Self { percent, live: AtomicUsize::new(0), retrying: AtomicUsize::new(0) }
    }

    /// A request begins.
    pub(super) fn live(&self) -> Counted<'_> {
        self.live.fetch_add(1, Ordering::Relaxed);
        Counted(&self.live)
    }

    /// Room for one more retry, from its wait to its outcome; None when too many are at it.
    pub(super) fn retry(&self) -> Option<Counted<'_>> {
        let most = FLOOR.max(self.live.load(Ordering::Relaxed) * self.percent / 100);
        let enough = |now: usize| (now < most).then_some(now + 1);
        self.retrying.fetch_update(Ordering::Relaxed, Ordering::Relaxed, enough).ok().map(|_| Counted(&self.retrying))
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_of_what_is_live_but_always_a_few() {
        let budget = Budget::new(20);
        for (live, expected) in [(1, FLOOR), (15, FLOOR), (100, 20), (1000, 200)] {
            let requests: Vec<_> = (0..live).map(|_| budget.live()).collect();
            let retries: Vec<_> = std::iter::from_fn(|| budget.retry()).collect();
            assert_eq!(retries.len(), expected, "{live}");
            drop((requests, retries));
        }
        assert!(budget.retry().is_some(), "what has ended counts no more");
    }
}
