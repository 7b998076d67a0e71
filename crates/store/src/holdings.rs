//! What a tenant has in the store: counted, listed, given out whole, erased.

use bytes::Bytes;

use crate::{Error, Status, Store, Tenant, Tenanted};

/// How much a tenant has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holdings {
    pub tenant: Tenant,
    pub responses: u64,
    pub conversations: u64,
}

/// A response or a conversation, as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// `resp_…` or `conv_…`.
    pub id: String,
    /// Unix milliseconds.
    pub created_at: i64,
    pub expires_at: Option<i64>,
    /// Of a response.
    pub status: Option<Status>,
    pub previous_response: Option<String>,
    pub conversation: Option<String>,
}

/// One thing of a tenant, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exported {
    /// Its object, its own input items and its output items.
    Response {
        holding: Holding,
        object: Bytes,
        input: Vec<Bytes>,
        output: Vec<Bytes>,
    },
    Conversation {
        holding: Holding,
        metadata: Bytes,
        items: Vec<Bytes>,
    },
}

/// What was erased.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Erased {
    pub responses: u64,
    pub conversations: u64,
    pub items: u64,
    /// Of any other kind: events, jobs, idempotency keys, notices, usage.
    pub others: u64,
}

impl Store {
    /// Every tenant that has anything, by name.
    pub async fn holdings(&self) -> Result<Vec<Holdings>, Error> {
        Err(Error::unavailable("not built"))
    }

    /// Erases everything that is the tenant's, but its API keys: when this returns, no byte of it is in SQLite's files,
    /// and no row of it on Postgres.
    pub async fn erase_tenant(&self, tenant: &Tenant) -> Result<Erased, Error> {
        let _ = tenant;
        Err(Error::unavailable("not built"))
    }
}

impl Tenanted {
    /// Up to `most` responses and conversations, the oldest first, after the one that was listed last.
    pub async fn held(&self, after: Option<Holding>, most: usize) -> Result<Vec<Holding>, Error> {
        let _ = (after, most);
        Err(Error::unavailable("not built"))
    }

    /// One of them, whole; None if it is gone by now.
    pub async fn export(&self, holding: Holding) -> Result<Option<Exported>, Error> {
        let _ = holding;
        Err(Error::unavailable("not built"))
    }
}
