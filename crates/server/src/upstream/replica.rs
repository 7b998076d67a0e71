//! One address of a provider: whether it is up, how much it has to do, and how its models fare there. It learns from checks
//! and from requests; it asks nobody itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::UpstreamClient;
use super::affinity::{PlaceId, Seat, WHOLE};
use super::health::{HealthByModel, ModelHealth};
use super::load::Load;

/// How often an address is looked at that is up, and one that is not.
const EVERY: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(500);

/// Checks in a row without an answer after which it is down.
const MISSES: u32 = 2;

/// Over so long an address that came back gets its whole share again, from this part of it on.
const RAMP: Duration = Duration::from_secs(10);
const FIRST_SHARE: usize = WHOLE / 10;

#[derive(Debug)]
pub(crate) struct Replica {
    /// The base URL.
    pub(crate) url: Arc<str>,
    place: PlaceId,
    pub(super) client: UpstreamClient,
    pub(super) models: HealthByModel,
    pub(super) load: Load,
    condition: Mutex<Condition>,
    /// Told when checks have found it down: who waits for it need not.
    falls: watch::Sender<()>,
    /// Requests that belong here, and those that came because their own place was down or full.
    pub(super) own: AtomicU64,
    pub(super) guests: AtomicU64,
}

#[derive(Debug)]
struct Condition {
    state: State,
    /// Checks in a row that got no answer.
    misses: u32,
    /// When it came back.
    back: Option<Instant>,
    /// When to look again; None: somebody does.
    due: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Up,
    /// It answers, but that it wants nothing new.
    Draining,
    Down,
}

/// How an address fares, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReplicaState {
    pub(crate) url: Arc<str>,
    /// `up`, `starting` (it came back a moment ago), `draining` or `down`.
    pub(crate) state: &'static str,
    /// Percent of what it may get when all is well.
    pub(crate) share: usize,
    pub(crate) open: usize,
    pub(crate) own: u64,
    pub(crate) guests: u64,
}

impl Replica {
    /// `came`: it was not there before, while others were.
    pub(super) fn new(url: &str, client: UpstreamClient, models: HealthByModel, came: bool) -> Self {
        let now = Instant::now();
        Self {
            url: url.into(),
            place: PlaceId::of(url.as_bytes()),
            client,
            models,
            load: Load::default(),
            condition: Mutex::new(Condition { state: State::Up, misses: 0, back: came.then_some(now), due: Some(now) }),
            falls: watch::Sender::new(()),
            own: AtomicU64::new(0),
            guests: AtomicU64::new(0),
        }
    }

    /// What the choice among several goes by, for a request to this model.
    pub(super) fn seat(&self, model: &ModelHealth) -> Seat {
        // A breaker that wants to know gets its request.
        let share = if model.breaker.shown().0 == "open" { 0 } else { self.condition().share() };
        Seat { place: self.place, open: self.load.open(), share }
    }

    pub(super) const fn place(&self) -> PlaceId {
        self.place
    }

    pub(super) fn is_up(&self) -> bool {
        self.condition().state == State::Up
    }

    pub(super) fn state(&self) -> ReplicaState {
        let condition = self.condition();
        let share = condition.share();
        let state = match condition.state {
            State::Up if share < WHOLE => "starting",
            State::Up => "up",
            State::Draining => "draining",
            State::Down => "down",
        };
        drop(condition);
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ReplicaState {
            url: Arc::clone(&self.url),
            state,
            share: share * 100 / WHOLE,
            open: self.load.open(),
            own: count(&self.own),
            guests: count(&self.guests),
        }
    }

    // === what is learned ===

    /// Whether it is time to look; then nobody else looks until the outcome is told.
    pub(super) fn take_due(&self) -> bool {
        let due = &mut self.condition().due;
        due.take_if(|due| *due <= Instant::now()).is_some()
    }

    /// A check was answered with this status.
    pub(super) fn answered(&self, status: u16) {
        let mut condition = self.condition();
        condition.misses = 0;
        if status >= 500 {
            if condition.state != State::Draining {
                tracing::warn!(replica = &*self.url, status, "it wants no new requests");
            }
            (condition.state, condition.due) = (State::Draining, Some(Instant::now() + AGAIN));
        } else {
            condition.due = Some(Instant::now() + EVERY);
            self.rise(condition);
        }
    }

    /// A check got no answer.
    pub(super) fn missed(&self) {
        let mut condition = self.condition();
        condition.misses = condition.misses.saturating_add(1);
        condition.due = Some(Instant::now() + AGAIN);
        if condition.misses == MISSES {
            condition.state = State::Down;
            drop(condition);
            tracing::warn!(replica = &*self.url, "it does not answer; its requests go elsewhere");
            self.falls.send_replace(());
        }
    }

    /// A request could not even be connected. It is not asked again before a check was answered.
    pub(super) fn unreachable(&self) {
        let mut condition = self.condition();
        if condition.state == State::Up {
            condition.state = State::Down;
            // Unless one is under way.
            condition.due = condition.due.map(|_| Instant::now());
        }
    }

