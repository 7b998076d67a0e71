//! A copy of the database while it is used, and a database out of such a copy.
//!
//! The copy is what was committed at one moment: all that was acknowledged before it was asked for is in it, and nothing of
//! what is written meanwhile. Nothing that was erased is in it, since every page is written anew. It never holds up who
//! writes, and never lies beside the database for longer than it takes.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use tokio::sync::{mpsc, oneshot};

use super::open::{self, BUSY};
use super::threads::{self, LongRead};
use super::{Database, check, failure, sql};
use crate::backup::{Backup, RestoreError, Restored};
use crate::{Encryption, Error, OpenError, SqliteOptions};

/// Bytes that are read at once.
const CHUNK: usize = 256 << 10;
/// Chunks that wait for whoever takes them.
const WAITING: usize = 4;
/// Databases that are put aside beside each other.
const NAMES: u32 = 1000;

/// Where a copy is made before it is given out. One that a process left that is gone is in nobody's way.
pub(super) fn copy_of(database: &Path) -> PathBuf {
    beside(database, ".copying")
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

impl Database {
    /// A copy as of now, and with it these secrets, by name.
    pub(crate) async fn backup(&self, secrets: Vec<(String, Vec<u8>)>) -> Result<Backup, Error> {
        let Some(place) = &self.place else {
            return Err(Error::unavailable("what is in memory cannot be copied"));
        };
        let path = place.found()?.to_owned();
        let Some(reading) = LongRead::begin_alone(&self.counts) else {
            return Err(Error::unavailable("another backup is being made"));
        };
        let (made, is_made) = oneshot::channel();
        let (chunks, taken) = mpsc::channel(WAITING);
        let copy = move || {
            let copied = copy(&path, &secrets);
            drop(reading);
            let (file, told) = match copied {
                Ok((file, bytes)) => (Some(file), Ok(bytes)),
                Err(error) => (None, Err(error)),
            };
            // Who asked may be gone.
            if made.send(told).is_ok()
                && let Some(file) = file
            {
                give(file, &chunks);
            }
        };
        threads::alone("store-backup", copy)?;
        let bytes = is_made.await.map_err(|_| super::stopped())??;
        // What was erased meanwhile has waited in the log.
        self.erase(|_: &Connection| Ok(())).await?;
        Ok(Backup::new(bytes, taken))
    }
}

/// The copy, open and without a name, and its length.
fn copy(path: &Path, secrets: &[(String, Vec<u8>)]) -> Result<(File, u64), Error> {
    let to = copy_of(path);
    let io = |error: std::io::Error| Error::unavailable(error.to_string());
    remove(&to).map_err(io)?;
    // Made before SQLite makes it, so that nobody else can read it.
    open::private(&to).map_err(io)?;
    let copied = copy_to(path, &to, secrets).and_then(|()| {
        let file = File::open(&to).map_err(io)?;
        let bytes = file.metadata().map_err(io)?.len();
        Ok((file, bytes))
    });
    // What is open can still be read. Where that is not so, the next start removes it.
    let _ = remove(&to);
    copied
}

fn copy_to(path: &Path, to: &Path, secrets: &[(String, Vec<u8>)]) -> Result<(), Error> {
    let name = to.to_str().ok_or_else(|| Error::unavailable("the path of the database is not UTF-8"))?;
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failure)?;
    connection.busy_timeout(BUSY).map_err(failure)?;
    connection.pragma_update(None, "cache_size", -16_000).map_err(failure)?;
    connection.execute("VACUUM INTO ?1", [name]).map_err(failure)?;
    drop(connection);
    if secrets.is_empty() {
        return Ok(());
    }
    let connection = Connection::open(to).map_err(failure)?;
    for (name, value) in secrets {
        connection.execute(sql::SECRET_ADD, rusqlite::params![name, value]).map_err(failure)?;
    }
    connection.close().map_err(|(_, error)| failure(error))
}

fn give(mut file: File, chunks: &mpsc::Sender<std::io::Result<Bytes>>) {
    loop {
        let mut chunk = vec![0; CHUNK];
        let read = match file.read(&mut chunk) {
            Ok(0) => return,
            Ok(length) => {
                chunk.truncate(length);
                Ok(Bytes::from(chunk))
            }
            Err(error) => Err(error),
        };
        let failed = read.is_err();
        if chunks.blocking_send(read).is_err() || failed {
            return;
        }
    }
}

