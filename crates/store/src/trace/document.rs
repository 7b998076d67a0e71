//! What belongs to traces beside their rows: documents, several together in a chunk, and bodies, each for itself.

use bytes::Bytes;

use super::coding::{Taker, put, put_bytes};
use super::seal::{self, Place};
use super::{Block, Payload, StoredTrace, TraceNumber, members};
use crate::{Encryption, Error};

/// Documents of one chunk, in bytes: alike as they are, together they pack well, and who wants one unpacks all.
const CHUNK: usize = 128 << 10;

/// Some documents, as they are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// The number of the first that was in it, by which it is found, for as long as there is one.
    pub(crate) first: TraceNumber,
    pub(crate) body: Vec<u8>,
}

/// A captured body, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PayloadRow {
    pub(crate) number: TraceNumber,
    pub(crate) name: String,
    pub(crate) cut_from: Option<i64>,
    pub(crate) body: Vec<u8>,
}

impl PayloadRow {
    pub(super) fn new(encryption: &Encryption, number: TraceNumber, payload: &Payload) -> Result<Self, Error> {
        let place = Place::Payload(number, &payload.name);
        let body = seal::seal(encryption, place, &payload.bytes)?;
        let cut_from = payload.cut_from.map(|length| i64::try_from(length).unwrap_or(i64::MAX));
        Ok(Self { number, name: payload.name.clone(), cut_from, body })
    }
}

/// Puts documents together.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    first: TraceNumber,
    clear: Vec<u8>,
    pub(super) done: Vec<Chunk>,
}

impl Chunks {
    pub(super) fn for_bytes(bytes: usize) -> Self {
        Self { clear: Vec::with_capacity(bytes.min(CHUNK)), ..Self::default() }
    }

    /// How many bytes were stored of what came before.
    pub(super) fn push(
        &mut self,
        encryption: &Encryption,
        number: TraceNumber,
        document: &[u8],
    ) -> Result<usize, Error> {
        let full = self.clear.len() + document.len() > CHUNK;
        let stored = if full { self.end(encryption)? } else { 0 };
        if self.clear.is_empty() {
            self.first = number;
        }
        put(&mut self.clear, number.saturating_sub(self.first).cast_unsigned());
        put_bytes(&mut self.clear, document);
        Ok(stored)
    }

    pub(super) fn end(&mut self, encryption: &Encryption) -> Result<usize, Error> {
        if self.clear.is_empty() {
            return Ok(0);
        }
        let body = seal::seal(encryption, Place::Documents(self.first), &self.clear)?;
        let stored = body.len();
        self.done.push(Chunk { first: self.first, body });
        self.clear.clear();
        Ok(stored)
    }
}

/// The documents of a chunk, with their numbers.
fn documents(first: TraceNumber, clear: &Bytes) -> Option<Vec<(TraceNumber, Bytes)>> {
    let (mut taker, mut found) = (Taker(clear), Vec::new());
    while !taker.is_empty() {
        let number = first.checked_add(i64::try_from(taker.number()?).ok()?)?;
        found.push((number, clear.slice_ref(taker.bytes()?)));
    }
    Some(found)
}

/// The chunk without the documents of these, if anything is left of it. What does not open is left out whole: nobody can
/// read it, and nobody can say whose it is.
pub(super) fn without(encryption: &Encryption, chunk: &Chunk, gone: &[TraceNumber]) -> Result<Option<Vec<u8>>, Error> {
    let place = Place::Documents(chunk.first);
    let clear = seal::open(encryption, place, &chunk.body);
    let Some(documents) = clear.and_then(|clear| documents(chunk.first, &clear)) else { return Ok(None) };
    let mut left = Vec::new();
    for (number, document) in documents.into_iter().filter(|(number, _)| gone.binary_search(number).is_err()) {
        put(&mut left, number.saturating_sub(chunk.first).cast_unsigned());
        put_bytes(&mut left, &document);
    }
    if left.is_empty() { Ok(None) } else { seal::seal(encryption, place, &left).map(Some) }
}

/// All that is stored of a trace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stored {
    pub(crate) block: Block,
    pub(crate) chunk: Option<Chunk>,
    pub(crate) payloads: Vec<PayloadRow>,
}

impl Stored {
    pub(super) fn open(self, encryption: &Encryption, number: TraceNumber) -> Result<Option<StoredTrace>, Error> {
        let Some(row) = self.block.entry(number)? else { return Ok(None) };
        let opened = self.chunk.and_then(|chunk| {
            let clear = seal::open(encryption, Place::Documents(chunk.first), &chunk.body)?;
            let documents = documents(chunk.first, &clear)?;
            documents.into_iter().find(|(of, _)| *of == number).and_then(|(_, document)| members::json(document, &row))
        });
        let mut unreadable = opened.is_none();
        let mut payloads = Vec::with_capacity(self.payloads.len());
        for payload in self.payloads {
            match seal::open(encryption, Place::Payload(number, &payload.name), &payload.body) {
                Some(bytes) => {
                    let cut_from = payload.cut_from.map(i64::cast_unsigned);
                    payloads.push(Payload { name: payload.name, bytes, cut_from });
                }
                None => unreadable = true,
            }
        }
        let document = opened.unwrap_or_else(|| Bytes::from_static(b"{}"));
        Ok(Some(StoredTrace { number, row, document, payloads, unreadable }))
    }
}
