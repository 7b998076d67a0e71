//! What is kept beside the items of responses that are not stored, for a while: a client that holds its own history sends
//! the items back, and not what the model was told. Only in memory, only so much, the oldest goes first.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use store::Tenant;

use super::Beside;

const MOST_BYTES: usize = 64 << 20;
/// Where little memory may be used, such a part of it.
const PART: u64 = 16;
/// What is larger than this is not worth the place of all others.
const LARGEST: usize = 8 << 20;

#[derive(Debug)]
pub(super) struct Recall {
    state: Mutex<State>,
    most: usize,
}

/// Whose it is, and the item's id.
type Key = (Tenant, String);

#[derive(Debug, Default)]
struct State {
    members: HashMap<Key, Arc<str>>,
    /// The oldest first.
    order: VecDeque<Key>,
    bytes: usize,
}

impl Recall {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As much as fits into so much memory.
    pub(super) fn within(memory: Option<u64>) -> Self {
        let part = memory.and_then(|memory| usize::try_from(memory / PART).ok()).unwrap_or(MOST_BYTES);
        Self { state: Mutex::default(), most: part.min(MOST_BYTES) }
    }

    pub(super) fn keep(&self, tenant: &Tenant, kept: &[Beside]) {
        let mut state = self.state();
        for (id, member) in kept.iter().filter(|(_, member)| member.len() <= LARGEST) {
            let key = (tenant.clone(), id.clone());
            state.bytes += member.len();
            match state.members.insert(key.clone(), member.as_str().into()) {
                Some(before) => state.bytes -= before.len(),
                None => state.order.push_back(key),
            }
        }
        while state.bytes > self.most
            && let Some(oldest) = state.order.pop_front()
        {
            state.bytes -= state.members.remove(&oldest).map_or(0, |member| member.len());
        }
    }

    pub(super) fn forget(&self, tenant: &Tenant) {
        let mut state = self.state();
        let State { members, order, bytes } = &mut *state;
        order.retain(|(other, _)| other != tenant);
        members.retain(|(other, _), _| other != tenant);
        *bytes = members.values().map(|member| member.len()).sum();
    }

    pub(super) fn of(&self, tenant: &Tenant, id: &str) -> Option<Arc<str>> {
        self.state().members.get(&(tenant.clone(), id.to_owned())).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_first_and_nobody_sees_anothers() {
        let (recall, tenant) = (Recall::within(None), Tenant::default());
        let member = "x".repeat(LARGEST);
        for number in 0..9 {
            recall.keep(&tenant, &[(format!("ws_{number}"), member.clone())]);
        }
        let known = (0..9).filter(|number| recall.of(&tenant, &format!("ws_{number}")).is_some());
        assert_eq!(known.collect::<Vec<_>>(), (1..9).collect::<Vec<_>>());
        assert!(recall.of(&Tenant::new("another"), "ws_8").is_none());
        recall.keep(&tenant, &[("ws_8".to_owned(), "y".to_owned()), ("ws_9".to_owned(), format!("{member}x"))]);
        assert_eq!(recall.of(&tenant, "ws_8").as_deref(), Some("y"));
        assert!(recall.of(&tenant, "ws_9").is_none() && recall.of(&tenant, "ws_1").is_some());
        let other = Tenant::new("another");
        recall.keep(&other, &[("ws_8".to_owned(), "z".to_owned())]);
        recall.forget(&tenant);
        assert!(recall.of(&tenant, "ws_8").is_none() && recall.of(&other, "ws_8").is_some());
        let state = recall.state();
        assert_eq!((state.bytes, state.order.len()), (1, 1));
    }
}
