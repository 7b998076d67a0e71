//! What the whole server can bear: turns at once, and memory. Beyond that the newest work is sent away, at once, so that
//! what runs can end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use super::memory::{self, Used};
use crate::config::LimitsConfig;
use crate::error::{ApiError, Code};
use crate::tasks::spawn_service;

/// How often it is looked how much memory there is.
const LOOK: Duration = Duration::from_millis(200);

/// Every so many looks the threads are asked for what they keep, while there is not much left.
const THREADS: u32 = 5;

/// What a turn is taken for until it can be measured: itself, its client's connection, and the one to its provider. What a
/// request brings is counted elsewhere.
const TURN: u64 = 128 << 10;

/// So many turns there is always room for, as far as can be said before they are measured: how much the process takes by
/// itself is a guess as well.
const FEW: usize = 8;

/// After so many looks without a turn what is used is what the process keeps, and not what requests hold.
const REST: u32 = 15;
/// Of the memory that may be used, in percent: what it may keep so. What is more is no reason to refuse anybody: refusing
/// gives none of it back, and new turns are made in it.
const KEPT: u64 = 75;

/// Of the memory that may be used, in percent: where each state begins, and where it ends.
const HIGH: (u64, u64) = (85, 80);
const CRITICAL: (u64, u64) = (95, 90);

/// How much memory is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Pressure {
    None,
    /// No new turns.
    High,
    /// Nothing new at all.
    Critical,
}

