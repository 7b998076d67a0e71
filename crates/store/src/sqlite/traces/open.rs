//! Opening a trace file: it is ours, or nobody's, or it is refused. One that is damaged makes room for a new one.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode};

use super::super::open::DbPath;
use super::{header, migrate, sql};
use crate::OpenError;

/// With what every SQLite file begins.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Added to the name of a file that is damaged; only the last such file is kept.
const ASIDE: &str = ".damaged";
/// A file of this name says that writing found damage.
const SUSPECT: &str = ".suspect";

pub(in super::super) fn open(path: &Path) -> Result<(Connection, DbPath), OpenError> {
    let unusable = |problem: String| OpenError::Traces { path: path.to_owned(), problem };
    let database = DbPath::traces(path).map_err(|error| match error {
        OpenError::Locked { .. } => unusable("another process uses it; stop it, or set trace.path".to_owned()),
        other => other,
    })?;
    if !is_sqlite(path).map_err(|error| unusable(error.to_string()))? {
        return Err(unusable("it is no SQLite file; move it away, or set trace.path".to_owned()));
    }
    let suspect = named(path, SUSPECT);
    if suspect.exists() {
        move_aside(path).and_then(|()| std::fs::remove_file(&suspect)).map_err(|error| unusable(error.to_string()))?;
    }
    let mut opened = looked_over(&database);
    if let Err(Problem::Sqlite(error)) = &opened
        && let Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) = error.sqlite_error_code()
    {
        tracing::warn!(target: "godex", path = %path.display(), error = %error, "the trace file is damaged, and was moved aside");
        move_aside(path).map_err(|error| unusable(error.to_string()))?;
        opened = looked_over(&database);
    }
    let connection = opened.map_err(|problem| match problem {
        Problem::Sqlite(error) => unusable(error.to_string()),
        Problem::Io(error) => unusable(error.to_string()),
        Problem::Foreign(problem) => unusable(problem),
    })?;
    Ok((connection, database))
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
fn move_aside(path: &Path) -> std::io::Result<()> {
    let aside = named(path, ASIDE);
    for end in ["", "-wal", "-shm"] {
        match std::fs::rename(named(path, end), named(&aside, end)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            moved => moved?,
        }
    }
    Ok(())
}
