//! Traces that wait to be written, all in one piece of memory. What a request ends with is freed where it was made, and what waits
//! is bytes that need only be copied: held as texts and numbers of their own until somebody else frees them, traces
//! would cost requests several times as much.

use super::parts::{OwnPrints, Parts, put_ids, put_numbers, put_texts};
use super::{Payload, TraceDocument, TraceRow};

/// What most traces need no more than.
const USUAL: usize = 768;
/// What an empty batch may hold of memory.
const ROOM: usize = 2 << 20;
/// What a trace has beside its bytes once it is stored, about.
const BESIDE: u64 = 64;
/// Before the four parts of each: how long they are, the fingerprints of its ids, when it began and what it took.
const LENGTHS: usize = 4;
const HEAD: usize = (LENGTHS + size_of::<OwnPrints>() / 4) * size_of::<u32>() + 2 * size_of::<i64>();

/// One that is new.
#[derive(Debug, Clone)]
pub struct NewTrace {
    bytes: Vec<u8>,
    payloads: Vec<Payload>,
}

impl NewTrace {
    /// With a document that is written after the row, in the same memory.
    pub fn new(row: &TraceRow<'_>, write: impl FnOnce(&mut TraceDocument)) -> Self {
        Self::made(row, |bytes| {
            let mut document = TraceDocument::after(bytes);
            write(&mut document);
            document.into_bytes()
        })
    }

    /// With a document that is there: a JSON object, or a [`TraceDocument`].
    pub fn with_document(row: &TraceRow<'_>, document: &[u8]) -> Self {
        Self::made(row, |mut bytes| {
            bytes.extend_from_slice(document);
            bytes
        })
    }

    fn made(row: &TraceRow<'_>, add_document: impl FnOnce(Vec<u8>) -> Vec<u8>) -> Self {
        let mut bytes = Vec::with_capacity(USUAL);
        bytes.extend_from_slice(&[0; HEAD]);
        put_numbers(&mut bytes, row);
        let texts = bytes.len();
        put_texts(&mut bytes, row);
        let ids = bytes.len();
        let prints = put_ids(&mut bytes, row);
        let after = bytes.len();
        bytes = add_document(bytes);
        let lengths = [texts - HEAD, ids - texts, after - ids, bytes.len() - after];
        let head = Head {
            lengths: lengths.map(|length| u32::try_from(length).unwrap_or(u32::MAX)),
            prints,
            began_at: row.began_at,
            took: row.took_micros,
        };
        if let Some(place) = bytes.first_chunk_mut() {
            *place = head.bytes();
        }
        Self { bytes, payloads: Vec::new() }
    }

    #[must_use]
    pub fn with_payloads(self, payloads: Vec<Payload>) -> Self {
        Self { payloads, ..self }
    }
}

/// What comes before the parts of each.
struct Head {
    lengths: [u32; LENGTHS],
    prints: OwnPrints,
    began_at: i64,
    took: i64,
}

impl Head {
    fn bytes(&self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        let (words, times) = bytes.split_at_mut(HEAD - 16);
        for (place, word) in words.as_chunks_mut().0.iter_mut().zip(self.lengths.iter().chain(&self.prints)) {
            *place = word.to_le_bytes();
        }
        for (place, time) in times.as_chunks_mut().0.iter_mut().zip([self.began_at, self.took]) {
            *place = time.to_le_bytes();
        }
        bytes
    }

    fn of(bytes: &[u8; HEAD]) -> Self {
        let (words, times) = bytes.split_at(HEAD - 16);
        let word = |place: usize| words.as_chunks().0.get(place).map_or(0, |word| u32::from_le_bytes(*word));
        let time = |place: usize| times.as_chunks().0.get(place).map_or(0, |time| i64::from_le_bytes(*time));
        Self {
            lengths: [word(0), word(1), word(2), word(3)],
            prints: [word(4), word(5)],
            began_at: time(0),
            took: time(1),
        }
    }
}

/// Several, in their order.
#[derive(Debug, Default)]
pub struct TraceBatch {
    bytes: Vec<u8>,
    count: usize,
    /// By the places of their traces.
    payloads: Vec<(usize, Payload)>,
}

/// One of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting<'b> {
    pub(super) row: Parts<'b>,
    pub(super) document: &'b [u8],
    pub(super) payloads: &'b [(usize, Payload)],
}

impl TraceBatch {
    /// An empty one in the same memory, if that is not too much of it to be held for nothing.
    #[must_use]
    pub fn emptied(mut self) -> Self {
        if self.bytes.capacity() > ROOM {
            return Self::default();
        }
        self.bytes.clear();
        Self { bytes: self.bytes, ..Self::default() }
    }

