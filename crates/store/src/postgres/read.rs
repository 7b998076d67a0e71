//! Reading: histories, responses, lists, items. A history is two queries that travel together.

use std::collections::HashMap;
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use deadpool_postgres::Object;
use futures_util::TryStreamExt;
use futures_util::future::try_join;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::{Database, column, failure, maybe_text, sql, text, typed};
use crate::packed::{length, unpack};
use crate::room::{Meter, Room};
use crate::rows::{self, ItemRow, Pager, TurnRow};
use crate::{ChainLimits, Error, History, Item, ItemPage, Order, Page, StoredResponse, Tenant};

impl Database {
    pub(crate) async fn history(
        &self,
        tenant: &Tenant,
        id: &str,
        limits: ChainLimits,
        now: i64,
        room: &Arc<dyn Room>,
    ) -> Result<History, Error> {
        self.read(async |client| {
            let key = typed![tenant.key() => BYTEA, id.as_bytes() => BYTEA];
            let turns = async { client.query_typed(sql::TURNS, key).await.map_err(failure) };
            let mut meter = Meter::new(room);
            let (turns, items) = try_join(turns, items(client, tenant, id, 0..i64::MAX, &mut meter)).await?;
            let chain = rows::chain(turns.iter().map(turn).collect::<Result<_, _>>()?, id, limits, now)?;
            let hashes = chain.iter().filter(|_| limits.settings).filter_map(|turn| turn.settings.as_deref());
            let settings = settings(client, tenant, hashes.collect(), &mut meter).await?;
            rows::history(chain, items, &settings)
        })
        .await
    }

    pub(crate) async fn response(
        &self,
        tenant: &Tenant,
        id: &str,
        now: i64,
        room: &Arc<dyn Room>,
    ) -> Result<StoredResponse, Error> {
        self.read(async |client| {
            let key = typed![tenant.key() => BYTEA, id.as_bytes() => BYTEA, now => INT8];
            let row = client.query_typed_opt(sql::RESPONSE, key).await.map_err(failure)?.ok_or(Error::NotFound)?;
            let places: Range<i64> = column(&row, 7)?..column(&row, 8)?;
            let hash: Option<&[u8]> = column(&row, 5)?;
            let (mut meter, mut other) = (Meter::new(room), Meter::new(room));
            meter.take(length(column(&row, 6)?))?;
            let items = items(client, tenant, id, places.clone(), &mut meter);
            let settings = settings(client, tenant, hash.into_iter().collect(), &mut other);
            let (items, settings) = try_join(items, settings).await?;
            Ok(StoredResponse {
                id: id.to_owned(),
                previous_response_id: maybe_text(&row, 0)?,
                conversation_id: maybe_text(&row, 1)?,
                status: rows::status(column(&row, 2)?)?,
                created_at: column(&row, 3)?,
                expires_at: column(&row, 4)?,
                head: unpack(column(&row, 6)?)?,
                settings: settings.into_values().next(),
                output: rows::complete(items, places)?.0,
            })
        })
        .await
    }

    pub(crate) async fn input_items(
        &self,
        tenant: &Tenant,
        id: &str,
        page: &Page,
        now: i64,
        room: &Arc<dyn Room>,
    ) -> Result<ItemPage, Error> {
        self.read(async |client| {
            let key = typed![tenant.key() => BYTEA, id.as_bytes() => BYTEA, now => INT8];
            let row = client.query_typed_opt(sql::INPUTS, key).await.map_err(failure)?.ok_or(Error::NotFound)?;
            let upto: i64 = column(&row, 0)?;
            let mut place = None;
            if let Some(after) = &page.after {
                let key = typed![tenant.key() => BYTEA, id.as_bytes() => BYTEA, after.as_bytes() => BYTEA];
                let row = client.query_typed_one(sql::CURSOR, key).await.map_err(failure)?;
                // Of several with this id, the one that makes progress.
                let pos: Option<i64> = column(&row, usize::from(page.order == Order::OldestFirst))?;
                place = Some(pos.filter(|pos| *pos < upto).ok_or(Error::NoSuchCursor)?);
            }
            let mut pager = Pager::new(page, upto, place, room);
            while let Some(places) = pager.next() {
                let rows = items(client, tenant, id, places.clone(), &mut pager.meter).await;
                pager.take(places, rows)?;
            }
            Ok(pager.finish())
        })
        .await
    }

