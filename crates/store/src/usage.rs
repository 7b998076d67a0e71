//! What was used: sums by tenant, key, model and hour, and what of it was paid.
//!
//! Rows are added up in memory and come in batches. A batch has a number of its worker, and counts once however often it
//! is sent: a commit whose answer was lost is sent again.

use std::collections::BTreeMap;

use crate::upkeep::upkeep;
use crate::{Backend, Error, Store, Tenant, Worker, sqlite};

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

/// Billionths of a US dollar as dollars, without zeros at the end.
pub fn dollars(nanodollars: u64) -> String {
    const NANO: u64 = 1_000_000_000;
    let (whole, part) = (nanodollars / NANO, nanodollars % NANO);
    if part == 0 {
        return whole.to_string();
    }
    format!("{whole}.{part:09}").trim_end_matches('0').to_owned()
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
#[expect(clippy::struct_excessive_bools, reason = "any of them may be asked for with any other")]
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

/// As much as a sum in the database may be: whole numbers up to here are floats as well, so no sum of them overflows.
const MOST: u64 = 1 << 53;

/// How long the number of a worker's last batch is remembered after it came, in milliseconds. Nobody tries for longer to
/// send one again.
pub(crate) const REMEMBERED_MS: i64 = 2 * 24 * 60 * 60 * 1000;

impl UsageSum {
    /// In the order of the columns.
    const fn counts(&self) -> [u64; 8] {
        [
            self.requests,
            self.unpriced,
            self.input_tokens,
            self.cached_tokens,
            self.output_tokens,
            self.reasoning_tokens,
            self.tool_calls,
            self.nanodollars,
        ]
    }

    const fn of(counts: [u64; 8]) -> Self {
        let [requests, unpriced, input_tokens, cached_tokens, output_tokens, reasoning_tokens, tool_calls, nanodollars] =
            counts;
        Self {
            requests,
            unpriced,
            input_tokens,
            cached_tokens,
            output_tokens,
            reasoning_tokens,
            tool_calls,
            nanodollars,
        }
    }

    /// Both together.
    pub fn add(&mut self, more: Self) {
        let mut counts = self.counts();
        for (into, more) in counts.iter_mut().zip(more.counts()) {
            *into = into.saturating_add(more);
        }
        *self = Self::of(counts);
    }

    pub(crate) fn columns(&self) -> [i64; 8] {
        self.counts().map(|sum| i64::try_from(sum.min(MOST)).unwrap_or(i64::MAX))
    }

    pub(crate) fn from_columns(columns: [i64; 8]) -> Self {
        Self::of(columns.map(|sum| u64::try_from(sum).unwrap_or(0)))
    }
}

/// A batch made ready for the writer: each key once, in order.
#[derive(Debug)]
pub(crate) struct PreparedUsage {
    pub(crate) worker: Worker,
    pub(crate) number: i64,
    pub(crate) rows: BTreeMap<UsageKey, [i64; 8]>,
}

impl PreparedUsage {
    pub(crate) fn new(batch: UsageBatch) -> Self {
        let UsageBatch { worker, number, rows } = batch;
        let mut sums = BTreeMap::<UsageKey, UsageSum>::new();
        for (key, sum) in rows {
            sums.entry(key).or_default().add(sum);
        }
        let rows = sums.into_iter().map(|(key, sum)| (key, sum.columns())).collect();
        Self { worker, number, rows }
    }
}

impl Store {
    /// Adds a batch, once: one whose number is not larger than that of an earlier batch of the worker was counted, and is not
    /// counted again.
    pub async fn add_usage(&self, batch: UsageBatch) -> Result<(), Error> {
        let batch = PreparedUsage::new(batch);
        upkeep!(self, write, add_usage(&batch))
    }

    /// Sums, ordered by hour, tenant, key, provider, model.
    pub async fn usage(&self, query: UsageQuery) -> Result<Vec<(UsageKey, UsageSum)>, Error> {
        upkeep!(self, read, usage(&query))
    }

    /// What each has spent from that hour on, in nanodollars, in the order asked for.
    pub async fn spent(&self, spenders: Vec<(Spender, i64)>) -> Result<Vec<u64>, Error> {
        upkeep!(self, read, spent(&spenders))
    }
}
