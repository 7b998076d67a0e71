//! Traces in a file of their own, with a thread that writes and others that read, like a store's. Everything is lost
//! without harm: a file that is damaged is moved aside for a new one, and one that somebody removed or emptied is begun anew.

mod migrate;
mod open;
#[cfg(test)]
mod plans;
mod prune;
mod rekey;
mod sql;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OptionalExtension, Row, params};
use tokio::sync::Semaphore;

use super::identity::Identity;
use super::{Database, failure, threads};
use crate::trace::{
    Block, Chunk, Header, PayloadRow, Stored, TraceBatch, TraceNumber, TraceRekeyed, Visit, Walk, prepare,
};
use crate::{Encryption, Error, OpenError, Tenant};

pub(crate) use open::Damaged;
pub(super) use open::open;

/// A chart does not hold a list up.
pub(super) const READERS: usize = 2;

/// Blocks that one write changes, at most: new traces have their turn in between.
const BATCH: usize = 16;

/// A log that is longer is cut after a sweep, also if that dropped nothing.
const LOG: u64 = 1 << 20;

/// What a database has at the least: its header.
const HEADER: u64 = 100;

const REMOVED: &str = "the trace file was removed, again and again";

#[derive(Debug, Clone)]
pub(crate) struct TraceFile {
    opened: Arc<Mutex<Opened>>,
    /// Whoever begins a new file has it.
    beginning: Arc<Semaphore>,
    path: Arc<Path>,
}

/// The file that is written, until somebody takes it away.
#[derive(Debug)]
struct Opened {
    database: Database,
    file: Identity,
    /// The number of the next trace. One that is begun anew goes on with it: whoever follows sees no number twice.
    next: TraceNumber,
}

impl Opened {
    fn open(path: &Path, damaged: Damaged) -> Result<Self, OpenError> {
        let database = Database::traces(path, damaged)?;
        Ok(Self { database, file: Identity::of(path), next: open::next(path) })
    }
}

/// What became of a file while it was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lost {
    /// Its name is gone, or another file's. Whoever writes into a file without a name writes for nobody.
    Removed,
    /// Somebody has emptied it. With what this process remembers of it that would become a damaged file.
    Emptied,
}

impl Lost {
    /// None: it is there.
    fn of(file: Identity, path: &Path) -> Option<Self> {
        if !file.is_at(path) {
            return Some(Self::Removed);
        }
        // Not by opening it: closing it again would take the locks away that SQLite has on it, for the whole process.
        let length = std::fs::metadata(path).map_or(HEADER, |file| file.len());
        (length < HEADER).then_some(Self::Emptied)
    }
}

impl TraceFile {
    pub(crate) fn open(path: &Path, damaged: Damaged) -> Result<Self, OpenError> {
        let opened = Arc::new(Mutex::new(Opened::open(path, damaged)?));
        Ok(Self { opened, beginning: Arc::new(Semaphore::new(1)), path: path.into() })
    }

    pub(crate) async fn close(self) {
        self.database().close().await;
    }

