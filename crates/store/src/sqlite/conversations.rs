//! Conversations: a segment of their own that only they append to.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::delete::{NOW, trim};
use super::failure;
use super::put::{advance, append, new_segment};
use super::read::item_row;
use crate::packed::{pack, unpack};
use crate::prepared::PackedItem;
use crate::rows::{self, ItemRow, Pager};
use crate::{Error, Item, ItemPage, Lease, NewConversation, Order, Page, StoredConversation};

pub(crate) fn create_conversation(
    connection: &Connection,
    tenant: &str,
    new: &NewConversation,
    items: &[PackedItem],
    used: Option<i64>,
) -> Result<(), Error> {
    let taken = "SELECT 1 FROM conversation WHERE tenant = ?1 AND id = ?2";
    let mut taken = connection.prepare_cached(taken).map_err(failure)?;
    if taken.exists(params![tenant, new.id]).map_err(failure)? {
        return Err(Error::Conflict);
    }
    let segment = new_segment(connection, tenant, None, 0, Some(&new.id))?;
    let upto = append(connection, tenant, segment, 0, items, &[])?;
    let insert = "INSERT INTO conversation (tenant, id, segment, upto, created, used, metadata) \
                  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let mut insert = connection.prepare_cached(insert).map_err(failure)?;
    let metadata = pack(&new.metadata);
    let row = params![tenant, new.id, segment, upto, new.created_at, used.unwrap_or(0), metadata];
    insert.execute(row).map(drop).map_err(failure)
}

pub(crate) fn conversation(connection: &Connection, tenant: &str, id: &str) -> Result<StoredConversation, Error> {
    let select = "SELECT created, metadata FROM conversation WHERE tenant = ?1 AND id = ?2";
    let mut select = connection.prepare_cached(select).map_err(failure)?;
    let found = select.query_row(params![tenant, id], |row| Ok((row.get(0)?, row.get(1)?)));
    let (created_at, metadata) = found.optional().map_err(failure)?.ok_or(Error::NotFound)?;
    Ok(StoredConversation { id: id.to_owned(), created_at, metadata: unpack(metadata)? })
}

pub(crate) fn update_conversation(
    connection: &Connection,
    tenant: &str,
    id: &str,
    metadata: &[u8],
) -> Result<StoredConversation, Error> {
    let update = "UPDATE conversation SET metadata = ?3 WHERE tenant = ?1 AND id = ?2";
    let mut update = connection.prepare_cached(update).map_err(failure)?;
    update.execute(params![tenant, id, pack(metadata)]).map_err(failure)?;
    conversation(connection, tenant, id)
}

/// The conversation goes; items that a stored response shows stay with it.
pub(crate) fn delete_conversation(connection: &Connection, tenant: &str, id: &str) -> Result<(), Error> {
    let delete = "DELETE FROM conversation WHERE tenant = ?1 AND id = ?2 RETURNING segment";
    let mut delete = connection.prepare_cached(delete).map_err(failure)?;
    let segment = delete.query_row(params![tenant, id], |row| row.get::<_, i64>(0)).optional().map_err(failure)?;
    let segment = segment.ok_or(Error::NotFound)?;
    let update = "UPDATE segment SET conversation = NULL WHERE tenant = ?1 AND segment = ?2";
    connection.prepare_cached(update).and_then(|mut sql| sql.execute(params![tenant, segment])).map_err(failure)?;
    trim(connection, tenant, segment)
}

pub(crate) fn append_items(connection: &Connection, tenant: &str, id: &str, items: &[PackedItem]) -> Result<(), Error> {
    if leased(connection, tenant, id)? {
        return Err(Error::Locked);
    }
    let (segment, upto) = place(connection, tenant, id)?;
    let upto = append(connection, tenant, segment, upto, items, &[])?;
    advance(connection, tenant, id, upto)
}

