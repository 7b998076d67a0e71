//! The event log of a turn: what its stream has said so far, so that it can be said again from any number on.
//!
//! One row holds the events of one append, so a writer decides by the size of its batches what an event costs. Rows
//! belong to their response: the database itself removes them when that is deleted, expires or is evicted, whichever
//! version of the program does it.

use bytes::{Bytes, BytesMut};

use crate::encryption::{Cipher, Place};
use crate::{Error, Status};

/// Events to append, in order and without a gap.
#[derive(Debug, Clone)]
pub struct NewEvents {
    /// The number of the first one: 0 in an empty log, else one more than that of the last event.
    pub first: u64,
    /// Each event's JSON; kept byte for byte.
    pub events: Vec<Bytes>,
}

/// One event as it was appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub sequence: u64,
    pub json: Bytes,
}

/// How much of a log one read gives out.
#[derive(Debug, Clone, Copy)]
pub struct EventLimits {
    pub events: u32,
    /// Bytes of JSON after which the page ends early; one event is always given out.
    pub bytes: usize,
}

/// A part of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPage {
    pub events: Vec<Event>,
    /// Whether the page ended because of its limits. If it did not, and the turn has ended, nothing more will come.
    pub has_more: bool,
    /// The turn's status, read before the events: if it is final, the log was complete when they were read.
    pub status: Status,
    pub log: Log,
}

/// What there is of a turn's event log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Log {
    /// It never had one.
    None,
    Kept,
    /// Its time was over. `last` is the number of its last event.
    Dropped {
        last: u64,
    },
}

impl Log {
    /// From the columns of its row: the number after its last event, and whether it was dropped.
    pub(crate) fn from_row(row: Option<(Option<i64>, bool)>) -> Self {
        match row {
            None => Self::None,
            Some((_, false)) => Self::Kept,
            Some((next, true)) => Self::dropped(next.unwrap_or(0)),
        }
    }

    fn dropped(next: i64) -> Self {
        Self::Dropped { last: u64::try_from(next - 1).unwrap_or(0) }
    }
}

/// Events as they will be in the database: each one's length in four bytes, then its JSON.
#[derive(Debug)]
pub(crate) struct PackedEvents {
    pub(crate) first: i64,
    /// The number after the last one.
    pub(crate) next: i64,
    pub(crate) packed: Vec<u8>,
}

impl PackedEvents {
    /// None if there is nothing to append.
    pub(crate) fn new(cipher: &Cipher, response: &str, new: &NewEvents) -> Result<Option<Self>, Error> {
        let too_many = || Error::OutOfOrder { expected: 0 };
        let first = i64::try_from(new.first).map_err(|_| too_many())?;
        let count = i64::try_from(new.events.len()).map_err(|_| too_many())?;
        let next = first.checked_add(count).ok_or_else(too_many)?;
        if count == 0 {
            return Ok(None);
        }
        let mut joined = BytesMut::with_capacity(new.events.iter().map(|event| event.len() + 4).sum());
        for event in &new.events {
            // One that does not fit four bytes of length fits no database row either.
            let length = u32::try_from(event.len()).map_err(|_| Error::Full)?;
            joined.extend_from_slice(&length.to_le_bytes());
            joined.extend_from_slice(event);
        }
        let packed = cipher.pack(Place::events(response, first), &joined)?;
        Ok(Some(Self { first, next, packed }))
    }
}

/// The last events of a turn, if they go on where its log does: `next` is the number of its next event.
pub(crate) fn last(events: Option<&PackedEvents>, next: Option<i64>) -> Result<Option<&PackedEvents>, Error> {
    match (events, next) {
        (Some(_), None) => Err(Error::NoLog),
        (Some(events), Some(next)) if events.first != next => Err(out_of_order(next)),
        _ => Ok(events),
    }
}

/// The number that an append must begin with, as a typed refusal.
pub(crate) fn out_of_order(expected: i64) -> Error {
    Error::OutOfOrder { expected: u64::try_from(expected).unwrap_or(0) }
}

/// Takes the next event out of a batch that has one.
pub(crate) fn next_event(batch: &mut Bytes) -> Result<Bytes, Error> {
    let damaged = || Error::corrupt("a batch of events is cut off");
    let length = batch.first_chunk::<4>().ok_or_else(damaged)?;
    let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| damaged())?;
    let mut event = batch.split_off(4);
    if event.len() < length {
        return Err(damaged());
    }
    *batch = event.split_off(length);
    Ok(event)
}

/// Fills a page from rows in their order.
#[derive(Debug)]
pub(crate) struct EventReader {
    /// The number of the next event wanted.
    next: i64,
    left: usize,
    bytes: usize,
    events: Vec<Event>,
    full: bool,
}

