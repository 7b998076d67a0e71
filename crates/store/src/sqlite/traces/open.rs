//! Opening a trace file: it is ours, or nobody's, or it is refused. One that is damaged makes room for a new one.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension};

use super::super::open::DbPath;
use super::{header, migrate, sql};
use crate::OpenError;
use crate::trace::TraceNumber;

/// With what every SQLite file begins.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Added to the name of a file that is damaged; to those after the first, with a number.
const ASIDE: &str = ".damaged";
/// So many such files are kept; then each takes the place of the last one.
const KEPT: usize = 5;
/// How often somebody who serves tries to take the file, and how long it waits in between.
const TRIES: u32 = 40;
const PAUSE: Duration = Duration::from_millis(50);
/// A file of this name says that writing found damage.
const SUSPECT: &str = ".suspect";

/// What becomes of a file that is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damaged {
    /// It makes room for a new one.
    MovedAside,
    /// It stays, for whoever only looks.
    Refused,
}

pub(in super::super) fn open(path: &Path, damaged: Damaged) -> Result<(Connection, DbPath), OpenError> {
    let unusable = |problem: String| OpenError::Traces { path: path.to_owned(), problem };
    let is_empty = || std::fs::metadata(path).is_ok_and(|file| file.len() == 0);
    if damaged == Damaged::Refused && is_empty() {
        return Err(unusable("it is empty; the next `godex serve` begins it anew".to_owned()));
    }
    let database = locked(path, damaged).map_err(|error| match error {
        OpenError::Locked { .. } => unusable("another process uses it; stop it, or set trace.path".to_owned()),
        other => other,
    })?;
    if !is_sqlite(path).map_err(|error| unusable(error.to_string()))? {
        return Err(unusable("it is no SQLite file; move it away, or set trace.path".to_owned()));
    }
    let suspect = named(path, SUSPECT);
    if damaged == Damaged::MovedAside && suspect.exists() {
        // What is not there any more needs no room.
        let moved = if path.exists() { move_aside(path, &"writing found damage") } else { Ok(()) };
        moved.and_then(|()| std::fs::remove_file(&suspect)).map_err(|error| unusable(error.to_string()))?;
    }
    let mut opened = looked_over(&database);
    if let Err(Problem::Sqlite(error)) = &opened
        && let Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) = error.sqlite_error_code()
    {
        if damaged == Damaged::Refused {
            return Err(unusable(format!("it is damaged ({error}); the next `godex serve` puts it aside")));
        }
        move_aside(path, error).map_err(|error| unusable(error.to_string()))?;
        opened = looked_over(&database);
    }
    let connection = opened.map_err(|problem| match problem {
        Problem::Sqlite(error) => unusable(error.to_string()),
        Problem::Io(error) => unusable(error.to_string()),
        Problem::Foreign(problem) => unusable(problem),
    })?;
    // Whoever only looks keeps nobody from serving meanwhile.
    Ok((connection, if damaged == Damaged::Refused { database.unlocked() } else { database }))
}

/// Takes the file. Whoever is about to look at it has it for a moment, and to serve without it would lose all traces until the
/// next start.
fn locked(path: &Path, damaged: Damaged) -> Result<DbPath, OpenError> {
    let tries = if damaged == Damaged::MovedAside { TRIES } else { 1 };
    for _ in 1..tries {
        match DbPath::traces(path) {
            Err(OpenError::Locked { .. }) => std::thread::sleep(PAUSE),
            done => return done,
        }
    }
    DbPath::traces(path)
}

enum Problem {
    Sqlite(rusqlite::Error),
    Io(std::io::Error),
    Foreign(String),
}

impl From<rusqlite::Error> for Problem {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// Brings the tables up to date, and reads all summaries: a start does not read the whole file.
fn looked_over(database: &DbPath) -> Result<Connection, Problem> {
    database.make_private().map_err(Problem::Io)?;
    let mut connection = database.writer()?;
    if let Some(problem) = migrate::migrate(&mut connection)? {
        return Err(Problem::Foreign(problem));
    }
    let mut all = connection.prepare(sql::OLDEST_FIRST)?;
    for summary in all.query_map([0], header)? {
        summary?;
    }
    drop(all);
    Ok(connection)
}

/// The number of the next trace of a file that is open; that of the first, where it cannot be told.
pub(super) fn next(path: &Path) -> TraceNumber {
    let read = || {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let newest = connection.query_row(sql::SUMMARY_OF, [TraceNumber::MAX], header);
        let after = newest.optional()?.map_or(1, |newest| newest.last.saturating_add(1));
        let next: Option<TraceNumber> = connection.query_row(sql::NEXT, [], |row| row.get(0)).optional()?;
        Ok::<_, rusqlite::Error>(next.map_or(after, |next| next.max(after)))
    };
    read().unwrap_or(1)
}

/// For a new file in the place of one that is lost. That writing found damage was said of the lost one; one that was
/// emptied is still there, perhaps with what was in its log.
pub(super) fn make_room(path: &Path, is_there: bool) -> Result<(), OpenError> {
    let unusable = |error: std::io::Error| OpenError::Traces { path: path.to_owned(), problem: error.to_string() };
    if is_there {
        move_aside(path, &"it was emptied while it was used").map_err(unusable)?;
    }
    match std::fs::remove_file(named(path, SUSPECT)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(unusable(error)),
        _ => Ok(()),
    }
}

/// Or none yet.
fn is_sqlite(path: &Path) -> std::io::Result<bool> {
    let mut start = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(MAGIC.len() as u64).read_to_end(&mut start)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    Ok(start.is_empty() || start == MAGIC)
}

/// Writing has found damage: the next start begins a new file.
pub(super) fn suspect(path: &Path) {
    // Whoever cannot do this may be lucky with the next start.
    let _ = File::create(named(path, SUSPECT));
}

fn named(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// With its log, so that somebody may look what can be saved.
fn move_aside(path: &Path, why: &dyn std::fmt::Display) -> std::io::Result<()> {
    let aside = free_name(path);
    for end in ["", "-wal", "-shm"] {
        // What is left of an earlier one belongs to no other.
        match std::fs::remove_file(named(&aside, end)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            removed => removed?,
        }
        match std::fs::rename(named(path, end), named(&aside, end)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            moved => moved?,
        }
    }
    let (path, aside) = (path.display(), aside.display());
    tracing::warn!(target: "godex", %path, %aside, error = %why, "the trace file is damaged, and was moved aside");
    Ok(())
}

/// Under which nothing was put aside yet, or the last of them.
fn free_name(path: &Path) -> PathBuf {
    let numbered = (2..=KEPT).map(|number| named(path, &format!("{ASIDE}.{number}")));
    let mut names = std::iter::once(named(path, ASIDE)).chain(numbered);
    let is_free = |name: &PathBuf| std::fs::symlink_metadata(name).is_err();
    names.find(is_free).unwrap_or_else(|| named(path, &format!("{ASIDE}.{KEPT}")))
}
