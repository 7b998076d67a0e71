//! Traces in a file of their own, with a thread that writes and others that read, like a store's. Everything is lost
//! without harm: a file that is damaged is moved aside for a new one.

mod migrate;
mod open;
#[cfg(test)]
mod plans;
mod prune;
mod rekey;
mod sql;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{Database, failure};
use crate::trace::{
    Block, Chunk, Header, NewTrace, PayloadRow, Stored, TraceNumber, TraceRekeyed, Visit, Walk, prepare,
};
use crate::{Encryption, Error, OpenError, Tenant};

pub(super) use open::open;

/// A chart does not hold a list up.
pub(super) const READERS: usize = 2;

/// Blocks that one write changes, at most: new traces have their turn in between.
const BATCH: usize = 16;

#[derive(Debug, Clone)]
pub(crate) struct TraceFile {
    database: Database,
    path: Arc<Path>,
}

impl TraceFile {
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        Ok(Self { database: Database::traces(path)?, path: path.into() })
    }

    pub(crate) async fn close(self) {
        self.database.close().await;
    }

    pub(crate) async fn add(&self, traces: Vec<NewTrace>, encryption: Encryption) -> Result<(), Error> {
        let added = self.database.write(move |connection| add(connection, &traces, &encryption)).await;
        if let Err(Error::Corrupt(_)) = added {
            open::suspect(&self.path);
        }
        added
    }

    pub(crate) async fn walk<V: Visit>(&self, order: Walk, mut visitor: V) -> Result<V, Error> {
        let walked = move |connection: &Connection| {
            walk(connection, order, &mut visitor)?;
            Ok(visitor)
        };
        self.database.read(walked).await
    }

    pub(crate) async fn stored(&self, number: TraceNumber) -> Result<Option<Stored>, Error> {
        self.database.read(move |connection| stored(connection, number)).await
    }

    /// When the newest one began.
    pub(crate) async fn newest(&self) -> Result<Option<i64>, Error> {
        let newest = |connection: &Connection| connection.query_row(sql::NEWEST, [], |row| row.get(0)).map_err(failure);
        self.database.read(newest).await
    }

    pub(crate) async fn prune(&self, bytes: u64, before: i64) -> Result<bool, Error> {
        self.database.write(move |connection| prune::prune(connection, bytes, before)).await
    }

    pub(crate) async fn erase(&self, tenant: &Tenant, encryption: &Encryption) -> Result<u64, Error> {
        let mut count = 0;
        loop {
            let (mut from, mut found) = (Some(0), 0);
            while let Some(next) = from {
                let (tenant, encryption) = (tenant.clone(), encryption.clone());
                let work = move |connection: &Connection| prune::erase(connection, next, tenant.name(), &encryption);
                let (gone, after) = self.database.erase(work).await?;
                found += gone;
                from = after;
            }
            count += found;
            // Once more, for what came meanwhile.
            if found == 0 {
                break;
            }
        }
        self.database.scrub().await?;
        Ok(count)
    }

    pub(crate) async fn rekey(
        &self,
        encryption: &Encryption,
        told: &mut (dyn FnMut(&TraceRekeyed) + Send),
    ) -> Result<TraceRekeyed, Error> {
        let mut done = TraceRekeyed::default();
        for table in [rekey::Table::Documents, rekey::Table::Payloads] {
            let mut from = Some(i64::MIN);
            while let Some(after) = from {
                let encryption = encryption.clone();
                let step = self.database.write(move |connection| rekey::step(connection, table, after, &encryption));
                let step = step.await?;
                done.rewritten += step.rewritten;
                done.dropped += step.dropped;
                told(&done);
                from = step.next;
            }
        }
        if done != TraceRekeyed::default() {
            self.database.scrub().await?;
        }
        Ok(done)
    }
}