impl EventReader {
    /// Reads what follows the event with the number `after`, or everything.
    pub(crate) fn new(after: Option<u64>, limits: EventLimits) -> Self {
        let next = after.map_or(0, |after| i64::try_from(after).unwrap_or(i64::MAX).saturating_add(1));
        let left = usize::try_from(limits.events.max(1)).unwrap_or(usize::MAX);
        Self { next, left, bytes: limits.bytes, events: Vec::new(), full: false }
    }

    pub(crate) const fn next(&self) -> i64 {
        self.next
    }

    /// Rows that are enough for the page, and one that tells whether there is more: each has an event at least.
    pub(crate) fn rows(&self) -> i64 {
        i64::try_from(self.left).unwrap_or(i64::MAX).saturating_add(1)
    }

    /// Packed bytes that are enough for the page.
    pub(crate) fn packed_bytes(&self) -> i64 {
        i64::try_from(self.bytes).unwrap_or(i64::MAX).max(1)
    }

    pub(crate) const fn is_full(&self) -> bool {
        self.full
    }

    /// Takes from a row of this response what is wanted.
    pub(crate) fn take(&mut self, cipher: &Cipher, response: &str, first: i64, packed: Vec<u8>) -> Result<(), Error> {
        let mut rest = cipher.unpack(Place::events(response, first), packed)?;
        let mut number = first;
        while !rest.is_empty() && !self.full {
            let event = next_event(&mut rest)?;
            if number >= self.next {
                self.push(number, event)?;
            }
            number += 1;
        }
        Ok(())
    }

    fn push(&mut self, number: i64, json: Bytes) -> Result<(), Error> {
        // A gap is damage: appends are checked.
        if number != self.next {
            return Err(Error::corrupt("the event log has a gap"));
        }
        if self.left == 0 || (json.len() > self.bytes && !self.events.is_empty()) {
            self.full = true;
            return Ok(());
        }
        self.left -= 1;
        self.bytes = self.bytes.saturating_sub(json.len());
        self.next += 1;
        let sequence = u64::try_from(number).map_err(|_| Error::corrupt("an event before the first"))?;
        self.events.push(Event { sequence, json });
        Ok(())
    }

    /// `cut` says that the database had more than was read.
    pub(crate) fn finish(self, status: Status, log: Log, cut: bool) -> EventPage {
        EventPage { has_more: self.full || cut, events: self.events, status, log }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(first: u64, events: &[&str]) -> (i64, Vec<u8>) {
        let events = events.iter().map(|event| Bytes::copy_from_slice(event.as_bytes())).collect();
        let packed = PackedEvents::new(&Cipher::default(), "r", &NewEvents { first, events }).unwrap().unwrap();
        (packed.first, packed.packed)
    }

    fn read(after: Option<u64>, limits: EventLimits, rows: &[(i64, Vec<u8>)]) -> Result<(Vec<u64>, bool), Error> {
        let mut reader = EventReader::new(after, limits);
        for (first, packed) in rows {
            reader.take(&Cipher::default(), "r", *first, packed.clone())?;
        }
        let page = reader.finish(Status::InProgress, Log::Kept, false);
        Ok((page.events.iter().map(|event| event.sequence).collect(), page.has_more))
    }

    #[test]
    fn a_page_begins_and_ends_within_batches() {
        let long = "x".repeat(40_000);
        let rows = [batch(0, &["a", "bb", ""]), batch(3, &["c"]), batch(4, &[&long, "d"])];
        let all = EventLimits { events: 100, bytes: 1_000_000 };
        for (after, limits, expected) in [
            (None, all, (vec![0, 1, 2, 3, 4, 5], false)),
            (Some(0), all, (vec![1, 2, 3, 4, 5], false)),
            (Some(4), all, (vec![5], false)),
            (Some(5), all, (vec![], false)),
            (Some(u64::MAX), all, (vec![], false)),
            (None, EventLimits { events: 2, ..all }, (vec![0, 1], true)),
            (Some(3), EventLimits { bytes: 1, ..all }, (vec![4], true)),
            (None, EventLimits { bytes: 4, ..all }, (vec![0, 1, 2, 3], true)),
            (None, EventLimits { events: 6, ..all }, (vec![0, 1, 2, 3, 4, 5], false)),
        ] {
            assert_eq!(read(after, limits, &rows).unwrap(), expected, "{after:?} {limits:?}");
        }
    }

    #[test]
    fn damage_is_an_error() {
        let all = EventLimits { events: 100, bytes: 1_000 };
        assert!(matches!(read(None, all, &[batch(1, &["a"])]), Err(Error::Corrupt(_))), "a gap");
        let (first, mut packed) = batch(0, &["abc"]);
        packed.pop();
        assert!(matches!(read(None, all, &[(first, packed)]), Err(Error::Corrupt(_))), "cut off");
    }
}
