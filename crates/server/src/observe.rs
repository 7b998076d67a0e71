//! Who looks at each request when it is over. Nobody here makes a request wait.

use crate::metrics::Metrics;
use crate::trace::{Trace, Traces};

#[derive(Debug, Default)]
pub(crate) struct Observers {
    pub(crate) metrics: Metrics,
    pub(crate) traces: Traces,
}

impl Observers {
    pub(crate) fn observe(&self, trace: Trace) {
        self.metrics.count(&trace);
        self.traces.keep(trace);
    }
}
