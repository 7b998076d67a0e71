//! `/v1/conversations`: lists of items with metadata. Items are in `items`.

mod items;

use bridge::check_metadata;
use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use store::{NewConversation, StoredConversation};
use wire::id::IdKind;
use wire::json::{Invalid, Kept, ObjectWriter, Raw, pair_surrogates};
use wire::responses::{CreateConversation, UpdateConversation};

use super::{deleted, json};
use crate::body::{self, Body};
use crate::clock;
use crate::error::ApiError;
use crate::request::RequestContext;
use crate::session::Session;
pub(crate) use items::{create_items, delete_item, list_items, retrieve_item};

pub(crate) async fn create(context: &RequestContext, request: Request<Incoming>) -> Result<Response<Body>, ApiError> {
    let mut ids = context.ids.clone();
    let (parts, incoming) = request.into_parts();
    let mut bytes = context.read_json(&parts.headers, incoming).await?;
    if bytes.trim_ascii().is_empty() {
        bytes = Bytes::from_static(b"{}");
    }
    let request: CreateConversation<'_> = body::parse(&bytes)?;
    check_metadata(request.metadata)?;
    let session = context.session();
    let (items, _room) =
        items::given(&session, request.items.as_deref().unwrap_or_default(), None, &bytes, &mut ids).await?;
    let conversation = StoredConversation {
        id: ids.make(IdKind::Conversation).to_string(),
        created_at: i64::try_from(clock::unix_millis()).unwrap_or(i64::MAX),
        metadata: metadata(request.metadata),
    };
    let StoredConversation { id, created_at, metadata } = conversation.clone();
    let new = NewConversation { id, created_at, metadata, items };
    let absent = || ApiError::conversation_not_found(&conversation.id);
    session.observe(session.store().create_conversation(new).await, absent)?;
    object(&session, &conversation)
}

pub(crate) async fn retrieve(context: &RequestContext, id: &str) -> Result<Response<Body>, ApiError> {
    let session = context.session();
    let absent = || ApiError::conversation_not_found(id);
    let conversation = session.observe(session.store().conversation(id).await, absent)?;
    object(&session, &conversation)
}

/// Replaces the metadata; `null` is none at all.
pub(crate) async fn update(
    context: &RequestContext,
    id: &str,
    request: Request<Incoming>,
) -> Result<Response<Body>, ApiError> {
    let (parts, incoming) = request.into_parts();
    let bytes = context.read_json(&parts.headers, incoming).await?;
    let Kept { raw, value: request }: Kept<'_, UpdateConversation<'_>> = body::parse(&bytes)?;
    if raw.get("metadata").is_none() {
        return Err(Invalid::missing().at("metadata").into());
    }
    check_metadata(request.metadata)?;
    let session = context.session();
    let absent = || ApiError::conversation_not_found(id);
    let update = metadata(request.metadata);
    let updated = session.observe(session.store().update_conversation(id, update).await, absent)?;
    object(&session, &updated)
}

/// Its items stay with the responses that they belong to.
pub(crate) async fn delete(context: &RequestContext, id: &str) -> Result<Response<Body>, ApiError> {
    let session = context.session();
    let absent = || ApiError::conversation_not_found(id);
    session.erased(session.store().delete_conversation(id).await, absent)?;
    Ok(deleted(id, "conversation.deleted"))
}

fn metadata(given: Option<wire::json::Object<'_>>) -> Bytes {
    Bytes::copy_from_slice(given.map_or("{}", |metadata| metadata.0.as_str()).as_bytes())
}

fn object(session: &Session, conversation: &StoredConversation) -> Result<Response<Body>, ApiError> {
    let metadata = str::from_utf8(&conversation.metadata).ok().and_then(|text| Raw::parse(text).ok());
    let metadata = metadata.ok_or_else(|| session.damaged(format!("conversation {}", conversation.id)))?;
    let mut body = Vec::new();
    let mut object = ObjectWriter::new(&mut body);
    object.text("id", &conversation.id).text("object", "conversation");
    object.int("created_at", conversation.created_at / 1000).raw("metadata", metadata);
    object.end();
    pair_surrogates(&mut body);
    Ok(json(body))
}
