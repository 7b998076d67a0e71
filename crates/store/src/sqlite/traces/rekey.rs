//! What was sealed with other keys is sealed anew, or dropped.

use rusqlite::{Connection, params};

use super::super::failure;
use super::{cached, sql};
use crate::trace::{Renewed, SealPlace, TraceNumber, renew};
use crate::{Encryption, Error};

/// Rows of one step.
const FEW: i64 = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    Documents,
    Payloads,
}

#[derive(Debug, Default)]
pub(super) struct Step {
    pub(super) rewritten: u64,
    pub(super) dropped: u64,
    pub(super) next: Option<i64>,
}

/// A row, by what it is found with; its name and its number, by which it is bound.
type Found = (i64, String, Vec<u8>, TraceNumber);

pub(super) fn step(connection: &Connection, table: Table, after: i64, encryption: &Encryption) -> Result<Step, Error> {
    let (select, change, drop) = match table {
        Table::Documents => (sql::REKEY_DOCUMENTS, sql::DOCUMENTS_RENEW, sql::DOCUMENTS_DELETE),
        Table::Payloads => (sql::REKEY_PAYLOADS, sql::PAYLOAD_RENEW, sql::PAYLOAD_DROP),
    };
    let mut select = cached(connection, select)?;
    let rows = select.query_map(params![after, FEW], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(if table == Table::Documents { 0 } else { 3 })?))
    });
    let rows: Vec<Found> = rows.and_then(Iterator::collect).map_err(failure)?;
    let full = i64::try_from(rows.len()).is_ok_and(|count| count == FEW);
    let mut step = Step { next: rows.last().filter(|_| full).map(|row| row.0), ..Step::default() };
    for (found, name, body, number) in rows {
        let place = match table {
            Table::Documents => SealPlace::Documents(number),
            Table::Payloads => SealPlace::Payload(number, &name),
        };
        match renew(encryption, place, &body)? {
            Renewed::AsItWas => {}
            Renewed::New(body) => {
                cached(connection, change)?.execute(params![found, body]).map_err(failure)?;
                step.rewritten += 1;
            }
            Renewed::Lost => {
                cached(connection, drop)?.execute([found]).map_err(failure)?;
                step.dropped += 1;
            }
        }
    }
    Ok(step)
}
