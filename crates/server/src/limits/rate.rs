//! What clients are told of their limits: OpenAI's headers, and OpenAI's words where a limit is reached.

use std::sync::LazyLock;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::access::Grant;
use crate::error::{ApiError, Code};

/// Of requests, and of tokens: the limit, what is left of it, and when all of it is there again.
const NAMES: [[HeaderName; 3]; 2] = [
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

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// All of them in a map, in their order: a copy of it is made sooner than they are found their places in one. After them what
/// else nearly every answer has, since a copy has room for nothing more.
static BOTH: LazyLock<HeaderMap> = LazyLock::new(|| {
    let names = NAMES.into_iter().flatten().chain([CONTENT_TYPE, REQUEST_ID]);
    names.map(|name| (name, HeaderValue::from_static("0"))).collect()
});

/// What is said of so many seconds. Nothing that was used counts for longer.
static SECONDS: LazyLock<[HeaderValue; 62]> =
    LazyLock::new(|| std::array::from_fn(|seconds| value(&short(Duration::from_secs(seconds as u64)))));

fn value(text: &str) -> HeaderValue {
    // Of digits and letters.
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static("0"))
}

/// What is left of what may be used per minute; where several limits count, of the one of which the least is left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rates {
    pub(super) requests: Option<Rate>,
    pub(super) tokens: Option<Rate>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rate {
    pub(super) limit: Limit,
    pub(super) remaining: u64,
    /// Until nothing that was used counts any more, in whole seconds.
    pub(super) reset: u64,
}

/// How much may be used, as every answer says it: written once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Limit {
    pub(super) number: u64,
    text: HeaderValue,
}

impl Limit {
    pub(super) fn new(number: u64) -> Self {
        Self { number, text: value(itoa::Buffer::new().format(number)) }
    }
}

impl Rates {
    pub(super) fn add(&mut self, which: Which, rate: Rate) {
        let known = match which {
            Which::Requests => &mut self.requests,
            Which::Tokens => &mut self.tokens,
            Which::Places => return,
        };
        if known.as_ref().is_none_or(|known| rate.remaining < known.remaining) {
            *known = Some(rate);
        }
    }

    /// They are on every answer of a limited key, as the request's id is: what does not change is not written anew.
    pub(crate) fn write(&self, request_id: &HeaderValue, headers: &mut HeaderMap) {
        if let (Some(requests), Some(tokens)) = (&self.requests, &self.tokens)
            && headers.contains_key(CONTENT_TYPE)
        {
            let mut others = std::mem::replace(headers, BOTH.clone());
            let mut values = headers.values_mut();
            for rate in [requests, tokens] {
                rate.values().into_iter().zip(values.by_ref()).for_each(|(new, value)| *value = new);
            }
            // An answer in one piece has nothing else.
            if others.len() == 1 {
                others.values_mut().zip(values.by_ref()).for_each(|(theirs, value)| std::mem::swap(theirs, value));
                values.zip([request_id.clone()]).for_each(|(value, id)| *value = id);
                return;
            }
            headers.extend(others);
            headers.insert(REQUEST_ID, request_id.clone());
            return;
        }
        headers.insert(REQUEST_ID, request_id.clone());
        for (names, rate) in NAMES.into_iter().zip([&self.requests, &self.tokens]) {
            let values = rate.as_ref().map(Rate::values);
            headers.extend(names.into_iter().zip(values.into_iter().flatten()));
        }
    }
}

impl Rate {
    fn values(&self) -> [HeaderValue; 3] {
        let seconds = usize::try_from(self.reset).unwrap_or(usize::MAX).min(SECONDS.len() - 1);
        let remaining = value(itoa::Buffer::new().format(self.remaining));
        [self.limit.text.clone(), remaining, SECONDS[seconds].clone()]
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

    /// Whatever else an answer has, and it stays.
    fn written(rates: &Rates) -> Vec<(String, String)> {
        let others = ["content-type", "x-godex-compat", "vary"].map(HeaderName::from_static);
        let mut all = (0..=others.len()).map(|count| {
            let others = &others[..count];
            let mut headers: HeaderMap =
                others.iter().map(|name| (name.clone(), HeaderValue::from_static("theirs"))).collect();
            rates.write(&HeaderValue::from_static("req_1"), &mut headers);
            assert_eq!(headers.remove(REQUEST_ID).unwrap(), "req_1");
            assert!(others.iter().all(|name| headers.remove(name).unwrap() == "theirs"), "{headers:?}");
            let text = |(name, value): (&HeaderName, &HeaderValue)| {
                (name.as_str()["x-ratelimit-".len()..].to_owned(), value.to_str().unwrap_or_default().to_owned())
            };
            let mut found: Vec<_> = headers.iter().map(text).collect();
            found.sort_unstable();
            found
        });
        let first = all.next().unwrap();
        all.for_each(|other| assert_eq!(other, first));
        first
    }

    #[test]
    fn the_least_that_is_left_is_said() {
        let rate = |limit, remaining| Rate { limit: Limit::new(limit), remaining, reset: 61 };
        let says = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(written(&Rates::default()), []);
        let mut rates = Rates::default();
        rates.add(Which::Tokens, Rate { limit: Limit::new(u64::MAX), remaining: 0, reset: 0 });
        let of_tokens =
            [says("limit-tokens", "18446744073709551615"), says("remaining-tokens", "0"), says("reset-tokens", "0s")];
        assert_eq!(written(&rates), of_tokens);
        rates.add(Which::Requests, rate(100, 40));
        rates.add(Which::Requests, rate(1000, 7));
        rates.add(Which::Requests, rate(10, 9));
        let [limit, remaining, reset] = of_tokens;
        let expected = [
            says("limit-requests", "1000"),
            limit,
            says("remaining-requests", "7"),
            remaining,
            says("reset-requests", "1m1s"),
            reset,
        ];
        assert_eq!(written(&rates), expected);
    }
}
