//! Traces that wait for their writer, as many as there is room for. Putting one there is a copy under a lock that is held for
//! nothing else.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fmt, mem};

use store::{NewTrace, TraceBatch};
use tokio::sync::oneshot::error::RecvError;
use tokio::sync::{Notify, oneshot};

use super::capture::Captured;

#[derive(Debug)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    /// There is something; and there is as much as is written at once, or somebody waits for what there is.
    come: Notify,
    due: Notify,
    /// How many may wait, and how many are written without waiting for more; how many bytes of bodies are.
    room: usize,
    many: usize,
    large: usize,
    /// Traces that were not kept, for whatever reason.
    lost: AtomicU64,
    /// The log says that traces get lost, and not again until they do not.
    is_told: AtomicBool,
}

/// What waits.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) traces: TraceBatch,
    /// By the places of their traces. They count as held until they are written.
    pub(super) captured: Vec<(usize, Box<Captured>)>,
    captured_bytes: usize,
    /// They are told when all that came before is written.
    pub(super) flushed: Vec<oneshot::Sender<()>>,
    /// Nobody puts anything there any more.
    pub(super) is_closed: bool,
}

impl Waiting {
    const fn is_empty(&self) -> bool {
        self.traces.is_empty() && self.flushed.is_empty()
    }
}

impl Queue {
    pub(super) fn new(room: usize, many: usize, large: usize) -> Self {
        let (waiting, come, due) = Default::default();
        // While some are written there is to be room for others.
        let many = many.min(room.div_ceil(2));
        Self { waiting, come, due, room, many, large, lost: AtomicU64::new(0), is_told: AtomicBool::new(false) }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It waits here, if there is room.
    pub(super) fn put(&self, new: NewTrace, captured: Option<Box<Captured>>) {
        let bytes = captured.as_ref().map_or(0, |captured| captured.bytes());
        let (count, is_due) = {
            let mut waiting = self.waiting();
            let place = waiting.traces.len();
            if place >= self.room {
                drop(waiting);
                return self.lose(1, &"the queue is full");
            }
            waiting.traces.push(new);
            waiting.captured.extend(captured.map(|captured| (place, captured)));
            let was_due = waiting.captured_bytes >= self.large;
            waiting.captured_bytes += bytes;
            (place + 1, place + 1 == self.many || !was_due && waiting.captured_bytes >= self.large)
        };
        if count == 1 {
            self.come.notify_one();
        }
        if is_due {
            self.due.notify_one();
        }
    }

    /// Waits until all that is here is written.
    pub(super) async fn flush(&self) -> Result<(), RecvError> {
        let (done, is_done) = oneshot::channel();
        self.waiting().flushed.push(done);
        self.come.notify_one();
        self.due.notify_one();
        is_done.await
    }

    pub(super) fn close(&self) {
        self.waiting().is_closed = true;
        self.come.notify_one();
        self.due.notify_one();
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.waiting().traces.len()
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// These are not kept.
    pub(super) fn lose(&self, traces: usize, why: &dyn fmt::Display) {
        self.lost.fetch_add(traces as u64, Ordering::Relaxed);
        if !self.is_told.swap(true, Ordering::Relaxed) {
            tracing::warn!(traces, %why, "traces are not kept; requests are answered as ever");
        }
    }

    /// Some were written.
    pub(super) fn kept(&self) {
        if self.is_told.swap(false, Ordering::Relaxed) {
            tracing::info!("traces are kept again");
        }
    }

    /// Waits until there is something, or until nothing will come any more.
    pub(super) async fn come(&self) {
        loop {
            let is_there = {
                let waiting = self.waiting();
                !waiting.is_empty() || waiting.is_closed
            };
            if is_there {
                return;
            }
            self.come.notified().await;
        }
    }

    /// Waits until what there is need not wait for more.
    pub(super) async fn due(&self) {
        loop {
            let is_due = {
                let waiting = self.waiting();
                let is_much = waiting.traces.len() >= self.many || waiting.captured_bytes >= self.large;
                is_much || !waiting.flushed.is_empty() || waiting.is_closed
            };
            if is_due {
                return;
            }
            self.due.notified().await;
        }
    }

    /// All that waits; what comes next waits in this one, which is empty.
    pub(super) fn take(&self, empty: TraceBatch) -> Waiting {
        let mut waiting = self.waiting();
        let is_closed = waiting.is_closed;
        mem::replace(&mut waiting, Waiting { traces: empty, is_closed, ..Waiting::default() })
    }
}
