//! One whose use is limited, a key or a tenant: what it has used here, and what this process holds of what may be used by
//! all processes together. Nothing here waits.

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use store::{Share, ShareWish};
use tokio::time::Instant;

use super::rate::{Limit, Rate, Which};
use super::window::{MINUTE, Window};

/// What is held and was not wanted for so long is given back.
const LAPSE: Duration = Duration::from_secs(5);
/// When the database has no more, it is not asked again for so long at least, and at most.
const ASK_AGAIN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// Who finds no place may try again then: nobody knows when a turn ends.
const PLACE_WAIT: Duration = Duration::from_secs(1);
const PLACE_ASK_AGAIN: Duration = Duration::from_millis(250);

/// Who else counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Nobody: the store is this process's.
    Alone,
    /// All processes of a shared database.
    Together,
    /// They would, but the database is away: this process keeps the limits by itself.
    Apart,
}

/// What a process takes of a limit at once.
pub(super) const fn chunk(limit: u64) -> u64 {
    let part = limit / 20;
    if part == 0 { 1 } else { part }
}

#[derive(Debug)]
pub(super) struct Subject {
    /// As the database knows it.
    pub(super) name: Box<str>,
    state: Mutex<State>,
    /// Held by whoever asks the database for it.
    pub(super) asking: tokio::sync::Semaphore,
    /// Somebody is about to, before it is needed.
    pub(super) is_fetching: AtomicBool,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) requests: Meter,
    pub(super) tokens: Meter,
    pub(super) places: Places,
    pub(super) used_at: Instant,
}

impl Subject {
    pub(super) fn new(name: String, now: Instant) -> Self {
        let state =
            State { requests: Meter::new(now), tokens: Meter::new(now), places: Places::default(), used_at: now };
        Self {
            name: name.into(),
            state: Mutex::new(state),
            asking: tokio::sync::Semaphore::new(1),
            is_fetching: AtomicBool::new(false),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of one of its limits in the database.
    pub(super) fn of(&self, which: Which) -> String {
        let limit = match which {
            Which::Requests => "rpm",
            Which::Tokens => "tpm",
            Which::Places => "concurrency",
        };
        format!("{}/{limit}", self.name)
    }
}

impl State {
    pub(super) const fn meter(&mut self, which: Which) -> Option<&mut Meter> {
        match which {
            Which::Requests => Some(&mut self.requests),
            Which::Tokens => Some(&mut self.tokens),
            Which::Places => None,
        }
    }

    /// Whether nothing is lost when it is forgotten.
    pub(super) fn is_idle(&self, now: Instant) -> bool {
        let holds = |meter: &Meter| meter.left > 0 || meter.owed > 0;
        now.saturating_duration_since(self.used_at) > 3 * MINUTE
            && self.places.running == 0
            && self.places.held == 0
            && !holds(&self.requests)
            && !holds(&self.tokens)
    }
}

/// Why something cannot be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lack {
    /// There is no more for so long.
    Full(Duration),
    /// The database may have more.
    Ask,
}

/// What may be used per minute.
#[derive(Debug)]
pub(super) struct Meter {
    /// What was used here.
    window: Window,
    /// What was taken from the database and not used yet.
    left: u64,
    used_at: Instant,
    limit: Limit,
    /// Used without having been taken.
    owed: u64,
    /// What turns that run have taken and may not use.
    promised: u64,
    /// What the database had left for everybody; at first nobody knows of any use.
    elsewhere: u64,
    refused: Option<Refused>,
}

/// The database had no more.
#[derive(Debug, Clone, Copy)]
struct Refused {
    ask_again: Instant,
    free_at: Instant,
}

impl Meter {
    fn new(now: Instant) -> Self {
        Self {
            window: Window::new(now),
            left: 0,
            used_at: now,
            limit: Limit::new(0),
            owed: 0,
            promised: 0,
            elsewhere: u64::MAX,
            refused: None,
        }
    }

    /// Whether so much can be taken.
    pub(super) fn look(&mut self, limit: u64, need: u64, mode: Mode, now: Instant) -> Result<(), Lack> {
        match mode {
            Mode::Alone | Mode::Apart => {
                self.window.wait(limit, need, now).map_or(Ok(()), |wait| Err(Lack::Full(wait)))
            }
            Mode::Together if self.left >= need => Ok(()),
            Mode::Together => match self.refused.filter(|refused| now < refused.ask_again) {
                Some(refused) => Err(Lack::Full(refused.free_at.saturating_duration_since(now))),
                None => Err(Lack::Ask),
            },
        }
    }

    /// Takes it. Gives the number of the minute.
    #[inline]
    pub(super) fn take(&mut self, limit: u64, amount: u64, mode: Mode, now: Instant) -> u64 {
        self.used_at = now;
        self.is_limited_to(limit);
        self.spend(amount, mode);
        self.promised = self.promised.saturating_add(amount);
        self.window.add(amount, now)
    }

    #[inline]
    fn is_limited_to(&mut self, limit: u64) {
        if self.limit.number != limit {
            self.limit = Limit::new(limit);
        }
    }

    fn spend(&mut self, amount: u64, mode: Mode) {
        if mode != Mode::Alone {
            let spent = amount.min(self.left);
            self.left -= spent;
            self.owed = self.owed.saturating_add(amount - spent);
        }
    }

    /// So much was taken at that time, in that minute, and so much of it was used.
    pub(super) fn settle(&mut self, (taken, used): (u64, u64), (at, number): (Instant, u64), mode: Mode, now: Instant) {
        self.promised = self.promised.saturating_sub(taken);
        match taken.checked_sub(used) {
            Some(unused) => {
                self.window.give_back(unused, number, now);
                // What is older counts no more in the database either.
                if mode != Mode::Alone && now.saturating_duration_since(at) < MINUTE {
                    self.left += unused;
                }
            }
            None => {
                self.spend(used - taken, mode);
                self.window.add(used - taken, now);
            }
        }
    }