pub(crate) fn conversation_items(
    connection: &Connection,
    tenant: &str,
    id: &str,
    page: &Page,
) -> Result<ItemPage, Error> {
    let (segment, upto) = place(connection, tenant, id)?;
    let after = page.after.as_ref().map(|after| {
        let select = "SELECT min(pos), max(pos) FROM item WHERE tenant = ?1 AND segment = ?2 AND id = ?3";
        let mut select = connection.prepare_cached(select).map_err(failure)?;
        let ends = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let found: (Option<i64>, Option<i64>) =
            select.query_row(params![tenant, segment, after], ends).map_err(failure)?;
        let place = if page.order == Order::OldestFirst { found.1 } else { found.0 };
        place.ok_or(Error::NoSuchCursor)
    });
    let mut pager = Pager::new(page, upto, after.transpose()?);
    while let Some(places) = pager.next() {
        pager.take(range(connection, tenant, segment, places.start, places.end)?)?;
    }
    Ok(pager.finish())
}

pub(crate) fn conversation_history(connection: &Connection, tenant: &str, id: &str) -> Result<Vec<Item>, Error> {
    let (segment, upto) = place(connection, tenant, id)?;
    Ok(rows::complete(range(connection, tenant, segment, 0, upto)?, 0..upto)?.0)
}

pub(crate) fn conversation_item(connection: &Connection, tenant: &str, id: &str, item: &str) -> Result<Item, Error> {
    let (segment, _) = place(connection, tenant, id)?;
    let select = "SELECT body FROM item WHERE tenant = ?1 AND segment = ?2 AND id = ?3 AND hidden IS NULL \
                  AND length(body) > 0 ORDER BY pos DESC LIMIT 1";
    let mut select = connection.prepare_cached(select).map_err(failure)?;
    let body = select.query_row(params![tenant, segment, item], |row| row.get(0)).optional().map_err(failure)?;
    Ok(Item { id: item.to_owned(), body: unpack(body.ok_or(Error::NotFound)?)? })
}

/// Takes an item out of the list. Its place stays, so that later places keep their numbers; responses from before have
/// it still.
pub(crate) fn delete_conversation_item(
    connection: &Connection,
    tenant: &str,
    id: &str,
    item: &str,
) -> Result<StoredConversation, Error> {
    let (segment, upto) = place(connection, tenant, id)?;
    let update = "UPDATE item SET hidden = ?4 WHERE tenant = ?1 AND segment = ?2 AND id = ?3 \
                  AND hidden IS NULL AND length(body) > 0";
    let mut update = connection.prepare_cached(update).map_err(failure)?;
    if update.execute(params![tenant, segment, item, upto]).map_err(failure)? == 0 {
        return Err(Error::NotFound);
    }
    forget_hidden(connection, tenant, segment)?;
    conversation(connection, tenant, id)
}

/// Empties what was taken out of a conversation and no living history has any more.
pub(super) fn forget_hidden(connection: &Connection, tenant: &str, segment: i64) -> Result<(), Error> {
    let update = "UPDATE item SET body = x'' WHERE tenant = ?1 AND segment = ?2 AND hidden IS NOT NULL \
                  AND length(body) > 0 \
                  AND NOT EXISTS (SELECT 1 FROM response r WHERE r.tenant = ?1 AND r.segment = ?2 AND r.gone = 0 \
                                  AND r.upto > item.pos AND r.upto <= item.hidden) \
                  AND NOT EXISTS (SELECT 1 FROM segment s WHERE s.tenant = ?1 AND s.parent = ?2 \
                                  AND s.start > item.pos AND s.start <= item.hidden)";
    connection
        .prepare_cached(update)
        .and_then(|mut sql| sql.execute(params![tenant, segment]))
        .map(drop)
        .map_err(failure)
}

