//! Taking away: deletion erases content and breaks chains; a sweep only forgets responses, and what no living history
//! needs any more goes with them.

use rusqlite::{Connection, OptionalExtension, params};

use super::conversations::forget_hidden;
use super::{failure, jobs, sql};
use crate::Error;
use crate::erasure::{Candidate, Owner, Segment, erasure, owners};
use crate::rows::gone;

/// How long a deleted id is remembered, so that a late writer cannot bring it back.
const REMEMBERED_MS: i64 = 24 * 60 * 60 * 1000;

pub(crate) fn delete_response(connection: &Connection, tenant: &str, id: &str, now: i64) -> Result<(), Error> {
    let mut select = connection.prepare_cached(sql::VICTIM).map_err(failure)?;
    let found = select.query_row(params![tenant, id, now], |row| {
        let victim = Owner { segment: row.get(0)?, own: row.get(1)?, upto: row.get(2)? };
        Ok((victim, row.get::<_, Option<Vec<u8>>>(3)?))
    });
    let (victim, settings) = found.optional().map_err(failure)?.ok_or(Error::NotFound)?;
    if jobs::is_background(connection, tenant, id)? {
        return Err(Error::Running);
    }
    // By the database's clock, as in Postgres, where several instances sweep.
    let today: i64 = connection.query_row(sql::NOW, [], |row| row.get(0)).map_err(failure)?;
    let mut update = connection.prepare_cached(sql::RESPONSE_DELETE).map_err(failure)?;
    update.execute(params![tenant, id, gone::DELETED, today + REMEMBERED_MS]).map_err(failure)?;
    erase(connection, tenant, victim)?;
    forget_settings(connection, tenant, settings)?;
    trim(connection, tenant, victim.segment)
}

fn erase(connection: &Connection, tenant: &str, victim: Owner) -> Result<(), Error> {
    let mut select = connection.prepare_cached(sql::TREE).map_err(failure)?;
    let segment = |row: &rusqlite::Row<'_>| {
        Ok(Segment { id: row.get(0)?, parent: row.get(1)?, start: row.get(2)?, conversation: row.get(3)? })
    };
    let tree = select.query_map(params![tenant, victim.segment, victim.own], segment).map_err(failure)?;
    let tree: Vec<Segment> = tree.collect::<Result<_, _>>().map_err(failure)?;
    let mut select = connection.prepare_cached(sql::OWNERS).map_err(failure)?;
    let mut candidates = Vec::new();
    for segment in tree.iter().map(|segment| segment.id) {
        let candidate = |row: &rusqlite::Row<'_>| {
            let owner = Owner { segment, own: row.get(0)?, upto: row.get(1)? };
            Ok(Candidate { owner, id: row.get(2)?, previous: row.get(3)?, gone: row.get(4)? })
        };
        let key = params![tenant, segment, victim.own, gone::DELETED];
        let found = select.query_map(key, candidate).map_err(failure)?;
        candidates.extend(found.collect::<Result<Vec<_>, _>>().map_err(failure)?);
    }
    let erasure = erasure(tree, &owners(candidates), victim);
    for (segment, places) in erasure.erase {
        let mut update = connection.prepare_cached(sql::ITEMS_ERASE).map_err(failure)?;
        update.execute(params![tenant, segment, places.start, places.end]).map_err(failure)?;
    }
    for (segment, from) in erasure.unshare {
        for update in [sql::ITEMS_UNSHARE, sql::RESPONSES_UNSHARE] {
            let mut update = connection.prepare_cached(update).map_err(failure)?;
            update.execute(params![tenant, segment, from]).map_err(failure)?;
        }
    }
    Ok(())
}

/// A segment's parent, whether a conversation owns it, and how far responses and branches reach.
type Reach = (Option<i64>, bool, Option<i64>, Option<i64>);

/// Removes the end of a segment that no living response, branch or conversation reaches; an empty one goes, and then
/// its parent is looked at.
pub(super) fn trim(connection: &Connection, tenant: &str, segment: i64) -> Result<(), Error> {
    let mut next = Some(segment);
    while let Some(segment) = next {
        let mut select = connection.prepare_cached(sql::REACH).map_err(failure)?;
        let reach = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
        let found: Option<Reach> = select.query_row(params![tenant, segment], reach).optional().map_err(failure)?;
        if let Some((_, true, ..)) = found {
            return forget_hidden(connection, tenant, segment);
        }
        let Some((parent, _, responses, branches)) = found else { return Ok(()) };
        let reached = responses.max(branches);
        cut(connection, tenant, segment, reached)?;
        if reached.is_some() {
            return Ok(());
        }
        connection
            .prepare_cached(sql::SEGMENT_DELETE)
            .and_then(|mut sql| sql.execute(params![tenant, segment]))
            .map_err(failure)?;
        next = parent;
    }
    Ok(())
}

/// Removes what is at or after `reached`, or everything. Deleted ids stay until their time is over.
fn cut(connection: &Connection, tenant: &str, segment: i64, reached: Option<i64>) -> Result<(), Error> {
    let mut items = connection.prepare_cached(sql::ITEMS_CUT).map_err(failure)?;
    items.execute(params![tenant, segment, reached.unwrap_or(0)]).map_err(failure)?;
    let mut turns = connection.prepare_cached(sql::RESPONSES_CUT).map_err(failure)?;
    let settings = turns.query_map(params![tenant, segment, reached.unwrap_or(-1), gone::EXPIRED], |row| row.get(0));
    let settings: Vec<Option<Vec<u8>>> = settings.map_err(failure)?.collect::<Result<_, _>>().map_err(failure)?;
    settings.into_iter().try_for_each(|settings| forget_settings(connection, tenant, settings))
}

pub(super) fn forget_settings(connection: &Connection, tenant: &str, hash: Option<Vec<u8>>) -> Result<(), Error> {
    let Some(hash) = hash else { return Ok(()) };
    connection
        .prepare_cached(sql::SETTINGS_FORGET)
        .and_then(|mut sql| sql.execute(params![tenant, hash]))
        .map(drop)
        .map_err(failure)
}

/// Expires a response. Its items stay while a living history needs them.
pub(super) fn expire(connection: &Connection, tenant: &str, id: &str, segment: i64) -> Result<(), Error> {
    let mut update = connection.prepare_cached(sql::RESPONSE_EXPIRE).map_err(failure)?;
    update.execute(params![tenant, id, gone::EXPIRED]).map_err(failure)?;
    trim(connection, tenant, segment)
}

/// A response whose time is over: its tenant, id, segment, and whether it is gone already.
type Due = (String, String, i64, i64);

/// Removes up to `batch` responses whose time is over, and says how many.
pub(crate) fn sweep(connection: &Connection, now: i64, batch: usize) -> Result<usize, Error> {
    let mut select = connection.prepare_cached(sql::DUE).map_err(failure)?;
    let due = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
    let limit = i64::try_from(batch).unwrap_or(i64::MAX);
    let due: Vec<Due> = select.query_map(params![now, limit], due).and_then(Iterator::collect).map_err(failure)?;
    for (tenant, id, segment, gone) in &due {
        if *gone == gone::LIVE {
            expire(connection, tenant, id, *segment)?;
        } else {
            connection
                .prepare_cached(sql::RESPONSE_FORGET)
                .and_then(|mut sql| sql.execute(params![tenant, id]))
                .map_err(failure)?;
        }
    }
    Ok(due.len())
}
