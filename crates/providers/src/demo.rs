//! The demo model: a Chat Completions model inside the binary. Pure and deterministic: the same request gives
//! the same answer, so that everything can be tried, taught and tested without a key or a network.
//!
//! It does not play the answer: [`answer`] returns [`Step`]s and the server performs them. It must never panic,
//! whatever the bytes say. JSON trees are fine here and only here: this is a toy, not the road of real traffic.

mod command;
mod fold;
mod links;
mod reply;
mod request;
mod schema;
mod steps;
mod wishes;

use std::time::Duration;

use serde_json::json;

use request::Request;

pub use wishes::PLAIN_WORDS;

/// What the demo model does when a message begins with one of these lines.
pub const COMMANDS: &[(&str, &str)] = &[
    (
        "call NAME {json}",
        "call a declared tool; several lines are parallel calls; without {json} it makes arguments up",
    ),
    ("think TEXT", "reason first (reasoning_content), then answer TEXT"),
    ("slow N", "answer in N chunks, 200 ms apart"),
    ("long N", "answer with N words"),
    ("length", "stop in the middle with finish_reason `length`"),
    ("echo TEXT", "answer exactly TEXT, to the end of the message"),
    ("refuse", "refuse to answer"),
    ("fail STATUS [MESSAGE]", "answer with that HTTP error, such as 429 or 500"),
    ("fail stream", "send an error object in the middle of the stream"),
    ("fail cut", "break the connection in the middle of the stream"),
];

/// One thing for the server to do, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Answer with this status, these headers and this JSON body; nothing follows.
    Status { status: u16, headers: Vec<(&'static str, String)>, body: Vec<u8> },
    /// Send one `chat.completion.chunk` (or, in `fail stream`, an error object). No SSE framing.
    Chunk(Vec<u8>),
    /// Wait.
    Pause(Duration),
    /// Send `[DONE]`.
    Done,
    /// Break the connection.
    Cut,
}

/// The whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demo {
    pub steps: Vec<Step>,
}

impl Demo {
    /// The same answer for `stream: false`: one `Status` (200 with a `chat.completion`, or an error) or a `Cut`.
    pub fn fold(&self) -> Step {
        fold::fold(&self.steps)
    }

    /// How long the answer takes; what to wait before a folded answer.
    pub fn duration(&self) -> Duration {
        let pause = |step: &Step| if let Step::Pause(pause) = step { *pause } else { Duration::ZERO };
        self.steps.iter().map(pause).sum()
    }
}

/// The answer to a Chat Completions request body.
pub fn answer(chat_request: &[u8]) -> Demo {
    let steps = match Request::parse(chat_request) {
        Ok(request) => reply::reply(&request),
        Err(message) => vec![error(400, &message)],
    };
    Demo { steps }
}

/// An error answer in the API's usual shape.
fn error(status: u16, message: &str) -> Step {
    let (kind, code) = match status {
        401 => ("authentication_error", "invalid_api_key"),
        404 => ("invalid_request_error", "model_not_found"),
        429 => ("rate_limit_error", "rate_limit_exceeded"),
        500.. => ("server_error", "server_error"),
        _ => ("invalid_request_error", "invalid_request"),
    };
    let headers = if status == 429 { vec![("retry-after", "1".to_owned())] } else { Vec::new() };
    let body = json!({"error": {"message": message, "type": kind, "param": null, "code": code}});
    Step::Status { status, headers, body: body.to_string().into_bytes() }
}

#[cfg(test)]
#[path = "demo/tests.rs"]
mod tests;
