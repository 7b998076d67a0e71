//! The threads, and the group commit: while one transaction goes to the disk the next jobs gather, and then share a
//! transaction of their own. No timer: a lone job never waits for company.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rusqlite::Connection;
use tokio::sync::{Notify, mpsc};

use super::open::DbPath;
use super::{QUEUE, failure};
use crate::{Counters, Error, OpenError};

/// Jobs of one transaction; more would only make the first ones wait.
const GROUP: usize = 256;

type Tell = Box<dyn FnOnce(Result<(), Error>) + Send>;

/// None ends the thread once its queue is empty.
pub(super) type ReadJob = Option<Box<dyn FnOnce(&Connection) + Send>>;
/// None ends the thread once its queue is empty.
pub(super) type WriteJob = Option<Box<dyn FnOnce(&Connection) -> Done + Send>>;

/// A job that ran in a transaction which is not committed yet.
pub(super) struct Done {
    pub(super) keep: bool,
    /// Whether it found the disk full.
    pub(super) full: bool,
    /// Whether content was taken away, whose bytes must leave the disk before anybody is told.
    pub(super) erased: bool,
    pub(super) tell: Tell,
}

/// What the threads have done, for metrics and tests, and how many of them there are.
#[derive(Debug, Default)]
pub(super) struct Counts {
    writes: AtomicU64,
    commits: AtomicU64,
    threads: AtomicUsize,
    ended: Notify,
}

impl Counts {
    pub(super) fn read(&self) -> Counters {
        Counters { writes: self.writes.load(Ordering::Relaxed), commits: self.commits.load(Ordering::Relaxed) }
    }

    /// When the last thread is gone, and the lock with it.
    pub(super) async fn ended(&self) {
        let ended = self.ended.notified();
        if self.threads.load(Ordering::Acquire) > 0 {
            ended.await;
        }
    }
}

/// Starts a thread that is counted until it has dropped everything it held.
fn start(name: &str, counts: &Arc<Counts>, run: impl FnOnce() + Send + 'static) -> Result<(), OpenError> {
    let counts = Arc::clone(counts);
    counts.threads.fetch_add(1, Ordering::AcqRel);
    let counted = move || {
        run();
        if counts.threads.fetch_sub(1, Ordering::AcqRel) == 1 {
            counts.ended.notify_waiters();
        }
    };
    thread::Builder::new().name(name.to_owned()).spawn(counted).map(drop).map_err(OpenError::Thread)
}

pub(super) fn writer(
    connection: Connection,
    path: DbPath,
    counts: &Arc<Counts>,
) -> Result<mpsc::Sender<WriteJob>, OpenError> {
    let (work, mut queue) = mpsc::channel(QUEUE);
    let mut writer = Writer { connection: Some(connection), path, counts: Arc::clone(counts), forget: false };
    let run = move || {
        while let Some(first) = queue.blocking_recv() {
            writer.group(first, &mut queue);
        }
        // Readers' connections may not do it, should one of them be the last to close.
        writer.connection.as_ref().map(DbPath::forget);
    };
    start("store-writer", counts, run)?;
    Ok(work)
}

pub(super) fn readers(path: &DbPath, count: usize, counts: &Arc<Counts>) -> Result<mpsc::Sender<ReadJob>, OpenError> {
    let (work, queue) = mpsc::channel::<ReadJob>(QUEUE);
    let queue = Arc::new(Mutex::new(queue));
    for _ in 0..count {
        let (queue, path) = (Arc::clone(&queue), path.clone());
        start("store-reader", counts, move || read(&queue, &path))?;
    }
    Ok(work)
}

fn read(queue: &Mutex<mpsc::Receiver<ReadJob>>, path: &DbPath) {
    let mut connection = None;
    while let Some(job) = next(queue) {
        if connection.is_none() {
            connection = path.reader().ok();
        }
        // Without a connection the job is dropped, which its caller learns; the next one tries again.
        // One view for all statements of a job: a sweep in between would look like a hole.
        if let Some(connection) = &connection
            && let Ok(_view) = connection.unchecked_transaction()
        {
            job(connection);
        }
    }
}

