//! Storing a turn, whole or begun: find what of it is held already, append the rest, point at it.

use rusqlite::{Connection, OptionalExtension, params};

use super::{failure, sql};
use crate::prefix::Prefix;
use crate::prepared::{Base, PackedItem, Prepared, longest};
use crate::rows::{self, prefix};
use crate::{Error, Lease, Parent};

pub(crate) fn put(
    connection: &Connection,
    tenant: &str,
    turn: &Prepared,
    now: i64,
    used: Option<i64>,
) -> Result<(), Error> {
    let mut taken = connection.prepare_cached(sql::RESPONSE_TAKEN).map_err(failure)?;
    if taken.exists(params![tenant, turn.id]).map_err(failure)? {
        return Err(Error::Conflict);
    }
    let begin = match &turn.parent {
        Parent::None => Base::ROOT,
        Parent::Response(id) => place_after(connection, tenant, id, turn.began(now), used)?,
        Parent::Conversation(lease) => leased(connection, tenant, lease, used)?,
    };
    let prefixes = turn.prefixes(begin.prefix);
    // What continues something stays right after that place: the chain is found along its path.
    let (base, held) = match turn.parent {
        Parent::None => share(connection, tenant, turn, &prefixes)?,
        _ => (begin, 0),
    };
    let fresh = turn.items.get(held..).unwrap_or_default();
    let segment = match (&turn.parent, turn.status.is_final()) {
        (Parent::Conversation(_), true) => segment(connection, tenant, base, true, fresh.is_empty())?,
        // The conversation does not have it before it is finished.
        (Parent::Conversation(_), false) => new_segment(connection, tenant, base.segment, base.at, None)?,
        (Parent::None | Parent::Response(_), _) => segment(connection, tenant, base, false, fresh.is_empty())?,
    };
    let upto = append(connection, tenant, segment, base.at, fresh, prefixes.get(held..).unwrap_or_default())?;
    keep_settings(connection, tenant, turn.settings.as_ref())?;
    if let Parent::Conversation(lease) = &turn.parent
        && turn.status.is_final()
    {
        end(connection, tenant, &lease.conversation, upto)?;
    }
    let inputs = i64::try_from(turn.inputs).unwrap_or(i64::MAX);
    let tip = prefixes.last().copied().unwrap_or(begin.prefix);
    let place = Placed { segment, own: begin.at, middle: begin.at + inputs, upto, tip, depth: begin.depth + 1 };
    respond(connection, tenant, turn, &place, used)
}

struct Placed {
    segment: i64,
    own: i64,
    middle: i64,
    upto: i64,
    tip: Option<Prefix>,
    depth: i64,
}

fn respond(
    connection: &Connection,
    tenant: &str,
    turn: &Prepared,
    place: &Placed,
    used: Option<i64>,
) -> Result<(), Error> {
    let (previous, conversation) = match &turn.parent {
        Parent::None => (None, None),
        Parent::Response(id) => (Some(id.as_str()), None),
        Parent::Conversation(lease) => (None, Some(lease.conversation.as_str())),
    };
    let mut insert = connection.prepare_cached(sql::RESPONSE_NEW).map_err(failure)?;
    let row = params![
        tenant,
        turn.id,
        place.segment,
        place.own,
        place.middle,
        place.upto,
        place.tip,
        previous,
        conversation,
        turn.status.code(),
        place.depth,
        turn.created,
        turn.expires,
        used.unwrap_or(0),
        turn.settings.as_ref().map(|(hash, _)| hash),
        turn.head,
    ];
    insert.execute(row).map(drop).map_err(failure)
}

/// The place after a response that is finished and had not expired by `began`.
fn place_after(connection: &Connection, tenant: &str, id: &str, began: i64, used: Option<i64>) -> Result<Base, Error> {
    let mut select = connection.prepare_cached(sql::RESPONSE_PLACE).map_err(failure)?;
    let found = select.query_row(params![tenant, id, began], |row| {
        let base =
            Base { segment: Some(row.get(0)?), at: row.get(1)?, prefix: prefix(row.get(2)?), depth: row.get(3)? };
        Ok((base, row.get::<_, i64>(4)?))
    });
    let (base, status) = found.optional().map_err(failure)?.ok_or(Error::NotFound)?;
    if !rows::status(status)?.is_final() {
        return Err(Error::Running);
    }
    super::read::touch(connection, tenant, id, used)?;
    Ok(base)
}

/// Settings are kept once, however many turns have them.
pub(super) fn keep_settings(
    connection: &Connection,
    tenant: &str,
    settings: Option<&(Prefix, Vec<u8>)>,
) -> Result<(), Error> {
    let Some((hash, body)) = settings else { return Ok(()) };
    connection
        .prepare_cached(sql::SETTINGS_KEEP)
        .and_then(|mut sql| sql.execute(params![tenant, hash, body]))
        .map(drop)
        .map_err(failure)
}

