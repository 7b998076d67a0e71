//! API keys, and what tenants are allowed.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{failure, sql};
use crate::{AccessList, ApiKey, Error, Tenant};

/// Whether there is any key, also one that is revoked. Older files have no table of them.
pub(crate) fn has_keys(connection: &Connection) -> bool {
    connection.query_row(sql::API_KEYS, [], |_| Ok(())).is_ok()
}

pub(crate) fn access_list(connection: &Connection, since: i64) -> Result<Option<AccessList>, Error> {
    let mut select = connection.prepare_cached(sql::ACCESS_VERSION).map_err(failure)?;
    let version: i64 = select.query_row([], |row| row.get(0)).map_err(failure)?;
    if version == since {
        return Ok(None);
    }
    let mut select = connection.prepare_cached(sql::API_KEYS).map_err(failure)?;
    let keys = select.query_map([], key).and_then(Iterator::collect).map_err(failure)?;
    let mut select = connection.prepare_cached(sql::TENANTS_TERMS).map_err(failure)?;
    let terms = |row: &Row<'_>| Ok((Tenant::new(&row.get::<_, String>(0)?), row.get(1)?));
    let tenants = select.query_map([], terms).and_then(Iterator::collect).map_err(failure)?;
    Ok(Some(AccessList { version, keys, tenants }))
}

fn key(row: &Row<'_>) -> rusqlite::Result<ApiKey> {
    Ok(ApiKey {
        id: row.get(0)?,
        tenant: Tenant::new(&row.get::<_, String>(1)?),
        name: row.get(2)?,
        hash: row.get(3)?,
        hint: row.get(4)?,
        created_at: row.get(5)?,
        expires_at: row.get(6)?,
        revoked_at: row.get(7)?,
        replaced_by: row.get(8)?,
        terms: row.get(9)?,
    })
}

pub(crate) fn create_api_key(connection: &Connection, key: &ApiKey) -> Result<(), Error> {
    let mut named = connection.prepare_cached(sql::API_KEY_NAMED).map_err(failure)?;
    let in_use = key.revoked_at.is_none() && key.replaced_by.is_none();
    if is_taken(connection, key)? || in_use && named.exists([&key.name]).map_err(failure)? {
        return Err(Error::Conflict);
    }
    insert(connection, key, &key.name)
}

pub(crate) fn revoke_api_key(connection: &Connection, id: &str, at: i64) -> Result<(), Error> {
    let mut update = connection.prepare_cached(sql::API_KEY_REVOKE).map_err(failure)?;
    let changed = update.execute(params![id, at]).map_err(failure)?;
    if changed == 0 { Err(Error::NotFound) } else { raise(connection) }
}

pub(crate) fn revoke_api_keys_named(connection: &Connection, name: &str, at: i64) -> Result<Vec<String>, Error> {
    let mut update = connection.prepare_cached(sql::API_KEYS_REVOKE).map_err(failure)?;
    let ids = update.query_map(params![name, at], |row| row.get(0)).map_err(failure)?;
    let ids: Vec<String> = ids.collect::<Result<_, _>>().map_err(failure)?;
    if !ids.is_empty() {
        raise(connection)?;
    }
    Ok(ids)
}

pub(crate) fn rotate_api_key(connection: &Connection, id: &str, new: &ApiKey, until: i64) -> Result<(), Error> {
    let mut select = connection.prepare_cached(sql::API_KEY_NAME).map_err(failure)?;
    let name: Option<String> = select.query_row([id], |row| row.get(0)).optional().map_err(failure)?;
    let name = name.ok_or(Error::NotFound)?;
    if is_taken(connection, new)? {
        return Err(Error::Conflict);
    }
    let mut update = connection.prepare_cached(sql::API_KEY_REPLACE).map_err(failure)?;
    update.execute(params![id, new.id, until]).map_err(failure)?;
    insert(connection, &ApiKey { replaced_by: None, ..new.clone() }, &name)
}

pub(crate) fn delete_api_key(connection: &Connection, id: &str) -> Result<(), Error> {
    let mut delete = connection.prepare_cached(sql::API_KEY_DELETE).map_err(failure)?;
    let changed = delete.execute([id]).map_err(failure)?;
    if changed == 0 { Err(Error::NotFound) } else { raise(connection) }
}

pub(crate) fn set_tenant_terms(connection: &Connection, tenant: &Tenant, terms: Option<&str>) -> Result<(), Error> {
    let changed = match terms {
        Some(terms) => connection
            .prepare_cached(sql::TENANT_TERMS_SET)
            .and_then(|mut insert| insert.execute(params![tenant.name(), terms])),
        None => {
            connection.prepare_cached(sql::TENANT_TERMS_CLEAR).and_then(|mut delete| delete.execute([tenant.name()]))
        }
    };
    if changed.map_err(failure)? == 0 { Ok(()) } else { raise(connection) }
}

/// Whether another key has its id or its hash.
fn is_taken(connection: &Connection, key: &ApiKey) -> Result<bool, Error> {
    let mut taken = connection.prepare_cached(sql::API_KEY_TAKEN).map_err(failure)?;
    taken.exists(params![key.id, key.hash]).map_err(failure)
}

fn insert(connection: &Connection, key: &ApiKey, name: &str) -> Result<(), Error> {
    let mut insert = connection.prepare_cached(sql::API_KEY_NEW).map_err(failure)?;
    let row = params![
        key.id,
        key.tenant.name(),
        name,
        key.hash,
        key.hint,
        key.created_at,
        key.expires_at,
        key.revoked_at,
        key.replaced_by,
        key.terms,
    ];
    insert.execute(row).map_err(failure)?;
    raise(connection)
}

fn raise(connection: &Connection) -> Result<(), Error> {
    let mut update = connection.prepare_cached(sql::ACCESS_RAISE).map_err(failure)?;
    update.execute([]).map(drop).map_err(failure)
}