    pub(crate) async fn own_input(
        &self,
        tenant: &Tenant,
        id: &str,
        now: i64,
        room: &Arc<dyn Room>,
    ) -> Result<Vec<Item>, Error> {
        self.read(async |client| {
            let key = typed![tenant.key() => BYTEA, id.as_bytes() => BYTEA, now => INT8];
            let row = client.query_typed_opt(sql::OWN_PLACES, key).await.map_err(failure)?.ok_or(Error::NotFound)?;
            let places: Range<i64> = column(&row, 0)?..column(&row, 1)?;
            let items = items(client, tenant, id, places.clone(), &mut Meter::new(room)).await?;
            Ok(rows::complete(items, places)?.0)
        })
        .await
    }

    /// For each id the newest item that still has a body, and an owner that is there.
    pub(crate) async fn items_by_id(
        &self,
        tenant: &Tenant,
        ids: &[String],
        now: i64,
        room: &Arc<dyn Room>,
    ) -> Result<Vec<Option<Item>>, Error> {
        self.read(async |client| {
            let wanted: Vec<&[u8]> = ids.iter().map(String::as_bytes).collect();
            let key = typed![tenant.key() => BYTEA, wanted => BYTEA_ARRAY, now => INT8];
            let named = |row: &Row| Ok((text(row, 0)?, unpack(column(row, 1)?)?));
            let found = bodies(client, sql::NEWEST, key, 1, &mut Meter::new(room), named).await?;
            let found: HashMap<String, Bytes> = found.into_iter().collect();
            Ok(ids.iter().map(|id| Some(Item { id: id.clone(), body: found.get(id)?.clone() })).collect())
        })
        .await
    }
}

fn turn(row: &Row) -> Result<TurnRow, Error> {
    Ok(TurnRow {
        id: text(row, 0)?,
        previous: maybe_text(row, 1)?,
        status: column(row, 2)?,
        depth: column(row, 3)?,
        gone: column(row, 4)?,
        own: column(row, 5)?,
        middle: column(row, 6)?,
        upto: column(row, 7)?,
        settings: column(row, 8)?,
        expires: column(row, 9)?,
    })
}

/// Rows with a packed body in that column, each taken from the connection only if there is room for it.
pub(super) async fn bodies<T>(
    client: &Object,
    statement: &str,
    parameters: &[(&(dyn ToSql + Sync), Type)],
    index: usize,
    meter: &mut Meter,
    read: impl Fn(&Row) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let parameters = parameters.iter().map(|(value, kind)| (*value, kind.clone()));
    let mut rows = pin!(client.query_typed_raw(statement, parameters).await.map_err(failure)?);
    let mut found = Vec::new();
    while let Some(row) = rows.try_next().await.map_err(failure)? {
        meter.take(column::<Option<&[u8]>>(&row, index)?.map_or(0, length))?;
        found.push(read(&row)?);
    }
    Ok(found)
}

async fn items(
    client: &Object,
    tenant: &Tenant,
    id: &str,
    places: Range<i64>,
    meter: &mut Meter,
) -> Result<Vec<ItemRow>, Error> {
    let key = typed![
        tenant.key() => BYTEA,
        id.as_bytes() => BYTEA,
        places.start => INT8,
        places.end => INT8,
    ];
    bodies(client, sql::ITEMS, key, 2, meter, item_row).await
}

pub(super) fn item_row(row: &Row) -> Result<ItemRow, Error> {
    Ok(ItemRow { pos: column(row, 0)?, id: text(row, 1)?, body: column(row, 2)? })
}

async fn settings(
    client: &Object,
    tenant: &Tenant,
    mut hashes: Vec<&[u8]>,
    meter: &mut Meter,
) -> Result<HashMap<Vec<u8>, Bytes>, Error> {
    hashes.sort_unstable();
    hashes.dedup();
    if hashes.is_empty() {
        return Ok(HashMap::new());
    }
    let key = typed![tenant.key() => BYTEA, hashes => BYTEA_ARRAY];
    let hashed = |row: &Row| Ok((column(row, 0)?, unpack(column(row, 1)?)?));
    Ok(bodies(client, sql::SETTINGS, key, 1, meter, hashed).await?.into_iter().collect())
}
