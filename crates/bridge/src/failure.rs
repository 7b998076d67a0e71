//! Ways in which an upstream fails, sorted by what a client should do about them.

use wire::chat::Answer;
use wire::json::{Kind, Raw};
use wire::responses::ResponseError;

use crate::dialect::AnswerDialect;

/// A turn that did not come to a good end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub class: FailureClass,
    /// For the client; the upstream's own words where it had any.
    pub message: String,
    /// The upstream's own code, where it is a string.
    pub upstream_code: Option<String>,
    /// Seconds.
    pub retry_after: Option<u32>,
}

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureClass {
    /// The operator's key was refused.
    Auth,
    Quota,
    RateLimit,
    Overloaded,
    ContextOverflow,
    InvalidRequest,
    ContentPolicy,
    ModelNotFound,
    /// The upstream failed and said so.
    Server,
    Unreachable,
    Timeout,
    /// The answer broke off.
    Truncated,
    /// The answer was no chat completion.
    Protocol,
    /// The answer was well-formed and had nothing in it.
    Empty,
    /// The answer was whole, and not in the format that was asked for.
    InvalidOutput,
}

impl FailureClass {
    /// The domain code: in logs, traces and the `x-godex-error` header.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Auth => "provider_auth",
            Self::Quota => "provider_quota",
            Self::RateLimit => "upstream_rate_limit",
            Self::Overloaded => "upstream_overloaded",
            Self::ContextOverflow => "context_length_exceeded",
            Self::InvalidRequest => "upstream_invalid_request",
            Self::ContentPolicy => "upstream_content_policy",
            Self::ModelNotFound => "model_not_found",
            Self::Server => "upstream_error",
            Self::Unreachable => "upstream_unreachable",
            Self::Timeout => "upstream_timeout",
            Self::Truncated => "upstream_truncated",
            Self::Protocol => "upstream_protocol",
            Self::Empty => "upstream_empty",
            Self::InvalidOutput => "invalid_output_format",
        }
    }

    /// `error.code` inside a failed response: the codes that clients know how to act on.
    pub const fn response_code(self) -> &'static str {
        match self {
            Self::Quota => "insufficient_quota",
            Self::RateLimit => "rate_limit_exceeded",
            Self::ContextOverflow => "context_length_exceeded",
            Self::InvalidRequest | Self::ContentPolicy => "invalid_prompt",
            Self::ModelNotFound => "model_not_found",
            Self::Overloaded => "server_is_overloaded",
            Self::InvalidOutput => "invalid_output_format",
            Self::Auth
            | Self::Server
            | Self::Unreachable
            | Self::Timeout
            | Self::Truncated
            | Self::Protocol
            | Self::Empty => "server_error",
        }
    }

    /// `error.type`.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::RateLimit => "rate_limit_error",
            Self::Quota => "insufficient_quota",
            Self::ContextOverflow | Self::InvalidRequest | Self::ContentPolicy | Self::ModelNotFound => {
                "invalid_request_error"
            }
            _ => "server_error",
        }
    }
}

