//! Opening: whose file it is, whether it is whole and of our version, and how its connections are set.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::backup::copy_of;
use super::encryption::secret;
use super::identity::Place;
use super::migrate::migrate;
use super::{failure, sql};
use crate::prefix::Secret;
use crate::{Encryption, Error, OpenError, SqliteOptions};

/// Before it, resetting the write-ahead log could lose a transaction in a rare race.
const OLDEST_SQLITE: i32 = 3_051_003;

/// How long a statement waits for somebody else's lock, such as a backup's.
pub(super) const BUSY: Duration = Duration::from_secs(5);

pub(super) struct Opened {
    pub(super) writer: Connection,
    pub(super) path: DbPath,
    pub(super) secret: Secret,
}

/// Where the database is. The lock on it lasts as long as any copy of this.
#[derive(Debug, Clone)]
pub(super) struct DbPath {
    path: Option<PathBuf>,
    /// Which file it must be, for sessions; whoever writes traces sees to that.
    place: Option<Place>,
    purpose: Purpose,
    /// Of pages, for each connection, in KiB.
    cache_kib: u32,
    _lock: Option<Arc<Lock>>,
}

/// The newest traces are written, and all others are read now and then.
const TRACES_CACHE_KIB: u32 = 4_000;

/// What a database is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Sessions,
    /// What is lost with the power is no harm.
    Traces,
}

pub(super) fn file(path: &Path, options: &SqliteOptions, encryption: &Encryption) -> Result<Opened, OpenError> {
    version()?;
    if let Some(folder) = path.parent() {
        create_folder(folder).map_err(|source| OpenError::Folder { path: folder.to_owned(), source })?;
    }
    let lock = Some(Arc::new(lock(path)?));
    let sqlite = |source| OpenError::Sqlite { path: path.to_owned(), source };
    // A copy that nobody finished. One that cannot be removed is in nobody's way either.
    let _ = std::fs::remove_file(copy_of(path));
    // Made before SQLite makes it, so that it is never readable by others; the log inherits its mode.
    private(path).map_err(|source| OpenError::LockFile { path: path.to_owned(), source })?;
    let (purpose, cache_kib) = (Purpose::Sessions, options.cache_kib);
    let mut database = DbPath { path: Some(path.to_owned()), place: None, purpose, cache_kib, _lock: lock };
    let mut writer = database.writer().map_err(sqlite)?;
    if options.integrity_check {
        let finding: String = writer.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(sqlite)?;
        if finding != "ok" {
            return Err(OpenError::Damaged { path: path.to_owned(), finding });
        }
    }
    migrate(&mut writer, &path.display().to_string()).map_err(|error| error.at(path))?;
    // What a process that is gone had holds nobody up: this file has one process at a time. The lease of a conversation
    // whose turn is a job belongs to that job.
    writer.execute(sql::LEASES_CLEAR, []).map_err(sqlite)?;
    for orphaned in [sql::JOBS_ORPHAN, sql::KEYS_ORPHAN] {
        writer.execute(orphaned, []).map_err(sqlite)?;
    }
    let secret = secret(&writer, &path.display().to_string(), encryption)?.map_err(sqlite)?;
    // Only now: a file below others, as in an image, becomes another one when it is written first.
    database.place = Some(Place::of(path));
    Ok(Opened { writer, path: database, secret })
}

pub(super) fn memory() -> Result<Opened, OpenError> {
    version()?;
    let cache_kib = SqliteOptions::default().cache_kib;
    let database = DbPath { path: None, place: None, purpose: Purpose::Sessions, cache_kib, _lock: None };
    let at = Path::new(":memory:");
    let sqlite = |source| OpenError::Sqlite { path: at.to_owned(), source };
    let mut writer = database.writer().map_err(sqlite)?;
    migrate(&mut writer, ":memory:").map_err(|error| error.at(at))?;
    writer.execute_batch(include_str!("sql/memory.sql")).map_err(sqlite)?;
    let secret = secret(&writer, ":memory:", &Encryption::default())?.map_err(sqlite)?;
    Ok(Opened { writer, path: database, secret })
}

