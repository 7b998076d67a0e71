//! Storage of responses and conversations, by tenant.
//!
//! A [`Store`] is opened once; [`Store::for_tenant`] gives the only handle that reads or writes, and through it no
//! other tenant can be named. What a call has acknowledged survives a crash and a power cut (memory apart). A history is
//! given out whole or not at all.
//!
//! A turn is stored whole when it has ended, or begun, advanced and finished; it ends once. One that has expired is not
//! there, on every road, whether it was swept or not. A turn that may outlive its request has a job beside it (`job`), by
//! which another process runs it, or ends it when the one that ran it is gone.
//!
//! Histories are append-only segments of items; a response points at a place in one. Continuing the newest place
//! extends a segment, continuing an older one makes a new segment that names where it left. A keyed hash of each
//! beginning of a list finds the part of a request that is held already, so a client that resends everything costs
//! what it adds. `erasure` says what a deletion takes along.
#![forbid(unsafe_code)]

mod access;
mod backup;
#[cfg(test)]
mod bound;
mod clock;
mod conversation;
mod encryption;
mod erasure;
mod error;
mod event;
mod holdings;
mod inspect;
mod job;
mod key;
mod migration;
mod notice;
mod options;
mod packed;
mod postgres;
mod prefix;
mod prepared;
mod room;
mod rows;
mod same;
mod share;
mod sqlite;
mod statements;
mod tenanted;
mod trace;
mod turn;
mod upkeep;
mod usage;
mod whole;

use std::path::Path;

pub use access::{AccessList, ApiKey};
pub use backup::{Backup, Checking, RestoreError, Restored, check_sqlite, restore_sqlite};
pub use clock::Clock;
pub use conversation::{Lease, NewConversation, StoredConversation};
use encryption::Vault;
pub use encryption::{Encryption, Rekeyed, Rewriting, StoreKey};
pub use error::{Error, OpenError, Unavailable};
pub use event::{Event, EventLimits, EventPage, Log, NewEvents};
pub use holdings::{Erased, Exported, Holding, Holdings};
pub use inspect::{PostgresLook, SqliteLook, inspect_postgres, inspect_sqlite, is_held, sqlite_version};
pub use job::{Abandoned, Beat, Begun, Claim, ClaimedJob, JobKind, JobLimits, NewJob, Recovered, Runs, Worker};
pub use key::{KeyClaim, NewKey};
pub use notice::{NewNotice, Notice};
pub use options::{Counters, MemoryLimits, PostgresOptions, SqliteOptions};
use prefix::{Hashers, Secret};
pub use room::Room;
pub use share::{Share, ShareWish};
pub use tenanted::Tenanted;
pub use trace::{
    NewTrace, Payload, PlainTurn, StoredTrace, TRACE_TIMES, TraceBatch, TraceDocument, TraceFilter, TraceNumber,
    TracePage, TracePoint, TraceRekeyed, TraceRetention, TraceRow, TraceStore, member,
};
pub use turn::{
    ChainLimits, History, Item, ItemPage, NewTurn, Order, Page, Parent, Status, StoredResponse, Tenant, Turn, TurnEnd,
};
pub use usage::{Spender, UsageBatch, UsageBy, UsageKey, UsageQuery, UsageSum, dollars};
pub use whole::Findings;

/// Where sessions live. Copies are the same store.
#[derive(Clone)]
pub struct Store {
    backend: Backend,
    secret: Secret,
    hashers: Hashers,
    vault: Vault,
    clock: Clock,
}

#[derive(Debug, Clone)]
enum Backend {
    Sqlite(sqlite::Database),
    Postgres(postgres::Database),
}

impl Store {
    /// Nothing on any disk; gone with the process. What was not used for longest makes room for the new.
    pub fn memory(limits: MemoryLimits) -> Result<Self, OpenError> {
        let (database, secret) = sqlite::Database::memory(limits)?;
        Ok(Self::new(Backend::Sqlite(database), secret, Vault::default()))
    }

    /// Opens or creates the database file. It belongs to one process at a time.
    pub fn sqlite(path: &Path, options: &SqliteOptions) -> Result<Self, OpenError> {
        Self::encrypted_sqlite(path, options, Encryption::default())
    }

    /// As [`Self::sqlite`], with these keys. A file that needs others is refused.
    pub fn encrypted_sqlite(path: &Path, options: &SqliteOptions, encryption: Encryption) -> Result<Self, OpenError> {
        let (database, secret) = sqlite::Database::file(path, options, &encryption)?;
        Ok(Self::new(Backend::Sqlite(database), secret, Vault::new(encryption)))
    }

    /// Connects, and brings the schema up to date. Any number of processes may share it.
    pub async fn postgres(url: &str, options: &PostgresOptions) -> Result<Self, OpenError> {
        Self::encrypted_postgres(url, options, Encryption::default()).await
    }

    /// As [`Self::postgres`], with these keys. A database that needs others is refused.
    pub async fn encrypted_postgres(
        url: &str,
        options: &PostgresOptions,
        encryption: Encryption,
    ) -> Result<Self, OpenError> {
        let (database, secret) = postgres::Database::connect(url, options, &encryption).await?;
        Ok(Self::new(Backend::Postgres(database), secret, Vault::new(encryption)))
    }

    fn new(backend: Backend, secret: Secret, vault: Vault) -> Self {
        Self { backend, secret, hashers: Hashers::default(), vault, clock: Clock::system() }
    }

    /// The same store by another clock.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// Whether the store answers now, and takes writes.
    pub async fn ping(&self) -> Result<(), Unavailable> {
        match &self.backend {
            Backend::Sqlite(database) => database.ping().await,
            Backend::Postgres(database) => database.ping().await,
        }
    }

    /// The handle for everything that is one tenant's.
    pub fn for_tenant(&self, tenant: Tenant) -> Tenanted {
        let hasher = self.hashers.of(&self.secret, &tenant);
        Tenanted::new(self.backend.clone(), self.clock.clone(), hasher, self.vault.clone(), tenant)
    }

    /// Finishes what is queued and closes the database. Every other copy of this store stops working.
    pub async fn close(self) {
        match self.backend {
            Backend::Sqlite(database) => database.close().await,
            Backend::Postgres(database) => database.close(),
        }
    }

    /// A key that every process with this store has, and nobody without it.
    pub fn derive_key(&self, purpose: &str) -> [u8; 32] {
        self.secret.derive(purpose)
    }

    /// What was written so far. On Postgres each write is its own commit and nothing is counted.
    pub fn counters(&self) -> Counters {
        match &self.backend {
            Backend::Sqlite(database) => database.counters(),
            Backend::Postgres(_) => Counters::default(),
        }
    }
}

/// Without the secret.
impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Store").field(&self.backend).finish()
    }
}
