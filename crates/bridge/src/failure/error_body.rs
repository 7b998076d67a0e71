//! The body of an error, in any of the shapes that servers use, and what it means.

use std::borrow::Cow;

use wire::json::{Kind, Raw, without_mark};

use super::hearsay::Basis;
use super::{Failure, FailureClass, Unsupported, api, wait};
use crate::dialect::{AnswerDialect, ErrorMeaning, ErrorRule};

#[derive(Debug, Default)]
pub(super) struct ErrorBody {
    message: Option<String>,
    /// The same in lower case, for comparison.
    lower: String,
    /// What it adds to that for programs: JSON in lower case.
    details: String,
    /// Its `code`, where that is a string.
    code: Option<String>,
    /// All that tells its kind; numbers as text.
    codes: Vec<String>,
    pub(super) param: Option<String>,
    /// In a list of what is wrong: the member that is not known, if one is.
    pub(super) unknown_member: Option<String>,
    pub(super) is_list: bool,
    /// The provider's own name of the request, for questions to its support.
    request_id: Option<String>,
}

/// What an error was found to mean.
#[derive(Debug, Clone, Copy)]
struct Verdict<'a> {
    /// None: what its status says.
    class: Option<FailureClass>,
    /// The words that it was known by, if it was words.
    words: Option<&'a str>,
    retry: Option<bool>,
}

/// What an error has of what a rule asks for.
#[derive(Debug, Clone, Copy)]
enum Fit<'a> {
    /// Codes and statuses, which no client writes.
    Fields,
    /// These words, perhaps beside fields: the client may have said them.
    Words(&'a str),
}

/// Members of an error that tell its kind.
const CODES: [&str; 5] = ["code", "type", "status", "status_code", "error_code"];

/// Aggregators ask aggregators: so many errors may be around the one that says the reason.
const WRAPPERS: usize = 4;

/// Those that may hold an HTTP status.
const STATUSES: [&str; 4] = ["code", "status", "status_code", "error_code"];

/// The status that an error inside a successful answer gives.
pub(super) fn status_of(error: Raw<'_>) -> Option<u16> {
    STATUSES.into_iter().find_map(|name| error.get(name)?.as_str().trim_matches('"').parse().ok())
}

impl ErrorBody {
    pub(super) fn read(body: &[u8]) -> Self {
        let Ok(text) = str::from_utf8(without_mark(body)) else { return Self::default() };
        Raw::parse(text).map(Self::within).unwrap_or_default()
    }

    /// The error that a document is, or has in it.
    pub(super) fn within(document: Raw<'_>) -> Self {
        let document = first(document);
        // So the Messages API says it.
        let is_error = document.get("type").and_then(Raw::text).is_some_and(|kind| kind.is("error"));
        let request_id = is_error.then(|| string(document, "request_id")).flatten();
        Self { request_id: request_id.map(|id| id.chars().take(128).collect()), ..Self::of(error_in(document)) }
    }

    /// An error, and the one that is wrapped in it.
    pub(super) fn of(error: Raw<'_>) -> Self {
        Self::nested(error, WRAPPERS)
    }

    fn nested(error: Raw<'_>, wrappers: usize) -> Self {
        let outer = Self::bare(error);
        // OpenRouter has it in the first place, Vercel in the second.
        let raw = error.get("metadata").and_then(|metadata| metadata.get("raw"));
        let raw = raw.or_else(|| error.get("param").filter(|param| param.kind() == Kind::Object));
        match raw.filter(|_| wrappers > 0) {
            Some(raw) => outer.wrapping(Self::raw(raw, wrappers - 1)),
            None => outer,
        }
    }

    fn bare(error: Raw<'_>) -> Self {
        let message = message(error);
        let lower = message.as_deref().unwrap_or_default().to_lowercase();
        let list = error.get("detail").filter(|detail| detail.kind() == Kind::Array);
        let unknown_member = list.into_iter().flat_map(Raw::elements).find_map(unknown_member);
        let codes = |object: Raw<'_>| CODES.into_iter().filter_map(|name| code(object.get(name)?)).collect::<Vec<_>>();
        let codes = [codes(error), error.get("details").map(codes).unwrap_or_default()].concat();
        let (code, param) = (string(error, "code"), string(error, "param"));
        let details = error.get("details").map(|details| details.as_str().to_lowercase()).unwrap_or_default();
        Self { message, lower, details, code, codes, param, unknown_member, is_list: list.is_some(), request_id: None }
    }

    /// What an aggregator was answered itself: a body as text or as JSON, or plain words. In a shape that is not known,
    /// all of it is the message.
    fn raw(raw: Raw<'_>, wrappers: usize) -> Self {
        let text = match raw.text() {
            Some(text) => text.decode(),
            None if raw.is_null() => return Self::default(),
            None => Cow::Borrowed(raw.as_str()),
        };
        let body =
            Raw::parse(&text).map(|document| Self::nested(error_in(first(document)), wrappers)).unwrap_or_default();
        match body.message {
            None if !text.trim().is_empty() => {
                Self { lower: text.to_lowercase(), message: Some(text.into_owned()), ..body }
            }
            _ => body,
        }
    }