impl Failure {
    pub fn new(class: FailureClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into(), upstream_code: None, retry_after: None }
    }

    /// Sorts an upstream's answer of that status.
    pub fn from_answer(status: u16, body: &[u8]) -> Self {
        Self::from_answer_in(&AnswerDialect::default(), status, body)
    }

    /// The same, knowing the far side's own words.
    pub fn from_answer_in(dialect: &AnswerDialect, status: u16, body: &[u8]) -> Self {
        let said = Said::read(body);
        let class = said.overflow(dialect).unwrap_or_else(|| match status {
            401 | 403 | 407 => FailureClass::Auth,
            402 => FailureClass::Quota,
            404 if said.about_model() => FailureClass::ModelNotFound,
            404 | 405 if said.message.is_none() => FailureClass::Protocol,
            408 | 504 => FailureClass::Timeout,
            429 if said.code_is("insufficient_quota") => FailureClass::Quota,
            429 => FailureClass::RateLimit,
            400..=499 => FailureClass::InvalidRequest,
            503 | 529 => FailureClass::Overloaded,
            _ => FailureClass::Server,
        });
        let message = said.message.unwrap_or_else(|| format!("The provider answered with status {status}."));
        Self { class, message: clip(message), upstream_code: said.code, retry_after: None }
    }

    /// The failure that a successful answer reports, in any of the places where servers put it.
    pub(crate) fn in_answer(answer: &Answer<'_>, text: &str, dialect: &AnswerDialect) -> Option<Self> {
        let error = answer.error.filter(|error| !error.is_null() && error.as_str() != "{}");
        let of_choice = answer.choice.as_ref().and_then(|choice| choice.error).filter(|error| !error.is_null());
        if let Some(error) = error.or(of_choice) {
            return Some(Self::in_band(error, dialect));
        }
        let failed = |status: Raw<'_>| status.as_str().parse::<i64>().is_ok_and(|status| status != 0);
        if let Some(error) = answer.base_resp.filter(|error| error.get("status_code").is_some_and(failed)) {
            return Some(Self::in_band(error, dialect));
        }
        // No answer at all, but words about why.
        let is_error = answer.object.and_then(Raw::text).is_some_and(|object| object.is("error"));
        let words = answer.message.and_then(Raw::text).is_some() || answer.detail.is_some();
        if answer.choice.is_some() || answer.usage.is_some() || !(is_error || words) {
            return None;
        }
        Raw::parse(text).ok().map(|document| Self::in_band(document, dialect))
    }

    /// Sorts an error object that stood inside a successful answer.
    pub(crate) fn in_band(error: Raw<'_>, dialect: &AnswerDialect) -> Self {
        let said = Said::of(error);
        let status = ["code", "status", "status_code"].into_iter().find_map(|name| {
            let status = error.get(name)?;
            status.as_str().trim_matches('"').parse().ok()
        });
        let class = match (said.overflow(dialect), status) {
            (Some(overflow), _) => overflow,
            // Beside HTTP's numbers, those of `base_resp`.
            (None, Some(401 | 403 | 1004)) => FailureClass::Auth,
            (None, Some(402 | 1008)) => FailureClass::Quota,
            (None, Some(429 | 1002)) => FailureClass::RateLimit,
            (None, Some(503 | 529)) => FailureClass::Overloaded,
            (None, Some(408 | 504)) => FailureClass::Timeout,
            (None, Some(400 | 422 | 2013)) => FailureClass::InvalidRequest,
            _ if said.code_is("rate_limit_exceeded") => FailureClass::RateLimit,
            _ if said.code_is("insufficient_quota") => FailureClass::Quota,
            _ => FailureClass::Server,
        };
        let message = said.message.unwrap_or_else(|| "The provider reported an error.".to_owned());
        Self { class, message: clip(message), upstream_code: said.code, retry_after: None }
    }

    /// As `response.error` and the `error` event show it.
    pub fn response_error(&self) -> ResponseError {
        ResponseError {
            code: self.class.response_code().to_owned(),
            kind: self.class.kind(),
            message: self.message.clone(),
            param: None,
        }
    }
}

/// What an error body says, in any of the shapes that servers use.
#[derive(Debug, Default)]
struct Said {
    message: Option<String>,
    code: Option<String>,
    kind: Option<String>,
}

impl Said {
    fn read(body: &[u8]) -> Self {
        let Ok(text) = str::from_utf8(body) else { return Self::default() };
        let Ok(document) = Raw::parse(text) else { return Self::default() };
        let document = match document.kind() {
            Kind::Array => document.elements().next().unwrap_or(document),
            _ => document,
        };
        let nested = ["error", "base_resp"].into_iter().find_map(|name| document.get(name));
        Self::of(nested.filter(|raw| !raw.is_null()).unwrap_or(document))
    }

