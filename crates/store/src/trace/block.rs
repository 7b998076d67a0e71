//! Rows of a few hundred traces as one piece of bytes, with a summary by which it is known what may be in it.
//!
//! What repeats (tenants, models, outcomes) is in the block once. A row begins with numbers, so that whoever sums up need
//! not read its ids. The form is stored: what was written by an earlier version is read by every later one.

use std::borrow::Cow;
use std::collections::HashMap;

use foldhash::quality::RandomState;

use super::coding::{Taker, fingerprint, has, length, put, put_bytes, put_maybe};
use super::parts::{Links, Parts, TEXTS, put_ids, put_numbers, put_texts};
use super::{TraceNumber, TraceRow, response_id};
use crate::Error;

/// Traces of one block; with more, a search would take more apart than it wants.
const MOST: i64 = 256;
/// A block with so many is not gone on with: it would be written anew for each few that come.
const ENOUGH: i64 = 64;
/// From its first to its last, in microseconds: what is too old goes in whole blocks.
const SPAN: i64 = 3_600_000_000;
/// Of a block with all that belongs to it, for the same reason.
const BYTES: i64 = 4 << 20;
/// Where little may be kept, it is kept in so many blocks at the least: else nearly all would go at once.
const FEWEST: u64 = 8;

/// How many bytes a block may have where all of them together may have so many.
pub(super) fn room_within(limit: u64) -> i64 {
    i64::try_from(limit / FEWEST).unwrap_or(i64::MAX).min(BYTES)
}

/// The places of a row's texts.
pub(super) const TENANT: usize = 0;
pub(super) const KEY: usize = 1;
const KIND: usize = 2;
const CLIENT: usize = 3;
pub(super) const MODEL: usize = 4;
pub(super) const PROVIDER: usize = 5;
pub(super) const UPSTREAM_MODEL: usize = 6;
pub(super) const OUTCOME: usize = 7;
const ERROR: usize = 8;
pub(super) const NOTES: usize = 9;

/// The kinds of fingerprints.
pub(super) const OF_TENANT: u8 = b't';
pub(super) const OF_KEY: u8 = b'k';
pub(super) const OF_MODEL: u8 = b'm';
pub(super) const OF_PROVIDER: u8 = b'p';
pub(super) const OF_OUTCOME: u8 = b'o';
pub(super) const OF_NOTE: u8 = b'n';
pub(super) const OF_ERRORS: u8 = b'e';
pub(super) const OF_ID: u8 = b'i';

/// The summary of a block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) first: TraceNumber,
    pub(crate) last: TraceNumber,
    pub(crate) count: i64,
    pub(crate) began_min: i64,
    pub(crate) began_max: i64,
    /// The longest that one of them took, in microseconds.
    pub(crate) slowest: i64,
    /// Of the block, and of the documents and bodies of its traces.
    pub(crate) bytes: i64,
    /// The fingerprints of the names that may be asked for.
    pub(crate) terms: Vec<u8>,
}

impl Header {
    /// Whether this, the oldest block of all that have so many bytes together, is more than the limit has room for. The only
    /// one never is: whoever has just asked would find nothing.
    pub(crate) const fn is_beyond(&self, limit: u64, all: u64) -> bool {
        all > limit && all > self.bytes.unsigned_abs()
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) header: Header,
    /// The fingerprints of all ids.
    pub(crate) ids: Vec<u8>,
    pub(crate) names: Vec<u8>,
    pub(crate) rows: Vec<u8>,
}

impl Block {
    /// What it takes itself, about.
    pub(super) fn own_bytes(&self) -> i64 {
        let own = self.header.terms.len() + self.ids.len() + self.names.len() + self.rows.len() + 64;
        i64::try_from(own).unwrap_or(i64::MAX)
    }

