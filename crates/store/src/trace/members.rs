//! The document of a trace, as it is stored: members in their order, each with a number instead of a name, and after it a value
//! of that member's kind. It is made for every request and read now and then, so it is cheap to make, and becomes JSON when
//! somebody reads it. What an earlier version wrote is JSON, and stays as it is.

use std::time::Duration;

use bytes::Bytes;
use wire::json::{ObjectWriter, write_text};

use super::TraceRow;
use super::coding::{Taker, put, put_bytes};
use super::plain_turn::{self, PlainTurn};

/// What such a document begins with; JSON does not.
const FORM: u8 = 1;
/// After the last member of an object.
const END: u8 = 0;
/// Objects within objects, at most: what is deeper is damage.
const DEEPEST: usize = 8;
/// What a [`PlainTurn`] begins with, and what it began with in an earlier version; the members have the numbers from 1 on.
const PLAIN_TURN: u8 = 254;
const EARLIER_PLAIN_TURN: u8 = 255;

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

impl Millis {
    pub(super) fn name(self) -> Option<&'static str> {
        member(self.0).map(|(name, _)| name)
    }
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
        put(&mut self.0, micros(value));
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

    /// What nearly all turns are: after it come only members that it does not stand for.
    pub fn plain_turn(&mut self, turn: &PlainTurn<'_>) -> &mut Self {
        self.0.push(PLAIN_TURN);
        turn.put(&mut self.0);
        self
    }

    /// As it is stored.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// A stored document as JSON, of the trace with this row; None if it is damaged.