fn remove(path: &Path) -> std::io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Puts a copy into the place of a database that no process has open. What was there is kept under another name.
pub(crate) fn restore(
    from: &Path,
    to: &Path,
    encryption: &Encryption,
    replace: bool,
    (secret, present): (&str, Option<[u8; 32]>),
) -> Result<Restored, RestoreError> {
    let found = check::rows(from)?;
    if !found.is_empty() {
        return Err(RestoreError::Damaged(found));
    }
    if let Some(folder) = to.parent() {
        open::create_folder(folder).map_err(|source| OpenError::Folder { path: folder.to_owned(), source })?;
    }
    let lock = open::lock(to)?;
    if to.exists() && !replace {
        return Err(RestoreError::Exists(to.to_owned()));
    }
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| RestoreError::File { path, source }
    };
    let coming = beside(to, ".restoring");
    for ending in ["", "-wal", "-shm"] {
        remove(&beside(&coming, ending)).map_err(io(&coming))?;
    }
    // First whole in its place, then under its name.
    let mut file = open::private(&coming).map_err(io(&coming))?;
    let copied = File::open(from).and_then(|mut source| std::io::copy(&mut source, &mut file));
    copied.and_then(|_| file.sync_all()).map_err(io(&coming))?;
    drop(file);
    let kept = take_secret(&coming, secret, encryption);
    // As a start would: its keys fit, and its schema is brought up to date, before anything is replaced.
    let opened = kept.and_then(|kept| {
        let opened = open::file(&coming, &SqliteOptions::default(), encryption)?;
        // Only now: its tables are those of this version, and its keys are there.
        let found = check::bodies(&opened.writer, encryption);
        let found = found.map_err(|error| OpenError::Damaged { path: from.to_owned(), finding: error.to_string() })?;
        if !found.is_empty() {
            return Err(RestoreError::Damaged(found.lines()));
        }
        let closed = opened.writer.close().map_err(|(_, source)| OpenError::Sqlite { path: coming.clone(), source });
        Ok(closed.map(|()| kept)?)
    });
    let _ = remove(&beside(&coming, ".lock"));
    let kept = match opened {
        Ok(kept) => kept,
        Err(error) => {
            for ending in ["", "-wal", "-shm"] {
                let _ = remove(&beside(&coming, ending));
            }
            return Err(error);
        }
    };
    let aside = if to.exists() { Some(put_aside(to).map_err(io(to))?) } else { None };
    if let (Some(aside), Some(present)) = (&aside, present) {
        // One that is too damaged for it, or of another time, is as good as without.
        let _ = leave_secret(aside, secret, &present, encryption);
    }
    fs::rename(&coming, to).map_err(io(to))?;
    open::sync_folder(to.parent().unwrap_or(to)).map_err(io(to))?;
    drop(lock);
    Ok(Restored { aside, secret: kept })
}

/// A secret that came with the copy, which no database keeps.
fn take_secret(path: &Path, name: &str, encryption: &Encryption) -> Result<Option<[u8; 32]>, RestoreError> {
    let sqlite = |source| OpenError::Sqlite { path: path.to_owned(), source };
    let connection = Connection::open(path).map_err(sqlite)?;
    let mut secret = None;
    for wrapped in [false, true] {
        let name = if wrapped { format!("{name}.wrapped") } else { name.to_owned() };
        let select = connection.query_row(sql::SECRET_NAMED, [&name], |row| row.get::<_, Vec<u8>>(0));
        let Some(value) = select.optional().map_err(sqlite)? else { continue };
        let shown = path.display().to_string();
        let opened = if wrapped { encryption.unwrap_named(&shown, &value)? } else { value.try_into().ok() };
        secret = Some(opened.ok_or(OpenError::DamagedKey { name: shown })?);
        connection.execute(sql::SECRET_REMOVE, [&name]).map_err(sqlite)?;
    }
    Ok(secret)
}

/// Leaves a secret in a database that was put aside, as in a backup.
fn leave_secret(path: &Path, name: &str, secret: &[u8; 32], encryption: &Encryption) -> Result<(), Error> {
    let (name, value) = match &encryption.key {
        Some(key) => (format!("{name}.wrapped"), key.wrap_named(secret)?),
        None => (name.to_owned(), secret.to_vec()),
    };
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failure)?;
    connection.execute(sql::SECRET_ADD, (&name, &value)).map(drop).map_err(failure)?;
    connection.close().map_err(|(_, error)| failure(error))
}

/// Gives a database another name, its log first: without it, it is as it was some moments ago; a log without its
/// database would be nothing.
fn put_aside(path: &Path) -> std::io::Result<PathBuf> {
    let aside =
        (1..NAMES).map(|number| beside(path, &format!(".before-restore-{number}"))).find(|aside| !aside.exists());
    let aside = aside.ok_or_else(|| std::io::Error::other("too many databases were put aside here"))?;
    // A log that can be moved into its database is; one that cannot stays beside it.
    if let Ok(connection) = Connection::open(path) {
        open::DbPath::forget(&connection);
    }
    for ending in ["-wal", "-shm", ""] {
        let named = |path: &Path| beside(path, ending);
        match fs::rename(named(path), named(&aside)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !ending.is_empty() => {}
            moved => moved?,
        }
    }
    Ok(aside)
}
