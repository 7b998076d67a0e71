//! The programs that ask, and what is done otherwise for each of them: one table, a row for each client that is known.
//! Whoever has to decide something by the client asks its [`Profile`]; nobody asks which client it is. A client that is
//! not known gets the API as it is written.
//!
//! A client is recognised by what it says of itself. Nothing here may depend on it that others must be protected from:
//! anybody can send these headers.

use std::fmt;

use bridge::{ClientForms, FailureClass, Heartbeat, IncompleteReason, ReasoningChannel, RefusalForm, WaitInWords};
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::error::{ApiError, Code, ErrorSurface, Which};

/// The program that asks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client {
    profile: &'static Profile,
    version: Option<Version>,
}

/// What is done otherwise for one client, from one of its versions on.
#[derive(Debug)]
pub(crate) struct Profile {
    /// In the log, and where a background request waits.
    name: &'static str,
    signs: Signs,
    /// The first version that the row is for. Who does not say its version gets the row that is for all of them.
    since: Version,
    /// How it reads responses.
    pub(crate) forms: ClientForms,
    pub(crate) errors: ErrorSurface,
    /// Responses that end so are said to have failed.
    pub(crate) failed_when_incomplete: &'static [IncompleteReason],
    /// Headers of every answer that is a response.
    answer_headers: &'static [(&'static str, &'static str)],
    /// Whether an output that answers no known call is mended, where the operator says nothing.
    pub(crate) repair_history: bool,
    /// Whether it asks again by itself when a provider asks to slow down. If we did so too, each of its tries would be
    /// several.
    pub(crate) retries_rate_limits: bool,
    /// Whether it may be left to answer calls of a function that stands for `web_search`.
    pub(crate) may_search: bool,
}

/// What a client is recognised by; any of it is enough.
#[derive(Debug)]
struct Signs {
    /// The first word of `originator`, or of the first product in the user agent, in letters of any case.
    name: Option<&'static str>,
    /// A header that nobody else sends.
    header: Option<&'static str>,
}

/// `MAJOR.MINOR.PATCH`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(u32, u32, u32);

/// The rows of clients that are known. Of those of the same client the newest comes first, and one is for all versions.
static KNOWN: &[Profile] = &[CODEX, CODEX_BEFORE];

/// Everybody else.
static OTHER: Profile = Profile {
    name: "other",
    signs: Signs { name: None, header: None },
    since: Version(0, 0, 0),
    forms: ClientForms::EXACT,
    errors: ErrorSurface::EXACT,
    failed_when_incomplete: &[],
    answer_headers: &[],
    repair_history: false,
    retries_rate_limits: false,
    may_search: true,
};

/// The longest wait that is asked of Codex, which waits for as long as it is told, without an end.
const CODEX_WAIT: u32 = 60;

/// Codex (command line, editors, app server). It retries a turn five times whatever the status, except 400, a 404 for the
/// model, and a 429 that is about money or does not say when to come back: so what will not pass is one of these, and what
/// may pass is a 5xx or a 429 with `Retry-After`.
const CODEX: Profile = Profile {
    name: "codex",
    // Programs around its app server put their own names into both, but the header comes from inside.
    signs: Signs { name: Some("codex"), header: Some("x-codex-window-id") },
    since: Version(0, 166, 0),
    forms: ClientForms {
        // Comments do not reset its idle timer.
        heartbeat: Heartbeat::Event,
        // It leaves out the whole message that has a refusal in it.
        refusal: RefusalForm::Text,
        // Raw reasoning is shown to those only who set `show_raw_agent_reasoning`.
        reasoning: ReasoningChannel::Summary,
        failure_codes: &[
            // Its own code for this ends the turn at once; this one is retried, with the provider's words.
            (FailureClass::Overloaded, "server_error"),
            // The usual one is retried, and the operator's key will not get better by that.
            (FailureClass::Auth, "invalid_prompt"),
            (FailureClass::KeyEnded, "invalid_prompt"),
        ],
        // As it looks for it in a message.
        wait_in_words: Some(WaitInWords { before: "Please try again in ", after: "s.", most: CODEX_WAIT }),
    },
    errors: ErrorSurface {
        in_stream: &[FailureClass::ContextOverflow],
        // Not retried, and shown as its message alone.
        kept: &[Code::ModelNotFound, Code::Upstream(FailureClass::ModelNotFound)],
        statuses: CODEX_STATUSES,
        limits: &[],
        // Known to it: retried by the request, and not again by the turn.
        codes: &[(Code::Upstream(FailureClass::Overloaded), "server_is_overloaded")],
        longest_wait: Some(CODEX_WAIT),
    },
    // A response that reached the limit fails the turn with its reason, as it should: the answer is not whole, and the
    // next would be cut as well. One that was filtered would be asked for five times more.
    failed_when_incomplete: &[IncompleteReason::ContentFilter],
    // Without it, it adds an estimate of the sealed reasoning to a usage that has it counted already, and compacts too soon.
    answer_headers: &[("x-reasoning-included", "true")],
    // It sends histories with outputs of calls that it has forgotten, and cannot do otherwise.
    repair_history: true,
    retries_rate_limits: true,
    // It declares the tool with every request, and knows no such function.
    may_search: false,
};

