//! Conversations: a segment of their own that only they append to.

use std::collections::HashSet;
use std::ops::Range;

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::delete::trim;
use super::put::{append, end, new_segment};
use super::read::{body, item_rows, list};
use super::{failure, sql};
use crate::encryption::{Cipher, Place};
use crate::prepared::PackedItem;
use crate::room::{Meter, Reading};
use crate::rows::{self, ItemRow, Pager};
use crate::{Error, Item, ItemPage, Lease, NewConversation, Order, Page, StoredConversation};

pub(crate) fn create_conversation(
    connection: &Connection,
    tenant: &str,
    new: &NewConversation,
    items: &[PackedItem],
    used: Option<i64>,
) -> Result<(), Error> {
    let mut taken = connection.prepare_cached(sql::CONVERSATION_TAKEN).map_err(failure)?;
    if taken.exists(params![tenant, new.id]).map_err(failure)? {
        return Err(Error::Conflict);
    }
    let segment = new_segment(connection, tenant, None, 0, Some(&new.id))?;
    let upto = append(connection, tenant, segment, 0, items, &[])?;
    let mut insert = connection.prepare_cached(sql::CONVERSATION_NEW).map_err(failure)?;
    let row = params![tenant, new.id, segment, upto, new.created_at, used.unwrap_or(0), &new.metadata[..]];
    insert.execute(row).map(drop).map_err(failure)
}

pub(crate) fn conversation(
    connection: &Connection,
    tenant: &str,
    id: &str,
    cipher: &Cipher,
) -> Result<StoredConversation, Error> {
    let mut select = connection.prepare_cached(sql::CONVERSATION).map_err(failure)?;
    let found = select.query_row(params![tenant, id], |row| Ok((row.get(0)?, row.get(1)?)));
    let (created_at, metadata) = found.optional().map_err(failure)?.ok_or(Error::NotFound)?;
    let metadata = cipher.unpack(Place::conversation(id), metadata)?;
    Ok(StoredConversation { id: id.to_owned(), created_at, metadata })
}

pub(crate) fn update_conversation(
    connection: &Connection,
    tenant: &str,
    id: &str,
    metadata: &[u8],
    cipher: &Cipher,
) -> Result<StoredConversation, Error> {
    let mut update = connection.prepare_cached(sql::CONVERSATION_METADATA).map_err(failure)?;
    update.execute(params![tenant, id, metadata]).map_err(failure)?;
    conversation(connection, tenant, id, cipher)
}

/// The conversation goes; items that a stored response shows stay with it.
pub(crate) fn delete_conversation(connection: &Connection, tenant: &str, id: &str) -> Result<(), Error> {
    let mut delete = connection.prepare_cached(sql::CONVERSATION_DELETE).map_err(failure)?;
    let segment = delete.query_row(params![tenant, id], |row| row.get::<_, i64>(0)).optional().map_err(failure)?;
    let segment = segment.ok_or(Error::NotFound)?;
    connection
        .prepare_cached(sql::SEGMENT_DISOWN)
        .and_then(|mut sql| sql.execute(params![tenant, segment]))
        .map_err(failure)?;
    trim(connection, tenant, segment)
}

pub(crate) fn append_items(connection: &Connection, tenant: &str, id: &str, items: &[PackedItem]) -> Result<(), Error> {
    if leased(connection, tenant, id)? {
        return Err(Error::Locked);
    }
    let (segment, upto) = place(connection, tenant, id)?;
    let upto = append(connection, tenant, segment, upto, items, &[])?;
    end(connection, tenant, id, upto)
}

pub(crate) fn conversation_items(
    connection: &Connection,
    tenant: &str,
    id: &str,
    page: &Page,
    reading: &Reading,
) -> Result<ItemPage, Error> {
    let (segment, upto) = place(connection, tenant, id)?;
    let after = page.after.as_ref().map(|after| {
        let mut select = connection.prepare_cached(sql::CONVERSATION_CURSOR).map_err(failure)?;
        let ends = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let found: (Option<i64>, Option<i64>) =
            select.query_row(params![tenant, segment, after], ends).map_err(failure)?;
        let place = if page.order == Order::OldestFirst { found.1 } else { found.0 };
        place.ok_or(Error::NoSuchCursor)
    });
    let mut pager = Pager::new(page, upto, after.transpose()?, reading);
    while let Some(places) = pager.next() {
        let rows = range(connection, tenant, segment, places.clone(), &mut pager.meter);
        pager.take(places, rows)?;
    }
    Ok(pager.finish())
}

pub(crate) fn conversation_history(
    connection: &Connection,
    tenant: &str,
    id: &str,
    reading: &Reading,
) -> Result<Vec<Item>, Error> {
    let (segment, upto) = place(connection, tenant, id)?;
    let rows = range(connection, tenant, segment, 0..upto, &mut Meter::new(&reading.room))?;
    Ok(rows::complete(&reading.cipher, rows, 0..upto)?.0)
}

