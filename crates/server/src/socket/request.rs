//! What a client says on a WebSocket: text messages, each an object with a `type`.
//!
//! A `response.create` is the body of `POST /v1/responses` with a few fields of its own, and some that mean nothing here.
//! They are taken off before anything else sees the request: no provider and no other part of the server knows them.

use std::sync::Arc;

use bytes::Bytes;
use wire::json::{FromRaw, Invalid, Kind, ObjectWriter, Raw, Text};

use crate::body::{self, Budget, Share};
use crate::error::{ApiError, Code, clip};

/// A lane's name.
pub(super) type StreamId = Arc<str>;

/// One message of a client.
#[derive(Debug)]
pub(super) enum Said {
    Create(Create),
    /// Input for a response that runs. It goes back with the refusal.
    Steer {
        previous_response_id: String,
        input: String,
    },
}

/// A request for a response.
#[derive(Debug)]
pub(super) struct Create {
    pub(super) stream_id: Option<StreamId>,
    pub(super) previous_response_id: Option<String>,
    /// Only a response that can be continued is wanted.
    pub(super) warm_up: bool,
    /// The body of the same request over HTTP, streamed.
    pub(super) body: Bytes,
    /// How many bytes the message had.
    pub(super) received: usize,
}

/// A message that cannot be served, and its lane, if it names one.
#[derive(Debug)]
pub(super) struct Unserved {
    pub(super) error: ApiError,
    pub(super) stream_id: Option<StreamId>,
}

/// Not of the request itself, or without a meaning here: everything is a stream, and nothing runs in the background.
const OF_THE_SOCKET: [&str; 6] = ["type", "stream_id", "generate", "stream", "stream_options", "background"];

impl Said {
    /// Reads a message. What is kept of it is counted in the budget.
    pub(super) fn read(message: &Bytes, budget: &Arc<Budget>) -> Result<Self, Unserved> {
        let raw = match body::parse::<Raw<'_>>(message) {
            Ok(raw) if raw.kind() == Kind::Object => raw,
            Ok(raw) => {
                let error = ApiError::invalid_body(Invalid::expected("an object", raw));
                return Err(Unserved { error, stream_id: None });
            }
            Err(error) => return Err(Unserved { error, stream_id: None }),
        };
        let stream_id = stream_id(raw).map_err(|error| Unserved { error, stream_id: None })?;
        Self::of(raw, message.len(), stream_id.clone(), budget).map_err(|error| Unserved { error, stream_id })
    }

    fn of(raw: Raw<'_>, received: usize, stream_id: Option<StreamId>, budget: &Arc<Budget>) -> Result<Self, ApiError> {
        let kind = raw.get("type").ok_or_else(Invalid::missing).and_then(Text::from_raw);
        let kind = kind.map_err(|invalid| invalid.at("type"))?.decode();
        match &*kind {
            "response.create" => Ok(Self::Create(Create {
                stream_id,
                previous_response_id: previous_response_id(raw),
                warm_up: optional::<bool>(raw, "generate")? == Some(false),
                body: body::held(Share::new(budget), without_the_socket(raw))?,
                received,
            })),
            "response.steer" => Ok(Self::Steer {
                previous_response_id: previous_response_id(raw).unwrap_or_default(),
                input: raw.get("input").unwrap_or(Raw::NULL).as_str().to_owned(),
            }),
            other => {
                let message = format!("'{}' is no message that clients send. Known: response.create.", clip(other));
                Err(ApiError::bad_request(Code::UnknownMessage, message).with_param("type"))
            }
        }
    }
}

/// The lane, if the message names one.
fn stream_id(raw: Raw<'_>) -> Result<Option<StreamId>, ApiError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let Some(value) = raw.get("stream_id").filter(|value| !value.is_null()) else { return Ok(None) };
    let id = value.text().map(Text::decode);
    match id.filter(|id| (1..=256).contains(&id.len()) && id.bytes().all(plain)) {
        Some(id) => Ok(Some(id.into())),
        None => {
            let message = "The 'stream_id' field must be a non-empty string with at most 256 characters and may only \
                           contain letters, numbers, underscores, hyphens, and periods.";
            Err(ApiError::bad_request(Code::InvalidStreamId, message).with_param("stream_id"))
        }
    }
}

/// What the request continues. What is no text there is refused with the rest of the request.
fn previous_response_id(raw: Raw<'_>) -> Option<String> {
    Some(raw.get("previous_response_id")?.text()?.decode().into_owned())
}

fn optional<'a, T: FromRaw<'a>>(raw: Raw<'a>, name: &str) -> Result<Option<T>, ApiError> {
    let value = raw.get(name).filter(|value| !value.is_null());
    Ok(value.map(T::from_raw).transpose().map_err(|invalid| invalid.at(name))?)
}

