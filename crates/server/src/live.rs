//! Streams that can be followed while they are made: by several readers, each at its own pace, in this process or in
//! another one.
//!
//! The truth is the log in the store: an event is shown to nobody before it is there. What is kept here is the newest part
//! of the streams that this process makes, so that whoever keeps up does not read the log for each event, and a bell for
//! those who wait. A reader that is slow costs nothing: it goes on in the log, where it was.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use store::NewEvents;
use tokio::sync::watch;

/// How much of a stream is kept for those who keep up.
const TAIL: usize = 128 << 10;

/// All streams that somebody makes or follows here.
#[derive(Debug, Default)]
pub(crate) struct Live {
    channels: Mutex<Channels>,
}

#[derive(Debug, Default)]
struct Channels {
    by_response: HashMap<Box<str>, Weak<Channel>>,
    /// So many entries are looked through for those that nobody holds any more.
    tidy_at: usize,
}

/// One stream: its newest events, if it is made here, and a bell.
#[derive(Debug)]
pub(crate) struct Channel {
    tail: Mutex<Tail>,
    bell: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Tail {
    /// The number of the first event in `events`.
    first: u64,
    events: VecDeque<Bytes>,
    bytes: usize,
    /// The last event of all is in it.
    over: bool,
}

/// What the tail has for a reader.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Newest {
    /// These events, and whether they are the last.
    Events(Vec<Bytes>, bool),
    /// Nothing: the log may have more.
    Unknown,
}

impl Live {
    /// The channel of that response, for as long as somebody holds it.
    pub(crate) fn channel(&self, response: &str) -> Arc<Channel> {
        let mut channels = self.channels();
        if let Some(channel) = channels.by_response.get(response).and_then(Weak::upgrade) {
            return channel;
        }
        if channels.by_response.len() >= channels.tidy_at {
            channels.by_response.retain(|_, channel| channel.strong_count() > 0);
            channels.tidy_at = channels.by_response.len() * 2 + 64;
        }
        let channel = Arc::new(Channel { tail: Mutex::default(), bell: watch::Sender::new(()) });
        channels.by_response.insert(response.into(), Arc::downgrade(&channel));
        channel
    }

    /// Something has happened to that response, here or elsewhere.
    pub(crate) fn ring(&self, response: &str) {
        let channel = self.channels().by_response.get(response).and_then(Weak::upgrade);
        if let Some(channel) = channel {
            channel.bell.send_replace(());
        }
    }

    fn channels(&self) -> MutexGuard<'_, Channels> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Channel {
    /// Ready whenever the bell rings.
    pub(crate) fn bell(&self) -> watch::Receiver<()> {
        self.bell.subscribe()
    }

    /// Events that are in the log now, from this number on.
    pub(crate) fn publish(&self, first: u64, events: Vec<Bytes>, over: bool) {
        {
            let mut tail = self.tail();
            if tail.next() != first {
                *tail = Tail { first, ..Tail::default() };
            }
            tail.bytes += events.iter().map(Bytes::len).sum::<usize>();
            tail.events.extend(events);
            tail.over = over;
            while tail.bytes > TAIL
                && let Some(oldest) = tail.events.pop_front()
            {
                tail.bytes -= oldest.len();
                tail.first += 1;
            }
        }
        self.bell.send_replace(());
    }

    /// What comes from this number on, as far as it is kept here.
    pub(crate) fn from(&self, number: u64, most: usize) -> Newest {
        let tail = self.tail();
        let Some(skip) = number.checked_sub(tail.first).and_then(|skip| usize::try_from(skip).ok()) else {
            return Newest::Unknown;
        };
        let mut bytes = 0;
        let fits = |event: &&Bytes| {
            bytes += event.len();
            bytes <= most
        };
        let mut events: Vec<Bytes> = tail.events.iter().skip(skip).take_while(fits).cloned().collect();
        if events.is_empty() {
            // At least one, however large it is.
            events.extend(tail.events.get(skip).cloned());
        }
        if events.is_empty() && !(tail.over && skip >= tail.events.len()) {
            return Newest::Unknown;
        }
        let last = tail.over && skip + events.len() >= tail.events.len();
        Newest::Events(events, last)
    }

