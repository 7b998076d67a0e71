//! What tenants have: counted, listed, erased.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{Database, failure, sql};
use crate::holdings::{BATCH, COUNTED, Count, Kind, PASSES};
use crate::{Erased, Error, Holding, Status, Tenant};

/// Every table that has a tenant's rows, but API keys and what is said of tenants: first what leads to the others.
pub(super) const TABLES: [(&str, Kind, &str); 11] = [
    ("job", Kind::Other, sql::ERASE_JOBS),
    ("response", Kind::Response, sql::ERASE_RESPONSES),
    ("conversation", Kind::Conversation, sql::ERASE_CONVERSATIONS),
    ("log", Kind::Other, sql::ERASE_LOGS),
    ("event", Kind::Other, sql::ERASE_EVENTS),
    ("item", Kind::Item, sql::ERASE_ITEMS),
    ("segment", Kind::Other, sql::ERASE_SEGMENTS),
    ("settings", Kind::Other, sql::ERASE_SETTINGS),
    ("idempotency", Kind::Other, sql::ERASE_KEYS),
    ("notice", Kind::Other, sql::ERASE_NOTICES),
    ("usage", Kind::Other, sql::ERASE_USAGE),
];

impl Database {
    pub(crate) async fn erase_tenant(&self, tenant: &Tenant) -> Result<Erased, Error> {
        let mut erased = Erased::default();
        for _ in 0..PASSES {
            let mut found = 0;
            for (_, kind, sql) in TABLES {
                loop {
                    let tenant = tenant.clone();
                    let (there, rows) = self.erase(move |connection| erase(connection, sql, tenant.name())).await?;
                    erased.add(kind, there, rows);
                    found += rows;
                    if rows < BATCH.unsigned_abs() {
                        break;
                    }
                }
            }
            if found == 0 {
                self.scrub().await?;
                return Ok(erased);
            }
        }
        Err(Error::unavailable("somebody goes on writing in the name of the tenant that is erased"))
    }
}

/// How many rows went, and how many of them were there.
fn erase(connection: &Connection, sql: &str, tenant: &str) -> Result<(u64, u64), Error> {
    let mut delete = connection.prepare_cached(sql).map_err(failure)?;
    let gone = delete.query_map(params![tenant, BATCH], |row| row.get::<_, bool>(0)).map_err(failure)?;
    let (mut there, mut rows) = (0, 0);
    for counts in gone {
        there += u64::from(counts.map_err(failure)?);
        rows += 1;
    }
    Ok((there, rows))
}

pub(crate) fn tenant_after(connection: &Connection, after: &str) -> Result<Option<String>, Error> {
    let mut select = connection.prepare_cached(sql::TENANT_NEXT).map_err(failure)?;
    select.query_row([after], |row| row.get(0)).map_err(failure)
}

pub(crate) fn count_responses(connection: &Connection, tenant: &str, after: &str, now: i64) -> Result<Count, Error> {
    let mut select = connection.prepare_cached(sql::RESPONSES_COUNT).map_err(failure)?;
    select.query_row(params![tenant, after, now, COUNTED], count).map_err(failure)
}

pub(crate) fn count_conversations(connection: &Connection, tenant: &str, after: &str) -> Result<Count, Error> {
    let mut select = connection.prepare_cached(sql::CONVERSATIONS_COUNT).map_err(failure)?;
    select.query_row(params![tenant, after, COUNTED], count).map_err(failure)
}

fn count(row: &Row<'_>) -> rusqlite::Result<Count> {
    Ok(Count { there: row.get(0)?, rows: row.get(1)?, last: row.get(2)? })
}

pub(crate) fn held_responses(
    connection: &Connection,
    tenant: &str,
    after: &str,
    most: usize,
    now: i64,
) -> Result<Vec<Holding>, Error> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let mut select = connection.prepare_cached(sql::RESPONSES_HELD).map_err(failure)?;
    let holding = |row: &Row<'_>| {
        Ok(Holding {
            id: row.get(0)?,
            created_at: row.get(1)?,
            expires_at: row.get(2)?,
            // A code of no known status reads as damage, not as one of them.
            status: Some(Status::from_code(row.get(3)?).ok_or(rusqlite::Error::IntegralValueOutOfRange(3, 0))?),
            previous_response: row.get(4)?,
            conversation: row.get(5)?,
        })
    };
    select.query_map(params![tenant, after, now, most], holding).and_then(Iterator::collect).map_err(failure)
}

pub(crate) fn held_conversations(
    connection: &Connection,
    tenant: &str,
    after: &str,
    most: usize,
) -> Result<Vec<Holding>, Error> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let mut select = connection.prepare_cached(sql::CONVERSATIONS_HELD).map_err(failure)?;
    let holding = |row: &Row<'_>| Ok(Holding::conversation(row.get(0)?, row.get(1)?));
    select.query_map(params![tenant, after, most], holding).and_then(Iterator::collect).map_err(failure)
}

/// Where the input of a response is that came with it.
pub(super) fn own_places(
    connection: &Connection,
    tenant: &str,
    id: &str,
    now: i64,
) -> Result<std::ops::Range<i64>, Error> {
    let mut select = connection.prepare_cached(sql::OWN_PLACES).map_err(failure)?;
    let places = select.query_row(params![tenant, id, now], |row| Ok(row.get(0)?..row.get(1)?));
    places.optional().map_err(failure)?.ok_or(Error::NotFound)
}
