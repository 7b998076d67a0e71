//! The `resilience` section: what is done when a provider fails before the client has heard anything.

use std::time::Duration;

use super::key::Keys;
use super::table;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResilienceConfig {
    /// How often a request is sent once more.
    pub retries: u32,
    /// The first wait is random up to this; each further one up to twice the one before.
    pub backoff: Duration,
    /// A provider that wants us to wait longer than this is not waited for: its wish is passed on.
    pub max_wait: Duration,
    /// How many of the requests that wait for a target may be retries.
    pub budget_percent: usize,
    /// Failures in a row after which a target is left alone but for a probe per second; 0: never.
    pub breaker_failures: u32,
}

#[cfg(test)]
impl Default for ResilienceConfig {
    fn default() -> Self {
        Self {
            retries: narrow(table::RESILIENCE_RETRIES.kind.default),
            backoff: table::RESILIENCE_BACKOFF.kind.default,
            max_wait: table::RESILIENCE_MAX_RETRY_AFTER.kind.default,
            budget_percent: super::size(table::RESILIENCE_BUDGET.kind.default),
            breaker_failures: narrow(table::RESILIENCE_BREAKER.kind.default),
        }
    }
}

pub(super) fn read(keys: &mut Keys<'_>) -> ResilienceConfig {
    ResilienceConfig {
        retries: narrow(keys.get(&table::RESILIENCE_RETRIES)),
        backoff: keys.get(&table::RESILIENCE_BACKOFF),
        max_wait: keys.get(&table::RESILIENCE_MAX_RETRY_AFTER),
        budget_percent: super::size(keys.get(&table::RESILIENCE_BUDGET)),
        breaker_failures: narrow(keys.get(&table::RESILIENCE_BREAKER)),
    }
}

fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
