//! Reading: histories, responses, lists, items.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use bytes::Bytes;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{failure, sql};
use crate::packed::unpack;
use crate::rows::{self, ItemRow, Pager, TurnRow, gone};
use crate::{ChainLimits, Error, History, Item, ItemPage, Order, Page, Status, StoredResponse};

pub(crate) fn history(
    connection: &Connection,
    tenant: &str,
    id: &str,
    limits: ChainLimits,
    used: Option<i64>,
) -> Result<History, Error> {
    let mut turns = connection.prepare_cached(sql::TURNS).map_err(failure)?;
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
    let mut select = connection.prepare_cached(sql::ITEMS).map_err(failure)?;
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
    let mut select = connection.prepare_cached(sql::SETTINGS).map_err(failure)?;
    let body = select.query_row(params![tenant, hash], |row| row.get(0)).optional().map_err(failure)?;
    unpack(body.ok_or_else(|| Error::corrupt("a response without its settings"))?)
}

pub(crate) fn response(
    connection: &Connection,
    tenant: &str,
    id: &str,
    used: Option<i64>,
) -> Result<StoredResponse, Error> {
    let mut select = connection.prepare_cached(sql::RESPONSE).map_err(failure)?;
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
    let mut select = connection.prepare_cached(sql::INPUTS).map_err(failure)?;
    let upto = select.query_row(params![tenant, id, gone::LIVE], |row| row.get(0)).optional().map_err(failure)?;
    let upto = upto.ok_or(Error::NotFound)?;
    let after = page.after.as_ref().map(|after| {
        let mut cursor = connection.prepare_cached(sql::CURSOR).map_err(failure)?;
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
    let mut select = connection.prepare_cached(sql::NEWEST).map_err(failure)?;
    let pair = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let found = select.query_map(params![tenant, list(ids)], pair).map_err(failure)?;
    let found: HashMap<String, Option<Vec<u8>>> = found.collect::<Result<_, _>>().map_err(failure)?;
    let found = found.into_iter().filter_map(|(id, body)| Some((id, body?)));
    let found = found.map(|(id, body)| Ok((id, unpack(body)?))).collect::<Result<HashMap<String, Bytes>, Error>>()?;
    Ok(ids.iter().map(|id| Some(Item { id: id.clone(), body: found.get(id)?.clone() })).collect())
}

/// Names as one parameter.
pub(super) fn list(names: &[String]) -> rusqlite::vtab::array::Array {
    Rc::new(names.iter().cloned().map(Value::from).collect())
}

/// Remembers that a response was used, where that matters.
pub(super) fn touch(connection: &Connection, tenant: &str, id: &str, used: Option<i64>) -> Result<(), Error> {
    let Some(used) = used else { return Ok(()) };
    connection
        .prepare_cached(sql::RESPONSE_TOUCH)
        .and_then(|mut sql| sql.execute(params![tenant, id, used]))
        .map(drop)
        .map_err(failure)
}
