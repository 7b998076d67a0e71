//! How much may be asked: requests and tokens per minute, turns at once, for each key and each tenant; on several
//! instances together. And what the whole server can bear. What is not limited costs nothing.
//!
//! A turn gets a [`Permit`] before anybody is asked; it holds a place as long as the turn lives, and what it really used
//! is settled at its end. Whoever is refused has used nothing, be it here or before anybody was asked.
//!
//! ```text
//!   one process:   window ── what was used here in the last minute
//!   several:       share ─── taken from the database in parts of 5 %, spent here without asking;
//!                            what is not wanted for some seconds goes back
//! ```
//!
//! Nothing here ever decides who may see what, and a database that is away refuses nobody: each process then keeps the
//! limits by itself.

mod bank;
mod estimate;
mod load;
mod memory;
mod permit;
mod rate;
mod shards;
mod subject;
#[cfg(test)]
mod tests;
mod window;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use store::{ShareWish, Store, Worker};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::access::{Grant, Terms};
use crate::config::LimitsConfig;
use crate::error::{ApiError, Code};
use crate::tasks::spawn_service;
use bank::{Away, Bank, LEASE};
pub(crate) use estimate::Tokens;
pub(crate) use load::Load;
pub use memory::tidy_thread;
pub(crate) use permit::Permit;
use permit::Taken;
pub(crate) use rate::Rates;
use rate::{Reached, Which, Whose, too_large};
use shards::Shards;
use subject::{Lack, Meter, Mode, State, Subject};

/// How often what is too much here goes back to the others.
const TIDY: Duration = Duration::from_millis(250);
/// A database that was away is not asked again for so long.
const REST: Duration = Duration::from_secs(1);
/// How often those are forgotten who use nothing.
const FORGET: Duration = Duration::from_mins(1);
/// More often the database is not asked for one turn.
const ROUNDS: usize = 4;

/// What begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    /// Somebody waits for the answer.
    Turn,
    /// A background response is put into the queue: it is a request, and runs later.
    Submits,
    /// A background response runs: it was a request when it was submitted.
    Runs,
    /// A warm-up of a WebSocket: it is a request, and nobody is asked for it.
    WarmsUp,
}

impl Asks {
    /// Whether a model is asked now: that takes a place, and tokens.
    pub(crate) const fn runs(self) -> bool {
        matches!(self, Self::Turn | Self::Runs)
    }
}

/// What all that is limited has used.
#[derive(Debug)]
pub(crate) struct Limits {
    bank: Bank,
    keys: Shards,
    tenants: Shards,
    load: Arc<Load>,
    /// The database was away: until when it is not asked.
    resting: Mutex<Option<Instant>>,
    is_away: AtomicBool,
}

/// What came of asking for a permit, and what is left.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) permit: Result<Permit, ApiError>,
    pub(crate) rates: Rates,
}

/// One whose limits a turn has to keep to.
#[derive(Debug, Clone)]
struct Want {
    subject: Arc<Subject>,
    whose: Whose,
    rpm: Option<u64>,
    tpm: Option<u64>,
    places: Option<u64>,
    tokens: Tokens,
}

type Wants = [Option<Want>; 2];

impl Want {
    /// Its limits per minute.
    fn metered(&self) -> impl Iterator<Item = (Which, u64)> + use<> {
        let requests = self.rpm.map(|limit| (Which::Requests, limit));
        requests.into_iter().chain(self.tpm.map(|limit| (Which::Tokens, limit)))
    }

    /// How many it needs where so many are not used. What an answer may take is a guess, which must not keep the rest of a
    /// limit from ever being used.
    fn need(&self, which: Which, unused: u64) -> u64 {
        let Tokens { input, output } = self.tokens;
        if which == Which::Tokens { input + output.min(unused.saturating_sub(input) / 4) } else { 1 }
    }
}