    /// Both errors as one: the outer one says what it is of itself, and the inner one the reason.
    fn wrapping(self, inner: Self) -> Self {
        let message = match (self.message, inner.message) {
            (Some(outer), Some(reason)) if reason.len() > outer.len() && inner.lower.starts_with(&self.lower) => {
                Some(reason)
            }
            (Some(outer), Some(reason)) if !self.lower.contains(&inner.lower) => Some(format!("{outer}: {reason}")),
            (outer, reason) => outer.or(reason),
        };
        Self {
            lower: message.as_deref().unwrap_or_default().to_lowercase(),
            message,
            details: self.details + &inner.details,
            code: self.code.or(inner.code),
            codes: [self.codes, inner.codes].concat(),
            param: self.param.or(inner.param),
            unknown_member: self.unknown_member.or(inner.unknown_member),
            is_list: self.is_list || inner.is_list,
            request_id: self.request_id,
        }
    }

    /// What it means: the words for a client, with the time to wait read out of them. They are whole: whoever holds
    /// secrets looks for them first.
    pub(super) fn failure(
        self,
        dialect: &AnswerDialect,
        status: Option<u16>,
        silent: impl FnOnce() -> String,
    ) -> Failure {
        let verdict = self.verdict(dialect, status).or_else(|| self.wrapped(dialect, status));
        let names_a_model = self.lower.contains("model");
        let by_status = || api::class_of_status(status.unwrap_or(500), names_a_model);
        let known = verdict.and_then(|verdict| verdict.class);
        let class = known.unwrap_or_else(by_status);
        let retry_after = match class {
            FailureClass::RateLimit | FailureClass::Overloaded => {
                let seconds = |text: &str| wait::seconds(text, &dialect.wait);
                seconds(&self.lower).or_else(|| seconds(&self.details))
            }
            _ => None,
        };
        let basis = Basis::words(verdict.and_then(|verdict| verdict.words));
        let retry = verdict.and_then(|verdict| verdict.retry);
        let mut message = self.message.unwrap_or_else(silent);
        if let Some(id) = self.request_id {
            message = format!("{message} (request {id})");
        }
        let by_status = status.filter(|_| known.is_none());
        let upstream_code = self.code;
        Failure { upstream_code, retry_after, retry, basis, by_status, ..Failure::new(class, message) }
    }

    /// What is known of it beside its status. Codes and statuses say more than words, which anybody may have written,
    /// with two exceptions: "too many requests" and "invalid request" are also the codes of what can never fit, or must
    /// be paid for, and only the words tell.
    fn verdict<'a>(&'a self, dialect: &'a AnswerDialect, status: Option<u16>) -> Option<Verdict<'a>> {
        let rules = move |by_fields: bool| {
            let rules = dialect.errors.iter().filter(move |rule| rule.asks_for_fields() == by_fields);
            rules.filter_map(move |rule| self.verdict_by(dialect, rule, status))
        };
        let code = api::class_of_code(|code| self.has_code(code));
        let code = code.map(|class| Verdict { class: Some(class), words: None, retry: None });
        let by_fields = || rules(true).chain(code);
        let is_vague = |class| matches!(class, Some(FailureClass::RateLimit | FailureClass::InvalidRequest));
        by_fields()
            .find(|verdict| !is_vague(verdict.class))
            .or_else(|| self.overflow(dialect))
            .or_else(|| rules(false).next())
            .or_else(|| by_fields().next())
    }

    /// What another status means that it has in it: some gateways refuse with a 400 what they were told later is not the
    /// request's fault. Nothing but that number says so, and only where nothing else says what it is.
    fn wrapped<'a>(&'a self, dialect: &'a AnswerDialect, status: Option<u16>) -> Option<Verdict<'a>> {
        status.filter(|status| matches!(status, 400 | 422))?;
        let own = self.codes.iter().find_map(|code| code.parse().ok().filter(|code| api::is_of_the_server(*code)))?;
        let verdict = self.verdict(dialect, Some(own));
        let verdict = verdict.unwrap_or(Verdict { class: None, words: None, retry: None });
        Some(Verdict { class: verdict.class.or(Some(api::class_of_status(own, false))), ..verdict })
    }