    #[inline]
    pub(super) fn remaining(&mut self, limit: u64, mode: Mode, now: Instant) -> u64 {
        match mode {
            Mode::Together => self.left.saturating_add(self.elsewhere).min(limit),
            Mode::Alone | Mode::Apart => limit.saturating_sub(self.window.used(now)),
        }
    }

    /// What would be left if nobody who runs used anything.
    #[inline]
    pub(super) fn unused(&mut self, limit: u64, mode: Mode, now: Instant) -> u64 {
        self.remaining(limit, mode, now).saturating_add(self.promised).min(limit)
    }

    #[inline]
    pub(super) fn rate(&mut self, limit: u64, mode: Mode, now: Instant) -> Rate {
        self.is_limited_to(limit);
        let reset = self.window.reset(now);
        let remaining = self.remaining(limit, mode, now);
        // Others may have used it, a minute ago at most.
        let is_unknown = mode == Mode::Together && remaining < limit && reset == 0;
        let reset = if is_unknown { MINUTE.as_secs() } else { reset };
        Rate { limit: self.limit.clone(), remaining, reset }
    }

    /// Whether what is left will soon be used up.
    pub(super) fn runs_out(&self, limit: u64, now: Instant) -> bool {
        self.left.saturating_mul(2) < chunk(limit) && self.refused.is_none_or(|refused| now >= refused.ask_again)
    }

    /// What the database is asked for, so that there is as much as is needed, and some more.
    pub(super) fn wish(&mut self, limit: u64, need: u64, subject: impl FnOnce() -> String) -> Option<ShareWish> {
        let wanted = need.max(chunk(limit)).saturating_sub(self.left);
        let wanted = i64::try_from(wanted).unwrap_or(i64::MAX);
        let overdrawn = std::mem::take(&mut self.owed);
        (wanted > 0 || overdrawn > 0).then(|| ShareWish { subject: subject(), limit, wanted, overdrawn })
    }

    /// The database did not hear of it.
    pub(super) fn unheard(&mut self, wish: &ShareWish) {
        self.owed = self.owed.saturating_add(wish.overdrawn);
        self.left = self.left.saturating_add(wish.wanted.min(0).unsigned_abs());
    }

    /// What came of it.
    pub(super) fn given(&mut self, wish: &ShareWish, share: Share, now: Instant) {
        self.elsewhere = share.left;
        self.is_limited_to(wish.limit);
        let Ok(wanted) = u64::try_from(wish.wanted) else { return };
        self.left = self.left.saturating_add(share.granted);
        let wait = Duration::from_millis(share.wait.min(120_000));
        self.refused = (share.granted < wanted).then(|| Refused {
            ask_again: now + wait.clamp(ASK_AGAIN.0, ASK_AGAIN.1),
            free_at: now + wait.max(ASK_AGAIN.0),
        });
    }

    /// What is too much here, or was not wanted for long, goes back; what is owed is paid.
    pub(super) fn tidy(&mut self, subject: impl FnOnce() -> String, now: Instant) -> Option<ShareWish> {
        let kept = if now.saturating_duration_since(self.used_at) >= LAPSE { 0 } else { chunk(self.limit.number) };
        let spare = self.left.saturating_sub(kept);
        if spare == 0 && self.owed == 0 {
            return None;
        }
        self.left -= spare;
        let wanted = -i64::try_from(spare).unwrap_or(i64::MAX);
        Some(ShareWish {
            subject: subject(),
            limit: self.limit.number,
            wanted,
            overdrawn: std::mem::take(&mut self.owed),
        })
    }
}

/// Turns at once.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) running: u64,
    /// Of those that all processes have together.
    pub(super) held: u64,
    limit: u64,
    ask_again: Option<Instant>,
}

impl Places {
    pub(super) fn look(&self, limit: u64, mode: Mode, now: Instant) -> Result<(), Lack> {
        match mode {
            _ if self.running >= limit => Err(Lack::Full(PLACE_WAIT)),
            Mode::Alone | Mode::Apart => Ok(()),
            Mode::Together if self.running < self.held => Ok(()),
            Mode::Together if self.ask_again.is_some_and(|ask_again| now < ask_again) => Err(Lack::Full(PLACE_WAIT)),
            Mode::Together => Err(Lack::Ask),
        }
    }

    pub(super) const fn take(&mut self, limit: u64) {
        (self.running, self.limit) = (self.running + 1, limit);
    }

    /// How many are to be held, with one more turn and some to spare; none if there are enough.
    pub(super) fn wish(&self, limit: u64) -> Option<u64> {
        (self.running >= self.held).then(|| (self.running + 1 + limit / 20).min(limit))
    }

    /// So many are held now.
    pub(super) fn given(&mut self, held: u64, now: Instant) {
        self.held = held;
        self.ask_again = (held <= self.running).then(|| now + PLACE_ASK_AGAIN);
    }

    const fn enough(&self) -> u64 {
        if self.running == 0 { 0 } else { self.running + self.limit / 20 }
    }

    pub(super) const fn has_spare(&self) -> bool {
        self.held > self.enough()
    }

    /// How many are enough, if more are held: the number, and the limit.
    pub(super) fn tidy(&mut self) -> Option<(u64, u64)> {
        self.has_spare().then(|| {
            self.held = self.enough();
            (self.held, self.limit)
        })
    }
}