pub(crate) fn conversation_item(
    connection: &Connection,
    tenant: &str,
    id: &str,
    item: &str,
    reading: &Reading,
) -> Result<Item, Error> {
    let (segment, _) = place(connection, tenant, id)?;
    let mut select = connection.prepare_cached(sql::CONVERSATION_ITEM).map_err(failure)?;
    let mut found = select.query(params![tenant, segment, item]).map_err(failure)?;
    let row = found.next().map_err(failure)?;
    let body = row.map(|row| body(row, 0, &mut Meter::new(&reading.room))).transpose()?.flatten();
    rows::row_item(&reading.cipher, item.to_owned(), body.ok_or(Error::NotFound)?.to_vec())
}

/// Which of these ids items of the conversation have.
pub(crate) fn conversation_has(
    connection: &Connection,
    tenant: &str,
    id: &str,
    ids: &[String],
) -> Result<HashSet<String>, Error> {
    let (segment, _) = place(connection, tenant, id)?;
    let mut select = connection.prepare_cached(sql::CONVERSATION_HAS).map_err(failure)?;
    let found = select.query_map(params![tenant, segment, list(ids)], |row| row.get(0)).map_err(failure)?;
    found.collect::<Result<_, _>>().map_err(failure)
}

/// Takes an item out of the list. Its place stays, so that later places keep their numbers; responses from before have
/// it still.
pub(crate) fn delete_conversation_item(
    connection: &Connection,
    tenant: &str,
    id: &str,
    item: &str,
    cipher: &Cipher,
) -> Result<StoredConversation, Error> {
    let (segment, upto) = place(connection, tenant, id)?;
    let mut update = connection.prepare_cached(sql::CONVERSATION_HIDE).map_err(failure)?;
    if update.execute(params![tenant, segment, item, upto]).map_err(failure)? == 0 {
        return Err(Error::NotFound);
    }
    forget_hidden(connection, tenant, segment)?;
    conversation(connection, tenant, id, cipher)
}

/// Empties what was taken out of a conversation and no living history has any more.
pub(super) fn forget_hidden(connection: &Connection, tenant: &str, segment: i64) -> Result<(), Error> {
    connection
        .prepare_cached(sql::HIDDEN_FORGET)
        .and_then(|mut sql| sql.execute(params![tenant, segment]))
        .map(drop)
        .map_err(failure)
}

pub(crate) fn begin_turn(connection: &Connection, tenant: &str, lease: &Lease, millis: i64) -> Result<(), Error> {
    if leased(connection, tenant, &lease.conversation)? {
        return Err(Error::Locked);
    }
    let now: i64 = connection.query_row(sql::NOW, [], |row| row.get(0)).map_err(failure)?;
    let mut update = connection.prepare_cached(sql::LEASE_BEGIN).map_err(failure)?;
    let until = now.saturating_add(millis);
    update.execute(params![tenant, lease.conversation, lease.token, until]).map(drop).map_err(failure)
}

pub(crate) fn extend_turn(connection: &Connection, tenant: &str, lease: &Lease, millis: i64) -> Result<(), Error> {
    let now: i64 = connection.query_row(sql::NOW, [], |row| row.get(0)).map_err(failure)?;
    let mut update = connection.prepare_cached(sql::LEASE_EXTEND).map_err(failure)?;
    let until = now.saturating_add(millis);
    match update.execute(params![tenant, lease.conversation, lease.token, until]).map_err(failure)? {
        0 => Err(Error::Locked),
        _ => Ok(()),
    }
}

pub(crate) fn end_turn(connection: &Connection, tenant: &str, lease: &Lease) -> Result<(), Error> {
    let mut update = connection.prepare_cached(sql::LEASE_END).map_err(failure)?;
    update.execute(params![tenant, lease.conversation, lease.token]).map(drop).map_err(failure)
}

/// Whether somebody's turn is on, by the database's clock.
fn leased(connection: &Connection, tenant: &str, id: &str) -> Result<bool, Error> {
    let now: i64 = connection.query_row(sql::NOW, [], |row| row.get(0)).map_err(failure)?;
    let mut select = connection.prepare_cached(sql::LEASE).map_err(failure)?;
    let leased = select.query_row(params![tenant, id, now], |row| row.get(0)).optional().map_err(failure)?;
    leased.ok_or(Error::NotFound)
}

fn place(connection: &Connection, tenant: &str, id: &str) -> Result<(i64, i64), Error> {
    let mut select = connection.prepare_cached(sql::CONVERSATION_PLACE).map_err(failure)?;
    let found = select.query_row(params![tenant, id], |row| Ok((row.get(0)?, row.get(1)?)));
    found.optional().map_err(failure)?.ok_or(Error::NotFound)
}

fn range(
    connection: &Connection,
    tenant: &str,
    segment: i64,
    places: Range<i64>,
    meter: &mut Meter,
) -> Result<Vec<ItemRow>, Error> {
    let mut select = connection.prepare_cached(sql::CONVERSATION_RANGE).map_err(failure)?;
    item_rows(select.query(params![tenant, segment, places.start, places.end]).map_err(failure)?, meter)
}

/// Remembers that a conversation was used, where that matters.
pub(crate) fn touch(connection: &Connection, tenant: &str, id: &str, used: Option<i64>) -> Result<(), Error> {
    let Some(used) = used else { return Ok(()) };
    connection
        .prepare_cached(sql::CONVERSATION_TOUCH)
        .and_then(|mut sql| sql.execute(params![tenant, id, used]))
        .map(drop)
        .map_err(failure)
}
