//! SQLite: one connection, owned by its own thread. No database call ever runs on a runtime thread.

use std::path::Path;
use std::thread;

use rusqlite::{Connection, ErrorCode};
use tokio::sync::{mpsc, oneshot};

use crate::{OpenError, Unavailable};

/// The newest schema that this version knows.
const SCHEMA: i64 = 1;

/// Work that waits for the database; more than that and callers wait.
const QUEUE: usize = 256;

/// A handle to the thread; dropping the last one ends it.
#[derive(Debug)]
pub(crate) struct Database {
    work: mpsc::Sender<Work>,
}

#[derive(Debug)]
enum Work {
    Ping(oneshot::Sender<Result<(), Unavailable>>),
}

impl Database {
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        if let Some(folder) = path.parent() {
            create_folder(folder).map_err(|source| OpenError::Folder { path: folder.to_owned(), source })?;
        }
        let connection = connect(path).map_err(|source| match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => OpenError::Locked { path: path.to_owned() },
            _ => OpenError::Sqlite { path: path.to_owned(), source },
        })?;
        let found: i64 = connection
            .query_row("PRAGMA user_version", [], |row| row.get(0))
            .map_err(|source| OpenError::Sqlite { path: path.to_owned(), source })?;
        if found > SCHEMA {
            return Err(OpenError::Newer { path: path.to_owned(), found, known: SCHEMA });
        }
        let (work, queue) = mpsc::channel(QUEUE);
        thread::spawn(move || run(&connection, queue));
        Ok(Self { work })
    }

    pub(crate) async fn ping(&self) -> Result<(), Unavailable> {
        let (answer, answered) = oneshot::channel();
        self.work.send(Work::Ping(answer)).await.map_err(|_| Unavailable)?;
        answered.await.map_err(|_| Unavailable)?
    }
}

/// WAL with full sync: what is acknowledged survives a power cut. The exclusive lock keeps a second process out.
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    // Who holds the lock holds it for life: there is nothing to wait for.
    connection.busy_timeout(std::time::Duration::ZERO)?;
    restrict(path);
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // The lock is taken by the first write.
    connection.execute_batch(
        "BEGIN IMMEDIATE; CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT) STRICT; COMMIT",
    )?;
    Ok(connection)
}

fn run(connection: &Connection, mut queue: mpsc::Receiver<Work>) {
    while let Some(work) = queue.blocking_recv() {
        match work {
            Work::Ping(answer) => {
                let reached = connection.query_row("SELECT count(*) FROM meta", [], |_| Ok(()));
                // Nobody waits any more: nothing to tell.
                let _ = answer.send(reached.map_err(|_| Unavailable));
            }
        }
    }
}

/// Conversations are nobody else's business: the folder and the file are the owner's alone.
fn create_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn restrict(path: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // A file system without permissions is no reason not to start.
        let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_database_opens_answers_and_keeps_others_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/sessions.db");
        let database = Database::open(&path).unwrap();
        assert!(database.ping().await.is_ok());
        assert!(matches!(Database::open(&path), Err(OpenError::Locked { .. })));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_newer_schema_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        Connection::open(&path).unwrap().pragma_update(None, "user_version", SCHEMA + 1).unwrap();
        assert!(matches!(Database::open(&path), Err(OpenError::Newer { .. })));
    }

    #[test]
    fn garbage_is_refused_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        std::fs::write(&path, b"this is no database, but it is long enough to look at".repeat(20)).unwrap();
        assert!(Database::open(&path).unwrap_err().to_string().contains("sessions.db"));
    }
}