/// The next job of a queue that several threads share. The guard ends here, so the others take the next one while
/// this one runs; closing needs it, since who waits for a job holds it.
fn next(queue: &Mutex<mpsc::Receiver<ReadJob>>) -> ReadJob {
    let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        match queue.blocking_recv() {
            Some(Some(job)) => return Some(job),
            Some(None) => queue.close(),
            None => return None,
        }
    }
}

struct Writer {
    /// None after a failed commit: what such a connection believes is not to be relied on. Before the path, so that
    /// it is closed while the lock is still held.
    connection: Option<Connection>,
    path: DbPath,
    counts: Arc<Counts>,
    /// Something was erased, and its bytes are still in the log; or the disk is full, and the log's room is wanted.
    forget: bool,
}

impl Writer {
    fn group(&mut self, first: WriteJob, queue: &mut mpsc::Receiver<WriteJob>) {
        if self.connection.is_none() {
            self.connection = self.path.writer().ok();
        }
        let Some(connection) = &self.connection else {
            // The job is dropped, which its caller learns.
            if first.is_none() {
                queue.close();
            }
            return;
        };
        let mut done = Vec::new();
        let committed = transaction(connection, first, queue, &mut done);
        if committed.is_ok() {
            self.counts.commits.fetch_add(1, Ordering::Relaxed);
            self.counts.writes.fetch_add(u64::try_from(done.len()).unwrap_or(0), Ordering::Relaxed);
            self.forget |= done.iter().any(|done| done.full || done.erased && done.keep);
            self.forget = self.forget && !DbPath::forget(connection);
        } else {
            self.connection = None;
        }
        for done in done {
            (done.tell)(committed.as_ref().copied().map_err(again));
        }
    }
}

fn transaction(
    connection: &Connection,
    first: WriteJob,
    queue: &mut mpsc::Receiver<WriteJob>,
    done: &mut Vec<Done>,
) -> Result<(), Error> {
    let statement = |sql| connection.prepare_cached(sql).and_then(|mut sql| sql.execute([])).map_err(failure);
    statement("BEGIN IMMEDIATE")?;
    let mut next = Some(first);
    while let Some(job) = next {
        let Some(job) = job else {
            queue.close();
            next = queue.try_recv().ok();
            continue;
        };
        statement("SAVEPOINT job")?;
        let ran = job(connection);
        let (keep, full) = (ran.keep, ran.full);
        done.push(ran);
        // A full disk or a failed write can take the whole transaction back, and the others' work with it.
        if connection.is_autocommit() {
            return Err(if full { Error::Full } else { Error::unavailable("the database took a transaction back") });
        }
        if !keep {
            statement("ROLLBACK TO job")?;
        }
        statement("RELEASE job")?;
        next = if done.len() < GROUP { queue.try_recv().ok() } else { None };
    }
    statement("COMMIT").map(drop)
}

/// One failed commit is everybody's failure.
fn again(error: &Error) -> Error {
    match error {
        Error::Full => Error::Full,
        Error::Corrupt(what) => Error::Corrupt(what.clone()),
        Error::Unavailable(unavailable) => Error::unavailable(unavailable.reason()),
        other => Error::unavailable(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use rusqlite::Connection;

    use crate::sqlite::{Database, failure};
    use crate::{Error, SqliteOptions};

    #[tokio::test]
    async fn a_deletion_that_finds_no_room_is_tried_again_with_the_room_of_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let (database, _) = Database::file(&folder.path().join("s.db"), &SqliteOptions::default()).unwrap();
        let log = folder.path().join("s.db-wal");
        for full in [1, 2] {
            let fill = "CREATE TABLE IF NOT EXISTS x (y); INSERT INTO x VALUES (randomblob(100000))";
            database.write(move |connection| connection.execute_batch(fill).map_err(failure)).await.unwrap();
            let tries = Arc::new(AtomicUsize::new(0));
            let (tried, log) = (Arc::clone(&tries), log.clone());
            let deleted = database.erase(move |_: &Connection| {
                let tries = tried.fetch_add(1, Ordering::Relaxed) + 1;
                let length = std::fs::metadata(&log).unwrap().len();
                assert_eq!(length == 0, tries == 2, "try {tries}: {length} bytes");
                if tries <= full { Err(Error::Full) } else { Ok(()) }
            });
            assert_eq!(deleted.await.is_ok(), full == 1);
            assert_eq!(tries.load(Ordering::Relaxed), 2);
        }
    }
}
