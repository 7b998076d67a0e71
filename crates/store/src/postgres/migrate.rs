//! Numbered steps, each in a transaction under one advisory lock: instances that start together take turns, and a start
//! that is cut off goes on where it was.

use deadpool_postgres::Object;
use tokio_postgres::Client;

use super::typed;
use crate::OpenError;
use crate::migration::checksum;

/// Step n brings the schema to version n. They are never changed once released.
const STEPS: &[&str] = &[include_str!("sql/0001_init.sql"), include_str!("sql/0002_hidden.sql")];

/// "godex" and a one: the advisory lock of everybody who migrates.
const LOCK: i64 = 0x676f_6465_7801;

const TABLE: &str = "
    CREATE SCHEMA IF NOT EXISTS godex;
    CREATE TABLE IF NOT EXISTS godex.migration (
        number   bigint PRIMARY KEY,
        checksum bytea NOT NULL,
        at       timestamptz NOT NULL DEFAULT now());";

pub(super) async fn migrate(client: &mut Object) -> Result<(), OpenError> {
    let known = i64::try_from(STEPS.len()).unwrap_or(i64::MAX);
    let name = || "godex".to_owned();
    // One look without a lock: almost every start finds everything done.
    if let Ok(done) = applied(client).await {
        check(&done)?;
        if done.len() == STEPS.len() {
            return Ok(());
        }
    }
    for (number, step) in (1..).zip(STEPS) {
        let transaction = client.transaction().await.map_err(away)?;
        let lock = "SELECT pg_advisory_xact_lock($1)";
        transaction.query_typed(lock, typed![LOCK => INT8]).await.map_err(away)?;
        transaction.batch_execute(TABLE).await.map_err(away)?;
        let done = applied(transaction.client()).await.map_err(away)?;
        check(&done)?;
        if done.iter().all(|(done, _)| *done < number) {
            transaction.batch_execute(step).await.map_err(away)?;
            let insert = "INSERT INTO godex.migration (number, checksum) VALUES ($1, $2)";
            let row = typed![number => INT8, checksum(step) => BYTEA];
            transaction.execute_typed(insert, row).await.map_err(away)?;
        }
        transaction.commit().await.map_err(away)?;
    }
    let done = applied(client).await.map_err(away)?;
    if done.len() > STEPS.len() {
        let found = i64::try_from(done.len()).unwrap_or(i64::MAX);
        return Err(OpenError::Newer { name: name(), found, known });
    }
    Ok(())
}

/// Nothing newer than we know, and nothing other than we made.
fn check(done: &[(i64, Vec<u8>)]) -> Result<(), OpenError> {
    let known = i64::try_from(STEPS.len()).unwrap_or(i64::MAX);
    if let Some((found, _)) = done.iter().find(|(number, _)| *number > known) {
        return Err(OpenError::Newer { name: "godex".to_owned(), found: *found, known });
    }
    for ((number, found), step) in done.iter().zip(STEPS) {
        if *found != checksum(step) {
            return Err(OpenError::Altered { name: "godex".to_owned(), number: *number });
        }
    }
    Ok(())
}

async fn applied(client: &Client) -> Result<Vec<(i64, Vec<u8>)>, tokio_postgres::Error> {
    let select = "SELECT number, checksum FROM godex.migration ORDER BY number";
    let rows = client.query_typed(select, &[]).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err hands over")]
fn away(error: tokio_postgres::Error) -> OpenError {
    let reason = error.as_db_error().map_or_else(|| error.to_string(), |database| database.message().to_owned());
    OpenError::Postgres { reason: reason.into() }
}
