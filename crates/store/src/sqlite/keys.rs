//! Idempotency keys.

use rusqlite::{Connection, OptionalExtension, params};

use super::{failure, jobs, sql};
use crate::key::{KeyRow, PreparedKey, UsedKey};
use crate::prepared::Prepared;
use crate::{Error, KeyClaim, Worker};

pub(crate) fn claim_key(connection: &Connection, tenant: &str, key: &PreparedKey, now: i64) -> Result<KeyClaim, Error> {
    let today = jobs::now(connection)?;
    let mut claim = connection.prepare_cached(sql::KEY_CLAIM).map_err(failure)?;
    let row = params![
        tenant,
        key.key,
        key.fingerprint,
        key.response,
        key.worker.0,
        today.saturating_add(key.millis),
        today.saturating_add(key.keep),
        today,
        now,
    ];
    if claim.execute(row).map_err(failure)? == 1 {
        return Ok(KeyClaim::New);
    }
    let mut select = connection.prepare_cached(sql::KEY).map_err(failure)?;
    let found = select.query_row(params![tenant, key.key, now], |row| {
        Ok(KeyRow { fingerprint: row.get(0)?, response: row.get(1)?, known: row.get(2)? })
    });
    let found =
        found.optional().map_err(failure)?.ok_or_else(|| Error::corrupt("a key that is nobody's was refused"))?;
    Ok(key.against(found))
}

pub(crate) fn use_key(connection: &Connection, tenant: &str, key: &UsedKey) -> Result<Option<String>, Error> {
    let now = jobs::now(connection)?;
    let mut claim = connection.prepare_cached(sql::KEY_USE).map_err(failure)?;
    let row = params![tenant, key.key, key.response, now.saturating_add(key.keep), now];
    if claim.execute(row).map_err(failure)? == 1 {
        return Ok(None);
    }
    let user = key_user(connection, tenant, &key.key)?;
    user.map(Some).ok_or_else(|| Error::corrupt("a key that is nobody's was refused"))
}

pub(crate) fn key_user(connection: &Connection, tenant: &str, key: &str) -> Result<Option<String>, Error> {
    let now = jobs::now(connection)?;
    let mut select = connection.prepare_cached(sql::KEY_USER).map_err(failure)?;
    select.query_row(params![tenant, key, now], |row| row.get(0)).optional().map_err(failure)
}

pub(crate) fn release_key(connection: &Connection, tenant: &str, key: &str, response: &str) -> Result<(), Error> {
    let mut delete = connection.prepare_cached(sql::KEY_RELEASE).map_err(failure)?;
    delete.execute(params![tenant, key, response]).map(drop).map_err(failure)
}

/// The turn that is being stored is what its key was claimed for, if nobody else has that by now.
pub(super) fn answer(connection: &Connection, tenant: &str, turn: &Prepared) -> Result<(), Error> {
    let Some(key) = &turn.key else { return Ok(()) };
    let mut update = connection.prepare_cached(sql::KEY_ANSWER).map_err(failure)?;
    match update.execute(params![tenant, key, turn.id]).map_err(failure)? {
        0 => Err(Error::KeyLost),
        _ => Ok(()),
    }
}

/// Extends a worker's claims; those whose response is stored need no extending any more, and one that nobody gave back is
/// free when its time is over.
pub(super) fn extend(connection: &Connection, worker: Worker, now: i64, until: i64) -> Result<(), Error> {
    let mut update = connection.prepare_cached(sql::KEYS_EXTEND).map_err(failure)?;
    update.execute(params![worker.0, until, now]).map(drop).map_err(failure)
}

pub(crate) fn sweep_keys(connection: &Connection, batch: usize) -> Result<usize, Error> {
    let (now, batch) = (jobs::now(connection)?, i64::try_from(batch).unwrap_or(i64::MAX));
    let mut delete = connection.prepare_cached(sql::KEYS_SWEEP).map_err(failure)?;
    delete.execute(params![now, batch]).map_err(failure)
}
