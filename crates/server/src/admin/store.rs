//! The session store: a copy of it while it is used, and whether it is whole.

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, Response, header};
use serde_json::json;
use store::{Backup, Checking};

use super::routes::Place;
use crate::body::Body;
use crate::config::Backend;
use crate::error::{ApiError, Code};
use crate::restore::SEAL;
use crate::seal::{self, SealKey};

/// A copy of the SQLite file, as of now, with the key that is beside it. It is made first, and then given out.
pub(super) async fn backup(place: Place<'_>) -> Result<Response<Body>, ApiError> {
    let session = &place.config.session;
    match session.backend {
        Backend::Sqlite { .. } => {}
        Backend::Postgres(_) => return Err(refused("The sessions are in Postgres: pg_dump makes backups of it.")),
        Backend::Memory { .. } => return Err(refused("The sessions are in memory: there is nothing to back up.")),
    }
    let key = SealKey::file(session).map_or(Ok(None), |path| seal::kept(&path));
    let key = key.map_err(|error| ApiError::new(Code::StorageError, format!("The key of the seal: {error}.")))?;
    let made = place.store.backup(key.map(|key| (SEAL, key))).await;
    let made = made.map_err(|error| refused_by(&error))?;
    let length = HeaderValue::from(made.bytes());
    // One that breaks off is shorter than was said: who reads it learns that.
    let chunks = stream::unfold(made, |mut made: Backup| async move { Some((made.next().await?.ok()?, made)) });
    let mut response = Response::new(Body::stream(chunks));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_LENGTH, length);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/vnd.sqlite3"));
    Ok(response)
}

fn refused(why: &str) -> ApiError {
    ApiError::new(Code::InvalidRequest, why)
}

/// What happened is for the operator, who asks here.
fn refused_by(error: &store::Error) -> ApiError {
    match error {
        store::Error::Unavailable(why) => {
            ApiError::new(Code::StorageError, format!("The store cannot be copied: {}.", why.reason()))
        }
        other => ApiError::store(other),
    }
}

/// Lines of how far the look at everything is; the last one says what was found, or why there is no more.
pub(super) fn check(place: Place<'_>) -> Response<Body> {
    let lines = stream::unfold(Some(place.store.checking()), |checking: Option<Checking>| async move {
        let mut checking = checking?;
        let (line, next) = match checking.step().await {
            Ok(true) => {
                (json!({"object": "progress", "read": checking.read(), "rows": checking.rows()}), Some(checking))
            }
            Ok(false) => {
                let found = checking.findings();
                let (read, lines) = (checking.read(), found.lines());
                (json!({"object": "end", "read": read, "findings": lines, "found": found.count()}), None)
            }
            Err(error) => {
                let why = match &error {
                    store::Error::Unavailable(unavailable) => unavailable.reason().to_owned(),
                    other => other.to_string(),
                };
                (json!({"object": "error", "message": why}), None)
            }
        };
        Some((Bytes::from(format!("{line}\n")), next))
    });
    let mut response = Response::new(Body::stream(lines));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/jsonl"));
    response
}