const CODEX_STATUSES: &[(Which, StatusCode)] = &[
    (Which::Code(Code::Upstream(FailureClass::Auth)), StatusCode::BAD_REQUEST),
    (Which::Code(Code::StorageDamaged), StatusCode::BAD_REQUEST),
    (Which::Status(StatusCode::UNAUTHORIZED), StatusCode::BAD_REQUEST),
    (Which::Status(StatusCode::FORBIDDEN), StatusCode::BAD_REQUEST),
    (Which::Status(StatusCode::NOT_FOUND), StatusCode::BAD_REQUEST),
    (Which::Status(StatusCode::METHOD_NOT_ALLOWED), StatusCode::BAD_REQUEST),
    (Which::Status(StatusCode::PAYLOAD_TOO_LARGE), StatusCode::BAD_REQUEST),
    (Which::Status(StatusCode::UNSUPPORTED_MEDIA_TYPE), StatusCode::BAD_REQUEST),
    (Which::Status(StatusCode::UNPROCESSABLE_ENTITY), StatusCode::BAD_REQUEST),
    // Of a 500 it shows words of its own instead of ours.
    (Which::Status(StatusCode::INTERNAL_SERVER_ERROR), StatusCode::BAD_GATEWAY),
];

/// What passes is a 503, which is asked for again, and shows its words; what does not is a 400.
const CODEX_BEFORE_LIMITS: &[(Code, StatusCode)] = &[
    (Code::RequestsPerMinute, StatusCode::SERVICE_UNAVAILABLE),
    (Code::TokensPerMinute, StatusCode::SERVICE_UNAVAILABLE),
    (Code::TurnsAtOnce, StatusCode::SERVICE_UNAVAILABLE),
    (Code::BudgetInUse, StatusCode::SERVICE_UNAVAILABLE),
    (Code::BodyBytes, StatusCode::SERVICE_UNAVAILABLE),
    (Code::RequestBeyondLimit, StatusCode::BAD_REQUEST),
];

/// Versions before that, and those that do not say which they are: only what all of them understand. They give up on any
/// 429 without its reason, retry a 404 whatever its code, and retry what reached the limit.
const CODEX_BEFORE: Profile = Profile {
    since: Version(0, 0, 0),
    errors: ErrorSurface {
        in_stream: &[FailureClass::ContextOverflow, FailureClass::RateLimit, FailureClass::Quota],
        kept: &[],
        limits: CODEX_BEFORE_LIMITS,
        ..CODEX.errors
    },
    failed_when_incomplete: &[IncompleteReason::MaxOutputTokens, IncompleteReason::ContentFilter],
    ..CODEX
};

impl Client {
    /// Who sends these headers.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let products = text("user-agent").split('(').next().unwrap_or_default();
        let (name, version) = products.split_once('/').unwrap_or((products, ""));
        let version = version.split(' ').next().unwrap_or_default();
        let names = [text("originator"), name];
        let says = |signs: &Signs| {
            let named = signs.name.is_some_and(|known| names.iter().any(|name| is_first_word(known, name)));
            named || signs.header.is_some_and(|header| headers.contains_key(header))
        };
        Self::find(Version::parse(version), |profile| says(&profile.signs))
    }

    /// Who asked earlier, by what was kept of it.
    pub(crate) fn named(name: &str, version: Option<&str>) -> Self {
        Self::find(version.and_then(Version::parse), |profile| profile.name == name)
    }

    fn find(version: Option<Version>, is: impl Fn(&Profile) -> bool) -> Self {
        let reached = |profile: &Profile| version.unwrap_or(Version(0, 0, 0)) >= profile.since;
        match KNOWN.iter().find(|profile| is(profile) && reached(profile)) {
            Some(profile) => Self { profile, version },
            None => Self { profile: &OTHER, version: None },
        }
    }

    pub(crate) const fn profile(self) -> &'static Profile {
        self.profile
    }

    /// As the log has it.
    pub(crate) const fn name(self) -> &'static str {
        self.profile.name
    }

    /// Of a client that is known.
    pub(crate) const fn version(self) -> Option<Version> {
        self.version
    }

    /// The error as this client is told it.
    pub(crate) fn shown(self, error: ApiError) -> ApiError {
        self.profile.errors.shown(error)
    }
}