pub(crate) fn begin_turn(connection: &Connection, tenant: &str, lease: &Lease, millis: i64) -> Result<(), Error> {
    if leased(connection, tenant, &lease.conversation)? {
        return Err(Error::Locked);
    }
    let now: i64 = connection.query_row(NOW, [], |row| row.get(0)).map_err(failure)?;
    let update = "UPDATE conversation SET lease = ?3, leased_until = ?4 WHERE tenant = ?1 AND id = ?2";
    let mut update = connection.prepare_cached(update).map_err(failure)?;
    let until = now.saturating_add(millis);
    update.execute(params![tenant, lease.conversation, lease.token, until]).map(drop).map_err(failure)
}

pub(crate) fn extend_turn(connection: &Connection, tenant: &str, lease: &Lease, millis: i64) -> Result<(), Error> {
    let now: i64 = connection.query_row(NOW, [], |row| row.get(0)).map_err(failure)?;
    let update = "UPDATE conversation SET leased_until = ?4 WHERE tenant = ?1 AND id = ?2 AND lease = ?3";
    let mut update = connection.prepare_cached(update).map_err(failure)?;
    let until = now.saturating_add(millis);
    match update.execute(params![tenant, lease.conversation, lease.token, until]).map_err(failure)? {
        0 => Err(Error::Locked),
        _ => Ok(()),
    }
}

pub(crate) fn end_turn(connection: &Connection, tenant: &str, lease: &Lease) -> Result<(), Error> {
    let update = "UPDATE conversation SET lease = NULL, leased_until = NULL \
                  WHERE tenant = ?1 AND id = ?2 AND lease = ?3";
    let mut update = connection.prepare_cached(update).map_err(failure)?;
    update.execute(params![tenant, lease.conversation, lease.token]).map(drop).map_err(failure)
}

/// Whether somebody's turn is on, by the database's clock.
fn leased(connection: &Connection, tenant: &str, id: &str) -> Result<bool, Error> {
    let now: i64 = connection.query_row(NOW, [], |row| row.get(0)).map_err(failure)?;
    let select = "SELECT lease IS NOT NULL AND leased_until > ?3 FROM conversation WHERE tenant = ?1 AND id = ?2";
    let mut select = connection.prepare_cached(select).map_err(failure)?;
    let leased = select.query_row(params![tenant, id, now], |row| row.get(0)).optional().map_err(failure)?;
    leased.ok_or(Error::NotFound)
}

fn place(connection: &Connection, tenant: &str, id: &str) -> Result<(i64, i64), Error> {
    let select = "SELECT segment, upto FROM conversation WHERE tenant = ?1 AND id = ?2";
    let mut select = connection.prepare_cached(select).map_err(failure)?;
    let found = select.query_row(params![tenant, id], |row| Ok((row.get(0)?, row.get(1)?)));
    found.optional().map_err(failure)?.ok_or(Error::NotFound)
}

fn range(connection: &Connection, tenant: &str, segment: i64, from: i64, to: i64) -> Result<Vec<ItemRow>, Error> {
    let select = "SELECT pos, id, CASE WHEN hidden IS NULL THEN body ELSE x'' END FROM item \
                  WHERE tenant = ?1 AND segment = ?2 AND pos >= ?3 AND pos < ?4";
    let mut select = connection.prepare_cached(select).map_err(failure)?;
    let rows = select.query_map(params![tenant, segment, from, to], item_row).map_err(failure)?;
    rows.collect::<Result<_, _>>().map_err(failure)
}

/// Remembers that a conversation was used, where that matters.
pub(crate) fn touch(connection: &Connection, tenant: &str, id: &str, used: Option<i64>) -> Result<(), Error> {
    let Some(used) = used else { return Ok(()) };
    let update = "UPDATE conversation SET used = ?3 WHERE tenant = ?1 AND id = ?2";
    connection
        .prepare_cached(update)
        .and_then(|mut sql| sql.execute(params![tenant, id, used]))
        .map(drop)
        .map_err(failure)
}
