//! What is used and what it costs: counted in memory as answers end, written to the store every second, and held against
//! the budgets of keys and tenants before a turn begins.
//!
//! Nothing that was used is ever forgotten while the process lives, and nothing is written twice: what could not be
//! written stays, and a batch has a number by which the store knows it. No request waits for the store here, but the
//! first of a key with a budget.

mod budgets;
mod pending;
mod period;
pub mod report;

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use store::{Store, UsageBatch, Worker};
use tokio::time::MissedTickBehavior;
use wire::responses::Usage;

use crate::access::Grant;
use crate::clock;
use crate::error::ApiError;
pub(crate) use budgets::Reservation;
use budgets::{Lack, Others, Spent, Tab, Tabs};
use pending::Pending;

/// How often what was used is written, and what others have spent is read.
const EVERY: Duration = Duration::from_secs(1);
/// How long what is promised is held in the database by a process that says nothing more, and how long it may take to answer.
const LEASE: Duration = Duration::from_secs(15);
const PATIENCE: Duration = Duration::from_secs(1);
/// How often a failure that lasts is told.
const TOLD_EVERY: u64 = 60;
/// How often the last batch is tried, and how long is waited in between.
const LAST_TRIES: u32 = 10;
const LAST_WAIT: Duration = Duration::from_millis(300);

/// What was used and is not written yet, and what was spent in the periods of budgets.
pub(crate) struct Spending {
    store: Store,
    worker: Worker,
    clock: Clock,
    /// The latest hour that was ever seen: a clock that is set back begins no new period.
    hour: AtomicI64,
    pending: Pending,
    tabs: Tabs,
    /// What is being written, until it is known to be.
    batch: Mutex<Batches>,
}

/// Seconds since 1970.
type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

#[derive(Debug, Default)]
struct Batches {
    /// Of the last one.
    number: i64,
    waiting: Option<UsageBatch>,
}

impl fmt::Debug for Spending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spending").field("hour", &self.hour).finish_non_exhaustive()
    }
}

/// Something that was used.
#[derive(Debug, Clone)]
pub(crate) struct Used<'a> {
    pub(crate) tenant: &'a str,
    /// Of the grant; empty without one.
    pub(crate) key: &'a str,
    /// Whose budget it counts for: see [`Grant::limited_as`].
    pub(crate) limited_as: &'a str,
    pub(crate) provider: &'a str,
    pub(crate) model: &'a str,
    pub(crate) usage: Usage,
    /// None: its price is not known.
    pub(crate) nanodollars: Option<u64>,
    /// Of a hosted tool; 0: it is an answer of a model.
    pub(crate) tool_calls: u64,
}

impl Spending {
    pub(crate) fn new(store: Store, worker: Worker) -> Arc<Self> {
        Self::by(store, worker, Arc::new(clock::unix_seconds))
    }

    fn by(store: Store, worker: Worker, clock: Clock) -> Arc<Self> {
        let (pending, tabs, batch) = (Pending::default(), Tabs::default(), Mutex::default());
        Arc::new(Self { store, worker, clock, hour: AtomicI64::new(0), pending, tabs, batch })
    }

    /// Whole hours since 1970, by a clock that never goes back.
    fn hour(&self) -> i64 {
        let now = i64::try_from((self.clock)() / 3600).unwrap_or(i64::MAX);
        self.hour.fetch_max(now, Ordering::Relaxed).max(now)
    }

    /// Whether the key and its tenant have anything left; 429 `insufficient_quota` if not, `rate_limit_exceeded` if all that
    /// is left is set aside for others. So much is set aside until the reservation is dropped.
    pub(crate) async fn check(&self, grant: &Grant, nanodollars: u64) -> Result<Reservation, ApiError> {
        let hour = self.hour();
        let (tabs, are_known) = self.tabs.of(grant, hour);
        for tab in tabs.iter().flatten().filter(|_| !are_known) {
            // Only the first request of a budget in this process, and in a period, waits.
            if let Some(asked) = tab.unknown() {
                let spent = self.store.spent(asked.each().collect()).await.map_err(|error| ApiError::store(&error))?;
                tab.read(&asked, &spent);
            }
        }
        self.reserve(&tabs, nanodollars).await.map_err(|Spent { whose, per, is_promised }| {
            if is_promised {
                return ApiError::budget_in_use(whose);
            }
            ApiError::insufficient_quota(whose, period::end(per, hour).as_deref())
        })
    }

