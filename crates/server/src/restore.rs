//! `godex store restore`: a backup takes the place of the session database. It serves nobody, and no server may run meanwhile.

use std::io;
use std::path::{Path, PathBuf};

use store::restore_sqlite;

use crate::config::{Backend, Config};
use crate::seal::{self, SealKey};

/// By this name the key of the seal is in a backup.
pub(crate) const SEAL: &str = "seal";

/// Why nothing was restored, or not everything.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error("sessions are not in SQLite (`session.backend`): there is nothing that a backup could take the place of")]
    NotSqlite,
    #[error(transparent)]
    Store(#[from] store::RestoreError),
    #[error("the sessions are restored, but not the key {path}: what clients carry cannot be opened")]
    SealKey { path: PathBuf, source: io::Error },
}

/// Puts a backup into the place of the session database; the files that were there before and are kept under these names.
///
/// # Errors
/// A server has it open, it is there already and may not be replaced, or the backup is not whole or does not open.
pub fn restore(config: &Config, from: &Path, replace: bool) -> Result<Vec<PathBuf>, RestoreError> {
    let Backend::Sqlite { path } = &config.session.backend else { return Err(RestoreError::NotSqlite) };
    let key_file = SealKey::file(&config.session);
    let present = key_file.as_deref().and_then(|path| seal::kept(path).ok().flatten());
    let restored = restore_sqlite(from, path, &config.session.encryption.keys, replace, (SEAL, present))?;
    let mut aside: Vec<PathBuf> = restored.aside.into_iter().collect();
    if let (Some(key), Some(path)) = (restored.secret, key_file) {
        let put = seal::put(&path, &key).map_err(|source| RestoreError::SealKey { path, source })?;
        aside.extend(put);
    }
    Ok(aside)
}
