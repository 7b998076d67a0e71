//! Lists of tools that their servers allow to be kept: each for one tenant and one set of credentials, for as long as the
//! server says, and no more of them than fit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::mcp::ToolList;
use http::{HeaderName, HeaderValue};
use store::Tenant;
use tokio::time::Instant;

use super::ServerAt;

/// What all lists together may take.
const MOST_BYTES: usize = 32 << 20;
/// However long a server says.
const LONGEST: Duration = Duration::from_hours(1);

/// Whose list it is: nobody else gets it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct ListKey {
    tenant: String,
    address: String,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl ListKey {
    pub(crate) fn new(tenant: &str, at: &ServerAt) -> Self {
        let (address, headers) = match at {
            ServerAt::Http { endpoint, .. } => (endpoint.url.clone(), endpoint.headers.clone()),
            // No URL has a blank.
            ServerAt::Process(config) => (format!("process {}", config.label), Vec::new()),
        };
        Self { tenant: tenant.to_owned(), address, headers }
    }
}

impl std::fmt::Debug for ListKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ListKey").finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Lists(Mutex<HashMap<ListKey, Kept>>);

#[derive(Debug)]
struct Kept {
    list: Arc<ToolList>,
    bytes: usize,
    until: Instant,
}

impl Lists {
    pub(crate) fn get(&self, key: &ListKey) -> Option<Arc<ToolList>> {
        let lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = lists.get(key).filter(|kept| Instant::now() < kept.until)?;
        Some(Arc::clone(&kept.list))
    }

    /// Forgets those of a tenant.
    pub(crate) fn forget(&self, tenant: &Tenant) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|key, _| key.tenant != tenant.name());
    }

    /// Keeps it, if its server lets us.
    pub(crate) fn put(&self, key: ListKey, list: &Arc<ToolList>) {
        let (now, ttl) = (Instant::now(), list.ttl.min(LONGEST));
        let bytes = 256 + list.tools.iter().map(size).sum::<usize>();
        if ttl.is_zero() || bytes > MOST_BYTES {
            return;
        }
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lists.retain(|_, kept| now < kept.until);
        let mut held: usize = lists.values().map(|kept| kept.bytes).sum();
        while held + bytes > MOST_BYTES {
            // What would be gone first goes first.
            let Some(first) = lists.iter().min_by_key(|(_, kept)| kept.until).map(|(key, _)| key.clone()) else {
                break;
            };
            held -= lists.remove(&first).map_or(0, |kept| kept.bytes);
        }
        lists.insert(key, Kept { list: Arc::clone(list), bytes, until: now + ttl });
    }
}

fn size(tool: &::mcp::Tool) -> usize {
    128 + tool.name.len() + tool.description.as_ref().map_or(0, String::len) + tool.input_schema.len()
}

#[cfg(test)]
mod tests {
    use ::mcp::{Endpoint, Tool};

    use super::*;
    use crate::outbound::Reach;

    fn key(tenant: &str, url: &str, token: &'static str) -> ListKey {
        let headers = vec![(http::header::AUTHORIZATION, HeaderValue::from_static(token))];
        let endpoint = Endpoint { url: url.to_owned(), headers };
        ListKey::new(tenant, &ServerAt::Http { endpoint, reach: Reach::Public })
    }

    fn list(ttl: u64, schema: usize) -> Arc<ToolList> {
        let tool = Tool { name: "a".to_owned(), description: None, input_schema: "x".repeat(schema), read_only: false };
        Arc::new(ToolList { tools: vec![tool], ttl: Duration::from_secs(ttl), public: false })
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_is_kept_for_its_time_and_its_owner() {
        let lists = Lists::default();
        let mine = key("a", "https://a.example/", "one");
        lists.put(mine.clone(), &list(60, 1));
        assert!(lists.get(&mine).is_some());
        for other in [
            key("b", "https://a.example/", "one"),
            key("a", "https://a.example/x", "one"),
            key("a", "https://a.example/", "two"),
        ] {
            assert!(lists.get(&other).is_none());
        }
        tokio::time::advance(Duration::from_secs(61)).await;
        assert!(lists.get(&mine).is_none());
        lists.put(mine.clone(), &list(0, 1));
        assert!(lists.get(&mine).is_none());
        lists.put(mine.clone(), &list(1 << 40, 1));
        tokio::time::advance(Duration::from_secs(3601)).await;
        assert!(lists.get(&mine).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_is_kept_than_fits() {
        let lists = Lists::default();
        let of = |n: u64| key("a", &format!("https://a.example/{n}"), "one");
        for n in 0..20 {
            lists.put(of(n), &list(60 + n, 4 << 20));
        }
        let kept: Vec<u64> = (0..20).filter(|n| lists.get(&of(*n)).is_some()).collect();
        assert_eq!(kept, (13..20).collect::<Vec<_>>());
    }
}
