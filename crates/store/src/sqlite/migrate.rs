//! Numbered steps, each in a transaction with its number, so that a start which is cut off goes on where it was.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use crate::OpenError;

/// Step n brings the schema to version n. They are never changed once released.
const STEPS: &[&str] =
    &[include_str!("sql/0001_init.sql"), include_str!("sql/0002_hidden.sql"), include_str!("sql/0003_lookups.sql")];

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

pub(super) fn migrate(connection: &mut Connection, name: &str) -> Result<(), MigrateError> {
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let known = i64::try_from(STEPS.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(MigrateError::Open(OpenError::Newer { name: name.to_owned(), found, known }));
    }
    for (number, step) in (1..).zip(STEPS).filter(|(number, _)| *number > found) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", number)?;
        transaction.commit()?;
    }
    Ok(())
}
