//! Indexes that came after their tables. They only make lookups faster, so they have no number among the migrations:
//! a version from before them runs beside this one, and again after it, with them or without.
//!
//! A table that holds something is indexed concurrently, by a task of its own: nobody's writing waits for it, and no
//! start. One instance does it; a build that was cut off is begun anew by the next start.

use std::collections::HashMap;

use deadpool_postgres::{ClientWrapper, Object, Pool, Transaction};
use tokio_postgres::{Client, SimpleQueryMessage};

use super::{column, failure};
use crate::Error;

struct Index {
    name: &'static str,
    on: &'static str,
    /// The one whose work it takes over.
    instead: Option<&'static str>,
}

/// See the SQLite schema for what each is for.
const INDEXES: [Index; 3] = [
    Index { name: "item_named", on: "godex.item (tenant, id, segment, pos)", instead: Some("item_id") },
    Index {
        name: "item_hidden",
        on: "godex.item (tenant, segment, pos) WHERE hidden IS NOT NULL AND length(body) > 0",
        instead: None,
    },
    Index {
        name: "segment_branch",
        on: "godex.segment (tenant, parent, start) WHERE parent IS NOT NULL",
        instead: Some("segment_parent"),
    },
];

/// "godex" and a two: the advisory lock of whoever makes indexes. It is only ever tried for: who waits for a lock has a
/// snapshot, and whoever builds an index concurrently waits for all snapshots.
const LOCK: i64 = 0x676f_6465_7802;

const EXISTING: &str = "SELECT c.relname::text, i.indisvalid FROM pg_catalog.pg_index i \
    JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'godex'";
const BUILDING: &str = "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_stat_progress_create_index p \
    JOIN pg_catalog.pg_class c ON c.oid = p.relid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE n.nspname = 'godex')";
const EMPTY: &str = "SELECT NOT EXISTS (SELECT 1 FROM godex.item) AND NOT EXISTS (SELECT 1 FROM godex.segment)";

/// Sees to it that the indexes are there, or will be.
pub(super) async fn ensure(pool: &Pool) -> Result<(), Error> {
    let mut client = pool.get().await.map_err(|error| failure::pool(&error))?;
    if done(&existing(&client).await?) {
        return Ok(());
    }
    let row = client.query_typed_one(EMPTY, &[]).await.map_err(failure)?;
    if column(&row, 0)? {
        return at_once(&mut client).await;
    }
    drop(client);
    let pool = pool.clone();
    let build = async move {
        match build(&pool).await {
            Ok(true) => tracing::info!("the session store has its new indexes"),
            Ok(false) => {}
            Err(error) => tracing::warn!(
                %error, "the session store's new indexes could not be made; lookups are slow, the next start tries again"
            ),
        }
    };
    #[expect(clippy::disallowed_methods, reason = "it may take minutes, and nothing is lost if it is cut off")]
    drop(tokio::spawn(build));
    Ok(())
}

/// The names of all our indexes, and whether each is whole.
async fn existing(client: &Client) -> Result<HashMap<String, bool>, Error> {
    let rows = client.query_typed(EXISTING, &[]).await.map_err(failure)?;
    rows.iter().map(|row| Ok((column(row, 0)?, column(row, 1)?))).collect()
}

fn done(existing: &HashMap<String, bool>) -> bool {
    let made = |index: &Index| existing.get(index.name) == Some(&true);
    let over = |index: &Index| index.instead.is_none_or(|old| !existing.contains_key(old));
    INDEXES.iter().all(|index| made(index) && over(index))
}

fn steps() -> Vec<String> {
    let mut steps = Vec::new();
    for Index { name, on, instead } in &INDEXES {
        steps.push(format!("CREATE INDEX IF NOT EXISTS {name} ON {on}"));
        steps.extend(instead.map(|old| format!("DROP INDEX IF EXISTS godex.{old}")));
    }
    steps
}

/// In tables that are empty. Each step is a transaction: who holds one table and waits for another waits, perhaps, for
/// somebody who waits for the first.
async fn at_once(client: &mut Object) -> Result<(), Error> {
    for sql in steps() {
        let transaction = client.transaction().await.map_err(failure)?;
        if !locked(&transaction).await? {
            return Ok(());
        }
        transaction.batch_execute(&sql).await.map_err(failure)?;
        transaction.commit().await.map_err(failure)?;
    }
    Ok(())
}

/// Says whether it was us who made them. The lock is held by a transaction of its own, which has no snapshot meanwhile.
async fn build(pool: &Pool) -> Result<bool, Error> {
    // Not the pool's any more: turns must not wait for what takes minutes.
    let mut holder = Object::take(pool.get().await.map_err(|error| failure::pool(&error))?);
    let builder = Object::take(pool.get().await.map_err(|error| failure::pool(&error))?);
    let held = holder.transaction().await.map_err(failure)?;
    let building = builder.query_typed_one(BUILDING, &[]).await.map_err(failure)?;
    // A build outlives the process that asked for it.
    if !locked(&held).await? || column(&building, 0)? {
        return Ok(false);
    }
    for index in &INDEXES {
        concurrently(&builder, index).await?;
    }
    held.commit().await.map_err(failure)?;
    Ok(true)
}

/// Tries for the lock, for as long as the transaction lasts. As a plain query: of a prepared one the result would stay
/// open, and with it a snapshot, for which the build would wait for ever.
async fn locked(transaction: &Transaction<'_>) -> Result<bool, Error> {
    let rows = transaction.simple_query(&format!("SELECT pg_try_advisory_xact_lock({LOCK})")).await.map_err(failure)?;
    Ok(rows.iter().any(|row| matches!(row, SimpleQueryMessage::Row(row) if row.get(0) == Some("t"))))
}

async fn concurrently(builder: &ClientWrapper, index: &Index) -> Result<(), Error> {
    let Index { name, on, instead } = index;
    let made = existing(builder).await?.get(*name).copied();
    if made == Some(false) {
        run(builder, format!("DROP INDEX CONCURRENTLY IF EXISTS godex.{name}")).await?;
    }
    if made != Some(true) {
        run(builder, format!("CREATE INDEX CONCURRENTLY {name} ON {on}")).await?;
    }
    match instead {
        Some(old) => run(builder, format!("DROP INDEX CONCURRENTLY IF EXISTS godex.{old}")).await,
        None => Ok(()),
    }
}

async fn run(builder: &ClientWrapper, sql: String) -> Result<(), Error> {
    builder.batch_execute(&sql).await.map_err(failure)
}