pub(super) fn json(stored: Bytes, row: &TraceRow<'_>) -> Option<Bytes> {
    if stored.first() != Some(&FORM) {
        return Some(stored);
    }
    let (mut taker, mut out) = (Taker(stored.get(1..)?), Vec::with_capacity(1024));
    let mut object = ObjectWriter::new(&mut out);
    while !taker.is_empty() {
        match taker.byte()? {
            PLAIN_TURN => plain_turn::read(&mut taker, row, &mut object)?,
            EARLIER_PLAIN_TURN => plain_turn::read_earlier(&mut taker, &mut object)?,
            number => read_member(number, &mut taker, &mut object, DEEPEST)?,
        }
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

fn read_member(number: u8, taker: &mut Taker<'_>, object: &mut ObjectWriter<'_>, depth: usize) -> Option<()> {
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

pub(super) fn micros(time: Duration) -> u64 {
    time.as_secs().saturating_mul(1_000_000).saturating_add(u64::from(time.subsec_micros()))
}

/// Milliseconds, to the microsecond.
pub(super) fn millis(out: &mut Vec<u8>, micros: u64) {
    let (whole, part) = (micros / 1000, micros % 1000);
    out.extend_from_slice(whole.to_string().as_bytes());
    if part > 0 {
        out.push(b'.');
        out.extend([part / 100, part / 10 % 10, part % 10].map(|digit| b'0' + u8::try_from(digit).unwrap_or(0)));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};

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
        document.object(member::TIMES, |_| ());
        document.int(member::CALLS, 0);
        document
    }

    #[test]
    fn a_document_becomes_json_in_its_order() {
        let expected = concat!(
            r#"{"request":{"path":"/v1/\"größe\"\n","stream":true,"store":false,"bytes":18446744073709551615},"#,
            r#""attempts":[{"took_ms":0.001},{"took_ms":1.050},{"took_ms":2000}],"#,
            r#""times":{},"tool_calls":0}"#
        );
        let read = |document: Vec<u8>| json(document.into(), &TraceRow::default()).unwrap();
        assert_eq!(str::from_utf8(&read(document().into_bytes())).unwrap(), expected);
        assert_eq!(read(TraceDocument::default().into_bytes()), "{}");
        // As earlier versions wrote it.
        assert_eq!(read(b"{\"a\":1}".to_vec()), "{\"a\":1}");
    }

    /// What the bench's upstream answered to one small request, as a version without [`PlainTurn`]'s flags stored it.
    const EARLIER: &[u8] =
        b"\x01\x01\x02\x04POST\x03\r/v1/responses\x05\x00\x06\x00\x07\x00\x08\x01\t\x00\n\x89\x01\x0b\xdb\n\x00\xff\x05bench\x04sync\x04chat\
        \x08accepted\tcompleted\xc9\x01\x95J\x94\x01x\x00\x00\xc8\x01\x00\x00\x00%&\x06'\x01(\x00)\xa6J*\xb7J+\xd6J\x00-.\x01/\x00\x00";

    fn turn() -> (TraceRow<'static>, PlainTurn<'static>) {
        let row = TraceRow {
            provider: Some("bench".into()),
            upstream_model: Some("sync".into()),
            first_token_micros: Some(9_527),
            input_tokens: Some(120),
            cached_tokens: Some(0),
            output_tokens: Some(200),
            reasoning_tokens: Some(0),
            ..TraceRow::default()
        };
        let micros = |micros: u64| Some(Duration::from_micros(micros));
        let turn = PlainTurn {
            websocket: false,
            stream: false,
            store: false,
            background: false,
            address: None,
            items: 1,
            tools: 0,
            bytes: 137,
            bytes_sent: 1_371,
            wire: "chat",
            status: Some(200),
            took: Duration::from_micros(9_493),
            upstream_bytes: 148,
            end: "completed",
            cache_write_tokens: 0,
            estimated: false,
            times: [micros(6), micros(1), micros(0), micros(9_510), micros(9_527), micros(9_558), None, None],
            heard: 1,
            told: 0,
        };
        (row, turn)
    }

    fn plain(turn: &PlainTurn<'_>) -> Vec<u8> {
        let mut document = TraceDocument::default();
        document.plain_turn(turn);
        document.into_bytes()
    }

    /// The members of an object, by their names: their order may be another.
    fn members(object: &Bytes) -> BTreeMap<String, Box<str>> {
        let object = Raw::parse(str::from_utf8(object).unwrap()).unwrap();
        object.fields().map(|(name, value)| (name.decode().into_owned(), value.as_str().into())).collect()
    }

    #[test]
    fn a_plain_turn_says_what_it_said_in_more_words() {
        let (row, turn) = turn();
        let stored = plain(&turn);
        assert!(stored.len() * 4 < EARLIER.len(), "{} bytes", stored.len());
        let found = json(stored.into(), &row).unwrap();
        assert_eq!(members(&found), members(&json(Bytes::from_static(EARLIER), &TraceRow::default()).unwrap()));

        let client = Some(Duration::from_millis(3));
        let mut times = turn.times;
        (times[6], times[7]) = (client, client);
        let turn = PlainTurn {
            websocket: true,
            stream: true,
            store: true,
            background: true,
            address: Some([10, 1, 2, 3].into()),
            wire: "smoke \"signs\"",
            status: Some(203),
            end: "incomplete",
            cache_write_tokens: 7,
            estimated: true,
            times,
            told: u64::MAX,
            ..turn
        };
        let row = TraceRow { nanodollars: Some(1_500), ..row };
        let usage =
            r#"{"input_tokens":120,"cached_tokens":0,"cache_write_tokens":7,"output_tokens":200,"reasoning_tokens":0}"#;
        let expected = [
            r#"{"request":{"method":"GET","path":"/v1/responses","address":"10.1.2.3","stream":true,"store":true,"#,
            r#""background":true,"items":1,"tools":0,"bytes":137,"bytes_sent":1371},"#,
            r#""attempts":[{"target":"bench/sync","wire":"smoke \"signs\"","outcome":"accepted","status":203,"took_ms":9.493,"#,
            r#""bytes":148}],"rounds":[{"attempt":1,"end":"incomplete","usage":"#,
            usage,
            r#"}],"usage":"#,
            usage,
            r#","charges":[{"provider":"bench","model":"sync","usage":"#,
            usage,
            r#","estimated":true,"cost_usd":"0.0000015"}],"times":{"opened_ms":0.006,"planning_ms":0.001,"connecting_ms":0,"#,
            r#""first_byte_ms":9.510,"first_token_ms":9.527,"last_byte_ms":9.558,"committing_ms":3,"client_ms":3},"#,
            r#""events":{"upstream":1,"sent":18446744073709551615}}"#,
        ];
        let found = json(plain(&turn).into(), &row).unwrap();
        assert_eq!(str::from_utf8(&found).unwrap(), expected.concat());
        let six = PlainTurn { address: Some([0xfe80, 0, 0, 0, 0, 0, 0, 1].into()), status: None, ..turn };
        let found = json(plain(&six).into(), &row).unwrap();
        assert!(members(&found)["request"].contains(r#""address":"fe80::1""#));
        // Its row is damaged.
        assert_eq!(json(plain(&turn).into(), &TraceRow { provider: None, ..row }), None);
    }

    fn is_json(bytes: &[u8]) -> bool {
        str::from_utf8(bytes).is_ok_and(|text| Raw::parse(text).is_ok())
    }

    #[test]
    fn damage_is_seen_and_never_more_than_that() {
        let (row, turn) = turn();
        let address = Some([0; 16].into());
        let turn = PlainTurn { address, wire: "other", status: Some(1), ..turn };
        for whole in [document().into_bytes(), EARLIER.to_vec(), plain(&turn)] {
            for cut in 2..whole.len() {
                if let Some(found) = json(Bytes::copy_from_slice(&whole[..cut]), &row) {
                    assert!(is_json(&found), "cut at {cut}");
                }
            }
            for at in 1..whole.len() {
                for byte in 0..=255 {
                    let mut damaged = whole.clone();
                    damaged[at] = byte;
                    if let Some(found) = json(damaged.into(), &row) {
                        assert!(is_json(&found), "{byte} at {at}");
                    }
                }
            }
        }
        // Deeper than any document, and a list that says to be longer than anything.
        let deep = [vec![FORM], vec![1; 100_000]].concat();
        let long = [FORM, 12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1].to_vec();
        assert_eq!([deep, long].map(|damaged| json(damaged.into(), &row)), [None, None]);
    }

    #[test]
    fn every_number_is_used_once() {
        let distinct: HashSet<_> = NUMBERS.iter().collect();
        assert_eq!((distinct.len(), [END, PLAIN_TURN, EARLIER_PLAIN_TURN].map(member)), (NUMBERS.len(), [None; 3]));
    }
}