impl Rates {
    /// With what is left for this one.
    fn of(&mut self, want: &Want, state: &mut State, mode: Mode, now: Instant) {
        for (which, limit) in want.metered() {
            if let Some(meter) = state.meter(which) {
                self.add(which, meter.rate(limit, mode, now));
            }
        }
    }
}

/// Who lacks what.
enum Lacking {
    Reached(Reached),
    Ask,
}

impl Limits {
    pub(crate) fn new(store: Store, worker: Worker, config: &LimitsConfig) -> Arc<Self> {
        let bank = if store.is_shared() { Bank::Store(store, worker) } else { Bank::None };
        Arc::new(Self::with(bank, config))
    }

    fn with(bank: Bank, config: &LimitsConfig) -> Self {
        Self {
            bank,
            keys: Shards::default(),
            tenants: Shards::default(),
            load: Load::new(config),
            resting: Mutex::default(),
            is_away: AtomicBool::new(false),
        }
    }

    /// What the whole server can bear.
    pub(crate) const fn load(&self) -> &Arc<Load> {
        &self.load
    }

    /// Lets something begin that takes about so many tokens. They are asked for only where they are limited.
    pub(crate) async fn admit(
        self: &Arc<Self>,
        grant: Option<&Arc<Grant>>,
        asks: Asks,
        tokens: impl FnOnce() -> Tokens,
    ) -> Admitted {
        let mut rates = Rates::default();
        let permit = self.permit(grant, asks, tokens, &mut rates).await;
        Admitted { permit, rates }
    }

    async fn permit(
        self: &Arc<Self>,
        grant: Option<&Arc<Grant>>,
        asks: Asks,
        tokens: impl FnOnce() -> Tokens,
        rates: &mut Rates,
    ) -> Result<Permit, ApiError> {
        let place = if asks.runs() { Some(self.load.enter()?) } else { None };
        let Some(grant) = grant else { return Ok(Permit::of(self, place, [None, None])) };
        let (wants, too_large) = self.wants(grant, asks, tokens);
        if wants.iter().all(Option::is_none) {
            return Ok(Permit::of(self, place, [None, None]));
        }
        if let Some(error) = too_large {
            *rates = self.look(&wants).await;
            return Err(error);
        }
        let taken = self.take_or_ask(&wants, grant, rates).await?;
        Ok(Permit::of(self, place, taken))
    }

    /// The same for a turn that was let in and turns out to take so many tokens, since what it continues is known only now.
    /// It keeps its place; if it may not have them, it gives back all that it took.
    pub(crate) async fn admit_longer(
        self: &Arc<Self>,
        grant: &Arc<Grant>,
        mut permit: Permit,
        tokens: impl FnOnce() -> Tokens,
    ) -> Admitted {
        permit.give_back_tokens(Instant::now());
        let (wants, too_large) = self.wants(grant, Asks::Runs, tokens);
        let wants = wants.map(|want| want.map(|want| Want { places: None, ..want }));
        let taken = match too_large {
            None => self.take_or_ask(&wants, grant, &mut Rates::default()).await,
            Some(error) => Err(error),
        };
        let permit = match taken {
            Ok(taken) => {
                permit.takes_tokens(taken);
                Ok(permit)
            }
            Err(error) => {
                permit.undo();
                Err(error)
            }
        };
        Admitted { permit, rates: self.left(grant).await }
    }

    /// Takes all, or says which limit is reached.
    async fn take_or_ask(
        self: &Arc<Self>,
        wants: &Wants,
        grant: &Grant,
        rates: &mut Rates,
    ) -> Result<[Option<Taken>; 2], ApiError> {
        for _ in 0..ROUNDS {
            match self.take(wants, rates) {
                Ok(taken) => return Ok(taken),
                Err(Lacking::Reached(reached)) => return Err(reached.error(grant)),
                Err(Lacking::Ask) => self.ask(wants, true).await,
            }
        }
        // What the database gave was taken by others, again and again.
        Err(ApiError::new(Code::Overloaded, "Too many requests come at the same time. Please retry in a moment."))
    }

