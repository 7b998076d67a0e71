//! The `resilience` section: what is done when a provider fails before the client has heard anything.

use std::time::Duration;

use providers::yaml::Section;

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

impl Default for ResilienceConfig {
    fn default() -> Self {
        Self {
            retries: 2,
            backoff: Duration::from_millis(250),
            max_wait: Duration::from_secs(10),
            budget_percent: 20,
            breaker_failures: 8,
        }
    }
}

pub(super) fn read(mut section: Section<'_>) -> ResilienceConfig {
    let default = ResilienceConfig::default();
    let mut number = |key, most| section.read(key, |field| field.integer(0..=most));
    let config = ResilienceConfig {
        retries: number("retries", 10).map_or(default.retries, narrow),
        backoff: number("backoff_ms", 60_000).map_or(default.backoff, Duration::from_millis),
        max_wait: number("max_retry_after", 120).map_or(default.max_wait, Duration::from_secs),
        budget_percent: number("budget_percent", 100).map_or(default.budget_percent, super::size),
        breaker_failures: number("breaker_failures", 100_000).map_or(default.breaker_failures, narrow),
    };
    section.finish();
    config
}

fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
