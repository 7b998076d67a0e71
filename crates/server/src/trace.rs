//! Traces: what became of each request, kept for whoever wants to know later.
//!
//! ```text
//!   account ──▶ keep ──▶ document ──▶ queue (bounded) ──▶ writer ──▶ store::TraceStore
//!                                      │                   └─ many at once; what cannot be written is lost, and counted
//!                                      └─ full: not kept, counted
//! ```
//!
//! No request ever waits for any of that. Its document is made when it ends, where all that is known of it is still at hand: to
//! look for that later, when others have come, takes several times as long. What a client, a model or a provider said is in a
//! trace only where the operator wants bodies to be captured, and of requests with `store: false` only where that is
//! wanted of them, too.

mod capture;
mod document;
mod queue;
mod record;
mod writer;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use store::{Store, TraceRetention, TraceStore};
use tokio::time::timeout;

use crate::clock;
use crate::config::{Config, TraceConfig, TracePlace};
use crate::tasks;
pub(crate) use capture::{Captured, Tape};
pub(crate) use document::WORDS;
use queue::Queue;
pub use record::OUTCOMES;
pub(crate) use record::{Asked, Attempted, Charge, Deadline, Facts, Head, Kind, Outcome, Round, ToolCall, Trace};
use writer::Writer;
pub(crate) use writer::of_traces;

/// The route under which what is sent again for the operator is told.
pub(crate) const REPLAY: &str = "/admin/replay";

/// How long the end of the server waits for traces.
const CLOSE: Duration = Duration::from_secs(2);

/// Refusals of whoever is not known, in each second: anybody can make any number of them.
const STRANGERS: u64 = 5;

/// Where traces go; nowhere where none are wanted, or where they cannot be kept.
#[derive(Debug, Default)]
pub(crate) struct Traces(Option<Kept>);

#[derive(Debug)]
struct Kept {
    queue: Arc<Queue>,
    store: TraceStore,
    capture: capture::Rules,
    /// The second of the last refusal of a stranger, and how many there were in it.
    strangers: AtomicU64,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// Where the configuration wants traces to be; None: nowhere.
///
/// # Errors
/// They cannot be there.
pub(crate) fn open(config: &Config, sessions: &Store) -> Result<Option<TraceStore>, store::OpenError> {
    let TraceConfig { enabled, place, max_bytes, .. } = &config.trace;
    if !enabled {
        return Ok(None);
    }
    let opened = match place {
        TracePlace::File(path) => Some(TraceStore::sqlite(path, &config.session.encryption.keys)?),
        TracePlace::Memory => Some(TraceStore::memory(*max_bytes)),
        TracePlace::Shared => TraceStore::shared(sessions),
    };
    Ok(opened.map(|store| store.with_limit(*max_bytes)))
}

impl Traces {
    /// Begins to keep them. A file that cannot be opened is no reason not to serve.
    pub(crate) fn start(config: &Config, sessions: &Store) -> Self {
        match open(config, sessions) {
            Ok(None) => Self(None),
            Ok(Some(store)) => Self::writing(store, &config.trace),
            Err(error) => {
                let place = config.trace.place.to_string();
                tracing::warn!(place, error = %chain(&error), "no traces are kept: their store cannot be opened");
                Self(None)
            }
        }
    }

    fn writing(store: TraceStore, config: &TraceConfig) -> Self {
        let kept = Kept::new(store.clone(), config);
        let retention = TraceRetention {
            age_micros: config.ttl.map_or(i64::MAX, |ttl| i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX)),
            bytes: config.max_bytes,
        };
        let queue = Arc::clone(&kept.queue);
        let writer = Writer { queue, sink: store, patience: config.flush_interval, retention };
        tasks::spawn_service(writer.run());
        Self(Some(kept))
    }

    /// Keeps it, if it is worth it and there is room. It never waits.
    pub(crate) fn keep(&self, trace: Trace) {
        if let Some(kept) = &self.0
            && kept.wants(&trace)
        {
            kept.put(trace);
        }
    }

    /// What is captured of a request; None: nothing.
    pub(crate) fn capture(&self, asked: &Asked) -> Option<Box<Captured>> {
        self.0.as_ref().and_then(|kept| kept.capture.of(asked.store))
    }

    /// Where they are, for whoever reads them.
    pub(crate) fn store(&self) -> Option<&TraceStore> {
        self.0.as_ref().map(|kept| &kept.store)
    }

    /// How many wait to be written.
    pub(crate) fn queued(&self) -> usize {
        self.0.as_ref().map_or(0, |kept| kept.queue.len())
    }

    /// How many were not kept.
    pub(crate) fn dropped(&self) -> u64 {
        self.0.as_ref().map_or(0, |kept| kept.queue.lost())
    }

    /// Waits until all that was kept so far is written, if that is soon. Says whether it is.
    pub(crate) async fn flush(&self, patience: Duration) -> bool {
        let Some(kept) = &self.0 else { return true };
        timeout(patience, kept.queue.flush()).await.is_ok_and(|written| written.is_ok())
    }

    /// The server ends: what waits is written, and whoever comes next may open the file. A disk that is stuck is not
    /// waited for.
    pub(crate) async fn close(&self) {
        let Some(kept) = &self.0 else { return };
        if !self.flush(CLOSE).await || timeout(CLOSE, kept.store.clone().close()).await.is_err() {
            tracing::warn!("the last traces are not written");
        }
    }
}

impl Kept {
    fn new(store: TraceStore, config: &TraceConfig) -> Self {
        // Little at once where little is kept: what is written before the next sweep is beside it.
        let large = usize::try_from(config.max_bytes / 8).unwrap_or(usize::MAX);
        let queue = Arc::new(Queue::new(config.max_queue_size, config.batch_size, large));
        Self { queue, store, capture: capture::Rules::new(config.capture), strangers: AtomicU64::new(0) }
    }

    /// All that makes something, and whatever else goes wrong; nothing of what balancers and scanners ask.
    fn wants(&self, trace: &Trace) -> bool {
        let Trace { head, facts } = trace;
        let failed = facts.status.is_some_and(|status| status >= 400);
        match facts.route {
            Some("/health" | "/ready" | "/metrics") => false,
            // There is no such path, or no such method of it.
            None if matches!(facts.status, Some(404 | 405)) => false,
            // Refused before it was known who asks, wherever that was.
            _ if failed && facts.caller.is_none() => self.is_rare(),
            Some("background" | "/v1/responses/compact" | "/v1/alpha/search" | REPLAY) => true,
            Some("/v1/responses") => failed || !facts.put_off && (head.method == "POST" || facts.kind.is_some()),
            Some(_) => failed,
            None => false,
        }
    }

    /// Whether there were few refusals of strangers in this second.
    fn is_rare(&self) -> bool {
        let second = clock::unix_seconds() << 8;
        let next = |known: u64| match known {
            known if known >> 8 << 8 != second => Some(second | 1),
            known if known & 0xff < STRANGERS => Some(known + 1),
            _ => None,
        };
        self.strangers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }

    fn put(&self, mut trace: Trace) {
        let captured = trace.facts.captured.take();
        let keeps_words = self.capture.keeps_words(!trace.facts.is_unstored());
        self.queue.put(document::make(&trace, keeps_words), captured);
    }
}

/// An error with what it is from.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

#[cfg(test)]
#[path = "trace/tests.rs"]
mod tests;