fn add(connection: &Connection, traces: &[NewTrace], encryption: &Encryption) -> Result<(), Error> {
    let newest = cached(connection, sql::SUMMARY_OF)?.query_row([i64::MAX], |row| Ok((header(row)?, row.get(8)?)));
    let newest = newest.optional().map_err(failure)?;
    let next: TraceNumber =
        cached(connection, sql::NEXT)?.query_row([], |row| row.get(0)).optional().map_err(failure)?.unwrap_or(1);
    let next = newest.as_ref().map_or(next, |(newest, _)| next.max(newest.last.saturating_add(1)));
    let newest = newest.map(|(header, ids)| block(connection, header, ids)).transpose()?;
    for change in prepare(newest, next, traces, encryption)? {
        put(connection, &change.block)?;
        for chunk in &change.chunks {
            let row = params![chunk.first, chunk.body];
            cached(connection, sql::DOCUMENTS_PUT)?.execute(row).map_err(failure)?;
        }
        for payload in &change.payloads {
            let row = params![payload.number, payload.name, payload.cut_from, payload.body];
            cached(connection, sql::PAYLOAD_PUT)?.execute(row).map_err(failure)?;
        }
    }
    Ok(())
}

fn put(connection: &Connection, block: &Block) -> Result<(), Error> {
    let header = &block.header;
    let row = params![
        header.first,
        header.last,
        header.count,
        header.began_min,
        header.began_max,
        header.slowest,
        header.bytes,
        header.terms,
        block.ids,
    ];
    cached(connection, sql::BLOCK_PUT)?.execute(row).map_err(failure)?;
    let rows = params![header.first, block.names, block.rows];
    cached(connection, sql::ROWS_PUT)?.execute(rows).map(drop).map_err(failure)
}

fn cached<'c>(connection: &'c Connection, sql: &str) -> Result<rusqlite::CachedStatement<'c>, Error> {
    connection.prepare_cached(sql).map_err(failure)
}

fn header(row: &Row<'_>) -> rusqlite::Result<Header> {
    Ok(Header {
        first: row.get(0)?,
        last: row.get(1)?,
        count: row.get(2)?,
        began_min: row.get(3)?,
        began_max: row.get(4)?,
        slowest: row.get(5)?,
        bytes: row.get(6)?,
        terms: row.get(7)?,
    })
}

/// The block of a summary.
fn block(connection: &Connection, header: Header, ids: Vec<u8>) -> Result<Block, Error> {
    let rows = cached(connection, sql::ROWS)?.query_row([header.first], |row| Ok((row.get(0)?, row.get(1)?)));
    let (names, rows) = rows.optional().map_err(failure)?.ok_or_else(incomplete)?;
    Ok(Block { header, ids, names, rows })
}

fn incomplete() -> Error {
    Error::corrupt("a block of traces is not whole")
}

fn walk(connection: &Connection, order: Walk, visitor: &mut impl Visit) -> Result<(), Error> {
    let (mut blocks, from) = match order {
        Walk::NewestFirst { before } => (cached(connection, sql::NEWEST_FIRST)?, before),
        Walk::OldestFirst { from } => (cached(connection, sql::OLDEST_FIRST)?, from),
    };
    let mut blocks = blocks.query([from]).map_err(failure)?;
    while let Some(row) = blocks.next().map_err(failure)? {
        let header = header(row).map_err(failure)?;
        if !visitor.wants(&header) {
            continue;
        }
        if visitor.by_ids() {
            let ids = row.get_ref(8).and_then(|ids| Ok(ids.as_blob()?)).map_err(failure)?;
            if !visitor.wants_ids(ids) {
                continue;
            }
        }
        if visitor.see(&block(connection, header, Vec::new())?)? == ControlFlow::Break(()) {
            break;
        }
    }
    Ok(())
}

fn stored(connection: &Connection, number: TraceNumber) -> Result<Option<Stored>, Error> {
    let summary = cached(connection, sql::SUMMARY_OF)?.query_row([number], header).optional().map_err(failure)?;
    let Some(summary) = summary.filter(|summary| number <= summary.last) else { return Ok(None) };
    let block = block(connection, summary, Vec::new())?;
    let chunk = cached(connection, sql::DOCUMENTS_OF)?.query_row([number], chunk).optional().map_err(failure)?;
    let mut payloads = cached(connection, sql::PAYLOADS_OF)?;
    let payload =
        |row: &Row<'_>| Ok(PayloadRow { number, name: row.get(0)?, cut_from: row.get(1)?, body: row.get(2)? });
    let payloads = payloads.query_map([number], payload).and_then(Iterator::collect).map_err(failure)?;
    Ok(Some(Stored { block, chunk, payloads }))
}

fn chunk(row: &Row<'_>) -> rusqlite::Result<Chunk> {
    Ok(Chunk { first: row.get(0)?, body: row.get(1)? })
}
