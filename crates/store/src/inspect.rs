//! A look at a database without opening it as a store: nothing is created, brought up to date or locked, so it may be in
//! use meanwhile. For whoever wants to know what is wrong.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use crate::{Encryption, OpenError, PostgresOptions, postgres, sqlite};

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
    /// Why a start would refuse it as a store, if it was one.
    pub refused: Option<String>,
    /// Why the keys that there are do not open it.
    pub sealed: Option<String>,
    /// Whether it has API keys; also those that are revoked.
    pub keys: bool,
}

/// Looks at a file of sessions or traces that is there; `whole`: at every page of it, for damage.
///
/// # Errors
/// It cannot be read, or is no database.
pub fn inspect_sqlite(path: &Path, whole: bool, encryption: &Encryption) -> Result<SqliteLook, OpenError> {
    let sqlite = |source| OpenError::Sqlite { path: path.to_owned(), source };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(sqlite)?;
    let schema: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(sqlite)?;
    let damage = if whole {
        let finding: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(sqlite)?;
        (finding != "ok").then_some(finding)
    } else {
        None
    };
    let readable = schema > 0 && damage.is_none();
    let refused = if readable { sqlite::schema_problem(&connection) } else { None };
    let keys = readable && sqlite::has_keys(&connection);
    let name = path.display().to_string();
    let problem = if readable { sqlite::keys_problem(&connection, &name, encryption) } else { None };
    Ok(SqliteLook { schema, damage, refused, sealed: problem.map(|problem| problem.to_string()), keys })
}

/// Whether a process has it: a start would be refused. For a moment nobody else can take it.
pub fn is_held(path: &Path) -> bool {
    matches!(sqlite::look_at_lock(path), Err(OpenError::Locked { .. }))
}

/// What a database server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresLook {
    pub version: String,
    /// The number of the last step that its schema went through; 0: there is none yet.
    pub schema: i64,
    /// Why a start would refuse it.
    pub refused: Option<String>,
    /// Why the keys that there are do not open it.
    pub sealed: Option<String>,
    /// Whether it has API keys; also those that are revoked.
    pub keys: bool,
}

/// # Errors
/// It cannot be reached, or refuses.
pub async fn inspect_postgres(
    url: &str,
    options: &PostgresOptions,
    encryption: &Encryption,
) -> Result<PostgresLook, OpenError> {
    postgres::inspect(url, options, encryption).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_changes_nothing_and_finds_damage() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        assert!(inspect_sqlite(&path, true, &Encryption::default()).is_err() && !path.exists());
        let made = Connection::open(&path).unwrap();
        made.execute_batch(
            "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT) STRICT; PRAGMA user_version = 3;
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
             INSERT INTO t SELECT i, printf('%0200d', i) FROM n;",
        )
        .unwrap();
        made.close().unwrap();
        let found = inspect_sqlite(&path, true, &Encryption::default()).unwrap();
        assert_eq!((found.schema, found.damage, found.keys), (3, None, false));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        let mut bytes = std::fs::read(&path).unwrap();
        let broken = folder.path().join("broken.db");
        // All pages but the first, which says what the file is.
        bytes.iter_mut().skip(8192).for_each(|byte| *byte = 0x5a);
        std::fs::write(&broken, bytes).unwrap();
        assert!(inspect_sqlite(&broken, false, &Encryption::default()).is_ok_and(|look| look.damage.is_none()));
        let found = inspect_sqlite(&broken, true, &Encryption::default());
        assert!(found.as_ref().map_or(true, |look| look.damage.is_some()), "{found:?}");
        std::fs::write(&broken, "no database, but a text that is long enough to be one".repeat(20)).unwrap();
        assert!(inspect_sqlite(&broken, true, &Encryption::default()).is_err());
    }

    #[test]
    fn what_a_start_would_refuse_is_found_and_so_are_keys() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        drop(crate::Store::sqlite(&path, &crate::SqliteOptions::default()).unwrap());
        let change = |sql: &str| Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let found = inspect_sqlite(&path, true, &Encryption::default()).unwrap();
        assert_eq!((found.refused, found.keys), (None, false));
        let key = "VALUES ('key_1', 't', 'a', x'00', '', 0, NULL, 0, NULL, '{}')";
        change(&format!("{} INTO api_key {key}", "INSERT"));
        assert!(inspect_sqlite(&path, true, &Encryption::default()).unwrap().keys);
        change("PRAGMA user_version = 999");
        let refused = inspect_sqlite(&path, true, &Encryption::default()).unwrap().refused.unwrap();
        assert!(refused.contains("newer version (schema 999, this one knows "), "{refused}");
    }
}
