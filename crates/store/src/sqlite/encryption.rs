//! Data keys, and bodies that are written anew under others.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{failure, sql};
use crate::encryption::{BodyTable, Cursor, DataKey, NewDataKey, Recipher, Rotation, Step};
use crate::prefix::Secret;
use crate::whole::{Looked, Looker};
use crate::{Encryption, Error, OpenError};

/// Rows of one step, and bytes after which it ends early.
const ROWS: i64 = 64;
const BYTES: usize = 4 << 20;

pub(crate) fn data_keys(connection: &Connection, tenant: &str) -> Result<Vec<DataKey>, Error> {
    let mut select = connection.prepare_cached(sql::DATA_KEYS).map_err(failure)?;
    let read = |row: &Row<'_>| {
        let (number, wrapped) = (row.get(0)?, row.get(1)?);
        Ok(DataKey { number, wrapped, coming: false, retired: row.get(2)?, sealed_only: row.get(3)? })
    };
    let rows = select.query_map([tenant], read).map_err(failure)?;
    rows.collect::<Result<_, _>>().map_err(failure)
}

/// Whether there is a key of the store: what is the tenants' is sealed, or was until their keys were forgotten.
pub(super) fn is_encrypted(connection: &Connection) -> Result<bool, Error> {
    connection.prepare_cached(sql::SECRET_WRAPPED).and_then(|mut select| select.exists([])).map_err(failure)
}

/// Adds it unless somebody was first, and gives what there is then.
pub(crate) fn add_data_key(connection: &Connection, tenant: &str, new: &NewDataKey) -> Result<Vec<DataKey>, Error> {
    let rows = data_keys(connection, tenant)?;
    if DataKey::current(&rows).is_some() {
        return Ok(rows);
    }
    insert(connection, tenant, new)?;
    data_keys(connection, tenant)
}

fn insert(connection: &Connection, tenant: &str, new: &NewDataKey) -> Result<(), Error> {
    let mut insert = connection.prepare_cached(sql::DATA_KEY_NEW).map_err(failure)?;
    insert.execute(params![tenant, new.number, new.wrapped, new.wrapping]).map(drop).map_err(failure)
}

pub(crate) fn rotate(connection: &Connection, tenant: &str, rotation: &Rotation) -> Result<(), Error> {
    let mut update = connection.prepare_cached(sql::DATA_KEY_WRAP).map_err(failure)?;
    for key in &rotation.rewrapped {
        update.execute(params![tenant, key.number, key.wrapped, key.wrapping]).map_err(failure)?;
    }
    if let Some(new) = &rotation.new {
        insert(connection, tenant, new)?;
        let all = data_keys(connection, tenant)?;
        if all.iter().any(|key| key.sealed_only && key.number != new.number) {
            sealed_only(connection, tenant)?;
        }
    }
    if rotation.retire {
        run(connection, sql::DATA_KEYS_RETIRE, tenant)?;
    }
    Ok(())
}

pub(crate) fn sealed_only(connection: &Connection, tenant: &str) -> Result<(), Error> {
    run(connection, sql::DATA_KEYS_SEALED_ONLY, tenant).map(drop)
}

/// Forgets the keys that nothing is sealed with any more. None are kept.
pub(crate) fn forget_data_keys(connection: &Connection) -> Result<u64, Error> {
    let mut delete = connection.prepare_cached(sql::DATA_KEYS_FORGET).map_err(failure)?;
    delete.execute([]).map_err(failure)?;
    Ok(0)
}

pub(crate) fn forget_keys_of(connection: &Connection, tenant: &str) -> Result<u64, Error> {
    run(connection, sql::DATA_KEYS_ERASE, tenant)
}

fn run(connection: &Connection, statement: &str, tenant: &str) -> Result<u64, Error> {
    let mut statement = connection.prepare_cached(statement).map_err(failure)?;
    statement.execute([tenant]).map(|rows| rows as u64).map_err(failure)
}

