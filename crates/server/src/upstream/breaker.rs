//! The breaker of one target: after many failures it lets one request per second through, until one goes well. An answer
//! that breaks off cannot be asked for elsewhere, so where it was such failures, and others can answer, less and less goes
//! there.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bridge::FailureClass;
use tokio::time::Instant;

/// How long an open breaker waits between two probes.
pub(super) const PROBE: Duration = Duration::from_secs(1);

/// The longest wait between two of them, after answers that broke off, where others can answer.
const RAREST: Duration = Duration::from_secs(30);

/// The share of failures is judged over this time, and only if there were so many calls.
const WINDOW: Duration = Duration::from_secs(10);
const ENOUGH: u32 = 20;

#[derive(Debug)]
pub(super) struct Breaker {
    /// Failures in a row that open it; 0: it stays closed.
    limit: u32,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    /// All requests go; how they fared is counted.
    Closed(Tally),
    /// Now and then one request goes; the others are told what kind of thing went wrong last: in words it was said of
    /// another's request. Where that broke off an answer, only a whole one is a good sign.
    Open { tried_at: Instant, wait: Duration, last: FailureClass, broke_off: bool },
}

/// What has gone well and what has not.
#[derive(Debug)]
struct Tally {
    in_a_row: u32,
    window_began: Instant,
    calls: u32,
    failures: u32,
}

impl Breaker {
    pub(super) fn new(limit: u32) -> Self {
        Self { limit, state: Mutex::new(State::Closed(Tally::new())) }
    }

    /// May this request go? If not: what went wrong last. Of those who ask while it is open, one per second may, or fewer
    /// where somebody else can answer them.
    pub(super) fn enter(&self, alone: bool) -> Result<(), FailureClass> {
        let State::Open { tried_at, wait, last, .. } = &mut *self.state() else { return Ok(()) };
        let (now, wait) = (Instant::now(), if alone { PROBE } else { *wait });
        if now < *tried_at + wait {
            return Err(*last);
        }
        *tried_at = now;
        Ok(())
    }

    /// An answer begins: it is alive, but how it fares will only show at the end. Says whether that closed the breaker.
    pub(super) fn begins(&self) -> bool {
        let mut state = self.state();
        let closes = matches!(*state, State::Open { broke_off: false, .. });
        if closes {
            *state = State::Closed(Tally::new());
        }
        closes
    }

    /// The target answered to the end, or refused: it is well. Says whether that closed the breaker.
    pub(super) fn good(&self) -> bool {
        match &mut *self.state() {
            State::Closed(tally) => {
                tally.count(false);
                false
            }
            open @ State::Open { .. } => {
                // What was before is another time.
                *open = State::Closed(Tally::new());
                true
            }
        }
    }

    /// The target failed. Says whether that opened the breaker.
    pub(super) fn bad(&self, failure: FailureClass) -> bool {
        self.fails(failure, false)
    }

    /// The same in the middle of an answer.
    pub(super) fn broke_off(&self, failure: FailureClass) -> bool {
        self.fails(failure, true)
    }

    fn fails(&self, failure: FailureClass, broke_off: bool) -> bool {
        if self.limit == 0 {
            return false;
        }
        let mut state = self.state();
        match &mut *state {
            State::Open { tried_at, wait, last, broke_off: before } => {
                (*last, *before) = (failure, broke_off);
                if broke_off {
                    (*tried_at, *wait) = (Instant::now(), wait.saturating_mul(2).min(RAREST));
                }
                false
            }
            State::Closed(tally) => {
                tally.count(true);
                let opens = tally.in_a_row >= self.limit || tally.is_mostly_failures();
                if opens {
                    let (tried_at, wait) = (Instant::now(), PROBE);
                    *state = State::Open { tried_at, wait, last: failure, broke_off };
                }
                opens
            }
        }
    }

