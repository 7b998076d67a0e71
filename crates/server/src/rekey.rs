//! `godex store rekey`: the stored sessions are written anew under the configured key, or in clear. It serves nobody.

use store::{OpenError, Rekeyed, Rewriting, SqliteOptions, Store};

use crate::config::{Backend, Config};

/// Why the sessions were not, or not all, written anew.
#[derive(Debug, thiserror::Error)]
pub enum RekeyError {
    #[error("sessions are kept in memory only (`session.backend: memory`): there is nothing to encrypt")]
    Memory,
    #[error("there is no `session.encryption.key` to encrypt with; `--decrypt` goes back to clear")]
    NoKey,
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the database is written anew only in part; run it again to go on: {reason}")]
    Store { reason: String },
}

/// Writes everything anew that is not as it should be; `told` hears how far it is.
pub async fn rekey(
    config: &Config,
    decrypt: bool,
    told: &mut (dyn FnMut(&Rekeyed) + Send),
) -> Result<Rekeyed, RekeyError> {
    let keys = config.session.encryption.keys.clone();
    if !decrypt && keys.key.is_none() {
        return Err(RekeyError::NoKey);
    }
    let store = match &config.session.backend {
        Backend::Memory { .. } => return Err(RekeyError::Memory),
        Backend::Sqlite { path } => Store::encrypted_sqlite(path, &SqliteOptions::default(), keys)?,
        Backend::Postgres(postgres) => {
            Store::encrypted_postgres(postgres.url.expose(), &postgres.options, keys).await?
        }
    };
    let how = if decrypt { Rewriting::Clear } else { Rewriting::Seal };
    let done = store.rekey(how, told).await;
    store.close().await;
    done.map_err(|error| RekeyError::Store { reason: reason(&error) })
}

/// What happened, for whoever runs the command.
fn reason(error: &store::Error) -> String {
    match error {
        store::Error::Unavailable(unavailable) => unavailable.reason().to_owned(),
        other => other.to_string(),
    }
}
