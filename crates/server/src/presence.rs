//! Who is at work for which tenant. Before a tenant is erased its work has to be over, and none may begin: what ends
//! later would be stored after the erasure. Requests that make or change nothing count as well: it is simpler, and they end.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use store::Tenant;
use tokio::sync::Notify;

use crate::error::{ApiError, Code};
use crate::stop::{Phase, Stop};

/// All work that is under way in this process.
#[derive(Debug)]
pub(crate) struct Presence {
    stop: Arc<Stop>,
    tenants: Mutex<HashMap<Tenant, Work>>,
    /// How many tenants' work is cut off: nearly always none, and then nobody looks further.
    cutting: AtomicUsize,
    /// Somebody whose tenant is closed has left.
    left: Notify,
    /// Whose memory had to be forgotten, one after the other.
    forgotten: Mutex<Vec<Tenant>>,
    /// How many these are.
    forgotten_count: AtomicUsize,
}

#[derive(Debug, Default)]
struct Work {
    running: usize,
    gate: Gate,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Gate {
    #[default]
    Open,
    /// Nothing begins.
    Closed,
    /// What runs ends.
    Cut,
}

/// Something that is done for a tenant, until it is over.
#[derive(Debug)]
pub(crate) struct Present {
    presence: Arc<Presence>,
    tenant: Tenant,
}

/// A tenant for whom nothing begins, until this is gone.
#[derive(Debug)]
pub(crate) struct Closed {
    presence: Arc<Presence>,
    tenant: Tenant,
}

impl Presence {
    pub(crate) fn new(stop: Arc<Stop>) -> Arc<Self> {
        Arc::new(Self {
            stop,
            tenants: Mutex::default(),
            cutting: AtomicUsize::new(0),
            left: Notify::new(),
            forgotten: Mutex::default(),
            forgotten_count: AtomicUsize::new(0),
        })
    }

    fn tenants(&self) -> MutexGuard<'_, HashMap<Tenant, Work>> {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Work begins, unless the tenant is closed.
    pub(crate) fn enter(self: &Arc<Self>, tenant: &Tenant) -> Result<Present, ApiError> {
        let mut tenants = self.tenants();
        let work = tenants.entry(tenant.clone()).or_default();
        if work.gate != Gate::Open {
            return Err(closed());
        }
        work.running += 1;
        drop(tenants);
        Ok(Present { presence: Arc::clone(self), tenant: tenant.clone() })
    }

    /// Closes a tenant; None if somebody else has.
    pub(crate) fn close(self: &Arc<Self>, tenant: &Tenant) -> Option<Closed> {
        let mut tenants = self.tenants();
        let work = tenants.entry(tenant.clone()).or_default();
        if work.gate != Gate::Open {
            return None;
        }
        work.gate = Gate::Closed;
        drop(tenants);
        Some(Closed { presence: Arc::clone(self), tenant: tenant.clone() })
    }

