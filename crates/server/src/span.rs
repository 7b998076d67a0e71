//! The place of a request in a trace that goes through several systems: W3C Trace Context. What a client sends is taken
//! only if it is whole and well-formed; what it says is passed on to providers under our own span, and to nobody else.

use aws_lc_rs::digest::{SHA256, digest};
use http::{HeaderMap, HeaderValue};

use crate::clock;

pub(crate) const TRACEPARENT: &str = "traceparent";
pub(crate) const TRACESTATE: &str = "tracestate";

/// Longer ones are not passed on: any proxy may cut them.
const LONGEST_STATE: usize = 512;

/// So many entries one may have.
const MOST_ENTRIES: usize = 32;

pub(crate) type TraceId = [u8; 16];
pub(crate) type SpanId = [u8; 8];

/// One request as a part of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) trace: TraceId,
    /// Ours.
    pub(crate) id: SpanId,
    /// Whose request led to this one.
    pub(crate) parent: Option<SpanId>,
    /// Whether whoever began the trace wants it to be kept.
    pub(crate) sampled: bool,
    /// What other systems say of it, for those that come after.
    pub(crate) state: Option<HeaderValue>,
}

/// What a provider is sent of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Propagated {
    pub(crate) parent: HeaderValue,
    pub(crate) state: Option<HeaderValue>,
}

impl Span {
    /// The client's trace, if it names one.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(TRACEPARENT).iter();
        let (value, None) = (values.next()?, values.next()) else { return None };
        let (trace, parent, sampled) = parse(value.as_bytes())?;
        Some(Self { trace, id: new_id(), parent: Some(parent), sampled, state: state(headers) })
    }

    /// The beginning of a trace.
    pub(crate) fn root(sampled: bool) -> Self {
        let (one, other) = (clock::random().max(1).to_be_bytes(), clock::random().to_be_bytes());
        let mut trace = [0; 16];
        trace[..8].copy_from_slice(&one);
        trace[8..].copy_from_slice(&other);
        Self { trace, id: new_id(), parent: None, sampled, state: None }
    }

    /// What this has begun and does not wait for.
    pub(crate) fn child(&self) -> Self {
        Self { id: new_id(), parent: Some(self.id), ..self.clone() }
    }

    /// The span of the try of this number: whoever knows ours knows it.
    pub(crate) fn attempt(&self, number: u32) -> SpanId {
        self.derived(b"attempt", number)
    }

    /// The span of a hosted tool's call of this number.
    pub(crate) fn tool(&self, number: u32) -> SpanId {
        self.derived(b"tool", number)
    }

    fn derived(&self, kind: &[u8], number: u32) -> SpanId {
        let seed = [&self.trace[..], &self.id, kind, &number.to_be_bytes()].concat();
        let mut id: SpanId = digest(&SHA256, &seed).as_ref().first_chunk().copied().unwrap_or_default();
        // All zeros is none.
        id[7] |= u8::from(id == SpanId::default());
        id
    }

    pub(crate) fn propagated(&self, number: u32) -> Propagated {
        let flags = u8::from(self.sampled);
        let text = format!("00-{}-{}-{flags:02x}", hex(&self.trace), hex(&self.attempt(number)));
        let parent = HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""));
        Propagated { parent, state: self.state.clone() }
    }

    /// As people and other systems write it.
    pub(crate) fn trace_id(&self) -> String {
        hex(&self.trace)
    }
}