/// Writes some rows anew, from that place on.
pub(crate) fn rewrite(
    connection: &Connection,
    tenant: &str,
    table: BodyTable,
    from: &Cursor,
    recipher: &Recipher,
) -> Result<Step, Error> {
    let found = bodies(connection, tenant, table, from, &recipher.mark, recipher.wanted)?;
    let mut step = Step { next: found.last().map(|(last, _)| last.clone()), ..Step::default() };
    let mut update = connection.prepare_cached(statements(table).1).map_err(failure)?;
    for (row, body) in found {
        match recipher.rewrite(table, &row, body) {
            Ok(body) => {
                let (first, second) = key(table, &row)?;
                update.execute(params![tenant, first, second, body]).map_err(failure)?;
                step.rows += 1;
                step.bytes += body.len() as u64;
            }
            Err(Error::Corrupt(_)) => step.damaged += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(step)
}

/// Some bodies from that place on: those that begin so, or those that do not.
fn bodies(
    connection: &Connection,
    tenant: &str,
    table: BodyTable,
    from: &Cursor,
    mark: &[u8],
    wanted: bool,
) -> Result<Vec<(Cursor, Vec<u8>)>, Error> {
    let mut select = connection.prepare_cached(statements(table).0).map_err(failure)?;
    let (first, second) = key(table, from)?;
    let mut rows = select.query(params![tenant, first, second, mark, wanted, ROWS]).map_err(failure)?;
    let (mut found, mut bytes) = (Vec::new(), 0);
    while bytes < BYTES
        && let Some(row) = rows.next().map_err(failure)?
    {
        let body: Vec<u8> = row.get(3).map_err(failure)?;
        bytes += body.len();
        found.push((cursor(row).map_err(failure)?, body));
    }
    Ok(found)
}

/// Looks at some bodies from that place on.
pub(crate) fn look(
    connection: &Connection,
    tenant: &str,
    table: BodyTable,
    from: &Cursor,
    looker: &Looker,
) -> Result<Looked, Error> {
    Ok(looker.look(table, bodies(connection, tenant, table, from, &[], true)?))
}

fn statements(table: BodyTable) -> (&'static str, &'static str) {
    match table {
        BodyTable::Item => (sql::BODIES_ITEM, sql::BODY_ITEM),
        BodyTable::Response => (sql::BODIES_RESPONSE, sql::BODY_RESPONSE),
        BodyTable::Settings => (sql::BODIES_SETTINGS, sql::BODY_SETTINGS),
        BodyTable::Conversation => (sql::BODIES_CONVERSATION, sql::BODY_CONVERSATION),
        BodyTable::Event => (sql::BODIES_EVENT, sql::BODY_EVENT),
        BodyTable::Job => (sql::BODIES_JOB, sql::BODY_JOB),
        BodyTable::Notice => (sql::BODIES_NOTICE, sql::BODY_NOTICE),
    }
}

fn cursor(row: &Row<'_>) -> rusqlite::Result<Cursor> {
    let name = row.get_ref(0)?.as_bytes().map_err(rusqlite::Error::from)?.to_vec();
    Ok(Cursor { name, first: row.get(1)?, second: row.get(2)? })
}

/// The two parameters that say which row.
fn key(table: BodyTable, row: &Cursor) -> Result<(Value, i64), Error> {
    let first = match table {
        BodyTable::Item => Value::Integer(row.first),
        BodyTable::Settings => Value::Blob(row.name.clone()),
        _ => {
            let name = String::from_utf8(row.name.clone()).map_err(|_| Error::corrupt("an id is not text"))?;
            Value::Text(name)
        }
    };
    Ok((first, row.second))
}

/// The secret stays in the form that everything else has now.
pub(crate) fn keep_secret(connection: &Connection, secret: &[u8; 32], wrapped: Option<&[u8]>) -> Result<(), Error> {
    let kept = match wrapped {
        Some(wrapped) => {
            connection.execute(sql::SECRET_WRAP, [wrapped]).and_then(|_| connection.execute(sql::SECRET_FORGET, []))
        }
        None => {
            connection.execute(sql::SECRET_NEW, [&secret[..]]).and_then(|_| connection.execute(sql::SECRET_UNWRAP, []))
        }
    };
    kept.map(drop).map_err(failure)
}

/// The key of all hashes: made once, kept beside the data; wrapped if there is a key for that, so that nobody who has only
/// the file can test by the hashes what it holds.
///
/// A file that needs a key which is not there is refused.
pub(super) fn secret(
    connection: &Connection,
    name: &str,
    encryption: &Encryption,
) -> Result<rusqlite::Result<Secret>, OpenError> {
    let fresh = Secret::random()?;
    let wrapped = connection.query_row(sql::SECRET_WRAPPED, [], |row| row.get::<_, Vec<u8>>(0)).optional();
    let wrapped = match wrapped.and_then(|wrapped| Ok((wrapped, wrappings(connection)?))) {
        Ok((wrapped, used)) => {
            encryption.admit(name, used.iter().map(Vec::as_slice))?;
            wrapped
        }
        Err(error) => return Ok(Err(error)),
    };
    if let Some(wrapped) = wrapped {
        return encryption.unwrap_secret(name, &wrapped).map(Ok);
    }
    let kept = connection
        .execute(sql::SECRET_NEW, [&fresh.0[..]])
        .and_then(|_| connection.query_row(sql::SECRET, [], |row| row.get::<_, [u8; 32]>(0)).optional());
    let secret = match kept {
        Ok(kept) => kept.map_or(fresh, Secret),
        Err(error) => return Ok(Err(error)),
    };
    if let Some(key) = &encryption.key {
        let wrapped = key.wrap_secret(&secret).map_err(|_| OpenError::Random)?;
        let kept = connection.unchecked_transaction().and_then(|transaction| {
            transaction.execute(sql::SECRET_WRAP, [wrapped])?;
            transaction.execute(sql::SECRET_FORGET, [])?;
            transaction.commit()
        });
        if let Err(error) = kept {
            return Ok(Err(error));
        }
    }
    Ok(Ok(secret))
}

/// Why these keys do not open it, if they do not. Older files have no data keys.
pub(crate) fn keys_problem(connection: &Connection, name: &str, encryption: &Encryption) -> Option<OpenError> {
    let used = wrappings(connection).ok()?;
    let wrapped: Option<Vec<u8>> = connection.query_row(sql::SECRET_WRAPPED, [], |row| row.get(0)).optional().ok()?;
    let admitted = encryption.admit(name, used.iter().map(Vec::as_slice));
    let opened = admitted.and_then(|()| wrapped.map_or(Ok(()), |it| encryption.unwrap_secret(name, &it).map(drop)));
    opened.err()
}

fn wrappings(connection: &Connection) -> rusqlite::Result<Vec<Vec<u8>>> {
    let mut select = connection.prepare(sql::WRAPPINGS)?;
    let rows = select.query_map([], |row| row.get(0))?;
    rows.collect()
}
