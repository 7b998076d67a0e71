//! Storage of responses and conversations.
//!
//! So far a store is opened, checked and watched; what it holds comes with sessions. A database belongs to one
//! process at a time, and a schema from a newer version is refused rather than guessed at.
#![forbid(unsafe_code)]

mod sqlite;

use std::path::{Path, PathBuf};

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot create the folder {path}: {source}")]
    Folder { path: PathBuf, source: std::io::Error },
    #[error("the session database {path} is used by another process; stop it, or set session.sqlite.path")]
    Locked { path: PathBuf },
    #[error("the session database {path} was written by a newer version (schema {found}, this one knows {known})")]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error("cannot open the session database {path}: {source}")]
    Sqlite { path: PathBuf, source: rusqlite::Error },
}

/// A store that does not answer.
#[derive(Debug, thiserror::Error)]
#[error("the session store does not answer")]
pub struct Unavailable;

/// Where sessions live.
#[derive(Debug)]
pub struct Store(Backend);

#[derive(Debug)]
enum Backend {
    Memory,
    Sqlite(sqlite::Database),
}

impl Store {
    pub fn memory() -> Self {
        Self(Backend::Memory)
    }

    /// Opens or creates the database file.
    pub fn sqlite(path: &Path) -> Result<Self, OpenError> {
        sqlite::Database::open(path).map(Backend::Sqlite).map(Self)
    }

    /// Whether the store answers now.
    pub async fn ping(&self) -> Result<(), Unavailable> {
        match &self.0 {
            Backend::Memory => Ok(()),
            Backend::Sqlite(database) => database.ping().await,
        }
    }
}