    /// Ready when work for this tenant must end, at once: the server ends, or all of its work is cut off. It wakes nobody:
    /// it is for whoever runs inside a task that waits for changes of [`Stop`] itself and then polls what it runs once more.
    /// So a held stream has no place in any list.
    pub(crate) async fn must_end(&self, tenant: &Tenant) {
        poll_fn(|_| if self.is_over(tenant) { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    /// What is said of whatever has to end at once.
    pub(crate) fn ended(&self) -> ApiError {
        if self.stop.phase() == Phase::Now { ApiError::shutting_down() } else { closed() }
    }

    fn is_over(&self, tenant: &Tenant) -> bool {
        let is_cut = || self.tenants().get(tenant).is_some_and(|work| work.gate == Gate::Cut);
        self.stop.phase() == Phase::Now || (self.cutting.load(Ordering::Relaxed) > 0 && is_cut())
    }

    /// How often anything had to be forgotten so far.
    pub(crate) fn forgotten(&self) -> usize {
        self.forgotten_count.load(Ordering::Acquire)
    }

    /// Whether what is remembered of a tenant had to be forgotten since then.
    pub(crate) fn is_forgotten_since(&self, tenant: &Tenant, seen: usize) -> bool {
        if self.forgotten() == seen {
            return false;
        }
        let forgotten = self.forgotten.lock().unwrap_or_else(PoisonError::into_inner);
        forgotten.iter().skip(seen).any(|other| other == tenant)
    }

    fn leave(&self, tenant: &Tenant) {
        let mut tenants = self.tenants();
        let Some(work) = tenants.get_mut(tenant) else { return };
        work.running -= 1;
        match (work.running, work.gate) {
            (0, Gate::Open) => drop(tenants.remove(tenant)),
            (0, Gate::Closed | Gate::Cut) => self.left.notify_waiters(),
            _ => {}
        }
    }
}

/// What a piece of work starts belongs to it, whether or not the tenant was closed in between.
impl Clone for Present {
    fn clone(&self) -> Self {
        self.presence.tenants().entry(self.tenant.clone()).or_default().running += 1;
        Self { presence: Arc::clone(&self.presence), tenant: self.tenant.clone() }
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.presence.leave(&self.tenant);
    }
}

impl Closed {
    /// Ready when nothing runs.
    pub(crate) async fn idle(&self) {
        loop {
            // Made before the look: what ends in between is not missed.
            let mut left = std::pin::pin!(self.presence.left.notified());
            left.as_mut().enable();
            if self.presence.tenants().get(&self.tenant).is_none_or(|work| work.running == 0) {
                return;
            }
            left.await;
        }
    }

    /// What runs is to end at once.
    pub(crate) fn cut(&self) {
        if let Some(work) = self.presence.tenants().get_mut(&self.tenant)
            && work.gate == Gate::Closed
        {
            work.gate = Gate::Cut;
            self.presence.cutting.fetch_add(1, Ordering::Relaxed);
        }
        self.presence.stop.nudge();
    }

    /// Connections that remember something of the tenant forget it.
    pub(crate) fn forget(&self) {
        let mut forgotten = self.presence.forgotten.lock().unwrap_or_else(PoisonError::into_inner);
        forgotten.push(self.tenant.clone());
        self.presence.forgotten_count.store(forgotten.len(), Ordering::Release);
        drop(forgotten);
        self.presence.stop.nudge();
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        let mut tenants = self.presence.tenants();
        let Some(work) = tenants.get_mut(&self.tenant) else { return };
        if work.gate == Gate::Cut {
            self.presence.cutting.fetch_sub(1, Ordering::Relaxed);
        }
        work.gate = Gate::Open;
        if work.running == 0 {
            tenants.remove(&self.tenant);
        }
    }
}

fn closed() -> ApiError {
    ApiError::new(Code::TenantClosed, "What is stored for you is being erased.")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_closed_tenant_waits_for_its_work_and_lets_none_begin() {
        let (presence, a, b) = (Presence::new(Arc::new(Stop::new())), Tenant::new("a"), Tenant::new("b"));
        let first = presence.enter(&a).unwrap();
        let closed = presence.close(&a).unwrap();
        assert!(presence.close(&a).is_none() && presence.close(&b).is_some());
        let refused = presence.enter(&a).unwrap_err();
        assert_eq!((refused.status.as_u16(), refused.retry_after), (503, Some(1)));
        let _other = presence.enter(&b).unwrap();
        let second = first.clone();
        drop(first);
        assert!(tokio::time::timeout(Duration::from_secs(9), closed.idle()).await.is_err());
        assert!(presence.must_end(&a).now_or_never().is_none());
        closed.cut();
        assert!(presence.must_end(&a).now_or_never().is_some() && presence.must_end(&b).now_or_never().is_none());
        let ((), ()) = tokio::join!(closed.idle(), async { drop(second) });
        closed.forget();
        assert!(presence.is_forgotten_since(&a, 0) && !presence.is_forgotten_since(&b, 0));
        assert!(!presence.is_forgotten_since(&a, presence.forgotten()));
        drop(closed);
        assert!(presence.must_end(&a).now_or_never().is_none());
        drop(presence.enter(&a).unwrap());
        assert_eq!(presence.tenants().len(), 1, "only who works is known");
    }
}