fn new_id() -> SpanId {
    clock::random().max(1).to_be_bytes()
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// The trace, the parent, and whether it is kept. Versions to come may say more after what this one says.
fn parse(text: &[u8]) -> Option<(TraceId, SpanId, bool)> {
    let (known, more) = text.split_at_checked(55)?;
    let mut parts = known.split(|byte| *byte == b'-');
    let [version] = unhex::<1>(parts.next()?)?;
    let (trace, parent) = (unhex(parts.next()?)?, unhex(parts.next()?)?);
    let [flags] = unhex::<1>(parts.next()?)?;
    let is_whole = match version {
        0 => more.is_empty(),
        0xff => false,
        _ => more.is_empty() || more[0] == b'-',
    };
    let is_good = is_whole && parts.next().is_none() && trace != TraceId::default() && parent != SpanId::default();
    is_good.then_some((trace, parent, flags & 1 == 1))
}

/// Lower-case digits only, as the standard has it.
fn unhex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

/// All `tracestate` headers as one, if that is one.
fn state(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut all = String::new();
    for value in headers.get_all(TRACESTATE) {
        let text = value.to_str().ok()?;
        if !all.is_empty() {
            all.push(',');
        }
        all.push_str(text);
        if all.len() > LONGEST_STATE {
            return None;
        }
    }
    let entries = all.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let (mut known, mut count) = (Vec::new(), 0);
    for entry in entries {
        let (key, value) = entry.split_once('=')?;
        let named = !key.is_empty()
            && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/@".contains(&byte));
        let said = !value.is_empty() && value.bytes().all(|byte| (0x20..0x7f).contains(&byte) && byte != b'=');
        count += 1;
        if !named || !said || known.contains(&key) || count > MOST_ENTRIES {
            return None;
        }
        known.push(key);
    }
    (count > 0).then(|| HeaderValue::try_from(all).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(parent: &str, states: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(TRACEPARENT, HeaderValue::try_from(parent).unwrap());
        for state in states {
            headers.append(TRACESTATE, HeaderValue::try_from(*state).unwrap());
        }
        headers
    }

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn only_what_is_whole_is_a_parent() {
        for (parent, good) in [
            (GOOD, true),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", true),
            ("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-comes", true),
            ("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", true),
            ("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.", false),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more", false),
            ("ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", false),
            ("00-00000000000000000000000000000000-00f067aa0ba902b7-01", false),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", false),
            ("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", false),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7", false),
            ("00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b71-01", false),
            ("00 4bf92f3577b34da6a3ce929d0e0e4736 00f067aa0ba902b7 01", false),
            ("", false),
            ("00-----------------------------------------------------", false),
        ] {
            assert_eq!(Span::of(&headers(parent, &[])).is_some(), good, "{parent}");
        }
        let mut twice = headers(GOOD, &[]);
        twice.append(TRACEPARENT, HeaderValue::from_static(GOOD));
        assert_eq!(Span::of(&twice), None);
    }

    #[test]
    fn what_goes_on_is_the_same_trace_and_another_span() {
        let span = Span::of(&headers(GOOD, &["a=1,b@c=x y", "d=2"])).unwrap();
        assert_eq!(span.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(hex(&span.parent.unwrap()), "00f067aa0ba902b7");
        assert!(span.sampled && span.id != span.parent.unwrap());
        let (first, again, second) = (span.propagated(0), span.propagated(0), span.propagated(1));
        assert!(first == again && first.parent != second.parent);
        let text = first.parent.to_str().unwrap();
        assert!(text.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-") && text.ends_with("-01"), "{text}");
        assert_eq!(parse(text.as_bytes()).unwrap().1, span.attempt(0));
        assert_eq!(first.state.unwrap(), "a=1,b@c=x y,d=2");
        assert_eq!(span.child().parent, Some(span.id));
        assert_ne!(Span::root(true).trace, Span::root(true).trace);
    }

    #[test]
    fn a_state_that_is_none_is_left_out() {
        let long = format!("a={}", "x".repeat(600));
        for state in ["a", "=1", "A=1", "a=1,a=2", "a=", "a=b=c", &long, "", ","] {
            assert_eq!(Span::of(&headers(GOOD, &[state])).unwrap().state, None, "{state}");
        }
        let many: Vec<String> = (0..33).map(|number| format!("k{number}=1")).collect();
        assert_eq!(Span::of(&headers(GOOD, &[&many.join(",")])).unwrap().state, None);
        assert!(Span::of(&headers(GOOD, &[&many[..32].join(",")])).unwrap().state.is_some());
    }
}
