//! What an error body says, in any of the shapes that servers use, and what that means.

use wire::json::{Kind, Raw, without_mark};

use super::hearsay::Basis;
use super::{Failure, FailureClass, wait};
use crate::dialect::AnswerDialect;

#[derive(Debug, Default)]
pub(super) struct Said {
    message: Option<String>,
    /// The same in lower case, for comparison.
    lower: String,
    code: Option<String>,
    kind: Option<String>,
    pub(super) param: Option<String>,
    /// Where a list of what is wrong stands: the member that is not known, if one is.
    pub(super) unknown_member: Option<String>,
    pub(super) is_list: bool,
}

/// Codes and types that mean the same wherever they stand.
const CODES: &[(&str, FailureClass)] = &[
    ("context_length_exceeded", FailureClass::ContextOverflow),
    ("exceed_context_size_error", FailureClass::ContextOverflow),
    ("insufficient_quota", FailureClass::Quota),
    ("exceeded_current_quota_error", FailureClass::Quota),
    ("billing_hard_limit_reached", FailureClass::Quota),
    ("rate_limit_exceeded", FailureClass::RateLimit),
    ("rate_limit_error", FailureClass::RateLimit),
    ("rate_limit_reached_error", FailureClass::RateLimit),
    ("overloaded_error", FailureClass::Overloaded),
    ("engine_overloaded_error", FailureClass::Overloaded),
    ("server_is_overloaded", FailureClass::Overloaded),
    ("content_filter", FailureClass::ContentPolicy),
    ("content_policy_violation", FailureClass::ContentPolicy),
    ("data_inspection_failed", FailureClass::ContentPolicy),
    ("model_not_found", FailureClass::ModelNotFound),
    ("invalid_api_key", FailureClass::Auth),
    ("authentication_error", FailureClass::Auth),
];

/// Wordings that mean the same whatever the status; lower case.
const WORDINGS: &[(&str, FailureClass)] = &[
    ("maximum context length", FailureClass::ContextOverflow),
    ("context length exceeded", FailureClass::ContextOverflow),
    ("context window", FailureClass::ContextOverflow),
    ("prompt is too long", FailureClass::ContextOverflow),
    ("exceeds the available context size", FailureClass::ContextOverflow),
    ("exceed context limit", FailureClass::ContextOverflow),
    ("too many tokens in the prompt", FailureClass::ContextOverflow),
    ("insufficient balance", FailureClass::Quota),
    ("credit balance is too low", FailureClass::Quota),
    ("exceeded your current quota", FailureClass::Quota),
    ("content management policy", FailureClass::ContentPolicy),
    ("content exists risk", FailureClass::ContentPolicy),
    ("inappropriate content", FailureClass::ContentPolicy),
    ("flagged by moderation", FailureClass::ContentPolicy),
    ("requires moderation", FailureClass::ContentPolicy),
    ("model not exist", FailureClass::ModelNotFound),
    ("api key not valid", FailureClass::Auth),
    ("invalid api key", FailureClass::Auth),
    ("incorrect api key", FailureClass::Auth),
];

/// The numbers of `base_resp` as HTTP would say them; the rest stays.
pub(super) const fn http_status(number: u16) -> u16 {
    match number {
        1002 | 1039 => 429,
        1004 => 401,
        1008 => 402,
        1026 | 1027 | 2013 => 400,
        _ => number,
    }
}

impl Said {
    pub(super) fn read(body: &[u8]) -> Self {
        let Ok(text) = str::from_utf8(without_mark(body)) else { return Self::default() };
        let Ok(document) = Raw::parse(text) else { return Self::default() };
        let document = match document.kind() {
            Kind::Array => document.elements().next().unwrap_or(document),
            _ => document,
        };
        let nested = ["error", "base_resp"].into_iter().find_map(|name| document.get(name));
        Self::of(nested.filter(|raw| !raw.is_null()).unwrap_or(document))
    }