    /// With what is wrong, if it is more than can ever be had.
    fn wants(&self, grant: &Grant, asks: Asks, tokens: impl FnOnce() -> Tokens) -> (Wants, Option<ApiError>) {
        let both = [(Whose::Key, &grant.terms), (Whose::Tenant, &*grant.tenant_terms)];
        let counts = |terms: &Terms| asks.runs() && terms.tpm.is_some();
        let tokens = if both.iter().any(|(_, terms)| counts(terms)) { tokens() } else { Tokens::default() };
        let (mut wants, mut beyond) = ([None, None], None);
        for ((whose, terms), want) in both.into_iter().zip(&mut wants) {
            let rpm = terms.rpm.filter(|_| asks != Asks::Runs);
            let tpm = terms.tpm.filter(|_| asks.runs());
            let places = terms.concurrency.filter(|_| asks.runs());
            if rpm.is_none() && tpm.is_none() && places.is_none() {
                continue;
            }
            if let Some(limit) = tpm.filter(|limit| tokens.input > *limit) {
                beyond = beyond.or_else(|| Some(too_large(whose, grant, limit, tokens.input)));
            }
            let subject = match whose {
                Whose::Key => self.keys.find(grant.limited_as(), || format!("key/{}", grant.limited_as())),
                Whose::Tenant => self.tenants.find(grant.tenant.name(), || format!("tenant/{}", grant.tenant.name())),
            };
            *want = Some(Want { subject, whose, rpm, tpm, places, tokens });
        }
        (wants, beyond)
    }

    /// What is left, for one who was refused for another reason.
    pub(crate) async fn left(&self, grant: &Grant) -> Rates {
        let (wants, _) = self.wants(grant, Asks::Turn, Tokens::default);
        self.look(&wants).await
    }

    /// What is left, for one who takes nothing.
    async fn look(&self, wants: &Wants) -> Rates {
        let none = wants.clone().map(|want| want.map(|want| Want { places: None, ..want }));
        if self.mode(Instant::now()) == Mode::Together {
            // Of what others have used nothing may be known yet.
            self.ask(&none, false).await;
        }
        let now = Instant::now();
        let mode = self.mode(now);
        let mut rates = Rates::default();
        for want in none.iter().flatten() {
            let mut state = want.subject.state();
            rates.of(want, &mut state, mode, now);
        }
        rates
    }

    fn mode(&self, now: Instant) -> Mode {
        if !self.bank.is_shared() {
            return Mode::Alone;
        }
        if !self.is_away.load(Ordering::Relaxed) {
            return Mode::Together;
        }
        let resting = *self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        if resting.is_some_and(|until| now < until) { Mode::Apart } else { Mode::Together }
    }

