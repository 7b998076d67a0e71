//! The threads, and the group commit: while one transaction goes to the disk the next jobs gather, and then share a
//! transaction of their own. No timer: a lone job never waits for company.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rusqlite::Connection;
use tokio::sync::{Notify, mpsc, oneshot};

use super::open::DbPath;
use super::{QUEUE, failure};
use crate::{Counters, Error, OpenError};

/// Jobs of one transaction; more would only make the first ones wait.
const GROUP: usize = 256;

const STILL_READ: &str = "what was erased is still in the log, which somebody reads";

/// None ends the thread once its queue is empty.
pub(super) type ReadJob = Option<Box<dyn FnOnce(Result<&Connection, Error>) + Send>>;
/// None ends the thread once its queue is empty.
pub(super) type WriteJob = Option<Box<dyn Job>>;

/// Work for the writer.
pub(super) trait Job: Send {
    /// Does it, in a transaction that is not committed yet; and again, if that was taken back.
    fn run(&mut self, connection: &Connection) -> Ran;
    /// Answers who waits for it.
    fn tell(self: Box<Self>, committed: Result<(), Error>);
}

/// What came of a job.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ran {
    pub(super) keep: bool,
    /// Whether it found the disk full.
    pub(super) full: bool,
    pub(super) after: After,
}

/// What must be done after a job is committed and before anybody is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    Nothing,
    /// Content was taken away, whose bytes must leave the disk.
    Forget,
    /// As [`Self::Forget`], and also what earlier jobs took away must leave no trace.
    Scrub,
}

/// What the threads have done, for metrics and tests, and how many of them there are.
#[derive(Debug, Default)]
pub(super) struct Counts {
    writes: AtomicU64,
    commits: AtomicU64,
    threads: AtomicUsize,
    ended: Notify,
    /// Who reads the whole file at the moment.
    long_reads: AtomicUsize,
    copying: AtomicBool,
}

impl Counts {
    pub(super) fn read(&self) -> Counters {
        Counters { writes: self.writes.load(Ordering::Relaxed), commits: self.commits.load(Ordering::Relaxed) }
    }

    /// Whether somebody reads all of the file.
    fn is_read_whole(&self) -> bool {
        self.long_reads.load(Ordering::Acquire) > 0
    }

    /// When the last thread is gone, and the lock with it.
    pub(super) async fn ended(&self) {
        let ended = self.ended.notified();
        if self.threads.load(Ordering::Acquire) > 0 {
            ended.await;
        }
    }
}

/// Somebody reads the whole file, which takes a while; until this is dropped the log cannot be cut.
#[derive(Debug)]
pub(super) struct LongRead {
    counts: Arc<Counts>,
    alone: bool,
}

impl LongRead {
    pub(super) fn begin(counts: &Arc<Counts>) -> Self {
        Self::new(counts, false)
    }

    /// None: somebody else does already.
    pub(super) fn begin_alone(counts: &Arc<Counts>) -> Option<Self> {
        if counts.copying.swap(true, Ordering::AcqRel) {
            return None;
        }
        Some(Self::new(counts, true))
    }

    fn new(counts: &Arc<Counts>, alone: bool) -> Self {
        counts.long_reads.fetch_add(1, Ordering::AcqRel);
        Self { counts: Arc::clone(counts), alone }
    }
}

impl Drop for LongRead {
    fn drop(&mut self) {
        self.counts.long_reads.fetch_sub(1, Ordering::AcqRel);
        if self.alone {
            self.counts.copying.store(false, Ordering::Release);
        }
    }
}

/// Runs on a thread of its own, which nobody waits for.
pub(super) fn alone(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    let started = thread::Builder::new().name(name.to_owned()).spawn(run);
    started.map(drop).map_err(|error| Error::unavailable(error.to_string()))
}

