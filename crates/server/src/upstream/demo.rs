//! Plays the offline model: the same road as any provider, without a socket.

use std::collections::VecDeque;
use std::time::Duration;

use bridge::{Failure, FailureClass};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use providers::demo::{self, Step};
use tokio::time::Instant;

use super::refused::{Refused, Remedy};
use super::{Accepted, AnswerBody, Format, Redactor, failure};

/// What is left of an answer.
#[derive(Debug)]
pub(crate) struct Player {
    steps: VecDeque<Step>,
    /// The end of the pause under way: a wait that was dropped goes on where it was.
    resume_at: Option<Instant>,
}

pub(super) async fn send(request: &[u8], stream: bool) -> Result<Accepted, Refused> {
    let answer = demo::answer(request);
    let steps: VecDeque<Step> = if stream {
        answer.steps.into()
    } else {
        tokio::time::sleep(answer.duration()).await;
        VecDeque::from([answer.fold()])
    };
    if let Some(Step::Status { status, headers, body }) = steps.front().filter(|step| is_error(step)) {
        let mut failure = Failure::from_answer(*status, body);
        failure.retry_after = retry_after(headers);
        // It would fail in the same way for ever.
        return Err(Refused::new(failure, Remedy::Nothing));
    }
    let format = if stream { Format::Sse } else { Format::Json };
    Ok(Accepted {
        format,
        body: AnswerBody::Demo(Player { steps, resume_at: None }),
        redactor: Redactor::default(),
        connecting: Duration::ZERO,
        resent: false,
    })
}

fn is_error(step: &Step) -> bool {
    matches!(step, Step::Status { status, .. } if *status != 200)
}

fn retry_after(headers: &[(&'static str, String)]) -> Option<u32> {
    let header = |(name, value): &(&'static str, String)| {
        Some((HeaderName::from_static(name), HeaderValue::try_from(value).ok()?))
    };
    failure::retry_after(&headers.iter().filter_map(header).collect::<HeaderMap>())
}

impl Player {
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            if let Some(at) = self.resume_at {
                tokio::time::sleep_until(at).await;
                self.resume_at = None;
            }
            match self.steps.pop_front() {
                None => return Ok(None),
                Some(Step::Pause(pause)) => self.resume_at = Some(Instant::now() + pause),
                Some(Step::Chunk(json)) => return Ok(Some(frame(&json))),
                Some(Step::Status { body, .. }) => return Ok(Some(body.into())),
                Some(Step::Done) => return Ok(Some(Bytes::from_static(wire::sse::DONE))),
                Some(Step::Cut) => {
                    return Err(Failure::new(FailureClass::Truncated, "The provider's answer broke off."));
                }
            }
        }
    }
}

fn frame(json: &[u8]) -> Bytes {
    [b"data: ".as_slice(), json, b"\n\n"].concat().into()
}
