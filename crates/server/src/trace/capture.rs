//! Bodies that are kept with a trace, where the operator wants that: each cut to so many bytes, all of them together bounded
//! in memory. Whoever captures something takes every key out of it before.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use store::Payload;

use crate::config::CaptureConfig;

/// What all captured bodies that are not written yet may have, of requests under way and of those that wait.
const ROOM: usize = 128 << 20;

/// How many bodies of the attempts of one request are kept; of further ones, only how long they were.
const MOST: usize = 48;
/// How many have a name. No request has as many attempts.
const NAMED: usize = 4 * MOST;

/// No key is longer: so much is read beyond what is kept, so that no piece of one stays.
const LONGEST_KEY: usize = 16 << 10;

/// What is captured.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    config: CaptureConfig,
    used: Arc<AtomicUsize>,
}

impl Rules {
    pub(super) fn new(config: CaptureConfig) -> Self {
        Self { config, used: Arc::default() }
    }

    /// Where a request's bodies go, if they are wanted.
    pub(super) fn of(&self, stored: bool) -> Option<Box<Captured>> {
        let CaptureConfig { enabled, unstored, max_bytes: most } = self.config;
        let share = Share { held: 0, used: Arc::clone(&self.used) };
        (enabled && (stored || unstored))
            .then(|| Box::new(Captured { most, payloads: Vec::new(), events: None, share }))
    }

    /// Whether what others said may be kept of a request with this `store`.
    pub(super) const fn keeps_words(&self, stored: bool) -> bool {
        stored || self.config.enabled && self.config.unstored
    }
}

/// What was captured of one request.
#[derive(Debug)]
pub(crate) struct Captured {
    most: usize,
    payloads: Vec<Payload>,
    /// What the client was sent, as it came.
    events: Option<Tape>,
    share: Share,
}

/// How much of the room it has.
#[derive(Debug)]
struct Share {
    held: usize,
    used: Arc<AtomicUsize>,
}

impl Share {
    fn take(&mut self, bytes: usize) -> bool {
        let more = |used: usize| used.checked_add(bytes).filter(|used| *used <= ROOM);
        let fits = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        self.held += if fits { bytes } else { 0 };
        fits
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.used.fetch_sub(self.held, Ordering::Relaxed);
    }
}

impl Captured {
    /// For a body that comes in pieces.
    pub(crate) const fn tape(&self) -> Tape {
        Tape { most: self.most, bytes: Vec::new(), whole: 0 }
    }

    /// Keeps a body. Where there is no room, only how long it was. There always is for what the client has said and heard.
    pub(crate) fn push(&mut self, name: String, tape: Tape, redact: impl FnOnce(&mut Vec<u8>)) {
        let is_of_attempt = name.starts_with("chat_");
        if is_of_attempt && self.payloads.len() >= NAMED {
            return;
        }
        let whole = tape.whole;
        let (bytes, is_cut) = tape.finish(redact);
        let fits = !(is_of_attempt && self.payloads.len() >= MOST) && self.share.take(bytes.len());
        let bytes = if fits { Bytes::from(bytes) } else { Bytes::new() };
        self.payloads.push(Payload { name, bytes, cut_from: (is_cut || !fits).then_some(whole) });
    }

    /// Events that the client is sent.
    pub(crate) fn sent(&mut self, events: &[u8]) {
        let tape = self.tape();
        self.events.get_or_insert(tape).push(events);
    }

    /// How many bytes it holds.
    pub(super) const fn bytes(&self) -> usize {
        self.share.held
    }

    /// All that was captured, for as long as this is held.
    pub(super) fn payloads(&mut self) -> &[Payload] {
        if let Some(events) = self.events.take() {
            self.push("events".to_owned(), events, |_| {});
        }
        &self.payloads
    }
}

/// The beginning of a body that comes in pieces, in which there may be keys.
#[derive(Debug)]
pub(crate) struct Tape {
    most: usize,
    bytes: Vec<u8>,
    whole: u64,
}

