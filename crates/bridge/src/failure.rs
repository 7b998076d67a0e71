//! Ways in which an upstream fails, sorted by what a client should do about them.

mod api;
mod class;
mod error_body;
mod hearsay;
mod room;
mod unsupported;
mod wait;

use std::borrow::Cow;

use wire::chat::Answer;
use wire::json::Raw;
use wire::responses::ResponseError;

use crate::dialect::AnswerDialect;
pub use class::FailureClass;
use error_body::ErrorBody;
pub use hearsay::Basis;
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
    /// Whether the same target may be asked again, where the spec says so of this error; else its class decides.
    pub retry: Option<bool>,
    /// What it will not take, where it or a rule names that: the request may be sent once more without.
    pub unsupported: Option<Refusal>,
    /// What a rule that names it knew the error by: words, or none of them. The client may have said them.
    pub named_by: Option<Box<str>>,
    /// What it was sorted by.
    pub basis: Basis,
    /// The status, where nothing else told what it is.
    pub by_status: Option<u16>,
}

impl Failure {
    pub fn new(class: FailureClass, message: impl Into<String>) -> Self {
        let (message, basis) = (message.into(), Basis::default());
        Self {
            class,
            message,
            upstream_code: None,
            retry_after: None,
            retry: None,
            unsupported: None,
            named_by: None,
            basis,
            by_status: None,
        }
    }

    /// Sorts an upstream's answer of that status, by what OpenAI's API defines.
    pub fn from_answer(status: u16, body: &[u8]) -> Self {
        Self::from_answer_in(&AnswerDialect::default(), status, body)
    }