    pub(super) fn entries(&self) -> Result<Entries<'_>, Error> {
        let names = names(&self.names).ok_or_else(damaged)?;
        Ok(Entries { first: self.header.first, names, rows: Taker(&self.rows) })
    }

    pub(super) fn entry(&self, number: TraceNumber) -> Result<Option<TraceRow<'static>>, Error> {
        for entry in self.entries()? {
            let entry = entry?;
            if entry.number == number {
                return entry.row().map(Some);
            }
        }
        Ok(None)
    }
}

fn damaged() -> Error {
    Error::corrupt("a block of traces cannot be read")
}

fn names(bytes: &[u8]) -> Option<Vec<&str>> {
    let (mut taker, mut names) = (Taker(bytes), Vec::new());
    while !taker.is_empty() {
        names.push(taker.text()?);
    }
    Some(names)
}

/// The rows of a block, in the order of their numbers.
pub(super) struct Entries<'b> {
    first: TraceNumber,
    names: Vec<&'b str>,
    rows: Taker<'b>,
}

impl<'b> Iterator for Entries<'b> {
    type Item = Result<Entry<'b>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rows.is_empty() {
            return None;
        }
        let entry = self.rows.bytes().and_then(|row| Entry::read(self.first, &self.names, row));
        if entry.is_none() {
            self.rows = Taker(&[]);
        }
        Some(entry.ok_or_else(damaged))
    }
}

/// One row, whose ids are not looked at yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'b> {
    pub(super) number: TraceNumber,
    pub(super) is_error: bool,
    pub(super) began_at: i64,
    pub(super) took: i64,
    pub(super) first_token: Option<i64>,
    upstream: Option<i64>,
    pub(super) input: Option<u64>,
    pub(super) cached: Option<u64>,
    pub(super) output: Option<u64>,
    reasoning: Option<u64>,
    pub(super) nanodollars: Option<u64>,
    status: Option<u16>,
    attempts: u32,
    rounds: u32,
    pub(super) texts: [Option<&'b str>; TEXTS],
    ids: Taker<'b>,
}

#[derive(Debug, Clone)]
pub(super) struct Ids<'b> {
    pub(super) request: &'b str,
    pub(super) response: Option<Cow<'b, str>>,
    pub(super) previous: Option<&'b str>,
    pub(super) conversation: Option<&'b str>,
}

impl<'b> Entry<'b> {
    fn read(first: TraceNumber, names: &[&'b str], row: &'b [u8]) -> Option<Self> {
        let mut taker = Taker(row);
        let number = first.checked_add(i64::try_from(taker.number()?).ok()?)?;
        let is_error = taker.number()? == 1;
        let (began_at, took) = (taker.signed()?, taker.signed()?);
        let mut micros = || Some(taker.maybe()?.map(u64::cast_signed));
        let (first_token, upstream) = (micros()?, micros()?);
        let (input, cached) = (taker.maybe()?, taker.maybe()?);
        let (output, reasoning, nanodollars) = (taker.maybe()?, taker.maybe()?, taker.maybe()?);
        let status = match taker.maybe()? {
            Some(status) => Some(u16::try_from(status).ok()?),
            None => None,
        };
        let (attempts, rounds) = (u32::try_from(taker.number()?).ok()?, u32::try_from(taker.number()?).ok()?);
        let mut texts = [None; TEXTS];
        for text in &mut texts {
            if let Some(index) = taker.maybe()? {
                *text = Some(*names.get(usize::try_from(index).ok()?)?);
            }
        }
        Some(Self {
            number,
            is_error,
            began_at,
            took,
            first_token,
            upstream,
            input,
            cached,
            output,
            reasoning,
            nanodollars,
            status,
            attempts,
            rounds,
            texts,
            ids: taker,
        })
    }

    pub(super) fn tenant(&self) -> &'b str {
        self.texts[TENANT].unwrap_or_default()
    }

