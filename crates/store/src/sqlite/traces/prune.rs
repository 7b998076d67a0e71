//! What goes: too old, too much, or a tenant's.

use rusqlite::{Connection, params};

use super::super::failure;
use super::{BATCH, block, cached, chunk, header, put, sql};
use crate::trace::{Chunk, Header, Remains, TraceNumber, may_have, without};
use crate::{Encryption, Error};

/// Free pages that are given back at once.
const PAGES: i64 = 1_024;

/// What a step of a sweep did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Swept {
    /// There is more to do.
    pub(super) more: bool,
    pub(super) changed: bool,
}

/// A few blocks of those that are too old or too much.
pub(super) fn prune(connection: &Connection, bytes: u64, before: i64) -> Result<Swept, Error> {
    let stored: i64 = cached(connection, sql::BYTES)?.query_row([], |row| row.get(0)).map_err(failure)?;
    let mut left = stored.max(0).cast_unsigned();
    let mut oldest = cached(connection, sql::OLDEST_FIRST)?;
    let mut gone: Vec<Header> = Vec::new();
    for summary in oldest.query_map([0], header).map_err(failure)? {
        let summary = summary.map_err(failure)?;
        if gone.len() == BATCH || !summary.is_beyond(bytes, left) && summary.began_max >= before {
            break;
        }
        left = left.saturating_sub(summary.bytes.max(0).cast_unsigned());
        gone.push(summary);
    }
    drop(oldest);
    for summary in &gone {
        delete(connection, summary)?;
        // What was left of blocks before, too.
        for upto in [sql::DOCUMENTS_UPTO, sql::PAYLOADS_UPTO] {
            cached(connection, upto)?.execute([summary.last]).map_err(failure)?;
        }
    }
    let shrinks = shrink(connection)?;
    Ok(Swept { more: gone.len() == BATCH || shrinks, changed: !gone.is_empty() })
}

/// Pages that are free are used again. Only when they are a large part of the file it is made smaller: that moves pages.
fn shrink(connection: &Connection) -> Result<bool, Error> {
    let count = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0)).map_err(failure);
    let (free, all) = (count("freelist_count")?, count("page_count")?);
    // A file that was begun by others may not be able to.
    if free < PAGES / 16 || free < all / 4 || count("auto_vacuum")? != 2 {
        return Ok(false);
    }
    let mut vacuum = connection.prepare(&format!("PRAGMA incremental_vacuum({PAGES})")).map_err(failure)?;
    let mut steps = vacuum.query([]).map_err(failure)?;
    while steps.next().map_err(failure)?.is_some() {}
    Ok(free > PAGES)
}

fn delete(connection: &Connection, summary: &Header) -> Result<(), Error> {
    let next = summary.last.saturating_add(1);
    cached(connection, sql::NEXT_SET)?.execute([next]).map_err(failure)?;
    for delete in [sql::BLOCK_DELETE, sql::ROWS_DELETE] {
        cached(connection, delete)?.execute([summary.first]).map_err(failure)?;
    }
    Ok(())
}

/// Removes a tenant's traces from a few blocks, from this number on. How many went, and where to go on.
pub(super) fn erase(
    connection: &Connection,
    from: TraceNumber,
    tenant: &str,
    encryption: &Encryption,
) -> Result<(u64, Option<TraceNumber>), Error> {
    let mut blocks = cached(connection, sql::OLDEST_FIRST)?;
    let mut wanted: Vec<Header> = Vec::new();
    for summary in blocks.query_map([from], header).map_err(failure)? {
        let summary = summary.map_err(failure)?;
        if may_have(&summary, tenant) {
            wanted.push(summary);
        }
        if wanted.len() == BATCH {
            break;
        }
    }
    drop(blocks);
    let after = wanted.last().filter(|_| wanted.len() == BATCH).map(|last| last.last.saturating_add(1));
    let mut count = 0;
    for summary in wanted {
        let block = block(connection, summary, Vec::new())?;
        if let Some(remains) = without(&block, tenant)? {
            count += remains.gone.len() as u64;
            replace(connection, &block.header, &remains, encryption)?;
        }
    }
    Ok((count, after))
}

fn replace(connection: &Connection, was: &Header, remains: &Remains, encryption: &Encryption) -> Result<(), Error> {
    match &remains.block {
        Some(block) => put(connection, block)?,
        None => delete(connection, was)?,
    }
    let mut between = cached(connection, sql::DOCUMENTS_BETWEEN)?;
    let chunks = between.query_map([was.first, was.last], chunk).map_err(failure)?;
    let chunks: Vec<Chunk> = chunks.collect::<Result<_, _>>().map_err(failure)?;
    for chunk in chunks {
        match remains.chunk(&chunk, encryption)? {
            Some(body) => cached(connection, sql::DOCUMENTS_PUT)?.execute(params![chunk.first, body]),
            None => cached(connection, sql::DOCUMENTS_DELETE)?.execute([chunk.first]),
        }
        .map_err(failure)?;
    }
    let mut payloads = cached(connection, sql::PAYLOADS_DELETE)?;
    for number in &remains.gone {
        payloads.execute([number]).map_err(failure)?;
    }
    Ok(())
}
