//! Taking away: deletion erases content and breaks chains; a sweep only forgets responses, and what no living history
//! needs any more goes with them.

use rusqlite::{Connection, OptionalExtension, params};

use super::conversations::forget_hidden;
use super::failure;
use crate::Error;
use crate::erasure::{Candidate, Owner, Segment, erasure, owners};
use crate::rows::gone;

/// How long a deleted id is remembered, so that a late writer cannot bring it back.
const REMEMBERED_MS: i64 = 24 * 60 * 60 * 1000;

/// The database's clock, in Unix milliseconds.
pub(super) const NOW: &str = "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)";

const TREE: &str = "
    WITH RECURSIVE up (segment, parent, start) AS (
      SELECT segment, parent, start FROM segment WHERE tenant = ?1 AND segment = ?2
      UNION ALL
      SELECT s.segment, s.parent, s.start FROM up JOIN segment s ON s.tenant = ?1 AND s.segment = up.parent
      WHERE up.start > ?3),
    tree (segment, parent, start, conversation) AS (
      SELECT s.segment, s.parent, s.start, s.conversation FROM up
      JOIN segment s ON s.tenant = ?1 AND s.segment = up.segment WHERE up.start <= ?3
      UNION ALL
      SELECT s.segment, s.parent, s.start, s.conversation FROM tree
      JOIN segment s ON s.tenant = ?1 AND s.parent = tree.segment WHERE s.start > ?3)
    SELECT segment, parent, start, conversation IS NOT NULL FROM tree";

pub(crate) fn delete_response(connection: &Connection, tenant: &str, id: &str) -> Result<(), Error> {
    let select = "SELECT segment, own, upto, settings FROM response WHERE tenant = ?1 AND id = ?2 AND gone = ?3";
    let mut select = connection.prepare_cached(select).map_err(failure)?;
    let found = select.query_row(params![tenant, id, gone::LIVE], |row| {
        let victim = Owner { segment: row.get(0)?, own: row.get(1)?, upto: row.get(2)? };
        Ok((victim, row.get::<_, Option<Vec<u8>>>(3)?))
    });
    let (victim, settings) = found.optional().map_err(failure)?.ok_or(Error::NotFound)?;
    let now: i64 = connection.query_row(NOW, [], |row| row.get(0)).map_err(failure)?;
    let update = "UPDATE response SET gone = ?3, expires = ?4, settings = NULL, head = x'' \
                  WHERE tenant = ?1 AND id = ?2";
    let mut update = connection.prepare_cached(update).map_err(failure)?;
    update.execute(params![tenant, id, gone::DELETED, now + REMEMBERED_MS]).map_err(failure)?;
    erase(connection, tenant, victim)?;
    forget_settings(connection, tenant, settings)?;
    trim(connection, tenant, victim.segment)
}

fn erase(connection: &Connection, tenant: &str, victim: Owner) -> Result<(), Error> {
    let mut select = connection.prepare_cached(TREE).map_err(failure)?;
    let segment = |row: &rusqlite::Row<'_>| {
        Ok(Segment { id: row.get(0)?, parent: row.get(1)?, start: row.get(2)?, conversation: row.get(3)? })
    };
    let tree = select.query_map(params![tenant, victim.segment, victim.own], segment).map_err(failure)?;
    let tree: Vec<Segment> = tree.collect::<Result<_, _>>().map_err(failure)?;
    let select = "SELECT own, upto, id, previous, gone FROM response \
                  WHERE tenant = ?1 AND segment = ?2 AND upto > ?3 AND gone <> ?4";
    let mut select = connection.prepare_cached(select).map_err(failure)?;
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
        let update = "UPDATE item SET body = NULL WHERE tenant = ?1 AND segment = ?2 AND pos >= ?3 AND pos < ?4";
        let mut update = connection.prepare_cached(update).map_err(failure)?;
        update.execute(params![tenant, segment, places.start, places.end]).map_err(failure)?;
    }
    for (segment, from) in erasure.unshare {
        let items = "UPDATE item SET prefix = NULL WHERE tenant = ?1 AND segment = ?2 AND pos >= ?3";
        let tips = "UPDATE response SET prefix = NULL WHERE tenant = ?1 AND segment = ?2 AND upto > ?3";
        for update in [items, tips] {
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
        let select = "SELECT parent, conversation IS NOT NULL, \
                      (SELECT max(upto) FROM response WHERE tenant = ?1 AND segment = ?2 AND gone = 0), \
                      (SELECT max(start) FROM segment WHERE tenant = ?1 AND parent = ?2) \
                      FROM segment WHERE tenant = ?1 AND segment = ?2";
        let mut select = connection.prepare_cached(select).map_err(failure)?;
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
        let delete = "DELETE FROM segment WHERE tenant = ?1 AND segment = ?2";
        connection.prepare_cached(delete).and_then(|mut sql| sql.execute(params![tenant, segment])).map_err(failure)?;
        next = parent;
    }
    Ok(())
}

