//! What is known of an answer's delivery while hyper sends it: which are under way on a connection, and whose turn
//! it is between an HTTP/2 stream and its client.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use tokio::sync::OwnedSemaphorePermit;

/// What a connection speaks, as far as is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Also before its first request.
    Http1,
    Http2,
    /// No more HTTP: its bytes are the business of whoever took it over.
    Upgraded,
}

/// A connection's place among those that may be; none for one that comes while the door closes.
pub(crate) type Slot = Arc<Option<OwnedSemaphorePermit>>;

/// What a connection has done so far.
#[derive(Debug)]
pub(crate) struct Activity {
    began: Instant,
    requests: AtomicU64,
    running: AtomicUsize,
    /// When the last answer was over, in milliseconds from the beginning.
    answered: AtomicU64,
    /// One of `Protocol`.
    protocol: AtomicU8,
    /// One more than the number of requests after which the connection may end.
    end_after: AtomicU64,
}

const HTTP2: u8 = Protocol::Http2 as u8;
const UPGRADED: u8 = Protocol::Upgraded as u8;

impl Activity {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            requests: AtomicU64::new(0),
            running: AtomicUsize::new(0),
            answered: AtomicU64::new(0),
            protocol: AtomicU8::new(Protocol::Http1 as u8),
            end_after: AtomicU64::new(0),
        }
    }

    /// Since when there is no request, if there is none.
    pub(crate) fn idle_since(&self) -> Instant {
        self.began + Duration::from_millis(self.answered.load(Ordering::Relaxed))
    }

    pub(crate) fn protocol(&self) -> Protocol {
        match self.protocol.load(Ordering::Relaxed) {
            HTTP2 => Protocol::Http2,
            UPGRADED => Protocol::Upgraded,
            _ => Protocol::Http1,
        }
    }

    pub(crate) fn speaks(&self, protocol: Protocol) {
        self.protocol.store(protocol as u8, Ordering::Relaxed);
    }

    /// An HTTP/1.1 connection may end now, unless it brings more requests than these.
    pub(crate) fn end_after(&self, requests: u64) {
        self.end_after.store(requests.saturating_add(1), Ordering::Relaxed);
    }

    pub(crate) fn may_end_after(&self, requests: u64) -> bool {
        self.end_after.load(Ordering::Relaxed) == requests.saturating_add(1)
    }

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
        let passed = u64::try_from(self.0.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.answered.store(passed, Ordering::Relaxed);
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
