//! What is left of budgets. A budget that somebody uses here has a tab: what the store says was spent in its period, by
//! all processes; what was spent here and is not written yet; and what running turns will cost at least.
//!
//! A turn begins as long as anything is left that is not promised to others, so what is spent ends beyond the budget by
//! what running turns cost more than was expected of them. Where several processes share a budget, what each has promised
//! is held in the database, as places of running turns are.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use foldhash::HashMap;
use store::Spender;

use super::period;
use crate::access::Grant;
use crate::terms::{Budget, Period};

/// A tab that nobody has asked for while the store was read so often is forgotten.
const IDLE: u32 = 600;

/// The tabs of this process.
#[derive(Debug, Default)]
pub(super) struct Tabs {
    /// By the ids of keys, and by the names of tenants.
    keys: RwLock<HashMap<String, Arc<Tab>>>,
    tenants: RwLock<HashMap<String, Arc<Tab>>>,
    /// How many there are: most have none.
    count: AtomicUsize,
}

/// What is known of one budget.
#[derive(Debug)]
pub(super) struct Tab {
    /// `key` or `project`.
    whose: &'static str,
    /// As the database knows what is promised of it.
    pub(super) subject: Box<str>,
    state: Mutex<State>,
    /// Held by whoever asks the database to hold more, or less.
    pub(super) asking: tokio::sync::Semaphore,
}

#[derive(Debug)]
struct State {
    budget: Budget,
    /// Who spends it: a tenant, or a key with those that it has taken the place of.
    spenders: Arc<[Spender]>,
    /// The first hour of the period, and the hour in which that was looked at.
    begin: i64,
    looked_at: i64,
    /// As the store says; None until it was asked.
    stored: Option<u64>,
    /// What is being written, and may be in the store already.
    writing: u64,
    /// What was spent since.
    open: u64,
    reserved: u64,
    /// What the database holds for this process; None: it was not asked.
    held: Option<u64>,
    /// What was spent here since the store was read, and between that and the time before: others may not have read it yet.
    fresh: [u64; 2],
    /// How often the store was read since somebody asked.
    idle: u32,
}

/// A budget is spent.
#[derive(Debug)]
pub(super) struct Spent {
    /// `key` or `project`.
    pub(super) whose: &'static str,
    pub(super) per: Period,
    /// It is not, but what is left is promised to running turns.
    pub(super) is_promised: bool,
}

/// Why nothing is set aside.
#[derive(Debug)]
pub(super) enum Lack {
    Spent(Spent),
    /// The database is to hold more.
    Ask(Arc<Tab>),
}

/// How other processes are heeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    /// There are none.
    None,
    /// They may have promised what is left.
    Some,
    /// They have: the database holds less for us than was asked for.
    Took,
}

/// What is asked of the store: whose spending, and since when.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) spenders: Arc<[Spender]>,
    begin: i64,
}

impl Asked {
    pub(super) fn each(&self) -> impl Iterator<Item = (Spender, i64)> {
        self.spenders.iter().map(|spender| (spender.clone(), self.begin))
    }
}

/// Who spends the budget of a key.
fn spenders(grant: &Grant) -> Arc<[Spender]> {
    let line = if grant.line.is_empty() { std::slice::from_ref(&grant.id) } else { &grant.line };
    line.iter().cloned().map(Spender::Key).collect()
}

impl Tabs {
    /// Those that a grant's turns are on: of its key, and of its tenant. And whether it is known what was spent on both.
    pub(super) fn of(&self, grant: &Grant, hour: i64) -> ([Option<Arc<Tab>>; 2], bool) {
        let mut are_known = true;
        let key = grant.terms.budget.map(|budget| {
            let new = |name: &str| Tab::new("key", name, spenders(grant), budget, hour);
            let tab = self.tab(&self.keys, grant.limited_as(), new);
            are_known &= tab.turn_to(budget, hour, Some(grant));
            tab
        });
        let tenant = grant.tenant_terms.budget.map(|budget| {
            let spender = || Arc::from([Spender::Tenant(grant.tenant.clone())]);
            let new = |name: &str| Tab::new("project", name, spender(), budget, hour);
            let tab = self.tab(&self.tenants, grant.tenant.name(), new);
            are_known &= tab.turn_to(budget, hour, None);
            tab
        });
        ([key, tenant], are_known)
    }

