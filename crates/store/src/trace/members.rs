//! The document of a trace, as it is stored: members in their order, each with a number instead of a name, and after it a value
//! of that member's kind. It is made for every request and read now and then, so it is cheap to make, and becomes JSON when
//! somebody reads it. What an earlier version wrote is JSON, and stays as it is.

use std::time::Duration;

use bytes::Bytes;
use wire::json::{ObjectWriter, write_text};
use wire::responses::Usage;

use super::coding::{Taker, put, put_bytes, put_maybe};
use crate::usage::dollars;

/// What such a document begins with; JSON does not.
const FORM: u8 = 1;
/// After the last member of an object.
const END: u8 = 0;
/// Objects within objects, at most: what is deeper is damage.
const DEEPEST: usize = 8;
/// What a [`PlainTurn`] begins with; the members have the numbers from 1 on.
const PLAIN_TURN: u8 = 255;

/// What a member's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Object,
    Objects,
    Int,
    Millis,
    Flag,
    Text,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident),+) => {
        $($(#[$doc])* #[derive(Debug, Clone, Copy, PartialEq, Eq)] pub struct $kind(u8);)+
    };
}

kinds! {
    /// A member that is an object.
    Object,
    /// One that is a list of objects.
    Objects,
    /// One that is a number.
    Int,
    /// One that is a time: stored in microseconds, and in JSON in milliseconds.
    Millis,
    /// One that is true or false.
    Flag,
    /// One that is a text.
    Text
}

macro_rules! members {
    ($($number:literal $constant:ident $kind:ident $name:literal)+) => {
        /// The members that documents have.
        pub mod member {
            $(pub const $constant: super::$kind = super::$kind($number);)+
        }

        fn member(number: u8) -> Option<(&'static str, Kind)> {
            match number {
                $($number => Some(($name, Kind::$kind)),)+
                _ => None,
            }
        }

        #[cfg(test)]
        const NUMBERS: &[u8] = &[$($number),+];
    };
}

// The numbers are stored: one is never used for anything else.
members! {
    1 REQUEST Object "request"
    2 METHOD Text "method"
    3 PATH Text "path"
    4 ADDRESS Text "address"
    5 STREAM Flag "stream"
    6 STORE Flag "store"
    7 BACKGROUND Flag "background"
    8 ITEMS Int "items"
    9 TOOLS Int "tools"
    10 BYTES Int "bytes"
    11 BYTES_SENT Int "bytes_sent"
    12 ATTEMPTS Objects "attempts"
    13 TARGET Text "target"
    14 REPLICA Text "replica"
    15 WIRE Text "wire"
    16 OUTCOME Text "outcome"
    17 STATUS Int "status"
    18 TOOK Millis "took_ms"
    19 ROUNDS Objects "rounds"
    20 ATTEMPT Int "attempt"
    21 ROUND_END Text "end"
    22 USAGE Object "usage"
    23 OWN_USAGE Object "own_usage"
    24 INPUT_TOKENS Int "input_tokens"
    25 CACHED_TOKENS Int "cached_tokens"
    26 CACHE_WRITE_TOKENS Int "cache_write_tokens"
    27 OUTPUT_TOKENS Int "output_tokens"
    28 REASONING_TOKENS Int "reasoning_tokens"
    29 TOOL_CALLS Objects "tool_calls"
    30 NAME Text "name"
    31 KIND Text "kind"
    32 NOTES Objects "notes"
    33 CODE Text "code"
    34 SEVERITY Text "severity"
    35 ACTION Text "action"
    36 DETAIL Text "detail"
    37 TIMES Object "times"
    38 OPENED Millis "opened_ms"
    39 PLANNING Millis "planning_ms"
    40 CONNECTING Millis "connecting_ms"
    41 FIRST_BYTE Millis "first_byte_ms"
    42 FIRST_TOKEN Millis "first_token_ms"
    43 LAST_BYTE Millis "last_byte_ms"
    44 COMMITTING Millis "committing_ms"
    45 EVENTS Object "events"
    46 UPSTREAM Int "upstream"
    47 SENT Int "sent"
    48 CHARGES Objects "charges"
    49 PROVIDER Text "provider"
    50 MODEL Text "model"
    51 CALLS Int "tool_calls"
    52 ESTIMATED Flag "estimated"
    53 COST Text "cost_usd"
    54 PREFIX Object "prefix"
    55 SHARED Int "shared"
    56 ERROR Object "error"
    57 DEADLINE Text "deadline"
    58 CLIENT Millis "client_ms"
}

/// A response that is one whole answer of the first target that was asked, as nearly all are: `attempts`, `rounds`, `usage` and
/// `charges` say the same several times over. It is stored once, and is all of these members in JSON.
#[derive(Debug, Clone, Copy)]
pub struct PlainTurn<'a> {
    pub provider: &'a str,
    pub model: &'a str,
    pub wire: &'a str,
    pub outcome: &'a str,
    pub status: Option<u16>,
    pub took: Duration,
    pub bytes: u64,
    /// How the answer ended.
    pub end: &'a str,
    pub usage: Usage,
    /// The provider did not say what it was.
    pub estimated: bool,
    pub nanodollars: Option<u64>,
}

