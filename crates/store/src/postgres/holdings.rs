//! What tenants have: counted, listed, erased.

use std::time::Duration;

use tokio::time::sleep;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::{Database, Hold, column, failure, maybe_text, sql, text, typed};
use crate::holdings::{BATCH, COUNTED, Count, Kind, PASSES};
use crate::{Erased, Error, Holding, Tenant, rows};

/// Every table that has a tenant's rows, but API keys and what is said of tenants: first what leads to the others.
pub(super) const TABLES: [(&str, Kind, &str); 11] = [
    ("job", Kind::Other, sql::ERASE_JOBS),
    ("response", Kind::Response, sql::ERASE_RESPONSES),
    ("conversation", Kind::Conversation, sql::ERASE_CONVERSATIONS),
    ("log", Kind::Other, sql::ERASE_LOGS),
    ("event", Kind::Other, sql::ERASE_EVENTS),
    ("item", Kind::Item, sql::ERASE_ITEMS),
    ("segment", Kind::Other, sql::ERASE_SEGMENTS),
    ("settings", Kind::Other, sql::ERASE_SETTINGS),
    ("idempotency", Kind::Other, sql::ERASE_KEYS),
    ("notice", Kind::Other, sql::ERASE_NOTICES),
    ("usage", Kind::Other, sql::ERASE_USAGE),
];

/// Before what somebody else held is looked at once more.
const PAUSE: Duration = Duration::from_millis(50);

impl Database {
    /// In short transactions, each with the tenant held alone, until nothing is left.
    pub(crate) async fn erase_tenant(&self, tenant: &Tenant) -> Result<Erased, Error> {
        let mut erased = Erased::default();
        for _ in 0..PASSES {
            for (_, kind, sql) in TABLES {
                while self.erase(tenant, kind, sql, &mut erased).await? == BATCH.unsigned_abs() {}
            }
            let has = self.read(async |client| {
                let row = client.query_typed_one(sql::TENANT_HAS, typed![tenant.key() => BYTEA]).await;
                column(&row.map_err(failure)?, 0)
            });
            if !has.await? {
                return Ok(erased);
            }
            sleep(PAUSE).await;
        }
        Err(Error::unavailable("somebody goes on writing in the name of the tenant that is erased"))
    }

    async fn erase(&self, tenant: &Tenant, kind: Kind, sql: &str, erased: &mut Erased) -> Result<u64, Error> {
        let gone = self.transaction(tenant, Hold::Alone, async |transaction| {
            let few = typed![tenant.key() => BYTEA, BATCH => INT8];
            let row = transaction.query_typed_one(sql, few).await.map_err(failure)?;
            Ok((column::<i64>(&row, 0)?.unsigned_abs(), column::<i64>(&row, 1)?.unsigned_abs()))
        });
        let (there, rows) = gone.await?;
        erased.add(kind, there, rows);
        Ok(rows)
    }

    pub(crate) async fn tenant_after(&self, after: &str) -> Result<Option<String>, Error> {
        self.read(async |client| {
            let row = client.query_typed_one(sql::TENANT_NEXT, typed![after.as_bytes() => BYTEA]).await;
            maybe_text(&row.map_err(failure)?, 0)
        })
        .await
    }

    pub(crate) async fn count_responses(&self, tenant: &str, after: &str, now: i64) -> Result<Count, Error> {
        let few = typed![tenant.as_bytes() => BYTEA, after.as_bytes() => BYTEA, now => INT8, COUNTED => INT8];
        self.count(sql::RESPONSES_COUNT, few).await
    }

    pub(crate) async fn count_conversations(&self, tenant: &str, after: &str) -> Result<Count, Error> {
        let few = typed![tenant.as_bytes() => BYTEA, after.as_bytes() => BYTEA, COUNTED => INT8];
        self.count(sql::CONVERSATIONS_COUNT, few).await
    }

    async fn count(&self, sql: &str, few: &[(&(dyn ToSql + Sync), Type)]) -> Result<Count, Error> {
        self.read(async |client| {
            let row = client.query_typed_one(sql, few).await.map_err(failure)?;
            Ok(Count { there: column(&row, 0)?, rows: column(&row, 1)?, last: maybe_text(&row, 2)? })
        })
        .await
    }

    pub(crate) async fn held_responses(
        &self,
        tenant: &Tenant,
        after: &str,
        most: usize,
        now: i64,
    ) -> Result<Vec<Holding>, Error> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.read(async |client| {
            let few = typed![tenant.key() => BYTEA, after.as_bytes() => BYTEA, now => INT8, most => INT8];
            let rows = client.query_typed(sql::RESPONSES_HELD, few).await.map_err(failure)?;
            rows.iter().map(response).collect()
        })
        .await
    }

    pub(crate) async fn held_conversations(
        &self,
        tenant: &Tenant,
        after: &str,
        most: usize,
    ) -> Result<Vec<Holding>, Error> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.read(async |client| {
            let few = typed![tenant.key() => BYTEA, after.as_bytes() => BYTEA, most => INT8];
            let rows = client.query_typed(sql::CONVERSATIONS_HELD, few).await.map_err(failure)?;
            rows.iter().map(|row| Ok(Holding::conversation(text(row, 0)?, column(row, 1)?))).collect()
        })
        .await
    }
}

fn response(row: &Row) -> Result<Holding, Error> {
    Ok(Holding {
        id: text(row, 0)?,
        created_at: column(row, 1)?,
        expires_at: column(row, 2)?,
        status: Some(rows::status(column(row, 3)?)?),
        previous_response: maybe_text(row, 4)?,
        conversation: maybe_text(row, 5)?,
    })
}
