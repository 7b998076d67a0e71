//! Turns that outlive the request that asked for them: they run in tasks of this process, and what they say goes into the
//! store's log before anybody reads it.
//!
//! The store decides who runs a turn and how it ended. A process that is gone, or frozen, or cut off from the database has
//! lost its turns: another one gives them an end, and nothing that the first one writes afterwards counts. What was sent
//! to a provider once is not sent again by itself.
//!
//! ```text
//!  submit ─▶ queued ─▶ claimed ─▶ dispatched ─▶ driven to its end, or cancelled
//!               ▲         │            └──────── its process is gone: failed
//!               └─────────┘ its process is gone: somebody else's
//! ```

mod drive;
mod end;
mod envelope;
mod maintain;
mod submit;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use store::{Claim, Worker};
use tokio::sync::{Notify, watch};
use wire::id::{Id, Ids};

use crate::error::{ApiError, Code};
use crate::request::RequestContext;
pub(crate) use drive::follow_foreground;
pub(crate) use end::{Ending, end};
pub(crate) use maintain::maintain;
pub(crate) use submit::{Submission, Submitted, submit};

/// The background turns of this process.
#[derive(Debug)]
pub(crate) struct Background {
    pub(crate) worker: Worker,
    running: Mutex<HashMap<String, Arc<Running>>>,
    /// Requests that wait and may be written nowhere.
    secret: Mutex<HashMap<String, Bytes>>,
    /// A turn that waits may have a place now.
    place: Notify,
    /// Whether the turns of this process are still its own is to be looked at now.
    look: Notify,
    /// A task ended without giving its turn an end.
    fell: AtomicBool,
}

/// A turn that runs here.
#[derive(Debug)]
pub(crate) struct Running {
    attempt: i64,
    order: watch::Sender<Order>,
    over: watch::Sender<bool>,
}

/// What a turn is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    GoOn,
    Cancel,
    /// It is somebody else's.
    Leave,
}

/// A turn that is in the store, for whoever runs it.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) claim: Claim,
    pub(crate) has_log: bool,
    /// The number with which its log goes on.
    pub(crate) next_event: u64,
    /// Unix milliseconds.
    pub(crate) created_at: i64,
}

impl Background {
    pub(crate) fn new() -> Result<Self, store::Error> {
        Ok(Self {
            worker: Worker::random()?,
            running: Mutex::default(),
            secret: Mutex::default(),
            place: Notify::new(),
            look: Notify::new(),
            fell: AtomicBool::new(false),
        })
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, Arc<Running>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn secret(&self) -> MutexGuard<'_, HashMap<String, Bytes>> {
        self.secret.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The turn of that response, if it runs here.
    pub(crate) fn find(&self, response: &str) -> Option<Arc<Running>> {
        self.running().get(response).cloned()
    }

    fn enter(self: &Arc<Self>, claim: &Claim) -> Entered {
        let (order, over) = (watch::Sender::new(Order::GoOn), watch::Sender::new(false));
        let running = Arc::new(Running { attempt: claim.attempt(), order, over });
        self.running().insert(claim.response_id().to_owned(), Arc::clone(&running));
        Entered { background: Arc::clone(self), running, claim: claim.clone(), ended: false }
    }

    /// A turn that waited was cancelled, and needs no memory any more.
    pub(crate) fn forget(&self, response: &str) {
        self.secret().remove(response);
        self.place.notify_one();
    }
}

impl Running {
    /// Tells the turn to end as cancelled.
    pub(crate) fn cancel(&self) {
        self.tell(Order::Cancel);
    }

    fn tell(&self, order: Order) {
        self.order.send_if_modified(|now| {
            let changes = *now < order;
            *now = order.max(*now);
            changes
        });
    }

    /// Ready when the turn has left this process.
    pub(crate) async fn over(&self) {
        let _ = self.over.subscribe().wait_for(|over| *over).await;
    }
}

/// A turn's place among those that run here, until its task is done.
#[derive(Debug)]
struct Entered {
    background: Arc<Background>,
    running: Arc<Running>,
    claim: Claim,
    /// The turn has its end in the store, or is somebody else's.
    ended: bool,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut running = self.background.running();
        // Somebody else's try of the same turn may be here by now.
        if running.get(self.claim.response_id()).is_some_and(|found| Arc::ptr_eq(found, &self.running)) {
            running.remove(self.claim.response_id());
        }
        drop(running);
        if !self.ended {
            self.background.fell.store(true, Ordering::Relaxed);
            self.background.look.notify_one();
        }
        self.running.over.send_replace(true);
        self.background.place.notify_one();
    }
}

impl Job {
    /// The response's id, where the ids in it come from, and when it was made.
    pub(crate) fn identity(&self) -> Result<(Id, Ids, u64), ApiError> {
        let id = self.claim.response_id();
        let attempt = u32::try_from(self.claim.attempt()).unwrap_or(u32::MAX);
        let made = u64::try_from(self.created_at / 1000).unwrap_or(0);
        let damaged = || ApiError::new(Code::StorageDamaged, "The id of a queued response is not one of ours.");
        Ok((Id::given(id).ok_or_else(damaged)?, Ids::of(id, attempt).ok_or_else(damaged)?, made))
    }

    /// Says, for everybody and for ever, that a provider is about to be asked.
    pub(crate) async fn dispatch(&self, context: &RequestContext) -> Result<(), ApiError> {
        let dispatched = context.session().store().dispatch(&self.claim).await;
        context.session().observe(dispatched, || ApiError::response_not_found(self.claim.response_id()))
    }
}
