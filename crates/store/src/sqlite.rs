//! SQLite: one thread that writes, a few that read. No database call ever runs on a runtime thread.
//!
//! The memory backend is the same database without a file, on one thread, with limits: one set of rules for both.

mod access;
mod backup;
mod check;
mod conversations;
mod delete;
mod encryption;
mod events;
mod evict;
mod holdings;
mod identity;
mod jobs;
mod keys;
mod migrate;
mod notices;
mod open;
#[cfg(test)]
mod plans;
mod put;
mod read;
mod sql;
mod threads;
pub(crate) mod traces;
mod turns;
mod usage;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use rusqlite::{Connection, ErrorCode};
use tokio::sync::{mpsc, oneshot};

use crate::prefix::Secret;
use crate::{Counters, Encryption, Error, MemoryLimits, OpenError, SqliteOptions, Unavailable};
use identity::Place;
use threads::{After, Counts, Job, Ran, ReadJob, WriteJob};

pub(crate) use access::*;
pub(crate) use backup::restore;
pub(crate) use check::file as check_file;
pub(crate) use conversations::*;
pub(crate) use delete::{delete_response, sweep};
pub(crate) use encryption::{
    add_data_key, data_keys, forget_data_keys, forget_keys_of, keep_secret, keys_problem, look, rewrite, rotate,
    sealed_only,
};
pub(crate) use events::{append_events, events_after, sweep_logs};
pub(crate) use holdings::{count_conversations, count_responses, held_conversations, held_responses, tenant_after};
pub(crate) use jobs::{ask_to_cancel, begin_job, claim, dispatch, heartbeat, jobs_queued, recover, store};
pub(crate) use keys::{claim_key, key_user, release_key, sweep_keys, use_key};
pub(crate) use migrate::problem as schema_problem;
pub(crate) use notices::{due_notices, notice_done, notice_retry};
pub(crate) use open::look_at_lock;
pub(crate) use read::*;
pub(crate) use turns::{advance, finish};
pub(crate) use usage::{add_usage, spent, usage};

/// Work that waits for a thread; more than that and callers wait.
const QUEUE: usize = 256;

/// A handle to the threads; dropping the last one ends them.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    writer: mpsc::Sender<WriteJob>,
    /// None in memory: there, the writer's connection is the database.
    readers: Option<mpsc::Sender<ReadJob>>,
    /// Where the file is; without the lock on it, which ends with the threads.
    place: Option<Arc<Place>>,
    limits: Option<MemoryLimits>,
    /// The memory's clock for what was used last.
    uses: Arc<AtomicI64>,
    counts: Arc<Counts>,
}

impl Database {
    pub(crate) fn file(
        path: &Path,
        options: &SqliteOptions,
        encryption: &Encryption,
    ) -> Result<(Self, Secret), OpenError> {
        let opened = open::file(path, options, encryption)?;
        let counts = Arc::new(Counts::default());
        let writer = threads::writer(opened.writer, opened.path.clone(), &counts)?;
        let readers = Some(threads::readers(&opened.path, options.readers.max(1), &counts)?);
        let uses = Arc::new(AtomicI64::new(0));
        let place = opened.path.place().map(Arc::new);
        Ok((Self { writer, readers, place, limits: None, uses, counts }, opened.secret))
    }

    /// Not a store: a file of traces, with threads like a store's.
    fn traces(path: &Path, damaged: traces::Damaged) -> Result<Self, OpenError> {
        let (writer, path) = traces::open(path, damaged)?;
        let counts = Arc::new(Counts::default());
        let writer = threads::writer(writer, path.clone(), &counts)?;
        let readers = Some(threads::readers(&path, traces::READERS, &counts)?);
        Ok(Self { writer, readers, place: None, limits: None, uses: Arc::default(), counts })
    }

    pub(crate) fn memory(limits: MemoryLimits) -> Result<(Self, Secret), OpenError> {
        let opened = open::memory()?;
        let counts = Arc::new(Counts::default());
        let writer = threads::writer(opened.writer, opened.path, &counts)?;
        let uses = Arc::new(AtomicI64::new(0));
        Ok((Self { writer, readers: None, place: None, limits: Some(limits), uses, counts }, opened.secret))
    }

