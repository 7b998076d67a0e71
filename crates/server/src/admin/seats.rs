//! Places for connections, where strangers may come as well. Where places are short, whoever has not shown yet that he may
//! ask makes room for the next who comes, the one who came first before all others: however many say nothing, or nothing
//! of worth, an operator always gets in.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

#[derive(Debug)]
pub(super) struct Seats {
    most: usize,
    taken: Mutex<Taken>,
    /// For one who waits.
    freed: Notify,
}

#[derive(Debug, Default)]
struct Taken {
    came: u64,
    known: BTreeSet<u64>,
    /// And how they hear that they have to leave.
    strangers: BTreeMap<u64, Arc<Notify>>,
}

/// A connection's place, until this is dropped or it has to leave.
#[derive(Debug)]
pub(super) struct Seat {
    seats: Arc<Seats>,
    number: u64,
    leave: Arc<Notify>,
}

impl Seats {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: Mutex::default(), freed: Notify::new() })
    }

    /// A place for one who has come. It waits only while all are taken by those who are known. One waits at a time.
    pub(super) async fn take(self: &Arc<Self>) -> Seat {
        loop {
            if let Some(seat) = self.try_take() {
                return seat;
            }
            // What became free since the look is remembered.
            self.freed.notified().await;
        }
    }

    fn try_take(self: &Arc<Self>) -> Option<Seat> {
        let mut taken = self.taken();
        if taken.known.len() + taken.strangers.len() >= self.most {
            taken.strangers.pop_first()?.1.notify_one();
        }
        let (number, leave) = (taken.came, Arc::new(Notify::new()));
        taken.came += 1;
        taken.strangers.insert(number, Arc::clone(&leave));
        Some(Seat { seats: Arc::clone(self), number, leave })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// Whoever has it may ask: nobody takes it from him.
    pub(super) fn is_known(&self) {
        let mut taken = self.seats.taken();
        if taken.strangers.remove(&self.number).is_some() {
            taken.known.insert(self.number);
        }
    }

    /// Ready when another has got it.
    pub(super) async fn is_lost(&self) {
        self.leave.notified().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.taken();
        taken.strangers.remove(&self.number);
        taken.known.remove(&self.number);
        drop(taken);
        self.seats.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_lost(seat: &Seat) -> bool {
        !seat.seats.taken().strangers.contains_key(&seat.number) && !seat.seats.taken().known.contains(&seat.number)
    }

    #[tokio::test]
    async fn the_oldest_stranger_makes_room_and_nobody_else() {
        let seats = Seats::new(3);
        let (first, second, third) = (seats.take().await, seats.take().await, seats.take().await);
        second.is_known();
        assert!(!is_lost(&first));
        let fourth = seats.take().await;
        assert_eq!([&first, &second, &third, &fourth].map(is_lost), [true, false, false, false]);
        first.is_lost().await;
        // It is too late for that one, and its end frees nobody's place.
        first.is_known();
        drop(first);
        fourth.is_known();
        let fifth = seats.take().await;
        assert_eq!([&second, &third, &fourth, &fifth].map(is_lost), [false, true, false, false]);
        fifth.is_known();
        // All are known: the next one waits until one has ended.
        assert!(seats.try_take().is_none());
        let (sixth, ()) = tokio::join!(seats.take(), async {
            tokio::task::yield_now().await;
            drop(second);
        });
        assert_eq!([&third, &fourth, &fifth, &sixth].map(is_lost), [true, false, false, false]);
        drop((third, fourth, fifth, sixth));
        let all = [seats.take().await, seats.take().await, seats.take().await];
        assert!(!all.iter().any(is_lost));
    }
}
