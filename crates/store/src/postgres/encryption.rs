//! Data keys, and bodies that are written anew under others while everybody else goes on.

use std::pin::pin;
use std::time::Duration;

use deadpool_postgres::Transaction;
use futures_util::TryStreamExt;
use futures_util::future::try_join_all;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::jobs::span;
use super::retry::Retry;
use super::{Database, Hold, column, failure, sql, typed};
use crate::encryption::{BodyTable, Cursor, DataKey, NewDataKey, Recipher, Rotation, Step};
use crate::prefix::Secret;
use crate::tenanted::millis;
use crate::whole::{Looked, Looker};
use crate::{Encryption, Error, OpenError, Tenant};

/// What a database is called where it is refused.
pub(super) const NAME: &str = "godex";

/// Rows of one step, and bytes after which it ends early.
const ROWS: i64 = 64;
const BYTES: usize = 4 << 20;

impl Database {
    pub(crate) async fn data_keys(&self, tenant: &Tenant) -> Result<Vec<DataKey>, Error> {
        self.read(async |client| {
            let rows = client.query_typed(sql::DATA_KEYS, typed![tenant.key() => BYTEA]).await.map_err(failure)?;
            rows.iter().map(data_key).collect()
        })
        .await
    }

    /// Adds it unless somebody was first, and gives what there is then.
    pub(crate) async fn add_data_key(&self, tenant: &Tenant, new: &NewDataKey) -> Result<Vec<DataKey>, Error> {
        self.read(async |client| {
            let row = typed![
                tenant.key() => BYTEA,
                i64::from(new.number) => INT8,
                new.wrapped => BYTEA,
                &new.wrapping[..] => BYTEA,
                0_f64 => FLOAT8,
            ];
            client.execute_typed(sql::DATA_KEY_NEW, row).await.map_err(failure)
        })
        .await?;
        self.data_keys(tenant).await
    }

    /// A new key is announced for that long.
    pub(crate) async fn rotate(&self, tenant: &Tenant, rotation: &Rotation, announce: Duration) -> Result<(), Error> {
        self.transaction(tenant, Hold::Shared, async |transaction| {
            for key in &rotation.rewrapped {
                let row = typed![
                    tenant.key() => BYTEA,
                    i64::from(key.number) => INT8,
                    key.wrapped => BYTEA,
                    &key.wrapping[..] => BYTEA,
                ];
                transaction.execute_typed(sql::DATA_KEY_WRAP, row).await.map_err(failure)?;
            }
            if let Some(new) = &rotation.new {
                let row = typed![
                    tenant.key() => BYTEA,
                    i64::from(new.number) => INT8,
                    new.wrapped => BYTEA,
                    &new.wrapping[..] => BYTEA,
                    span(millis(announce)) => FLOAT8,
                ];
                transaction.execute_typed(sql::DATA_KEY_NEW, row).await.map_err(failure)?;
            }
            if rotation.retire {
                let key = typed![tenant.key() => BYTEA];
                transaction.execute_typed(sql::DATA_KEYS_RETIRE, key).await.map_err(failure)?;
            }
            Ok(())
        })
        .await
    }

    pub(crate) async fn sealed_only(&self, tenant: &Tenant) -> Result<(), Error> {
        self.read(async |client| {
            let key = typed![tenant.key() => BYTEA];
            client.execute_typed(sql::DATA_KEYS_SEALED_ONLY, key).await.map(drop).map_err(failure)
        })
        .await
    }

    /// Forgets the keys that nobody has sealed with for that long; says how many others are not needed either.
    pub(crate) async fn forget_data_keys(&self, unused: Duration) -> Result<u64, Error> {
        self.read(async |client| {
            let row = typed![span(millis(unused)) => FLOAT8];
            client.execute_typed(sql::DATA_KEYS_FORGET, row).await.map_err(failure)?;
            let row = client.query_typed_one(sql::DATA_KEYS_KEPT, &[]).await.map_err(failure)?;
            Ok(u64::try_from(column::<i64>(&row, 0)?).unwrap_or(0))
        })
        .await
    }

    pub(crate) async fn forget_keys_of(&self, tenant: &Tenant) -> Result<u64, Error> {
        self.read(async |client| {
            client.execute_typed(sql::DATA_KEYS_ERASE, typed![tenant.key() => BYTEA]).await.map_err(failure)
        })
        .await
    }

