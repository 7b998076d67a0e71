//! Reading: histories, responses, lists, items. A history is two queries that travel together.

use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;
use deadpool_postgres::Object;
use futures_util::future::try_join;
use tokio_postgres::Row;

use super::{Database, column, failure, maybe_text, sql, text, typed};
use crate::packed::unpack;
use crate::rows::{self, ItemRow, Pager, TurnRow};
use crate::{ChainLimits, Error, History, Item, ItemPage, Order, Page, Status, StoredResponse, Tenant};

impl Database {
    pub(crate) async fn history(&self, tenant: &Tenant, id: &str, limits: ChainLimits) -> Result<History, Error> {
        self.read(async |client| {
            let key = typed![tenant.key() => BYTEA, id.as_bytes() => BYTEA];
            let turns = async { client.query_typed(sql::TURNS, key).await.map_err(failure) };
            let (turns, items) = try_join(turns, items(client, tenant, id, 0..i64::MAX)).await?;
            let chain = rows::chain(turns.iter().map(turn).collect::<Result<_, _>>()?, id, limits)?;
            let hashes = chain.iter().filter(|_| limits.settings).filter_map(|turn| turn.settings.as_deref());
            let settings = settings(client, tenant, hashes.collect()).await?;
            rows::history(chain, items, &settings)
        })
        .await
    }

    pub(crate) async fn response(&self, tenant: &Tenant, id: &str) -> Result<StoredResponse, Error> {
        self.read(async |client| {
            let key = typed![tenant.key() => BYTEA, id.as_bytes() => BYTEA];
            let row = client.query_typed_opt(sql::RESPONSE, key).await.map_err(failure)?.ok_or(Error::NotFound)?;
            let places: Range<i64> = column(&row, 7)?..column(&row, 8)?;
            let hash: Option<&[u8]> = column(&row, 5)?;
            let items = items(client, tenant, id, places.clone());
            let (items, settings) = try_join(items, settings(client, tenant, hash.into_iter().collect())).await?;
            let status = Status::from_code(column(&row, 2)?);
            Ok(StoredResponse {
                id: id.to_owned(),
                previous_response_id: maybe_text(&row, 0)?,
                conversation_id: maybe_text(&row, 1)?,
                status: status.ok_or_else(|| Error::corrupt("a response has no known status"))?,
                created_at: column(&row, 3)?,
                expires_at: column(&row, 4)?,
                head: unpack(column(&row, 6)?)?,
                settings: settings.into_values().next(),
                output: rows::complete(items, places)?.0,
            })
        })
        .await
    }

    pub(crate) async fn input_items(&self, tenant: &Tenant, id: &str, page: &Page) -> Result<ItemPage, Error> {
        self.read(async |client| {
            let key = typed![tenant.key() => BYTEA, id.as_bytes() => BYTEA];
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
            let mut pager = Pager::new(page, upto, place);
            while let Some(places) = pager.next() {
                pager.take(items(client, tenant, id, places).await?)?;
            }
            Ok(pager.finish())
        })
        .await
    }

    /// For each id the newest item that still has a body.
    pub(crate) async fn items_by_id(&self, tenant: &Tenant, ids: &[String]) -> Result<Vec<Option<Item>>, Error> {
        self.read(async |client| {
            let wanted: Vec<&[u8]> = ids.iter().map(String::as_bytes).collect();
            let key = typed![tenant.key() => BYTEA, wanted => BYTEA_ARRAY];
            let rows = client.query_typed(sql::NEWEST, key).await.map_err(failure)?;
            let found = rows.iter().map(|row| Ok((text(row, 0)?, unpack(column(row, 1)?)?)));
            let found = found.collect::<Result<HashMap<String, Bytes>, Error>>()?;
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
    })
}

async fn items(client: &Object, tenant: &Tenant, id: &str, places: Range<i64>) -> Result<Vec<ItemRow>, Error> {
    let key = typed![
        tenant.key() => BYTEA,
        id.as_bytes() => BYTEA,
        places.start => INT8,
        places.end => INT8,
    ];
    let rows = client.query_typed(sql::ITEMS, key).await.map_err(failure)?;
    rows.iter().map(item_row).collect()
}

pub(super) fn item_row(row: &Row) -> Result<ItemRow, Error> {
    Ok(ItemRow { pos: column(row, 0)?, id: text(row, 1)?, body: column(row, 2)? })
}

async fn settings(client: &Object, tenant: &Tenant, mut hashes: Vec<&[u8]>) -> Result<HashMap<Vec<u8>, Bytes>, Error> {
    hashes.sort_unstable();
    hashes.dedup();
    if hashes.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = client
        .query_typed(sql::SETTINGS, typed![tenant.key() => BYTEA, hashes => BYTEA_ARRAY])
        .await
        .map_err(failure)?;
    rows.iter().map(|row| Ok((column(row, 0)?, unpack(column(row, 1)?)?))).collect()
}