    pub(super) fn ids(&self) -> Result<Ids<'b>, Error> {
        let mut taker = self.ids;
        // No id is empty.
        let mut id = || taker.text().map(|id| Some(id).filter(|id| !id.is_empty()));
        let ids = (|| {
            let request = id()?.unwrap_or_default();
            let response = match id()? {
                Some(stored) => Some(response_id::whole(request, stored)?),
                None => None,
            };
            Some(Ids { request, response, previous: id()?, conversation: id()? })
        })();
        ids.ok_or_else(damaged)
    }

    pub(super) fn row(&self) -> Result<TraceRow<'static>, Error> {
        let ids = self.ids()?;
        let owned = |text: Option<&str>| text.map(|text| Cow::Owned(text.to_owned()));
        let text = |index: usize| owned(self.texts.get(index).copied().flatten());
        Ok(TraceRow {
            began_at: self.began_at,
            took_micros: self.took,
            first_token_micros: self.first_token,
            upstream_micros: self.upstream,
            tenant: self.tenant().to_owned().into(),
            key: text(KEY),
            request_id: ids.request.to_owned().into(),
            response_id: ids.response.map(|id| id.into_owned().into()),
            previous_response_id: owned(ids.previous),
            conversation_id: owned(ids.conversation),
            kind: text(KIND).unwrap_or_default(),
            client: text(CLIENT).unwrap_or_default(),
            model: text(MODEL),
            provider: text(PROVIDER),
            upstream_model: text(UPSTREAM_MODEL),
            status: self.status,
            outcome: text(OUTCOME).unwrap_or_default(),
            error: text(ERROR),
            attempts: self.attempts,
            rounds: self.rounds,
            input_tokens: self.input,
            cached_tokens: self.cached,
            output_tokens: self.output,
            reasoning_tokens: self.reasoning,
            nanodollars: self.nanodollars,
            notes: text(NOTES).unwrap_or_default(),
        })
    }
}

/// Adds rows to a block.
#[derive(Debug, Default)]
pub(super) struct Writer {
    block: Block,
    names: HashMap<Box<str>, u64>,
    /// The texts of rows that it has, and their places among the names: most rows have the same.
    known: HashMap<Box<[u8]>, Box<[u8]>, RandomState>,
    /// Of what belongs to the traces beside the block.
    beside: i64,
    /// Whether the block has its first number already, though no row has it.
    starts: bool,
}

impl Writer {
    /// A block that begins with this number, whether it has that row or not.
    pub(super) fn starting_at(first: TraceNumber) -> Self {
        let header = Header { first, ..Header::default() };
        Self { block: Block { header, ..Block::default() }, starts: true, ..Self::default() }
    }

    /// Goes on with a block, or begins another if that has enough.
    pub(super) fn after(block: Option<Block>) -> Result<Self, Error> {
        match block {
            Some(block) if block.header.count < ENOUGH => Self::resume(block),
            _ => Ok(Self::default()),
        }
    }

    fn resume(block: Block) -> Result<Self, Error> {
        let places = names(&block.names).ok_or_else(damaged)?;
        let names = (0..).zip(places).map(|(place, name)| (Box::from(name), place)).collect();
        let beside = block.header.bytes.saturating_sub(block.own_bytes());
        Ok(Self { block, names, beside, ..Self::default() })
    }

    /// Makes room for so many rows, or as many as there can be.
    pub(super) fn reserve(&mut self, rows: usize) {
        /// Of a row with its own two ids, and of their fingerprints.
        const USUAL: (usize, usize) = (192, 8);
        let rows = rows.min(usize::try_from(MOST).unwrap_or(0));
        self.block.rows.reserve(rows * USUAL.0);
        self.block.ids.reserve(rows * USUAL.1);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.block.header.count == 0
    }

    /// Whether the next one may be in this block of at most so many bytes, too, by when it began.
    pub(super) fn has_room_for(&self, began_at: i64, room: i64) -> bool {
        let header = &self.block.header;
        let from = header.began_min.min(began_at);
        let to = header.began_max.max(began_at);
        let bytes = self.block.own_bytes().saturating_add(self.beside);
        self.is_empty() || header.count < MOST && to.saturating_sub(from) <= SPAN && bytes < room
    }