    /// Writes some rows anew, from that place on. One that somebody else changed meanwhile is left to a later pass.
    pub(crate) async fn rewrite(
        &self,
        tenant: &Tenant,
        table: BodyTable,
        from: &Cursor,
        recipher: &Recipher,
    ) -> Result<Step, Error> {
        let mut retry = Retry::new(self.options.retry);
        loop {
            let outcome = self
                .transaction(tenant, Hold::Shared, async |transaction| {
                    rewrite(transaction, tenant, table, from, recipher).await
                })
                .await;
            if !retry.again(&outcome).await {
                return outcome;
            }
        }
    }

    /// Looks at some bodies from that place on.
    pub(crate) async fn look(
        &self,
        tenant: &Tenant,
        table: BodyTable,
        from: &Cursor,
        looker: &Looker,
    ) -> Result<Looked, Error> {
        let found = self.transaction(tenant, Hold::Shared, async |transaction| {
            found(transaction, tenant, table, from, &[], true).await
        });
        Ok(looker.look(table, found.await?))
    }

    /// The secret stays in the form that everything else has now.
    pub(crate) async fn keep_secret(&self, secret: &[u8; 32], wrapped: Option<&[u8]>) -> Result<(), Error> {
        self.read(async |client| {
            let (statement, value) = match wrapped {
                Some(wrapped) => (sql::SECRET_REWRAP, wrapped),
                None => (sql::SECRET_UNWRAP, &secret[..]),
            };
            client.execute_typed(statement, typed![value => BYTEA]).await.map(drop).map_err(failure)
        })
        .await
    }

    /// The key of all hashes: made by whoever comes first, kept beside the data; wrapped if there is a key for that, so that
    /// nobody who has only the database can test by the hashes what it holds.
    ///
    /// A database that needs a key which is not there is refused.
    pub(super) async fn secret(&self, fresh: &Secret, encryption: &Encryption) -> Result<Secret, OpenError> {
        let used = self.read(async |client| {
            let rows = client.query_typed(sql::WRAPPINGS, &[]).await.map_err(failure)?;
            rows.iter().map(|row| column(row, 0)).collect::<Result<Vec<Vec<u8>>, _>>()
        });
        let used = used.await.map_err(super::connect::away)?;
        encryption.admit(NAME, used.iter().map(Vec::as_slice))?;
        if let Some(wrapped) = self.wrapped_secret().await? {
            return encryption.unwrap_secret(NAME, &wrapped);
        }
        let clear = self.read(async |client| {
            client.execute_typed(sql::SECRET_NEW, typed![&fresh.0[..] => BYTEA]).await.map_err(failure)?;
            let row = client.query_typed_opt(sql::SECRET, &[]).await.map_err(failure)?;
            row.map(|row| column::<Vec<u8>>(&row, 0)).transpose()
        });
        // None: another process has wrapped it just now.
        if let Some(clear) = clear.await.map_err(super::connect::away)? {
            let damaged = |_| super::connect::away(Error::corrupt("the secret has the wrong length"));
            let secret: Secret = clear.try_into().map(Secret).map_err(damaged)?;
            let Some(key) = &encryption.key else { return Ok(secret) };
            let wrapped = key.wrap_secret(&secret).map_err(super::connect::away)?;
            let wrap = self.read(async |client| {
                client.execute_typed(sql::SECRET_WRAP, typed![wrapped => BYTEA]).await.map_err(failure)
            });
            wrap.await.map_err(super::connect::away)?;
        }
        let wrapped = self.wrapped_secret().await?;
        let wrapped = wrapped.ok_or_else(|| OpenError::DamagedKey { name: NAME.to_owned() })?;
        encryption.unwrap_secret(NAME, &wrapped)
    }

    async fn wrapped_secret(&self) -> Result<Option<Vec<u8>>, OpenError> {
        let wrapped = self.read(async |client| {
            let row = client.query_typed_opt(sql::SECRET_WRAPPED, &[]).await.map_err(failure)?;
            row.map(|row| column(&row, 0)).transpose()
        });
        wrapped.await.map_err(super::connect::away)
    }
}

