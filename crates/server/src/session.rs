//! Sessions: what a turn continues, and what is kept of it.
//!
//! A request becomes a [`Context`] (its past, read from the store) before it is planned, and a [`Record`] (what will be
//! stored) while it runs; the record is committed before the terminal event leaves. Everything here goes through one
//! tenant's handle. A store that fails is never mistaken for something that is not there.

mod context;
mod export;
mod given;
mod hidden;
mod kinds;
mod lease;
mod listed;
mod maintenance;
mod object;
mod recall;
mod record;
mod unstored;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use store::{Beat, ClaimedJob, Error, JobLimits, Recovered, Store, Tenant, Tenanted, TurnEnd, Worker};
use tokio::sync::mpsc;
use wire::id::{IdKind, Ids};
use wire::json::Raw;

use crate::body::{Budget, Room};
use crate::config::SessionConfig;
use crate::error::{ApiError, Code};
use crate::live::Live;
use crate::webhooks::Webhooks;
pub(crate) use context::{Context, Past};
pub(crate) use export::exported;
pub(crate) use given::Given;
use kinds::ItemKind;
pub(crate) use lease::LEASE;
use lease::Leases;
pub(crate) use listed::write_listed;
pub(crate) use maintenance::maintain;
pub(crate) use object::{Beside, Parts, join, joined_length, split};
use recall::Recall;
pub(crate) use record::{BegunRecord, Commit, End, NewRecord, NotKept, Record};
pub(crate) use unstored::Unstored;

/// All sessions of this process.
#[derive(Debug)]
pub(crate) struct Sessions {
    store: Store,
    config: SessionConfig,
    leases: Arc<Leases>,
    recall: Recall,
    /// Of what is read, too.
    budget: Arc<Budget>,
    live: Arc<Live>,
    webhooks: Arc<Webhooks>,
    /// The store did not answer the last time it was asked.
    down: AtomicBool,
    /// Answers that were delivered but could not be kept.
    unstored: AtomicU64,
}

impl Sessions {
    pub(crate) fn new(
        store: Store,
        config: SessionConfig,
        budget: Arc<Budget>,
        live: Arc<Live>,
        webhooks: Arc<Webhooks>,
        memory: Option<u64>,
    ) -> Arc<Self> {
        let (leases, down, unstored) = (Arc::default(), AtomicBool::new(false), AtomicU64::new(0));
        let recall = Recall::within(memory);
        Arc::new(Self { store, config, leases, recall, budget, live, webhooks, down, unstored })
    }

    /// One tenant's sessions: the only way to read or write any.
    pub(crate) fn of(self: &Arc<Self>, tenant: Tenant) -> Session {
        Session { store: self.store.for_tenant(tenant.clone()), tenant, all: Arc::clone(self) }
    }

    pub(crate) async fn ping(&self) -> Result<(), store::Unavailable> {
        let answer = self.store.ping().await;
        self.down.store(answer.is_err(), Ordering::Relaxed);
        answer
    }

    /// What other instances tell of their responses; none where there are no others.
    pub(crate) fn hints(&self) -> Option<mpsc::Receiver<String>> {
        self.store.hints()
    }

    /// See [`Store::heartbeat`].
    pub(crate) async fn heartbeat(&self, worker: &Worker, lease: Duration) -> Result<Vec<Beat>, Error> {
        self.observe(self.store.heartbeat(worker, lease).await)
    }

    /// See [`Store::recover`].
    pub(crate) async fn recover(&self, worker: &Worker, most: usize, lease: Duration) -> Result<Recovered, Error> {
        self.observe(self.store.recover(worker, most, lease).await)
    }

    /// See [`Store::claim`].
    pub(crate) async fn claim(
        &self,
        worker: &Worker,
        limits: JobLimits,
        most: usize,
        lease: Duration,
    ) -> Result<Vec<ClaimedJob>, Error> {
        self.observe(self.store.claim(worker, limits, most, lease).await)
    }

    /// Forgets what is in memory of a tenant.
    pub(crate) fn forget(&self, tenant: &Tenant) {
        self.recall.forget(tenant);
    }

    /// Gives back what is leased, and closes the store.
    pub(crate) async fn close(&self) {
        self.leases.give_back().await;
        self.store.clone().close().await;
    }

    /// Remembers whether the store answers, and tells the operator why it does not.
    fn observe<T>(&self, answer: Result<T, Error>) -> Result<T, Error> {
        match &answer {
            Err(Error::Unavailable(unavailable)) => {
                self.down.store(true, Ordering::Relaxed);
                tracing::warn!(reason = unavailable.reason(), "the session store does not answer");
            }
            Err(Error::Corrupt(what)) => tracing::error!(%what, "the session store is damaged"),
            Err(Error::Full) => tracing::error!("the session store is full"),
            _ => {}
        }
        answer
    }

