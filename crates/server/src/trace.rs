//! Traces: what became of each request, kept for whoever wants to know later.
//!
//! A request that is over is put into a bounded queue; when the queue is full it is not kept, which is counted. A writer of
//! its own makes documents of what is queued and writes them, many at once, into a file of their own or into Postgres. No
//! request ever waits for any of that.

mod record;

pub(crate) use record::{Attempted, Charge, Deadline, Facts, Head, Outcome, Trace};

/// Where traces go.
#[derive(Debug, Default)]
pub(crate) struct Traces {}

impl Traces {
    /// How many were not kept.
    #[expect(clippy::unused_self, reason = "until there is a writer")]
    pub(crate) const fn dropped(&self) -> u64 {
        0
    }

    /// Keeps it, if there is room. It never waits.
    #[expect(clippy::unused_self, clippy::needless_pass_by_value, reason = "until there is a writer")]
    pub(crate) fn keep(&self, trace: Trace) {
        drop(trace);
    }
}
