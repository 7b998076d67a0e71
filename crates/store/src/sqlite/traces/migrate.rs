//! The tables of the trace file. They have their own list of steps: the file may be somebody else's, too, such as an
//! earlier program's.

use rusqlite::{Connection, TransactionBehavior, params};

use crate::migration::checksum;

/// Step n brings the tables to version n. They are never changed once released.
const STEPS: &[&str] = &[include_str!("0001_init.sql")];

const TABLE: &str = "CREATE TABLE IF NOT EXISTS godex_trace_migration \
    (number INTEGER PRIMARY KEY, checksum BLOB NOT NULL) STRICT";
const APPLIED: &str = "SELECT number, checksum FROM godex_trace_migration ORDER BY number";
const RECORD: &str = "INSERT INTO godex_trace_migration (number, checksum) VALUES (?1, ?2)";

/// What is wrong with the tables, if they are not ours.
pub(super) fn migrate(connection: &mut Connection) -> rusqlite::Result<Option<String>> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(TABLE)?;
    let mut select = transaction.prepare(APPLIED)?;
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let applied: Vec<(i64, Vec<u8>)> = rows.collect::<Result<_, _>>()?;
    drop(select);
    if applied.len() > STEPS.len() {
        return Ok(Some(format!(
            "a newer version wrote it (schema {}, this one knows {})",
            applied.len(),
            STEPS.len()
        )));
    }
    for ((number, step), applied) in (1..).zip(STEPS).zip(applied.iter().map(Some).chain(std::iter::repeat(None))) {
        match applied {
            Some((applied, sum)) if *applied == number && *sum == checksum(step) => {}
            Some(_) => return Ok(Some(format!("its schema is not ours (step {number}); it was changed by hand"))),
            None => {
                transaction.execute_batch(step)?;
                transaction.execute(RECORD, params![number, checksum(step)])?;
            }
        }
    }
    transaction.commit()?;
    Ok(None)
}
