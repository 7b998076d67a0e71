//! Sums of what was used and is not written yet. They are kept as long as it takes; so that this has an end, models
//! beyond a number of rows are counted together: nothing is ever left out of a sum.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::{Mutex, MutexGuard, PoisonError};

use foldhash::quality::RandomState;
use store::{UsageKey, UsageSum};

use super::Used;

/// Requests that end at the same time rarely meet.
const SHARDS: usize = 8;
/// Rows of a shard; beyond that, models are not told apart.
const ROWS: usize = 4096;
/// Names are kept up to this length.
const LONGEST_NAME: usize = 256;
/// What is counted together.
const OTHERS: &str = "(others)";

#[derive(Debug, Default)]
pub(super) struct Pending {
    hasher: RandomState,
    shards: [Mutex<Shard>; SHARDS],
}

/// Rows by the hash of what they are of: so nothing is copied to look for one.
#[derive(Debug, Default)]
struct Shard {
    rows: HashMap<u64, Vec<(UsageKey, UsageSum)>>,
    count: usize,
}

/// What a row is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Of<'a> {
    tenant: &'a str,
    key: &'a str,
    provider: &'a str,
    model: &'a str,
    hour: i64,
}

impl Pending {
    pub(super) fn add(&self, used: &Used<'_>, hour: i64) {
        let clip = |name| -> &str {
            let name: &str = name;
            &name[..name.floor_char_boundary(LONGEST_NAME)]
        };
        let of =
            Of { tenant: used.tenant, key: used.key, provider: clip(used.provider), model: clip(used.model), hour };
        let hash = self.hasher.hash_one(of);
        let index = usize::try_from(hash % SHARDS as u64).unwrap_or(0);
        if let Some(shard) = self.shards.get(index) {
            enter(shard).add(of, hash, &self.hasher, sum_of(used));
        }
    }

    /// Everything, ordered; it is empty then.
    pub(super) fn take(&self) -> Vec<(UsageKey, UsageSum)> {
        let shards = self.shards.iter().map(|shard| std::mem::take(&mut *enter(shard)));
        let mut rows: Vec<_> = shards.flat_map(|shard| shard.rows.into_values().flatten()).collect();
        rows.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        rows
    }
}

fn enter(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shard {
    fn add(&mut self, of: Of<'_>, hash: u64, hasher: &RandomState, sum: UsageSum) {
        if let Some(row) = self.row(of, hash) {
            return row.add(sum);
        }
        if self.count < ROWS || of.model == OTHERS {
            let Of { tenant, key, provider, model, hour } = of;
            let [tenant, key, provider, model] = [tenant, key, provider, model].map(str::to_owned);
            self.rows.entry(hash).or_default().push((UsageKey { tenant, key, provider, model, hour }, sum));
            self.count += 1;
            return;
        }
        let others = Of { provider: "", model: OTHERS, ..of };
        self.add(others, hasher.hash_one(others), hasher, sum);
    }

    fn row(&mut self, of: Of<'_>, hash: u64) -> Option<&mut UsageSum> {
        let rows = self.rows.get_mut(&hash)?;
        let is_of = |key: &UsageKey| {
            let UsageKey { tenant, key, provider, model, hour } = key;
            Of { tenant, key, provider, model, hour: *hour } == of
        };
        rows.iter_mut().find(|(key, _)| is_of(key)).map(|(_, sum)| sum)
    }
}

fn sum_of(used: &Used<'_>) -> UsageSum {
    let Used { usage, nanodollars, tool_calls, .. } = used;
    let requests = u64::from(*tool_calls == 0);
    UsageSum {
        requests,
        unpriced: if nanodollars.is_none() { requests + tool_calls } else { 0 },
        input_tokens: usage.input_tokens,
        cached_tokens: usage.cached_tokens,
        output_tokens: usage.output_tokens,
        reasoning_tokens: usage.reasoning_tokens,
        tool_calls: *tool_calls,
        nanodollars: nanodollars.unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use wire::responses::Usage;

    use super::*;

    fn used(model: &str, nanodollars: Option<u64>) -> Used<'_> {
        let usage =
            Usage { input_tokens: 10, cached_tokens: 4, output_tokens: 3, reasoning_tokens: 1, ..Usage::default() };
        Used { tenant: "t", key: "k", limited_as: "k", provider: "p", model, usage, nanodollars, tool_calls: 0 }
    }

    #[test]
    fn what_is_of_the_same_is_one_row() {
        let pending = Pending::default();
        pending.add(&used("m", Some(5)), 7);
        pending.add(&used("m", None), 7);
        pending.add(&used("m", Some(5)), 8);
        pending.add(&Used { tool_calls: 1, usage: Usage::default(), ..used("search", Some(9)) }, 7);
        let rows = pending.take();
        let short: Vec<_> = rows
            .iter()
            .map(|(key, sum)| {
                let counts = (sum.requests, sum.unpriced, sum.input_tokens, sum.tool_calls, sum.nanodollars);
                (key.hour, &*key.model, counts)
            })
            .collect();
        let expected = [(7, "m", (2, 1, 20, 0, 5)), (8, "m", (1, 0, 10, 0, 5)), (7, "search", (0, 0, 0, 1, 9))];
        assert_eq!(short, expected);
        assert!(pending.take().is_empty());
    }

    #[test]
    fn a_flood_of_models_costs_only_so_much_and_loses_nothing() {
        let pending = Pending::default();
        let flood = (SHARDS * ROWS * 2) as u64;
        for number in 0..flood {
            pending.add(&used(&format!("{number}"), Some(1)), 7);
        }
        pending.add(&used(&"é".repeat(1 << 20), Some(1)), 7);
        let rows = pending.take();
        assert!(rows.len() <= SHARDS * (ROWS + 1), "{}", rows.len());
        assert!(rows.iter().all(|(key, _)| key.model.len() <= LONGEST_NAME));
        assert_eq!(rows.iter().map(|(_, sum)| sum.nanodollars).sum::<u64>(), flood + 1);
        assert_eq!(rows.iter().map(|(_, sum)| sum.requests).sum::<u64>(), flood + 1);
    }
}
