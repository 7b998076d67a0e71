//! Postgres: for several instances. Works behind a transaction pooler: no session state, no named statements.
//!
//! Writes are short transactions. Those that add take the tenant's advisory lock together, those that take away take it
//! alone: so nothing is built upon what is being erased, and adding never waits for adding.

mod access;
mod connect;
mod conversations;
mod delete;
mod encryption;
mod events;
mod failure;
mod hints;
mod holdings;
mod indexes;
mod jobs;
mod keys;
mod migrate;
mod notices;
#[cfg(test)]
#[cfg(unix)]
mod plans;
mod put;
mod read;
mod retry;
mod share;
mod sql;
#[cfg(test)]
#[cfg(unix)]
mod tests;
mod turns;
mod usage;

use std::future::Future;
use std::sync::Arc;

use deadpool_postgres::{Object, Pool, Transaction};
use tokio::time::timeout;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::{Error, PostgresOptions, Tenant, Unavailable};
pub(crate) use connect::inspect;
use failure::failure;

/// The parameters of a statement with their types, so that it need not be prepared under a name.
macro_rules! typed {
    ($($value:expr => $type:ident),* $(,)?) => {
        &[$((&$value as &(dyn tokio_postgres::types::ToSql + Sync), tokio_postgres::types::Type::$type)),*]
    };
}
use typed;

/// How a transaction holds the tenant.
#[derive(Debug, Clone, Copy)]
enum Hold {
    /// With everybody else who adds.
    Shared,
    /// Alone, to take away.
    Alone,
}

#[derive(Clone)]
pub(crate) struct Database {
    pool: Pool,
    options: PostgresOptions,
    hints: Arc<hints::Hints>,
}

/// The pool's own form shows the address, and the address may hold a password.
impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Postgres").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Database {
    /// Whether there is a primary that answers.
    pub(crate) async fn ping(&self) -> Result<(), Unavailable> {
        let reached = self.run(async |client| {
            let row = client.query_typed_one(sql::PING, &[]).await.map_err(failure)?;
            match column::<&str>(&row, 0)? {
                "off" => Ok(()),
                _ => Err(Error::unavailable("this Postgres is read-only, perhaps a standby")),
            }
        });
        reached.await.map_err(|error| match error {
            Error::Unavailable(unavailable) => unavailable,
            other => Unavailable::new(other.to_string()),
        })
    }

    pub(crate) fn close(self) {
        self.hints.stop();
        self.pool.close();
    }

    /// Runs on a connection, within the time of one statement. A connection that failed or hangs is not used again.
    async fn run<T>(&self, work: impl AsyncFnOnce(&mut Object) -> Result<T, Error>) -> Result<T, Error> {
        let mut client = self.pool.get().await.map_err(|error| failure::pool(&error))?;
        let outcome = timeout(self.options.statement, work(&mut client)).await;
        let outcome = outcome.unwrap_or_else(|_| Err(Error::unavailable("Postgres took too long")));
        if let Err(Error::Unavailable(_)) = outcome {
            drop(Object::take(client));
        }
        outcome
    }

    /// Runs in a transaction; an error takes back what it did.
    async fn transaction<T>(
        &self,
        tenant: &Tenant,
        hold: Hold,
        work: impl AsyncFnOnce(&Transaction<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let limit = self.options.statement.as_millis().to_string();
        let lock = connect::lock(tenant);
        self.run(async |client| {
            let transaction = client.transaction().await.map_err(failure)?;
            let begin = match hold {
                Hold::Shared => sql::BEGIN_SHARED,
                Hold::Alone => sql::BEGIN_ALONE,
            };
            transaction.query_typed(begin, typed![limit => TEXT, lock => INT8]).await.map_err(failure)?;
            let result = work(&transaction).await?;
            transaction.commit().await.map_err(failure)?;
            Ok(result)
        })
        .await
    }

    /// A read that needs no transaction.
    async fn read<T>(&self, work: impl AsyncFnOnce(&Object) -> Result<T, Error>) -> Result<T, Error> {
        self.run(async |client| work(client).await).await
    }
}

/// A column, or the news that the database is not what we made it.
fn column<'r, T: FromSql<'r>>(row: &'r Row, index: usize) -> Result<T, Error> {
    row.try_get(index).map_err(|error| Error::corrupt(error.to_string()))
}

/// A column that holds one of our names.
fn text(row: &Row, index: usize) -> Result<String, Error> {
    String::from_utf8(column(row, index)?).map_err(|_| Error::corrupt("an id is not text"))
}

fn maybe_text(row: &Row, index: usize) -> Result<Option<String>, Error> {
    let bytes: Option<Vec<u8>> = column(row, index)?;
    bytes.map(String::from_utf8).transpose().map_err(|_| Error::corrupt("an id is not text"))
}

/// A future that must be able to move between threads, which the compiler checks here.
#[expect(dead_code, reason = "a check, not a function")]
fn check(database: &Database, tenant: &Tenant, reading: &crate::room::Reading) -> impl Future + Send {
    async move {
        let _ = database.response(tenant, "", 0, reading).await;
        let _ = database.delete_response(tenant, "", 0).await;
    }
}