/// Runs on a thread of its own, and gives what came of it.
pub(super) async fn aside<T: Send + 'static>(name: &str, run: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    let (done, is_done) = oneshot::channel();
    alone(name, move || {
        // Who asked may be gone.
        let _ = done.send(run());
    })?;
    is_done.await.map_err(|_| super::stopped())
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
            // Where cores are few, whoever would send the next job waits for this one. A lone job waits for nobody.
            thread::yield_now();
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
    let mut kept: Option<Connection> = None;
    while let Some(job) = next(queue) {
        let opened = path.present().and_then(|()| match kept.take() {
            Some(connection) => Ok(connection),
            None => path.reader().map_err(failure),
        });
        match opened {
            Ok(opened) => {
                let connection: &Connection = kept.insert(opened);
                // One view for all statements of a job: a sweep in between would look like a hole.
                match connection.unchecked_transaction() {
                    Ok(_view) => job(Ok(connection)),
                    Err(error) => job(Err(failure(error))),
                }
            }
            // The next one tries again.
            Err(error) => job(Err(error)),
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
    /// The one that there is, or a new one.
    fn connection(&mut self) -> Result<&Connection, Error> {
        self.path.present()?;
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.path.writer().map_err(failure)?,
        };
        Ok(&*self.connection.insert(connection))
    }

    fn group(&mut self, first: WriteJob, queue: &mut mpsc::Receiver<WriteJob>) {
        let is_file = self.path.is_file();
        let connection = match self.connection() {
            Ok(connection) => connection,
            Err(error) => return refuse(&error, first, queue),
        };
        let mut group = Group::default();
        let mut committed = group.commit(connection, Some(first), queue, is_file);
        if matches!(committed, Err(Stopped::Halfway)) {
            committed = group.commit(connection, None, queue, false);
        }
        let committed = committed.map_err(Error::from);
        if committed.is_ok() {
            self.counts.commits.fetch_add(1, Ordering::Relaxed);
            self.counts.writes.fetch_add(u64::try_from(group.jobs.len()).unwrap_or(0), Ordering::Relaxed);
        } else {
            self.connection = None;
        }
        let scrubbed = match (&committed, &self.connection) {
            (Ok(()), Some(connection)) => {
                let scrubbed = if group.wants(After::Scrub) { DbPath::scrub(connection) } else { Ok(()) };
                let forget = group.wants(After::Forget) || group.wants(After::Scrub);
                self.forget |= forget || group.ran.iter().any(|ran| ran.full);
                // Whoever reads the whole file would be waited for each time; when it has done so, it sees to this.
                self.forget = self.forget && (self.counts.is_read_whole() || !DbPath::forget(connection));
                if self.forget { scrubbed.and(Err(Error::unavailable(STILL_READ))) } else { scrubbed }
            }
            _ => Ok(()),
        };
        // Those that were not run any more are told, too.
        let mut ran = group.ran.into_iter();
        for job in group.jobs {
            let scrub = ran.next().is_some_and(|ran| ran.after == After::Scrub);
            let done = if scrub { committed.as_ref().and(scrubbed.as_ref()) } else { committed.as_ref() };
            job.tell(done.copied().map_err(again));
        }
    }
}

/// Tells this one and those that wait why there is no connection; the next ones try again.
fn refuse(error: &Error, first: WriteJob, queue: &mut mpsc::Receiver<WriteJob>) {
    // All of them are here before the first is told: whoever comes after that may find a connection.
    let mut waiting = vec![first];
    while let Some(next) = (waiting.len() < GROUP).then(|| queue.try_recv().ok()).flatten() {
        waiting.push(next);
    }
    for job in waiting {
        match job {
            Some(job) => job.tell(Err(again(error))),
            None => queue.close(),
        }
    }
}

/// The jobs of one transaction, and what came of each.
#[derive(Default)]
struct Group {
    jobs: Vec<Box<dyn Job>>,
    ran: Vec<Ran>,
}

/// Why a transaction was not committed.
enum Stopped {
    Failed(Error),
    /// A job failed after it had changed something, and nothing can take back only that.
    Halfway,
}

impl From<Stopped> for Error {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Failed(error) => error,
            Stopped::Halfway => Self::unavailable("the database took a transaction back"),
        }
    }
}

impl Group {
    /// Whether a job of it that is kept needs this.
    fn wants(&self, after: After) -> bool {
        self.ran.iter().any(|ran| ran.keep && ran.after == after)
    }

