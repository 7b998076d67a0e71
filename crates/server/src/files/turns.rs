//! Who may run a process now: only so many at the same time, fewer of one tenant, and the tenants take turns. A tenant
//! that has none is served before one that has some, whoever came first, and tenants that have as many as each other are
//! served one after the other. So files of one tenant, however many and however slow, make no other one wait.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use store::Tenant;
use tokio::sync::oneshot;

/// All turns that there are.
#[derive(Debug)]
pub(super) struct Turns(Mutex<Queue>);

/// One turn; it is over when this is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    turns: Arc<Turns>,
    tenant: Tenant,
}

#[derive(Debug)]
struct Queue {
    /// While there is a free one, only those wait who have as many as a tenant may have.
    free: usize,
    /// What one tenant may have at the same time.
    each: usize,
    /// How many turns a tenant has; whoever has none is not in it.
    held: HashMap<Tenant, usize>,
    /// Each tenant once, the one that was served last at the end.
    waiting: VecDeque<(Tenant, VecDeque<oneshot::Sender<Turn>>)>,
}

impl Turns {
    /// So many, of which each tenant may have so many.
    pub(super) fn new(at_once: usize, each: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Queue { free: at_once, each, held: HashMap::new(), waiting: VecDeque::new() })))
    }

    /// Waits for a turn. Whoever stops waiting has none.
    pub(super) async fn take(self: &Arc<Self>, tenant: &Tenant) -> Option<Turn> {
        let given = {
            let mut queue = self.queue();
            if queue.free > 0 && queue.held(tenant) < queue.each {
                queue.count(tenant);
                return Some(self.turn(tenant.clone()));
            }
            queue.wait(tenant)
        };
        given.await.ok()
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(self: &Arc<Self>, tenant: Tenant) -> Turn {
        Turn { turns: Arc::clone(self), tenant }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let next = {
            let mut queue = self.turns.queue();
            queue.uncount(&self.tenant);
            queue.next()
        };
        // One that nobody takes any more is dropped here, and so given to the next.
        if let Some((tenant, waiting)) = next {
            drop(waiting.send(self.turns.turn(tenant)));
        }
    }
}

impl Queue {
    fn held(&self, tenant: &Tenant) -> usize {
        self.held.get(tenant).copied().unwrap_or_default()
    }

    fn count(&mut self, tenant: &Tenant) {
        self.free -= 1;
        *self.held.entry(tenant.clone()).or_default() += 1;
    }

