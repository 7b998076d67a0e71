//! The turns in the store that this process runs, and what they are told. Driving them is `background`.

mod lines;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use store::{Claim, Worker};
use tokio::sync::{Notify, watch};
use wire::id::{Id, Ids};

use crate::error::{ApiError, Code};
pub(crate) use lines::InLine;
use lines::Lines;

/// The jobs of this process: turns that are in the store, and that it runs.
#[derive(Debug)]
pub(crate) struct Jobs {
    pub(crate) worker: Worker,
    running: Mutex<HashMap<String, Arc<Running>>>,
    /// Requests that wait and may be written nowhere.
    secret: Mutex<Secrets>,
    /// A turn that waits may have a place now.
    pub(crate) place_free: Notify,
    /// Whether the turns of this process are still its own is to be looked at now.
    pub(crate) check_claims: Notify,
    /// There is a turn of this process that nobody runs, and that has no end.
    pub(crate) without_end: AtomicBool,
    /// Turns that have a place of their tenant and wait for one of their key.
    pub(crate) lines: Arc<Lines>,
}

/// Requests that wait and may be written nowhere, by their responses.
#[derive(Debug, Default)]
pub(crate) struct Secrets(HashMap<String, Secret>);

#[derive(Debug)]
struct Secret {
    request: Bytes,
    /// Its turn is in the store. Before that, it is no wonder that the store does not know it.
    stored: bool,
}

impl Secrets {
    pub(crate) fn insert(&mut self, response: String, request: Bytes) {
        self.0.insert(response, Secret { request, stored: false });
    }

    pub(crate) fn is_stored(&mut self, response: &str) {
        if let Some(secret) = self.0.get_mut(response) {
            secret.stored = true;
        }
    }

    pub(crate) fn remove(&mut self, response: &str) -> Option<Bytes> {
        self.0.remove(response).map(|secret| secret.request)
    }

    pub(crate) fn has(&self, response: &str) -> bool {
        self.0.contains_key(response)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those whose turns are in the store.
    pub(crate) fn stored(&self) -> Vec<String> {
        self.0.iter().filter(|(_, secret)| secret.stored).map(|(response, _)| response.clone()).collect()
    }
}

/// A turn that runs here.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) attempt: i64,
    pub(crate) order: watch::Sender<Order>,
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
    /// Where it waits for what its key may use, if it does.
    pub(crate) line: Option<Arc<InLine>>,
}

impl Jobs {
    pub(crate) fn new() -> Result<Self, store::Error> {
        Ok(Self {
            worker: Worker::random()?,
            running: Mutex::default(),
            secret: Mutex::default(),
            place_free: Notify::new(),
            check_claims: Notify::new(),
            without_end: AtomicBool::new(false),
            lines: Arc::default(),
        })
    }

    pub(crate) fn running(&self) -> MutexGuard<'_, HashMap<String, Arc<Running>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn secret(&self) -> MutexGuard<'_, Secrets> {
        self.secret.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The turn of that response, if it runs here.
    pub(crate) fn find(&self, response: &str) -> Option<Arc<Running>> {
        self.running().get(response).cloned()
    }

    pub(crate) fn enter(self: &Arc<Self>, claim: &Claim) -> Entered {
        let (order, over) = (watch::Sender::new(Order::GoOn), watch::Sender::new(false));
        let running = Arc::new(Running { attempt: claim.attempt(), order, over });
        self.running().insert(claim.response_id().to_owned(), Arc::clone(&running));
        Entered { jobs: Arc::clone(self), running, claim: claim.clone(), ended: false }
    }

    /// A turn was ended by another than who runs it: it needs no memory and no place any more.
    pub(crate) fn forget(&self, response: &str) {
        self.secret().remove(response);
        self.place_free.notify_one();
    }
}

impl Running {
    /// Tells the turn to end as cancelled.
    pub(crate) fn cancel(&self) {
        self.tell(Order::Cancel);
    }

    pub(crate) fn tell(&self, order: Order) {
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
pub(crate) struct Entered {
    jobs: Arc<Jobs>,
    pub(crate) running: Arc<Running>,
    pub(crate) claim: Claim,
    /// The turn has its end in the store, or is somebody else's.
    pub(crate) ended: bool,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut running = self.jobs.running();
        // Somebody else's try of the same turn may be here by now.
        if running.get(self.claim.response_id()).is_some_and(|found| Arc::ptr_eq(found, &self.running)) {
            running.remove(self.claim.response_id());
        }
        drop(running);
        if !self.ended {
            self.jobs.without_end.store(true, Ordering::Relaxed);
            self.jobs.check_claims.notify_one();
        }
        self.running.over.send_replace(true);
        self.jobs.place_free.notify_one();
        self.jobs.lines.ring();
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
}