    /// Runs in the writer's next transaction and is answered when that is on the disk. An error takes back what the
    /// job did, and nothing else; it may then be run again, if it had changed something.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        mut job: impl FnMut(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let limits = self.limits;
        let job = move |connection: &Connection| {
            let result = job(connection)?;
            limits.map_or(Ok(()), |limits| evict::enforce(connection, limits))?;
            Ok(result)
        };
        self.queue(false, job).await
    }

    /// As [`Self::write`], for what takes content away: it is answered when the bytes have left the disk.
    ///
    /// Also this needs room, if only in the log. When there was none, the log has been moved into the database and cut
    /// since, so it is tried once more: who deletes to make room must not be told that there is none.
    pub(crate) async fn erase<T: Send + 'static>(
        &self,
        job: impl Fn(&Connection) -> Result<T, Error> + Clone + Send + 'static,
    ) -> Result<T, Error> {
        match self.queue(true, job.clone()).await {
            Err(Error::Full) => self.queue(true, job).await,
            done => done,
        }
    }

    /// Answered when no byte of what was erased before is in the files. The file is written anew for that: a page that was
    /// parted keeps copies of what went to others, and erasing that there leaves them.
    pub(crate) async fn scrub(&self) -> Result<(), Error> {
        if self.readers.is_none() {
            return Ok(());
        }
        self.ask(After::Scrub, |_: &Connection| Ok(())).await
    }

    pub(crate) async fn read<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let Some(readers) = &self.readers else {
            // In memory no job is run again.
            let mut job = Some(job);
            let once = move |connection: &Connection| job.take().map_or_else(|| Err(stopped()), |job| job(connection));
            return self.queue(false, once).await;
        };
        let (answer, answered) = oneshot::channel();
        let job = move |connection: Result<&Connection, Error>| {
            // Nobody waits any more: nothing to tell.
            let _ = answer.send(connection.and_then(job));
        };
        readers.send(Some(Box::new(job))).await.map_err(|_| stopped())?;
        answered.await.map_err(|_| stopped())?
    }

    async fn queue<T: Send + 'static>(
        &self,
        erased: bool,
        job: impl FnMut(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.ask(if erased { After::Forget } else { After::Nothing }, job).await
    }

    async fn ask<T: Send + 'static>(
        &self,
        after: After,
        job: impl FnMut(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (answer, answered) = oneshot::channel();
        let job = Asked { job, after, result: Err(stopped()), answer };
        self.writer.send(Some(Box::new(job))).await.map_err(|_| stopped())?;
        answered.await.map_err(|_| stopped())?
    }

    /// When something in memory is used: a number that grows. A file keeps no such record.
    pub(crate) fn now_used(&self) -> Option<i64> {
        self.limits.map(|_| self.uses.fetch_add(1, Ordering::Relaxed) + 1)
    }

    pub(crate) async fn ping(&self) -> Result<(), Unavailable> {
        let reached = self.read(|connection| connection.query_row(sql::PING, [], |_| Ok(())).map_err(failure));
        reached.await.map_err(|error| match error {
            Error::Unavailable(unavailable) => unavailable,
            other => Unavailable::new(other.to_string()),
        })
    }

    /// Ends the threads once their queues are empty, and waits for that. Other handles find the store stopped.
    pub(crate) async fn close(self) {
        if let Some(readers) = &self.readers {
            // A thread that is gone already needs no telling.
            let _ = readers.send(None).await;
        }
        let _ = self.writer.send(None).await;
        self.counts.ended().await;
    }

    pub(crate) fn counters(&self) -> Counters {
        self.counts.read()
    }
}

/// A job that somebody waits for.
struct Asked<T, F> {
    job: F,
    after: After,
    result: Result<T, Error>,
    answer: oneshot::Sender<Result<T, Error>>,
}

impl<T: Send, F: FnMut(&Connection) -> Result<T, Error> + Send> Job for Asked<T, F> {
    fn run(&mut self, connection: &Connection) -> Ran {
        self.result = (self.job)(connection);
        let full = matches!(self.result, Err(Error::Full));
        Ran { keep: self.result.is_ok(), full, after: self.after }
    }

    fn tell(self: Box<Self>, committed: Result<(), Error>) {
        let Self { result, answer, .. } = *self;
        // Nobody waits any more: nothing to tell.
        let _ = answer.send(committed.and(result));
    }
}

fn stopped() -> Error {
    Error::unavailable("the database thread could not do it")
}

/// What SQLite's failures are to a caller.
#[expect(clippy::needless_pass_by_value, reason = "it is what map_err hands over")]
pub(crate) fn failure(error: rusqlite::Error) -> Error {
    // The file beside the database by which its connections share the log finds no room.
    if error.sqlite_extended_error_code() == Some(rusqlite::ffi::SQLITE_IOERR_SHMSIZE) {
        return Error::Full;
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Error::Full,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Error::corrupt(error.to_string()),
        _ => Error::unavailable(error.to_string()),
    }
}

#[cfg(test)]
mod tests;
