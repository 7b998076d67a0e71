//! The conversations that turns of this process hold: made to last while their turn runs, given back when it ends in
//! any way, also when its client is gone and the turn was dropped.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use store::{Lease, Tenanted};
use tokio::sync::Notify;

/// How long a conversation stays locked when the process that holds it dies.
pub(crate) const LEASE: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(super) struct Leases {
    state: Mutex<State>,
    returned: Notify,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    held: BTreeMap<u64, (Tenanted, Lease)>,
    returned: Vec<(Tenanted, Lease)>,
    /// Given back a short while ago.
    lately: Vec<(Tenanted, Lease)>,
}

/// A conversation that one turn holds.
#[derive(Debug)]
pub(super) struct Held {
    leases: Arc<Leases>,
    key: u64,
    pub(super) lease: Lease,
    /// The lease has ended, or never began: there is nothing to give back.
    over: bool,
}

impl Leases {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn hold(self: &Arc<Self>, store: Tenanted, lease: Lease) -> Held {
        let mut state = self.state();
        state.next += 1;
        let key = state.next;
        state.held.insert(key, (store, lease.clone()));
        Held { leases: Arc::clone(self), key, lease, over: false }
    }

    /// Waits until there is something to give back.
    pub(super) async fn returned(&self) {
        self.returned.notified().await;
    }

    pub(super) async fn give_back(&self) {
        let returned = std::mem::take(&mut self.state().returned);
        for (store, lease) in &returned {
            if let Err(error) = store.end_turn(lease).await {
                // It runs out by itself.
                tracing::debug!(%error, conversation_id = lease.conversation(), "a conversation was not given back");
            }
        }
        self.state().lately.extend(returned);
    }

    pub(super) async fn extend(&self) {
        // On a database with many connections, what took a conversation may have come after what gave it back.
        let lately = std::mem::take(&mut self.state().lately);
        for (store, lease) in lately {
            let _ = store.end_turn(&lease).await;
        }
        let held: Vec<_> = self.state().held.values().cloned().collect();
        for (store, lease) in held {
            if let Err(error) = store.extend_turn(&lease, LEASE).await {
                tracing::warn!(%error, conversation_id = lease.conversation(), "a conversation's lease was not extended");
            }
        }
    }
}

impl Held {
    /// Storing the turn has ended the lease, or nobody ever had it.
    pub(super) fn lease_is_over(mut self) {
        self.over = true;
    }

    /// Gives the conversation back before anybody is told that the turn is over: the next one may come at once.
    pub(super) async fn release(mut self) {
        let held = self.leases.state().held.get(&self.key).cloned();
        if let Some((store, lease)) = held {
            self.over = store.end_turn(&lease).await.is_ok();
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.leases.state();
        let held = state.held.remove(&self.key);
        if !self.over {
            state.returned.extend(held);
            self.leases.returned.notify_one();
        }
    }
}