impl Pressure {
    fn after(self, used: u64, limit: u64) -> Self {
        let percent = u128::from(used) * 100 / u128::from(limit.max(1));
        let reached =
            |state: Self, (begins, ends): (u64, u64)| percent >= u128::from(if self >= state { ends } else { begins });
        match () {
            () if reached(Self::Critical, CRITICAL) => Self::Critical,
            () if reached(Self::High, HIGH) => Self::High,
            () => Self::None,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Load {
    turns: AtomicUsize,
    most_turns: usize,
    memory: Option<u64>,
    /// As many turns as there is memory for.
    room: AtomicUsize,
    /// Whether somebody was sent away since the last look because there was no room.
    crowded: AtomicBool,
    pressure: AtomicU8,
    pressed: Notify,
}

/// What the looks at the memory have shown so far.
#[derive(Debug)]
struct Seen {
    pressure: Pressure,
    /// The least that was ever used: what the process takes by itself, pages of files with it, so that those of the program
    /// need not be read again and again while it is busy.
    least: u64,
    /// Looks at which there was no turn, one after the other.
    idle: u32,
    /// How much more the process keeps than it may, as was found when it was at rest.
    excess: u64,
}

impl Seen {
    const NOTHING: Self = Self { pressure: Pressure::None, least: u64::MAX, idle: 0, excess: 0 };

    /// What counts of so much that is used beside so many turns; and whether it has just come to rest while memory was
    /// short.
    fn count(&mut self, used: u64, turns: usize, limit: u64) -> (u64, bool) {
        let beyond = used.saturating_sub(limit / 100 * KEPT);
        self.idle = if turns == 0 { self.idle.saturating_add(1) } else { 0 };
        let rests = self.idle == REST && self.pressure > Pressure::None;
        // It may give something back later, and is not given it again.
        self.excess = if rests { beyond } else { self.excess.min(beyond) };
        (used - self.excess, rests)
    }
}

impl Load {
    pub(super) fn new(config: &LimitsConfig) -> Arc<Self> {
        Arc::new(Self {
            turns: AtomicUsize::new(0),
            most_turns: config.turns.unwrap_or(usize::MAX),
            memory: config.memory.or_else(memory::limit),
            room: AtomicUsize::new(usize::MAX),
            crowded: AtomicBool::new(false),
            pressure: AtomicU8::new(Pressure::None as u8),
            pressed: Notify::new(),
        })
    }

    /// A turn begins, and is there until this is dropped.
    pub(super) fn enter(self: &Arc<Self>) -> Result<Place, ApiError> {
        self.has_memory()?;
        let most = self.most_turns.min(self.room.load(Ordering::Relaxed));
        let more = |turns: usize| (turns < most).then_some(turns + 1);
        match self.turns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(Place(Arc::clone(self))),
            Err(turns) => Err(self.full(turns)),
        }
    }

    /// Why there is no place beside so many turns.
    fn full(&self, turns: usize) -> ApiError {
        if turns >= self.most_turns {
            return busy();
        }
        self.crowded.store(true, Ordering::Relaxed);
        short_of_memory()
    }

    /// How many turns there are now.
    pub(crate) fn turns(&self) -> usize {
        self.turns.load(Ordering::Relaxed)
    }

    /// How short memory is: 0 to 2.
    pub(crate) fn pressure(&self) -> u8 {
        self.pressure.load(Ordering::Relaxed)
    }

    /// How much memory there may be used.
    pub(crate) const fn memory(&self) -> Option<u64> {
        self.memory
    }

    /// Whether there is memory for turns.
    pub(crate) fn has_memory(&self) -> Result<(), ApiError> {
        let short = self.pressure.load(Ordering::Relaxed) >= Pressure::High as u8;
        if short { Err(short_of_memory()) } else { Ok(()) }
    }

    /// Whether turns may begin, as far as can be said before one does.
    pub(crate) fn takes_turns(&self) -> Result<(), ApiError> {
        self.has_memory()?;
        let (turns, room) = (self.turns(), self.room.load(Ordering::Relaxed));
        if turns >= self.most_turns.min(room) { Err(self.full(turns)) } else { Ok(()) }
    }

    /// Whether anything may begin.
    pub(crate) fn takes_requests(&self) -> Result<(), ApiError> {
        let critical = self.pressure.load(Ordering::Relaxed) >= Pressure::Critical as u8;
        if critical { Err(short_of_memory()) } else { Ok(()) }
    }

    /// Ready each time that memory has become short: what can be done without is to go.
    pub(crate) async fn pressed(&self) {
        self.pressed.notified().await;
    }

    /// Looks at the memory for as long as the server runs.
    pub(super) async fn watch(&self) {
        let Some(limit) = self.memory else { return std::future::pending().await };
        tracing::debug!(limit, "memory is watched");
        let mut ticks = tokio::time::interval(LOOK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (mut seen, mut looks) = (Seen::NOTHING, 0_u32);
        loop {
            ticks.tick().await;
            let Some(used) = memory::used() else { return std::future::pending().await };
            if used.own > limit / 2 {
                memory::return_unused();
                looks = looks.wrapping_add(1);
                if looks.is_multiple_of(THREADS) {
                    tidy_threads();
                }
            }
            self.look(&mut seen, used, limit);
        }
    }

    /// Decides what may begin until the next look.
    fn look(&self, seen: &mut Seen, used: Used, limit: u64) {
        seen.least = seen.least.min(used.resident);
        let line = limit / 100 * HIGH.0;
        let (counted, rests) = seen.count(used.own, self.turns(), limit);
        let turns_in = |bytes: u64| usize::try_from(bytes / TURN).unwrap_or(usize::MAX);
        // A turn that has just begun is not in what is measured, but was counted: so all of them together must fit beside
        // what the process takes by itself, and new ones into what is left.
        let all = turns_in(line.saturating_sub(seen.least)).max(FEW);
        let new = self.turns().saturating_add(turns_in(line.saturating_sub(counted)));
        self.room.store(all.min(new), Ordering::Relaxed);
        let (before, now) = (seen.pressure, seen.pressure.after(counted, limit));
        seen.pressure = now;
        let crowded = self.crowded.swap(false, Ordering::Relaxed) && used.own > limit / 4 * 3;
        if now != before {
            self.changes(now, used.own, limit);
        }
        if now > before || crowded || rests {
            self.pressed.notify_one();
        }
    }

    fn changes(&self, now: Pressure, used: u64, limit: u64) {
        self.pressure.store(now as u8, Ordering::Relaxed);
        match now {
            Pressure::None => tracing::info!(used, limit, "there is memory again"),
            Pressure::High => tracing::warn!(used, limit, "memory is short: no new turns"),
            Pressure::Critical => tracing::error!(used, limit, "memory is short: no new requests"),
        }
    }
}

/// Has every thread give back what it keeps: those that rest are woken, since they do it before they rest.
pub(super) fn tidy_threads() {
    memory::ask_threads();
    for _ in 0..tokio::runtime::Handle::current().metrics().num_workers() {
        spawn_service(tokio::task::yield_now());
    }
}

fn busy() -> ApiError {
    ApiError::new(Code::Overloaded, "The server runs as many requests as it can. Please retry in a moment.")
}

fn short_of_memory() -> ApiError {
    ApiError::new(Code::Overloaded, "The server is short of memory. Please retry in a moment.")
}

/// A turn's place among all of the server.
#[derive(Debug)]
pub(super) struct Place(Arc<Load>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.turns.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_does_not_flutter() {
        let mut pressure = Pressure::None;
        for (used, expected) in [
            (84, Pressure::None),
            (85, Pressure::High),
            (81, Pressure::High),
            (94, Pressure::High),
            (95, Pressure::Critical),
            (91, Pressure::Critical),
            (89, Pressure::High),
            (80, Pressure::High),
            (79, Pressure::None),
            (84, Pressure::None),
            (200, Pressure::Critical),
            (0, Pressure::None),
        ] {
            pressure = pressure.after(used, 100);
            assert_eq!(pressure, expected, "{used}");
        }
    }

    #[test]
    fn no_more_turns_than_may_be_and_none_without_memory() {
        let load = load(2);
        let (one, _other) = (load.enter().unwrap(), load.enter().unwrap());
        let refused = load.enter().unwrap_err();
        assert_eq!((refused.status.as_u16(), refused.retry_after), (503, Some(1)));
        drop(one);
        let again = load.enter();
        assert!(again.is_ok());
        drop(again);
        load.changes(Pressure::High, 0, 0);
        assert!(load.enter().is_err() && load.takes_requests().is_ok());
        load.changes(Pressure::Critical, 0, 0);
        assert!(load.takes_requests().is_err());
        load.changes(Pressure::None, 0, 0);
        assert!(load.enter().is_ok());
    }

    /// Turns that begin between two looks are counted before they can be measured.
    #[test]
    fn as_many_turns_begin_as_there_is_memory_for() {
        const MIB: u64 = 1 << 20;
        // The limit, what was used at first and is now (of its own, with files), turns that run, how many there may be.
        for (limit, first, own, resident, turns, room) in [
            (64, 40, 14, 43, 0, 115),
            (128, 43, 15, 43, 0, 526),
            (128, 43, 15, 43, 500, 526),
            // What came back to nobody leaves less for new ones; those that run are in what is measured.
            (128, 43, 88, 120, 0, 166),
            (128, 43, 88, 120, 100, 266),
            (128, 43, 100, 130, 300, 370),
            (2048, 43, 100, 130, 300, 13_426),
            // What the process takes by itself is more than a small limit: a few can always be tried.
            (64, 70, 41, 70, 0, FEW),
            (64, 70, 41, 70, 8, FEW),
        ] {
            let (load, mut seen) = (load(usize::MAX), Seen::NOTHING);
            load.look(&mut seen, Used { own: 14 * MIB, resident: first * MIB }, limit * MIB);
            load.turns.store(turns, Ordering::Relaxed);
            load.look(&mut seen, Used { own: own * MIB, resident: resident * MIB }, limit * MIB);
            let found = load.room.load(Ordering::Relaxed);
            assert_eq!(found, room, "{limit} MiB: {first}, then {own} of {resident} with {turns} turns");
            let places: Vec<_> = std::iter::from_fn(|| load.enter().ok()).collect();
            assert_eq!(places.len(), room - turns, "{limit} MiB");
            assert!(load.takes_turns().is_err() && load.crowded.load(Ordering::Relaxed));
            drop(places);
            assert!(turns == room || load.takes_turns().is_ok());
        }
    }

    /// Pages of files come and go; and once what turns took is given back, there is memory again.
    #[test]
    fn only_what_cannot_be_taken_back_is_a_shortage() {
        let (load, mut seen) = (load(usize::MAX), Seen::NOTHING);
        let mut look = |own, resident| load.look(&mut seen, Used { own, resident }, 100 << 20);
        for (own, resident, fits, pressure) in [
            (15, 43, true, 0),
            (70, 99, true, 0),
            (85, 90, false, 1),
            (96, 97, false, 2),
            (84, 99, false, 1),
            (60, 120, true, 0),
        ] {
            look(own << 20, resident << 20);
            assert_eq!((load.enter().is_ok(), load.pressure()), (fits, pressure), "{own} of {resident}");
        }
    }

    /// What a burst leaves behind may be more than memory is to have: nobody would ever be let in again.
    #[test]
    fn what_the_process_keeps_at_rest_is_no_shortage() {
        let (load, mut seen) = (load(usize::MAX), Seen::NOTHING);
        let mut look = |turns: usize, own: u64| {
            load.turns.store(turns, Ordering::Relaxed);
            load.look(&mut seen, Used { own: own << 20, resident: own << 20 }, 100 << 20);
            load.pressure()
        };
        assert_eq!((look(0, 20), look(9, 97)), (0, 2));
        // It is waited whether it comes back by itself, and for those that run.
        for _ in 1..REST {
            assert_eq!(look(0, 96), 2);
        }
        assert_eq!((look(1, 96), look(0, 96)), (2, 2));
        for _ in 2..REST {
            assert_eq!(look(0, 96), 2);
        }
        assert_eq!(look(0, 96), 0);
        // From there on as ever, beside what is kept: 21 are not counted.
        assert_eq!([look(3, 105), look(3, 106), look(3, 102), look(3, 100)], [0, 1, 1, 0]);
        // What came back is counted again.
        assert_eq!([look(3, 80), look(3, 89), look(3, 90)], [0, 0, 1]);
        assert_eq!([look(3, 70), look(3, 84), look(3, 85)], [0, 0, 1]);
        // Far beyond, a few are tried.
        assert_eq!(look(0, 130), 2);
        for _ in 1..REST {
            look(0, 130);
        }
        assert_eq!(look(0, 130), 0);
        assert!(load.takes_turns().is_ok());
    }

    fn load(most_turns: usize) -> Arc<Load> {
        Arc::new(Load {
            turns: AtomicUsize::new(0),
            most_turns,
            memory: None,
            room: AtomicUsize::new(usize::MAX),
            crowded: AtomicBool::new(false),
            pressure: AtomicU8::new(0),
            pressed: Notify::new(),
        })
    }
}