    fn not_kept(&self, id: &str, error: &Error) {
        let count = self.unstored.fetch_add(1, Ordering::Relaxed) + 1;
        tracing::warn!(response_id = id, %error, count, "a response could not be stored");
    }
}

/// One tenant's sessions.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    store: Tenanted,
    tenant: Tenant,
    all: Arc<Sessions>,
}

impl Session {
    pub(crate) const fn store(&self) -> &Tenanted {
        &self.store
    }

    /// What is beside the items of a response that is not stored: its client may send them back.
    pub(crate) fn remember(&self, kept: &[Beside]) {
        if !kept.is_empty() {
            self.all.recall.keep(&self.tenant, kept);
        }
    }

    /// Streams that are followed here.
    pub(crate) fn live(&self) -> &Live {
        &self.all.live
    }

    /// Something has happened to that response: whoever follows it looks, here and elsewhere.
    pub(crate) fn ring(&self, response: &str) {
        self.all.live.ring(response);
        self.tell(response);
    }

    /// The same, only elsewhere.
    pub(crate) fn tell(&self, response: &str) {
        self.all.store.tell(response);
    }

    /// Ends a turn that was begun; whoever is to be told of it is told soon.
    pub(crate) async fn finish(&self, end: TurnEnd) -> Result<(), Error> {
        let somebody = !end.notices.is_empty();
        self.store.finish(end).await?;
        if somebody {
            self.all.webhooks.wake();
        }
        Ok(())
    }

    /// Whom to tell of the end of a response; this is the head of its object.
    pub(crate) fn notices(&self, response: &str, status: store::Status, head: &[u8]) -> Vec<store::NewNotice> {
        self.all.webhooks.notices(&self.tenant, response, status, head)
    }

    /// Room for items that are read; it counts until it is gone, and has to stay as long as they do.
    pub(crate) fn room(&self) -> Arc<Room> {
        self.all.budget.room()
    }

    /// The store, for reading items: they count while they are read, and not when all of them are here.
    pub(crate) fn reading(&self, room: &Arc<Room>) -> Tenanted {
        self.store.within(Arc::<Room>::clone(room))
    }

    /// What the store answered. What can be absent is the caller's to say.
    pub(crate) fn observe<T>(
        &self,
        answer: Result<T, Error>,
        absent: impl FnOnce() -> ApiError,
    ) -> Result<T, ApiError> {
        self.all.observe(answer).map_err(|error| match error {
            Error::NotFound | Error::DeletedAncestor => absent(),
            error => ApiError::store(&error),
        })
    }

    /// What was read is not what was stored: the operator is told, and whoever asked.
    pub(crate) fn damaged(&self, what: String) -> ApiError {
        let absent = || ApiError::new(Code::StorageDamaged, "The session store is damaged.");
        self.observe::<()>(Err(Error::Corrupt(what.into())), absent).err().unwrap_or_else(absent)
    }

    /// As [`Self::observe`], of a deletion. It needs a little room itself: where there is none, that is what it says, and
    /// not that the store cannot take more.
    pub(crate) fn erased<T>(&self, answer: Result<T, Error>, absent: impl FnOnce() -> ApiError) -> Result<T, ApiError> {
        match answer {
            Err(Error::Full) => {
                tracing::error!("the disk has no room to record a deletion");
                let message = "The session store has no room to record the deletion; nothing was deleted.";
                Err(ApiError::unavailable(Code::StorageUnavailable, message))
            }
            answer => self.observe(answer, absent),
        }
    }

    /// Work that is to be stored is not begun while the store is known to be away.
    pub(crate) async fn ensure_up(&self) -> Result<(), ApiError> {
        if !self.all.down.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.all.ping().await.map_err(|unavailable| ApiError::store(&unavailable.into()))
    }
}

/// The id that a client gave its item; none that a URL cannot have.
pub(crate) fn own_id(raw: Raw<'_>) -> Option<String> {
    const LONGEST: usize = 128;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let usable = |id: &str| (1..=LONGEST).contains(&id.len()) && id.bytes().all(plain);
    let id = raw.get("id").and_then(Raw::text)?.decode();
    usable(&id).then(|| id.into_owned())
}

/// An id for an item that has none.
fn new_id(raw: Raw<'_>, ids: &mut Ids) -> String {
    ids.make(ItemKind::of(raw).map_or(IdKind::Item, |kind| kind.id)).to_string()
}
