//! Numbered steps, each in a transaction under one advisory lock: instances that start together take turns, and a start
//! that is cut off goes on where it was.
//!
//! During an upgrade, instances of two versions share the database. What only adds, so that the version before keeps
//! working beside it and can be started again, is an addition and has a list of its own, which older versions do not
//! read: an addition that is not known is no reason to refuse. A migration that is not known is one.

use deadpool_postgres::Object;
use tokio_postgres::Client;

use super::typed;
use crate::OpenError;
use crate::migration::checksum;

/// A list of steps, and the table that says which of them were applied. Step n is number n; none is ever changed once
/// released.
struct Ledger {
    name: &'static str,
    steps: &'static [&'static str],
    applied: &'static str,
    record: &'static str,
    /// Whether a version that does not know all steps may use the database.
    open: bool,
}

const MIGRATIONS: Ledger = Ledger {
    name: "godex",
    steps: &[include_str!("sql/0001_init.sql"), include_str!("sql/0002_hidden.sql")],
    applied: "SELECT number, checksum FROM godex.migration ORDER BY number",
    record: "INSERT INTO godex.migration (number, checksum) VALUES ($1, $2)",
    open: false,
};

/// The server's version, and whether it has a schema of ours.
pub(super) const SERVER: &str = "SELECT current_setting('server_version'), to_regclass('godex.migration') IS NOT NULL";
/// The newest step of that schema.
pub(super) const NEWEST: &str = "SELECT coalesce(max(number), 0) FROM godex.migration";
/// Whether it has a table of API keys yet.
pub(super) const KEY_TABLE: &str = "SELECT to_regclass('godex.api_key') IS NOT NULL";
/// Whether there are any.
pub(super) const ANY_KEY: &str = "SELECT EXISTS (SELECT FROM godex.api_key)";

/// Why a start refuses a schema whose newest step is this one.
pub(super) fn problem(found: i64) -> Option<String> {
    let known = i64::try_from(MIGRATIONS.steps.len()).unwrap_or(i64::MAX);
    let newer = || format!("it was written by a newer version (schema {found}, this one knows {known})");
    (found > known).then(newer)
}

/// They may create tables, functions, triggers and columns with defaults. They must not change or remove anything that an
/// older version reads or writes.
const ADDITIONS: Ledger = Ledger {
    name: "godex (additions)",
    steps: &[
        include_str!("sql/addition_0001_events.sql"),
        include_str!("sql/addition_0002_jobs.sql"),
        include_str!("sql/addition_0003_access.sql"),
        include_str!("sql/addition_0004_encryption.sql"),
        include_str!("sql/addition_0005_traces.sql"),
    ],
    applied: "SELECT number, checksum FROM godex.addition ORDER BY number",
    record: "INSERT INTO godex.addition (number, checksum) VALUES ($1, $2)",
    open: true,
};

/// "godex" and a one: the advisory lock of everybody who migrates.
const LOCK: i64 = 0x676f_6465_7801;

const TABLES: &str = "
    CREATE SCHEMA IF NOT EXISTS godex;
    CREATE TABLE IF NOT EXISTS godex.migration (
        number   bigint PRIMARY KEY,
        checksum bytea NOT NULL,
        at       timestamptz NOT NULL DEFAULT now());
    CREATE TABLE IF NOT EXISTS godex.addition (
        number   bigint PRIMARY KEY,
        checksum bytea NOT NULL,
        at       timestamptz NOT NULL DEFAULT now());";

pub(super) async fn migrate(client: &mut Object) -> Result<(), OpenError> {
    for ledger in [MIGRATIONS, ADDITIONS] {
        ledger.bring_up_to_date(client).await?;
    }
    Ok(())
}

impl Ledger {
    async fn bring_up_to_date(&self, client: &mut Object) -> Result<(), OpenError> {
        // One look without a lock: almost every start finds everything done.
        if let Ok(done) = self.done(client).await {
            self.check(&done)?;
            if done.len() >= self.steps.len() {
                return Ok(());
            }
        }
        for (number, step) in (1..).zip(self.steps) {
            let transaction = client.transaction().await.map_err(away)?;
            let lock = "SELECT pg_advisory_xact_lock($1)";
            transaction.query_typed(lock, typed![LOCK => INT8]).await.map_err(away)?;
            transaction.batch_execute(TABLES).await.map_err(away)?;
            let done = self.done(transaction.client()).await.map_err(away)?;
            self.check(&done)?;
            if done.iter().all(|(done, _)| *done < number) {
                transaction.batch_execute(step).await.map_err(away)?;
                let row = typed![number => INT8, checksum(step) => BYTEA];
                transaction.execute_typed(self.record, row).await.map_err(away)?;
            }
            transaction.commit().await.map_err(away)?;
        }
        let done = self.done(client).await.map_err(away)?;
        self.check(&done)
    }

    /// Nothing newer than we know, unless that does not matter, and nothing other than we made.
    fn check(&self, done: &[(i64, Vec<u8>)]) -> Result<(), OpenError> {
        let known = i64::try_from(self.steps.len()).unwrap_or(i64::MAX);
        if let Some((found, _)) = done.iter().find(|(number, _)| *number > known && !self.open) {
            return Err(OpenError::Newer { name: self.name.to_owned(), found: *found, known });
        }
        for ((number, found), (expected, step)) in done.iter().zip((1..).zip(self.steps)) {
            if *number != expected || *found != checksum(step) {
                return Err(OpenError::Altered { name: self.name.to_owned(), number: expected });
            }
        }
        Ok(())
    }

    async fn done(&self, client: &Client) -> Result<Vec<(i64, Vec<u8>)>, tokio_postgres::Error> {
        let rows = client.query_typed(self.applied, &[]).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err hands over")]
fn away(error: tokio_postgres::Error) -> OpenError {
    let reason = error.as_db_error().map_or_else(|| error.to_string(), |database| database.message().to_owned());
    OpenError::Postgres { reason: reason.into() }
}
