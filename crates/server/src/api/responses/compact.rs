//! `POST /v1/responses/compact`: a conversation becomes the user's newest messages and one compaction item.

use http::{Request, Response};
use hyper::body::Incoming;

use super::super::json;
use crate::body::Body;
use crate::compat;
use crate::error::ApiError;
use crate::request::RequestContext;
use crate::turn;

pub(crate) async fn compact(context: RequestContext, request: Request<Incoming>) -> Result<Response<Body>, ApiError> {
    let (parts, incoming) = request.into_parts();
    let bytes = context.read_json(&parts.headers, incoming).await?;
    let turn::Compaction { object, notes } = Box::pin(turn::compact(&context, &bytes)).await?;
    let mut response = json(object);
    compat::insert(response.headers_mut(), notes.iter());
    Ok(response)
}