    /// One that was taken apart.
    pub(super) fn push_row(&mut self, number: TraceNumber, row: &TraceRow<'_>) {
        let [mut numbers, mut texts, mut ids] = [const { Vec::new() }; 3];
        put_numbers(&mut numbers, row);
        put_texts(&mut texts, row);
        let prints = put_ids(&mut ids, row);
        let (is_error, began_at, took) = (row.is_error(), row.began_at, row.took_micros);
        self.push(number, Parts { is_error, began_at, took, numbers: &numbers, texts: &texts, ids: &ids, prints });
    }

    /// Numbers grow from row to row.
    pub(super) fn push(&mut self, number: TraceNumber, row: Parts<'_>) {
        let header = &mut self.block.header;
        if header.count == 0 {
            header.first = if self.starts { header.first } else { number };
            (header.began_min, header.began_max, header.slowest) = (row.began_at, row.began_at, row.took);
        }
        header.last = number;
        header.count += 1;
        header.began_min = header.began_min.min(row.began_at);
        header.began_max = header.began_max.max(row.began_at);
        header.slowest = header.slowest.max(row.took);
        let place = number.saturating_sub(header.first).cast_unsigned();
        if row.is_error {
            self.term(OF_ERRORS, "");
        }
        self.find_ids(row);
        let places = match self.known.get(row.texts) {
            Some(places) => places,
            None => {
                let places = self.places(row);
                self.known.entry(row.texts.into()).or_insert(places)
            }
        };
        let rows = &mut self.block.rows;
        put(rows, (length(place) + row.numbers.len() + places.len() + row.ids.len()) as u64);
        put(rows, place);
        for part in [row.numbers, places, row.ids] {
            rows.extend_from_slice(part);
        }
    }

    /// Where its texts are among the names. Those that are new get there, and into the summary.
    fn places(&mut self, row: Parts<'_>) -> Box<[u8]> {
        let mut places = Vec::with_capacity(TEXTS);
        for (index, text) in row.texts().enumerate() {
            let place = text.map(|text| self.place(index, text));
            put_maybe(&mut places, place);
        }
        places.into()
    }

    fn place(&mut self, index: usize, text: &str) -> u64 {
        let next = self.names.len() as u64;
        let place = self.names.get(text).copied().unwrap_or(next);
        if place == next {
            self.names.insert(text.into(), place);
            put_bytes(&mut self.block.names, text.as_bytes());
        }
        match index {
            TENANT => self.term(OF_TENANT, text),
            KEY => self.term(OF_KEY, text),
            MODEL | UPSTREAM_MODEL => self.term(OF_MODEL, text),
            PROVIDER => self.term(OF_PROVIDER, text),
            OUTCOME => self.term(OF_OUTCOME, text),
            NOTES if !text.is_empty() => {
                self.term(OF_NOTE, "");
                text.split_whitespace().for_each(|code| self.term(OF_NOTE, code));
            }
            _ => {}
        }
        place
    }

    fn term(&mut self, kind: u8, text: &str) {
        let term = fingerprint(kind, text);
        if !has(&self.block.header.terms, term) {
            self.block.header.terms.extend_from_slice(&term.to_le_bytes());
        }
    }

    /// The summary of its ids. Those of the request and the response are its own; others may have the same that it continues.
    fn find_ids(&mut self, row: Parts<'_>) {
        let Some(Links { has_response, previous, conversation }) = row.links() else { return };
        let [request, response] = row.prints.map(u32::to_le_bytes);
        let ids = &mut self.block.ids;
        ids.extend_from_slice(&request);
        if has_response {
            ids.extend_from_slice(&response);
        }
        for id in [previous, conversation].into_iter().filter(|id| !id.is_empty()) {
            let print = fingerprint(OF_ID, id);
            if !has(ids, print) {
                ids.extend_from_slice(&print.to_le_bytes());
            }
        }
    }

