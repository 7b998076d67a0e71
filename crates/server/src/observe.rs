//! Who looks at each request when it is over. Nobody here makes a request wait.

use crate::metrics::Metrics;
use crate::otel::Spans;
use crate::span::Span;
use crate::trace::{Trace, Traces};

#[derive(Debug, Default)]
pub(crate) struct Observers {
    pub(crate) metrics: Metrics,
    pub(crate) spans: Spans,
    pub(crate) traces: Traces,
}

impl Observers {
    /// The trace that a request begins which is part of none, if somebody wants it.
    pub(crate) fn begin_trace(&self) -> Option<Span> {
        self.spans.begin()
    }

    pub(crate) fn observe(&self, trace: Trace) {
        self.metrics.count(&trace);
        self.spans.export(&trace);
        self.traces.keep(trace);
    }
}
