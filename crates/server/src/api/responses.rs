//! `POST /v1/responses`: JSON, or server-sent events with `stream: true`. What is done with stored responses is in
//! `stored`.

mod stored;

use bridge::Note;
use http::{HeaderValue, Request, Response, header};
use hyper::body::Incoming;

use super::json;
use crate::body::Body;
use crate::compat;
use crate::error::ApiError;
use crate::request::RequestContext;
use crate::turn::{Ended, Finished, Start, Turn};
pub(crate) use stored::{cancel, delete, input_items, retrieve};

pub(crate) async fn create(context: RequestContext, request: Request<Incoming>) -> Result<Response<Body>, ApiError> {
    let (parts, incoming) = request.into_parts();
    let bytes = context.read_json(&parts.headers, incoming).await?;
    // Boxed: it is large, and hyper keeps the room for it as long as the connection lives, through every stream.
    let turn = Box::pin(Turn::start(context, bytes, Start::default())).await?;
    if turn.wants_events() { Ok(events(turn)) } else { object(turn.run().await) }
}

fn events(turn: Box<Turn>) -> Response<Body> {
    let mut headers = http::HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    compat::insert(&mut headers, turn.notes());
    let mut response = Response::new(Body::stream(turn.into_stream()));
    *response.headers_mut() = headers;
    response
}

fn object(finished: Finished) -> Result<Response<Body>, ApiError> {
    let Finished { ended, notes } = finished;
    let object = match ended {
        Ended::Object(object) => object,
        Ended::Failed(failure) => return Err(ApiError::upstream(&failure)),
        Ended::Stopped => return Err(ApiError::shutting_down()),
        Ended::NotKept(error) => return Err(ApiError::store(&error)),
    };
    let mut response = json(object);
    compat::insert(response.headers_mut(), notes.iter().collect::<Vec<&Note>>().into_iter());
    Ok(response)
}
