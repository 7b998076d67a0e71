//! The endpoints, one file each.

pub(crate) mod conversations;
pub(crate) mod health;
mod list;
pub(crate) mod metrics;
pub(crate) mod models;
mod query;
pub(crate) mod responses;
pub(crate) mod search;

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use wire::json::{ObjectWriter, pair_surrogates};

use crate::body::Body;
use crate::error::ApiError;
use crate::request::RequestContext;

/// A JSON answer.
fn json(body: impl Into<Bytes>) -> Response<Body> {
    let mut response = with_room(Body::full(body.into()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// An answer whose headers have room for all that is added on its way: notes, limits, ids.
fn with_room(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().reserve(12);
    response
}

/// A JSON answer of stored things, which a client that does not read it makes stay: counted, from before it is written
/// until it is sent. `bytes` is about how long it will be. What is stored is what was sent: here it becomes what all can read.
fn counted(
    context: &RequestContext,
    bytes: usize,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), ApiError>,
) -> Result<Response<Body>, ApiError> {
    let mut share = context.app.runtime.budget.reserve(bytes)?;
    let mut body = Vec::with_capacity(bytes);
    write(&mut body)?;
    pair_surrogates(&mut body);
    share.grow_to(body.len())?;
    body.shrink_to_fit();
    Ok(json(share.hold(body)))
}

/// What is answered for a thing that is gone.
fn deleted(id: &str, object: &str) -> Response<Body> {
    let mut body = Vec::new();
    let mut deleted = ObjectWriter::new(&mut body);
    deleted.text("id", id).text("object", object).bool("deleted", true);
    deleted.end();
    json(body)
}
