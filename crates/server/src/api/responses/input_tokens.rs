//! `POST /v1/responses/input_tokens`: how many tokens the input of a request would have. `x-godex-compat` says
//! `input_tokens=degraded` where that is an estimate.

use http::{Request, Response};
use hyper::body::Incoming;
use wire::json::ObjectWriter;

use crate::api::json;
use crate::body::Body;
use crate::compat;
use crate::error::ApiError;
use crate::request::RequestContext;
use crate::turn::{Counted, count_input};

pub(crate) async fn input_tokens(
    context: &RequestContext,
    request: Request<Incoming>,
) -> Result<Response<Body>, ApiError> {
    let (parts, incoming) = request.into_parts();
    let bytes = context.read_json(&parts.headers, incoming).await?;
    let Counted { count, notes } = Box::pin(count_input(context, &bytes)).await?;
    context.account.noted(&notes);
    let mut body = Vec::new();
    let mut object = ObjectWriter::new(&mut body);
    object.text("object", "response.input_tokens").int("input_tokens", count.tokens);
    object.end();
    let mut response = json(body);
    compat::insert(response.headers_mut(), notes.iter());
    Ok(response)
}