    fn uncount(&mut self, tenant: &Tenant) {
        self.free += 1;
        if let Some(held) = self.held.get_mut(tenant) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(tenant);
            }
        }
    }

    fn wait(&mut self, tenant: &Tenant) -> oneshot::Receiver<Turn> {
        let (give, given) = oneshot::channel();
        match self.waiting.iter_mut().find(|(waiting, _)| waiting == tenant) {
            Some((_, places)) => places.push_back(give),
            None => self.waiting.push_back((tenant.clone(), VecDeque::from([give]))),
        }
        given
    }

    /// Who is to have the free turn, counted as theirs; nobody, if all who wait have as many as they may.
    fn next(&mut self) -> Option<(Tenant, oneshot::Sender<Turn>)> {
        self.waiting.retain_mut(|(_, places)| {
            places.retain(|place| !place.is_closed());
            !places.is_empty()
        });
        let held = self.waiting.iter().map(|(tenant, _)| self.held(tenant)).enumerate();
        let (at, _) = held.filter(|(_, held)| *held < self.each).min_by_key(|(_, held)| *held)?;
        let (tenant, mut places) = self.waiting.remove(at)?;
        let place = places.pop_front()?;
        if !places.is_empty() {
            self.waiting.push_back((tenant.clone(), places));
        }
        self.count(&tenant);
        Some((tenant, place))
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use futures_util::FutureExt;

    use super::*;

    type Waiting = (&'static str, Pin<Box<dyn Future<Output = Option<Turn>>>>);

    /// Begins to wait.
    fn ask(turns: &Arc<Turns>, name: &'static str) -> Waiting {
        let turns = Arc::clone(turns);
        let mut taking: Pin<Box<dyn Future<Output = _>>> =
            Box::pin(async move { turns.take(&Tenant::new(name)).await });
        assert!(taking.as_mut().now_or_never().is_none(), "{name} has to wait");
        (name, taking)
    }

    /// Who of those who wait has a turn now.
    fn served(waiting: &mut Vec<Waiting>) -> Option<(&'static str, Turn)> {
        for at in 0..waiting.len() {
            if let Some(turn) = waiting[at].1.as_mut().now_or_never() {
                return Some((waiting.remove(at).0, turn.unwrap()));
            }
        }
        None
    }

    /// Ends the turns in this order, and says who was served for each.
    fn order(mut turns: VecDeque<Turn>, waiting: &mut Vec<Waiting>) -> String {
        let mut order = String::new();
        while let Some(turn) = turns.pop_front() {
            drop(turn);
            if let Some((name, turn)) = served(waiting) {
                order.push_str(name);
                turns.push_back(turn);
            }
            assert!(served(waiting).is_none(), "one turn ended, one begins");
        }
        order
    }

    /// Of three turns, of which each may have two, these have one each.
    async fn taken(names: &[&str]) -> (Arc<Turns>, VecDeque<Turn>) {
        let (turns, mut held) = (Turns::new(3, 2), VecDeque::new());
        for name in names {
            held.push_back(turns.take(&Tenant::new(name)).await.unwrap());
        }
        (turns, held)
    }

    /// Turns that are free, tenants that hold some, tenants that wait.
    fn counts(turns: &Turns) -> (usize, usize, usize) {
        let queue = turns.queue();
        (queue.free, queue.held.len(), queue.waiting.len())
    }

    /// However long those of one tenant take.
    #[tokio::test]
    async fn nobody_waits_for_what_one_alone_has() {
        let (turns, held) = taken(&["a", "a"]).await;
        let mut waiting: Vec<Waiting> = ["a", "a"].map(|name| ask(&turns, name)).into();
        for name in ["b", "b", "c"] {
            let turn = turns.take(&Tenant::new(name)).now_or_never().flatten();
            assert!(turn.is_some(), "{name} need not wait");
            assert!(served(&mut waiting).is_none(), "`a` has all that it may have");
        }
        assert_eq!(counts(&turns), (1, 1, 1));
        assert_eq!(order(held, &mut waiting), "aa");
        assert_eq!(counts(&turns), (3, 0, 0));
    }

    #[tokio::test]
    async fn whoever_has_none_is_served_before_whoever_has_some() {
        let (turns, held) = taken(&["a", "a", "b"]).await;
        let mut waiting = ["a", "a", "a", "a", "b", "b", "c", "d"].map(|name| ask(&turns, name)).into();
        // `a` still has one when its first has ended; when both have, it waits for longest.
        assert_eq!(order(held, &mut waiting), "cabdabaa");
        assert_eq!(counts(&turns), (3, 0, 0));
    }

    /// Also one that was given its turn, and has gone before it looked.
    #[tokio::test]
    async fn whoever_is_gone_has_no_turn() {
        let (turns, mut held) = taken(&["a", "a", "b"]).await;
        let gone = ask(&turns, "b");
        let mut waiting = vec![ask(&turns, "c"), ask(&turns, "d")];
        let late = ask(&turns, "e");
        drop(gone);
        drop(held.pop_front());
        let (name, _turn) = served(&mut waiting).unwrap();
        assert_eq!(name, "c");
        drop(waiting);
        drop(held.pop_front());
        assert_eq!(counts(&turns), (0, 3, 0), "`e` was given one");
        drop(late);
        assert_eq!(counts(&turns), (1, 2, 0));
    }
}