impl DbPath {
    /// Takes a file of traces for this process.
    pub(super) fn traces(path: &Path) -> Result<Self, OpenError> {
        version()?;
        if let Some(folder) = path.parent() {
            create_folder(folder).map_err(|source| OpenError::Folder { path: folder.to_owned(), source })?;
        }
        let lock = Some(Arc::new(lock(path)?));
        let (purpose, cache_kib) = (Purpose::Traces, TRACES_CACHE_KIB);
        Ok(Self { path: Some(path.to_owned()), place: None, purpose, cache_kib, _lock: lock })
    }

    /// Another process may take it from now on.
    pub(super) fn unlocked(self) -> Self {
        Self { _lock: None, ..self }
    }

    /// Sees to it that nobody else may read the file, before there is anything in it.
    pub(super) fn make_private(&self) -> std::io::Result<()> {
        self.path.as_deref().map_or(Ok(()), |path| private(path).map(drop))
    }

    /// WAL without a sync at each commit: a power cut loses the last moments, and nothing else. Pages are smaller than a
    /// store's, since the newest block is written often.
    fn trace_writer(connection: &Connection) -> rusqlite::Result<()> {
        connection.pragma_update(None, "page_size", 8_192)?;
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        write_ahead(connection)?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        // An erasure writes the file anew.
        connection.pragma_update(None, "secure_delete", "FAST")?;
        connection.pragma_update(None, "journal_size_limit", 16 << 20)
    }

    /// WAL with full sync: what is acknowledged survives a power cut. Only this connection writes, and so only it
    /// moves the log into the database.
    pub(super) fn writer(&self) -> rusqlite::Result<Connection> {
        let Some(path) = &self.path else {
            let connection = Connection::open_in_memory()?;
            statements(&connection)?;
            return Ok(connection);
        };
        let connection = Connection::open_with_flags(path, there())?;
        common(&connection, self.cache_kib)?;
        if self.purpose == Purpose::Traces {
            Self::trace_writer(&connection)?;
            return Ok(connection);
        }
        renew_log(&connection, path)?;
        // Items have a few kilobytes, and a smaller page is left half empty by them: measured, 1.3 instead of 1.8 bytes
        // on disk per byte stored, and twice as fast a read of long histories. Only a new file takes it.
        connection.pragma_update(None, "page_size", 16_384)?;
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        write_ahead(&connection)?;
        connection.pragma_update(None, "synchronous", synchronous("FULL"))?;
        connection.pragma_update(None, "secure_delete", "ON")?;
        // After a burst the log gives its room back.
        connection.pragma_update(None, "journal_size_limit", 64 << 20)?;
        // The log's name, too, must be there after a power cut. SQLite syncs the folder, but not whether that worked.
        connection.query_row(sql::SCHEMA, [], |_| Ok(()))?;
        sync_folder(path.parent().unwrap_or(path)).map_err(|error| of_the_disk(&error))?;
        Ok(connection)
    }

    pub(super) fn reader(&self) -> rusqlite::Result<Connection> {
        let path = self.path.as_deref().unwrap_or(Path::new(":memory:"));
        let connection = Connection::open_with_flags(path, there())?;
        common(&connection, self.cache_kib)?;
        connection.pragma_update(None, "query_only", "ON")?;
        Ok(connection)
    }

    /// Where it is, for whoever has no part in the lock.
    pub(super) fn place(&self) -> Option<Place> {
        self.place.clone()
    }

    /// Whether the file is still where it was. What is in memory is.
    pub(super) fn present(&self) -> Result<(), Error> {
        self.place.as_ref().map_or(Ok(()), |place| place.found().map(drop))
    }

    /// Whether there is a file at all.
    pub(super) fn is_file(&self) -> bool {
        self.path.is_some()
    }

