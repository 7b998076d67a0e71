//! Traces of all instances. Whoever writes them does it alone, in short transactions: they are seen in the order of their
//! numbers, and whoever follows misses none.

mod change;
#[cfg(test)]
#[cfg(unix)]
mod plans;
mod sql;

use std::collections::HashMap;
use std::ops::ControlFlow;

use deadpool_postgres::Transaction;
use tokio_postgres::Row;

use super::{Database, column, failure, text, typed};
use crate::Error;
use crate::trace::{Block, Chunk, Header, PayloadRow, Stored, TraceNumber, Visit, Walk};

/// "godex" and a three: the advisory lock of whoever writes traces.
const LOCK: i64 = 0x676f_6465_7803;

/// Summaries, and blocks, that are read at once.
const SUMMARIES: i64 = 512;
const BLOCKS: usize = 16;

impl Database {
    async fn traces<T>(&self, work: impl AsyncFnOnce(&Transaction<'_>) -> Result<T, Error>) -> Result<T, Error> {
        let limit = self.options.statement.as_millis().to_string();
        self.run(async |client| {
            let transaction = client.transaction().await.map_err(failure)?;
            transaction.query_typed(sql::BEGIN, typed![limit => TEXT, LOCK => INT8]).await.map_err(failure)?;
            let result = work(&transaction).await?;
            transaction.commit().await.map_err(failure)?;
            Ok(result)
        })
        .await
    }

    pub(crate) async fn walk_traces<V: Visit>(&self, walk: Walk, mut visitor: V) -> Result<V, Error> {
        let mut next = walk;
        loop {
            let summaries = self.summaries(next, visitor.by_ids()).await?;
            let Some((last, _)) = summaries.last() else { return Ok(visitor) };
            next = match next {
                Walk::NewestFirst { .. } => Walk::NewestFirst { before: last.first },
                Walk::OldestFirst { .. } => Walk::OldestFirst { from: last.last.saturating_add(1) },
            };
            let is_last = i64::try_from(summaries.len()).is_ok_and(|count| count < SUMMARIES);
            let mut left = summaries.into_iter();
            loop {
                // Asked anew for each few: what was seen may change what is wanted.
                let wanted: Vec<Header> = left
                    .by_ref()
                    .filter(|(header, ids)| visitor.wants(header) && (!visitor.by_ids() || visitor.wants_ids(ids)))
                    .map(|(header, _)| header)
                    .take(if visitor.by_ids() { 1 } else { BLOCKS })
                    .collect();
                if wanted.is_empty() {
                    break;
                }
                for block in self.blocks(wanted).await? {
                    if visitor.see(&block)? == ControlFlow::Break(()) {
                        return Ok(visitor);
                    }
                    // Taking blocks apart must not hold others up.
                    tokio::task::yield_now().await;
                }
            }
            if is_last {
                return Ok(visitor);
            }
        }
    }

    async fn summaries(&self, walk: Walk, with_ids: bool) -> Result<Vec<(Header, Vec<u8>)>, Error> {
        let (sql, from) = match walk {
            Walk::NewestFirst { before } => (sql::NEWEST_FIRST, before),
            Walk::OldestFirst { from } => (sql::OLDEST_FIRST, from),
        };
        self.read(async |client| {
            let few = typed![from => INT8, with_ids => BOOL, SUMMARIES => INT8];
            let rows = client.query_typed(sql, few).await.map_err(failure)?;
            rows.iter().map(|row| Ok((header(row)?, column::<Option<Vec<u8>>>(row, 8)?.unwrap_or_default()))).collect()
        })
        .await
    }

    /// Those of them that are still there, in the same order.
    async fn blocks(&self, headers: Vec<Header>) -> Result<Vec<Block>, Error> {
        let firsts: Vec<i64> = headers.iter().map(|header| header.first).collect();
        let rows = self
            .read(async |client| client.query_typed(sql::ROWS, typed![firsts => INT8_ARRAY]).await.map_err(failure));
        let mut found = HashMap::new();
        for row in rows.await? {
            found.insert(column::<i64>(&row, 0)?, (column(&row, 1)?, column(&row, 2)?));
        }
        let block = |header: Header| {
            let (names, rows) = found.remove(&header.first)?;
            Some(Block { header, ids: Vec::new(), names, rows })
        };
        Ok(headers.into_iter().filter_map(block).collect())
    }

    pub(crate) async fn stored_trace(&self, number: TraceNumber) -> Result<Option<Stored>, Error> {
        self.read(async |client| {
            let asked = typed![number => INT8];
            let row = client.query_typed_opt(sql::BLOCK_OF, asked).await.map_err(failure)?;
            let Some(block) = row.map(|row| block(&row)).transpose()?.filter(|block| number <= block.header.last)
            else {
                return Ok(None);
            };
            let chunk = client.query_typed_opt(sql::DOCUMENTS_OF, asked).await.map_err(failure)?;
            let chunk = chunk.map(|row| chunk_of(&row)).transpose()?;
            let rows = client.query_typed(sql::PAYLOADS_OF, asked).await.map_err(failure)?;
            let payload = |row: &Row| {
                Ok::<_, Error>(PayloadRow {
                    number,
                    name: text(row, 0)?,
                    cut_from: column(row, 1)?,
                    body: column(row, 2)?,
                })
            };
            let payloads = rows.iter().map(payload).collect::<Result<_, _>>()?;
            Ok(Some(Stored { block, chunk, payloads }))
        })
        .await
    }

    /// When the newest one began.
    pub(crate) async fn newest_trace(&self) -> Result<Option<i64>, Error> {
        self.read(async |client| {
            let row = client.query_typed_one(sql::NEWEST, &[]).await.map_err(failure)?;
            column(&row, 0)
        })
        .await
    }
}

fn header(row: &Row) -> Result<Header, Error> {
    Ok(Header {
        first: column(row, 0)?,
        last: column(row, 1)?,
        count: column(row, 2)?,
        began_min: column(row, 3)?,
        began_max: column(row, 4)?,
        slowest: column(row, 5)?,
        bytes: column(row, 6)?,
        terms: column(row, 7)?,
    })
}

fn block(row: &Row) -> Result<Block, Error> {
    Ok(Block { header: header(row)?, ids: column(row, 8)?, names: column(row, 9)?, rows: column(row, 10)? })
}

fn chunk_of(row: &Row) -> Result<Chunk, Error> {
    Ok(Chunk { first: column(row, 0)?, body: column(row, 1)? })
}
