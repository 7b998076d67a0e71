//! `POST /v1/responses`: JSON, or server-sent events with `stream: true`. What is done with stored responses is in
//! `stored`, `cancel` and `resume`.

mod cancel;
mod compact;
mod input_tokens;
mod resume;
mod stored;

use bridge::Note;
use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderValue, Request, Response, header};
use hyper::body::Incoming;

use super::json;
use crate::background::{Submitted, follow_foreground, submit};
use crate::body::Body;
use crate::compat;
use crate::error::ApiError;
use crate::follow::Follower;
use crate::idempotency::{Key, Known};
use crate::request::RequestContext;
use crate::turn::{Finished, Start, Started, Turn};
pub(crate) use cancel::cancel;
pub(crate) use compact::compact;
pub(crate) use input_tokens::input_tokens;
pub(crate) use stored::{delete, input_items, retrieve};

pub(crate) async fn create(context: RequestContext, request: Request<Incoming>) -> Result<Response<Body>, ApiError> {
    let profile = context.caller.profile();
    let mut response = respond(context, request).await?;
    profile.mark(response.headers_mut());
    Ok(response)
}

async fn respond(context: RequestContext, request: Request<Incoming>) -> Result<Response<Body>, ApiError> {
    let (parts, incoming) = request.into_parts();
    let key = Key::of(&parts.headers)?;
    let bytes = context.read_json(&parts.headers, incoming).await?;
    begin(context, bytes, Start { key, ..Start::default() }).await
}

/// The same, of a body that was read.
pub(crate) async fn begin(context: RequestContext, bytes: Bytes, start: Start) -> Result<Response<Body>, ApiError> {
    // Boxed: it is large, and hyper keeps the room for it as long as the connection lives, through every stream.
    match Box::pin(Turn::start(context.clone(), bytes, start)).await? {
        Started::Turn(turn) if !turn.wants_events() => object(turn.run().await),
        Started::Turn(turn) if turn.is_resumable() => {
            let mut headers = http::HeaderMap::new();
            compat::insert(&mut headers, turn.notes());
            let follower = Box::pin(follow_foreground(turn)).await?;
            let mut response = events(follower.into_stream());
            response.headers_mut().extend(headers);
            Ok(response)
        }
        Started::Turn(turn) => {
            let mut headers = http::HeaderMap::new();
            compat::insert(&mut headers, turn.notes());
            let mut response = events(turn.into_stream());
            response.headers_mut().extend(headers);
            Ok(response)
        }
        Started::Background(submission) => match submit(submission).await? {
            Submitted { response_id, stream: true, .. } => {
                Ok(events(Follower::new(&context.app, context.session(), &response_id, 0).into_stream()))
            }
            Submitted { object, .. } => Ok(json(object)),
        },
        Started::Known(Known { response_id, stream: true }) => resume::repeat(&context, &response_id).await,
        Started::Known(Known { response_id, .. }) => stored::object(&context, &response_id).await,
    }
}

/// An answer of server-sent events.
fn events(stream: impl Stream<Item = Bytes> + Send + 'static) -> Response<Body> {
    let mut response = super::with_room(Body::stream(stream));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

fn object(finished: Finished) -> Result<Response<Body>, ApiError> {
    let Finished { ended, notes } = finished;
    let object = ended.into_object()?;
    let mut response = json(object);
    compat::insert(response.headers_mut(), notes.iter().collect::<Vec<&Note>>().into_iter());
    Ok(response)
}