    /// Takes all, or nothing.
    fn take(self: &Arc<Self>, wants: &Wants, rates: &mut Rates) -> Result<[Option<Taken>; 2], Lacking> {
        let now = Instant::now();
        let mode = self.mode(now);
        *rates = Rates::default();
        // The key's first, always: nobody waits for one who waits.
        let mut states = wants.each_ref().map(|want| want.as_ref().map(|want| (want, want.subject.state())));
        let mut lacking: Option<Lacking> = None;
        for (want, state) in states.iter_mut().flatten() {
            state.used_at = now;
            for (which, limit) in want.metered() {
                let Some(meter) = state.meter(which) else { continue };
                let need = want.need(which, meter.unused(limit, mode, now));
                if let Err(lack) = meter.look(limit, need, mode, now) {
                    let used = limit.saturating_sub(meter.remaining(limit, mode, now));
                    let reached =
                        Reached { whose: want.whose, which, limit, used, requested: need, wait: Duration::ZERO };
                    lacking = Some(worse(lacking, lack, reached));
                }
            }
            if let Some(limit) = want.places
                && let Err(lack) = state.places.look(limit, mode, now)
            {
                let (which, used) = (Which::Places, state.places.running);
                let reached = Reached { whose: want.whose, which, limit, used, requested: 1, wait: Duration::ZERO };
                lacking = Some(worse(lacking, lack, reached));
            }
        }
        if let Some(lacking) = lacking {
            for (want, state) in states.iter_mut().flatten() {
                rates.of(want, state, mode, now);
            }
            return Err(lacking);
        }
        let mut soon = false;
        let taken = states.each_mut().map(|state| {
            let (want, state) = state.as_mut()?;
            let mut take = |which, meter: &mut Meter, limit: u64| {
                let amount = want.need(which, meter.unused(limit, mode, now));
                let number = meter.take(limit, amount, mode, now);
                soon |= mode == Mode::Together && meter.runs_out(limit, now);
                rates.add(which, meter.rate(limit, mode, now));
                ((amount, number), limit)
            };
            let request = want.rpm.map(|limit| take(Which::Requests, &mut state.requests, limit));
            let tokens = want.tpm.map(|limit| take(Which::Tokens, &mut state.tokens, limit));
            want.places.inspect(|limit| state.places.take(*limit));
            let (subject, place) = (Arc::clone(&want.subject), want.places.is_some());
            Some(Taken { subject, place, request, tokens, at: now })
        });
        drop(states);
        if soon {
            self.fetch(wants);
        }
        Ok(taken)
    }

    /// Asks for more before it is needed, where nobody waits for it.
    fn fetch(self: &Arc<Self>, wants: &Wants) {
        let Some(first) = wants.iter().flatten().next() else { return };
        if first.subject.is_fetching.swap(true, Ordering::Relaxed) {
            return;
        }
        let (limits, wants, subject) = (Arc::clone(self), wants.clone(), Arc::clone(&first.subject));
        spawn_service(async move {
            limits.ask(&wants, false).await;
            subject.is_fetching.store(false, Ordering::Relaxed);
        });
    }

    /// Asks the database for what is lacking, or will be soon.
    async fn ask(&self, wants: &Wants, now_needed: bool) {
        let wants: Vec<&Want> = wants.iter().flatten().collect();
        let mut locks = Vec::with_capacity(wants.len());
        for want in &wants {
            locks.push(want.subject.asking.acquire().await);
        }
        let mut wishes = Vec::new();
        for want in &wants {
            let mut state = want.subject.state();
            for (which, limit) in want.metered() {
                let wish = state.meter(which).and_then(|meter| {
                    let now = Instant::now();
                    let unused = meter.unused(limit, Mode::Together, now);
                    let need = if now_needed { want.need(which, unused) } else { 0 };
                    let enough = meter.look(limit, need, Mode::Together, now) != Err(Lack::Ask);
                    let enough = enough && !meter.runs_out(limit, now);
                    if enough { None } else { meter.wish(limit, need, || want.subject.of(which)) }
                });
                wishes.extend(wish.map(|wish| (&want.subject, which, wish)));
            }
        }
        if !self.ask_for(wishes).await {
            return;
        }
        for want in wants {
            let Some(limit) = want.places else { continue };
            let Some(wanted) = want.subject.state().places.wish(limit) else { continue };
            match self.bank.hold(&want.subject.of(Which::Places), wanted, limit).await {
                Ok(held) => want.subject.state().places.given(held, Instant::now()),
                Err(error) => return self.went_away(&error),
            }
        }
    }

    /// Whether the database has heard it.
    async fn ask_for(&self, wishes: Vec<(&Arc<Subject>, Which, ShareWish)>) -> bool {
        if wishes.is_empty() {
            return true;
        }
        let asked = self.bank.take(wishes.iter().map(|(.., wish)| wish.clone()).collect()).await;
        let now = Instant::now();
        match asked {
            Ok(shares) => {
                self.is_back();
                for ((subject, which, wish), share) in wishes.iter().zip(shares) {
                    if let Some(meter) = subject.state().meter(*which) {
                        meter.given(wish, share, now);
                    }
                }
                true
            }
            Err(error) => {
                for (subject, which, wish) in &wishes {
                    if let Some(meter) = subject.state().meter(*which) {
                        meter.unheard(wish);
                    }
                }
                self.went_away(&error);
                false
            }
        }
    }

