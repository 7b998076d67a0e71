//! The lanes of one connection: what runs, and what waits. A lane does one thing after the other, in the order in which
//! it came; different lanes run side by side.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll};

use super::memory::RememberedTurn;
use super::request::{Create, StreamId};
use super::running::{Running, Step};
use crate::error::{ApiError, Code};

/// Responses that are made at the same time; more wait.
const ACTIVE: usize = 16;

/// Names that one connection may give its lanes.
const NAMED: usize = 32;

/// Requests that may wait.
const WAITING: usize = 64;

pub(super) struct Lanes {
    active: Vec<Running>,
    waiting: VecDeque<Create>,
    named: BTreeSet<StreamId>,
    /// Of the bodies that wait, and how many there may be.
    bytes: usize,
    limit: usize,
    /// Who is asked first next time.
    turn: usize,
}

/// Whose step it is; at its end, also what it continued.
pub(super) struct Origin {
    pub(super) stream_id: Option<StreamId>,
    pub(super) previous_response_id: Option<String>,
    pub(super) before: Option<Arc<RememberedTurn>>,
}

impl Lanes {
    pub(super) const fn new(limit: usize) -> Self {
        Self { active: Vec::new(), waiting: VecDeque::new(), named: BTreeSet::new(), bytes: 0, limit, turn: 0 }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.active.is_empty() && self.waiting.is_empty()
    }

    /// Takes a request, or says why not.
    pub(super) fn enqueue(&mut self, create: Create) -> Result<(), ApiError> {
        if let Some(name) = &create.stream_id
            && !self.named.contains(name)
        {
            if self.named.len() >= NAMED {
                let message = format!(
                    "This WebSocket connection has reached its maximum number of distinct stream IDs ({NAMED}). Reuse an \
                     existing stream_id or open a new WebSocket connection."
                );
                return Err(ApiError::bad_request(Code::StreamLimit, message).with_param("stream_id"));
            }
            self.named.insert(name.clone());
        }
        let bytes = self.bytes + create.body.len();
        let is_full = self.waiting.len() >= WAITING || (bytes > self.limit && !self.waiting.is_empty());
        if is_full && !self.may_begin(&create) {
            let message =
                "More requests wait on this connection than it may keep. Please retry when some are answered.";
            return Err(ApiError { retry_after: Some(1), ..ApiError::new(Code::QueueFull, message) });
        }
        self.bytes = bytes;
        self.waiting.push_back(create);
        Ok(())
    }

    /// Whether it would not have to wait.
    fn may_begin(&self, create: &Create) -> bool {
        let is_first = self.waiting.iter().all(|waiting| waiting.stream_id != create.stream_id);
        self.active.len() < ACTIVE && is_first && self.is_free(create)
    }

    fn is_free(&self, create: &Create) -> bool {
        self.active.iter().all(|running| running.stream_id != create.stream_id)
    }

    /// The next request whose lane is free.
    pub(super) fn next(&mut self) -> Option<Create> {
        if self.active.len() >= ACTIVE {
            return None;
        }
        let place = self.waiting.iter().position(|create| self.is_free(create))?;
        self.take(place)
    }

    /// What still waits, and will not be done.
    pub(super) fn give_up(&mut self) -> Option<Create> {
        self.take(0)
    }

    fn take(&mut self, place: usize) -> Option<Create> {
        let create = self.waiting.remove(place)?;
        self.bytes -= create.body.len();
        if self.waiting.is_empty() {
            self.waiting = VecDeque::new();
        }
        Some(create)
    }

    pub(super) fn run(&mut self, running: Running) {
        self.active.push(running);
    }

    /// What the next of them came to. Each is asked every time: some wait for something that wakes only the task that
    /// asks.
    pub(super) fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<(Origin, Step)> {
        let count = self.active.len();
        for offset in 0..count {
            let place = (self.turn + offset) % count;
            let Some(running) = self.active.get_mut(place) else { continue };
            let Poll::Ready(step) = running.steps.as_mut().poll_next(cx) else { continue };
            self.turn = place + 1;
            let step = step.unwrap_or(Step::Over);
            let mut origin = Origin { stream_id: running.stream_id.clone(), previous_response_id: None, before: None };
            if matches!(step, Step::Events(_, Some(_)) | Step::Refused(..)) {
                origin.previous_response_id = running.previous_response_id.take();
                origin.before = running.before.take();
            }
            if !matches!(step, Step::Events(..)) {
                drop(self.active.swap_remove(place));
            }
            if self.active.is_empty() {
                self.active = Vec::new();
            }
            return Poll::Ready((origin, step));
        }
        Poll::Pending
    }
}
