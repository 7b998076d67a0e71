//! What is stored of a turn that is one whole answer of whoever was asked first, as nearly all are: only what its row does
//! not say, without the names of members, and nothing twice.

use std::net::IpAddr;
use std::time::Duration;

use wire::json::ObjectWriter;
use wire::responses::Usage;

use super::TraceRow;
use super::coding::{LONGEST, Numbers, Taker, put_bytes};
use super::members::{Millis, member, micros, millis};
use crate::usage::dollars;

/// Of a turn at `/v1/responses`. Its provider and model, what was used, what it cost and when the first token came are in its
/// row.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "what a request says with true or false")]
pub struct PlainTurn<'a> {
    /// It came over a WebSocket, which is opened with a GET.
    pub websocket: bool,
    pub stream: bool,
    pub store: bool,
    pub background: bool,
    /// Of the client; None: it is on this machine.
    pub address: Option<IpAddr>,
    /// In the request.
    pub items: u64,
    pub tools: u64,
    /// Of the client's request, and of what it was sent.
    pub bytes: u64,
    pub bytes_sent: u64,
    pub wire: &'a str,
    /// Of the upstream's answer.
    pub status: Option<u16>,
    /// Until the upstream had accepted.
    pub took: Duration,
    /// Of the upstream's request.
    pub upstream_bytes: u64,
    /// How the answer ended.
    pub end: &'a str,
    pub cache_write_tokens: u64,
    /// The provider did not say what was used.
    pub estimated: bool,
    /// As [`TRACE_TIMES`] names them.
    pub times: [Option<Duration>; TRACE_TIMES.len()],
    /// Events of the upstream, and those that were made for the client.
    pub heard: u64,
    pub told: u64,
}

/// The times of a trace.
pub const TRACE_TIMES: [Millis; 8] = [
    member::OPENED,
    member::PLANNING,
    member::CONNECTING,
    member::FIRST_BYTE,
    member::FIRST_TOKEN,
    member::LAST_BYTE,
    member::COMMITTING,
    member::CLIENT,
];
/// That of them which is in the row.
const FIRST_TOKEN: usize = 4;

/// Words that have a number, from 1 on. The numbers are stored: others may only be added at the end.
const WORDS: [&str; 5] = ["chat", "responses", "messages", "completed", "incomplete"];

const WEBSOCKET: u8 = 1;
const STREAM: u8 = 1 << 1;
const STORE: u8 = 1 << 2;
const BACKGROUND: u8 = 1 << 3;
const ESTIMATED: u8 = 1 << 4;
const ELSEWHERE: u8 = 1 << 5;
const OK: u8 = 1 << 6;

impl PlainTurn<'_> {
    pub(super) fn put(&self, into: &mut Vec<u8>) {
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        let flags = flag(self.websocket, WEBSOCKET)
            | flag(self.stream, STREAM)
            | flag(self.store, STORE)
            | flag(self.background, BACKGROUND)
            | flag(self.estimated, ESTIMATED)
            | flag(self.address.is_some(), ELSEWHERE)
            | flag(self.status == Some(200), OK);
        let known = (0_u8..).zip(&self.times).fold(0, |all, (place, time)| all | u8::from(time.is_some()) << place);
        let (wire, end) = (number_of(self.wire), number_of(self.end));
        let mut numbers = Numbers::<{ (4 + 10 + TRACE_TIMES.len()) * LONGEST }>::new();
        for byte in [flags, known, wire, end] {
            numbers.byte(byte);
        }
        numbers.put(self.items);
        numbers.put(self.tools);
        numbers.put(self.bytes);
        numbers.put(self.bytes_sent);
        if self.status != Some(200) {
            numbers.maybe(self.status.map(u64::from));
        }
        numbers.put(micros(self.took));
        numbers.put(self.upstream_bytes);
        numbers.put(self.cache_write_tokens);
        numbers.put(self.heard);
        numbers.put(self.told);
        for (place, time) in self.times.iter().enumerate() {
            if let Some(time) = time.filter(|_| place != FIRST_TOKEN) {
                numbers.put(micros(time));
            }
        }
        into.extend_from_slice(numbers.bytes());
        match self.address {
            Some(IpAddr::V4(address)) => put_bytes(into, &address.octets()),
            Some(IpAddr::V6(address)) => put_bytes(into, &address.octets()),
            None => {}
        }
        for (_, word) in [(wire, self.wire), (end, self.end)].into_iter().filter(|(number, _)| *number == 0) {
            put_bytes(into, word.as_bytes());
        }
    }
}

/// 0: it has none, and comes after all numbers.
fn number_of(word: &str) -> u8 {
    WORDS.iter().zip(1..).find(|(known, _)| **known == word).map_or(0, |(_, number)| number)
}

