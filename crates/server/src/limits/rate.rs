//! What clients are told of their limits: OpenAI's headers, and OpenAI's words where a limit is reached.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::access::Grant;
use crate::error::{ApiError, Code};

static NAMES: [[HeaderName; 3]; 2] = [
    [
        HeaderName::from_static("x-ratelimit-limit-requests"),
        HeaderName::from_static("x-ratelimit-remaining-requests"),
        HeaderName::from_static("x-ratelimit-reset-requests"),
    ],
    [
        HeaderName::from_static("x-ratelimit-limit-tokens"),
        HeaderName::from_static("x-ratelimit-remaining-tokens"),
        HeaderName::from_static("x-ratelimit-reset-tokens"),
    ],
];

/// What is left of what may be used per minute; where several limits count, of the one of which the least is left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Rates {
    pub(super) requests: Option<Rate>,
    pub(super) tokens: Option<Rate>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rate {
    pub(super) limit: u64,
    pub(super) remaining: u64,
    /// Until nothing that was used counts any more.
    pub(super) reset: Duration,
}

impl Rates {
    pub(super) fn add(&mut self, which: Which, rate: Rate) {
        let known = match which {
            Which::Requests => &mut self.requests,
            Which::Tokens => &mut self.tokens,
            Which::Places => return,
        };
        if known.is_none_or(|known| rate.remaining < known.remaining) {
            *known = Some(rate);
        }
    }

    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        for (names, rate) in NAMES.iter().zip([self.requests, self.tokens]) {
            let Some(rate) = rate else { continue };
            // They are on every answer of a limited key: room for both at once.
            headers.reserve(NAMES.as_flattened().len());
            let [limit, remaining, reset] = names;
            headers.insert(limit, rate.limit.into());
            headers.insert(remaining, rate.remaining.into());
            if let Ok(value) = HeaderValue::from_maybe_shared(Bytes::from(short(rate.reset))) {
                headers.insert(reset, value);
            }
        }
    }
}

/// Which limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    Requests,
    Tokens,
    /// Turns at once.
    Places,
}

/// Whose limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    Key,
    Tenant,
}

impl Whose {
    fn name(self, grant: &Grant) -> String {
        match self {
            Self::Key => format!("key '{}'", grant.name),
            Self::Tenant => format!("tenant '{}'", grant.tenant.name()),
        }
    }
}

/// A limit that is reached.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reached {
    pub(super) whose: Whose,
    pub(super) which: Which,
    pub(super) limit: u64,
    pub(super) used: u64,
    pub(super) requested: u64,
    pub(super) wait: Duration,
}

impl Reached {
    pub(super) fn error(self, grant: &Grant) -> ApiError {
        let Self { whose, which, limit, used, requested, wait } = self;
        let (name, again) = (whose.name(grant), short(wait));
        let (code, what) = match which {
            Which::Requests => (Code::RequestsPerMinute, "requests per min (RPM)"),
            Which::Tokens => (Code::TokensPerMinute, "tokens per min (TPM)"),
            Which::Places => (Code::TurnsAtOnce, "concurrent requests"),
        };
        let message = format!(
            "Rate limit reached for {name} on {what}: Limit {limit}, Used {used}, Requested {requested}. Please try \
             again in {again}."
        );
        ApiError { retry_after: Some(whole_seconds(wait)), ..ApiError::new(code, message) }
    }
}

/// A request that no wait helps.
pub(super) fn too_large(whose: Whose, grant: &Grant, limit: u64, requested: u64) -> ApiError {
    let message = format!(
        "Request too large for {} on tokens per min (TPM): Limit {limit}, Requested {requested}. The input or output \
         tokens must be reduced in order to run successfully.",
        whose.name(grant)
    );
    ApiError::new(Code::RequestBeyondLimit, message)
}

/// At least one.
fn whole_seconds(wait: Duration) -> u32 {
    u32::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u32::MAX).max(1)
}

/// As OpenAI writes durations: `6ms`, `1.5s`, `6m0s`.
fn short(duration: Duration) -> String {
    let mut out = String::with_capacity(16);
    write_short(&mut out, duration);
    out
}

fn write_short(out: &mut String, duration: Duration) {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let (minutes, rest) = (millis / 60_000, millis % 60_000);
    if minutes == 0 && (1..1000).contains(&rest) {
        number(out, rest);
        return out.push_str("ms");
    }
    if minutes > 0 {
        number(out, minutes);
        out.push('m');
    }
    number(out, rest / 1000);
    let mut part = rest % 1000;
    if part > 0 {
        out.push('.');
    }
    while part > 0 {
        out.push(digit(part / 100));
        part = part % 100 * 10;
    }
    out.push('s');
}

fn number(out: &mut String, number: u64) {
    out.push_str(itoa::Buffer::new().format(number));
}

fn digit(digit: u64) -> char {
    u32::try_from(digit).ok().and_then(|digit| char::from_digit(digit, 10)).unwrap_or('0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_elsewhere() {
        for (millis, text, seconds) in [
            (0, "0s", 1),
            (6, "6ms", 1),
            (644, "644ms", 1),
            (1_000, "1s", 1),
            (1_001, "1.001s", 2),
            (18_642, "18.642s", 19),
            (59_500, "59.5s", 60),
            (60_000, "1m0s", 60),
            (360_000, "6m0s", 360),
            (61_250, "1m1.25s", 62),
        ] {
            let duration = Duration::from_millis(millis);
            assert_eq!((short(duration).as_str(), whole_seconds(duration)), (text, seconds));
        }
    }

    #[test]
    fn the_least_that_is_left_is_said() {
        let mut rates = Rates::default();
        let rate = |limit, remaining| Rate { limit, remaining, reset: Duration::from_millis(1500) };
        rates.add(Which::Requests, rate(100, 40));
        rates.add(Which::Requests, rate(1000, 7));
        rates.add(Which::Requests, rate(10, 9));
        let mut headers = HeaderMap::new();
        rates.write(&mut headers);
        let mut found: Vec<_> =
            headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap_or_default())).collect();
        found.sort_unstable();
        let expected = [
            ("x-ratelimit-limit-requests", "1000"),
            ("x-ratelimit-remaining-requests", "7"),
            ("x-ratelimit-reset-requests", "1.5s"),
        ];
        assert_eq!(found, expected);
    }
}
