//! By which API a provider is asked. Checks write all questions as chat requests and judge all answers as chat replies;
//! for another wire the question is put into its words here, and the answer read from them. What a check asks that a wire
//! has no words for is not asked there ([`asks`]).

mod messages;
mod messages_answer;
mod responses;

use bridge::{AnswerDialect, Dialect};
use providers::Wire;
use serde_json::{Map, Value};

use crate::ask::{Answer, Endpoint};
use crate::checks::Check;
use crate::reply::{self, Reply};

/// Whether this check can be asked by this wire.
pub(crate) const fn asks(wire: Wire, check: Check) -> bool {
    match wire {
        Wire::Chat | Wire::Demo => true,
        // Text is in blocks, thoughts return as they came (the turn of `messages` sees that), and a provider of this API
        // is asked by no other.
        Wire::Messages => !matches!(check, Check::Texts | Check::Replay | Check::Responses),
        Wire::Responses => matches!(
            check,
            Check::Plain
                | Check::Stream
                | Check::Reasoning
                | Check::Tools
                | Check::Parallel
                | Check::Efforts
                | Check::Responses
                | Check::Listed
        ),
    }
}

/// Where questions go.
pub(crate) const fn endpoint(wire: Wire) -> Endpoint {
    match wire {
        Wire::Chat | Wire::Demo => Endpoint::Chat,
        Wire::Messages => Endpoint::Own,
        Wire::Responses => Endpoint::Responses,
    }
}

/// A chat request in the words of this wire.
pub(crate) fn lower(wire: Wire, dialect: &Dialect, body: Map<String, Value>) -> Value {
    Value::Object(match wire {
        Wire::Chat | Wire::Demo => body,
        Wire::Messages => messages::lower(&dialect.request, body),
        Wire::Responses => responses::lower(body),
    })
}

/// What was answered to it.
pub(crate) fn read(wire: Wire, answer: &Answer, dialect: &AnswerDialect) -> Reply {
    match wire {
        Wire::Chat | Wire::Demo => reply::read(answer, dialect),
        Wire::Messages => reply::read_as(answer, dialect, messages_answer::read),
        Wire::Responses => reply::read_as(answer, dialect, responses::read),
    }
}

/// The name of the API, for a person.
pub(crate) const fn api(wire: Wire) -> &'static str {
    match wire {
        Wire::Chat | Wire::Demo => "chat server",
        Wire::Messages => "Messages API",
        Wire::Responses => "Responses API",
    }
}

/// The media type and the data of a `data:` URL.
fn data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

/// Takes the object under a name out of a body.
fn object(body: &mut Map<String, Value>, name: &str) -> Map<String, Value> {
    match body.remove(name) {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    }
}
