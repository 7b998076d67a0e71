//! `GET /v1/responses/{id}?stream=true`: the stream of a response once more, from its beginning or from the event after
//! `starting_after`: out of the log as long as there is one, then following it live; later out of the stored response.

use bridge::{EventReplay, Events, replay_terminal};
use bytes::Bytes;
use futures_util::Stream;
use http::Response;
use store::{EventLimits, Log};

use super::{cancel, events, stored};
use crate::body::Body;
use crate::error::{ApiError, Code};
use crate::follow::Follower;
use crate::request::RequestContext;

/// The stream of a response that can be streamed again.
pub(super) async fn resume(
    context: &RequestContext,
    id: &str,
    starting_after: Option<u64>,
) -> Result<Response<Body>, ApiError> {
    match log(context, id).await? {
        Log::None => {
            let session = context.session();
            let found = session.reading(&session.room()).response(id).await;
            let found = session.observe(found, || ApiError::response_not_found(id))?;
            let wanted =
                if cancel::is_background(&found.head) { "background=true and stream=true" } else { "background=true" };
            let message = format!("This response cannot be streamed because it was not created with {wanted}.");
            Err(ApiError::bad_request(Code::ResponseNotStreamable, message).with_param("stream"))
        }
        Log::Kept => Ok(follow(context, id, starting_after)),
        Log::Dropped { last } => match starting_after {
            None => whole(context, id).await,
            Some(after) if after >= last => Ok(as_events(wire::sse::DONE.to_vec())),
            Some(_) => {
                let object = stored::bytes(context, id).await?;
                let mut terminal = Events::sse();
                replay_terminal(&object, last, &mut terminal).ok_or_else(|| stored::damaged(&context.session(), id))?;
                Ok(as_events(terminal.take()))
            }
        },
    }
}

/// The stream of a response that was made under the same key, whether its events were logged or not.
pub(super) async fn repeat(context: &RequestContext, id: &str) -> Result<Response<Body>, ApiError> {
    match log(context, id).await? {
        Log::Kept => Ok(follow(context, id, None)),
        Log::None | Log::Dropped { .. } => whole(context, id).await,
    }
}

async fn log(context: &RequestContext, id: &str) -> Result<Log, ApiError> {
    let session = context.session();
    let nothing = EventLimits { events: 1, bytes: 1 };
    let page = session.reading(&session.room()).events_after(id, Some(u64::MAX), nothing).await;
    Ok(session.observe(page, || ApiError::response_not_found(id))?.log)
}

fn follow(context: &RequestContext, id: &str, starting_after: Option<u64>) -> Response<Body> {
    let next = starting_after.map_or(0, |after| after.saturating_add(1));
    events(Follower::new(&context.app, context.session(), id, next).into_stream())
}

/// The canonical stream of a response that has ended.
async fn whole(context: &RequestContext, id: &str) -> Result<Response<Body>, ApiError> {
    let object = stored::bytes(context, id).await?;
    let replay = EventReplay::new(object).ok_or_else(|| stored::damaged(&context.session(), id))?;
    Ok(events(pieces(replay)))
}

/// One piece at a time: an object may be large, and its events are several times that.
fn pieces(replay: EventReplay<Bytes>) -> impl Stream<Item = Bytes> + Send {
    futures_util::stream::unfold(replay, |mut replay| async move {
        let mut out = Events::sse();
        replay.advance(&mut out).then(|| (Bytes::from(out.take()), replay))
    })
}

/// An answer of events that are all there.
fn as_events(text: Vec<u8>) -> Response<Body> {
    events(futures_util::stream::iter([Bytes::from(text)]))
}