impl Profile {
    /// Adds what every answer that is a response has for this client.
    pub(crate) fn mark(&self, headers: &mut HeaderMap) {
        for (name, value) in self.answer_headers {
            headers.insert(*name, HeaderValue::from_static(value));
        }
    }
}

/// Whether a name begins with this word: no letter follows it.
fn is_first_word(word: &str, name: &str) -> bool {
    let (first, rest) = name.split_at(name.floor_char_boundary(word.len()));
    first.eq_ignore_ascii_case(word) && !rest.starts_with(char::is_alphabetic)
}

impl Version {
    /// What follows the numbers (`-alpha.1`) does not matter. A number that is too large is a late one.
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split('.').map(|part| {
            let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            part[..end].parse().ok().or_else(|| (end > 0).then_some(u32::MAX))
        });
        Some(Self(numbers.next()??, numbers.next()??, numbers.next().flatten().unwrap_or(0)))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(major, minor, patch) = self;
        write!(f, "{major}.{minor}.{patch}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(headers: &[(&'static str, &'static str)]) -> Client {
        let pairs = headers.iter().map(|(name, value)| ((*name).parse().unwrap(), HeaderValue::from_static(value)));
        Client::of(&pairs.collect::<HeaderMap>())
    }

    #[test]
    fn clients_are_recognised_by_what_they_send() {
        let all = Version(0, 0, 0);
        let newest = CODEX.since;
        for (headers, name, version, row) in [
            (&[][..], "other", None, all),
            (&[("user-agent", "OpenAI/Python 1.0"), ("originator", "me")], "other", None, all),
            (&[("user-agent", "not-codex/0.166.0")], "other", None, all),
            (&[("user-agent", "Mozilla/5.0 codex/0.166.0")], "other", None, all),
            (&[("originator", "codex_cli_rs")], "codex", None, all),
            (
                &[("originator", "codex_exec"), ("user-agent", "codex_exec/0.166.0 (x)")],
                "codex",
                Some("0.166.0"),
                newest,
            ),
            (&[("user-agent", "codex_vscode/0.167.0-alpha.2 (Mac OS)")], "codex", Some("0.167.0"), newest),
            (&[("user-agent", "codex_cli_rs/1.2")], "codex", Some("1.2.0"), newest),
            (&[("user-agent", "codex_cli_rs/0.149.0 (x)")], "codex", Some("0.149.0"), all),
            (&[("user-agent", "codex_cli_rs/0.0.0")], "codex", Some("0.0.0"), all),
            (&[("user-agent", "codex_cli_rs/nightly")], "codex", None, all),
            (&[("user-agent", "codex_cli_rs/9999999999999.1.1")], "codex", Some("4294967295.1.1"), newest),
            (&[("user-agent", "codex_cli_rs/0.99999999999.1")], "codex", Some("0.4294967295.1"), newest),
            (
                &[("originator", "Codex Desktop"), ("user-agent", "Codex Desktop/0.170.0 (Mac OS 26.1; arm64)")],
                "codex",
                Some("0.170.0"),
                newest,
            ),
            (&[("user-agent", "CODEX/0.170 (x) y/1.2.3")], "codex", Some("0.170.0"), newest),
            (&[("originator", "codex")], "codex", None, all),
            (&[("user-agent", "codexperiment/0.1"), ("originator", "Codexer")], "other", None, all),
            (&[("user-agent", "code"), ("originator", "cod")], "other", None, all),
            (&[("x-codex-window-id", "t:0"), ("user-agent", "Editor/0.166.1 (x)")], "codex", Some("0.166.1"), newest),
        ] {
            let client = of(headers);
            let found = (client.name(), client.version().map(|version| version.to_string()), client.profile().since);
            assert_eq!(found, (name, version.map(str::to_owned), row), "{headers:?}");
            // What is kept of it is enough to find the row again.
            let again = Client::named(client.name(), found.1.as_deref());
            assert!(std::ptr::eq(again.profile(), client.profile()), "{headers:?}");
        }
    }

    /// A client is found whatever its version: the last of its rows is for all, and newer ones come before.
    #[test]
    fn the_rows_of_a_client_are_in_order() {
        for (at, profile) in KNOWN.iter().enumerate() {
            let next = KNOWN.get(at + 1).filter(|next| next.name == profile.name);
            match next {
                Some(next) => assert!(next.since < profile.since, "{}", profile.name),
                None => assert_eq!(profile.since, Version(0, 0, 0), "{}", profile.name),
            }
        }
    }
}
