//! How a request goes on while it is under way: whom it waits for, and how long the pauses between the pieces of its
//! answer are. This is entered with every chunk, so without a lock and without an allocation.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The longest pause of each kind, in microseconds; longer ones are of one more kind.
pub(crate) const GAPS: &[u64] =
    &[1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 10_000_000];

const KINDS: usize = GAPS.len() + 1;

/// Of one request.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    upstream: AtomicU64,
    tools: AtomicU64,
    client: AtomicU64,
    gaps: [AtomicU32; KINDS],
    gaps_sum: AtomicU64,
    told: AtomicU64,
    out: AtomicBool,
}

/// The pauses between the pieces of an answer: how many of each kind, and all together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Gaps {
    pub(crate) counts: [u32; KINDS],
    pub(crate) nanoseconds: u64,
}

impl Pace {
    /// Somebody is about to be asked.
    pub(crate) fn asks(&self) {
        self.out.store(false, Relaxed);
    }

    /// There is a connection, and the request goes out.
    pub(crate) fn goes_out(&self) {
        self.out.store(true, Relaxed);
    }

    pub(crate) fn went_out(&self) -> bool {
        self.out.load(Relaxed)
    }

    pub(crate) fn waited_upstream(&self, time: Duration) {
        self.upstream.fetch_add(nanoseconds(time), Relaxed);
    }

    pub(crate) fn waited_for_tools(&self, time: Duration) {
        self.tools.fetch_add(nanoseconds(time), Relaxed);
    }

    pub(crate) fn waited_client(&self, time: Duration) {
        self.client.fetch_add(nanoseconds(time), Relaxed);
    }

    /// So long after the one before another piece came.
    pub(crate) fn gap(&self, time: Duration) {
        let nanoseconds = nanoseconds(time);
        let kind = GAPS.partition_point(|most| *most < nanoseconds.div_ceil(1000));
        self.gaps[kind].fetch_add(1, Relaxed);
        self.gaps_sum.fetch_add(nanoseconds, Relaxed);
    }

    /// So many events were made for the client so far.
    pub(crate) fn told(&self, events: u64) {
        self.told.store(events, Relaxed);
    }

    pub(crate) fn events_told(&self) -> u64 {
        self.told.load(Relaxed)
    }

    /// Adds what was waited.
    pub(crate) fn settle(&self, upstream: &mut Duration, tools: &mut Duration, client: &mut Duration) {
        for (sum, waited) in [(upstream, &self.upstream), (tools, &self.tools), (client, &self.client)] {
            *sum += Duration::from_nanos(waited.load(Relaxed));
        }
    }

    pub(crate) fn gaps(&self) -> Gaps {
        Gaps { counts: self.gaps.each_ref().map(|count| count.load(Relaxed)), nanoseconds: self.gaps_sum.load(Relaxed) }
    }
}

/// At most what there is room for: some centuries.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    time.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(time.subsec_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_of_the_first_kind_that_is_not_shorter() {
        let pace = Pace::default();
        for (micros, kind) in [(0, 0), (1_000, 0), (1_001, 1), (10_000_000, KINDS - 2), (10_000_001, KINDS - 1)] {
            let before = pace.gaps().counts[kind];
            pace.gap(Duration::from_micros(micros));
            assert_eq!(pace.gaps().counts[kind], before + 1, "{micros}");
        }
        assert_eq!(pace.gaps().nanoseconds, 20_002_002_000);
    }
}