    fn of(error: Raw<'_>) -> Self {
        if let Some(text) = error.text() {
            return Self { message: Some(text.decode().into_owned()), ..Self::default() };
        }
        // Some servers fail without a word: an empty message is none.
        let string = |name: &str| {
            let text = error.get(name).and_then(Raw::text)?.decode().into_owned();
            (!text.trim().is_empty()).then_some(text)
        };
        let message = string("message")
            .or_else(|| string("status_msg"))
            .or_else(|| string("detail"))
            .or_else(|| error.get("detail").map(|detail| detail.as_str().to_owned()));
        Self { message, code: string("code"), kind: string("type") }
    }

    fn code_is(&self, name: &str) -> bool {
        self.code.as_deref() == Some(name) || self.kind.as_deref() == Some(name)
    }

    /// The wordings that servers use when the prompt does not fit.
    fn overflow(&self, dialect: &AnswerDialect) -> Option<FailureClass> {
        const WORDINGS: &[&str] = &[
            "maximum context length",
            "context length exceeded",
            "context window",
            "prompt is too long",
            "exceeds the available context size",
            "exceed context limit",
            "too many tokens in the prompt",
        ];
        let message = self.message.as_deref().unwrap_or_default().to_lowercase();
        let known = self.code_is("context_length_exceeded") || self.code_is("exceed_context_size_error");
        let mut wordings = WORDINGS.iter().copied().chain(dialect.overflow.iter().map(String::as_str));
        (known || wordings.any(|words| message.contains(words))).then_some(FailureClass::ContextOverflow)
    }

    fn about_model(&self) -> bool {
        let message = self.message.as_deref().unwrap_or_default().to_lowercase();
        self.code_is("model_not_found") || message.contains("model")
    }
}

/// An upstream's words, cut to what a client should be shown.
fn clip(mut message: String) -> String {
    const LIMIT: usize = 2048;
    if message.len() > LIMIT {
        let end = (0..=LIMIT).rev().find(|&at| message.is_char_boundary(at)).unwrap_or(0);
        message.truncate(end);
        message.push('…');
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_sorted_by_what_a_client_can_do() {
        use FailureClass as C;
        for (status, body, class, message) in [
            (400, r#"{"error":{"message":"bad","type":"x","code":null}}"#, C::InvalidRequest, "bad"),
            (401, r#"{"error":{"message":"bad key"}}"#, C::Auth, "bad key"),
            (403, "", C::Auth, "The provider answered with status 403."),
            (
                404,
                r#"{"error":{"message":"The model `x` does not exist."}}"#,
                C::ModelNotFound,
                "The model `x` does not exist.",
            ),
            (404, "<html>not here</html>", C::Protocol, "The provider answered with status 404."),
            (422, r#"{"detail":[{"loc":["body"]}]}"#, C::InvalidRequest, r#"[{"loc":["body"]}]"#),
            (429, r#"{"error":{"message":"slow down"}}"#, C::RateLimit, "slow down"),
            (429, r#"{"error":{"message":"pay","code":"insufficient_quota"}}"#, C::Quota, "pay"),
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 10"}}"#,
                C::ContextOverflow,
                "This model's maximum context length is 10",
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"x","type":"exceed_context_size_error"}}"#,
                C::ContextOverflow,
                "x",
            ),
            (500, r#"{"error":"text"}"#, C::Server, "text"),
            (503, r#"[{"error":{"message":"busy"}}]"#, C::Overloaded, "busy"),
            (504, "", C::Timeout, "The provider answered with status 504."),
            (500, r#"{"base_resp":{"status_code":1000,"status_msg":"oops"}}"#, C::Server, "oops"),
        ] {
            let failure = Failure::from_answer(status, body.as_bytes());
            assert_eq!((failure.class, failure.message.as_str()), (class, message), "{status} {body}");
        }
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let body = format!(r#"{{"error":"{}"}}"#, "é".repeat(3000));
        assert!(Failure::from_answer(500, body.as_bytes()).message.len() < 2100);
    }
}
