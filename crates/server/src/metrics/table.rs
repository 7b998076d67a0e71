//! Every metric: its name, its labels, what it says. It is registered from here, and `docs/metrics.md` is made of it.

use prometheus_client::registry::{Metric, Registry};

/// One metric.
#[derive(Debug, Clone, Copy)]
pub struct MetricRow {
    /// Without what the kind adds to it.
    name: &'static str,
    pub kind: MetricKind,
    pub labels: &'static [&'static str],
    /// A sentence without its full stop.
    pub help: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    Counter,
    Gauge,
    Histogram,
}

impl MetricKind {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

impl MetricRow {
    /// As queries have it.
    pub fn name(&self) -> String {
        let suffix = if self.kind == MetricKind::Counter { "_total" } else { "" };
        format!("{}{suffix}", self.name)
    }
}

/// Has it written under its name.
pub(crate) fn register(registry: &mut Registry, row: &MetricRow, metric: impl Metric) {
    registry.register(row.name, row.help, metric);
}

/// Declares rows, and the table of them.
macro_rules! metrics {
    ($($(#[$inside:meta])* $row:ident = $kind:ident $name:literal [$($label:literal),*] $help:literal;)+) => {
        $($(#[$inside])* pub(crate) static $row: MetricRow =
            MetricRow { name: $name, kind: MetricKind::$kind, labels: &[$($label),*], help: $help };)+

        /// Every one, in the order of the documentation.
        pub static METRICS: &[&MetricRow] = &[$(&$row),+];
    };
}

metrics! {
    REQUESTS = Counter "godex_requests" ["route", "status", "outcome", "model", "target"]
        "Requests that are over; status 0 is what has none: it ran in the background, or its client left before an answer began";
    DURATION = Histogram "godex_request_duration_seconds" ["route", "model"]
        "From the head of a request to the last byte of its answer";
    OVERHEAD = Histogram "godex_overhead_seconds" ["route", "model"]
        "The part of that which is ours: not waited for a provider, a hosted tool or the client";
    ERRORS = Counter "godex_errors" ["code"]
        "Requests that went wrong or were refused, by their domain code, such as rate_limit_exceeded or overloaded";
    NOTES = Counter "godex_notes" ["code"]
        "Things that were not done as asked";
    RECEIVED = Counter "godex_received_bytes" []
        "Bytes of request bodies";
    SENT = Counter "godex_sent_bytes" []
        "Bytes of answers";
    STREAMS = Gauge "godex_open_streams" ["kind"]
        "Streams of events and WebSockets that are open";
    TURNS = Gauge "godex_turns" []
        "Requests that ask a model now";
    ATTEMPTS = Counter "godex_upstream_attempts" ["provider", "target", "outcome"]
        "Requests to providers, by what came of them";
    RETRIES = Counter "godex_upstream_retries" ["provider", "target", "outcome"]
        "Those after which the same or another target was asked, by why";
    LATENCY = Histogram "godex_upstream_latency_seconds" ["provider", "target"]
        "Until a provider has accepted; where the client wants no stream, until something of the answer has come";
    FIRST_TOKEN = Histogram "godex_first_token_seconds" ["provider", "target"]
        "From the head of a request to the first piece of the model's answer";
    GAPS = Histogram "godex_chunk_gap_seconds" ["provider", "target"]
        "Between two pieces of an answer";
    BREAKER_OPEN = Gauge "godex_breaker_open" ["provider", "target"]
        "1 while a target fails and gets only one request per second; of several that share a label, how many do";
    REPLICA_UP = Gauge "godex_replica_up" ["provider", "replica"]
        "1 while an address takes requests, of a provider that has several";
    REPLICA_SHARE = Gauge "godex_replica_share_percent" ["provider", "replica"]
        "How much of its conversations such an address gets: 0 while it is down or draining, less than 100 when it came back";
    REPLICA_OPEN = Gauge "godex_replica_open_requests" ["provider", "replica"]
        "Requests that such an address has begun and not ended";
    REPLICA_REQUESTS = Counter "godex_replica_requests" ["provider", "replica", "kind"]
        "Requests that such an address was chosen for: own ones, and guests whose own address was down or had too much to do";
    TOKENS = Counter "godex_tokens" ["provider", "target", "kind"]
        "Tokens; cached_input is a part of input, reasoning one of output";
    COST = Counter "godex_cost_dollars" ["provider", "target"]
        "What answers, and calls of hosted tools as provider (tools), have cost, as far as prices are known";
    TOOL_CALLS = Counter "godex_tool_calls" ["tool"]
        "Calls of hosted tools: web_search, mcp, and provider for all others that providers run themselves";
    READING = Histogram "godex_store_read_seconds" []
        "Reading what a request continues";
    COMMITTING = Histogram "godex_store_commit_seconds" []
        "Storing a response";
    STORE_WRITES = Counter "godex_store_writes" []
        "Changes that were written (SQLite only)";
    STORE_COMMITS = Counter "godex_store_commits" []
        "Transactions that they shared (SQLite only)";
    JOBS = Gauge "godex_jobs" ["state"]
        "Background responses: those that run in this process, and those that wait in the store, up to 10000";
    BODY_BYTES = Gauge "godex_body_bytes" []
        "Bytes of request bodies that are held now, and of what is made of them";
    BODY_BYTES_LIMIT = Gauge "godex_body_bytes_limit" []
        "limits.body_bytes_in_flight";
    REMEMBERED_BYTES = Gauge "godex_remembered_bytes" []
        "Bytes that WebSockets remember";
    MEMORY_PRESSURE = Gauge "godex_memory_pressure" []
        "0: there is memory; 1: no new turns; 2: no new requests";
    MEMORY_LIMIT = Gauge "godex_memory_limit_bytes" []
        "What the process may use, where that is known";
    DRAINING = Gauge "godex_draining" []
        "1 while the server is about to end";
    LOG_LINES_LOST = Counter "godex_log_lines_lost" []
        "Lines of the log that could not be written in time";
    QUEUED = Gauge "godex_queue_length" ["queue"]
        "What waits to be written: traces, spans";
    DROPPED = Counter "godex_queue_dropped" ["queue"]
        "What was not kept because its queue was full, or nobody took it";
    EXPORTED = Counter "godex_spans_exported" []
        "Spans that a collector has taken";
    BUILD = Gauge "godex_build_info" ["version"]
        "Always 1";
    CPU = Counter "process_cpu_seconds" []
        "Time of the processor that this process has used (Linux only)";
    RESIDENT = Gauge "process_resident_memory_bytes" []
        "Memory that this process has (Linux only)";
    VIRTUAL = Gauge "process_virtual_memory_bytes" []
        "Address space of this process (Linux only)";
    FILES = Gauge "process_open_fds" []
        "Open file descriptors (Linux only)";
    FILES_LIMIT = Gauge "process_max_fds" []
        "How many there may be (Linux only)";
    THREADS = Gauge "process_threads" []
        "Threads of this process (Linux only)";
    STARTED = Gauge "process_start_time_seconds" []
        "When this process started, in seconds since 1970";
}

/// Those that are looked up when somebody asks.
pub(crate) mod live {
    pub(crate) use super::{
        BODY_BYTES, BODY_BYTES_LIMIT, BREAKER_OPEN, BUILD, CPU, DRAINING, DROPPED, EXPORTED, FILES, FILES_LIMIT, JOBS,
        LOG_LINES_LOST, MEMORY_LIMIT, MEMORY_PRESSURE, QUEUED, REMEMBERED_BYTES, REPLICA_OPEN, REPLICA_REQUESTS,
        REPLICA_SHARE, REPLICA_UP, RESIDENT, STARTED, STORE_COMMITS, STORE_WRITES, THREADS, TURNS, VIRTUAL,
    };
}
