//! Where traces are, under one contract.

use std::path::Path;
use std::sync::Arc;

use super::block::room_within;
use super::chain::{Down, Up};
use super::memory::Memory;
use super::query::{Find, List};
use super::series::Series;
use super::{
    StoredTrace, TraceBatch, TraceFilter, TraceNumber, TracePage, TracePoint, TraceRetention, TraceRow, Visit, Walk,
};
use crate::sqlite::traces::{Damaged, TraceFile};
use crate::{Backend, Clock, Encryption, Error, OpenError, Rewriting, Store, Tenant, postgres};

/// Where traces are. Clones are the same.
#[derive(Debug, Clone)]
pub struct TraceStore {
    place: Place,
    encryption: Encryption,
    clock: Clock,
    /// Bytes of a block.
    room: i64,
}

#[derive(Debug, Clone)]
enum Place {
    Sqlite(TraceFile),
    Postgres(postgres::Database),
    Memory(Memory),
}

/// What a change of keys has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TraceRekeyed {
    /// Pieces of documents, and bodies, that were written anew.
    pub rewritten: u64,
    /// Those that no key opened any more. Their rows are still listed.
    pub dropped: u64,
}

impl TraceStore {
    /// A SQLite file of its own, which is not worth a wait for the disk. Documents and bodies are encrypted where there is a
    /// key.
    ///
    /// A file that is damaged is moved aside (`.damaged` is added to its name, and a number where there is one already), and
    /// a new one is begun. Tables that others have in the file stay as they are. What is no SQLite file is refused.
    pub fn sqlite(path: &Path, encryption: &Encryption) -> Result<Self, OpenError> {
        Ok(Self::new(Place::Sqlite(TraceFile::open(path, Damaged::MovedAside)?), encryption))
    }

    /// As [`Self::sqlite`], for whoever only looks: a file that is damaged stays where it is, and is refused.
    pub fn look(path: &Path, encryption: &Encryption) -> Result<Self, OpenError> {
        Ok(Self::new(Place::Sqlite(TraceFile::open(path, Damaged::Refused)?), encryption))
    }

    /// In the Postgres of that store, with its keys.
    pub fn shared(store: &Store) -> Option<Self> {
        match &store.backend {
            Backend::Postgres(database) => Some(Self::new(Place::Postgres(database.clone()), store.vault.encryption())),
            Backend::Sqlite(_) => None,
        }
    }

    /// In memory, up to so many bytes: where sessions are, too.
    pub fn memory(bytes: u64) -> Self {
        Self::new(Place::Memory(Memory::new(bytes)), &Encryption::default()).with_limit(bytes)
    }

    fn new(place: Place, encryption: &Encryption) -> Self {
        Self { place, encryption: encryption.clone(), clock: Clock::system(), room: room_within(u64::MAX) }
    }

    /// The same, of which so many bytes are going to be kept: what is written is in pieces that are small beside that.
    #[must_use]
    pub fn with_limit(self, bytes: u64) -> Self {
        Self { room: room_within(bytes), ..self }
    }

    /// The same traces by another clock.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// Finishes what is queued, and closes the file. Every other clone stops working. What is in a store's Postgres is closed
    /// with that store.
    pub async fn close(self) {
        if let Place::Sqlite(file) = self.place {
            file.close().await;
        }
    }

    /// Writes all of them, or none. They are numbered in their order. Many at once cost less than each for itself.
    pub async fn add(&self, traces: impl Into<Arc<TraceBatch>>) -> Result<(), Error> {
        let traces = traces.into();
        if traces.is_empty() {
            return Ok(());
        }
        match &self.place {
            Place::Sqlite(file) => file.add(traces, self.encryption.clone(), self.room).await,
            Place::Postgres(database) => Box::pin(database.add_traces(&traces, &self.encryption, self.room)).await,
            Place::Memory(memory) => memory.add(&traces, self.room),
        }
    }

    async fn walk<V: Visit>(&self, walk: Walk, mut visitor: V) -> Result<V, Error> {
        match &self.place {
            Place::Sqlite(file) => file.walk(walk, visitor).await,
            Place::Postgres(database) => Box::pin(database.walk_traces(walk, visitor)).await,
            Place::Memory(memory) => {
                memory.walk(walk, &mut visitor)?;
                Ok(visitor)
            }
        }
    }

    /// A part of a list, without documents and bodies. Fewer than were asked for are the last ones.
    pub async fn list(
        &self,
        filter: TraceFilter,
        page: TracePage,
    ) -> Result<Vec<(TraceNumber, TraceRow<'static>)>, Error> {
        let list = List::new(filter, page);
        Ok(self.walk(list.walk(), list).await?.found)
    }