/// A document that is being made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceDocument(Vec<u8>);

impl Default for TraceDocument {
    fn default() -> Self {
        Self::after(Vec::new())
    }
}

impl TraceDocument {
    /// One that is written behind these bytes.
    pub(super) fn after(mut bytes: Vec<u8>) -> Self {
        bytes.push(FORM);
        Self(bytes)
    }

    pub fn object(&mut self, member: Object, write: impl FnOnce(&mut Self)) -> &mut Self {
        self.0.push(member.0);
        write(self);
        self.0.push(END);
        self
    }

    /// None where there is nothing to list.
    pub fn objects<T>(&mut self, member: Objects, of: &[T], write: impl Fn(&T, &mut Self)) -> &mut Self {
        if !of.is_empty() {
            self.0.push(member.0);
            put(&mut self.0, of.len() as u64);
            for one in of {
                write(one, self);
                self.0.push(END);
            }
        }
        self
    }

    #[inline]
    pub fn int(&mut self, member: Int, value: u64) -> &mut Self {
        self.0.push(member.0);
        put(&mut self.0, value);
        self
    }

    #[inline]
    pub fn time(&mut self, member: Millis, value: Duration) -> &mut Self {
        self.0.push(member.0);
        put(&mut self.0, u64::try_from(value.as_micros()).unwrap_or(u64::MAX));
        self
    }

    #[inline]
    pub fn flag(&mut self, member: Flag, value: bool) -> &mut Self {
        self.0.extend_from_slice(&[member.0, u8::from(value)]);
        self
    }

    #[inline]
    pub fn text(&mut self, member: Text, value: &str) -> &mut Self {
        self.0.push(member.0);
        put_bytes(&mut self.0, value.as_bytes());
        self
    }

