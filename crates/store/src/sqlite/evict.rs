//! The memory's limits: what was not used for longest goes first, whole responses and whole conversations.
//!
//! Evicting is a sweep, not an erasure: a history that is still given out is always whole.

use rusqlite::Connection;

use super::delete::expire;
use super::{failure, sql};
use crate::{Error, MemoryLimits};

/// Makes room; the newest stays, and so does a turn that has not ended. If those alone are too much, the store is full.
pub(super) fn enforce(connection: &Connection, limits: MemoryLimits) -> Result<(), Error> {
    while !fits(connection, limits)? {
        let mut select = connection.prepare_cached(sql::OLDEST).map_err(failure)?;
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(4)?));
        let oldest: Vec<(String, String, i64, bool)> =
            select.query_map([], row).and_then(Iterator::collect).map_err(failure)?;
        let [(tenant, id, segment, conversation), _] = oldest.as_slice() else { return Err(Error::Full) };
        if *conversation {
            super::conversations::delete_conversation(connection, tenant, id)?;
        } else {
            expire(connection, tenant, id, *segment)?;
        }
    }
    Ok(())
}

fn fits(connection: &Connection, limits: MemoryLimits) -> Result<bool, Error> {
    let number = |sql| {
        let mut select = connection.prepare_cached(sql)?;
        select.query_row([], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
    };
    let pages = number("PRAGMA page_count").map_err(failure)?;
    let free = number("PRAGMA freelist_count").map_err(failure)?;
    let size = number("PRAGMA page_size").map_err(failure)?;
    let responses = number(sql::LIVE).map_err(failure)?;
    Ok(pages.saturating_sub(free).saturating_mul(size) <= limits.bytes && responses <= limits.responses)
}
