//! Reading: histories, responses, lists, items.

use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::failure;
use crate::packed::unpack;
use crate::rows::{self, ItemRow, Pager, TurnRow, gone};
use crate::{ChainLimits, Error, History, Item, ItemPage, Order, Page, Status, StoredResponse};

/// The segments of a response's history, each with the end of what it contributes. One step per fork, not per turn.
/// What follows joins by CROSS JOIN, which keeps the order: left to itself SQLite reads the whole tenant first.
macro_rules! path {
    ($rest:literal) => {
        concat!(
            "WITH RECURSIVE path (segment, parent, start, upto) AS (
               SELECT s.segment, s.parent, s.start, r.upto FROM response r
               JOIN segment s ON s.tenant = r.tenant AND s.segment = r.segment WHERE r.tenant = ?1 AND r.id = ?2
               UNION ALL
               SELECT s.segment, s.parent, s.start, p.start FROM path p
               JOIN segment s ON s.tenant = ?1 AND s.segment = p.parent) ",
            $rest
        )
    };
}

const TURNS: &str = path!(
    "SELECT r.id, r.previous, r.status, r.depth, r.gone, r.own, r.middle, r.upto, r.settings
     FROM path p CROSS JOIN response r ON r.tenant = ?1 AND r.segment = p.segment AND r.upto <= p.upto"
);
const ITEMS: &str = path!(
    "SELECT i.pos, i.id, CASE WHEN i.hidden < p.upto THEN x'' ELSE i.body END FROM path p
     CROSS JOIN item i ON i.tenant = ?1 AND i.segment = p.segment AND i.pos >= ?3 AND i.pos < min(p.upto, ?4)"
);
const CURSOR: &str = path!(
    "SELECT min(i.pos), max(i.pos) FROM item i INDEXED BY item_id
     CROSS JOIN path p ON p.segment = i.segment AND i.pos < p.upto WHERE i.tenant = ?1 AND i.id = ?3"
);

pub(crate) fn history(
    connection: &Connection,
    tenant: &str,
    id: &str,
    limits: ChainLimits,
    used: Option<i64>,
) -> Result<History, Error> {
    let mut turns = connection.prepare_cached(TURNS).map_err(failure)?;
    let turns = turns.query_map(params![tenant, id], turn).map_err(failure)?;
    let chain = rows::chain(turns.collect::<Result<_, _>>().map_err(failure)?, id, limits)?;
    let items = items(connection, tenant, id, 0..i64::MAX)?;
    let settings = if limits.settings { settings(connection, tenant, &chain)? } else { HashMap::new() };
    touch(connection, tenant, id, used)?;
    rows::history(chain, items, &settings)
}

fn turn(row: &Row<'_>) -> rusqlite::Result<TurnRow> {
    Ok(TurnRow {
        id: row.get(0)?,
        previous: row.get(1)?,
        status: row.get(2)?,
        depth: row.get(3)?,
        gone: row.get(4)?,
        own: row.get(5)?,
        middle: row.get(6)?,
        upto: row.get(7)?,
        settings: row.get(8)?,
    })
}

fn items(connection: &Connection, tenant: &str, id: &str, places: Range<i64>) -> Result<Vec<ItemRow>, Error> {
    let mut select = connection.prepare_cached(ITEMS).map_err(failure)?;
    let rows = select.query_map(params![tenant, id, places.start, places.end], item_row).map_err(failure)?;
    rows.collect::<Result<_, _>>().map_err(failure)
}

pub(super) fn item_row(row: &Row<'_>) -> rusqlite::Result<ItemRow> {
    Ok(ItemRow { pos: row.get(0)?, id: row.get(1)?, body: row.get(2)? })
}

fn settings(connection: &Connection, tenant: &str, chain: &[TurnRow]) -> Result<HashMap<Vec<u8>, Bytes>, Error> {
    let mut settings = HashMap::new();
    for hash in chain.iter().filter_map(|turn| turn.settings.as_ref()) {
        if !settings.contains_key(hash) {
            settings.insert(hash.clone(), setting(connection, tenant, hash)?);
        }
    }
    Ok(settings)
}

fn setting(connection: &Connection, tenant: &str, hash: &[u8]) -> Result<Bytes, Error> {
    let select = "SELECT body FROM settings WHERE tenant = ?1 AND hash = ?2";
    let mut select = connection.prepare_cached(select).map_err(failure)?;
    let body = select.query_row(params![tenant, hash], |row| row.get(0)).optional().map_err(failure)?;
    unpack(body.ok_or_else(|| Error::corrupt("a response without its settings"))?)
}