/// Removes what is at or behind `reached`, or everything. Deleted ids stay until their time is over.
fn cut(connection: &Connection, tenant: &str, segment: i64, reached: Option<i64>) -> Result<(), Error> {
    let items = "DELETE FROM item WHERE tenant = ?1 AND segment = ?2 AND pos >= ?3";
    let mut items = connection.prepare_cached(items).map_err(failure)?;
    items.execute(params![tenant, segment, reached.unwrap_or(0)]).map_err(failure)?;
    let turns =
        "DELETE FROM response WHERE tenant = ?1 AND segment = ?2 AND upto > ?3 AND gone = ?4 RETURNING settings";
    let mut turns = connection.prepare_cached(turns).map_err(failure)?;
    let settings = turns.query_map(params![tenant, segment, reached.unwrap_or(-1), gone::EXPIRED], |row| row.get(0));
    let settings: Vec<Option<Vec<u8>>> = settings.map_err(failure)?.collect::<Result<_, _>>().map_err(failure)?;
    settings.into_iter().try_for_each(|settings| forget_settings(connection, tenant, settings))
}

fn forget_settings(connection: &Connection, tenant: &str, hash: Option<Vec<u8>>) -> Result<(), Error> {
    let Some(hash) = hash else { return Ok(()) };
    let delete = "DELETE FROM settings WHERE tenant = ?1 AND hash = ?2 \
                  AND NOT EXISTS (SELECT 1 FROM response WHERE tenant = ?1 AND settings = ?2)";
    connection.prepare_cached(delete).and_then(|mut sql| sql.execute(params![tenant, hash])).map(drop).map_err(failure)
}

/// Lets go of a response. Its items stay while a living history needs them.
pub(super) fn expire(connection: &Connection, tenant: &str, id: &str, segment: i64) -> Result<(), Error> {
    let update = "UPDATE response SET gone = ?3, expires = NULL, head = x'' WHERE tenant = ?1 AND id = ?2";
    let mut update = connection.prepare_cached(update).map_err(failure)?;
    update.execute(params![tenant, id, gone::EXPIRED]).map_err(failure)?;
    trim(connection, tenant, segment)
}

/// A response whose time is over: its tenant, id, segment, and whether it is gone already.
type Due = (String, String, i64, i64);

/// Lets go of up to `batch` responses whose time is over, and says of how many.
pub(crate) fn sweep(connection: &Connection, now: i64, batch: usize) -> Result<usize, Error> {
    let select = "SELECT tenant, id, segment, gone FROM response WHERE expires IS NOT NULL AND expires <= ?1 \
                  ORDER BY expires LIMIT ?2";
    let mut select = connection.prepare_cached(select).map_err(failure)?;
    let due = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
    let limit = i64::try_from(batch).unwrap_or(i64::MAX);
    let due: Vec<Due> = select.query_map(params![now, limit], due).and_then(Iterator::collect).map_err(failure)?;
    for (tenant, id, segment, gone) in &due {
        if *gone == gone::LIVE {
            expire(connection, tenant, id, *segment)?;
        } else {
            let delete = "DELETE FROM response WHERE tenant = ?1 AND id = ?2";
            connection.prepare_cached(delete).and_then(|mut sql| sql.execute(params![tenant, id])).map_err(failure)?;
        }
    }
    Ok(due.len())
}