    /// A request was answered: whatever was thought of it, it is there.
    pub(super) fn served(&self) {
        let condition = self.condition();
        if condition.state == State::Down {
            self.rise(condition);
        }
    }

    /// It did not do what it was asked for, and does now: it gets more step by step.
    pub(super) fn recovered(&self) {
        self.condition().back = Some(Instant::now());
    }

    fn rise(&self, mut condition: MutexGuard<'_, Condition>) {
        if condition.state != State::Up {
            (condition.state, condition.misses, condition.back) = (State::Up, 0, Some(Instant::now()));
            tracing::info!(replica = &*self.url, "it is back");
        }
    }

    /// Hears from now on when checks find it down.
    pub(super) fn falls(&self) -> watch::Receiver<()> {
        self.falls.subscribe()
    }

    fn condition(&self) -> MutexGuard<'_, Condition> {
        self.condition.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Condition {
    /// Of [`WHOLE`].
    fn share(&self) -> usize {
        match (self.state, self.back.map(|back| back.elapsed())) {
            (State::Draining | State::Down, _) => 0,
            (State::Up, Some(since)) if since < RAMP => {
                let part = usize::try_from(since.as_millis()).unwrap_or(usize::MAX);
                let whole = usize::try_from(RAMP.as_millis()).unwrap_or(usize::MAX);
                FIRST_SHARE + (WHOLE - FIRST_SHARE) * part / whole
            }
            (State::Up, _) => WHOLE,
        }
    }
}

#[cfg(test)]
mod tests {
    use bridge::FailureClass;

    use super::*;
    use crate::config::ResilienceConfig;

    fn replica(came: bool) -> Replica {
        let models = HealthByModel::new(ResilienceConfig::default());
        Replica::new("http://10.0.0.1/v1", UpstreamClient::Demo, models, came)
    }

    fn looks(replica: &Replica) -> (&'static str, usize) {
        let state = replica.state();
        (state.state, state.share)
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_down_after_two_misses_and_comes_back_step_by_step() {
        let replica = replica(false);
        let mut falls = replica.falls();
        assert_eq!(looks(&replica), ("up", 100));
        replica.missed();
        assert_eq!((looks(&replica), falls.has_changed().unwrap()), (("up", 100), false));
        replica.missed();
        assert_eq!((looks(&replica), falls.has_changed().unwrap()), (("down", 0), true));
        falls.mark_unchanged();
        replica.missed();
        assert!(!falls.has_changed().unwrap(), "once is enough");
        replica.answered(200);
        for share in [10, 32, 55, 77] {
            assert_eq!(looks(&replica), ("starting", share));
            tokio::time::advance(RAMP / 4).await;
        }
        assert_eq!(looks(&replica), ("up", 100));
    }

    #[tokio::test(start_paused = true)]
    async fn statuses_say_whether_it_wants_anything() {
        let replica = replica(false);
        for (status, expected) in [(503, ("draining", 0)), (200, ("starting", 10)), (500, ("draining", 0))] {
            replica.answered(status);
            assert_eq!(looks(&replica), expected, "{status}");
        }
        // Who asks for a key, or has no such path, is there.
        for status in [401, 404, 429] {
            replica.answered(500);
            replica.answered(status);
            assert_eq!(looks(&replica), ("starting", 10), "{status}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_tell_as_well() {
        let replica = replica(false);
        replica.unreachable();
        assert_eq!(looks(&replica), ("down", 0));
        replica.served();
        assert_eq!(looks(&replica), ("starting", 10));
        tokio::time::advance(RAMP).await;
        replica.served();
        assert_eq!(looks(&replica), ("up", 100));
        // A breaker is about one model.
        let (one, other) = (replica.models.of("one"), replica.models.of("other"));
        while !one.breaker.bad(FailureClass::Server) {}
        assert_eq!((replica.seat(&one).share, replica.seat(&other).share), (0, WHOLE));
        tokio::time::advance(super::super::breaker::PROBE).await;
        assert_eq!(replica.seat(&one).share, WHOLE, "one request may find out");
    }

    #[tokio::test(start_paused = true)]
    async fn one_looks_at_a_time_and_sooner_at_what_is_down() {
        let replica = replica(true);
        assert_eq!(looks(&replica), ("starting", 10), "who is new begins slowly");
        assert!(replica.take_due() && !replica.take_due());
        for (told, pause) in [(true, EVERY), (false, AGAIN), (false, AGAIN), (true, EVERY)] {
            if told {
                replica.answered(200);
            } else {
                replica.missed();
            }
            assert!(!replica.take_due());
            tokio::time::advance(pause).await;
            assert!(replica.take_due() && !replica.take_due());
        }
        replica.answered(200);
        replica.unreachable();
        assert!(replica.take_due(), "at once");
    }
}
