//! The outbox: each notice is one instance's to send, for a while.

use deadpool_postgres::Transaction;
use tokio_postgres::Row;

use super::jobs::span;
use super::{Database, column, failure, sql, text, typed};
use crate::notice::PreparedNotice;
use crate::{Error, Notice, Tenant};

impl Database {
    pub(crate) async fn due_notices(&self, most: usize, millis: i64) -> Result<Vec<Notice>, Error> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.read(async |client| {
            let key = typed![most => INT8, span(millis) => FLOAT8];
            let rows = client.query_typed(sql::NOTICES_DUE, key).await.map_err(failure)?;
            rows.iter().map(notice).collect()
        })
        .await
    }

    pub(crate) async fn notice_done(&self, tenant: &Tenant, id: &str) -> Result<(), Error> {
        self.read(async |client| {
            let key = typed![tenant.key() => BYTEA, id.as_bytes() => BYTEA];
            client.execute_typed(sql::NOTICE_DONE, key).await.map(drop).map_err(failure)
        })
        .await
    }

    pub(crate) async fn notice_retry(&self, tenant: &Tenant, id: &str, millis: i64) -> Result<(), Error> {
        self.read(async |client| {
            let row = typed![tenant.key() => BYTEA, id.as_bytes() => BYTEA, span(millis) => FLOAT8];
            client.execute_typed(sql::NOTICE_RETRY, row).await.map(drop).map_err(failure)
        })
        .await
    }
}

fn notice(row: &Row) -> Result<Notice, Error> {
    let (tenant, tries): (_, i64) = (Tenant::new(&text(row, 0)?), column(row, 3)?);
    Ok(Notice {
        tenant,
        id: text(row, 1)?,
        endpoint: text(row, 2)?,
        // As it is in the database: whoever asked opens it.
        body: column::<Vec<u8>>(row, 4)?.into(),
        tries: u32::try_from(tries).unwrap_or(u32::MAX),
    })
}

pub(super) async fn add(transaction: &Transaction<'_>, tenant: &[u8], notices: &[PreparedNotice]) -> Result<(), Error> {
    if notices.is_empty() {
        return Ok(());
    }
    let ids: Vec<&[u8]> = notices.iter().map(|notice| notice.id.as_bytes()).collect();
    let endpoints: Vec<&[u8]> = notices.iter().map(|notice| notice.endpoint.as_bytes()).collect();
    let bodies: Vec<&[u8]> = notices.iter().map(|notice| &notice.packed[..]).collect();
    let rows = typed![tenant => BYTEA, ids => BYTEA_ARRAY, endpoints => BYTEA_ARRAY, bodies => BYTEA_ARRAY];
    transaction.execute_typed(sql::NOTICES_NEW, rows).await.map(drop).map_err(failure)
}