    fn tab(&self, tabs: &RwLock<HashMap<String, Arc<Tab>>>, name: &str, new: impl FnOnce(&str) -> Tab) -> Arc<Tab> {
        let known = tabs.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        known.unwrap_or_else(|| {
            let mut tabs = tabs.write().unwrap_or_else(PoisonError::into_inner);
            self.count.fetch_add(usize::from(!tabs.contains_key(name)), Ordering::Relaxed);
            Arc::clone(tabs.entry(name.to_owned()).or_insert_with(|| Arc::new(new(name))))
        })
    }

    pub(super) fn clear(&self) {
        for tabs in [&self.keys, &self.tenants] {
            tabs.write().unwrap_or_else(PoisonError::into_inner).clear();
        }
        self.count.store(0, Ordering::Relaxed);
    }

    /// The key, and its tenant, have spent so much.
    pub(super) fn add(&self, key: &str, tenant: &str, nanodollars: u64) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        for (tabs, name) in [(&self.keys, key), (&self.tenants, tenant)] {
            if let Some(tab) = tabs.read().unwrap_or_else(PoisonError::into_inner).get(name) {
                let mut state = tab.enter();
                state.open = state.open.saturating_add(nanodollars);
                state.fresh[0] = state.fresh[0].saturating_add(nanodollars);
            }
        }
    }

    /// What was spent so far is in the batch that is written next.
    pub(super) fn writing(&self) {
        self.each(|tab| {
            let mut state = tab.enter();
            state.writing = state.writing.saturating_add(std::mem::take(&mut state.open));
        });
    }

    /// All of them, with what the store is to be asked; those that nobody needs are forgotten.
    pub(super) fn all(&self, hour: i64) -> Vec<(Arc<Tab>, Asked)> {
        for tabs in [&self.keys, &self.tenants] {
            let mut tabs = tabs.write().unwrap_or_else(PoisonError::into_inner);
            let before = tabs.len();
            tabs.retain(|_, tab| tab.is_needed());
            self.count.fetch_sub(before - tabs.len(), Ordering::Relaxed);
        }
        let mut all = Vec::new();
        self.each(|tab| {
            let budget = tab.enter().budget;
            tab.roll(budget, hour);
            all.push((Arc::clone(tab), tab.enter().asked()));
        });
        all
    }

    pub(super) fn each_now(&self) -> Vec<Arc<Tab>> {
        let mut all = Vec::new();
        self.each(|tab| all.push(Arc::clone(tab)));
        all
    }

    fn each(&self, mut visit: impl FnMut(&Arc<Tab>)) {
        for tabs in [&self.keys, &self.tenants] {
            tabs.read().unwrap_or_else(PoisonError::into_inner).values().for_each(&mut visit);
        }
    }
}

impl State {
    /// What is to be held: for turns that run, and what others may not know to be spent.
    fn needed(&self) -> u64 {
        self.fresh.into_iter().fold(self.reserved, u64::saturating_add)
    }

    /// What may be held by all: all that is left, with what is held because others may not know that it is spent.
    fn to_hold(&self) -> u64 {
        let known = self.fresh.into_iter().fold(self.spent(), u64::saturating_sub);
        self.budget.nanodollars.saturating_sub(known)
    }

    /// As far as it is known here.
    fn spent(&self) -> u64 {
        [self.stored.unwrap_or(0), self.writing, self.open].into_iter().fold(0, u64::saturating_add)
    }

    fn asked(&self) -> Asked {
        Asked { spenders: Arc::clone(&self.spenders), begin: self.begin }
    }
}

impl Tab {
    fn new(whose: &'static str, name: &str, spenders: Arc<[Spender]>, budget: Budget, hour: i64) -> Self {
        let state = State {
            budget,
            spenders,
            begin: period::begin(budget.per, hour),
            looked_at: hour,
            stored: None,
            writing: 0,
            open: 0,
            reserved: 0,
            held: None,
            fresh: [0; 2],
            idle: 0,
        };
        let subject = format!("{whose}/{name}/budget").into();
        Self { whose, subject, state: Mutex::new(state), asking: tokio::sync::Semaphore::new(1) }
    }

