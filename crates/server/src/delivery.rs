//! What is known of an answer's delivery while hyper sends it: which are under way on a connection, and whose turn
//! it is between an HTTP/2 stream and its client.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// What a connection has done so far.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    requests: AtomicU64,
    running: AtomicUsize,
}

impl Activity {
    /// How many requests have come, and whether one of them is still under way.
    pub(crate) fn seen(&self) -> (u64, bool) {
        (self.requests.load(Ordering::Relaxed), self.running.load(Ordering::Relaxed) > 0)
    }
}

/// A request under way, until its answer's body is gone.
#[derive(Debug)]
pub(crate) struct Running(Arc<Activity>);

impl Running {
    pub(crate) fn new(activity: &Arc<Activity>) -> Self {
        activity.requests.fetch_add(1, Ordering::Relaxed);
        activity.running.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(activity))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Odd while a frame waits for the client. It only ever grows, so that a change shows progress.
#[derive(Debug, Default)]
pub(crate) struct Pace(AtomicU32);

tokio::task_local! {
    static PACE: Arc<Pace>;
}

impl Pace {
    /// Runs the task of one stream, whose body reports here.
    pub(crate) fn scope<F: Future>(self: Arc<Self>, stream: F) -> impl Future<Output = F::Output> {
        PACE.scope(self, stream)
    }

    /// The step at which a frame waits for the client, if one does.
    pub(crate) fn waiting(&self) -> Option<u32> {
        Some(self.0.load(Ordering::Relaxed)).filter(|step| step % 2 == 1)
    }

    /// The body is asked for a frame: the client took the last one.
    pub(crate) fn asked() {
        Self::step(1);
    }

    /// The body hands a frame over.
    pub(crate) fn handed() {
        Self::step(0);
    }

    /// One more, if it is as odd as that. Elsewhere than in the task of an HTTP/2 stream nobody looks.
    fn step(parity: u32) {
        let _ = PACE.try_with(|pace| {
            let now = pace.0.load(Ordering::Relaxed);
            if now % 2 == parity {
                pace.0.store(now.wrapping_add(1), Ordering::Relaxed);
            }
        });
    }
}