    /// In a word, and how many failures there were in a row; none are counted while it is open.
    pub(super) fn shown(&self) -> (&'static str, u32) {
        match &*self.state() {
            State::Closed(tally) => ("closed", tally.in_a_row),
            State::Open { tried_at, wait, .. } if *tried_at + *wait <= Instant::now() => ("half_open", 0),
            State::Open { .. } => ("open", 0),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tally {
    fn new() -> Self {
        Self { in_a_row: 0, window_began: Instant::now(), calls: 0, failures: 0 }
    }

    fn count(&mut self, failed: bool) {
        if self.window_began.elapsed() >= WINDOW {
            (self.window_began, self.calls, self.failures) = (Instant::now(), 0, 0);
        }
        self.calls = self.calls.saturating_add(1);
        self.failures = self.failures.saturating_add(u32::from(failed));
        self.in_a_row = if failed { self.in_a_row.saturating_add(1) } else { 0 };
    }

    const fn is_mostly_failures(&self) -> bool {
        self.calls >= ENOUGH && self.failures.saturating_mul(2) >= self.calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOWN: FailureClass = FailureClass::Server;

    #[tokio::test(start_paused = true)]
    async fn it_opens_after_failures_in_a_row_and_probes_once_per_second() {
        let breaker = Breaker::new(3);
        for opened in [false, false, true] {
            assert_eq!(breaker.enter(true), Ok(()));
            assert_eq!(breaker.bad(DOWN), opened);
        }
        for _ in 0..3 {
            assert_eq!(breaker.enter(true), Err(DOWN));
            tokio::time::advance(PROBE).await;
            assert_eq!(breaker.enter(true), Ok(()), "a probe");
            assert_eq!(breaker.enter(true), Err(DOWN), "one only");
            assert!(!breaker.bad(DOWN));
        }
        tokio::time::advance(PROBE).await;
        assert_eq!(breaker.enter(true), Ok(()));
        assert!(breaker.good());
        assert_eq!((breaker.enter(true), breaker.enter(true), breaker.good()), (Ok(()), Ok(()), false));
    }

    #[tokio::test(start_paused = true)]
    async fn answers_that_break_off_count_and_only_a_whole_one_makes_up_for_them() {
        let breaker = Breaker::new(2);
        for opened in [false, true] {
            assert!(!breaker.begins());
            assert_eq!(breaker.broke_off(DOWN), opened);
        }
        assert!(!breaker.begins() && breaker.enter(true).is_err(), "it began well each time");
        assert!(breaker.good());
        // What was refused is answered again: it is up at once, though the answer may take long.
        let breaker = Breaker::new(1);
        breaker.bad(DOWN);
        assert!(breaker.begins() && breaker.enter(true).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn answers_that_break_off_are_risked_less_and_less_where_others_can_answer() {
        let breaker = Breaker::new(1);
        breaker.broke_off(DOWN);
        for seconds in [1, 2, 4, 8, 16, 30, 30] {
            tokio::time::advance(Duration::from_millis(seconds * 1000 - 1)).await;
            assert_eq!(breaker.enter(false), Err(DOWN), "{seconds}");
            assert_eq!(breaker.shown().0, "open", "{seconds}");
            tokio::time::advance(Duration::from_millis(1)).await;
            assert_eq!((breaker.enter(false), breaker.begins()), (Ok(()), false), "{seconds}");
            breaker.broke_off(DOWN);
        }
        tokio::time::advance(PROBE).await;
        assert_eq!(breaker.enter(true), Ok(()), "nobody else can");
        assert!(breaker.good() && breaker.enter(false).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_never_reports_does_not_block_the_next() {
        let breaker = Breaker::new(1);
        breaker.bad(DOWN);
        for _ in 0..3 {
            tokio::time::advance(PROBE).await;
            assert_eq!(breaker.enter(true), Ok(()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_opens_when_most_calls_fail() {
        let breaker = Breaker::new(100);
        let mut opened = 0;
        for _ in 0..ENOUGH {
            breaker.good();
            opened += u32::from(breaker.bad(DOWN));
        }
        assert_eq!(opened, 1);
        let patient = Breaker::new(100);
        for _ in 0..ENOUGH {
            patient.good();
            assert!(!patient.bad(DOWN));
            tokio::time::advance(WINDOW).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_can_be_switched_off() {
        let breaker = Breaker::new(0);
        assert!((0..100).all(|_| !breaker.bad(DOWN) && breaker.enter(true).is_ok()));
    }
}
