//! `/v1/responses/{id}`: what was stored, fetched, listed, deleted.

use http::{Response, Uri};

use crate::api::query::Query;
use crate::api::{counted, deleted, list};
use crate::body::Body;
use crate::error::{ApiError, Code};
use crate::request::RequestContext;
use crate::session;

pub(crate) async fn retrieve(context: &RequestContext, id: &str, uri: &Uri) -> Result<Response<Body>, ApiError> {
    let query = Query::of(uri)?;
    let session = context.session();
    let absent = || ApiError::response_not_found(id);
    let room = session.room();
    let stored = session.observe(session.reading(&room).response(id).await, absent)?;
    if query.flag("stream")? {
        let message = "This response cannot be streamed because it was not created with background=true.";
        return Err(ApiError::bad_request(Code::ResponseNotStreamable, message).with_param("stream"));
    }
    let mut joined = None;
    let answer = counted(context, session::joined_length(&stored), |body| joined = session::join(&stored, body))?;
    let damaged = || ApiError::store(&store::Error::Corrupt(format!("response {id}").into()));
    joined.map(|()| answer).ok_or_else(damaged)
}

pub(crate) async fn delete(context: &RequestContext, id: &str) -> Result<Response<Body>, ApiError> {
    let session = context.session();
    let absent = || ApiError::response_not_found(id);
    session.erased(session.store().delete_response(id).await, absent)?;
    Ok(deleted(id, "response.deleted"))
}

/// What is stored has ended, and what runs in the foreground ends with its client.
pub(crate) async fn cancel(context: &RequestContext, id: &str) -> Result<Response<Body>, ApiError> {
    let session = context.session();
    let absent = || ApiError::response_not_found(id);
    session.observe(session.reading(&session.room()).response(id).await, absent)?;
    Err(ApiError::bad_request(Code::InvalidRequest, "Cannot cancel a synchronous response."))
}

pub(crate) async fn input_items(context: &RequestContext, id: &str, uri: &Uri) -> Result<Response<Body>, ApiError> {
    let page = Query::of(uri)?.page(context.app.runtime.budget.page())?;
    let session = context.session();
    let room = session.room();
    let absent = || ApiError::response_not_found(id);
    let page = session.observe(session.reading(&room).input_items(id, page).await, absent)?;
    list::items(context, &page.items, page.has_more)
}