    /// Writes the whole database anew, into the log. Its copy in between is a file without a name: in memory there may be no
    /// room for it.
    pub(super) fn scrub(connection: &Connection) -> Result<(), Error> {
        let scrubbed = connection.execute_batch("PRAGMA temp_store = FILE; VACUUM").map_err(failure);
        connection.pragma_update(None, "temp_store", "MEMORY").map_err(failure)?;
        scrubbed
    }

    /// After an erasure, also the log forgets: it is moved into the database and cut to nothing. False when a reader
    /// was in the way.
    pub(super) fn forget(connection: &Connection) -> bool {
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).is_ok_and(|busy: bool| !busy)
    }
}

/// Writes the log anew as it is, and syncs it.
///
/// After a sync that failed, in this process or an earlier one, the log may read as if it were whole while the disk has
/// only a part of it. A connection that goes by what it reads would write after the gap, or move half a transaction into
/// the database, and a power cut would lose what it then acknowledged.
fn renew_log(connection: &Connection, database: &Path) -> rusqlite::Result<()> {
    let mut log = database.as_os_str().to_owned();
    log.push("-wal");
    let log = PathBuf::from(log);
    // A new file must not be locked yet: it would take its page size from that.
    if !log.exists() {
        return Ok(());
    }
    // Should this fail, closing must not move the log either.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // Meanwhile nobody writes to the log, empties it or takes it away, such as the last reader when it closes.
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let renewed = rewrite(&log);
    connection.execute_batch("ROLLBACK")?;
    renewed.map_err(|error| of_the_disk(&error))?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map(drop)
}

fn rewrite(log: &Path) -> std::io::Result<()> {
    let log = match OpenOptions::new().read(true).write(true).open(log) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let (mut buffer, mut at) = (vec![0; 1 << 18], 0);
    loop {
        let read = read_at(&log, &mut buffer, at)?;
        if read == 0 {
            return Ok(());
        }
        write_at(&log, &buffer[..read], at)?;
        // Each time, so that a disk which still fails says so before much was written.
        log.sync_data()?;
        at += read as u64;
    }
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> std::io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, at)
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], at: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

#[cfg(not(unix))]
fn read_at(mut file: &File, buffer: &mut [u8], at: u64) -> std::io::Result<usize> {
    std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(at))?;
    std::io::Read::read(&mut file, buffer)
}

#[cfg(not(unix))]
fn write_at(mut file: &File, bytes: &[u8], at: u64) -> std::io::Result<()> {
    std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(at))?;
    std::io::Write::write_all(&mut file, bytes)
}

/// The mode's name comes before the commit that sets it, so only a statement that was run to its end has succeeded. The
/// mode that a failure leaves loses more with the power.
fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("PRAGMA journal_mode = WAL")?;
    let modes: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    if modes == ["wal"] { Ok(()) } else { Err(input_output("the write-ahead log cannot be set up")) }
}

fn input_output(what: &str) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR), Some(what.to_owned()))
}

/// What the system says of the disk.
fn of_the_disk(error: &std::io::Error) -> rusqlite::Error {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    if matches!(error.kind(), StorageFull | QuotaExceeded) {
        let full = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL);
        return rusqlite::Error::SqliteFailure(full, Some(error.to_string()));
    }
    input_output(&error.to_string())
}

/// How a file is opened that was made before: one that was taken away is never made again.
fn there() -> OpenFlags {
    OpenFlags::default().difference(OpenFlags::SQLITE_OPEN_CREATE)
}

/// What statements need of a connection: room for all of them, lists as parameters, and plans that do not depend on the
/// values of parameters. Otherwise some are planned anew for each value, which costs more than running them.
pub(super) fn statements(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(192);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    rusqlite::vtab::array::load_module(connection)
}

fn common(connection: &Connection, cache_kib: u32) -> rusqlite::Result<()> {
    statements(connection)?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "cache_size", -i64::from(cache_kib))?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "mmap_size", 0)
}

fn version() -> Result<(), OpenError> {
    let found = rusqlite::version_number();
    if found < OLDEST_SQLITE { Err(OpenError::OldSqlite { found, wanted: OLDEST_SQLITE }) } else { Ok(()) }
}