    /// Runs the jobs that were run before, or this one and those that wait, and commits.
    ///
    /// A savepoint before each job takes back what it did if it fails, and costs a copy of every page that it changes. A job
    /// looks before it changes anything, so nearly always there is nothing to take back: in good faith all goes without
    /// savepoints, and where that was wrong the whole group is run again with them.
    fn commit(
        &mut self,
        connection: &Connection,
        first: Option<WriteJob>,
        queue: &mut mpsc::Receiver<WriteJob>,
        in_good_faith: bool,
    ) -> Result<(), Stopped> {
        self.ran.clear();
        if let Err(stopped) = execute(connection, "BEGIN IMMEDIATE") {
            // Also whose job was not run is told why.
            match first {
                Some(Some(job)) => self.jobs.push(job),
                Some(None) => queue.close(),
                None => {}
            }
            return Err(stopped);
        }
        for index in 0..self.jobs.len() {
            self.run(connection, index, in_good_faith)?;
        }
        let mut next = first;
        while let Some(job) = next {
            let Some(job) = job else {
                queue.close();
                next = queue.try_recv().ok();
                continue;
            };
            self.jobs.push(job);
            self.run(connection, self.jobs.len() - 1, in_good_faith)?;
            next = if self.jobs.len() < GROUP { queue.try_recv().ok() } else { None };
        }
        execute(connection, "COMMIT")
    }

    fn run(&mut self, connection: &Connection, index: usize, in_good_faith: bool) -> Result<(), Stopped> {
        let Some(job) = self.jobs.get_mut(index) else { return Ok(()) };
        if !in_good_faith {
            execute(connection, "SAVEPOINT job")?;
        }
        let before = connection.total_changes();
        let ran = job.run(connection);
        self.ran.push(ran);
        // A full disk or a failed write can take the whole transaction back, and the others' work with it.
        if connection.is_autocommit() {
            let error = if ran.full { Error::Full } else { Stopped::Halfway.into() };
            return Err(Stopped::Failed(error));
        }
        if in_good_faith && !ran.keep && connection.total_changes() != before {
            execute(connection, "ROLLBACK")?;
            return Err(Stopped::Halfway);
        }
        if !in_good_faith && !ran.keep {
            execute(connection, "ROLLBACK TO job")?;
        }
        if in_good_faith { Ok(()) } else { execute(connection, "RELEASE job") }
    }
}

fn execute(connection: &Connection, sql: &str) -> Result<(), Stopped> {
    let mut statement = connection.prepare_cached(sql).map_err(|error| Stopped::Failed(failure(error)))?;
    statement.execute([]).map(drop).map_err(|error| Stopped::Failed(failure(error)))
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
    use std::time::Duration;

    use rusqlite::Connection;

    use crate::sqlite::{Database, failure};
    use crate::{Encryption, Error, SqliteOptions};

    #[tokio::test]
    async fn a_deletion_that_finds_no_room_is_tried_again_with_the_room_of_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let (database, _) =
            Database::file(&folder.path().join("s.db"), &SqliteOptions::default(), &Encryption::default()).unwrap();
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

    /// In the words of SQLite: a lock, or a file that cannot be opened. Then it goes on.
    #[tokio::test]
    async fn who_waits_is_told_why_there_is_no_connection() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let (database, _) = Database::file(&path, &SqliteOptions::default(), &Encryption::default()).unwrap();
        let reason = |done: Result<(), Error>| match done {
            Err(Error::Unavailable(unavailable)) => unavailable.reason().to_owned(),
            other => panic!("{other:?}"),
        };
        database.write(|connection| connection.busy_timeout(Duration::ZERO).map_err(failure)).await.unwrap();
        let other = Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let locked = reason(database.write(|_: &Connection| Ok(())).await);
        assert!(locked.contains("locked"), "{locked}");
        drop(other);
        // The last connection took its log along; in its place is what is no file.
        let log = folder.path().join("s.db-wal");
        std::fs::create_dir(&log).unwrap();
        for _ in 0..2 {
            let (one, two, read) = tokio::join!(
                database.write(|_: &Connection| Ok(())),
                database.write(|_: &Connection| Ok(())),
                database.read(|_: &Connection| Ok(())),
            );
            for refused in [one, two, read].map(reason) {
                assert!(refused.contains("unable to open"), "{refused}");
            }
        }
        std::fs::remove_dir(&log).unwrap();
        database.write(|_: &Connection| Ok(())).await.unwrap();
        database.read(|_: &Connection| Ok(())).await.unwrap();
    }
}