    /// What is promised of a budget that others share is held in the database, too.
    async fn reserve(&self, tabs: &[Option<Arc<Tab>>; 2], nanodollars: u64) -> Result<Reservation, Spent> {
        let mut others = [if self.store.is_shared() { Others::Some } else { Others::None }; 2];
        loop {
            match Reservation::make(tabs, nanodollars, others) {
                Ok(made) => return Ok(made),
                Err(Lack::Spent(spent)) => return Err(spent),
                Err(Lack::Ask(tab)) => {
                    let took = self.hold(&tab, || Some(tab.wish(nanodollars))).await;
                    let asked = tabs
                        .iter()
                        .zip(&mut others)
                        .filter(|(asked, _)| asked.as_ref().is_some_and(|asked| Arc::ptr_eq(asked, &tab)));
                    asked.filter(|_| took).for_each(|(_, others)| *others = Others::Took);
                }
            }
        }
    }

    /// Has the database hold as much as is wished for, of as much as all processes may. Whether it holds less than that.
    async fn hold(&self, tab: &Tab, wish: impl FnOnce() -> Option<(u64, u64)>) -> bool {
        let _turn = tab.asking.acquire().await;
        let Some((wanted, all)) = wish() else { return false };
        let asked = self.store.hold_places(&self.worker, &tab.subject, wanted, all, LEASE);
        // Budgets hold as far as they are known, where the database is away.
        let held = tokio::time::timeout(PATIENCE, asked).await.ok().and_then(Result::ok).unwrap_or(u64::MAX);
        tab.holds(held);
        held < wanted
    }

    /// Has it hold no more than is needed.
    async fn let_go(&self) {
        if !self.store.is_shared() {
            return;
        }
        for tab in self.tabs.each_now() {
            self.hold(&tab, || tab.spare()).await;
        }
    }

    /// What was spent is asked for again: the store has forgotten some of it.
    pub(crate) async fn forget(&self) {
        self.flush().await;
        self.tabs.clear();
    }

    /// Counts it. Cheap: it is done for every answer.
    pub(crate) fn add(&self, used: &Used<'_>) {
        self.pending.add(used, self.hour());
        if let Some(nanodollars) = used.nanodollars.filter(|amount| *amount > 0) {
            // After the sum: counted twice for a moment is better than not at all.
            self.tabs.add(used.limited_as, used.tenant, nanodollars);
        }
    }

    fn batches(&self) -> MutexGuard<'_, Batches> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be written next: the batch that could not be, as it was; else what was used since.
    fn next_batch(&self) -> Option<UsageBatch> {
        let mut batches = self.batches();
        if batches.waiting.is_none() {
            let rows = self.pending.take();
            if rows.is_empty() {
                return None;
            }
            self.tabs.writing();
            batches.number += 1;
            batches.waiting = Some(UsageBatch { worker: self.worker, number: batches.number, rows });
        }
        batches.waiting.clone()
    }

    async fn write(&self) -> Result<(), store::Error> {
        if let Some(batch) = self.next_batch() {
            self.store.add_usage(batch).await?;
            self.batches().waiting = None;
        }
        Ok(())
    }

    /// What was spent by everybody, here and in other processes.
    async fn read(&self) -> Result<(), store::Error> {
        let tabs = self.tabs.all(self.hour());
        if tabs.is_empty() {
            return Ok(());
        }
        let spent = self.store.spent(tabs.iter().flat_map(|(_, asked)| asked.each()).collect()).await?;
        let mut rest = spent.as_slice();
        for (tab, asked) in &tabs {
            let (own, others) = rest.split_at(asked.spenders.len().min(rest.len()));
            tab.read(asked, own);
            rest = others;
        }
        Ok(())
    }

    /// Only what is written is read back: otherwise it would be missed in between.
    async fn write_and_read(&self) -> Result<(), store::Error> {
        self.write().await?;
        self.read().await?;
        self.let_go().await;
        Ok(())
    }

    /// Writes what was used every second; runs as long as the server.
    pub(crate) async fn maintain(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut failures: u64 = 0;
        loop {
            ticks.tick().await;
            match self.write_and_read().await {
                Ok(()) => failures = 0,
                Err(error) => {
                    if failures.is_multiple_of(TOLD_EVERY) {
                        tracing::warn!(%error, "what was used is not written yet; it is kept");
                    }
                    failures += 1;
                }
            }
        }
    }

    /// Writes what is left, at the end.
    pub(crate) async fn flush(&self) {
        for attempt in 1..=LAST_TRIES {
            // One that could not be written, and what came since.
            let written = match self.write().await {
                Ok(()) => self.write().await,
                failed => failed,
            };
            match written {
                Ok(()) => return,
                Err(error) if attempt == LAST_TRIES => {
                    let lost = self.next_batch().map_or(0, |batch| batch.rows.len());
                    tracing::error!(%error, rows = lost, "what was used at last could not be written");
                }
                Err(_) => tokio::time::sleep(LAST_WAIT).await,
            }
        }
    }
}

#[cfg(test)]
mod tests;
