//! A look at a database without opening it as a store: nothing is created, brought up to date or locked, so it may be in
//! use meanwhile. For whoever wants to know what is wrong.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use crate::{OpenError, PostgresOptions, postgres};

/// The version of SQLite in this binary.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}

/// What a database file says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteLook {
    /// The number of the last step that it went through; 0: it was never a store.
    pub schema: i64,
    /// What is damaged; None: nothing, or it was not looked at.
    pub damage: Option<String>,
}

/// Looks at a file that is there; `whole`: at every page of it, for damage.
///
/// # Errors
/// It cannot be read, or is no database.
pub fn inspect_sqlite(path: &Path, whole: bool) -> Result<SqliteLook, OpenError> {
    let sqlite = |source| OpenError::Sqlite { path: path.to_owned(), source };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(sqlite)?;
    let schema = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(sqlite)?;
    let damage = if whole {
        let finding: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(sqlite)?;
        (finding != "ok").then_some(finding)
    } else {
        None
    };
    Ok(SqliteLook { schema, damage })
}

/// What a database server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresLook {
    pub version: String,
    /// The number of the last step that its schema went through; 0: there is none yet.
    pub schema: i64,
}

/// # Errors
/// It cannot be reached, or refuses.
pub async fn inspect_postgres(url: &str, options: &PostgresOptions) -> Result<PostgresLook, OpenError> {
    let (version, schema) = postgres::inspect(url, options).await?;
    Ok(PostgresLook { version, schema })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SqliteOptions, Store};

    #[test]
    fn a_look_changes_nothing_and_finds_damage() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        assert!(inspect_sqlite(&path, true).is_err() && !path.exists());
        let store = Store::sqlite(&path, &SqliteOptions::default()).unwrap();
        let look = inspect_sqlite(&path, true).unwrap();
        assert!(look.schema > 0 && look.damage.is_none(), "{look:?}");
        drop(store);
        let bytes = std::fs::read(&path).unwrap();
        let broken = folder.path().join("broken.db");
        // Half of each page but the first, whose beginning says what the file is.
        let mut half = bytes.clone();
        for page in half.chunks_mut(16_384).skip(1) {
            page.fill(0x5a);
        }
        std::fs::write(&broken, half).unwrap();
        let found = inspect_sqlite(&broken, true);
        assert!(found.as_ref().map_or(true, |look| look.damage.is_some()), "{found:?}");
        std::fs::write(&broken, "no database, but a text that is long enough to be one".repeat(20)).unwrap();
        assert!(inspect_sqlite(&broken, true).is_err());
    }
}
