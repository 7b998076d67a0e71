//! How often something took how long. Counted without a lock, and many at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

use crate::pace::{GAPS, nanoseconds};

/// The longest time of each kind, in microseconds. Of what others do:
const ANSWERS: &[u64] = &[
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    120_000_000,
    300_000_000,
    600_000_000,
];
/// Of what we do.
const WORK: &[u64] =
    &[50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 5_000_000];

#[derive(Debug, Clone)]
pub(super) struct Distribution(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    bounds: &'static [u64],
    /// One for each bound, and one beyond.
    counts: Box<[AtomicU64]>,
    nanoseconds: AtomicU64,
}

impl Distribution {
    pub(super) fn of_answers() -> Self {
        Self::new(ANSWERS)
    }

    pub(super) fn of_work() -> Self {
        Self::new(WORK)
    }

    pub(super) fn of_gaps() -> Self {
        Self::new(GAPS)
    }

    fn new(bounds: &'static [u64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self(Arc::new(Counts { bounds, counts, nanoseconds: AtomicU64::new(0) }))
    }

    pub(super) fn observe(&self, time: Duration) {
        let nanoseconds = nanoseconds(time);
        let kind = self.0.bounds.partition_point(|most| *most < nanoseconds.div_ceil(1000));
        self.0.counts[kind].fetch_add(1, Relaxed);
        self.0.nanoseconds.fetch_add(nanoseconds, Relaxed);
    }

    /// Many at once, counted by the same bounds.
    pub(super) fn add(&self, counts: &[u32], nanoseconds: u64) {
        for (all, more) in self.0.counts.iter().zip(counts).filter(|(_, more)| **more > 0) {
            all.fetch_add(u64::from(*more), Relaxed);
        }
        self.0.nanoseconds.fetch_add(nanoseconds, Relaxed);
    }
}

impl TypedMetric for Distribution {
    const TYPE: MetricType = MetricType::Histogram;
}

#[expect(clippy::cast_precision_loss, reason = "seconds for people")]
impl EncodeMetric for Distribution {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        let Counts { bounds, counts, nanoseconds } = &*self.0;
        let bounds = bounds.iter().map(|bound| *bound as f64 / 1e6).chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = bounds.zip(counts.iter().map(|count| count.load(Relaxed))).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = nanoseconds.load(Relaxed) as f64 / 1e9;
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}