    fn went_away(&self, error: &Away) {
        *self.resting.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + REST);
        if !self.is_away.swap(true, Ordering::Relaxed) {
            tracing::warn!(%error, "the database is away: each instance keeps the limits by itself");
        }
    }

    fn is_back(&self) {
        if self.is_away.load(Ordering::Relaxed) && self.is_away.swap(false, Ordering::Relaxed) {
            tracing::info!("the database is back: the limits are kept together");
            // Places may be somebody else's by now.
            self.each(|subject| subject.state().places.held = 0);
        }
    }

    fn each(&self, mut act: impl FnMut(&Arc<Subject>)) {
        self.keys.each(&mut act);
        self.tenants.each(&mut act);
    }

    /// Keeps what is held elsewhere, and looks at the memory; runs as long as the server.
    pub(crate) async fn maintain(self: Arc<Self>) {
        let share = async {
            if self.bank.is_shared() {
                self.share().await;
            }
            std::future::pending::<()>().await;
        };
        let forget = async {
            let mut ticks = ticks(FORGET);
            loop {
                ticks.tick().await;
                self.forget(Instant::now());
            }
        };
        tokio::join!(share, forget, self.load.watch());
    }

    fn forget(&self, now: Instant) {
        self.keys.forget(now);
        self.tenants.forget(now);
    }

    /// Gives back what is too much here, and says that this process is still there.
    async fn share(&self) {
        let (mut tidy, mut keep) = (ticks(TIDY), ticks(LEASE / 3));
        loop {
            tokio::select! {
                _ = tidy.tick() => self.tidy().await,
                _ = keep.tick() => {
                    if let Err(error) = self.bank.keep().await {
                        self.went_away(&error);
                    }
                }
            }
        }
    }

    async fn tidy(&self) {
        let now = Instant::now();
        if self.mode(now) != Mode::Together {
            return;
        }
        let (mut wishes, mut places) = (Vec::new(), Vec::new());
        self.each(|subject| {
            let mut state = subject.state();
            for which in [Which::Requests, Which::Tokens] {
                let wish = state.meter(which).and_then(|meter| meter.tidy(|| subject.of(which), now));
                wishes.extend(wish.map(|wish| (Arc::clone(subject), which, wish)));
            }
            // Who asks at the moment wants more.
            if let Ok(asking) = subject.asking.try_acquire() {
                drop(asking);
                places.extend(state.places.has_spare().then(|| Arc::clone(subject)));
            }
        });
        let wishes = wishes.iter().map(|(subject, which, wish)| (subject, *which, wish.clone())).collect();
        if !self.ask_for(wishes).await {
            return;
        }
        for subject in places {
            let _asking = subject.asking.acquire().await;
            let Some((enough, limit)) = subject.state().places.tidy() else { continue };
            match self.bank.hold(&subject.of(Which::Places), enough, limit).await {
                Ok(held) => subject.state().places.held = held,
                Err(error) => return self.went_away(&error),
            }
        }
    }
}

fn ticks(every: Duration) -> tokio::time::Interval {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// What is to be said, if both are lacking: what is reached before what can be asked for, and the longer wait.
fn worse(before: Option<Lacking>, lack: Lack, reached: Reached) -> Lacking {
    match (before, lack) {
        (Some(Lacking::Reached(before)), Lack::Full(wait)) if before.wait >= wait => Lacking::Reached(before),
        (_, Lack::Full(wait)) => Lacking::Reached(Reached { wait, ..reached }),
        (Some(before), Lack::Ask) => before,
        (None, Lack::Ask) => Lacking::Ask,
    }
}
