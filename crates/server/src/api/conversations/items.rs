//! `/v1/conversations/{id}/items`.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use store::Item;
use wire::id::Ids;
use wire::json::Invalid;
use wire::responses::{CreateConversationItems, InputItem};

use super::object;
use crate::api::query::Query;
use crate::api::{counted, list};
use crate::app::App;
use crate::body::{self, Body, Room};
use crate::error::ApiError;
use crate::session::{Session, write_listed};

/// As many as OpenAI takes in one request.
const MOST: usize = 20;

pub(crate) async fn create_items(
    app: &App,
    id: &str,
    request: Request<Incoming>,
    mut ids: Ids,
) -> Result<Response<Body>, ApiError> {
    let (parts, incoming) = request.into_parts();
    Query::of(&parts.uri)?;
    let bytes = body::read_json(&parts.headers, incoming, &app.bodies).await?;
    let request: CreateConversationItems<'_> = body::parse(&bytes)?;
    let session = app.session();
    let Some(given_items) = request.items else { return Err(Invalid::missing().at("items").into()) };
    if given_items.is_empty() {
        return Err(Invalid::rule("empty_array", "expected at least one item.").at("items").into());
    }
    let (items, _room) = given(&session, &given_items, Some(id), &bytes, &mut ids).await?;
    // Before they are stored: who is told to come back must not find them there.
    let created = list::items(app, &items, false)?;
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
        return Err(Invalid::rule("array_above_max_length", message).at("items").into());
    }
    session.own_items(items, conversation, body, ids).await
}

pub(crate) async fn list_items(app: &App, id: &str, uri: &Uri) -> Result<Response<Body>, ApiError> {
    let page = Query::of(uri)?.page(app.bodies.budget.page())?;
    let session = app.session();
    let room = session.room();
    let absent = || ApiError::conversation_not_found(id);
    let page = session.observe(session.reading(&room).conversation_items(id, page).await, absent)?;
    list::items(app, &page.items, page.has_more)
}

pub(crate) async fn retrieve_item(app: &App, id: &str, item_id: &str) -> Result<Response<Body>, ApiError> {
    let session = app.session();
    let absent = || ApiError::conversation_item_not_found(id, item_id);
    let room = session.room();
    let item = session.observe(session.reading(&room).conversation_item(id, item_id).await, absent)?;
    counted(app, item.body.len() + 64, |body| write_listed(&item, body))
}

pub(crate) async fn delete_item(app: &App, id: &str, item_id: &str) -> Result<Response<Body>, ApiError> {
    let session = app.session();
    let absent = || ApiError::conversation_item_not_found(id, item_id);
    let left = session.erased(session.store().delete_conversation_item(id, item_id).await, absent)?;
    Ok(object(&left))
}
