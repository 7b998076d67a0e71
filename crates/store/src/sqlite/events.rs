//! The event log of a turn.

use rusqlite::{Connection, OptionalExtension, params};

use super::read::body;
use super::{failure, jobs, sql, turns};
use crate::event::{EventReader, PackedEvents, last, out_of_order};
use crate::job::fence;
use crate::prepared::{FirstEvents, Prepared, PreparedEnd};
use crate::room::{Meter, Reading};
use crate::{Claim, Error, EventPage, Log, rows};

pub(crate) fn append_events(
    connection: &Connection,
    tenant: &str,
    id: &str,
    events: &PackedEvents,
    claim: Option<&Claim>,
    now: i64,
) -> Result<(), Error> {
    rows::running(turns::status(connection, tenant, id, now)?)?;
    if let Some(claim) = claim {
        fence(jobs::job(connection, tenant, id)?.as_ref(), claim)?;
    }
    let next = next(connection, tenant, id)?.ok_or(Error::NoLog)?;
    if events.first != next {
        return Err(out_of_order(next));
    }
    append(connection, tenant, id, events)
}

/// The log of a turn that is stored now.
pub(super) fn begin(
    connection: &Connection,
    tenant: &str,
    turn: &Prepared,
    first: &FirstEvents,
    now: i64,
) -> Result<(), Error> {
    let next = first.0.as_ref().map_or(0, |events| events.next);
    let ended = turn.status.is_final().then_some((next, now));
    let mut insert = connection.prepare_cached(sql::LOG_NEW).map_err(failure)?;
    let row = params![tenant, turn.id, ended.map(|(next, _)| next), ended.map(|(_, now)| now)];
    insert.execute(row).map_err(failure)?;
    first.0.as_ref().map_or(Ok(()), |events| append(connection, tenant, &turn.id, events))
}

/// The last events of a turn that ends now.
pub(super) fn end(connection: &Connection, tenant: &str, end: &PreparedEnd, now: i64) -> Result<(), Error> {
    let mut next = next(connection, tenant, &end.id)?;
    if let Some(events) = last(end.events.as_ref(), next)? {
        append(connection, tenant, &end.id, events)?;
        next = Some(events.next);
    }
    let Some(next) = next else { return Ok(()) };
    let mut update = connection.prepare_cached(sql::LOG_END).map_err(failure)?;
    update.execute(params![tenant, end.id, next, now]).map(drop).map_err(failure)
}

/// The number with which a turn's log goes on; None without a log.
pub(super) fn next(connection: &Connection, tenant: &str, id: &str) -> Result<Option<i64>, Error> {
    let mut log = connection.prepare_cached(sql::LOG).map_err(failure)?;
    if !log.exists(params![tenant, id]).map_err(failure)? {
        return Ok(None);
    }
    let mut select = connection.prepare_cached(sql::EVENT_NEXT).map_err(failure)?;
    let next = select.query_row(params![tenant, id], |row| row.get(0)).optional().map_err(failure)?;
    Ok(Some(next.unwrap_or(0)))
}

/// Appends what was found to go on where the log ends.
fn append(connection: &Connection, tenant: &str, id: &str, events: &PackedEvents) -> Result<(), Error> {
    let mut insert = connection.prepare_cached(sql::EVENTS_NEW).map_err(failure)?;
    insert.execute(params![tenant, id, events.first, events.next, events.packed]).map(drop).map_err(failure)
}

/// A log of a turn that has ended: its tenant, its response, and the number after its last event.
type Ended = (String, String, i64);

/// Drops the logs of turns that ended before that moment.
pub(crate) fn sweep_logs(connection: &Connection, before: i64, batch: usize) -> Result<usize, Error> {
    let mut select = connection.prepare_cached(sql::LOGS_ENDED).map_err(failure)?;
    let ended = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let batch = i64::try_from(batch).unwrap_or(i64::MAX);
    let ended: Vec<Ended> =
        select.query_map(params![before, batch], ended).and_then(Iterator::collect).map_err(failure)?;
    for (tenant, id, next) in &ended {
        // One that never said anything is as good as none.
        let gone = if *next == 0 { sql::LOG_FORGET } else { sql::LOG_DROP };
        for statement in [gone, sql::EVENTS_DROP] {
            let mut statement = connection.prepare_cached(statement).map_err(failure)?;
            statement.execute(params![tenant, id]).map_err(failure)?;
        }
    }
    Ok(ended.len())
}

pub(crate) fn events_after(
    connection: &Connection,
    tenant: &str,
    id: &str,
    mut reader: EventReader,
    now: i64,
    reading: &Reading,
) -> Result<EventPage, Error> {
    let status = rows::status(turns::status(connection, tenant, id, now)?)?;
    let mut log = connection.prepare_cached(sql::LOG).map_err(failure)?;
    let log = log.query_row(params![tenant, id], |row| Ok((row.get(0)?, row.get(1)?))).optional().map_err(failure)?;
    let mut select = connection.prepare_cached(sql::EVENTS).map_err(failure)?;
    let mut found = select.query(params![tenant, id, reader.next(), reader.rows()]).map_err(failure)?;
    let mut meter = Meter::new(&reading.room);
    // One row after the other: what the page has no place for is not read.
    while !reader.is_full()
        && let Some(row) = found.next().map_err(failure)?
    {
        let packed = body(row, 1, &mut meter)?.unwrap_or_default().to_vec();
        reader.take(&reading.cipher, id, row.get(0).map_err(failure)?, packed)?;
    }
    Ok(reader.finish(status, Log::from_row(log), false))
}