    /// Something that belongs to a trace was written beside the block.
    pub(super) fn add_beside(&mut self, bytes: usize) {
        self.beside = self.beside.saturating_add(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    pub(super) fn finish(mut self) -> Block {
        self.block.header.bytes = self.block.own_bytes().saturating_add(self.beside);
        self.block
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::tests::row;

    #[test]
    fn rows_come_back_as_they_were() {
        let mut writer = Writer::default();
        let mut expected = Vec::new();
        for number in 0..100 {
            let row = row(number);
            writer.push_row(1000 + number * 2, &row);
            expected.push((1000 + number * 2, row));
            // As a block is gone on with, by another process, too.
            if number % 17 == 0 {
                writer = Writer::resume(writer.finish()).unwrap();
            }
        }
        let block = writer.finish();
        let found: Vec<_> = block.entries().unwrap().map(|entry| entry.unwrap()).collect();
        let rows: Vec<_> = found.iter().map(|entry| (entry.number, entry.row().unwrap())).collect();
        assert_eq!(rows, expected);
        assert!(found.iter().zip(&expected).all(|(entry, (_, row))| entry.is_error == row.is_error()));
        let header = &block.header;
        assert_eq!((header.first, header.last, header.count), (1000, 1198, 100));
        assert_eq!(header.slowest, expected.iter().map(|(_, row)| row.took_micros).max().unwrap());
        assert_eq!(header.bytes, block.own_bytes());
        assert_eq!(block.entry(1004).unwrap().unwrap(), expected[2].1);
        assert!(block.entry(1005).unwrap().is_none());
        // What a row has is in the summary, and what none has is not.
        assert!(has(&header.terms, fingerprint(OF_TENANT, "t1")) && !has(&header.terms, fingerprint(OF_KEY, "t1")));
        assert!(has(&header.terms, fingerprint(OF_NOTE, "")) && has(&header.terms, fingerprint(OF_ERRORS, "")));
        assert!(has(&block.ids, fingerprint(OF_ID, "req_42")) && has(&block.ids, fingerprint(OF_ID, "resp_42")));
    }

    #[test]
    fn a_block_ends_with_its_rows_its_time_or_its_bytes() {
        let at = |began_at| TraceRow { began_at, ..TraceRow::default() };
        let mut writer = Writer::default();
        assert!(writer.has_room_for(5, BYTES));
        writer.push_row(1, &at(0));
        assert!(
            writer.has_room_for(SPAN, BYTES)
                && !writer.has_room_for(SPAN + 1, BYTES)
                && !writer.has_room_for(-SPAN - 1, BYTES)
        );
        (2..=MOST).for_each(|number| writer.push_row(number, &at(0)));
        assert!(!writer.has_room_for(0, BYTES));
        let mut writer = Writer::default();
        writer.push_row(1, &at(0));
        let little = room_within(1 << 20);
        writer.add_beside(usize::try_from(little).unwrap());
        assert!(writer.has_room_for(0, BYTES) && !writer.has_room_for(0, little));
        writer.add_beside(usize::try_from(BYTES).unwrap());
        assert!(!writer.has_room_for(0, BYTES));
    }

    #[test]
    fn what_is_too_long_is_cut_and_damage_is_an_error() {
        let mut writer = Writer::default();
        let long = "ä".repeat(400);
        writer.push_row(1, &TraceRow { model: Some(long.as_str().into()), request_id: long.as_str().into(), ..row(1) });
        let block = writer.finish();
        let found = block.entry(1).unwrap().unwrap();
        assert_eq!((found.model.unwrap().len(), found.request_id.len()), (512, 512));
        for cut in 1..block.rows.len() {
            let cut = Block { rows: block.rows[..cut].to_vec(), ..block.clone() };
            assert!(matches!(cut.entry(1), Err(Error::Corrupt(_))));
        }
        let nameless = Block { names: Vec::new(), ..block };
        assert!(matches!(nameless.entry(1), Err(Error::Corrupt(_))));
    }
}
