//! The endpoints, one file each.

pub(crate) mod health;
pub(crate) mod models;
pub(crate) mod responses;

use bytes::Bytes;
use http::{HeaderValue, Response, header};

use crate::body::Body;

/// A JSON answer.
fn json(body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::full(body.into()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
