//! The end of the server, in steps: it serves; it drains (no new connections, running requests may end); it stops
//! now (what still runs says why it cannot go on, and ends).

use std::future::poll_fn;
use std::task::Poll;

use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Serving,
    Draining,
    Now,
}

/// How far the end has come. One for the whole server.
#[derive(Debug)]
pub(crate) struct Stop(watch::Sender<Phase>);

impl Stop {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(Phase::Serving))
    }

    pub(crate) fn phase(&self) -> Phase {
        *self.0.borrow()
    }

    pub(crate) fn begin(&self, phase: Phase) {
        self.0.send_replace(phase);
    }

    /// For the tasks: the owner of a connection, or of one stream of it, waits for changes.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Phase> {
        self.0.subscribe()
    }

    /// Ready when everything must end. It wakes nobody: it is for whoever runs inside a task that waits for
    /// changes itself and then polls what it runs once more. So a held stream has no place in any list.
    pub(crate) async fn now(&self) {
        poll_fn(|_| if self.phase() == Phase::Now { Poll::Ready(()) } else { Poll::Pending }).await;
    }
}
