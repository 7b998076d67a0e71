//! The event log of a turn.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};

use super::read::body;
use super::{failure, sql, turns};
use crate::event::{EventReader, PackedEvents, out_of_order};
use crate::room::{Meter, Room};
use crate::{Error, EventPage, rows};

pub(crate) fn append_events(
    connection: &Connection,
    tenant: &str,
    id: &str,
    events: &PackedEvents,
    now: i64,
) -> Result<(), Error> {
    rows::running(turns::status(connection, tenant, id, now)?)?;
    append(connection, tenant, id, events)
}

/// Appends what goes on where the log ends.
pub(super) fn append(connection: &Connection, tenant: &str, id: &str, events: &PackedEvents) -> Result<(), Error> {
    let mut select = connection.prepare_cached(sql::EVENT_NEXT).map_err(failure)?;
    let next = select.query_row(params![tenant, id], |row| row.get(0)).optional().map_err(failure)?.unwrap_or(0);
    if events.first != next {
        return Err(out_of_order(next));
    }
    let mut insert = connection.prepare_cached(sql::EVENTS_NEW).map_err(failure)?;
    insert.execute(params![tenant, id, events.first, events.next, events.packed]).map(drop).map_err(failure)
}

pub(crate) fn events_after(
    connection: &Connection,
    tenant: &str,
    id: &str,
    mut reader: EventReader,
    now: i64,
    room: &Arc<dyn Room>,
) -> Result<EventPage, Error> {
    let status = rows::status(turns::status(connection, tenant, id, now)?)?;
    let mut select = connection.prepare_cached(sql::EVENTS).map_err(failure)?;
    let mut found = select.query(params![tenant, id, reader.next(), reader.rows()]).map_err(failure)?;
    let mut meter = Meter::new(room);
    // One row after the other: what the page has no place for is not read.
    while !reader.is_full()
        && let Some(row) = found.next().map_err(failure)?
    {
        let packed = body(row, 1, &mut meter)?.unwrap_or_default().to_vec();
        reader.take(row.get(0).map_err(failure)?, packed)?;
    }
    Ok(reader.finish(status, false))
}