pub(crate) fn response(
    connection: &Connection,
    tenant: &str,
    id: &str,
    used: Option<i64>,
) -> Result<StoredResponse, Error> {
    let select = "SELECT previous, conversation, status, created, expires, settings, head, middle, upto \
                  FROM response WHERE tenant = ?1 AND id = ?2 AND gone = 0";
    let mut select = connection.prepare_cached(select).map_err(failure)?;
    let found = select.query_row(params![tenant, id], |row| {
        let places: Range<i64> = row.get(7)?..row.get(8)?;
        let (hash, head) = (row.get::<_, Option<Vec<u8>>>(5)?, row.get::<_, Vec<u8>>(6)?);
        let response = StoredResponse {
            id: id.to_owned(),
            previous_response_id: row.get(0)?,
            conversation_id: row.get(1)?,
            // A code of no known status reads as damage, not as one of them.
            status: Status::from_code(row.get(2)?).ok_or(rusqlite::Error::IntegralValueOutOfRange(2, 0))?,
            created_at: row.get(3)?,
            expires_at: row.get(4)?,
            head: Bytes::new(),
            settings: None,
            output: Vec::new(),
        };
        Ok((response, hash, head, places))
    });
    let (mut response, hash, head, places) = found.optional().map_err(failure)?.ok_or(Error::NotFound)?;
    response.head = unpack(head)?;
    response.settings = hash.map(|hash| setting(connection, tenant, &hash)).transpose()?;
    response.output = rows::complete(items(connection, tenant, id, places.clone())?, places)?.0;
    touch(connection, tenant, id, used)?;
    Ok(response)
}

pub(crate) fn input_items(connection: &Connection, tenant: &str, id: &str, page: &Page) -> Result<ItemPage, Error> {
    let select = "SELECT middle FROM response WHERE tenant = ?1 AND id = ?2 AND gone = ?3";
    let mut select = connection.prepare_cached(select).map_err(failure)?;
    let upto = select.query_row(params![tenant, id, gone::LIVE], |row| row.get(0)).optional().map_err(failure)?;
    let upto = upto.ok_or(Error::NotFound)?;
    let after = page.after.as_ref().map(|after| {
        let mut cursor = connection.prepare_cached(CURSOR).map_err(failure)?;
        let ends = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let found: (Option<i64>, Option<i64>) = cursor.query_row(params![tenant, id, after], ends).map_err(failure)?;
        // Of several with this id, the one that makes progress.
        let place = if page.order == Order::OldestFirst { found.1 } else { found.0 };
        place.filter(|pos| *pos < upto).ok_or(Error::NoSuchCursor)
    });
    let mut pager = Pager::new(page, upto, after.transpose()?);
    while let Some(places) = pager.next() {
        pager.take(items(connection, tenant, id, places)?)?;
    }
    Ok(pager.finish())
}

/// For each id the newest item that still has a body.
pub(crate) fn items_by_id(connection: &Connection, tenant: &str, ids: &[String]) -> Result<Vec<Option<Item>>, Error> {
    let select = "SELECT body FROM item WHERE tenant = ?1 AND id = ?2 AND length(body) > 0 \
                  ORDER BY segment DESC, pos DESC LIMIT 1";
    let mut select = connection.prepare_cached(select).map_err(failure)?;
    let mut item = |id: &String| {
        let body = select.query_row(params![tenant, id], |row| row.get(0)).optional().map_err(failure)?;
        body.map(|body| Ok(Item { id: id.clone(), body: unpack(body)? })).transpose()
    };
    ids.iter().map(&mut item).collect()
}

/// Remembers that a response was used, where that matters.
pub(super) fn touch(connection: &Connection, tenant: &str, id: &str, used: Option<i64>) -> Result<(), Error> {
    let Some(used) = used else { return Ok(()) };
    let update = "UPDATE response SET used = ?3 WHERE tenant = ?1 AND id = ?2";
    connection
        .prepare_cached(update)
        .and_then(|mut sql| sql.execute(params![tenant, id, used]))
        .map(drop)
        .map_err(failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_read_looks_through_a_whole_tenant() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(include_str!("sql/0001_init.sql")).unwrap();
        connection.execute_batch(include_str!("sql/0002_hidden.sql")).unwrap();
        for sql in [TURNS, ITEMS, CURSOR] {
            let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let parameters = vec![1; plan.parameter_count()];
            let steps = plan.query_map(rusqlite::params_from_iter(parameters), |row| row.get::<_, String>(3)).unwrap();
            for step in steps.map(Result::unwrap) {
                assert!(!step.ends_with("(tenant=?)"), "{step} in {sql}");
            }
        }
    }
}
