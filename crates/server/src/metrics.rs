//! Numbers for those who watch many servers: counted where something happens, read by whoever asks for `/metrics`.
//! What labels may say is bounded, whatever clients send.

use crate::trace::Trace;

/// All that is counted.
#[derive(Debug, Default)]
pub(crate) struct Metrics {}

impl Metrics {
    /// A request is over.
    #[expect(clippy::unused_self, reason = "until something is counted")]
    pub(crate) fn count(&self, trace: &Trace) {
        let _ = &trace.facts;
    }
}
