//! The event log of a turn. An append is one statement, committed without waiting for the disk: a client that had seen more
//! than a power cut left is told by the turn's end, which is always on the disk.

use std::sync::Arc;

use deadpool_postgres::Transaction;

use super::read::bodies;
use super::{Database, column, failure, sql, turns, typed};
use crate::event::{EventReader, PackedEvents, out_of_order};
use crate::room::{Meter, Room};
use crate::{Claim, Error, EventPage, Log, Tenant, rows};

impl Database {
    pub(crate) async fn append_events(
        &self,
        tenant: &Tenant,
        id: &str,
        events: &PackedEvents,
        _: Option<&Claim>,
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
            ];
            match client.execute_typed(sql::EVENTS_APPEND, row).await.map_err(failure) {
                Ok(1) => return Ok(()),
                // Somebody else appended under this number.
                Ok(_) | Err(Error::Conflict) => {}
                Err(error) => return Err(error),
            }
            rows::running(turns::status(client, tenant, id, now).await?)?;
            let key = typed![tenant.key() => BYTEA, id.as_bytes() => BYTEA];
            let row = client.query_typed_opt(sql::EVENT_NEXT, key).await.map_err(failure)?;
            Err(out_of_order(row.map_or(Ok(0), |row| column(&row, 0))?))
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
        room: &Arc<dyn Room>,
    ) -> Result<EventPage, Error> {
        self.read(async |client| {
            let status = rows::status(turns::status(client, tenant, id, now).await?)?;
            let key = typed![
                tenant.key() => BYTEA,
                id.as_bytes() => BYTEA,
                reader.next() => INT8,
                reader.rows() => INT8,
                reader.packed_bytes() => INT8,
            ];
            let batch = |row: &tokio_postgres::Row| Ok((column(row, 0)?, column(row, 1)?, column::<bool>(row, 2)?));
            let found = bodies(client, sql::EVENTS, key, 1, &mut Meter::new(room), batch).await?;
            let mut cut = false;
            for (first, packed, last) in found {
                reader.take(first, packed)?;
                cut = !last;
            }
            Ok(reader.finish(status, Log::Kept, cut))
        })
        .await
    }
}

/// Appends what goes on where the log ends. Its turn is held by the transaction.
pub(super) async fn append(
    transaction: &Transaction<'_>,
    tenant: &[u8],
    id: &str,
    events: &PackedEvents,
) -> Result<(), Error> {
    let key = typed![tenant => BYTEA, id.as_bytes() => BYTEA];
    let row = transaction.query_typed_opt(sql::EVENT_NEXT, key).await.map_err(failure)?;
    let next = row.map_or(Ok(0), |row| column(&row, 0))?;
    if events.first != next {
        return Err(out_of_order(next));
    }
    let row = typed![
        tenant => BYTEA,
        id.as_bytes() => BYTEA,
        events.first => INT8,
        events.next => INT8,
        events.packed => BYTEA,
    ];
    transaction.execute_typed(sql::EVENTS_NEW, row).await.map(drop).map_err(failure)
}
