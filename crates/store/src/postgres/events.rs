//! The event log of a turn. An append is one statement.

use deadpool_postgres::Transaction;

use super::read::bodies;
use super::{Database, column, failure, jobs, sql, turns, typed};
use crate::event::{EventReader, PackedEvents, last, out_of_order};
use crate::job::fence;
use crate::prepared::{FirstEvents, Prepared, PreparedEnd};
use crate::room::{Meter, Reading};
use crate::{Claim, Error, EventPage, Log, Tenant, rows};

impl Database {
    pub(crate) async fn append_events(
        &self,
        tenant: &Tenant,
        id: &str,
        events: &PackedEvents,
        claim: Option<&Claim>,
        now: i64,
    ) -> Result<(), Error> {
        self.read(async |client| {
            let row = typed![
                tenant.key() => BYTEA,
                id.as_bytes() => BYTEA,
                events.first => INT8,
                events.next => INT8,
                events.packed => BYTEA,
                now => INT8,
                claim.map(|claim| claim.attempt) => INT8,
                claim.map(|claim| &claim.worker.0[..]) => BYTEA,
            ];
            match client.execute_typed(sql::EVENTS_APPEND, row).await.map_err(failure) {
                Ok(1) => return Ok(()),
                // Somebody else appended under this number.
                Ok(_) | Err(Error::Conflict) => {}
                Err(error) => return Err(error),
            }
            rows::running(turns::status(client, tenant, id, now).await?)?;
            if let Some(claim) = claim {
                fence(jobs::job(client, tenant, id).await?.as_ref(), claim)?;
            }
            let key = typed![tenant.key() => BYTEA, id.as_bytes() => BYTEA];
            let row = client.query_typed_opt(sql::LOG_NEXT, key).await.map_err(failure)?.ok_or(Error::NoLog)?;
            Err(out_of_order(column(&row, 0)?))
        })
        .await
    }

    /// The status is read first: if it is final, the events that are read then are all there will be.
    pub(crate) async fn events_after(
        &self,
        tenant: &Tenant,
        id: &str,
        mut reader: EventReader,
        now: i64,
        reading: &Reading,
    ) -> Result<EventPage, Error> {
        self.read(async |client| {
            let key = typed![tenant.key() => BYTEA, id.as_bytes() => BYTEA, now => INT8];
            let row = client.query_typed_opt(sql::LOG_STATUS, key).await.map_err(failure)?.ok_or(Error::NotFound)?;
            let status = rows::status(column(&row, 0)?)?;
            let (next, dropped): (Option<i64>, Option<bool>) = (column(&row, 1)?, column(&row, 2)?);
            let key = typed![
                tenant.key() => BYTEA,
                id.as_bytes() => BYTEA,
                reader.next() => INT8,
                reader.rows() => INT8,
                reader.packed_bytes() => INT8,
            ];
            let batch = |row: &tokio_postgres::Row| Ok((column(row, 0)?, column(row, 1)?, column::<bool>(row, 2)?));
            let found = bodies(client, sql::EVENTS, key, 1, &mut Meter::new(&reading.room), batch).await?;
            let mut cut = false;
            for (first, packed, last) in found {
                reader.take(&reading.cipher, id, first, packed)?;
                cut = !last;
            }
            // What ended before its end is read has been dropped since the status was.
            let short = !cut && !reader.is_full() && next.is_some_and(|next| reader.next() < next);
            let dropped = dropped.map(|dropped| dropped || short);
            Ok(reader.finish(status, Log::from_row(dropped.map(|dropped| (next, dropped))), cut))
        })
        .await
    }

    /// Drops the logs of turns that ended before that moment.
    pub(crate) async fn sweep_logs(&self, before: i64, batch: usize) -> Result<usize, Error> {
        let batch = i64::try_from(batch).unwrap_or(i64::MAX);
        self.read(async |client| {
            let row = client.query_typed_one(sql::LOGS_SWEEP, typed![before => INT8, batch => INT8]).await;
            Ok(usize::try_from(column::<i64>(&row.map_err(failure)?, 0)?).unwrap_or(0))
        })
        .await
    }
}

/// The log of a turn that is stored now.
pub(super) async fn begin(
    transaction: &Transaction<'_>,
    tenant: &[u8],
    turn: &Prepared,
    now: i64,
) -> Result<(), Error> {
    let Some(FirstEvents(first)) = &turn.log else { return Ok(()) };
    let next = first.as_ref().map_or(0, |events| events.next);
    let ended = turn.status.is_final().then_some((next, now));
    let row = typed![
        tenant => BYTEA,
        turn.id.as_bytes() => BYTEA,
        ended.map(|(next, _)| next) => INT8,
        ended.map(|(_, now)| now) => INT8,
    ];
    transaction.execute_typed(sql::LOG_NEW, row).await.map_err(failure)?;
    match first {
        Some(events) => append(transaction, tenant, &turn.id, events).await,
        None => Ok(()),
    }
}

/// The last events of a turn that ends now, and is held by the transaction.
pub(super) async fn end(
    transaction: &Transaction<'_>,
    tenant: &[u8],
    end: &PreparedEnd,
    now: i64,
) -> Result<(), Error> {
    let key = typed![tenant => BYTEA, end.id.as_bytes() => BYTEA];
    let row = transaction.query_typed_opt(sql::LOG_NEXT, key).await.map_err(failure)?;
    let mut next: Option<i64> = row.map(|row| column(&row, 0)).transpose()?;
    if let Some(events) = last(end.events.as_ref(), next)? {
        append(transaction, tenant, &end.id, events).await?;
        next = Some(events.next);
    }
    let Some(next) = next else { return Ok(()) };
    let row = typed![tenant => BYTEA, end.id.as_bytes() => BYTEA, next => INT8, now => INT8];
    transaction.execute_typed(sql::LOG_END, row).await.map(drop).map_err(failure)
}

/// Appends what was found to go on where the log ends.
async fn append(transaction: &Transaction<'_>, tenant: &[u8], id: &str, events: &PackedEvents) -> Result<(), Error> {
    let row = typed![
        tenant => BYTEA,
        id.as_bytes() => BYTEA,
        events.first => INT8,
        events.next => INT8,
        events.packed => BYTEA,
    ];
    transaction.execute_typed(sql::EVENTS_NEW, row).await.map(drop).map_err(failure)
}
