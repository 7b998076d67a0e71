//! The one who writes traces: takes what waits, many at once, and writes it; now and then it drops what is too old. A store that takes its time makes nobody wait but this: then the queue fills, and what does not
//! fit is lost.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt;
use store::{Error, NewTrace, TraceRetention, TraceStore};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};

use super::capture::Captured;
use super::{Message, Shared};

/// How often what is too old, or too much, is looked for, at least and at most; and the pause between two steps of dropping
/// it.
const SELDOM: Duration = Duration::from_mins(1);
const OFTEN: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(50);

/// What a trace has beside its document and its bodies, about.
const ROW: u64 = 256;

/// Where traces are written.
pub(super) trait Sink: Send + Sync + 'static {
    fn add(&self, traces: Vec<NewTrace>) -> impl Future<Output = Result<(), Error>> + Send;
    fn prune(&self, retention: TraceRetention) -> impl Future<Output = Result<bool, Error>> + Send;
}

impl Sink for TraceStore {
    async fn add(&self, traces: Vec<NewTrace>) -> Result<(), Error> {
        Self::add(self, traces).await
    }

    async fn prune(&self, retention: TraceRetention) -> Result<bool, Error> {
        Self::prune(self, retention).await
    }
}

#[derive(Debug)]
pub(super) struct Writer<S> {
    pub(super) queue: mpsc::Receiver<Message>,
    pub(super) sink: S,
    pub(super) shared: Arc<Shared>,
    pub(super) batch: usize,
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

/// What is written at once.
#[derive(Default)]
struct Batch {
    traces: Vec<NewTrace>,
    /// Bodies count as held until they are written.
    captured: Vec<Captured>,
    waiting: Option<oneshot::Sender<()>>,
}

impl Batch {
    /// What will be stored of it, about.
    fn bytes(&self) -> u64 {
        let of = |trace: &NewTrace| {
            let payloads = trace.payloads.iter().map(|payload| payload.bytes.len()).sum::<usize>();
            (trace.document.len() + payloads) as u64 + ROW
        };
        self.traces.iter().map(of).sum()
    }
}

impl<S: Sink> Writer<S> {
    /// Writes until nobody can send anything any more.
    pub(super) async fn run(mut self) {
        let every = interval(self.retention);
        // Where there is little room, a part of it is soon written: no timer sees that.
        let share = self.retention.bytes / 8;
        let (mut swept, mut since): (Option<Instant>, u64) = (None, 0);
        loop {
            let is_due = swept.is_none_or(|swept| swept.elapsed() >= every) || since > share;
            match timeout(if is_due { PAUSE } else { every }, self.queue.recv()).await {
                Ok(None) => return,
                Ok(Some(first)) => {
                    let batch = self.gather(first).await;
                    since = since.saturating_add(batch.bytes());
                    self.write(batch).await;
                }
                Err(_) => {}
            }
            // One step between two batches: dropping much must not fill the queue.
            let is_due = swept.is_none_or(|swept| swept.elapsed() >= every) || since > share;
            if is_due && !self.prune().await {
                (swept, since) = (Some(Instant::now()), 0);
            }
        }
    }

    /// Takes what waits, after a moment in which more may come, unless there is enough.
    async fn gather(&mut self, first: Message) -> Batch {
        let mut batch = Batch::default();
        // Whoever has said until now that something is due has put it into the queue before.
        self.shared.due.store(false, Ordering::Release);
        let _ = self.shared.wake.notified().now_or_never();
        Self::take(first, &mut batch);
        self.take_all(&mut batch);
        if self.has_room(&batch) {
            tokio::select! {
                () = sleep(self.patience) => {}
                () = self.shared.wake.notified() => {}
            }
            self.take_all(&mut batch);
        }
        batch
    }

    const fn has_room(&self, batch: &Batch) -> bool {
        batch.waiting.is_none() && batch.traces.len() < self.batch
    }

    fn take_all(&mut self, batch: &mut Batch) {
        while self.has_room(batch) {
            let Ok(message) = self.queue.try_recv() else { return };
            Self::take(message, batch);
        }
    }

    fn take(message: Message, batch: &mut Batch) {
        match message {
            Message::Flush(done) => batch.waiting = Some(done),
            Message::Trace(mut new, mut captured) => {
                new.payloads.extend(captured.iter_mut().flat_map(|captured| captured.payloads().to_vec()));
                batch.traces.push(*new);
                batch.captured.extend(captured.map(|captured| *captured));
            }
        }
    }

    async fn write(&self, batch: Batch) {
        let Batch { traces, captured, waiting } = batch;
        let count = traces.len();
        if count > 0 {
            match self.sink.add(traces).await {
                Ok(()) => {
                    if self.shared.is_told.swap(false, Ordering::Relaxed) {
                        tracing::info!("traces are kept again");
                    }
                }
                Err(Error::Unavailable(unavailable)) => self.shared.lost(count, &unavailable.reason()),
                Err(error) => self.shared.lost(count, &of_traces(&error.to_string())),
            }
        }
        drop(captured);
        if let Some(waiting) = waiting {
            let _ = waiting.send(());
        }
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