    fn enter(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody asks for it, at this hour, and the budget may be another by now; so may the key be that spends it. Whether it
    /// is known what was spent.
    fn turn_to(&self, budget: Budget, hour: i64, key: Option<&Grant>) -> bool {
        let mut state = self.enter();
        state.idle = 0;
        if let Some(grant) = key.filter(|grant| grant.line.len() > state.spenders.len()) {
            // What the new one has spent elsewhere was not asked for until now.
            (state.spenders, state.stored) = (spenders(grant), None);
        }
        if (state.budget, state.looked_at) == (budget, hour) {
            return state.stored.is_some();
        }
        drop(state);
        self.roll(budget, hour);
        false
    }

    fn roll(&self, budget: Budget, hour: i64) {
        let mut state = self.enter();
        let begin = period::begin(budget.per, hour);
        if begin > state.begin && budget.per == state.budget.per {
            // Nothing of the period before counts; what others have spent in this one is soon known.
            (state.stored, state.writing, state.open) = (state.stored.map(|_| 0), 0, 0);
        } else if begin != state.begin {
            // Another kind of period: the store has to say.
            state.stored = None;
        }
        (state.budget, state.begin, state.looked_at) = (budget, begin, hour);
    }

    /// What the store has to be asked before the budget can be held against anything.
    pub(super) fn unknown(&self) -> Option<Asked> {
        let state = self.enter();
        state.stored.is_none().then(|| state.asked())
    }

    /// What the store says, which has all that was being written.
    pub(super) fn read(&self, asked: &Asked, spent: &[u64]) {
        let mut state = self.enter();
        // A new period may have begun since it was asked, or another key have come to those that spend it.
        if state.begin == asked.begin && Arc::ptr_eq(&state.spenders, &asked.spenders) {
            (state.stored, state.writing) = (Some(spent.iter().copied().fold(0, u64::saturating_add)), 0);
        }
    }

    fn is_needed(&self) -> bool {
        let mut state = self.enter();
        state.idle += 1;
        state.idle < IDLE || state.reserved > 0 || state.open > 0 || state.writing > 0
    }

    fn reserve(self: &Arc<Self>, nanodollars: u64, others: Others) -> Result<(), Lack> {
        let mut state = self.enter();
        let (spent, all) = (state.spent(), state.budget.nanodollars);
        let refused = Spent { whose: self.whose, per: state.budget.per, is_promised: spent < all };
        if spent.saturating_add(state.reserved) >= all {
            return Err(Lack::Spent(refused));
        }
        let free = state.held.unwrap_or(0).saturating_sub(state.needed());
        if others != Others::None && free < nanodollars {
            if others == Others::Some {
                return Err(Lack::Ask(Arc::clone(self)));
            }
            // As here alone: a turn begins while anything is left.
            if free == 0 {
                return Err(Lack::Spent(refused));
            }
        }
        state.reserved = state.reserved.saturating_add(nanodollars);
        Ok(())
    }

    /// What is to be held for one more turn, and how much all processes together may hold.
    pub(super) fn wish(&self, nanodollars: u64) -> (u64, u64) {
        let state = self.enter();
        (state.needed().saturating_add(nanodollars), state.to_hold())
    }

    /// What the database holds for this process now.
    pub(super) fn holds(&self, held: u64) {
        self.enter().held = Some(held);
    }

    /// The store was read. What is held beyond what is needed, if anything is: how much is to be held, and how much all
    /// processes together may hold.
    pub(super) fn spare(&self) -> Option<(u64, u64)> {
        let mut state = self.enter();
        state.fresh = [0, state.fresh[0]];
        let needed = state.needed();
        state.held.is_none_or(|held| held > needed).then(|| (needed, state.to_hold()))
    }
}

/// What a running turn will cost at least, set aside until this is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    tabs: [Option<Arc<Tab>>; 2],
    nanodollars: u64,
}

impl Reservation {
    /// On both tabs, or on none.
    pub(super) fn make(tabs: &[Option<Arc<Tab>>; 2], nanodollars: u64, others: [Others; 2]) -> Result<Self, Lack> {
        let mut made = Self { tabs: [None, None], nanodollars };
        for ((made, tab), others) in made.tabs.iter_mut().zip(tabs).zip(others) {
            if let Some(tab) = tab {
                tab.reserve(nanodollars, others)?;
            }
            made.clone_from(tab);
        }
        Ok(made)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        for tab in self.tabs.iter().flatten() {
            let mut state = tab.enter();
            state.reserved = state.reserved.saturating_sub(self.nanodollars);
        }
    }
}
