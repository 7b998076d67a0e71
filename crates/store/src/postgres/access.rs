//! API keys, and what tenants are allowed. Each change raises the version last.

use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::{Database, column, failure, maybe_text, sql, text, typed};
use crate::{AccessList, ApiKey, Error, Tenant};

impl Database {
    pub(crate) async fn access_list(&self, since: i64) -> Result<Option<AccessList>, Error> {
        let rows = self
            .read(async |client| client.query_typed(sql::ACCESS_LIST, typed![since => INT8]).await.map_err(failure));
        let rows = rows.await?;
        let Some(first) = rows.first() else { return Ok(None) };
        let mut list = AccessList { version: column(first, 0)?, ..AccessList::default() };
        for row in &rows {
            // A key has an id, what is said of a tenant has none; without keys there is a row of nothing.
            match (maybe_text(row, 1)?, maybe_text(row, 2)?) {
                (Some(id), Some(tenant)) => list.keys.push(key(row, id, &tenant)?),
                (None, Some(tenant)) => list.tenants.push((Tenant::new(&tenant), text(row, 10)?)),
                _ => {}
            }
        }
        Ok(Some(list))
    }

    pub(crate) async fn create_api_key(&self, key: &ApiKey) -> Result<(), Error> {
        let row = typed![
            key.id.as_bytes() => BYTEA,
            key.tenant.key() => BYTEA,
            key.name.as_bytes() => BYTEA,
            &key.hash[..] => BYTEA,
            key.hint.as_bytes() => BYTEA,
            key.created_at => INT8,
            key.expires_at => INT8,
            key.revoked_at => INT8,
            key.replaced_by.as_deref().map(str::as_bytes) => BYTEA,
            key.terms.as_bytes() => BYTEA,
        ];
        self.change(sql::API_KEY_NEW, row).await.map(drop)
    }

    pub(crate) async fn revoke_api_key(&self, id: &str, at: i64) -> Result<(), Error> {
        found(self.change(sql::API_KEY_REVOKE, typed![id.as_bytes() => BYTEA, at => INT8]).await?)
    }

    /// Looks until there is none: whoever was waited for may have put another key in the place of one. Nobody makes one of
    /// that name meanwhile: who would waits for the end of this.
    pub(crate) async fn revoke_api_keys_named(&self, name: &str, at: i64) -> Result<Vec<String>, Error> {
        self.run(async |client| {
            let transaction = client.transaction().await.map_err(failure)?;
            let mut ids = Vec::new();
            loop {
                let row = typed![name.as_bytes() => BYTEA, at => INT8];
                let revoked = transaction.query_typed(sql::API_KEYS_REVOKE, row).await.map_err(failure)?;
                if revoked.is_empty() {
                    break;
                }
                for row in &revoked {
                    ids.push(text(row, 0)?);
                }
            }
            if !ids.is_empty() {
                transaction.execute_typed(sql::ACCESS_RAISE, &[]).await.map_err(failure)?;
            }
            transaction.commit().await.map_err(failure)?;
            Ok(ids)
        })
        .await
    }

    pub(crate) async fn rotate_api_key(&self, id: &str, new: &ApiKey, until: i64) -> Result<(), Error> {
        let row = typed![
            id.as_bytes() => BYTEA,
            new.id.as_bytes() => BYTEA,
            until => INT8,
            new.tenant.key() => BYTEA,
            &new.hash[..] => BYTEA,
            new.hint.as_bytes() => BYTEA,
            new.created_at => INT8,
            new.expires_at => INT8,
            new.revoked_at => INT8,
            new.terms.as_bytes() => BYTEA,
        ];
        found(self.change(sql::API_KEY_ROTATE, row).await?)
    }

    pub(crate) async fn delete_api_key(&self, id: &str) -> Result<(), Error> {
        found(self.change(sql::API_KEY_DELETE, typed![id.as_bytes() => BYTEA]).await?)
    }

    pub(crate) async fn set_tenant_terms(&self, tenant: &Tenant, terms: Option<&str>) -> Result<(), Error> {
        let changed = match terms {
            Some(terms) => {
                let row = typed![tenant.key() => BYTEA, terms.as_bytes() => BYTEA];
                self.change(sql::TENANT_TERMS_SET, row).await
            }
            None => self.change(sql::TENANT_TERMS_CLEAR, typed![tenant.key() => BYTEA]).await,
        };
        changed.map(drop)
    }

    /// How often the version was raised: not at all, if there was nothing to change.
    async fn change(&self, sql: &str, row: &[(&(dyn ToSql + Sync), Type)]) -> Result<u64, Error> {
        self.read(async |client| client.execute_typed(sql, row).await.map_err(failure)).await
    }
}

fn found(changed: u64) -> Result<(), Error> {
    if changed == 0 { Err(Error::NotFound) } else { Ok(()) }
}

fn key(row: &Row, id: String, tenant: &str) -> Result<ApiKey, Error> {
    let hash: Vec<u8> = column(row, 4)?;
    Ok(ApiKey {
        id,
        tenant: Tenant::new(tenant),
        name: text(row, 3)?,
        hash: hash.try_into().map_err(|_| Error::corrupt("the hash of an API key has the wrong length"))?,
        hint: text(row, 5)?,
        created_at: column(row, 6)?,
        expires_at: column(row, 7)?,
        revoked_at: column(row, 8)?,
        replaced_by: maybe_text(row, 9)?,
        terms: text(row, 10)?,
    })
}
