//! What was used, in sums.

use rusqlite::{Connection, Row, params};

use super::read::list;
use super::{failure, jobs, sql};
use crate::usage::{PreparedUsage, REMEMBERED_MS};
use crate::{Error, Spender, UsageKey, UsageQuery, UsageSum};

pub(crate) fn add_usage(connection: &Connection, batch: &PreparedUsage) -> Result<(), Error> {
    let now = jobs::now(connection)?;
    let mut claim = connection.prepare_cached(sql::USAGE_BATCH).map_err(failure)?;
    if claim.execute(params![batch.worker.0, batch.number, now]).map_err(failure)? == 0 {
        return Ok(());
    }
    let mut add = connection.prepare_cached(sql::USAGE_ADD).map_err(failure)?;
    for (key, sums) in &batch.rows {
        let [requests, unpriced, input, cached, output, reasoning, tool_calls, nanodollars] = sums;
        let row = params![
            key.tenant,
            key.hour,
            key.key,
            key.provider,
            key.model,
            requests,
            unpriced,
            input,
            cached,
            output,
            reasoning,
            tool_calls,
            nanodollars,
        ];
        add.execute(row).map_err(failure)?;
    }
    let mut sweep = connection.prepare_cached(sql::USAGE_BATCHES_SWEEP).map_err(failure)?;
    sweep.execute([now.saturating_sub(REMEMBERED_MS)]).map(drop).map_err(failure)
}

pub(crate) fn usage(connection: &Connection, query: &UsageQuery) -> Result<Vec<(UsageKey, UsageSum)>, Error> {
    let mut select = connection.prepare_cached(sql::USAGE).map_err(failure)?;
    let by = query.by;
    let asked = params![
        query.from,
        query.to,
        query.tenants.is_empty(),
        list(&query.tenants),
        query.keys.is_empty(),
        list(&query.keys),
        query.models.is_empty(),
        by.hours,
        by.tenant,
        by.key,
        by.provider,
        by.model,
        list(&query.models),
    ];
    let sum = |row: &Row<'_>| {
        let (hour, tenant, key) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let key = UsageKey { tenant, key, provider: row.get(3)?, model: row.get(4)?, hour };
        let mut columns = [0; 8];
        for (index, column) in (5..).zip(&mut columns) {
            *column = row.get(index)?;
        }
        Ok((key, UsageSum::from_columns(columns)))
    };
    select.query_map(asked, sum).and_then(Iterator::collect).map_err(failure)
}

pub(crate) fn spent(connection: &Connection, spenders: &[(Spender, i64)]) -> Result<Vec<u64>, Error> {
    let sum = |(spender, since): &(Spender, i64)| {
        let (sql, name) = match spender {
            Spender::Key(id) => (sql::SPENT_BY_KEY, id.as_str()),
            Spender::Tenant(tenant) => (sql::SPENT_BY_TENANT, tenant.name()),
        };
        let mut select = connection.prepare_cached(sql)?;
        select.query_row(params![name, since], |row| row.get::<_, i64>(0))
    };
    let sums = spenders.iter().map(|spender| sum(spender).map(|sum| u64::try_from(sum).unwrap_or(0)));
    sums.collect::<Result<_, _>>().map_err(failure)
}
