//! What was used: sums by tenant, key, model and hour, and what of it was paid.
//!
//! Rows are added up in memory and come in batches. A batch has a number of its worker, and counts once however often it
//! is sent: a commit whose answer was lost is sent again.

use crate::{Error, Store, Tenant, Worker};

/// Whose use, of what, in which hour.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UsageKey {
    pub tenant: String,
    /// The id of the API key; empty: none was wanted.
    pub key: String,
    pub provider: String,
    /// As the provider knows it.
    pub model: String,
    /// Hours since 1970, UTC.
    pub hour: i64,
}

/// How much.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsageSum {
    /// Answers of models.
    pub requests: u64,
    /// Of these, those whose price is not known.
    pub unpriced: u64,
    pub input_tokens: u64,
    pub cached_tokens: u64,
    pub output_tokens: u64,
    pub reasoning_tokens: u64,
    /// Calls of hosted tools.
    pub tool_calls: u64,
    /// Of all that has a price, in billionths of a US dollar.
    pub nanodollars: u64,
}

/// What was used since the batch before.
#[derive(Debug, Clone)]
pub struct UsageBatch {
    pub worker: Worker,
    /// Counted from 1 by that worker.
    pub number: i64,
    pub rows: Vec<(UsageKey, UsageSum)>,
}

/// By what usage is told apart. What is not is empty in the answer (the hour: 0).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsageBy {
    pub tenant: bool,
    pub key: bool,
    pub provider: bool,
    pub model: bool,
    /// In steps of that many hours, from 1970 on; 0: all together.
    pub hours: i64,
}

/// Which usage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageQuery {
    /// From this hour on.
    pub from: i64,
    /// Up to this hour, without it.
    pub to: i64,
    /// Only these; empty: all.
    pub tenants: Vec<String>,
    pub keys: Vec<String>,
    pub models: Vec<String>,
    pub by: UsageBy,
}

/// Whose spending is limited.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Spender {
    Key(String),
    Tenant(Tenant),
}

impl Store {
    /// Adds a batch, once.
    pub async fn add_usage(&self, batch: UsageBatch) -> Result<(), Error> {
        let _ = batch;
        Err(Error::unavailable("not built"))
    }

    /// Sums, ordered by hour, tenant, key, provider, model.
    pub async fn usage(&self, query: UsageQuery) -> Result<Vec<(UsageKey, UsageSum)>, Error> {
        let _ = query;
        Err(Error::unavailable("not built"))
    }

    /// What each has spent from that hour on, in nanodollars, in the order asked for.
    pub async fn spent(&self, spenders: Vec<(Spender, i64)>) -> Result<Vec<u64>, Error> {
        let _ = spenders;
        Err(Error::unavailable("not built"))
    }
}