    fn opened(&self) -> MutexGuard<'_, Opened> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn database(&self) -> Database {
        self.opened().database.clone()
    }

    pub(crate) async fn add(&self, traces: Arc<TraceBatch>, encryption: Encryption, room: i64) -> Result<(), Error> {
        if self.try_add(&traces, &encryption, room).await? || self.try_add(&traces, &encryption, room).await? {
            return Ok(());
        }
        Err(Error::unavailable(REMOVED))
    }

    /// Whether they are written; else there is a new file now.
    async fn try_add(&self, traces: &Arc<TraceBatch>, encryption: &Encryption, room: i64) -> Result<bool, Error> {
        let (traces, encryption) = (Arc::clone(traces), encryption.clone());
        let (database, file) = {
            let opened = self.opened();
            (opened.database.clone(), opened.file)
        };
        let path = Arc::clone(&self.path);
        let written = database.write(move |connection| match Lost::of(file, &path) {
            Some(lost) => Ok(Err(lost)),
            None => add(connection, &traces, &encryption, room).map(Ok),
        });
        let lost = match written.await {
            Ok(Ok(next)) => {
                let mut opened = self.opened();
                opened.next = opened.next.max(next);
                return Ok(true);
            }
            Ok(Err(lost)) => lost,
            Err(error) => self.failed(file, error).await?,
        };
        self.begin_anew(file, lost).await?;
        Ok(false)
    }

    /// Why a write failed: if the file is lost, that is why. What has found damage once fails before it looks, so it is
    /// looked here, too.
    async fn failed(&self, file: Identity, error: Error) -> Result<Lost, Error> {
        // An earlier try to begin a new one failed, and has ended the threads.
        if file == Identity::GONE {
            return Ok(Lost::Removed);
        }
        let path = Arc::clone(&self.path);
        let looked = threads::aside("store-opener", move || {
            let lost = Lost::of(file, &path);
            if lost.is_none() && matches!(error, Error::Corrupt(_)) {
                open::suspect(&path);
            }
            lost.ok_or(error)
        });
        looked.await?
    }

    /// What was in the file is lost; there is a new one now.
    async fn begin_anew(&self, gone: Identity, lost: Lost) -> Result<(), Error> {
        let _beginning = self.beginning.acquire().await;
        let (database, next) = {
            let mut opened = self.opened();
            // Somebody else was faster.
            if opened.file != gone {
                return Ok(());
            }
            opened.file = Identity::GONE;
            (opened.database.clone(), opened.next)
        };
        let what = match lost {
            Lost::Removed => "removed",
            Lost::Emptied => "emptied",
        };
        tracing::warn!(path = %self.path.display(), "the trace file was {what}, and is begun anew");
        // Its lock may still be there, which ends with its threads.
        database.close().await;
        let path = Arc::clone(&self.path);
        let anew = threads::aside("store-opener", move || {
            open::make_room(&path, lost == Lost::Emptied)?;
            Opened::open(&path, Damaged::MovedAside)
        });
        let mut anew = anew.await?.map_err(|error| Error::unavailable(error.to_string()))?;
        anew.next = anew.next.max(next);
        let begun = anew
            .database
            .write(move |connection| cached(connection, sql::NEXT_SET)?.execute([next]).map(drop).map_err(failure));
        begun.await?;
        *self.opened() = anew;
        Ok(())
    }

    pub(crate) async fn walk<V: Visit>(&self, order: Walk, mut visitor: V) -> Result<V, Error> {
        let walked = move |connection: &Connection| {
            walk(connection, order, &mut visitor)?;
            Ok(visitor)
        };
        self.database().read(walked).await
    }

    pub(crate) async fn stored(&self, number: TraceNumber) -> Result<Option<Stored>, Error> {
        self.database().read(move |connection| stored(connection, number)).await
    }

    /// When the newest one began.
    pub(crate) async fn newest(&self) -> Result<Option<i64>, Error> {
        let newest = |connection: &Connection| connection.query_row(sql::NEWEST, [], |row| row.get(0)).map_err(failure);
        self.database().read(newest).await
    }

    pub(crate) async fn prune(&self, bytes: u64, before: i64) -> Result<bool, Error> {
        let (database, file) = {
            let opened = self.opened();
            (opened.database.clone(), opened.file)
        };
        let path = Arc::clone(&self.path);
        let swept = database.write(move |connection| match Lost::of(file, &path) {
            // Whatever is written into it now hides what became of it from whoever adds the next traces.
            Some(_) => Ok(None),
            None => prune::prune(connection, bytes, before).map(Some),
        });
        let Some(swept) = swept.await? else { return Ok(false) };
        let path = Arc::clone(&self.path);
        if !swept.more && (swept.changed || threads::aside("store-sweep", move || log_of(&path)).await? > LOG) {
            // The room of the log is given back, too.
            database.erase(|_: &Connection| Ok(())).await?;
        }
        Ok(swept.more)
    }

    pub(crate) async fn erase(&self, tenant: &Tenant, encryption: &Encryption) -> Result<u64, Error> {
        let (database, mut count) = (self.database(), 0);
        loop {
            let (mut from, mut found) = (Some(0), 0);
            while let Some(next) = from {
                let (tenant, encryption) = (tenant.clone(), encryption.clone());
                let work = move |connection: &Connection| prune::erase(connection, next, tenant.name(), &encryption);
                let (gone, after) = database.erase(work).await?;
                found += gone;
                from = after;
            }
            count += found;
            // Once more, for what came meanwhile.
            if found == 0 {
                break;
            }
        }
        database.scrub().await?;
        Ok(count)
    }

    pub(crate) async fn rekey(
        &self,
        encryption: &Encryption,
        told: &mut (dyn FnMut(&TraceRekeyed) + Send),
    ) -> Result<TraceRekeyed, Error> {
        let (database, mut done) = (self.database(), TraceRekeyed::default());
        for table in [rekey::Table::Documents, rekey::Table::Payloads] {
            let mut from = Some(i64::MIN);
            while let Some(after) = from {
                let encryption = encryption.clone();
                let step = database.write(move |connection| rekey::step(connection, table, after, &encryption));
                let step = step.await?;
                done.rewritten += step.rewritten;
                done.dropped += step.dropped;
                told(&done);
                from = step.next;
            }
        }
        if done != TraceRekeyed::default() {
            database.scrub().await?;
        }
        Ok(done)
    }
}

/// How long the log is.
fn log_of(path: &Path) -> u64 {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).map_or(0, |log| log.len())
}

