//! What was used, in sums that all instances add to.

use tokio_postgres::Row;

use super::jobs::span;
use super::{Database, column, failure, sql, text, typed};
use crate::usage::{PreparedUsage, REMEMBERED_MS};
use crate::{Error, Spender, UsageKey, UsageQuery, UsageSum};

impl Database {
    pub(crate) async fn add_usage(&self, batch: &PreparedUsage) -> Result<(), Error> {
        let names =
            |name: fn(&UsageKey) -> &str| -> Vec<&[u8]> { batch.rows.keys().map(|key| name(key).as_bytes()).collect() };
        let sums = |index: usize| -> Vec<i64> {
            batch.rows.values().map(|sums| sums.get(index).copied().unwrap_or(0)).collect()
        };
        let hours: Vec<i64> = batch.rows.keys().map(|key| key.hour).collect();
        self.read(async |client| {
            let rows = typed![
                &batch.worker.0[..] => BYTEA,
                batch.number => INT8,
                names(|key| &key.tenant) => BYTEA_ARRAY,
                hours => INT8_ARRAY,
                names(|key| &key.key) => BYTEA_ARRAY,
                names(|key| &key.provider) => BYTEA_ARRAY,
                names(|key| &key.model) => BYTEA_ARRAY,
                sums(0) => INT8_ARRAY,
                sums(1) => INT8_ARRAY,
                sums(2) => INT8_ARRAY,
                sums(3) => INT8_ARRAY,
                sums(4) => INT8_ARRAY,
                sums(5) => INT8_ARRAY,
                sums(6) => INT8_ARRAY,
                sums(7) => INT8_ARRAY,
            ];
            client.execute_typed(sql::USAGE_ADD, rows).await.map_err(failure)?;
            // A new worker looks after those that are gone.
            if batch.number == 1 {
                let old = typed![span(REMEMBERED_MS) => FLOAT8];
                client.execute_typed(sql::USAGE_BATCHES_SWEEP, old).await.map_err(failure)?;
            }
            Ok(())
        })
        .await
    }

    pub(crate) async fn usage(&self, query: &UsageQuery) -> Result<Vec<(UsageKey, UsageSum)>, Error> {
        let bytes = |names: &[String]| -> Vec<Vec<u8>> { names.iter().map(|name| name.as_bytes().to_vec()).collect() };
        let by = query.by;
        self.read(async |client| {
            let asked = typed![
                query.from => INT8,
                query.to => INT8,
                bytes(&query.tenants) => BYTEA_ARRAY,
                bytes(&query.keys) => BYTEA_ARRAY,
                bytes(&query.models) => BYTEA_ARRAY,
                by.hours => INT8,
                by.tenant => BOOL,
                by.key => BOOL,
                by.provider => BOOL,
                by.model => BOOL,
            ];
            let rows = client.query_typed(sql::USAGE, asked).await.map_err(failure)?;
            rows.iter().map(sum).collect()
        })
        .await
    }

    pub(crate) async fn spent(&self, spenders: &[(Spender, i64)]) -> Result<Vec<u64>, Error> {
        let by_key: Vec<bool> = spenders.iter().map(|(spender, _)| matches!(spender, Spender::Key(_))).collect();
        let names: Vec<&[u8]> = spenders.iter().map(|(spender, _)| name(spender)).collect();
        let since: Vec<i64> = spenders.iter().map(|(_, since)| *since).collect();
        self.read(async |client| {
            let asked = typed![by_key => BOOL_ARRAY, names => BYTEA_ARRAY, since => INT8_ARRAY];
            let rows = client.query_typed(sql::SPENT, asked).await.map_err(failure)?;
            rows.iter().map(|row| column(row, 0).map(|sum: i64| u64::try_from(sum).unwrap_or(0))).collect()
        })
        .await
    }
}

fn name(spender: &Spender) -> &[u8] {
    match spender {
        Spender::Key(id) => id.as_bytes(),
        Spender::Tenant(tenant) => tenant.key(),
    }
}

fn sum(row: &Row) -> Result<(UsageKey, UsageSum), Error> {
    let (hour, tenant, key) = (column(row, 0)?, text(row, 1)?, text(row, 2)?);
    let key = UsageKey { tenant, key, provider: text(row, 3)?, model: text(row, 4)?, hour };
    let mut columns = [0; 8];
    for (index, sum) in (5..).zip(&mut columns) {
        *sum = column(row, index)?;
    }
    Ok((key, UsageSum::from_columns(columns)))
}