fn word<'b>(number: u8, taker: &mut Taker<'b>) -> Option<&'b str> {
    match usize::from(number) {
        0 => taker.text(),
        number => WORDS.get(number - 1).copied(),
    }
}

fn address(taker: &mut Taker<'_>) -> Option<IpAddr> {
    let bytes = taker.bytes()?;
    let of_four = || <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from);
    let of_six = || <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from);
    of_four().or_else(of_six)
}

/// The answer of a plain turn.
struct Answer<'a> {
    provider: &'a str,
    model: &'a str,
    wire: &'a str,
    outcome: &'a str,
    end: &'a str,
    status: Option<u64>,
    took: u64,
    bytes: u64,
    usage: Usage,
    estimated: bool,
    nanodollars: Option<u64>,
}

/// The members that a plain turn stands for, which has this row.
pub(super) fn read(taker: &mut Taker<'_>, row: &TraceRow<'_>, object: &mut ObjectWriter<'_>) -> Option<()> {
    let (flags, known, wire, end) = (taker.byte()?, taker.byte()?, taker.byte()?, taker.byte()?);
    let is = |flag: u8| flags & flag != 0;
    let (mut sizes, mut times) = ([0; 4], [0; TRACE_TIMES.len()]);
    for size in &mut sizes {
        *size = taker.number()?;
    }
    let status = if is(OK) { Some(200) } else { taker.maybe()? };
    let (took, bytes, cache_write_tokens) = (taker.number()?, taker.number()?, taker.number()?);
    let (heard, told) = (taker.number()?, taker.number()?);
    let is_known = |place: usize| known >> place & 1 == 1;
    for (place, time) in times.iter_mut().enumerate().filter(|(place, _)| is_known(*place)) {
        let of_row = || row.first_token_micros.map(|micros| micros.max(0).cast_unsigned());
        *time = if place == FIRST_TOKEN { of_row()? } else { taker.number()? };
    }
    let mut request = ObjectWriter::new(object.key("request"));
    request.text("method", if is(WEBSOCKET) { "GET" } else { "POST" }).text("path", "/v1/responses");
    if is(ELSEWHERE) {
        request.text("address", &address(taker)?.to_string());
    }
    request.bool("stream", is(STREAM)).bool("store", is(STORE)).bool("background", is(BACKGROUND));
    for (name, size) in ["items", "tools", "bytes", "bytes_sent"].into_iter().zip(sizes) {
        request.int(name, size);
    }
    request.end();
    let (wire, end) = (word(wire, taker)?, word(end, taker)?);
    let usage = Usage {
        input_tokens: row.input_tokens?,
        cached_tokens: row.cached_tokens?,
        cache_write_tokens,
        output_tokens: row.output_tokens?,
        reasoning_tokens: row.reasoning_tokens?,
        total_tokens: 0,
    };
    let (provider, model) = (row.provider.as_deref()?, row.upstream_model.as_deref()?);
    let (estimated, nanodollars) = (is(ESTIMATED), row.nanodollars);
    let outcome = "accepted";
    Answer { provider, model, wire, outcome, end, status, took, bytes, usage, estimated, nanodollars }.write(object);
    let mut shown = ObjectWriter::new(object.key("times"));
    for (place, name) in TRACE_TIMES.iter().enumerate().filter(|(place, _)| is_known(*place)) {
        millis(shown.key(name.name()?), times[place]);
    }
    shown.end();
    let mut events = ObjectWriter::new(object.key("events"));
    events.int("upstream", heard).int("sent", told);
    events.end();
    Some(())
}

/// As an earlier version wrote it: with all that is in the row, and without what it has of the request, times and events.
pub(super) fn read_earlier(taker: &mut Taker<'_>, object: &mut ObjectWriter<'_>) -> Option<()> {
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
    Answer { provider, model, wire, outcome, end, status, took, bytes, usage, estimated, nanodollars }.write(object);
    Some(())
}

impl Answer<'_> {
    fn write(&self, object: &mut ObjectWriter<'_>) {
        let Self { provider, model, usage, .. } = *self;
        only(object.key("attempts"), |attempt| {
            attempt.text("target", &format!("{provider}/{model}")).text("wire", self.wire);
            attempt.text("outcome", self.outcome);
            if let Some(status) = self.status {
                attempt.int("status", status);
            }
            millis(attempt.key("took_ms"), self.took);
            attempt.int("bytes", self.bytes);
        });
        only(object.key("rounds"), |round| {
            round.int("attempt", 1_u64).text("end", self.end);
            write_usage(round.key("usage"), usage);
        });
        write_usage(object.key("usage"), usage);
        only(object.key("charges"), |charge| {
            charge.text("provider", provider).text("model", model);
            write_usage(charge.key("usage"), usage);
            if self.estimated {
                charge.bool("estimated", true);
            }
            if let Some(nanodollars) = self.nanodollars {
                charge.text("cost_usd", &dollars(nanodollars));
            }
        });
    }
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