fn data_key(row: &Row) -> Result<DataKey, Error> {
    let number: i64 = column(row, 0)?;
    Ok(DataKey {
        number: u32::try_from(number).map_err(|_| Error::corrupt("a data key has no such number"))?,
        wrapped: column(row, 1)?,
        coming: column(row, 2)?,
        retired: column(row, 3)?,
        sealed_only: column(row, 4)?,
    })
}

async fn rewrite(
    transaction: &Transaction<'_>,
    tenant: &Tenant,
    table: BodyTable,
    from: &Cursor,
    recipher: &Recipher,
) -> Result<Step, Error> {
    let found = found(transaction, tenant, table, from, &recipher.mark, recipher.wanted).await?;
    let mut step = Step { next: found.last().map(|(last, _)| last.clone()), ..Step::default() };
    let mut changed = Vec::with_capacity(found.len());
    for (row, old) in found {
        match recipher.rewrite(table, &row, old.clone()) {
            Ok(new) => changed.push((row, old, new)),
            Err(Error::Corrupt(_)) => step.damaged += 1,
            Err(error) => return Err(error),
        }
    }
    let updates = changed.iter().map(async |(row, old, new)| {
        let done = match table {
            BodyTable::Item => {
                let row = typed![
                    tenant.key() => BYTEA, row.first => INT8, row.second => INT8, old => BYTEA, new => BYTEA
                ];
                transaction.execute_typed(sql::BODY_ITEM, row).await
            }
            BodyTable::Event => {
                let row = typed![
                    tenant.key() => BYTEA, row.name => BYTEA, row.second => INT8, old => BYTEA, new => BYTEA
                ];
                transaction.execute_typed(sql::BODY_EVENT, row).await
            }
            table => {
                let row = typed![tenant.key() => BYTEA, row.name => BYTEA, old => BYTEA, new => BYTEA];
                transaction.execute_typed(statements(table).1, row).await
            }
        };
        done.map(|rows| (rows, new.len() as u64)).map_err(failure)
    });
    for (rows, bytes) in try_join_all(updates).await? {
        step.rows += rows;
        step.bytes += rows * bytes;
    }
    Ok(step)
}

async fn found(
    transaction: &Transaction<'_>,
    tenant: &Tenant,
    table: BodyTable,
    from: &Cursor,
    mark: &[u8],
    wanted: bool,
) -> Result<Vec<(Cursor, Vec<u8>)>, Error> {
    let (tenant, first): (_, (&(dyn ToSql + Sync), Type)) = match table {
        BodyTable::Item => (tenant.key(), (&from.first, Type::INT8)),
        _ => (tenant.key(), (&from.name, Type::BYTEA)),
    };
    let parameters: [(&(dyn ToSql + Sync), Type); 6] = [
        (&tenant, Type::BYTEA),
        first,
        (&from.second, Type::INT8),
        (&mark, Type::BYTEA),
        (&wanted, Type::BOOL),
        (&ROWS, Type::INT8),
    ];
    let mut rows = pin!(transaction.query_typed_raw(statements(table).0, parameters).await.map_err(failure)?);
    let (mut found, mut bytes) = (Vec::new(), 0);
    while bytes < BYTES
        && let Some(row) = rows.try_next().await.map_err(failure)?
    {
        let body: Vec<u8> = column(&row, 3)?;
        bytes += body.len();
        found.push((Cursor { name: column(&row, 0)?, first: column(&row, 1)?, second: column(&row, 2)? }, body));
    }
    Ok(found)
}

fn statements(table: BodyTable) -> (&'static str, &'static str) {
    match table {
        BodyTable::Item => (sql::BODIES_ITEM, sql::BODY_ITEM),
        BodyTable::Response => (sql::BODIES_RESPONSE, sql::BODY_RESPONSE),
        BodyTable::Settings => (sql::BODIES_SETTINGS, sql::BODY_SETTINGS),
        BodyTable::Conversation => (sql::BODIES_CONVERSATION, sql::BODY_CONVERSATION),
        BodyTable::Event => (sql::BODIES_EVENT, sql::BODY_EVENT),
        BodyTable::Job => (sql::BODIES_JOB, sql::BODY_JOB),
        BodyTable::Notice => (sql::BODIES_NOTICE, sql::BODY_NOTICE),
    }
}
