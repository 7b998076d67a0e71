//! What the APIs themselves define of errors: OpenAI's codes and types, those of the Messages API, and HTTP's statuses.
//! This is all that the kernel knows by itself. Everything else is a fact about somebody: other codes, numbers, and
//! wordings of any kind (also those of OpenAI, which are no part of the API) are `answer.errors` of a spec.

use wire::json::Raw;

use super::FailureClass;

/// Codes and types of errors, each with what it means.
const CODES: &[(&str, FailureClass)] = &[
    ("context_length_exceeded", FailureClass::ContextOverflow),
    ("insufficient_quota", FailureClass::Quota),
    ("billing_hard_limit_reached", FailureClass::Quota),
    ("rate_limit_exceeded", FailureClass::RateLimit),
    ("rate_limit_error", FailureClass::RateLimit),
    ("server_is_overloaded", FailureClass::Overloaded),
    ("content_filter", FailureClass::ContentPolicy),
    ("content_policy_violation", FailureClass::ContentPolicy),
    ("model_not_found", FailureClass::ModelNotFound),
    ("invalid_api_key", FailureClass::Auth),
];

/// Codes that say that a parameter is not supported.
const UNSUPPORTED: &[&str] = &["unsupported_parameter", "unsupported_value", "unknown_parameter", UNKNOWN_MEMBER];

/// The one of them that is about the value: another one might do.
const UNSUPPORTED_VALUE: &str = "unsupported_value";

/// The type of an entry in a list of what is wrong with a request, where it is an unknown member. Not OpenAI's, but of
/// a shape of errors that is read here: see `ErrorBody::unknown_member`.
pub(super) const UNKNOWN_MEMBER: &str = "extra_forbidden";

/// What one of an error's codes means.
pub(super) fn class_of_code(is_code: impl Fn(&str) -> bool) -> Option<FailureClass> {
    CODES.iter().find(|(code, _)| is_code(code)).map(|(_, class)| *class)
}

pub(super) fn is_unsupported(is_code: impl Fn(&str) -> bool) -> bool {
    UNSUPPORTED.iter().any(|code| is_code(code))
}

pub(super) fn is_unsupported_value(is_code: impl Fn(&str) -> bool) -> bool {
    is_code(UNSUPPORTED_VALUE)
}

/// The types of errors that the Messages API defines, each with its status.
const MESSAGE_ERRORS: &[(&str, u16)] = &[
    ("invalid_request_error", 400),
    ("authentication_error", 401),
    ("billing_error", 402),
    ("permission_error", 403),
    ("not_found_error", 404),
    ("conflict_error", 409),
    ("request_too_large", 413),
    ("rate_limit_error", 429),
    ("api_error", 500),
    ("timeout_error", 504),
    ("overloaded_error", 529),
];

/// The status of an error that comes in the middle of an answer, or as its beginning.
pub(super) fn status_of_message_error(error: Raw<'_>) -> Option<u16> {
    let kind = error.get("type").and_then(Raw::text)?;
    MESSAGE_ERRORS.iter().find(|(name, _)| kind.is(name)).map(|(_, status)| *status)
}

/// Whether a status says that the request may be a good one: it may fare better later, or elsewhere.
pub(super) const fn is_of_the_server(status: u16) -> bool {
    matches!(status, 429 | 500 | 502 | 503 | 504 | 529)
}

/// What a status means, if nothing else tells. `names_a_model`: whether the error's message speaks of a model.
pub(super) const fn class_of_status(status: u16, names_a_model: bool) -> FailureClass {
    match status {
        401 | 403 | 407 => FailureClass::Auth,
        402 => FailureClass::Quota,
        404 if names_a_model => FailureClass::ModelNotFound,
        408 | 504 => FailureClass::Timeout,
        429 => FailureClass::RateLimit,
        // A wrong address, most likely.
        300..=399 | 404 | 405 => FailureClass::Protocol,
        400..=499 => FailureClass::InvalidRequest,
        503 | 529 => FailureClass::Overloaded,
        _ => FailureClass::Server,
    }
}
