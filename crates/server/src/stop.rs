//! The end of the server, in steps. Each lasts until the next begins; none is taken back.

use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// All is as ever.
    Serving,
    /// For `server.drain_delay`: whatever comes is answered, and everybody is told to go elsewhere. `/ready` says no,
    /// answers close their connections, HTTP/2 clients are sent away. Work that others could do is left to them: no
    /// queued job is taken up.
    Leaving,
    /// For `server.drain_timeout`: nobody gets in any more, and what runs may end. A connection closes as soon as
    /// nothing runs on it, a WebSocket with 1012; a running job goes on.
    Draining,
    /// What still runs says why it cannot go on, and ends; there is a moment to store that.
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

    /// Whether clients are to go elsewhere.
    pub(crate) fn has_begun(&self) -> bool {
        self.phase() > Phase::Serving
    }

    pub(crate) fn begin(&self, phase: Phase) {
        self.0.send_replace(phase);
    }

    /// Everybody who waits for changes looks once more, although there is none.
    pub(crate) fn nudge(&self) {
        self.0.send_modify(|_| {});
    }

    /// For a task: it waits for changes, `wait_for(|phase| *phase >= Phase::Draining)`.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Phase> {
        self.0.subscribe()
    }
}
