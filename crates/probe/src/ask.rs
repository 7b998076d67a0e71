//! What goes out and what comes back, and who carries it.

use std::future::Future;
use std::time::Duration;

/// Where a request goes, below the base URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// `POST /chat/completions`.
    Chat,
    /// `POST` to where the provider's spec says that its API is.
    Own,
    /// `POST /responses`: the provider's own.
    Responses,
    /// `POST /messages`: Anthropic's API, with the key as the spec has it.
    Messages,
    /// The same, with the key in `x-api-key`.
    MessagesByKey,
    /// `GET /models`.
    Models,
}

impl Endpoint {
    /// None: what the spec says.
    pub const fn path(self) -> Option<&'static str> {
        match self {
            Self::Chat => Some("/chat/completions"),
            Self::Own => None,
            Self::Responses => Some("/responses"),
            Self::Messages | Self::MessagesByKey => Some("/messages"),
            Self::Models => Some("/models"),
        }
    }
}

/// One request of the battery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What it is about, for progress.
    pub about: &'static str,
    pub endpoint: Endpoint,
    /// The model that is asked, which may be part of the address.
    pub model: String,
    pub body: Vec<u8>,
    pub stream: bool,
}

/// An answer as it came, whatever its status.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    pub status: u16,
    /// Empty when there was none.
    pub content_type: String,
    pub body: Vec<u8>,
    /// Whether the body came to its end.
    pub whole: bool,
    /// How long it took, from the request to that end.
    pub took: Duration,
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Answered(Answer),
    /// No connection, or it closed before an answer.
    Unreachable(String),
    /// This request took too long.
    TimedOut,
    /// The whole probe has used up its time; nothing was sent.
    OutOfTime,
}

/// Who carries requests. The only way out of this crate.
pub trait ProbeUpstream {
    fn send(&mut self, request: Request) -> impl Future<Output = Outcome>;
}
