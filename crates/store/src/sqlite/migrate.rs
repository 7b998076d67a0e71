//! Numbered steps, each in a transaction with its number, so that a start which is cut off goes on where it was.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior, params};

use crate::OpenError;
use crate::migration::checksum;

/// Step n brings the schema to version n. They are never changed once released.
const STEPS: &[&str] = &[
    include_str!("sql/0001_init.sql"),
    include_str!("sql/0002_hidden.sql"),
    include_str!("sql/0003_lookups.sql"),
    include_str!("sql/0004_events.sql"),
    include_str!("sql/0005_jobs.sql"),
    include_str!("sql/0006_access.sql"),
    include_str!("sql/0007_encryption.sql"),
];

#[derive(Debug)]
pub(super) enum MigrateError {
    Sqlite(rusqlite::Error),
    Open(OpenError),
}

impl MigrateError {
    pub(super) fn at(self, path: &Path) -> OpenError {
        match self {
            Self::Sqlite(source) => OpenError::Sqlite { path: path.to_owned(), source },
            Self::Open(error) => error,
        }
    }
}

impl From<rusqlite::Error> for MigrateError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// Files from before checksums have no such table; what they were made with is taken for granted, once.
const TABLE: &str = "CREATE TABLE migration (number INTEGER PRIMARY KEY, checksum BLOB NOT NULL) STRICT";
const TABLE_EXISTS: &str = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'migration'";
const APPLIED: &str = "SELECT number, checksum FROM migration ORDER BY number";
const RECORD: &str = "INSERT INTO migration (number, checksum) VALUES (?1, ?2)";

pub(super) fn migrate(connection: &mut Connection, name: &str) -> Result<(), MigrateError> {
    migrate_with(connection, name, STEPS)
}

/// What is wrong with the schema of a file: it is a newer version's, or not as we made it.
pub(crate) fn problem(connection: &Connection) -> Option<String> {
    let look = || -> rusqlite::Result<Option<String>> {
        let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        let known = i64::try_from(STEPS.len()).unwrap_or(i64::MAX);
        if found > known {
            return Ok(Some(format!("it was written by a newer version (schema {found}, this one knows {known})")));
        }
        if found == 0 {
            return Ok(Some("it is no session database of godex".to_owned()));
        }
        // Files from before checksums have none.
        if connection.query_row(TABLE_EXISTS, [], |row| row.get::<_, i64>(0))? == 0 {
            return Ok(None);
        }
        let altered = check(&applied(connection)?, found, STEPS);
        Ok(altered.map(|number| format!("it has a migration that is not ours (number {number})")))
    };
    look().unwrap_or_else(|error| Some(error.to_string()))
}

/// Whether a file has all the tables that this version knows.
pub(super) fn is_current(connection: &Connection) -> bool {
    let found: rusqlite::Result<i64> = connection.query_row("PRAGMA user_version", [], |row| row.get(0));
    found.is_ok_and(|found| i64::try_from(STEPS.len()) == Ok(found))
}

fn migrate_with(connection: &mut Connection, name: &str, steps: &[&str]) -> Result<(), MigrateError> {
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let known = i64::try_from(steps.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(MigrateError::Open(OpenError::Newer { name: name.to_owned(), found, known }));
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    adopt(&transaction, found, steps)?;
    let altered = check(&applied(&transaction)?, found, steps);
    if let Some(number) = altered {
        return Err(MigrateError::Open(OpenError::Altered { name: name.to_owned(), number }));
    }
    transaction.commit()?;
    for (number, step) in (1..).zip(steps).filter(|(number, _)| *number > found) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(step)?;
        transaction.execute(RECORD, params![number, checksum(step)])?;
        transaction.pragma_update(None, "user_version", number)?;
        transaction.commit()?;
    }
    Ok(())
}

/// Gives a file that has no checksums those of the steps that it went through.
fn adopt(connection: &Connection, found: i64, steps: &[&str]) -> rusqlite::Result<()> {
    if connection.query_row(TABLE_EXISTS, [], |row| row.get::<_, i64>(0))? > 0 {
        return Ok(());
    }
    connection.execute_batch(TABLE)?;
    for (number, step) in (1..=found).zip(steps) {
        connection.execute(RECORD, params![number, checksum(step)])?;
    }
    Ok(())
}

fn applied(connection: &Connection) -> rusqlite::Result<Vec<(i64, Vec<u8>)>> {
    let mut select = connection.prepare(APPLIED)?;
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// The first step that is missing, or not as we made it.
fn check(applied: &[(i64, Vec<u8>)], found: i64, steps: &[&str]) -> Option<i64> {
    let expected: Vec<(i64, Vec<u8>)> = (1..=found).zip(steps).map(|(number, step)| (number, checksum(step))).collect();
    let differs = expected.iter().zip(applied).find(|(expected, applied)| expected != applied);
    let differs = differs.map(|((number, _), _)| *number);
    let shorter = expected.len().min(applied.len());
    let longer = || expected.get(shorter).or_else(|| applied.get(shorter)).map(|(number, _)| *number);
    differs.or_else(longer)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "CREATE TABLE one (a)";
    const TWO: &str = "CREATE TABLE two (a)";

    fn migrated(steps: &[&str]) -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate_with(&mut connection, "test", steps).unwrap();
        connection
    }

    fn refused(connection: &mut Connection, steps: &[&str]) -> String {
        match migrate_with(connection, "test", steps) {
            Err(MigrateError::Open(error)) => format!("{error:?}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_step_that_is_not_as_it_was_is_refused_and_changes_nothing() {
        let mut connection = migrated(&[ONE]);
        migrate_with(&mut connection, "test", &[ONE, TWO]).unwrap();
        migrate_with(&mut connection, "test", &[ONE, TWO]).unwrap();
        let altered = refused(&mut connection, &[ONE, "CREATE TABLE two (b)", "CREATE TABLE three (a)"]);
        assert!(altered.starts_with("Altered") && altered.contains("number: 2"), "{altered}");
        let tables: i64 = connection
            .query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'three'", [], |row| row.get(0))
            .unwrap();
        assert_eq!(tables, 0);
        let newer = refused(&mut connection, &[ONE]);
        assert!(newer.starts_with("Newer") && newer.contains("found: 2"), "{newer}");
    }

    #[test]
    fn records_that_do_not_fit_the_version_are_refused() {
        for (change, number) in [
            ("DELETE FROM migration WHERE number = 2", "number: 2"),
            ("DELETE FROM migration WHERE number = 1", "number: 1"),
            ("INSERT INTO migration VALUES (3, x'')", "number: 3"),
        ] {
            let mut connection = migrated(&[ONE, TWO]);
            connection.execute_batch(change).unwrap();
            let altered = refused(&mut connection, &[ONE, TWO]);
            assert!(altered.starts_with("Altered") && altered.contains(number), "{change}: {altered}");
        }
    }

    #[test]
    fn a_file_without_checksums_is_adopted_once() {
        let mut connection = migrated(&[ONE, TWO]);
        connection.execute_batch("DROP TABLE migration").unwrap();
        migrate_with(&mut connection, "test", &[ONE, TWO, "CREATE TABLE three (a)"]).unwrap();
        assert_eq!(applied(&connection).unwrap().len(), 3);
        assert!(refused(&mut connection, &["", TWO, "CREATE TABLE three (a)"]).contains("number: 1"));
    }
}
