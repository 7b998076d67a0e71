//! The one who writes traces: takes what waits, many at once, and writes it; now and then it drops what is too old. A store
//! that takes its time makes nobody wait but this: then the queue fills, and what does not fit is lost.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use store::{Error, TraceBatch, TraceRetention, TraceStore};
use tokio::time::{Instant, timeout};

use super::queue::{Queue, Waiting};

/// How often what is too old, or too much, is looked for, at least and at most; and the pause between two steps of dropping
/// it.
const SELDOM: Duration = Duration::from_mins(1);
const OFTEN: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(50);

/// Where traces are written.
pub(super) trait Sink: Send + Sync + 'static {
    fn add(&self, traces: Arc<TraceBatch>) -> impl Future<Output = Result<(), Error>> + Send;
    fn prune(&self, retention: TraceRetention) -> impl Future<Output = Result<bool, Error>> + Send;
}

impl Sink for TraceStore {
    async fn add(&self, traces: Arc<TraceBatch>) -> Result<(), Error> {
        Self::add(self, traces).await
    }

    async fn prune(&self, retention: TraceRetention) -> Result<bool, Error> {
        Self::prune(self, retention).await
    }
}

#[derive(Debug)]
pub(super) struct Writer<S> {
    pub(super) queue: Arc<Queue>,
    pub(super) sink: S,
    /// How long the first of a batch waits for the others.
    pub(super) patience: Duration,
    pub(super) retention: TraceRetention,
}

/// What a store says of itself, of this one.
pub(crate) fn of_traces(said: &str) -> String {
    said.replace("he session store", "he trace file")
}

/// How often traces are looked for that are too old.
pub(super) fn interval(retention: TraceRetention) -> Duration {
    Duration::from_micros(retention.age_micros.max(0).cast_unsigned() / 4).clamp(OFTEN, SELDOM)
}

impl<S: Sink> Writer<S> {
    /// Writes until nobody can put anything there any more.
    pub(super) async fn run(self) {
        let every = interval(self.retention);
        // Where there is little room, a part of it is soon written: no timer sees that.
        let share = self.retention.bytes / 8;
        let (mut swept, mut since): (Option<Instant>, u64) = (None, 0);
        // New memory for each batch would cost as much as writing it.
        let mut empty = TraceBatch::default();
        loop {
            let is_due = swept.is_none_or(|swept| swept.elapsed() >= every) || since > share;
            if timeout(if is_due { PAUSE } else { every }, self.queue.come()).await.is_ok() {
                let _ = timeout(self.patience, self.queue.due()).await;
                let waiting = self.queue.take(empty);
                let is_closed = waiting.is_closed;
                let bytes;
                (bytes, empty) = self.write(waiting).await;
                since = since.saturating_add(bytes);
                if is_closed {
                    return;
                }
            }
            // Few steps between two batches: dropping much must not fill the queue. But what was written must go as fast as
            // it came.
            let is_due = swept.is_none_or(|swept| swept.elapsed() >= every) || since > share;
            for _ in 0..since / share.max(1) + u64::from(is_due) {
                if !self.prune().await {
                    (swept, since) = (Some(Instant::now()), 0);
                    break;
                }
            }
        }
    }

    /// How many bytes that were, about; and the batch, empty.
    async fn write(&self, waiting: Waiting) -> (u64, TraceBatch) {
        let Waiting { mut traces, mut captured, flushed, .. } = waiting;
        for (place, captured) in &mut captured {
            captured.payloads().iter().for_each(|payload| traces.attach(*place, payload.clone()));
        }
        let (count, bytes) = (traces.len(), traces.stored_bytes());
        let traces = Arc::new(traces);
        if count > 0 {
            match self.sink.add(Arc::clone(&traces)).await {
                Ok(()) => self.queue.kept(),
                Err(Error::Unavailable(unavailable)) => self.queue.lose(count, &unavailable.reason()),
                Err(error) => self.queue.lose(count, &of_traces(&error.to_string())),
            }
        }
        drop(captured);
        for flushed in flushed {
            let _ = flushed.send(());
        }
        (bytes, Arc::into_inner(traces).unwrap_or_default().emptied())
    }

    /// Whether there is more to drop.
    async fn prune(&self) -> bool {
        match self.sink.prune(self.retention).await {
            Ok(more) => more,
            Err(error) => {
                tracing::debug!(%error, "old traces are not dropped yet");
                false
            }
        }
    }
}
