//! What may be used once, such as an approval. A use is written before anything is done with it, and stays, whatever becomes
//! of the response and of this process: what was begun is not begun again. Only who has done nothing with it gives it back.
//!
//! With `store: false` nothing is written: the use is known here, as long as this process lives and remembers it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use store::{Tenant, Tenanted};

use super::Keys;

/// How many uses are remembered of which nothing is written; the oldest go first.
const MOST: usize = 1 << 16;

type Name = (Tenant, Box<str>);

/// Uses of which nothing is written.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    by: HashMap<Name, Box<str>>,
    /// Oldest first.
    order: VecDeque<Name>,
}

/// Something that is to be used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewUse<'a> {
    /// No key that a client could send.
    pub(crate) name: &'a str,
    /// The response that uses it.
    pub(crate) response: &'a str,
    pub(crate) tenant: &'a Tenant,
    pub(crate) store: &'a Tenanted,
    /// Whether it may be written.
    pub(crate) written: bool,
    /// For how long it must not be used again.
    pub(crate) keep: Duration,
}

/// Whether it could be used.
#[derive(Debug)]
pub(crate) enum Use {
    Ours(HeldUse),
    /// This response has used it.
    Used(String),
}

/// A use that is ours. Dropped before it is kept, it is given back.
#[derive(Debug)]
pub(crate) struct HeldUse {
    keys: Arc<Keys>,
    name: Name,
    response: String,
    /// Where it is written.
    store: Option<Tenanted>,
    kept: bool,
}

impl Remembered {
    fn add(&mut self, name: Name, response: &str) {
        while self.order.len() >= MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.by.remove(&oldest);
        }
        self.order.push_back(name.clone());
        self.by.insert(name, response.into());
    }

    pub(super) fn forget(&mut self, tenant: &Tenant) {
        self.by.retain(|(other, _), _| other != tenant);
        self.order.retain(|(other, _)| other != tenant);
    }

    fn remove(&mut self, name: &Name) {
        if self.by.remove(name).is_some()
            && let Some(place) = self.order.iter().rposition(|other| other == name)
        {
            self.order.remove(place);
        }
    }
}

impl Keys {
    /// Takes it, if nobody has.
    pub(crate) async fn use_up(self: &Arc<Self>, new: NewUse<'_>) -> Result<Use, store::Error> {
        let name = (new.tenant.clone(), new.name.into());
        {
            let mut state = self.state();
            if let Some(by) = state.used.by.get(&name) {
                return Ok(Use::Used(by.as_ref().into()));
            }
            if !new.written {
                state.used.add(name.clone(), new.response);
            }
        }
        // Held before it is written: a client that leaves in between gives it back all the same.
        let store = new.written.then(|| new.store.clone());
        let mut held = HeldUse { keys: Arc::clone(self), name, response: new.response.to_owned(), store, kept: false };
        let user = match &held.store {
            Some(store) => store.use_key(new.name, new.response, new.keep).await?,
            None => new.store.key_user(new.name).await?,
        };
        Ok(match user {
            None => Use::Ours(held),
            Some(user) => {
                held.kept = new.written;
                Use::Used(user)
            }
        })
    }
}

impl HeldUse {
    /// Something is done with it, now: nobody else may do it again.
    pub(crate) fn keep(mut self) {
        self.kept = true;
    }

    /// Gives it back before anybody is told that nothing was done: the next try may come at once.
    pub(crate) async fn release(mut self) {
        if let Some(store) = &self.store {
            self.kept = store.release_key(&self.name.1, &self.response).await.is_ok();
        }
    }
}

impl Drop for HeldUse {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        let mut state = self.keys.state();
        match self.store.take() {
            None => state.used.remove(&self.name),
            Some(store) => {
                state.returned.push((store, std::mem::take(&mut self.name.1), std::mem::take(&mut self.response)));
                self.keys.returned.notify_one();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use store::{MemoryLimits, Store};

    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    struct Rig {
        keys: Arc<Keys>,
        store: Store,
    }

    impl Rig {
        fn new() -> Self {
            Self { keys: Arc::default(), store: Store::memory(MemoryLimits::default()).unwrap() }
        }

        async fn used(&self, tenant: &str, response: &str, written: bool) -> Use {
            let tenant = Tenant::new(tenant);
            let store = self.store.for_tenant(tenant.clone());
            let new = NewUse { name: "a use", response, tenant: &tenant, store: &store, written, keep: DAY };
            self.keys.use_up(new).await.unwrap()
        }
    }

    fn ours(used: Use) -> HeldUse {
        match used {
            Use::Ours(held) => held,
            Use::Used(by) => panic!("{by}"),
        }
    }

    fn user(used: Use) -> String {
        match used {
            Use::Ours(_) => "nobody".to_owned(),
            Use::Used(by) => by,
        }
    }

    #[tokio::test]
    async fn what_is_kept_is_used_and_what_is_dropped_is_not() {
        for (first, second) in [(true, true), (true, false), (false, true), (false, false)] {
            let rig = Rig::new();
            drop(ours(rig.used("t", "r0", first).await));
            rig.keys.give_back().await;
            ours(rig.used("t", "r1", first).await).release().await;
            let held = ours(rig.used("t", "r2", first).await);
            assert_eq!(user(rig.used("t", "r3", second).await), "r2", "while it is held");
            held.keep();
            rig.keys.give_back().await;
            assert_eq!(user(rig.used("t", "r3", second).await), "r2", "{first} {second}");
            assert_eq!(user(rig.used("another", "r3", second).await), "nobody", "{first} {second}");
            // Who was refused gives nothing back that is another's.
            rig.keys.give_back().await;
            assert_eq!(user(rig.used("t", "r4", first).await), "r2", "{first} {second}");
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut used = Remembered::default();
        let name = |n: usize| (Tenant::default(), n.to_string().into_boxed_str());
        for n in 0..MOST + 10 {
            used.add(name(n), "r");
        }
        assert_eq!((used.by.len(), used.order.len()), (MOST, MOST));
        assert!(!used.by.contains_key(&name(9)) && used.by.contains_key(&name(10)));
        used.remove(&name(10));
        used.remove(&name(10));
        assert_eq!((used.by.len(), used.order.len()), (MOST - 1, MOST - 1));
    }
}
