//! Idempotency keys. A claim is one statement, and the key's row decides between those who make it at once, and between one
//! who takes a key over and one who stores its response after all.

use deadpool_postgres::Transaction;

use super::jobs::span;
use super::{Database, column, failure, sql, text, typed};
use crate::key::{KeyRow, PreparedKey, UsedKey};
use crate::prepared::Prepared;
use crate::{Error, KeyClaim, Tenant};

/// How often a key may vanish between two looks at it before that is an outage.
const LOOKS: usize = 8;

impl Database {
    pub(crate) async fn claim_key(&self, tenant: &Tenant, key: &PreparedKey, now: i64) -> Result<KeyClaim, Error> {
        self.read(async |client| {
            let mut forgotten: Option<String> = None;
            for _ in 0..LOOKS {
                let row = typed![
                    tenant.key() => BYTEA,
                    key.key.as_bytes() => BYTEA,
                    &key.fingerprint[..] => BYTEA,
                    key.response.as_bytes() => BYTEA,
                    &key.worker.0[..] => BYTEA,
                    span(key.millis) => FLOAT8,
                    span(key.keep) => FLOAT8,
                    now => INT8,
                    forgotten.as_deref().map(str::as_bytes) => BYTEA,
                ];
                if client.execute_typed(sql::KEY_CLAIM, row).await.map_err(failure)? == 1 {
                    return Ok(KeyClaim::New);
                }
                let row = typed![tenant.key() => BYTEA, key.key.as_bytes() => BYTEA, now => INT8];
                let Some(row) = client.query_typed_opt(sql::KEY, row).await.map_err(failure)? else { continue };
                let (fingerprint, response) = (column(&row, 0)?, text(&row, 1)?);
                if !column::<bool>(&row, 3)? {
                    return Ok(key.against(KeyRow { fingerprint, response, known: column(&row, 2)? }));
                }
                forgotten = Some(response);
            }
            Err(Error::unavailable("an idempotency key changed hands all the time"))
        })
        .await
    }

    pub(crate) async fn use_key(&self, tenant: &Tenant, key: &UsedKey) -> Result<Option<String>, Error> {
        self.read(async |client| {
            for _ in 0..LOOKS {
                let row = typed![
                    tenant.key() => BYTEA,
                    key.key.as_bytes() => BYTEA,
                    key.response.as_bytes() => BYTEA,
                    span(key.keep) => FLOAT8,
                ];
                if client.execute_typed(sql::KEY_USE, row).await.map_err(failure)? == 1 {
                    return Ok(None);
                }
                let row = typed![tenant.key() => BYTEA, key.key.as_bytes() => BYTEA];
                if let Some(row) = client.query_typed_opt(sql::KEY_USER, row).await.map_err(failure)? {
                    return text(&row, 0).map(Some);
                }
            }
            Err(Error::unavailable("a key changed hands all the time"))
        })
        .await
    }

    pub(crate) async fn key_user(&self, tenant: &Tenant, key: &str) -> Result<Option<String>, Error> {
        self.read(async |client| {
            let row = typed![tenant.key() => BYTEA, key.as_bytes() => BYTEA];
            let row = client.query_typed_opt(sql::KEY_USER, row).await.map_err(failure)?;
            row.map(|row| text(&row, 0)).transpose()
        })
        .await
    }

    pub(crate) async fn release_key(&self, tenant: &Tenant, key: &str, response: &str) -> Result<(), Error> {
        self.read(async |client| {
            let row = typed![tenant.key() => BYTEA, key.as_bytes() => BYTEA, response.as_bytes() => BYTEA];
            client.execute_typed(sql::KEY_RELEASE, row).await.map(drop).map_err(failure)
        })
        .await
    }

    pub(crate) async fn sweep_keys(&self, batch: usize) -> Result<usize, Error> {
        let batch = i64::try_from(batch).unwrap_or(i64::MAX);
        self.read(async |client| {
            let gone = client.execute_typed(sql::KEYS_SWEEP, typed![batch => INT8]).await.map_err(failure)?;
            Ok(usize::try_from(gone).unwrap_or(usize::MAX))
        })
        .await
    }
}

/// The turn that is being stored is what its key was claimed for, if nobody else has that by now. Whoever wants to take the
/// key over waits until it is decided whether the turn is stored.
pub(super) async fn answer(transaction: &Transaction<'_>, tenant: &[u8], turn: &Prepared) -> Result<(), Error> {
    let Some(key) = &turn.key else { return Ok(()) };
    let row = typed![tenant => BYTEA, key.as_bytes() => BYTEA, turn.id.as_bytes() => BYTEA];
    match transaction.execute_typed(sql::KEY_ANSWER, row).await.map_err(failure)? {
        0 => Err(Error::KeyLost),
        _ => Ok(()),
    }
}
