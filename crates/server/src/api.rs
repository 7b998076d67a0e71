//! The endpoints, one file each.

pub(crate) mod conversations;
pub(crate) mod health;
mod list;
pub(crate) mod models;
mod query;
pub(crate) mod responses;

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use wire::json::ObjectWriter;

use crate::body::Body;

/// A JSON answer.
fn json(body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::full(body.into()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// What stands for a thing that is gone.
fn deleted(id: &str, object: &str) -> Response<Body> {
    let mut body = Vec::new();
    let mut deleted = ObjectWriter::new(&mut body);
    deleted.text("id", id).text("object", object).bool("deleted", true);
    deleted.end();
    json(body)
}