    pub const fn len(&self) -> usize {
        self.count
    }

    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn push(&mut self, new: NewTrace) {
        self.bytes.extend_from_slice(&new.bytes);
        let place = self.count;
        self.payloads.extend(new.payloads.into_iter().map(|payload| (place, payload)));
        self.count += 1;
    }

    /// One more body of the trace at that place.
    pub fn attach(&mut self, place: usize, payload: Payload) {
        let after = self.payloads.partition_point(|(of, _)| *of <= place);
        self.payloads.insert(after, (place, payload));
    }

    /// What will be stored of it, about.
    pub fn stored_bytes(&self) -> u64 {
        let payloads = self.payloads.iter().map(|(_, payload)| payload.bytes.len()).sum::<usize>();
        (self.bytes.len() + payloads) as u64 + self.count as u64 * BESIDE
    }

    /// All bytes but those of bodies.
    pub(super) const fn own_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Waiting<'_>> {
        let (mut left, mut payloads) = (self.bytes.as_slice(), self.payloads.as_slice());
        (0..self.count).map_while(move |place| {
            let (head, rest) = left.split_first_chunk()?;
            left = rest;
            let Head { lengths, prints, began_at, took } = Head::of(head);
            let mut parts = lengths.iter().map(|length| {
                let (part, rest) = left.split_at_checked(*length as usize)?;
                left = rest;
                Some(part)
            });
            let mut part = || parts.next().flatten();
            let (numbers, texts, ids, document) = (part()?, part()?, part()?, part()?);
            let own = payloads.partition_point(|(of, _)| *of == place);
            let (own, others) = payloads.split_at_checked(own)?;
            payloads = others;
            let is_error = numbers.first() == Some(&1);
            let row = Parts { is_error, began_at, took, numbers, texts, ids, prints };
            Some(Waiting { row, document, payloads: own })
        })
    }
}

impl FromIterator<NewTrace> for TraceBatch {
    fn from_iter<I: IntoIterator<Item = NewTrace>>(traces: I) -> Self {
        let mut batch = Self::default();
        traces.into_iter().for_each(|new| batch.push(new));
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::block::OF_ID;
    use crate::trace::coding::fingerprint;
    use crate::trace::tests::row;

    #[test]
    fn what_waits_is_as_it_came() {
        let payload = |name: &str| Payload { name: name.into(), bytes: vec![1; 10].into(), cut_from: None };
        let new = |number: i64| NewTrace::with_document(&row(number), format!("document {number}").as_bytes());
        let mut batch: TraceBatch = (0..50)
            .map(|number| match number % 7 {
                0 => new(number).with_payloads(vec![payload("words")]),
                _ => new(number),
            })
            .collect();
        for place in [49, 3, 7] {
            batch.attach(place, payload("request"));
            batch.attach(place, payload("response"));
        }
        assert_eq!((batch.len(), batch.iter().count()), (50, 50));
        for (waiting, number) in batch.iter().zip(0..) {
            let expected = row(number);
            assert_eq!(waiting.document, format!("document {number}").as_bytes());
            assert_eq!((waiting.row.began_at, waiting.row.took), (expected.began_at, expected.took_micros));
            assert_eq!(waiting.row.is_error, expected.is_error());
            let texts: Vec<_> = waiting.row.texts().collect();
            assert_eq!(texts.len(), super::super::parts::TEXTS);
            assert_eq!((texts[0], texts[1]), (Some(&*expected.tenant), expected.key.as_deref()));
            assert_eq!(waiting.row.prints[0], fingerprint(OF_ID, &*expected.request_id));
            let links = waiting.row.links().unwrap();
            let previous = expected.previous_response_id.as_deref().unwrap_or_default();
            assert_eq!((links.has_response, links.previous), (expected.response_id.is_some(), previous.as_bytes()));
            let names: Vec<&str> = waiting.payloads.iter().map(|(_, payload)| &*payload.name).collect();
            let words: &[&str] = if number % 7 == 0 { &["words"] } else { &[] };
            let bodies: &[&str] = if [49, 3, 7].contains(&number) { &["request", "response"] } else { &[] };
            assert_eq!(names, [words, bodies].concat(), "{number}");
        }
        let emptied = batch.emptied();
        assert!(emptied.is_empty() && emptied.iter().next().is_none() && emptied.bytes.capacity() > 0);
        let large = TraceBatch { bytes: Vec::with_capacity(ROOM + 1), ..TraceBatch::default() };
        assert_eq!(large.emptied().bytes.capacity(), 0);
    }
}
