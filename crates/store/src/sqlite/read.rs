//! Reading: histories, responses, lists, items.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use rusqlite::types::{FromSqlError, Value};
use rusqlite::{Connection, OptionalExtension, Row, Rows, params};

use super::holdings::own_places;
use super::{failure, sql};
use crate::packed::{length, unpack};
use crate::room::{Meter, Room};
use crate::rows::{self, ItemRow, Pager, TurnRow};
use crate::{ChainLimits, Error, History, Item, ItemPage, Order, Page, Status, StoredResponse};

pub(crate) fn history(
    connection: &Connection,
    tenant: &str,
    id: &str,
    limits: ChainLimits,
    now: i64,
    room: &Arc<dyn Room>,
    used: Option<i64>,
) -> Result<History, Error> {
    let mut turns = connection.prepare_cached(sql::TURNS).map_err(failure)?;
    let turns = turns.query_map(params![tenant, id], turn).map_err(failure)?;
    let chain = rows::chain(turns.collect::<Result<_, _>>().map_err(failure)?, id, limits, now)?;
    let mut meter = Meter::new(room);
    let items = items(connection, tenant, id, 0..i64::MAX, &mut meter)?;
    let settings = if limits.settings { settings(connection, tenant, &chain, &mut meter)? } else { HashMap::new() };
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
        expires: row.get(9)?,
    })
}

fn items(
    connection: &Connection,
    tenant: &str,
    id: &str,
    places: Range<i64>,
    meter: &mut Meter,
) -> Result<Vec<ItemRow>, Error> {
    let mut select = connection.prepare_cached(sql::ITEMS).map_err(failure)?;
    item_rows(select.query(params![tenant, id, places.start, places.end]).map_err(failure)?, meter)
}

/// Rows of a place, an id and a body.
pub(super) fn item_rows(mut rows: Rows<'_>, meter: &mut Meter) -> Result<Vec<ItemRow>, Error> {
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(failure)? {
        let body = body(row, 2, meter)?;
        found.push(ItemRow {
            pos: row.get(0).map_err(failure)?,
            id: row.get(1).map_err(failure)?,
            body: body.map(<[u8]>::to_vec),
        });
    }
    Ok(found)
}

/// A packed body, before it is copied: only if there is room for it.
pub(super) fn body<'r>(row: &'r Row<'_>, index: usize, meter: &mut Meter) -> Result<Option<&'r [u8]>, Error> {
    let body = row.get_ref(index).map_err(failure)?.as_blob_or_null();
    let body = body.map_err(|error: FromSqlError| Error::corrupt(error.to_string()))?;
    meter.take(body.map_or(0, length))?;
    Ok(body)
}

fn settings(
    connection: &Connection,
    tenant: &str,
    chain: &[TurnRow],
    meter: &mut Meter,
) -> Result<HashMap<Vec<u8>, Bytes>, Error> {
    let mut settings = HashMap::new();
    for hash in chain.iter().filter_map(|turn| turn.settings.as_ref()) {
        if !settings.contains_key(hash) {
            settings.insert(hash.clone(), setting(connection, tenant, hash, meter)?);
        }
    }
    Ok(settings)
}

fn setting(connection: &Connection, tenant: &str, hash: &[u8], meter: &mut Meter) -> Result<Bytes, Error> {
    let mut select = connection.prepare_cached(sql::SETTINGS).map_err(failure)?;
    let mut rows = select.query(params![tenant, hash]).map_err(failure)?;
    let row = rows.next().map_err(failure)?;
    let body = row.map(|row| body(row, 0, meter)).transpose()?.flatten();
    unpack(body.ok_or_else(|| Error::corrupt("a response without its settings"))?.to_vec())
}

pub(crate) fn response(
    connection: &Connection,
    tenant: &str,
    id: &str,
    now: i64,
    room: &Arc<dyn Room>,
    used: Option<i64>,
) -> Result<StoredResponse, Error> {
    let mut select = connection.prepare_cached(sql::RESPONSE).map_err(failure)?;
    let found = select.query_row(params![tenant, id, now], |row| {
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
    let mut meter = Meter::new(room);
    meter.take(length(&head))?;
    response.head = unpack(head)?;
    response.settings = hash.map(|hash| setting(connection, tenant, &hash, &mut meter)).transpose()?;
    response.output = rows::complete(items(connection, tenant, id, places.clone(), &mut meter)?, places)?.0;
    touch(connection, tenant, id, used)?;
    Ok(response)
}

pub(crate) fn input_items(
    connection: &Connection,
    tenant: &str,
    id: &str,
    page: &Page,
    now: i64,
    room: &Arc<dyn Room>,
) -> Result<ItemPage, Error> {
    let mut select = connection.prepare_cached(sql::INPUTS).map_err(failure)?;
    let upto = select.query_row(params![tenant, id, now], |row| row.get(0)).optional().map_err(failure)?;
    let upto = upto.ok_or(Error::NotFound)?;
    let after = page.after.as_ref().map(|after| {
        let mut cursor = connection.prepare_cached(sql::CURSOR).map_err(failure)?;
        let ends = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let found: (Option<i64>, Option<i64>) = cursor.query_row(params![tenant, id, after], ends).map_err(failure)?;
        // Of several with this id, the one that makes progress.
        let place = if page.order == Order::OldestFirst { found.1 } else { found.0 };
        place.filter(|pos| *pos < upto).ok_or(Error::NoSuchCursor)
    });
    let mut pager = Pager::new(page, upto, after.transpose()?, room);
    while let Some(places) = pager.next() {
        let rows = items(connection, tenant, id, places.clone(), &mut pager.meter);
        pager.take(places, rows)?;
    }
    Ok(pager.finish())
}

pub(crate) fn own_input(
    connection: &Connection,
    tenant: &str,
    id: &str,
    now: i64,
    room: &Arc<dyn Room>,
) -> Result<Vec<Item>, Error> {
    let places = own_places(connection, tenant, id, now)?;
    Ok(rows::complete(items(connection, tenant, id, places.clone(), &mut Meter::new(room))?, places)?.0)
}

/// For each id the newest item that still has a body, and an owner that is there.
pub(crate) fn items_by_id(
    connection: &Connection,
    tenant: &str,
    ids: &[String],
    now: i64,
    room: &Arc<dyn Room>,
) -> Result<Vec<Option<Item>>, Error> {
    let mut select = connection.prepare_cached(sql::NEWEST).map_err(failure)?;
    let mut rows = select.query(params![tenant, list(ids), now]).map_err(failure)?;
    let (mut found, mut meter) = (HashMap::new(), Meter::new(room));
    while let Some(row) = rows.next().map_err(failure)? {
        if let Some(body) = body(row, 1, &mut meter)? {
            found.insert(row.get::<_, String>(0).map_err(failure)?, unpack(body.to_vec())?);
        }
    }
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