impl Tape {
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.whole += piece.len() as u64;
        let room = self.most.saturating_add(LONGEST_KEY).saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    /// What is kept of it, and whether that is not all. Of a body that was not read to its end the last part goes: it may
    /// have a piece of a key, which nobody recognises.
    fn finish(mut self, redact: impl FnOnce(&mut Vec<u8>)) -> (Vec<u8>, bool) {
        let is_whole = self.bytes.len() as u64 == self.whole;
        redact(&mut self.bytes);
        if !is_whole {
            self.bytes.truncate(self.bytes.len().saturating_sub(LONGEST_KEY));
        }
        let is_cut = !is_whole || self.bytes.len() > self.most;
        self.bytes.truncate(self.most);
        self.bytes.shrink_to_fit();
        (self.bytes, is_cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(rules: &Rules, bytes: &[u8]) -> Payload {
        let mut captured = rules.of(true).unwrap();
        let mut tape = captured.tape();
        bytes.chunks(7).for_each(|piece| tape.push(piece));
        captured.push("x".to_owned(), tape, |bytes| {
            let text = String::from_utf8(std::mem::take(bytes)).unwrap();
            *bytes = text.replace("secret-key", "-").into_bytes();
        });
        captured.payloads()[0].clone()
    }

    #[test]
    fn a_body_is_cut_and_no_piece_of_a_key_stays() {
        let rules = Rules::new(CaptureConfig { enabled: true, unstored: false, max_bytes: 20 });
        assert_eq!(captured(&rules, b"a secret-key b").bytes, "a - b");
        assert_eq!(captured(&rules, b"a secret-key b").cut_from, None);
        let long = captured(&rules, &[b"0123456789 secret-key ", &[b'x'; 100][..]].concat());
        assert_eq!((&long.bytes[..], long.cut_from), (&b"0123456789 - xxxxxxx"[..], Some(122)));
        // Replacing keys makes room, into which the end of what was read must not come.
        let many = "secret-key".repeat(10_000);
        let kept = captured(&rules, many.as_bytes());
        assert_eq!(kept.cut_from, Some(100_000));
        assert!(!String::from_utf8_lossy(&kept.bytes).contains('s'), "{kept:?}");
    }

    #[test]
    fn there_is_only_so_much_room_and_it_is_given_back() {
        let rules = Rules::new(CaptureConfig { enabled: true, unstored: false, max_bytes: ROOM });
        let mut first = rules.of(true).unwrap();
        let mut tape = first.tape();
        tape.push(&vec![b'x'; ROOM - 10]);
        first.push("a".to_owned(), tape, |_| {});
        let second = captured(&rules, &[b'y'; 11]);
        assert_eq!((second.bytes.len(), second.cut_from), (0, Some(11)));
        drop(first);
        assert_eq!(captured(&rules, &[b'y'; 11]).bytes.len(), 11);
        assert_eq!(rules.used.load(Ordering::Relaxed), 0);
    }

    /// However often a model calls tools.
    #[test]
    fn what_the_client_was_told_is_kept_beside_many_attempts() {
        let rules = Rules::new(CaptureConfig { enabled: true, unstored: false, max_bytes: 20 });
        let mut captured = rules.of(true).unwrap();
        let mut push = |name: &str| {
            let mut tape = captured.tape();
            tape.push(b"body");
            captured.push(name.to_owned(), tape, |_| {});
        };
        push("request");
        (1..=64)
            .flat_map(|number| ["request", "response"].map(|of| format!("chat_{of}.{number}")))
            .for_each(|name| push(&name));
        push("response");
        captured.sent(b"events");
        let payloads = captured.payloads();
        let kept = |name: &str| {
            payloads.iter().find(|payload| payload.name == name).map(|payload| (&*payload.bytes, payload.cut_from))
        };
        for (name, expected) in [
            ("request", Some((&b"body"[..], None))),
            ("chat_response.23", Some((b"body", None))),
            ("chat_request.64", Some((b"", Some(4)))),
            ("response", Some((b"body", None))),
            ("events", Some((b"events", None))),
        ] {
            assert_eq!(kept(name), expected, "{name}");
        }
    }

    #[test]
    fn what_is_not_stored_is_not_captured_unless_that_is_wanted() {
        for (enabled, unstored, stored, expected) in [
            (false, true, true, false),
            (true, false, true, true),
            (true, false, false, false),
            (true, true, false, true),
        ] {
            let rules = Rules::new(CaptureConfig { enabled, unstored, max_bytes: 1 });
            assert_eq!(rules.of(stored).is_some(), expected, "{enabled} {unstored} {stored}");
        }
    }
}
