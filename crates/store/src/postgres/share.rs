//! Limits that instances keep together: all arithmetic is in the database, under the lock of a subject's row and by the
//! database's clock.

use tokio_postgres::Row;

use super::jobs::span;
use super::{Database, column, failure, sql, typed};
use crate::share::counted;
use crate::{Error, Share, ShareWish, Worker};

impl Database {
    pub(crate) async fn take_shares(&self, wishes: &[ShareWish], window_ms: i64) -> Result<Vec<Share>, Error> {
        if wishes.is_empty() {
            return Ok(Vec::new());
        }
        let subjects: Vec<&[u8]> = wishes.iter().map(|wish| wish.subject.as_bytes()).collect();
        let limits: Vec<i64> = wishes.iter().map(|wish| counted(wish.limit)).collect();
        let wants: Vec<i64> = wishes.iter().map(ShareWish::counted_wanted).collect();
        let overdrafts: Vec<i64> = wishes.iter().map(|wish| counted(wish.overdrawn)).collect();
        self.read(async |client| {
            let asked = typed![
                subjects => BYTEA_ARRAY,
                limits => INT8_ARRAY,
                wants => INT8_ARRAY,
                overdrafts => INT8_ARRAY,
                window_ms => INT8,
            ];
            let rows = client.query_typed(sql::SHARES_TAKE, asked).await.map_err(failure)?;
            rows.iter().map(share).collect()
        })
        .await
    }

    pub(crate) async fn hold_places(
        &self,
        worker: Worker,
        subject: &str,
        wanted: u64,
        limit: u64,
        millis: i64,
    ) -> Result<u64, Error> {
        self.read(async |client| {
            let asked = typed![
                &worker.0[..] => BYTEA,
                subject.as_bytes() => BYTEA,
                counted(wanted) => INT8,
                counted(limit) => INT8,
                span(millis) => FLOAT8,
            ];
            number(&client.query_typed_one(sql::PLACES_HOLD, asked).await.map_err(failure)?, 0)
        })
        .await
    }

    pub(crate) async fn keep_places(&self, worker: Worker, millis: i64) -> Result<(), Error> {
        self.read(async |client| {
            let kept = typed![&worker.0[..] => BYTEA, span(millis) => FLOAT8];
            client.execute_typed(sql::PLACES_KEEP, kept).await.map(drop).map_err(failure)
        })
        .await
    }
}

fn share(row: &Row) -> Result<Share, Error> {
    Ok(Share { granted: number(row, 0)?, left: number(row, 1)?, wait: number(row, 2)? })
}

fn number(row: &Row, index: usize) -> Result<u64, Error> {
    column::<i64>(row, index).map(|number| u64::try_from(number).unwrap_or(0))
}
