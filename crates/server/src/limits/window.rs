//! How much was used in the last minute, second by second: whatever minute is looked at, no more than the limit was used
//! in it. By a clock that nobody can turn.

use std::time::Duration;

use tokio::time::Instant;

pub(super) const MINUTE: Duration = Duration::from_mins(1);

/// The second that runs, and those of which any part is less than a minute ago.
const SECONDS: u64 = 61;

#[derive(Debug)]
pub(super) struct Window {
    began: Instant,
    /// When the next second begins.
    next: Instant,
    /// The number of the second that runs.
    number: u64,
    /// What was used in each second, by its number.
    slots: Box<[u64]>,
    total: u64,
}

impl Window {
    pub(super) fn new(now: Instant) -> Self {
        Self { began: now, next: now, number: 0, slots: vec![0; slot(SECONDS)].into(), total: 0 }
    }

    #[inline]
    fn advance(&mut self, now: Instant) {
        if now >= self.next {
            self.pass(now);
        }
    }

    /// At least one second is over.
    #[cold]
    fn pass(&mut self, now: Instant) {
        let number = now.saturating_duration_since(self.began).as_secs();
        for passed in self.number + 1..=number.min(self.number + SECONDS) {
            if let Some(used) = self.slots.get_mut(slot(passed % SECONDS)) {
                self.total -= std::mem::take(used);
            }
        }
        self.number = self.number.max(number);
        self.next = self.began + Duration::from_secs(self.number + 1);
    }

    #[inline]
    fn of(&self, number: u64) -> u64 {
        self.slots.get(slot(number % SECONDS)).copied().unwrap_or(0)
    }

    /// Those that count, the oldest first.
    fn numbers(&self) -> impl DoubleEndedIterator<Item = u64> + use<> {
        self.number.saturating_sub(SECONDS - 1)..=self.number
    }

    /// How long until what was used in that second counts no more.
    fn until_over(&self, number: u64, now: Instant) -> Duration {
        (self.began + Duration::from_secs(number + SECONDS)).saturating_duration_since(now)
    }

    /// What counts now.
    #[inline]
    pub(super) fn used(&mut self, now: Instant) -> u64 {
        self.advance(now);
        self.total
    }

    /// How long until so much more fits; None: it fits.
    #[inline]
    pub(super) fn wait(&mut self, limit: u64, more: u64, now: Instant) -> Option<Duration> {
        let lacking = self.used(now).saturating_add(more).checked_sub(limit).filter(|lacking| *lacking > 0)?;
        Some(self.until_free(lacking, now))
    }

    fn until_free(&self, lacking: u64, now: Instant) -> Duration {
        let mut freed = 0_u64;
        let enough = self.numbers().find(|number| {
            freed = freed.saturating_add(self.of(*number));
            freed >= lacking
        });
        // What is more than the limit itself never fits.
        self.until_over(enough.unwrap_or(self.number), now).max(Duration::from_millis(1))
    }

    /// So much is used. Gives the number of the second.
    #[inline]
    pub(super) fn add(&mut self, amount: u64, now: Instant) -> u64 {
        self.advance(now);
        let amount = amount.min(u64::MAX - self.total);
        if let Some(used) = self.slots.get_mut(slot(self.number % SECONDS)) {
            *used += amount;
            self.total += amount;
        }
        self.number
    }

    /// So much of what was added in that second was not used.
    pub(super) fn give_back(&mut self, amount: u64, number: u64, now: Instant) {
        self.advance(now);
        // What is older does not count any more.
        if self.number.saturating_sub(number) < SECONDS
            && let Some(used) = self.slots.get_mut(slot(number % SECONDS))
        {
            let amount = amount.min(*used);
            *used -= amount;
            self.total -= amount;
        }
    }

    /// How many seconds until nothing that was used counts any more.
    #[inline]
    pub(super) fn reset(&mut self, now: Instant) -> u64 {
        self.advance(now);
        // Nearly always something was used just now.
        if self.of(self.number) > 0 {
            return SECONDS;
        }
        let last = self.numbers().rev().find(|number| self.of(*number) > 0);
        last.map_or(0, |number| number + SECONDS - self.number)
    }
}

/// It is less than a minute's seconds.
fn slot(number: u64) -> usize {
    usize::try_from(number).unwrap_or(0)
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
            (0, 60, 60, 61),
            (59, 0, 60, 2),
            (60, 0, 60, 1),
            (61, 0, 0, 0),
            (75, 5, 5, 61),
            (90, 10, 15, 61),
            (135, 0, 15, 16),
            (136, 0, 10, 15),
            (150, 1, 11, 61),
            (151, 0, 1, 60),
            (10_000, 0, 0, 0),
        ] {
            window.add(add, at(second));
            assert_eq!((window.used(at(second)), window.reset(at(second))), (used, reset), "{second}");
        }
    }

    /// Whoever waits as long as it was told gets in, and not a moment earlier.
    #[test]
    fn the_wait_is_as_long_as_it_must_be() {
        let start = Instant::now();
        for (limit, first, second, more) in
            [(10, 10, 0, 1), (10, 10, 0, 10), (100, 60, 40, 25), (1, 1, 0, 1), (7, 5, 2, 3), (1000, 999, 1, 1000)]
        {
            let mut window = Window::new(start);
            window.add(first, start);
            let now = start + Duration::from_millis(30_400);
            window.add(second, now);
            let Some(wait) = window.wait(limit, more, now) else { panic!("{limit} {first} {second} {more}") };
            let mut again = Window::new(start);
            again.add(first, start);
            again.add(second, now);
            let early = now + wait.saturating_sub(Duration::from_millis(1));
            assert!(again.wait(limit, more, early).is_some(), "{limit} {first} {second} {more}: {wait:?} is too long");
            assert_eq!(window.wait(limit, more, now + wait), None, "{limit} {first} {second} {more}: {wait:?}");
        }
    }

    /// Whoever takes what it can, whenever it can, never has more than the limit in any minute, and gets it in each.
    #[test]
    fn no_minute_has_more_than_the_limit() {
        let start = Instant::now();
        let mut window = Window::new(start);
        let mut taken: Vec<u64> = Vec::new();
        for millis in (0..400_000).step_by(137) {
            // Now and then nobody asks.
            if millis / 20_000 % 3 == 1 {
                continue;
            }
            let now = start + Duration::from_millis(millis);
            while window.wait(60, 1, now).is_none() {
                window.add(1, now);
                taken.push(millis);
            }
        }
        let most = taken.iter().map(|from| taken.iter().filter(|at| (*from..from + 60_000).contains(at)).count()).max();
        assert_eq!(most, Some(60));
        assert!(taken.len() >= 300, "{}", taken.len());
    }

    #[test]
    fn what_was_not_used_comes_back_to_its_second() {
        let start = Instant::now();
        let mut window = Window::new(start);
        let number = window.add(50, start);
        window.give_back(20, number, start);
        assert_eq!(window.used(start), 30);
        let later = start + Duration::from_secs(30);
        window.add(5, later);
        window.give_back(10, number, later);
        assert_eq!(window.used(later), 25);
        // Nothing of it counts any more, and others' use stays.
        let over = start + Duration::from_secs(70);
        window.add(7, over);
        window.give_back(30, number, over);
        assert_eq!(window.used(over), 12);
        window.give_back(u64::MAX, number + 70, over);
        assert_eq!(window.used(over), 5);
    }
}
