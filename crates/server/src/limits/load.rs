//! What the whole server can bear: turns at once, and memory. Beyond that the newest work is sent away, at once, so that
//! what runs can end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use super::memory;
use crate::config::LimitsConfig;
use crate::error::{ApiError, Code};

/// How often it is looked how much memory there is.
const LOOK: Duration = Duration::from_millis(200);

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
    pressure: AtomicU8,
    pressed: Notify,
}

impl Load {
    pub(super) fn new(config: &LimitsConfig) -> Arc<Self> {
        Arc::new(Self {
            turns: AtomicUsize::new(0),
            most_turns: config.turns.unwrap_or(usize::MAX),
            memory: config.memory.or_else(memory::limit),
            pressure: AtomicU8::new(Pressure::None as u8),
            pressed: Notify::new(),
        })
    }

    /// A turn begins, and is there until this is dropped.
    pub(super) fn enter(self: &Arc<Self>) -> Result<Place, ApiError> {
        self.takes_turns()?;
        let more = |turns: usize| (turns < self.most_turns).then_some(turns + 1);
        match self.turns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(Place(Arc::clone(self))),
            Err(_) => Err(busy()),
        }
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
        if self.turns.load(Ordering::Relaxed) >= self.most_turns { Err(busy()) } else { Ok(()) }
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
        let mut pressure = Pressure::None;
        loop {
            ticks.tick().await;
            let Some(used) = memory::used() else { return std::future::pending().await };
            if used > limit / 2 {
                memory::return_unused();
            }
            let now = pressure.after(used, limit);
            if now != pressure {
                self.changes(pressure, now, used, limit);
            }
            pressure = now;
        }
    }

    fn changes(&self, before: Pressure, now: Pressure, used: u64, limit: u64) {
        self.pressure.store(now as u8, Ordering::Relaxed);
        match now {
            Pressure::None => tracing::info!(used, limit, "there is memory again"),
            Pressure::High => tracing::warn!(used, limit, "memory is short: no new turns"),
            Pressure::Critical => tracing::error!(used, limit, "memory is short: no new requests"),
        }
        if now > before {
            self.pressed.notify_one();
        }
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
        let load = |turns| Load {
            turns: AtomicUsize::new(0),
            most_turns: turns,
            memory: None,
            pressure: AtomicU8::new(0),
            pressed: Notify::new(),
        };
        let load = Arc::new(load(2));
        let (one, _other) = (load.enter().unwrap(), load.enter().unwrap());
        let refused = load.enter().unwrap_err();
        assert_eq!((refused.status.as_u16(), refused.retry_after), (503, Some(1)));
        drop(one);
        let again = load.enter();
        assert!(again.is_ok());
        drop(again);
        load.changes(Pressure::None, Pressure::High, 0, 0);
        assert!(load.enter().is_err() && load.takes_requests().is_ok());
        load.changes(Pressure::High, Pressure::Critical, 0, 0);
        assert!(load.takes_requests().is_err());
        load.changes(Pressure::Critical, Pressure::None, 0, 0);
        assert!(load.enter().is_ok());
    }
}
