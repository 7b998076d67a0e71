//! Ways in which an upstream fails, sorted by what a client should do about them.

mod class;
mod hearsay;
mod said;
mod unsupported;
mod wait;

use std::borrow::Cow;

use wire::chat::Answer;
use wire::json::Raw;
use wire::responses::ResponseError;

use crate::dialect::AnswerDialect;
pub use class::FailureClass;
pub use hearsay::Basis;
use said::Said;
pub use unsupported::{Proof, Refusal, Unsupported, adapted};

/// A turn that did not come to a good end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub class: FailureClass,
    /// For the client; the upstream's own words where it had any. Whole: [`Failure::shown`] cuts them, after whoever
    /// holds secrets has taken those out.
    pub message: String,
    /// The upstream's own code, where it is a string.
    pub upstream_code: Option<String>,
    /// Seconds, from 1 to 120, where the upstream said so in words; its headers may know better.
    pub retry_after: Option<u32>,
    /// What it will not take, where it names that: the request may be sent once more without.
    pub unsupported: Option<Refusal>,
    /// What it was sorted by.
    pub basis: Basis,
}

impl Failure {
    pub fn new(class: FailureClass, message: impl Into<String>) -> Self {
        let (message, basis) = (message.into(), Basis::default());
        Self { class, message, upstream_code: None, retry_after: None, unsupported: None, basis }
    }

    /// Sorts an upstream's answer of that status.
    pub fn from_answer(status: u16, body: &[u8]) -> Self {
        Self::from_answer_in(&AnswerDialect::default(), status, body)
    }

    /// The same, knowing the far side's own words.
    pub fn from_answer_in(dialect: &AnswerDialect, status: u16, body: &[u8]) -> Self {
        let said = Said::read(body);
        let class = said.class(dialect, Some(status));
        let unsupported = matches!(status, 400 | 422).then(|| said.unsupported(dialect)).flatten();
        let silent = || match status {
            300..=399 => format!("The provider answered with a redirect (status {status}); none is followed."),
            _ => format!("The provider answered with status {status}."),
        };
        Self { unsupported, ..said.failure(class, dialect, silent) }
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
        if answer.choice.is_some() || answer.usage.is_some() || !answer.tells_of_an_error() {
            return None;
        }
        Raw::parse(text).ok().map(|document| Self::in_band(document, dialect))
    }

    /// Sorts an error object that stood inside a successful answer.
    pub(crate) fn in_band(error: Raw<'_>, dialect: &AnswerDialect) -> Self {
        let said = Said::of(error);
        let status = ["code", "status", "status_code", "error_code"].into_iter().find_map(|name| {
            let status: u16 = error.get(name)?.as_str().trim_matches('"').parse().ok()?;
            Some(said::http_status(status))
        });
        let class = said.class(dialect, status);
        said.failure(class, dialect, || "The provider reported an error.".to_owned())
    }

    /// The message, cut to what a client should be shown.
    pub fn shown(&self) -> Cow<'_, str> {
        const LIMIT: usize = 2048;
        if self.message.len() <= LIMIT {
            return Cow::Borrowed(&self.message);
        }
        let end = self.message.floor_char_boundary(LIMIT);
        Cow::Owned(format!("{}…", &self.message[..end]))
    }

    /// As `response.error` and the `error` event show it.
    pub fn response_error(&self) -> ResponseError {
        ResponseError {
            code: self.class.response_code().to_owned(),
            kind: self.class.kind(),
            message: self.shown().into_owned(),
            param: None,
        }
    }
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
            (307, "", C::Protocol, "The provider answered with a redirect (status 307); none is followed."),
            (
                529,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                C::Overloaded,
                "Overloaded",
            ),
            (429, r#"{"error":{"type":"engine_overloaded_error","message":"busy"}}"#, C::Overloaded, "busy"),
            (402, r#"{"error":{"message":"Insufficient Balance"}}"#, C::Quota, "Insufficient Balance"),
            (403, r#"{"error":{"message":"credit balance is too low"}}"#, C::Quota, "credit balance is too low"),
            (429, r#"{"error":{"type":"exceeded_current_quota_error","message":"x"}}"#, C::Quota, "x"),
            (400, r#"{"error":{"message":"Content Exists Risk"}}"#, C::ContentPolicy, "Content Exists Risk"),
            (400, r#"{"error":{"code":"content_filter","message":"no"}}"#, C::ContentPolicy, "no"),
            (400, r#"{"error":{"message":"Model Not Exist"}}"#, C::ModelNotFound, "Model Not Exist"),
            (400, r#"[{"error":{"code":400,"message":"API key not valid."}}]"#, C::Auth, "API key not valid."),
            (413, r#"{"error":{"message":"too large"}}"#, C::InvalidRequest, "too large"),
            (400, "\u{feff}{\"error\":\"bad\"}", C::InvalidRequest, "bad"),
            (408, "", C::Timeout, "The provider answered with status 408."),
            (
                429,
                r#"{"error":{"type":"rate_limit_error","message":"prompt is too long: 2 > 1"}}"#,
                C::ContextOverflow,
                "prompt is too long: 2 > 1",
            ),
        ] {
            let failure = Failure::from_answer(status, body.as_bytes());
            assert_eq!((failure.class, failure.message.as_str()), (class, message), "{status} {body}");
        }
    }

    #[test]
    fn waits_stand_in_words_of_those_who_are_busy() {
        for (status, message, expected) in [
            (429, "Please try again in 20s.", Some(20)),
            (503, "Overloaded, retry after 3 seconds", Some(3)),
            (400, "Please try again in 20s.", None),
            (429, "slow down", None),
        ] {
            let body = format!(r#"{{"error":{{"message":"{message}"}}}}"#);
            assert_eq!(Failure::from_answer(status, body.as_bytes()).retry_after, expected, "{status} {message}");
        }
    }

    #[test]
    fn a_dialect_knows_its_own_words() {
        let errors = vec![("the cup is full".to_owned(), crate::dialect::ErrorMeaning::Overloaded)];
        let dialect = AnswerDialect { errors, ..AnswerDialect::default() };
        let class = |body: &str| Failure::from_answer_in(&dialect, 400, body.as_bytes()).class;
        assert_eq!(class(r#"{"error":"The cup is full!"}"#), FailureClass::Overloaded);
        assert_eq!(class(r#"{"error":"The cup is empty!"}"#), FailureClass::InvalidRequest);
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let body = format!(r#"{{"error":"{}"}}"#, "é".repeat(3000));
        let failure = Failure::from_answer(500, body.as_bytes());
        // Whole for who looks for secrets in it, cut for who reads it.
        assert_eq!(failure.message.len(), 6000);
        for shown in [failure.shown().into_owned(), failure.response_error().message] {
            assert_eq!((shown.len(), shown.ends_with("é…")), (2048 + "…".len(), true));
        }
    }
}