/// The end of a conversation whose lease is ours, or ran out without anybody else taking it.
pub(super) fn leased(connection: &Connection, tenant: &str, lease: &Lease, used: Option<i64>) -> Result<Base, Error> {
    let mut select = connection.prepare_cached(sql::LEASED).map_err(failure)?;
    let found = select.query_row(params![tenant, lease.conversation], |row| {
        let base = Base { segment: Some(row.get(0)?), at: row.get(1)?, prefix: None, depth: 0 };
        Ok((base, row.get::<_, Option<Vec<u8>>>(2)?))
    });
    let (base, holder) = found.optional().map_err(failure)?.ok_or(Error::NotFound)?;
    if holder.as_deref() != Some(&lease.token[..]) {
        return Err(Error::Locked);
    }
    super::conversations::touch(connection, tenant, &lease.conversation, used)?;
    Ok(base)
}

/// How much of the input is held already, and the place after that.
fn share(
    connection: &Connection,
    tenant: &str,
    turn: &Prepared,
    prefixes: &[Option<Prefix>],
) -> Result<(Base, usize), Error> {
    let mut select = connection.prepare_cached(sql::SHARED).map_err(failure)?;
    let mut found = None;
    let held = longest(turn.inputs, |count| {
        let Some(Some(prefix)) = count.checked_sub(1).and_then(|last| prefixes.get(last)) else { return Ok(false) };
        let row = select.query_row(params![tenant, prefix], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)));
        let row = row.optional().map_err(failure)?;
        if let Some((segment, pos)) = row {
            found = Some((count, segment, pos));
        }
        Ok::<_, Error>(row.is_some())
    })?;
    match found.filter(|(count, ..)| *count == held) {
        Some((_, segment, pos)) => Ok((Base { segment: Some(segment), at: pos + 1, ..Base::ROOT }, held)),
        None => Ok((Base::ROOT, 0)),
    }
}

/// The segment to append to: the base's own if nothing follows there yet, else a new one.
pub(super) fn segment(
    connection: &Connection,
    tenant: &str,
    base: Base,
    conversation: bool,
    nothing: bool,
) -> Result<i64, Error> {
    if let Some(segment) = base.segment {
        if conversation || nothing {
            return Ok(segment);
        }
        let mut free = connection.prepare_cached(sql::SEGMENT_FREE).map_err(failure)?;
        let free = free.query_row(params![tenant, segment, base.at], |row| row.get(0)).optional().map_err(failure)?;
        if free.ok_or_else(|| Error::corrupt("a response without its segment"))? {
            return Ok(segment);
        }
    }
    new_segment(connection, tenant, base.segment, base.at, None)
}

/// Numbered from 1 in each tenant. Asked for first and then written: a statement that does both and says the number makes
/// a table for its one row each time.
pub(super) fn new_segment(
    connection: &Connection,
    tenant: &str,
    parent: Option<i64>,
    start: i64,
    conversation: Option<&str>,
) -> Result<i64, Error> {
    let mut last = connection.prepare_cached(sql::SEGMENT_LAST).map_err(failure)?;
    let last: Option<i64> = last.query_row([tenant], |row| row.get(0)).optional().map_err(failure)?;
    let segment = last.unwrap_or(0) + 1;
    let mut insert = connection.prepare_cached(sql::SEGMENT_NEW).map_err(failure)?;
    insert.execute(params![tenant, segment, parent, start, conversation]).map_err(failure)?;
    Ok(segment)
}

/// Appends items and says where the list ends then.
pub(super) fn append(
    connection: &Connection,
    tenant: &str,
    segment: i64,
    at: i64,
    items: &[PackedItem],
    prefixes: &[Option<Prefix>],
) -> Result<i64, Error> {
    let mut insert = connection.prepare_cached(sql::ITEM_NEW).map_err(failure)?;
    let mut pos = at;
    for (index, item) in items.iter().enumerate() {
        let prefix = prefixes.get(index).copied().flatten();
        insert.execute(params![tenant, segment, pos, item.id, prefix, item.packed]).map_err(failure)?;
        pos += 1;
    }
    Ok(pos)
}

/// Sets where a conversation ends, and ends its lease.
pub(super) fn end(connection: &Connection, tenant: &str, conversation: &str, upto: i64) -> Result<(), Error> {
    let mut update = connection.prepare_cached(sql::CONVERSATION_ADVANCE).map_err(failure)?;
    update.execute(params![tenant, conversation, upto]).map(drop).map_err(failure)
}