    /// The same, knowing what the provider's errors mean.
    pub fn from_answer_in(dialect: &AnswerDialect, status: u16, body: &[u8]) -> Self {
        let body = ErrorBody::read(body);
        let refused = matches!(status, 400 | 422);
        let unsupported = body.unsupported(dialect, status).filter(|_| refused);
        let by_rule = || body.unsupported_by_rule(dialect, status).filter(|_| refused);
        let (unsupported, named_by) = match unsupported {
            Some(refusal) => (Some(refusal), None),
            None => by_rule().map(|(refusal, words)| (refusal, words.into())).unzip(),
        };
        let silent = || match status {
            300..=399 => format!("The provider answered with a redirect (status {status}); none is followed."),
            _ => format!("The provider answered with status {status}."),
        };
        Self { unsupported, named_by, ..body.failure(dialect, Some(status), silent) }
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

    /// Sorts an error object inside a successful answer.
    pub(crate) fn in_band(error: Raw<'_>, dialect: &AnswerDialect) -> Self {
        let silent = || "The provider reported an error.".to_owned();
        ErrorBody::of(error).failure(dialect, error_body::status_of(error), silent)
    }

    /// Sorts an error inside of a Messages answer: its type stands for the status that it would have had instead.
    pub(crate) fn in_message(document: Raw<'_>, dialect: &AnswerDialect) -> Self {
        let silent = || "The provider reported an error.".to_owned();
        let error = document.get("error").filter(|error| !error.is_null()).unwrap_or(document);
        let status = error_body::status_of(error).or_else(|| api::status_of_message_error(error));
        ErrorBody::within(document).failure(dialect, status, silent)
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
            (529, r#"{"error":{"message":"busy"}}"#, C::Overloaded, "busy"),
            (402, r#"{"error":{"message":"pay"}}"#, C::Quota, "pay"),
            (500, r#"{"error":"text"}"#, C::Server, "text"),
            (503, r#"[{"error":{"message":"busy"}}]"#, C::Overloaded, "busy"),
            (504, "", C::Timeout, "The provider answered with status 504."),
            (500, r#"{"base_resp":{"status_code":1000,"status_msg":"oops"}}"#, C::Server, "oops"),
            (307, "", C::Protocol, "The provider answered with a redirect (status 307); none is followed."),
            (400, r#"{"error":{"code":"content_filter","message":"no"}}"#, C::ContentPolicy, "no"),
            (413, r#"{"error":{"message":"too large"}}"#, C::InvalidRequest, "too large"),
            (400, "\u{feff}{\"error\":\"bad\"}", C::InvalidRequest, "bad"),
            (408, "", C::Timeout, "The provider answered with status 408."),
            (
                529,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}"#,
                C::Overloaded,
                "Overloaded (request req_1)",
            ),
            (
                404,
                r#"{"type":"error","error":{"type":"not_found_error","message":"model: x"}}"#,
                C::ModelNotFound,
                "model: x",
            ),
            // A gateway's status, and the one that it was told itself.
            (400, r#"{"error":{"code":429,"message":"slow down"}}"#, C::RateLimit, "slow down"),
            (400, r#"{"error":{"code":"429","message":"slow down"}}"#, C::RateLimit, "slow down"),
            (422, r#"{"error":{"status":503,"message":"busy"}}"#, C::Overloaded, "busy"),
            (400, r#"{"error":{"code":500,"message":"oops"}}"#, C::Server, "oops"),
            (400, r#"{"error":{"status_code":504,"message":"slow"}}"#, C::Timeout, "slow"),
            (
                400,
                r#"{"error":{"code":400,"message":"no","metadata":{"raw":"{\"error\":{\"code\":429,\"message\":\"no more\"}}"}}}"#,
                C::RateLimit,
                "no more",
            ),
            // Somebody's own numbers, a code that says what it is, and statuses that are clear by themselves.
            (400, r#"{"error":{"code":5003,"message":"x"}}"#, C::InvalidRequest, "x"),
            (400, r#"{"error":{"code":599,"message":"x"}}"#, C::InvalidRequest, "x"),
            (400, r#"{"error":{"code":401,"message":"x"}}"#, C::InvalidRequest, "x"),
            (400, r#"{"error":{"code":"content_filter","status":500,"message":"x"}}"#, C::ContentPolicy, "x"),
            (401, r#"{"error":{"code":429,"message":"x"}}"#, C::Auth, "x"),
            (500, r#"{"error":{"code":429,"message":"x"}}"#, C::Server, "x"),
        ] {
            let failure = Failure::from_answer(status, body.as_bytes());
            assert_eq!((failure.class, failure.message.as_str()), (class, message), "{status} {body}");
        }
    }

    /// Every condition of a rule must hold, and of all rules the first that fits decides.
    #[test]
    fn a_dialect_knows_the_errors_of_its_provider() {
        use crate::dialect::{ErrorMeaning as M, ErrorRule};
        use FailureClass as C;
        let rule = |means, status: &[u16], code: &[&str], words: &[&str]| {
            let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
            ErrorRule { status: status.to_vec(), code: texts(code), words: texts(words), ..ErrorRule::new(means) }
        };
        let errors = [
            rule(M::Overloaded, &[], &[], &["the cup is full"]),
            rule(M::Quota, &[429], &["1113"], &[]),
            rule(M::ContextOverflow, &[], &["TOO_MUCH"], &[]),
            rule(M::ContextOverflow, &[400], &[], &["too much", "too long"]),
            ErrorRule { no_message: true, ..rule(M::ContextOverflow, &[413], &[], &[]) },
            rule(M::RateLimit, &[], &["7"], &[]),
            rule(M::InvalidRequest, &[], &["8"], &[]),
            rule(M::Auth, &[], &[], &["who are you"]),
            rule(M::ByStatus, &[], &[], &["nobody knows"]),
            rule(M::Server, &[], &[], &["nobody"]),
        ];
        let dialect = AnswerDialect { errors: errors.into_iter().collect(), ..AnswerDialect::default() };
        for (status, body, class) in [
            (400, r#"{"error":"The cup is full!"}"#, C::Overloaded),
            (400, r#"{"error":"The cup is empty!"}"#, C::InvalidRequest),
            (429, r#"{"error":{"code":"1113","message":"x"}}"#, C::Quota),
            (429, r#"{"error":{"code":1113}}"#, C::Quota),
            (429, r#"{"error":{"code":11130}}"#, C::RateLimit),
            (400, r#"{"error":{"code":"1113"}}"#, C::InvalidRequest),
            (500, r#"{"error":{"status":"too_much"}}"#, C::ContextOverflow),
            (400, r#"{"error":"Too long."}"#, C::ContextOverflow),
            (500, r#"{"error":"Too long."}"#, C::Server),
            (413, "", C::ContextOverflow),
            (413, r#"{"error":{"message":" "}}"#, C::ContextOverflow),
            (413, r#"{"error":"x"}"#, C::InvalidRequest),
            // What comes in fields says more than words, except where it says little.
            (400, r#"{"error":{"code":"model_not_found","message":"No model 'the cup is full'"}}"#, C::ModelNotFound),
            (400, r#"{"error":{"code":"too_much","message":"The cup is full"}}"#, C::ContextOverflow),
            (400, r#"{"error":{"code":7,"message":"Who are you?"}}"#, C::Auth),
            (400, r#"{"error":{"code":8,"message":"Who are you?"}}"#, C::Auth),
            (400, r#"{"error":{"code":"rate_limit_exceeded","message":"Who are you?"}}"#, C::Auth),
            (400, r#"{"error":{"code":7,"message":"x"}}"#, C::RateLimit),
            // What a rule says of it, also of the status inside; the status itself, where a rule wants that.
            (400, r#"{"error":{"code":8,"status":429,"message":"x"}}"#, C::InvalidRequest),
            (400, r#"{"error":{"code":"1113","status":429}}"#, C::Quota),
            (400, r#"{"error":{"code":429,"message":"Nobody knows."}}"#, C::InvalidRequest),
            (403, r#"{"error":"Nobody knows."}"#, C::Auth),
            (403, r#"{"error":"Nobody."}"#, C::Server),
            (
                400,
                r#"{"error":{"type":"invalid_request_error","details":{"error_code":"too_much"}}}"#,
                C::ContextOverflow,
            ),
        ] {
            assert_eq!(Failure::from_answer_in(&dialect, status, body.as_bytes()).class, class, "{status} {body}");
        }
        let in_band = |text: &str| Failure::in_band(Raw::parse(text).unwrap(), &dialect).class;
        assert_eq!(in_band(r#"{"status_code":7,"status_msg":"x"}"#), C::RateLimit);
        assert_eq!(in_band(r#"{"code":429,"status":"1113"}"#), C::Quota);
        let wrapped =
            r#"{"message":"Failed","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"It is too long.\"}}"}}"#;
        assert_eq!(in_band(wrapped), C::ContextOverflow);
        assert_eq!(in_band(&wrapped.replace("long", "short")), C::InvalidRequest);
    }

    #[test]
    fn a_spec_may_say_whether_to_ask_again() {
        use crate::dialect::{ErrorMeaning, ErrorRule};
        let rule = ErrorRule { code: vec!["1".to_owned()], retry: Some(false), ..ErrorRule::new(ErrorMeaning::Server) };
        let dialect = AnswerDialect { errors: [rule].into_iter().collect(), ..AnswerDialect::default() };
        let retry = |body: &[u8]| Failure::from_answer_in(&dialect, 500, body).retry;
        assert_eq!((retry(br#"{"code":1}"#), retry(br#"{"code":2}"#)), (Some(false), None));
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
