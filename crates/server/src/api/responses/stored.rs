//! `/v1/responses/{id}`: what was stored, fetched, listed, deleted.

use http::{Response, Uri};

use crate::api::query::Query;
use crate::api::{counted, deleted, list};
use crate::app::App;
use crate::body::Body;
use crate::error::ApiError;
use crate::session;

pub(crate) async fn retrieve(app: &App, id: &str, uri: &Uri) -> Result<Response<Body>, ApiError> {
    let query = Query::of(uri)?;
    let session = app.session();
    let absent = || ApiError::response_not_found(id);
    let room = session.room();
    let stored = session.observe(session.reading(&room).response(id).await, absent)?;
    if query.flag("stream")? {
        let message = "This response cannot be streamed because it was not created with background=true.";
        return Err(ApiError::bad_request("response_not_streamable", message).with_param("stream"));
    }
    let mut joined = None;
    let answer = counted(app, session::joined_length(&stored), |body| joined = session::join(&stored, body))?;
    let damaged = || ApiError::store(&store::Error::Corrupt(format!("response {id}").into()));
    joined.map(|()| answer).ok_or_else(damaged)
}

pub(crate) async fn delete(app: &App, id: &str) -> Result<Response<Body>, ApiError> {
    let session = app.session();
    let absent = || ApiError::response_not_found(id);
    session.erased(session.store().delete_response(id).await, absent)?;
    Ok(deleted(id, "response.deleted"))
}

/// What is stored has ended, and what runs in the foreground ends with its client.
pub(crate) async fn cancel(app: &App, id: &str) -> Result<Response<Body>, ApiError> {
    let session = app.session();
    let absent = || ApiError::response_not_found(id);
    session.observe(session.reading(&session.room()).response(id).await, absent)?;
    Err(ApiError::bad_request("invalid_request", "Cannot cancel a synchronous response."))
}

pub(crate) async fn input_items(app: &App, id: &str, uri: &Uri) -> Result<Response<Body>, ApiError> {
    let page = Query::of(uri)?.page(app.bodies.budget.page())?;
    let session = app.session();
    let room = session.room();
    let absent = || ApiError::response_not_found(id);
    let page = session.observe(session.reading(&room).input_items(id, page).await, absent)?;
    list::items(app, &page.items, page.has_more)
}