    /// One by its number.
    pub async fn get(&self, number: TraceNumber) -> Result<Option<StoredTrace>, Error> {
        let stored = match &self.place {
            Place::Sqlite(file) => file.stored(number).await?,
            Place::Postgres(database) => database.stored_trace(number).await?,
            Place::Memory(memory) => memory.stored(number),
        };
        stored.map_or(Ok(None), |stored| stored.open(&self.encryption, number))
    }

    /// The newest one of that response; of that request, if there is no such response. Of this tenant, where one is named.
    pub async fn find(&self, id: String, tenant: Option<&str>) -> Result<Option<StoredTrace>, Error> {
        let find = self.walk(Walk::NewestFirst { before: TraceNumber::MAX }, Find::new(id, tenant)).await?;
        match find.found() {
            Some(number) => self.get(number).await,
            None => Ok(None),
        }
    }

    /// All turns of the tree of this response, as far as they are here, oldest first, and at most so many: what it
    /// continues, whatever continues that, and so on. Whatever else was done with these responses is among them.
    pub async fn chain(
        &self,
        tenant: String,
        response_id: String,
        limit: u32,
    ) -> Result<Vec<(TraceNumber, TraceRow<'static>)>, Error> {
        let up = Up::new(&tenant, &response_id);
        let up = self.walk(Walk::NewestFirst { before: TraceNumber::MAX }, up).await?;
        let from = Walk::OldestFirst { from: up.oldest };
        let down = self.walk(from, Down::new(up, limit)).await?;
        Ok(down.found.into_iter().collect())
    }

    /// Sums in steps of that many microseconds, from `filter.since` to `filter.until`, at most the last 500 of them. Steps
    /// begin at multiples of that time, and also those without any request are there.
    pub async fn series(&self, filter: TraceFilter, step_micros: i64) -> Result<Vec<TracePoint>, Error> {
        let newest = match (&filter.until, &self.place) {
            (Some(_), _) => None,
            (None, Place::Sqlite(file)) => file.newest().await?,
            (None, Place::Postgres(database)) => database.newest_trace().await?,
            (None, Place::Memory(memory)) => memory.newest(),
        };
        let now = self.clock.now().saturating_mul(1_000);
        let series = Series::new(filter, step_micros, newest.unwrap_or(now));
        Ok(self.walk(Walk::OldestFirst { from: 0 }, series).await?.finish())
    }

    /// Drops what is too old or too much, a little at a time; true: there is more. What was written last is never too much.
    pub async fn prune(&self, retention: TraceRetention) -> Result<bool, Error> {
        let before = self.clock.now().saturating_mul(1_000).saturating_sub(retention.age_micros);
        match &self.place {
            Place::Sqlite(file) => file.prune(retention.bytes, before).await,
            Place::Postgres(database) => database.prune_traces(retention.bytes, before).await,
            Place::Memory(memory) => {
                memory.prune(retention.bytes, before);
                Ok(false)
            }
        }
    }

    /// Leaves nothing of a tenant, and says how many traces these were. SQLite writes its file anew for this: no byte of
    /// them is in it afterwards.
    pub async fn erase(&self, tenant: Tenant) -> Result<u64, Error> {
        match &self.place {
            Place::Sqlite(file) => file.erase(&tenant, &self.encryption).await,
            Place::Postgres(database) => Box::pin(database.erase_traces(&tenant, &self.encryption)).await,
            Place::Memory(memory) => memory.erase(tenant.name()),
        }
    }

    /// After the keys have changed: what older keys have sealed, or what is in clear, is sealed with the one that there is
    /// now, or all is written in clear. What no key opens is dropped: traces are not worth keeping an old key for.
    pub async fn rekey(
        &self,
        how: Rewriting,
        told: &mut (dyn FnMut(&TraceRekeyed) + Send),
    ) -> Result<TraceRekeyed, Error> {
        let encryption = match (how, &self.encryption.key) {
            (Rewriting::Seal, None) => return Err(Error::unavailable("there is no key to encrypt with")),
            (Rewriting::Seal, Some(_)) => self.encryption.clone(),
            (Rewriting::Clear, _) => self.encryption.opening(),
        };
        match &self.place {
            Place::Sqlite(file) => file.rekey(&encryption, told).await,
            Place::Postgres(database) => Box::pin(database.rekey_traces(&encryption, told)).await,
            Place::Memory(_) => Ok(TraceRekeyed::default()),
        }
    }
}