    fn overflow<'a>(&self, dialect: &'a AnswerDialect) -> Option<Verdict<'a>> {
        let words = dialect.overflow.iter().find(|words| self.lower.contains(words.as_str()))?;
        Some(Verdict { class: Some(FailureClass::ContextOverflow), words: Some(words), retry: None })
    }

    fn verdict_by<'a>(&self, dialect: &AnswerDialect, rule: &'a ErrorRule, status: Option<u16>) -> Option<Verdict<'a>> {
        if rule.means.is_of_a_parameter() {
            return None;
        }
        let words = match self.fit(dialect, rule, status)? {
            Fit::Words(words) => Some(words),
            Fit::Fields => None,
        };
        Some(Verdict { class: rule.means.class(), words, retry: rule.retry })
    }

    /// Whether this is an error of that kind, and by what.
    fn fit<'a>(&self, dialect: &AnswerDialect, rule: &'a ErrorRule, status: Option<u16>) -> Option<Fit<'a>> {
        let has_status = rule.status.is_empty() || status.is_some_and(|status| rule.status.contains(&status));
        let has_code = rule.code.is_empty() || rule.code.iter().any(|code| self.has_code(code));
        let is_silent = !rule.no_message || self.message.is_none();
        let has_details = rule.details.is_empty() || rule.details.iter().any(|words| self.details.contains(words));
        let is_short = |text: &str| wait::is_short(text, &dialect.wait);
        let waits = || !rule.names_wait || is_short(&self.lower) || is_short(&self.details);
        if !has_status || !has_code || !is_silent || !has_details || !waits() {
            return None;
        }
        if rule.words.is_empty() {
            return Some(Fit::Fields);
        }
        rule.words.iter().find(|words| self.lower.contains(words.as_str())).map(|words| Fit::Words(words))
    }

    /// Whether it is said that a parameter is not supported: the kind of rule says whether of the parameter or of its
    /// value.
    pub(super) fn fits(&self, dialect: &AnswerDialect, status: u16, means: ErrorMeaning) -> bool {
        dialect.errors.iter().any(|rule| rule.means == means && self.fit(dialect, rule, Some(status)).is_some())
    }

    /// The first rule that names what is not supported, and the words that it knew the error by; without words, it was
    /// fields alone.
    pub(super) fn parameter_by<'a>(
        &self,
        dialect: &'a AnswerDialect,
        status: u16,
    ) -> Option<(&'a ErrorRule, Unsupported, &'a str)> {
        dialect.errors.iter().filter(|rule| rule.means.is_of_a_parameter()).find_map(|rule| {
            let parameter = rule.parameter?;
            match self.fit(dialect, rule, Some(status))? {
                Fit::Words(words) => Some((rule, parameter, words)),
                Fit::Fields => Some((rule, parameter, "")),
            }
        })
    }

    pub(super) fn lower(&self) -> &str {
        &self.lower
    }

    pub(super) fn has_code(&self, name: &str) -> bool {
        self.codes.iter().any(|code| code.eq_ignore_ascii_case(name))
    }
}

/// Of a list of errors the first.
fn first(document: Raw<'_>) -> Raw<'_> {
    match document.kind() {
        Kind::Array => document.elements().next().unwrap_or(document),
        _ => document,
    }
}

/// The error in a document; the document, where it is the error.
fn error_in(document: Raw<'_>) -> Raw<'_> {
    let nested = ["error", "base_resp"].into_iter().find_map(|name| document.get(name));
    nested.filter(|raw| !raw.is_null()).unwrap_or(document)
}

/// What is said, in the first of the places where servers say it.
fn message(error: Raw<'_>) -> Option<String> {
    let whole = || error.text().map(|text| text.decode().into_owned());
    let named = || ["message", "status_msg", "msg", "error_msg", "detail"].iter().find_map(|name| string(error, name));
    let listed = || error.get("detail").or_else(|| error.get("errors")).map(|detail| detail.as_str().to_owned());
    let nested = || error.get("message").filter(|message| message.kind() == Kind::Object);
    whole().or_else(named).or_else(listed).or_else(|| nested().map(|message| message.as_str().to_owned()))
}

/// A member's text. Some servers fail without a word: an empty message is none.
fn string(error: Raw<'_>, name: &str) -> Option<String> {
    let text = error.get(name).and_then(Raw::text)?.decode().into_owned();
    (!text.trim().is_empty()).then_some(text)
}

/// A code as text, be it a string or a number.
fn code(value: Raw<'_>) -> Option<String> {
    match value.kind() {
        Kind::String => value.text().map(|text| text.decode().into_owned()),
        Kind::Number => Some(value.as_str().to_owned()),
        _ => None,
    }
}

/// The member of the request that one entry of a list calls unknown: `loc` is the path to it, and what a client chose
/// to call something is never right below the body.
fn unknown_member(entry: Raw<'_>) -> Option<String> {
    let is = |raw: Raw<'_>, name: &str| raw.text().is_some_and(|text| text.is(name));
    entry.get("type").filter(|kind| is(*kind, api::UNKNOWN_MEMBER))?;
    let mut path = entry.get("loc")?.elements();
    path.next().filter(|first| is(*first, "body"))?;
    let member = path.next()?.text()?.decode().into_owned();
    path.next().is_none().then_some(member)
}
