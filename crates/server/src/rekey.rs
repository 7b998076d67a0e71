//! `godex store rekey`: the stored sessions, and traces, are written anew under the configured key, or in clear. It serves
//! nobody.

use store::{OpenError, Rekeyed, Rewriting, SqliteOptions, Store, TraceRekeyed};

use crate::config::{Backend, Config, TracePlace};
use crate::trace;

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
    #[error("sessions are written anew, traces only in part; run it again to go on: {reason}")]
    Traces { reason: String },
}

/// Writes everything anew that is not as it should be; `told` hears how far it is.
pub async fn rekey(
    config: &Config,
    decrypt: bool,
    told: &mut (dyn FnMut(&Rekeyed) + Send),
) -> Result<(Rekeyed, TraceRekeyed), RekeyError> {
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
    let done = match done {
        Ok(done) => rekey_traces(config, &store, how).await.map(|traces| (done, traces)),
        Err(error) => Err(RekeyError::Store { reason: reason(&error) }),
    };
    store.close().await;
    done
}

/// Nothing that a key has sealed which is not needed any more is left; where there are no traces yet, none are made.
async fn rekey_traces(config: &Config, store: &Store, how: Rewriting) -> Result<TraceRekeyed, RekeyError> {
    if matches!(&config.trace.place, TracePlace::File(path) if !path.exists()) {
        return Ok(TraceRekeyed::default());
    }
    let Some(traces) = trace::open(config, store)? else { return Ok(TraceRekeyed::default()) };
    let done = traces.rekey(how, &mut |_| {}).await;
    traces.close().await;
    done.map_err(|error| RekeyError::Traces { reason: reason(&error) })
}

/// What happened, for whoever runs the command.
fn reason(error: &store::Error) -> String {
    match error {
        store::Error::Unavailable(unavailable) => unavailable.reason().to_owned(),
        other => other.to_string(),
    }
}
