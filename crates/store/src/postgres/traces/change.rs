//! What is added, dropped, erased and written anew.

use deadpool_postgres::Transaction;

use super::super::{Database, column, failure, text, typed};
use super::{block, chunk_of, header, sql};
use crate::trace::{
    Block, Header, PayloadRow, Remains, Renewed, SealPlace, TraceBatch, TraceNumber, TraceRekeyed, may_have, prepare,
    renew, without,
};
use crate::{Encryption, Error, Tenant};

/// Blocks that one transaction changes, at most: others add in between.
const BATCH: usize = 8;
/// Rows that are sealed anew in one transaction.
const FEW: i64 = 32;

impl Database {
    pub(crate) async fn add_traces(
        &self,
        traces: &TraceBatch,
        encryption: &Encryption,
        room: i64,
    ) -> Result<(), Error> {
        self.traces(async |transaction| {
            let newest = transaction.query_typed_opt(sql::BLOCK_OF, typed![i64::MAX => INT8]).await.map_err(failure)?;
            let newest = newest.map(|row| block(&row)).transpose()?;
            let row = transaction.query_typed_one(sql::NEXT, &[]).await.map_err(failure)?;
            let next = column::<Option<i64>>(&row, 0)?.unwrap_or(1);
            let next = newest.as_ref().map_or(next, |newest| next.max(newest.header.last.saturating_add(1)));
            for change in prepare(newest, next, traces, encryption, room)? {
                put(transaction, &change.block).await?;
                let (firsts, bodies): (Vec<i64>, Vec<Vec<u8>>) =
                    change.chunks.into_iter().map(|chunk| (chunk.first, chunk.body)).unzip();
                let chunks = typed![firsts => INT8_ARRAY, bodies => BYTEA_ARRAY];
                transaction.execute_typed(sql::DOCUMENTS_PUT, chunks).await.map_err(failure)?;
                put_payloads(transaction, &change.payloads).await?;
            }
            Ok(())
        })
        .await
    }

    pub(crate) async fn prune_traces(&self, bytes: u64, before: i64) -> Result<bool, Error> {
        self.traces(async |transaction| {
            let row = transaction.query_typed_one(sql::BYTES, &[]).await.map_err(failure)?;
            let mut left = column::<i64>(&row, 0)?.max(0).cast_unsigned();
            let most = i64::try_from(BATCH).unwrap_or(i64::MAX);
            let oldest = typed![0_i64 => INT8, false => BOOL, most => INT8];
            let rows = transaction.query_typed(sql::OLDEST_FIRST, oldest).await.map_err(failure)?;
            let mut gone = Vec::new();
            for row in &rows {
                let summary = header(row)?;
                if !summary.is_beyond(bytes, left) && summary.began_max >= before {
                    break;
                }
                left = left.saturating_sub(summary.bytes.max(0).cast_unsigned());
                gone.push(summary);
            }
            if let Some(last) = gone.last() {
                let upto = last.last;
                delete(transaction, &gone).await?;
                for sql in [sql::DOCUMENTS_UPTO, sql::PAYLOADS_UPTO] {
                    transaction.execute_typed(sql, typed![upto => INT8]).await.map_err(failure)?;
                }
            }
            Ok(gone.len() == BATCH)
        })
        .await
    }

    pub(crate) async fn erase_traces(&self, tenant: &Tenant, encryption: &Encryption) -> Result<u64, Error> {
        let mut count = 0;
        loop {
            let (mut from, mut found) = (Some(0), 0);
            while let Some(next) = from {
                let (gone, after) = Box::pin(self.erase_few(next, tenant, encryption)).await?;
                found += gone;
                from = after;
            }
            count += found;
            // Once more, for what came meanwhile.
            if found == 0 {
                return Ok(count);
            }
        }
    }

    /// From a few blocks, from this number on. How many went, and where to go on.
    async fn erase_few(
        &self,
        from: TraceNumber,
        tenant: &Tenant,
        encryption: &Encryption,
    ) -> Result<(u64, Option<TraceNumber>), Error> {
        let summaries = self.summaries(super::Walk::OldestFirst { from }, false).await?;
        let is_last = i64::try_from(summaries.len()).is_ok_and(|count| count < super::SUMMARIES);
        let end = summaries.last().filter(|_| !is_last).map(|(last, _)| last.last.saturating_add(1));
        let mut wanted: Vec<Header> =
            summaries.into_iter().map(|(header, _)| header).filter(|header| may_have(header, tenant.name())).collect();
        let more = wanted.len() > BATCH;
        wanted.truncate(BATCH);
        let after = if more { wanted.last().map(|last| last.last.saturating_add(1)) } else { end };
        let mut count = 0;
        self.traces(async |transaction| {
            for summary in &wanted {
                // As it is by now.
                let row = typed![summary.first => INT8];
                let row = transaction.query_typed_opt(sql::BLOCK_OF, row).await.map_err(failure)?;
                let Some(block) = row.map(|row| block(&row)).transpose()? else { continue };
                if let Some(remains) = without(&block, tenant.name())? {
                    count += remains.gone.len() as u64;
                    replace(transaction, &block.header, &remains, encryption).await?;
                }
            }
            Ok(())
        })
        .await?;
        Ok((count, after))
    }

    pub(crate) async fn rekey_traces(
        &self,
        encryption: &Encryption,
        told: &mut (dyn FnMut(&TraceRekeyed) + Send),
    ) -> Result<TraceRekeyed, Error> {
        let mut done = TraceRekeyed::default();
        for documents in [true, false] {
            let mut from = Some((i64::MIN, i64::MIN));
            while let Some(after) = from {
                from = Box::pin(self.rekey_few(documents, after, encryption, &mut done)).await?;
                told(&done);
            }
        }
        Ok(done)
    }

