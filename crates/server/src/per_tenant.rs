//! Something that each tenant has of its own, in memory: what one tenant teaches the server is never used for another.
//!
//! There may be as many tenants as an identity provider names, so only so many are remembered: the one that was not heard
//! of for longest is forgotten first, and begins anew.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use store::Tenant;

/// Tenants that are remembered.
const MOST: usize = 256;

/// A `T` for each tenant.
#[derive(Debug)]
pub(crate) struct PerTenant<T>(Mutex<Known<T>>);

#[derive(Debug)]
struct Known<T> {
    by_tenant: HashMap<Tenant, Entry<T>>,
    /// Counts up with each use.
    now: u64,
}

#[derive(Debug)]
struct Entry<T> {
    value: Arc<T>,
    used_at: u64,
}

impl<T> Default for PerTenant<T> {
    fn default() -> Self {
        Self(Mutex::new(Known { by_tenant: HashMap::new(), now: 0 }))
    }
}

impl<T: Default> PerTenant<T> {
    /// This tenant's.
    pub(crate) fn of(&self, tenant: &Tenant) -> Arc<T> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.now += 1;
        let now = known.now;
        if let Some(entry) = known.by_tenant.get_mut(tenant) {
            entry.used_at = now;
            return Arc::clone(&entry.value);
        }
        if known.by_tenant.len() >= MOST {
            let oldest =
                known.by_tenant.iter().min_by_key(|(_, entry)| entry.used_at).map(|(tenant, _)| tenant.clone());
            oldest.map(|oldest| known.by_tenant.remove(&oldest));
        }
        let value = Arc::<T>::default();
        known.by_tenant.insert(tenant.clone(), Entry { value: Arc::clone(&value), used_at: now });
        value
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn each_tenant_has_its_own_and_the_oldest_is_forgotten_first() {
        let all = PerTenant::<AtomicU64>::default();
        let (one, two) = (Tenant::new("one"), Tenant::new("two"));
        all.of(&one).store(1, Ordering::Relaxed);
        assert_eq!((all.of(&one).load(Ordering::Relaxed), all.of(&two).load(Ordering::Relaxed)), (1, 0));
        for number in 0..2 * MOST {
            all.of(&Tenant::new(&number.to_string()));
            assert_eq!(all.of(&one).load(Ordering::Relaxed), 1, "whoever asks stays");
        }
        assert_eq!(all.0.lock().unwrap().by_tenant.len(), MOST);
        assert!(!all.0.lock().unwrap().by_tenant.contains_key(&two));
    }
}