    /// What to log instead of these events, which the store refused: with those before them that it has lost. A database
    /// that crashes may forget what it took last, and readers have seen it. None if that is not why, or if they are not kept
    /// here any more.
    pub(crate) fn mended(&self, refused: &store::Error, events: &NewEvents) -> Option<NewEvents> {
        let store::Error::OutOfOrder { expected: from } = *refused else { return None };
        if from >= events.first {
            return None;
        }
        let tail = self.tail();
        let skip = usize::try_from(from.checked_sub(tail.first)?).ok()?;
        let lost = usize::try_from(events.first.checked_sub(from)?).ok()?;
        let kept = tail.events.len().checked_sub(skip)? >= lost;
        let lost = tail.events.iter().skip(skip).take(lost);
        kept.then(|| NewEvents { first: from, events: lost.chain(&events.events).cloned().collect() })
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tail {
    fn next(&self) -> u64 {
        self.first + self.events.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(texts: &[&'static str]) -> Vec<Bytes> {
        texts.iter().map(|text| Bytes::from_static(text.as_bytes())).collect()
    }

    #[test]
    fn the_newest_events_are_here_and_the_rest_is_in_the_log() {
        let live = Live::default();
        let channel = live.channel("r");
        assert_eq!(channel.from(0, 100), Newest::Unknown);
        channel.publish(0, events(&["a", "b"]), false);
        channel.publish(2, events(&["c"]), false);
        assert_eq!(channel.from(1, 100), Newest::Events(events(&["b", "c"]), false));
        assert_eq!(channel.from(0, 2), Newest::Events(events(&["a", "b"]), false));
        assert_eq!(channel.from(2, 0), Newest::Events(events(&["c"]), false), "one at least");
        assert_eq!(channel.from(3, 100), Newest::Unknown, "nothing yet");
        channel.publish(3, events(&["d"]), true);
        assert_eq!(channel.from(3, 100), Newest::Events(events(&["d"]), true));
        assert_eq!(channel.from(4, 100), Newest::Events(Vec::new(), true));
        assert_eq!(channel.from(9, 100), Newest::Events(Vec::new(), true));
    }

    #[test]
    fn a_long_stream_costs_no_more_than_its_tail() {
        let channel = Live::default().channel("r");
        for number in 0..100 {
            channel.publish(number, vec![Bytes::from(vec![b'x'; TAIL / 10])], false);
        }
        assert_eq!(channel.from(50, 1), Newest::Unknown);
        assert!(matches!(channel.from(95, usize::MAX), Newest::Events(events, false) if events.len() == 5));
    }

    #[test]
    fn what_the_log_lost_is_here_as_long_as_the_tail_is() {
        let channel = Live::default().channel("r");
        channel.publish(2, events(&["c", "d", "e"]), false);
        let new = NewEvents { first: 5, events: events(&["f"]) };
        let refused = |expected| store::Error::OutOfOrder { expected };
        let mended = |expected| channel.mended(&refused(expected), &new).map(|all| (all.first, all.events));
        assert_eq!(mended(4), Some((4, events(&["e", "f"]))));
        assert_eq!(mended(2), Some((2, events(&["c", "d", "e", "f"]))));
        assert_eq!(mended(1), None, "older than the tail");
        assert_eq!(mended(5), None, "nothing is lost");
        assert_eq!(mended(6), None, "the log has more than is known here");
        let later = NewEvents { first: 6, events: events(&["g"]) };
        assert!(channel.mended(&refused(4), &later).is_none(), "one between them was never shown");
        assert!(channel.mended(&store::Error::Lost, &new).is_none());
    }

    #[test]
    fn what_nobody_holds_is_forgotten() {
        let live = Live::default();
        for number in 0..10_000 {
            drop(live.channel(&format!("resp_{number}")));
        }
        assert!(live.channels().by_response.len() < 200);
        let kept = live.channel("kept");
        assert!(Arc::ptr_eq(&kept, &live.channel("kept")));
    }
}
