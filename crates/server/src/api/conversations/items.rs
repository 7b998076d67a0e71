//! `/v1/conversations/{id}/items`.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use store::Item;
use wire::id::Ids;
use wire::json::{Invalid, InvalidCode};
use wire::responses::{CreateConversationItems, InputItem};

use super::object;
use crate::api::query::Query;
use crate::api::{counted, list};
use crate::body::{self, Body, Room};
use crate::error::ApiError;
use crate::request::RequestContext;
use crate::session::{Session, write_listed};

/// As many as OpenAI takes in one request.
const MOST: usize = 20;

pub(crate) async fn create_items(
    context: &RequestContext,
    id: &str,
    request: Request<Incoming>,
) -> Result<Response<Body>, ApiError> {
    let mut ids = context.ids.clone();
    let (parts, incoming) = request.into_parts();
    Query::of(&parts.uri)?;
    let bytes = context.read_json(&parts.headers, incoming).await?;
    let request: CreateConversationItems<'_> = body::parse(&bytes)?;
    let session = context.session();
    let Some(given_items) = request.items else { return Err(Invalid::missing().at("items").into()) };
    if given_items.is_empty() {
        return Err(Invalid::rule(InvalidCode::EmptyArray, "expected at least one item.").at("items").into());
    }
    let (items, _room) = given(&session, &given_items, Some(id), &bytes, &mut ids).await?;
    // Before they are stored: who is told to come back must not find them there.
    let created = list::items(context, &items, false)?;
    let absent = || ApiError::conversation_not_found(id);
    session.observe(session.store().append_items(id, items).await, absent)?;
    Ok(created)
}

/// The items of a request as they are stored, in that conversation or in a new one.
pub(super) async fn given(
    session: &Session,
    items: &[InputItem<'_>],
    conversation: Option<&str>,
    body: &Bytes,
    ids: &mut Ids,
) -> Result<(Vec<Item>, Arc<Room>), ApiError> {
    if items.len() > MOST {
        let message = format!("array too long. Expected at most {MOST} items, but got {} items instead.", items.len());
        return Err(Invalid::rule(InvalidCode::ArrayAboveMaxLength, message).at("items").into());
    }
    session.own_items(items, conversation, body, ids).await
}

pub(crate) async fn list_items(context: &RequestContext, id: &str, uri: &Uri) -> Result<Response<Body>, ApiError> {
    let page = Query::of(uri)?.page(context.app.runtime.budget.page())?;
    let session = context.session();
    let room = session.room();
    let absent = || ApiError::conversation_not_found(id);
    let page = session.observe(session.reading(&room).conversation_items(id, page).await, absent)?;
    list::items(context, &page.items, page.has_more)
}

pub(crate) async fn retrieve_item(
    context: &RequestContext,
    id: &str,
    item_id: &str,
) -> Result<Response<Body>, ApiError> {
    let session = context.session();
    let absent = || ApiError::conversation_item_not_found(id, item_id);
    let room = session.room();
    let item = session.observe(session.reading(&room).conversation_item(id, item_id).await, absent)?;
    counted(context, item.body.len() + 64, |body| session.observe(write_listed(&item, body), absent))
}

pub(crate) async fn delete_item(context: &RequestContext, id: &str, item_id: &str) -> Result<Response<Body>, ApiError> {
    let session = context.session();
    let absent = || ApiError::conversation_item_not_found(id, item_id);
    let left = session.erased(session.store().delete_conversation_item(id, item_id).await, absent)?;
    object(&session, &left)
}