    async fn rekey_few(
        &self,
        documents: bool,
        after: (i64, i64),
        encryption: &Encryption,
        done: &mut TraceRekeyed,
    ) -> Result<Option<(i64, i64)>, Error> {
        let (select, change, drop) = if documents {
            (sql::REKEY_DOCUMENTS, sql::DOCUMENTS_RENEW, sql::DOCUMENTS_DROP)
        } else {
            (sql::REKEY_PAYLOADS, sql::PAYLOAD_RENEW, sql::PAYLOAD_DROP)
        };
        let mut step = TraceRekeyed::default();
        let next = self.traces(async |transaction| {
            let few = typed![after.0 => INT8, after.1 => INT8, FEW => INT8];
            let rows = transaction.query_typed(select, few).await.map_err(failure)?;
            let mut last = None;
            for row in &rows {
                let (number, place): (i64, i64) = (column(row, 0)?, column(row, 1)?);
                let (name, body): (String, Vec<u8>) = (text(row, 2)?, column(row, 3)?);
                let bound = if documents { SealPlace::Documents(number) } else { SealPlace::Payload(number, &name) };
                match renew(encryption, bound, &body)? {
                    Renewed::AsItWas => {}
                    Renewed::New(body) => {
                        let row = typed![number => INT8, place => INT8, body => BYTEA];
                        transaction.execute_typed(change, row).await.map_err(failure)?;
                        step.rewritten += 1;
                    }
                    Renewed::Lost => {
                        let row = typed![number => INT8, place => INT8];
                        transaction.execute_typed(drop, row).await.map_err(failure)?;
                        step.dropped += 1;
                    }
                }
                last = Some((number, place));
            }
            Ok(last.filter(|_| i64::try_from(rows.len()).is_ok_and(|count| count == FEW)))
        });
        let next = next.await?;
        done.rewritten += step.rewritten;
        done.dropped += step.dropped;
        Ok(next)
    }
}

async fn put(transaction: &Transaction<'_>, block: &Block) -> Result<(), Error> {
    let header = &block.header;
    let row = typed![
        header.first => INT8,
        header.last => INT8,
        header.count => INT8,
        header.began_min => INT8,
        header.began_max => INT8,
        header.slowest => INT8,
        header.bytes => INT8,
        header.terms => BYTEA,
        block.ids => BYTEA,
        block.names => BYTEA,
        block.rows => BYTEA,
    ];
    transaction.execute_typed(sql::BLOCK_PUT, row).await.map(drop).map_err(failure)
}

async fn put_payloads(transaction: &Transaction<'_>, payloads: &[PayloadRow]) -> Result<(), Error> {
    if payloads.is_empty() {
        return Ok(());
    }
    let numbers: Vec<i64> = payloads.iter().map(|payload| payload.number).collect();
    let names: Vec<&[u8]> = payloads.iter().map(|payload| payload.name.as_bytes()).collect();
    let cut_from: Vec<Option<i64>> = payloads.iter().map(|payload| payload.cut_from).collect();
    let bodies: Vec<&[u8]> = payloads.iter().map(|payload| payload.body.as_slice()).collect();
    let rows = typed![numbers => INT8_ARRAY, names => BYTEA_ARRAY, cut_from => INT8_ARRAY, bodies => BYTEA_ARRAY];
    transaction.execute_typed(sql::PAYLOADS_PUT, rows).await.map(drop).map_err(failure)
}

/// Their numbers are not used again.
async fn delete(transaction: &Transaction<'_>, gone: &[Header]) -> Result<(), Error> {
    let next = gone.iter().map(|header| header.last.saturating_add(1)).max().unwrap_or(1);
    transaction.execute_typed(sql::NEXT_SET, typed![next => INT8]).await.map_err(failure)?;
    let firsts: Vec<i64> = gone.iter().map(|header| header.first).collect();
    let rows = typed![firsts => INT8_ARRAY];
    transaction.execute_typed(sql::BLOCKS_DELETE, rows).await.map(drop).map_err(failure)
}

async fn replace(
    transaction: &Transaction<'_>,
    was: &Header,
    remains: &Remains,
    encryption: &Encryption,
) -> Result<(), Error> {
    match &remains.block {
        Some(block) => put(transaction, block).await?,
        None => delete(transaction, std::slice::from_ref(was)).await?,
    }
    let between = typed![was.first => INT8, was.last => INT8];
    let rows = transaction.query_typed(sql::DOCUMENTS_BETWEEN, between).await.map_err(failure)?;
    let (mut firsts, mut bodies, mut gone) = (Vec::new(), Vec::new(), Vec::new());
    for row in &rows {
        let chunk = chunk_of(row)?;
        match remains.chunk(&chunk, encryption)? {
            Some(body) => {
                firsts.push(chunk.first);
                bodies.push(body);
            }
            None => gone.push(chunk.first),
        }
    }
    let left = typed![firsts => INT8_ARRAY, bodies => BYTEA_ARRAY];
    transaction.execute_typed(sql::DOCUMENTS_PUT, left).await.map_err(failure)?;
    transaction.execute_typed(sql::DOCUMENTS_DELETE, typed![gone => INT8_ARRAY]).await.map_err(failure)?;
    let payloads = typed![remains.gone => INT8_ARRAY];
    transaction.execute_typed(sql::PAYLOADS_DELETE, payloads).await.map(drop).map_err(failure)
}
