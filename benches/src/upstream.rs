//! The fake upstream. It reads the whole request, and the model's name says what to answer: `sync`, or
//! `stream-COUNT-MILLISECONDS`, or `hold` (one chunk, then silence until the peer closes), or `large` (10 MiB, streamed),
//! or `tool` (a call of the tool, and after its result what `sync` says). One write per event. Beside it, at `/mcp`, is the
//! server of that tool; and at any path that ends so, `/messages`, which streams the same text as another API.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use memchr::memmem;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::{chunks, mcp, serve};

pub(crate) async fn run() -> Result<()> {
    let (sync, stream, large) = (chunks::completion(), chunks::stream(200), chunks::large(10 << 20));
    let answers = Arc::new(Answers {
        sync,
        stream,
        messages: chunks::messages(200),
        large,
        call: chunks::tool_call(mcp::FUNCTION),
    });
    serve::serve(move |request| answer(Arc::clone(&answers), request)).await
}

/// How a request says that the tool has been called.
const TOOL_RESULT: &[u8] = b"\"role\":\"tool\"";

/// Built once: the upstream should cost as little as it can.
struct Answers {
    sync: Bytes,
    stream: Vec<Bytes>,
    /// The same as events of a Messages API.
    messages: Vec<Bytes>,
    large: Vec<Bytes>,
    call: Bytes,
}

async fn answer(answers: Arc<Answers>, request: Request<Incoming>) -> Result<Response<Answer>> {
    let is_mcp = request.uri().path() == "/mcp";
    let is_messages = request.uri().path().ends_with("/messages");
    let body = request.into_body().collect().await?.to_bytes();
    if is_mcp {
        let (status, answer) = mcp::answer(&body);
        let whole = Answer::new(vec![answer.into()], Duration::ZERO, End::Close);
        return Ok(Response::builder().status(status).header("content-type", "application/json").body(whole)?);
    }
    let model = model(&body).unwrap_or("sync");
    let (kind, body) = if let Some(shape) = model.strip_prefix("stream-") {
        let (count, pause) = shape.split_once('-').unwrap_or((shape, "0"));
        let events = match count.parse()? {
            200 if is_messages => answers.messages.clone(),
            count if is_messages => chunks::messages(count),
            200 => answers.stream.clone(),
            count => chunks::stream(count),
        };
        ("text/event-stream", Answer::new(events, Duration::from_millis(pause.parse()?), End::Close))
    } else if model == "hold" {
        ("text/event-stream", Answer::new(answers.stream[..2].to_vec(), Duration::ZERO, End::Hold))
    } else if model == "large" {
        ("text/event-stream", Answer::new(answers.large.clone(), Duration::ZERO, End::Close))
    } else if model == "tool" && memmem::find(&body, TOOL_RESULT).is_none() {
        ("application/json", Answer::new(vec![answers.call.clone()], Duration::ZERO, End::Close))
    } else {
        ("application/json", Answer::new(vec![answers.sync.clone()], Duration::ZERO, End::Close))
    };
    Ok(Response::builder().header("content-type", kind).body(body)?)
}

/// The model without a provider in front of it.
fn model(body: &[u8]) -> Option<&str> {
    let key = b"\"model\":\"";
    let start = memmem::find(body, key)? + key.len();
    let end = start + memchr::memchr(b'"', &body[start..])?;
    std::str::from_utf8(&body[start..end]).ok()?.rsplit('/').next()
}

enum End {
    Close,
    Hold,
}

/// A body that gives one event at a time and makes hyper flush between them.
struct Answer {
    events: std::vec::IntoIter<Bytes>,
    pause: Duration,
    end: End,
    /// Whether the next event may go out; between events there is a pause, be it of no length.
    rested: bool,
    sleep: Pin<Box<Sleep>>,
}

impl Answer {
    fn new(events: Vec<Bytes>, pause: Duration, end: End) -> Self {
        Self { events: events.into_iter(), pause, end, rested: true, sleep: Box::pin(sleep_until(Instant::now())) }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if !self.rested && !self.pause.is_zero() {
            ready!(self.sleep.as_mut().poll(cx));
        } else if !self.rested {
            self.rested = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let Some(event) = self.events.next() else {
            return match self.end {
                End::Close => Poll::Ready(None),
                End::Hold => Poll::Pending,
            };
        };
        self.rested = false;
        if !self.pause.is_zero() {
            let next = Instant::now() + self.pause;
            self.sleep.as_mut().reset(next);
        }
        Poll::Ready(Some(Ok(Frame::data(event))))
    }

    fn is_end_stream(&self) -> bool {
        self.events.len() == 0 && matches!(self.end, End::Close)
    }
}

#[cfg(test)]
mod tests {
    use super::model;

    #[test]
    fn the_model_is_found_with_and_without_a_provider() {
        assert_eq!(model(br#"{"model":"bench/hold","x":1}"#), Some("hold"));
        assert_eq!(model(br#"{"x":1,"model":"stream-200-5"}"#), Some("stream-200-5"));
        assert_eq!(model(b"{}"), None);
    }
}