fn without_the_socket(raw: Raw<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.as_str().len() + 16);
    let mut request = ObjectWriter::new(&mut out);
    for (name, value) in raw.fields().filter(|(name, _)| !OF_THE_SOCKET.iter().any(|known| name.is(known))) {
        request.raw(&name.decode(), value);
    }
    request.bool("stream", true);
    request.end();
    out.shrink_to_fit();
    out
}

/// The answer to a `response.steer`: nothing that runs here takes more input.
pub(super) fn steer_failed(previous_response_id: &str, input: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(input.len() + 384);
    let mut event = ObjectWriter::new(&mut out);
    event.text("type", "response.steer.failed").int("sequence_number", 0_u8);
    let mut error = ObjectWriter::new(event.key("error"));
    error.text("type", "invalid_request_error").text("code", "steering_not_supported");
    error.text("message", "Responses cannot be steered here. Send the input with the next response.create.");
    error.end();
    let mut steer = ObjectWriter::new(event.key("steer"));
    steer.text("previous_response_id", previous_response_id).json("input", input.as_bytes());
    steer.end();
    event.end();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(message: &str) -> Result<Said, Unserved> {
        Said::read(&Bytes::copy_from_slice(message.as_bytes()), &Budget::new(1 << 20))
    }

    #[test]
    fn many_small_objects_count_as_they_do_over_http() {
        let message = format!(r#"{{"type":"response.create","input":[{}]}}"#, vec![r#"{"a":1}"#; 6000].join(","));
        let refused = read(&message).unwrap_err().error;
        assert_eq!((refused.status.as_u16(), refused.code), (413, Code::RequestTooLarge));
    }

    #[test]
    fn a_create_is_the_body_of_the_request_over_http() {
        for (message, lane, previous, warm_up, body) in [
            (r#"{"type":"response.create","model":"m"}"#, None, None, false, r#"{"model":"m","stream":true}"#),
            (
                r#"{"type":"response.create","model":"m","stream":false,"background":true,"stream_options":1,"stream_id":"a.b-C_1","generate":false,"input":[ 1.50 ]}"#,
                Some("a.b-C_1"),
                None,
                true,
                r#"{"model":"m","input":[ 1.50 ],"stream":true}"#,
            ),
            (
                r#"{"previous_response_id":"resp_1","type":"response.create","generate":true,"stream_id":null,"extra":{"type":"x"}}"#,
                None,
                Some("resp_1"),
                false,
                r#"{"previous_response_id":"resp_1","extra":{"type":"x"},"stream":true}"#,
            ),
        ] {
            let Ok(Said::Create(create)) = read(message) else { panic!("{message}") };
            assert_eq!(create.stream_id.as_deref(), lane, "{message}");
            assert_eq!(create.previous_response_id.as_deref(), previous, "{message}");
            assert_eq!((create.warm_up, &*create.body), (warm_up, body.as_bytes()), "{message}");
        }
    }

    #[test]
    fn what_is_wrong_says_so() {
        let long = format!(r#"{{"type":"response.create","stream_id":"{}"}}"#, "a".repeat(257));
        for (message, domain, param, lane) in [
            ("{", "invalid_json", None, None),
            ("[]", "invalid_body", None, None),
            ("\"response.create\"", "invalid_body", None, None),
            ("{}", "missing_required_parameter", Some("type"), None),
            (r#"{"type":1,"stream_id":"a"}"#, "invalid_type", Some("type"), Some("a")),
            (r#"{"type":"response.append"}"#, "unknown_message_type", Some("type"), None),
            (r#"{"type":"response.cancel","stream_id":"a"}"#, "unknown_message_type", Some("type"), Some("a")),
            (r#"{"type":"response.create","generate":"no"}"#, "invalid_type", Some("generate"), None),
            (r#"{"type":"response.create","stream_id":""}"#, "invalid_stream_id", Some("stream_id"), None),
            (r#"{"type":"response.create","stream_id":"a b"}"#, "invalid_stream_id", Some("stream_id"), None),
            (r#"{"type":"response.create","stream_id":"ä"}"#, "invalid_stream_id", Some("stream_id"), None),
            (r#"{"type":"response.create","stream_id":7}"#, "invalid_stream_id", Some("stream_id"), None),
            (&long, "invalid_stream_id", Some("stream_id"), None),
        ] {
            let unserved = read(message).expect_err(message);
            assert_eq!((unserved.error.code.domain(), unserved.error.param.as_deref()), (domain, param), "{message}");
            assert_eq!(unserved.stream_id.as_deref(), lane, "{message}");
        }
    }
}