/// The number of the next one is given back.
fn add(connection: &Connection, traces: &TraceBatch, encryption: &Encryption, room: i64) -> Result<TraceNumber, Error> {
    let newest = cached(connection, sql::SUMMARY_OF)?.query_row([i64::MAX], |row| Ok((header(row)?, row.get(8)?)));
    let newest = newest.optional().map_err(failure)?;
    let next: TraceNumber =
        cached(connection, sql::NEXT)?.query_row([], |row| row.get(0)).optional().map_err(failure)?.unwrap_or(1);
    let next = newest.as_ref().map_or(next, |(newest, _)| next.max(newest.last.saturating_add(1)));
    let newest = newest.map(|(header, ids)| block(connection, header, ids)).transpose()?;
    for change in prepare(newest, next, traces, encryption, room)? {
        put(connection, &change.block)?;
        for chunk in &change.chunks {
            let row = params![chunk.first, chunk.body];
            cached(connection, sql::DOCUMENTS_PUT)?.execute(row).map_err(failure)?;
        }
        for payload in &change.payloads {
            let row = params![payload.number, payload.name, payload.cut_from, payload.body];
            cached(connection, sql::PAYLOAD_PUT)?.execute(row).map_err(failure)?;
        }
    }
    Ok(next.saturating_add(TraceNumber::try_from(traces.len()).unwrap_or(TraceNumber::MAX)))
}

fn put(connection: &Connection, block: &Block) -> Result<(), Error> {
    let header = &block.header;
    let row = params![
        header.first,
        header.last,
        header.count,
        header.began_min,
        header.began_max,
        header.slowest,
        header.bytes,
        header.terms,
        block.ids,
    ];
    cached(connection, sql::BLOCK_PUT)?.execute(row).map_err(failure)?;
    let rows = params![header.first, block.names, block.rows];
    cached(connection, sql::ROWS_PUT)?.execute(rows).map(drop).map_err(failure)
}

fn cached<'c>(connection: &'c Connection, sql: &str) -> Result<rusqlite::CachedStatement<'c>, Error> {
    connection.prepare_cached(sql).map_err(failure)
}

fn header(row: &Row<'_>) -> rusqlite::Result<Header> {
    Ok(Header {
        first: row.get(0)?,
        last: row.get(1)?,
        count: row.get(2)?,
        began_min: row.get(3)?,
        began_max: row.get(4)?,
        slowest: row.get(5)?,
        bytes: row.get(6)?,
        terms: row.get(7)?,
    })
}

/// The block of a summary.
fn block(connection: &Connection, header: Header, ids: Vec<u8>) -> Result<Block, Error> {
    let rows = cached(connection, sql::ROWS)?.query_row([header.first], |row| Ok((row.get(0)?, row.get(1)?)));
    let (names, rows) = rows.optional().map_err(failure)?.ok_or_else(incomplete)?;
    Ok(Block { header, ids, names, rows })
}

fn incomplete() -> Error {
    Error::corrupt("a block of traces is not whole")
}

fn walk(connection: &Connection, order: Walk, visitor: &mut impl Visit) -> Result<(), Error> {
    let (mut blocks, from) = match order {
        Walk::NewestFirst { before } => (cached(connection, sql::NEWEST_FIRST)?, before),
        Walk::OldestFirst { from } => (cached(connection, sql::OLDEST_FIRST)?, from),
    };
    let mut blocks = blocks.query([from]).map_err(failure)?;
    while let Some(row) = blocks.next().map_err(failure)? {
        let header = header(row).map_err(failure)?;
        if !visitor.wants(&header) {
            continue;
        }
        if visitor.by_ids() {
            let ids = row.get_ref(8).and_then(|ids| Ok(ids.as_blob()?)).map_err(failure)?;
            if !visitor.wants_ids(ids) {
                continue;
            }
        }
        if visitor.see(&block(connection, header, Vec::new())?)? == ControlFlow::Break(()) {
            break;
        }
    }
    Ok(())
}

fn stored(connection: &Connection, number: TraceNumber) -> Result<Option<Stored>, Error> {
    let summary = cached(connection, sql::SUMMARY_OF)?.query_row([number], header).optional().map_err(failure)?;
    let Some(summary) = summary.filter(|summary| number <= summary.last) else { return Ok(None) };
    let block = block(connection, summary, Vec::new())?;
    let chunk = cached(connection, sql::DOCUMENTS_OF)?.query_row([number], chunk).optional().map_err(failure)?;
    let mut payloads = cached(connection, sql::PAYLOADS_OF)?;
    let payload =
        |row: &Row<'_>| Ok(PayloadRow { number, name: row.get(0)?, cut_from: row.get(1)?, body: row.get(2)? });
    let payloads = payloads.query_map([number], payload).and_then(Iterator::collect).map_err(failure)?;
    Ok(Some(Stored { block, chunk, payloads }))
}

fn chunk(row: &Row<'_>) -> rusqlite::Result<Chunk> {
    Ok(Chunk { first: row.get(0)?, body: row.get(1)? })
}