    pub fn plain_turn(&mut self, turn: &PlainTurn<'_>) -> &mut Self {
        let PlainTurn { provider, model, wire, outcome, status, took, bytes, end, usage, estimated, nanodollars } =
            turn;
        self.0.push(PLAIN_TURN);
        for text in [provider, model, wire, outcome, end] {
            put_bytes(&mut self.0, text.as_bytes());
        }
        put_maybe(&mut self.0, status.map(u64::from));
        put(&mut self.0, u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        put(&mut self.0, *bytes);
        put(&mut self.0, usage.input_tokens);
        put(&mut self.0, usage.cached_tokens);
        put(&mut self.0, usage.cache_write_tokens);
        put(&mut self.0, usage.output_tokens);
        put(&mut self.0, usage.reasoning_tokens);
        put(&mut self.0, u64::from(*estimated));
        put_maybe(&mut self.0, *nanodollars);
        self
    }

    /// As it is stored.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// A stored document as JSON; None if it is damaged.
pub(super) fn json(stored: Bytes) -> Option<Bytes> {
    if stored.first() != Some(&FORM) {
        return Some(stored);
    }
    let (mut taker, mut out) = (Taker(stored.get(1..)?), Vec::with_capacity(stored.len() * 4));
    let mut object = ObjectWriter::new(&mut out);
    while !taker.is_empty() {
        read_member(taker.byte()?, &mut taker, &mut object, DEEPEST)?;
    }
    object.end();
    Some(out.into())
}

/// The members of an object, up to its end.
fn read_object(taker: &mut Taker<'_>, out: &mut Vec<u8>, depth: usize) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    let mut object = ObjectWriter::new(out);
    loop {
        match taker.byte()? {
            END => break,
            number => read_member(number, taker, &mut object, depth)?,
        }
    }
    object.end();
    Some(())
}

/// The members that a plain turn stands for.
fn read_plain_turn(taker: &mut Taker<'_>, object: &mut ObjectWriter<'_>) -> Option<()> {
    let (provider, model) = (taker.text()?, taker.text()?);
    let (wire, outcome, end) = (taker.text()?, taker.text()?, taker.text()?);
    let (status, took, bytes) = (taker.maybe()?, taker.number()?, taker.number()?);
    let usage = Usage {
        input_tokens: taker.number()?,
        cached_tokens: taker.number()?,
        cache_write_tokens: taker.number()?,
        output_tokens: taker.number()?,
        reasoning_tokens: taker.number()?,
        total_tokens: 0,
    };
    let (estimated, nanodollars) = (taker.number()? != 0, taker.maybe()?);
    only(object.key("attempts"), |attempt| {
        attempt.text("target", &format!("{provider}/{model}")).text("wire", wire).text("outcome", outcome);
        if let Some(status) = status {
            attempt.int("status", status);
        }
        millis(attempt.key("took_ms"), took);
        attempt.int("bytes", bytes);
    });
    only(object.key("rounds"), |round| {
        round.int("attempt", 1_u64).text("end", end);
        write_usage(round.key("usage"), usage);
    });
    write_usage(object.key("usage"), usage);
    only(object.key("charges"), |charge| {
        charge.text("provider", provider).text("model", model);
        write_usage(charge.key("usage"), usage);
        if estimated {
            charge.bool("estimated", true);
        }
        if let Some(nanodollars) = nanodollars {
            charge.text("cost_usd", &dollars(nanodollars));
        }
    });
    Some(())
}

/// A list of one object.
fn only(out: &mut Vec<u8>, write: impl FnOnce(&mut ObjectWriter<'_>)) {
    out.push(b'[');
    let mut object = ObjectWriter::new(out);
    write(&mut object);
    object.end();
    out.push(b']');
}

fn write_usage(out: &mut Vec<u8>, usage: Usage) {
    let mut object = ObjectWriter::new(out);
    object.int("input_tokens", usage.input_tokens).int("cached_tokens", usage.cached_tokens);
    if usage.cache_write_tokens > 0 {
        object.int("cache_write_tokens", usage.cache_write_tokens);
    }
    object.int("output_tokens", usage.output_tokens).int("reasoning_tokens", usage.reasoning_tokens);
    object.end();
}

fn read_member(number: u8, taker: &mut Taker<'_>, object: &mut ObjectWriter<'_>, depth: usize) -> Option<()> {
    if number == PLAIN_TURN {
        return read_plain_turn(taker, object);
    }
    let (name, kind) = member(number)?;
    match kind {
        Kind::Object => read_object(taker, object.key(name), depth)?,
        Kind::Objects => {
            let (count, out) = (taker.number()?, object.key(name));
            out.push(b'[');
            for at in 0..count {
                if at > 0 {
                    out.push(b',');
                }
                read_object(taker, out, depth)?;
            }
            out.push(b']');
        }
        Kind::Int => {
            object.int(name, taker.number()?);
        }
        Kind::Millis => millis(object.key(name), taker.number()?),
        Kind::Flag => {
            object.bool(name, taker.byte()? != 0);
        }
        Kind::Text => write_text(object.key(name), taker.text()?),
    }
    Some(())
}

/// Milliseconds, to the microsecond.
fn millis(out: &mut Vec<u8>, micros: u64) {
    let (whole, part) = (micros / 1000, micros % 1000);
    out.extend_from_slice(whole.to_string().as_bytes());
    if part > 0 {
        out.push(b'.');
        out.extend([part / 100, part / 10 % 10, part % 10].map(|digit| b'0' + u8::try_from(digit).unwrap_or(0)));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use wire::json::Raw;

    use super::*;

    fn document() -> TraceDocument {
        let mut document = TraceDocument::default();
        document.object(member::REQUEST, |request| {
            request.text(member::PATH, "/v1/\"größe\"\n").flag(member::STREAM, true).flag(member::STORE, false);
            request.int(member::BYTES, u64::MAX);
        });
        document.objects(member::ATTEMPTS, &[1_u64, 1_050, 2_000_000], |micros, attempt| {
            attempt.time(member::TOOK, Duration::from_micros(*micros));
        });
        document.objects(member::NOTES, &[(); 0], |(), _| ());
        document.plain_turn(&PlainTurn {
            provider: "p",
            model: "m/\"1\"",
            wire: "chat",
            outcome: "accepted",
            status: Some(200),
            took: Duration::from_millis(7),
            bytes: 300,
            end: "completed",
            usage: Usage { input_tokens: 5, output_tokens: 200, ..Usage::default() },
            estimated: false,
            nanodollars: Some(1_500),
        });
        document.object(member::TIMES, |_| ());
        document.int(member::CALLS, 0);
        document
    }

    #[test]
    fn a_document_becomes_json_in_its_order() {
        let expected = concat!(
            r#"{"request":{"path":"/v1/\"größe\"\n","stream":true,"store":false,"bytes":18446744073709551615},"#,
            r#""attempts":[{"took_ms":0.001},{"took_ms":1.050},{"took_ms":2000}],"#,
            r#""attempts":[{"target":"p/m/\"1\"","wire":"chat","outcome":"accepted","status":200,"took_ms":7,"bytes":300}],"#,
            r#""rounds":[{"attempt":1,"end":"completed","usage":{"input_tokens":5,"cached_tokens":0,"output_tokens":200,"#,
            r#""reasoning_tokens":0}}],"usage":{"input_tokens":5,"cached_tokens":0,"output_tokens":200,"reasoning_tokens":0},"#,
            r#""charges":[{"provider":"p","model":"m/\"1\"","usage":{"input_tokens":5,"cached_tokens":0,"output_tokens":200,"#,
            r#""reasoning_tokens":0},"cost_usd":"0.0000015"}],"times":{},"tool_calls":0}"#
        );
        let found = json(document().into_bytes().into()).unwrap();
        assert_eq!(str::from_utf8(&found).unwrap(), expected);
        assert_eq!(json(TraceDocument::default().into_bytes().into()).unwrap(), "{}");
        // As earlier versions wrote it.
        assert_eq!(json(Bytes::from_static(b"{\"a\":1}")).unwrap(), "{\"a\":1}");
    }

    fn is_json(bytes: &[u8]) -> bool {
        str::from_utf8(bytes).is_ok_and(|text| Raw::parse(text).is_ok())
    }

    #[test]
    fn damage_is_seen_and_never_more_than_that() {
        let whole = document().into_bytes();
        for cut in 2..whole.len() {
            if let Some(found) = json(Bytes::copy_from_slice(&whole[..cut])) {
                assert!(is_json(&found), "cut at {cut}");
            }
        }
        for at in 1..whole.len() {
            for byte in 0..=255 {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                if let Some(found) = json(damaged.into()) {
                    assert!(is_json(&found), "{byte} at {at}");
                }
            }
        }
        // Deeper than any document, and a list that says to be longer than anything.
        let deep = [vec![FORM], vec![1; 100_000]].concat();
        let long = [FORM, 12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!((json(deep.into()), json(Bytes::copy_from_slice(&long))), (None, None));
    }

    #[test]
    fn every_number_is_used_once() {
        let distinct: HashSet<_> = NUMBERS.iter().collect();
        assert_eq!((distinct.len(), member(END).or(member(PLAIN_TURN))), (NUMBERS.len(), None));
    }
}
