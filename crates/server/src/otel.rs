//! Spans for an OpenTelemetry collector: what is known of a request that is over, in the words of the conventions for generative models.
//! They wait here, in a queue that has an end, until `otel_exporter` sends them. Nothing that a client, a model or a
//! provider said is ever in them.

mod protobuf;
mod spans;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use tokio::sync::Notify;
use url::Url;

use crate::clock;
use crate::config::{Config, OtelConfig};
use crate::span::Span;
use crate::trace::Trace;

/// So many bytes of spans may wait: some ten thousand requests.
const ROOM: usize = 16 << 20;
/// So many spans are sent at once, about.
pub(crate) const BATCH: usize = 512;

/// Where spans wait; nowhere if nobody wants them.
#[derive(Debug, Default)]
pub(crate) struct Spans(Option<Box<Waiting>>);

#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) config: OtelConfig,
    queue: Mutex<Queue>,
    /// There may be enough for a batch.
    pub(crate) enough: Notify,
    providers: RwLock<Arc<Providers>>,
    pub(crate) dropped: AtomicU64,
    pub(crate) exported: AtomicU64,
}

#[derive(Debug, Default)]
struct Queue {
    traces: VecDeque<Encoded>,
    spans: usize,
    bytes: usize,
}

/// The spans of one request, as the collector reads them.
#[derive(Debug, Default)]
pub(crate) struct Encoded {
    pub(crate) bytes: Vec<u8>,
    pub(crate) spans: usize,
}

/// What is known of providers, by their names.
type Providers = HashMap<String, Address>;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Address {
    /// What the conventions call it.
    name: String,
    host: String,
    port: u16,
}

/// Where a base URL leads.
fn host_and_port(base_url: &str) -> Option<(String, u16)> {
    let url = Url::parse(base_url).ok()?;
    Some((url.host_str()?.to_owned(), url.port_or_known_default()?))
}

impl Spans {
    pub(crate) fn new(config: Option<&OtelConfig>) -> Self {
        Self(config.map(|config| {
            Box::new(Waiting {
                config: config.clone(),
                queue: Mutex::default(),
                enough: Notify::new(),
                providers: RwLock::default(),
                dropped: AtomicU64::new(0),
                exported: AtomicU64::new(0),
            })
        }))
    }

    /// From now on these are the providers.
    pub(crate) fn know(&self, config: &Config) {
        let Some(waiting) = &self.0 else { return };
        let known = config.providers.iter().map(|provider| {
            let (host, port) = host_and_port(&provider.base_url).unwrap_or_default();
            let name = spans::conventional(&provider.provider.spec_name, &provider.name).to_owned();
            (provider.name.clone(), Address { name, host, port })
        });
        *waiting.providers.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(known.collect());
    }

    /// The trace that a request begins, if anybody wants traces.
    pub(crate) fn begin(&self) -> Option<Span> {
        let percent = u64::from(self.0.as_ref()?.config.sample_percent);
        Some(Span::root(percent >= 100 || clock::random() % 100 < percent))
    }

    /// Has the request's spans sent, if they are wanted and there is room. It never waits.
    pub(crate) fn export(&self, trace: &Trace) {
        let Some(waiting) = &self.0 else { return };
        // Who only looks whether we are there, every few seconds, is no part of a trace.
        let is_watching = matches!(trace.facts.route, Some("/health" | "/ready" | "/metrics"));
        let wanted = trace.facts.span.as_deref().filter(|span| span.sampled && !is_watching);
        let Some(span) = wanted else { return };
        let providers = Arc::clone(&waiting.providers.read().unwrap_or_else(PoisonError::into_inner));
        waiting.put(spans::encoded(trace, span, &providers));
    }

    pub(crate) fn waiting(&self) -> Option<&Waiting> {
        self.0.as_deref()
    }

    /// How many spans wait.
    pub(crate) fn queued(&self) -> usize {
        self.0.as_ref().map_or(0, |waiting| waiting.queue().spans)
    }

    /// How many were not sent.
    pub(crate) fn dropped(&self) -> u64 {
        self.0.as_ref().map_or(0, |waiting| waiting.dropped.load(Relaxed))
    }

    /// How many the collector has taken.
    pub(crate) fn exported(&self) -> u64 {
        self.0.as_ref().map_or(0, |waiting| waiting.exported.load(Relaxed))
    }
}

impl Waiting {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, encoded: Encoded) {
        let mut queue = self.queue();
        if queue.bytes + encoded.bytes.len() > ROOM {
            drop(queue);
            self.dropped.fetch_add(encoded.spans as u64, Relaxed);
            return;
        }
        queue.bytes += encoded.bytes.len();
        queue.spans += encoded.spans;
        queue.traces.push_back(encoded);
        let enough = queue.spans >= BATCH;
        drop(queue);
        if enough {
            self.enough.notify_one();
        }
    }

    /// What is sent next, as one request, with the number of its spans; None if nothing waits.
    pub(crate) fn batch(&self) -> Option<(Vec<u8>, usize)> {
        let mut batch = Encoded::default();
        let mut queue = self.queue();
        while batch.spans < BATCH
            && let Some(next) = queue.traces.pop_front()
        {
            queue.bytes -= next.bytes.len();
            queue.spans -= next.spans;
            batch.bytes.extend_from_slice(&next.bytes);
            batch.spans += next.spans;
        }
        drop(queue);
        (batch.spans > 0).then(|| (spans::request(&self.config.service_name, &batch.bytes), batch.spans))
    }
}
