//! What Postgres's failures are to a caller.

use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

use crate::Error;

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err hands over")]
pub(super) fn failure(error: tokio_postgres::Error) -> Error {
    let Some(database) = error.as_db_error() else { return Error::unavailable(error.to_string()) };
    let code = database.code();
    match *code {
        SqlState::UNIQUE_VIOLATION => Error::Conflict,
        SqlState::DISK_FULL => Error::Full,
        SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => Error::corrupt(database.message()),
        // Also what is our own mistake: the caller can do no more about it, and the reason is in the log.
        _ => Error::unavailable(format!("{} ({})", database.message(), code.code())),
    }
}

pub(super) fn pool(error: &PoolError) -> Error {
    match error {
        PoolError::Backend(error) => Error::unavailable(error.to_string()),
        other => Error::unavailable(other.to_string()),
    }
}
