//! How much was used in the last minute: the minute that runs, and of the one before the part that is less than a minute
//! ago, as if it had been used evenly. Two numbers, whatever was used. By a clock that nobody can turn.

use std::time::Duration;

use tokio::time::Instant;

pub(super) const MINUTE: Duration = Duration::from_mins(1);
const MILLIS: u64 = 60_000;

#[derive(Debug)]
pub(super) struct Window {
    /// When the minute that runs began, and its number.
    began: Instant,
    number: u64,
    current: u64,
    before: u64,
}

impl Window {
    pub(super) const fn new(now: Instant) -> Self {
        Self { began: now, number: 0, current: 0, before: 0 }
    }

    fn advance(&mut self, now: Instant) {
        let minutes = now.saturating_duration_since(self.began).as_secs() / MINUTE.as_secs();
        if minutes > 0 {
            self.before = if minutes == 1 { self.current } else { 0 };
            self.current = 0;
            self.number += minutes;
            self.began += Duration::from_secs(minutes * MINUTE.as_secs());
        }
    }

    /// Milliseconds of the minute that runs.
    fn elapsed(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.began).as_millis()).unwrap_or(MILLIS).min(MILLIS)
    }

    /// What counts now.
    pub(super) fn used(&mut self, now: Instant) -> u64 {
        self.advance(now);
        let left = u128::from(MILLIS - self.elapsed(now));
        let overlap = (u128::from(self.before) * left).div_ceil(u128::from(MILLIS));
        self.current.saturating_add(u64::try_from(overlap).unwrap_or(u64::MAX))
    }

    /// How long until so much more fits; None: it fits.
    pub(super) fn wait(&mut self, limit: u64, more: u64, now: Instant) -> Option<Duration> {
        if self.used(now).saturating_add(more) <= limit {
            return None;
        }
        let elapsed = self.elapsed(now);
        let millis = match limit.checked_sub(more).and_then(|room| room.checked_sub(self.current)) {
            Some(room) => until_below(self.before, room).saturating_sub(elapsed),
            // When this minute is the one before.
            None => (MILLIS - elapsed) + until_below(self.current, limit.saturating_sub(more)),
        };
        Some(Duration::from_millis(millis.max(1)))
    }

    /// So much is used. Gives the number of the minute.
    pub(super) fn add(&mut self, amount: u64, now: Instant) -> u64 {
        self.advance(now);
        self.current = self.current.saturating_add(amount);
        self.number
    }

    /// So much of what was added in that minute was not used.
    pub(super) fn give_back(&mut self, amount: u64, number: u64, now: Instant) {
        self.advance(now);
        match self.number.saturating_sub(number) {
            0 => self.current = self.current.saturating_sub(amount),
            1 => self.before = self.before.saturating_sub(amount),
            // It does not count any more.
            _ => {}
        }
    }

    /// How long until nothing that was used counts any more.
    pub(super) fn reset(&mut self, now: Instant) -> Duration {
        self.advance(now);
        let rest = Duration::from_millis(MILLIS - self.elapsed(now));
        match (self.current, self.before) {
            (0, 0) => Duration::ZERO,
            (0, _) => rest,
            _ => rest + MINUTE,
        }
    }
}

/// Into a minute, when so much of the one before still counts as there is room for.
fn until_below(before: u64, room: u64) -> u64 {
    if before <= room {
        return 0;
    }
    let rest = u128::from(room) * u128::from(MILLIS) / u128::from(before);
    MILLIS - u64::try_from(rest).unwrap_or(MILLIS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_minute_old_counts_no_more() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut window = Window::new(start);
        for (second, add, used, reset) in [
            (0, 60, 60, 120),
            (59, 0, 60, 61),
            // Of the minute before, the part that is less than a minute ago.
            (60, 0, 60, 60),
            (75, 0, 45, 45),
            (90, 10, 40, 90),
            (119, 0, 11, 61),
            (120, 0, 10, 60),
            (150, 0, 5, 30),
            (180, 0, 0, 0),
            (10_000, 0, 0, 0),
        ] {
            window.add(add, at(second));
            assert_eq!((window.used(at(second)), window.reset(at(second)).as_secs()), (used, reset), "{second}");
        }
    }

    /// Whoever waits as long as it was told gets in, and not a moment earlier.
    #[test]
    fn the_wait_is_as_long_as_it_must_be() {
        let start = Instant::now();
        for (limit, first, second, more) in [
            (10, 10, 0, 1),
            (10, 10, 0, 10),
            (100, 60, 40, 25),
            (1, 1, 0, 1),
            (7, 5, 2, 3),
            (1_000_000, 999_999, 200_000, 2),
        ] {
            let mut window = Window::new(start);
            window.add(first, start);
            let now = start + Duration::from_secs(if second > 0 { 70 } else { 20 });
            window.add(second, now);
            let Some(wait) = window.wait(limit, more, now) else { panic!("{limit} {first} {second} {more}") };
            assert_eq!(window.wait(limit, more, now + wait), None, "{limit} {first} {second} {more}: {wait:?}");
            let early = now + wait.saturating_sub(Duration::from_millis(60));
            let mut again = Window::new(start);
            again.add(first, start);
            again.add(second, now);
            assert!(again.wait(limit, more, early).is_some(), "{limit} {first} {second} {more}: {wait:?} is too long");
        }
    }

    #[test]
    fn what_was_not_used_comes_back_to_its_minute() {
        let start = Instant::now();
        let mut window = Window::new(start);
        let number = window.add(50, start);
        window.give_back(20, number, start);
        assert_eq!(window.used(start), 30);
        let later = start + MINUTE;
        window.add(5, later);
        window.give_back(10, number, later);
        assert_eq!(window.used(later), 25);
        // Nothing of it counts any more, and others' use stays.
        window.add(7, later + MINUTE);
        window.give_back(30, number, later + MINUTE);
        assert_eq!(window.used(later + MINUTE), 12);
        window.give_back(u64::MAX, number + 2, later + MINUTE);
        assert_eq!(window.used(later + MINUTE), 5);
    }
}
