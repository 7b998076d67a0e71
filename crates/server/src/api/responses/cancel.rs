//! `POST /v1/responses/{id}/cancel`: ends a background response, wherever it runs. Whether it was in time is the store's to
//! say: a response ends once.

use std::time::Duration;

use http::Response;
use store::{Error, Runs, Status};
use tokio::time::{Instant, sleep, timeout};
use wire::json::Raw;

use super::stored;
use crate::background::{Ending, end};
use crate::body::Body;
use crate::error::{ApiError, Code};
use crate::request::RequestContext;
use crate::session::Session;

/// How long the process that runs a response may take to end it; then it is ended without it.
const PATIENCE: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(25);

pub(crate) async fn cancel(context: &RequestContext, id: &str) -> Result<Response<Body>, ApiError> {
    let session = context.session();
    let absent = || ApiError::response_not_found(id);
    let room = session.room();
    let found = session.observe(session.reading(&room).response(id).await, absent)?;
    if !is_background(&found.head) {
        return Err(refused("a synchronous"));
    }
    let mut status = found.status;
    if !status.is_final() {
        end_it(context, &session, id).await?;
        status = session.observe(session.reading(&room).response(id).await, absent)?.status;
    }
    match status {
        Status::Cancelled => stored::object(context, id).await,
        Status::Completed => Err(refused("a completed")),
        Status::Failed => Err(refused("a failed")),
        Status::Incomplete => Err(refused("an incomplete")),
        Status::Queued | Status::InProgress => {
            Err(ApiError::unavailable(Code::StorageUnavailable, "The response could not be cancelled. Please retry."))
        }
    }
}

fn refused(what: &str) -> ApiError {
    ApiError::bad_request(Code::InvalidRequest, format!("Cannot cancel {what} response."))
}

pub(super) fn is_background(head: &[u8]) -> bool {
    let head = str::from_utf8(head).ok().and_then(|text| Raw::parse(text).ok());
    head.and_then(|head| head.get("background")).is_some_and(|background| background.as_str() == "true")
}

/// Ends it if it has not ended by itself.
async fn end_it(context: &RequestContext, session: &Session, id: &str) -> Result<(), ApiError> {
    let jobs = &context.app.runtime.jobs;
    if let Some(running) = jobs.find(id) {
        running.cancel();
        if timeout(PATIENCE, running.over()).await.is_ok() {
            return Ok(());
        }
    }
    let runs = match session.store().ask_to_cancel(id).await {
        Err(Error::Ended { .. }) => return Ok(()),
        runs => session.observe(runs, || ApiError::response_not_found(id))?,
    };
    if let Runs::By(_) = runs {
        session.tell(id);
        if ends(context, session, id).await? {
            return Ok(());
        }
    }
    let ended = end(session, id, None, Ending::Cancelled).await;
    jobs.forget(id);
    tell_here(context, id);
    match ended {
        Err(Error::Ended { .. }) => Ok(()),
        ended => session.observe(ended, || ApiError::response_not_found(id)),
    }
}

/// It may have been claimed here a moment ago, and run by now: its provider is not to be heard until the next heartbeat.
fn tell_here(context: &RequestContext, id: &str) {
    if let Some(running) = context.app.runtime.jobs.find(id) {
        running.cancel();
    }
}

/// Waits for whoever runs it.
async fn ends(context: &RequestContext, session: &Session, id: &str) -> Result<bool, ApiError> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        tell_here(context, id);
        let found = session.reading(&session.room()).response(id).await;
        if session.observe(found, || ApiError::response_not_found(id))?.status.is_final() {
            return Ok(true);
        }
        sleep(LOOK).await;
    }
    Ok(false)
}