    pub(super) fn of(error: Raw<'_>) -> Self {
        // Some servers fail without a word: an empty message is none.
        let string = |name: &str| {
            let text = error.get(name).and_then(Raw::text)?.decode().into_owned();
            (!text.trim().is_empty()).then_some(text)
        };
        let whole = || error.text().map(|text| text.decode().into_owned());
        let message = whole()
            .or_else(|| string("message"))
            .or_else(|| string("status_msg"))
            .or_else(|| string("msg"))
            .or_else(|| string("error_msg"))
            .or_else(|| string("detail"))
            .or_else(|| error.get("detail").or_else(|| error.get("errors")).map(|detail| detail.as_str().to_owned()))
            .or_else(|| {
                error.get("message").filter(|said| said.kind() == Kind::Object).map(|said| said.as_str().to_owned())
            });
        let lower = message.as_deref().unwrap_or_default().to_lowercase();
        let list = error.get("detail").filter(|detail| detail.kind() == Kind::Array);
        let unknown_member = list.into_iter().flat_map(Raw::elements).find_map(unknown_member);
        let (code, kind, param) = (string("code"), string("type"), string("param"));
        Self { message, lower, code, kind, param, unknown_member, is_list: list.is_some() }
    }

    /// What a client can do about it. The far side's own words count first, then what all say alike, then the
    /// status.
    pub(super) fn class(&self, dialect: &AnswerDialect, status: Option<u16>) -> FailureClass {
        if let Some((class, _)) = self.known(dialect) {
            return class;
        }
        match status.unwrap_or(500) {
            401 | 403 | 407 => FailureClass::Auth,
            402 => FailureClass::Quota,
            404 if self.lower.contains("model") => FailureClass::ModelNotFound,
            408 | 504 => FailureClass::Timeout,
            429 => FailureClass::RateLimit,
            // A wrong address, most likely.
            300..=399 | 404 | 405 => FailureClass::Protocol,
            400..=499 => FailureClass::InvalidRequest,
            503 | 529 => FailureClass::Overloaded,
            _ => FailureClass::Server,
        }
    }

    /// What is known by its code or its words; and the words, if it was those.
    fn known<'a>(&'a self, dialect: &'a AnswerDialect) -> Option<(FailureClass, Option<&'a str>)> {
        let said = |words: &str| self.lower.contains(words);
        for (words, means) in &dialect.errors {
            if let Some(class) = means.class().filter(|_| said(words)) {
                return Some((class, Some(words)));
            }
        }
        if let Some(words) = dialect.overflow.iter().find(|words| said(words)) {
            return Some((FailureClass::ContextOverflow, Some(words)));
        }
        let by_code = CODES.iter().find(|(code, _)| self.code_is(code)).map(|(_, class)| (*class, None));
        let by_words = WORDINGS.iter().find(|(words, _)| said(words)).map(|(words, class)| (*class, Some(*words)));
        // "rate_limit_error" is also the type of what can never fit, or must be paid for.
        match (by_code, by_words) {
            (Some((FailureClass::RateLimit, _)), Some(words)) => Some(words),
            (by_code, by_words) => by_code.or(by_words),
        }
    }

    /// The words, with the time to wait read out of them. They are whole: whoever holds secrets looks for them first.
    pub(super) fn failure(
        self,
        class: FailureClass,
        dialect: &AnswerDialect,
        silent: impl FnOnce() -> String,
    ) -> Failure {
        let basis = Basis::words(self.known(dialect).and_then(|(_, words)| words));
        let retry_after = match class {
            FailureClass::RateLimit | FailureClass::Overloaded => wait::seconds(&self.lower),
            _ => None,
        };
        let message = self.message.unwrap_or_else(silent);
        Failure { class, message, upstream_code: self.code, retry_after, unsupported: None, basis }
    }

    pub(super) fn lower(&self) -> &str {
        &self.lower
    }

    pub(super) fn code_is(&self, name: &str) -> bool {
        self.code.as_deref() == Some(name) || self.kind.as_deref() == Some(name)
    }
}

/// The member of the request that one entry of a list calls unknown: `loc` is the way to it, and what a client chose to
/// call something is never right below the body.
fn unknown_member(entry: Raw<'_>) -> Option<String> {
    let is = |raw: Raw<'_>, name: &str| raw.text().is_some_and(|text| text.is(name));
    entry.get("type").filter(|kind| is(*kind, "extra_forbidden"))?;
    let mut way = entry.get("loc")?.elements();
    way.next().filter(|first| is(*first, "body"))?;
    let member = way.next()?.text()?.decode().into_owned();
    way.next().is_none().then_some(member)
}
