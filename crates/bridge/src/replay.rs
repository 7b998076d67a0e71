//! The events of a response out of its object, for who asks when the events themselves are gone: the same story in its
//! shortest form, each text in one delta. And the end of a response whose writer is gone.
//!
//! An object is text that was stored, maybe by another version: what is in it is copied as it is, and nothing is added.
//! The terminal event is around the very bytes.

mod items;
mod logged;
mod lost;

use std::ops::Range;

use wire::json::{Cursor, Kind, ObjectWriter, Raw};
use wire::responses::{EventKind, Status};

pub use logged::LoggedItems;
pub use lost::Lost;

use crate::escaped::Escaped;
use crate::events::Events;

/// The stream of a finished response that is written piece by piece: an object may be large, and its events are several
/// times that.
#[derive(Debug, Clone)]
pub struct EventReplay<O> {
    object: O,
    status: Status,
    /// Where the items are in the object.
    items: Vec<Range<usize>>,
    sequence: u64,
    next: Next,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Opening,
    Item(usize),
    Over,
}

impl<O: AsRef<[u8]>> EventReplay<O> {
    /// None for what is no response object, or not one of a response that has ended.
    pub fn new(object: O) -> Option<Self> {
        let raw = parse(object.as_ref())?;
        let status = final_status(raw)?;
        let items = places(raw);
        Some(Self { object, status, items, sequence: 0, next: Next::Opening })
    }

    /// Writes the next piece: the opening, the events of one item, or the end. False when all was written before.
    pub fn advance(&mut self, out: &mut Events) -> bool {
        let Ok(text) = str::from_utf8(self.object.as_ref()) else { return false };
        self.next = match self.next {
            Next::Opening => {
                opening(text, &mut self.sequence, out);
                Next::Item(0)
            }
            Next::Item(index) => match self.items.get(index).cloned().and_then(|place| text.get(place)) {
                Some(item) => {
                    items::write(item, index, &mut self.sequence, out);
                    Next::Item(index + 1)
                }
                None => {
                    error(text, self.status, &mut self.sequence, out);
                    out.terminal(self.status, &mut self.sequence, text.as_bytes());
                    Next::Over
                }
            },
            Next::Over => return false,
        };
        true
    }
}

/// The whole stream of a finished response at once. None, and no event, for what is none.
pub fn replay(object: &[u8], out: &mut Events) -> Option<()> {
    let mut replay = EventReplay::new(object)?;
    while replay.advance(out) {}
    Some(())
}

/// Only the terminal event of a finished response, under the number that it had. None, and no event, for what is none.
pub fn replay_terminal(object: &[u8], mut sequence: u64, out: &mut Events) -> Option<()> {
    let raw = parse(object)?;
    out.terminal(final_status(raw)?, &mut sequence, raw.as_str().as_bytes());
    Some(())
}

fn parse(object: &[u8]) -> Option<Raw<'_>> {
    // With nothing around it: what is stored is the object alone.
    Raw::parse(str::from_utf8(object).ok()?).ok().filter(|raw| raw.as_str().len() == object.len())
}

/// Where the items of the output are.
fn places(object: Raw<'_>) -> Vec<Range<usize>> {
    let (mut cursor, mut places) = (Cursor::new(object), Vec::new());
    cursor.enter();
    while let Some(key) = cursor.key() {
        if !key.is("output") || cursor.kind() != Kind::Array {
            cursor.raw();
            continue;
        }
        cursor.enter();
        while cursor.more() {
            let start = cursor.start();
            places.push(start..start + cursor.raw().as_str().len());
        }
    }
    places
}

/// `created`, `in_progress`.
fn opening(object: &str, sequence: &mut u64, out: &mut Events) {
    let Ok(object) = Raw::parse(object) else { return };
    for kind in [EventKind::Created, EventKind::InProgress] {
        out.event(kind, sequence, |event| {
            let begun = [
                ("status", "\"in_progress\""),
                ("completed_at", "null"),
                ("error", "null"),
                ("incomplete_details", "null"),
                ("output", "[]"),
                ("usage", "null"),
            ];
            with(object, &begun, &[], event.key("response"));
        });
    }
}

/// The `error` event of a failure, out of the object's error.
fn error(object: &str, status: Status, sequence: &mut u64, out: &mut Events) {
    let error = Raw::parse(object).ok().and_then(|object| object.get("error"));
    let Some(error) = error.filter(|error| status == Status::Failed && !error.is_null()) else { return };
    out.event(EventKind::Error, sequence, |event| {
        for name in ["code", "message", "param"] {
            event.raw_or_null(name, error.get(name));
        }
        event.raw("error", error);
    });
}

fn final_status(object: Raw<'_>) -> Option<Status> {
    let status = object.get("status")?.text()?;
    [Status::Completed, Status::Incomplete, Status::Failed, Status::Cancelled]
        .into_iter()
        .find(|known| status.is(known.name()))
}

/// What is in a member that is a string.
fn text<'a>(object: Raw<'a>, name: &str) -> Escaped<'a> {
    object.get(name).and_then(Raw::text).map(Escaped::of).unwrap_or_default()
}

/// What is between the brackets of a list, if it is one.
fn elements(list: Option<Raw<'_>>) -> &[u8] {
    let list = list.map(|list| list.as_str().as_bytes()).and_then(|list| list.strip_prefix(b"["));
    list.and_then(|list| list.strip_suffix(b"]")).unwrap_or_default().trim_ascii()
}

/// The object with other values for some members, and without some, in its own order.
fn with(object: Raw<'_>, other: &[(&str, &str)], without: &[&str], out: &mut Vec<u8>) {
    let mut copy = ObjectWriter::new(out);
    for (key, value) in object.fields() {
        let name = key.decode();
        if without.contains(&&*name) {
            continue;
        }
        let value = other.iter().find(|(known, _)| *known == name).map_or(value.as_str(), |(_, value)| *value);
        copy.json(&name, value.as_bytes());
    }
    copy.end();
}