/// What says that a database is this process's. The system takes it back when the process ends, however it ends.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "they are held")] Vec<File>);

/// Lock files beside the database, since SQLite's own exclusive mode would also shut out our readers: one beside the file
/// itself, also if a link leads there, and one beside a link, which is where earlier versions have theirs.
pub(super) fn lock(path: &Path) -> Result<Lock, OpenError> {
    lock_names(path).into_iter().map(|name| take_lock(name, path)).collect::<Result<_, _>>().map(Lock)
}

fn lock_names(path: &Path) -> Vec<PathBuf> {
    let mut names = vec![file_of(path)];
    if path.is_symlink() {
        names.push(path.to_owned());
    }
    let beside = |name: PathBuf| {
        let mut name = name.into_os_string();
        name.push(".lock");
        PathBuf::from(name)
    };
    names.into_iter().map(beside).collect()
}

fn take_lock(name: PathBuf, path: &Path) -> Result<File, OpenError> {
    let file = private(&name).map_err(|source| OpenError::LockFile { path: name.clone(), source })?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked { path: path.to_owned() }),
        Err(TryLockError::Error(source)) => Err(OpenError::LockFile { path: name, source }),
    }
}

/// Whether a process has the database, for whoever only looks: no lock file is made.
pub(crate) fn look_at_lock(path: &Path) -> Result<(), OpenError> {
    for name in lock_names(path) {
        // Without a lock file nobody has it.
        let Ok(file) = File::open(&name) else { continue };
        // Shared, so that several may look at once.
        if matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
            return Err(OpenError::Locked { path: path.to_owned() });
        }
    }
    Ok(())
}

/// More links than the system follows are none.
const MOST_LINKS: usize = 40;

/// The file itself, there or not, by the one name that it has.
fn file_of(path: &Path) -> PathBuf {
    let mut file = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(to) = file.read_link() else { break };
        file = file.parent().unwrap_or(&file).join(to);
    }
    let folder = file.parent().and_then(|folder| here(folder).canonicalize().ok());
    match (folder, file.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => file,
    }
}

/// Conversations are nobody else's business: the folder and the files are the owner's alone.
///
/// Each new folder is synced into the one above it, or taken back: it must not be lost with the power, and a start that
/// finds it there takes that for granted.
pub(super) fn create_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let missing: Vec<&Path> = folder.ancestors().take_while(|path| !here(path).exists()).collect();
    for folder in missing.into_iter().rev() {
        match builder.create(folder) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
        if let Err(error) = sync_folder(folder.parent().unwrap_or(folder)) {
            let _ = std::fs::remove_dir(folder);
            return Err(error);
        }
    }
    Ok(())
}

/// Makes the names in a folder survive a power cut. One that may not be read cannot be synced, and some file systems
/// sync no folders: that is no reason not to start.
pub(super) fn sync_folder(folder: &Path) -> std::io::Result<()> {
    use std::io::ErrorKind::{InvalidInput, Unsupported};
    let Ok(folder) = File::open(here(folder)) else { return Ok(()) };
    match folder.sync_all() {
        Err(error) if matches!(error.kind(), InvalidInput | Unsupported) => Ok(()),
        synced => synced,
    }
}

/// The folder of a bare file name is this one.
fn here(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}

pub(super) fn private(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // For a file that was there before. A file system without permissions is no reason not to start.
        let _ = file.set_permissions(std::fs::Permissions::from_mode(0o600));
    }
    Ok(file)
}

/// The product has no other setting; a test shows what a weaker one would lose.
#[cfg(not(test))]
fn synchronous(full: &'static str) -> &'static str {
    full
}

#[cfg(test)]
use super::tests::synchronous;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_has_large_pages_and_keeps_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        for _ in 0..2 {
            let opened = file(&path, &SqliteOptions::default(), &Encryption::default()).unwrap();
            let size: u32 = opened.writer.pragma_query_value(None, "page_size", |row| row.get(0)).unwrap();
            assert_eq!(size, 16_384);
        }
    }
}
