//! Many at once, until there were enough.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::world::{World, spawn};

/// Does it again and again, `at_once` at a time, each with a number of its own, until it counts `wanted`: each says how much
/// it counts, and what came of it.
pub(crate) async fn repeat<F, T>(
    world: &Arc<World>,
    wanted: usize,
    at_once: usize,
    work: impl Fn(Arc<World>, usize) -> F + Clone + Send + 'static,
) -> (usize, Vec<T>)
where
    F: Future<Output = (usize, T)> + Send + 'static,
    T: Send + 'static,
{
    let (next, counted) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let worker = || {
        let (world, next, counted, work) = (Arc::clone(world), Arc::clone(&next), Arc::clone(&counted), work.clone());
        spawn(async move {
            let mut all = Vec::new();
            while counted.load(Ordering::Relaxed) < wanted {
                let (counts, came) = work(Arc::clone(&world), next.fetch_add(1, Ordering::Relaxed)).await;
                counted.fetch_add(counts, Ordering::Relaxed);
                all.push(came);
            }
            all
        })
    };
    let workers: Vec<_> = (0..at_once).map(|_| worker()).collect();
    let mut all = Vec::new();
    for worker in workers {
        all.extend(worker.await.unwrap());
    }
    (counted.load(Ordering::Relaxed), all)
}

/// How many there are, the middle one, that below which 99 of 100 are, and the longest; and that one.
pub(crate) fn spread(mut all: Vec<Duration>) -> (String, Duration) {
    all.sort();
    let at = |share: usize| all.get((all.len() * share / 100).min(all.len().saturating_sub(1))).copied();
    let [middle, high, longest] = [50, 99, 100].map(|share| at(share).unwrap_or_default());
    let [p50, p99, max] = [middle, high, longest].map(|duration| duration.as_millis());
    (format!("{} of them, p50 {p50} ms, p99 {p99} ms, max {max} ms", all.len()), longest)
}
