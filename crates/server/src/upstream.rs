//! Calls to providers: one pooled client per target, deadlines by phase, nothing decided about compatibility.

mod client;
mod connect;
mod demo;
mod failure;
mod link;
mod pool;
mod redact;

use std::time::Duration;

use bridge::{Failure, FailureClass};
use bytes::Bytes;
use providers::Wire;

pub(crate) use client::HttpTarget;
use demo::Player;
use pool::HttpBody;
pub(crate) use redact::Redactor;

/// Where a provider's requests go.
#[derive(Debug)]
pub(crate) enum Upstream {
    Http(Box<HttpTarget>),
    /// The offline model inside this binary.
    Demo,
}

/// How long each phase of a call may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadlines {
    pub(crate) first_byte: Duration,
    pub(crate) idle: Duration,
    pub(crate) total: Duration,
}

/// An upstream that accepted the request: what its body is, and the body.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) format: Format,
    pub(crate) body: AnswerBody,
    /// For errors inside the body.
    pub(crate) redactor: Redactor,
}

/// What an answer's body is, as its content type has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Sse,
    Json,
    /// The content type does not tell: the first byte will.
    Unknown,
}

#[derive(Debug)]
pub(crate) enum AnswerBody {
    Http(Box<HttpBody>),
    Demo(Player),
}

impl Upstream {
    /// Sends a request of that wire and waits until the upstream has accepted or refused it.
    pub(crate) async fn send(
        &self,
        wire: Wire,
        body: Vec<u8>,
        stream: bool,
        deadlines: Deadlines,
    ) -> Result<Accepted, Failure> {
        match self {
            Self::Http(target) => target.send(wire, body, deadlines).await,
            Self::Demo => demo::send(&body, stream).await,
        }
    }
}

impl AnswerBody {
    /// The next bytes; `None` at the end in good order. May be dropped and called again at any time.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        match self {
            Self::Http(body) => body.chunk().await.map_err(|error| failure::cut(&error)),
            Self::Demo(player) => player.chunk().await,
        }
    }
}

pub(crate) fn timeout(phase: &str) -> Failure {
    Failure::new(FailureClass::Timeout, format!("The provider did not answer in time ({phase})."))
}
