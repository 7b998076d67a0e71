//! `/v1/responses/{id}`: what was stored, fetched, listed, deleted.

use bytes::Bytes;
use http::{Response, Uri};

use super::resume;
use crate::api::query::Query;
use crate::api::{counted, deleted, list};
use crate::body::Body;
use crate::error::{ApiError, Code};
use crate::request::RequestContext;
use crate::session::{self, Session};

pub(crate) async fn retrieve(context: &RequestContext, id: &str, uri: &Uri) -> Result<Response<Body>, ApiError> {
    let query = Query::of(uri)?;
    if query.flag("stream")? {
        return resume::resume(context, id, query.number("starting_after")?).await;
    }
    object(context, id).await
}

/// The object as it is stored.
pub(super) async fn object(context: &RequestContext, id: &str) -> Result<Response<Body>, ApiError> {
    let (session, absent) = (context.session(), || ApiError::response_not_found(id));
    let room = session.room();
    let stored = session.observe(session.reading(&room).response(id).await, absent)?;
    counted(context, session::joined_length(&stored), |body| {
        session::join(&stored, body).ok_or_else(|| damaged(&session, id))
    })
}

/// The same, for whoever makes something else of it; counted as long as it is held.
pub(super) async fn bytes(context: &RequestContext, id: &str) -> Result<Bytes, ApiError> {
    let (session, absent) = (context.session(), || ApiError::response_not_found(id));
    let room = session.room();
    let stored = session.observe(session.reading(&room).response(id).await, absent)?;
    let mut object = Vec::with_capacity(session::joined_length(&stored));
    session::join(&stored, &mut object).ok_or_else(|| damaged(&session, id))?;
    context.app.runtime.budget.hold(object)
}

pub(super) fn damaged(session: &Session, id: &str) -> ApiError {
    session.damaged(format!("response {id}"))
}

pub(crate) async fn delete(context: &RequestContext, id: &str) -> Result<Response<Body>, ApiError> {
    let session = context.session();
    let absent = || ApiError::response_not_found(id);
    match session.store().delete_response(id).await {
        Err(store::Error::Running) => {
            let message = "Cannot delete a response that is still running in the background. Cancel it first.";
            Err(ApiError::bad_request(Code::InvalidRequest, message))
        }
        erased => session.erased(erased, absent).map(|()| deleted(id, "response.deleted")),
    }
}

pub(crate) async fn input_items(context: &RequestContext, id: &str, uri: &Uri) -> Result<Response<Body>, ApiError> {
    let page = Query::of(uri)?.page(context.app.runtime.budget.page())?;
    let session = context.session();
    let room = session.room();
    let absent = || ApiError::response_not_found(id);
    let page = session.observe(session.reading(&room).input_items(id, page).await, absent)?;
    list::items(context, &page.items, page.has_more)
}
