//! What is done for sessions besides requests: leases are extended and given back, what has expired is swept.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::{Sessions, lease};
use crate::clock;
use crate::idempotency::Keys;

/// A life is a few of these long at least, and a sweep of nothing costs next to nothing.
const SWEEP_EVERY: Duration = Duration::from_mins(1);
const SWEEP_OFTEN: Duration = Duration::from_secs(1);
const BATCH: usize = 500;

/// What expires is kept for this much longer: a turn that continues it may be under way.
const LONGEST_TURN: Duration = Duration::from_hours(1);

/// How far the wall clock may drift from the steady one between two sweeps. A clock that jumped must not expire what
/// is young.
const JUMP: Duration = Duration::from_hours(1);

/// Runs for as long as the server does.
pub(crate) async fn maintain(sessions: Arc<Sessions>, keys: Arc<Keys>) {
    let now = Instant::now();
    let mut extend = interval_at(now + lease::LEASE / 3, lease::LEASE / 3);
    let every = sessions.config.ttl.map_or(SWEEP_EVERY, |ttl| (ttl / 10).clamp(SWEEP_OFTEN, SWEEP_EVERY));
    let mut sweep = interval_at(now + every, every);
    extend.set_missed_tick_behavior(MissedTickBehavior::Delay);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let grace = sessions.config.ttl.map_or(LONGEST_TURN, |ttl| ttl.min(LONGEST_TURN));
    let grace = i64::try_from(grace.as_millis()).unwrap_or(0);
    let mut clock = Steady::new(clock::unix_millis(), now);
    loop {
        tokio::select! {
            () = sessions.leases.returned() => sessions.leases.give_back().await,
            () = keys.returned() => keys.give_back().await,
            _ = extend.tick() => {
                sessions.leases.extend().await;
                keys.give_back().await;
            }
            at = sweep.tick() => {
                if let Some(now) = clock.check(clock::unix_millis(), at) {
                    sessions.sweep(now.saturating_sub(grace)).await;
                    sessions.sweep_logs(now).await;
                }
            }
        }
    }
}

impl Sessions {
    /// Event logs whose time is over, and keys.
    async fn sweep_logs(&self, now: i64) {
        let ttl = i64::try_from(self.config.event_ttl.as_millis()).unwrap_or(i64::MAX);
        while matches!(self.observe(self.store.sweep_logs(now.saturating_sub(ttl), BATCH).await), Ok(BATCH)) {}
        while matches!(self.observe(self.store.sweep_keys(BATCH).await), Ok(BATCH)) {}
    }

    /// Small batches: a turn that waits to be stored waits for one of them at most.
    async fn sweep(&self, now: i64) {
        let mut swept = 0;
        loop {
            match self.observe(self.store.sweep(now, BATCH).await) {
                Ok(count) => {
                    swept += count;
                    if count < BATCH {
                        break;
                    }
                }
                Err(_) => break,
            }
            tokio::task::yield_now().await;
        }
        if swept > 0 {
            tracing::info!(swept, "expired responses are gone");
        }
    }
}

/// The wall clock, as long as it moves with the steady one.
#[derive(Debug)]
struct Steady {
    wall: u64,
    steady: Instant,
}

impl Steady {
    const fn new(wall: u64, steady: Instant) -> Self {
        Self { wall, steady }
    }

    /// The time in milliseconds; None for one interval after a jump.
    fn check(&mut self, wall: u64, steady: Instant) -> Option<i64> {
        let passed = u64::try_from(steady.duration_since(self.steady).as_millis()).unwrap_or(u64::MAX);
        let drift = wall.abs_diff(self.wall.saturating_add(passed));
        *self = Self { wall, steady };
        if u128::from(drift) > JUMP.as_millis() {
            tracing::warn!(drift_ms = drift, "the clock jumped: nothing expires for a while");
            return None;
        }
        i64::try_from(wall).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_jumped_expires_nothing_for_one_interval() {
        let start = Instant::now();
        let (minute, hour) = (60_000, 3_600_000);
        let mut clock = Steady::new(1_000 * hour, start);
        let mut at = start;
        let mut wall = 1_000 * hour;
        for (moved, expected) in [
            (minute, true),
            // Forty years ahead, and then onwards from there.
            (350_400 * hour, false),
            (minute, true),
            // Two hours back.
            (0, false),
            (minute, true),
            // A little off is no jump.
            (minute + minute / 2, true),
        ] {
            at += SWEEP_EVERY;
            wall = if moved == 0 { wall - 2 * hour } else { wall + moved };
            assert_eq!(clock.check(wall, at).is_some(), expected, "{moved}");
        }
    }
}
