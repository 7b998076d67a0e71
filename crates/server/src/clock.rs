//! The only wall clock, and the only randomness.

use std::time::{SystemTime, UNIX_EPOCH};

use wire::id::Ids;

/// Milliseconds since the epoch.
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the wall clock")]
pub(crate) fn unix_millis() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

/// Seconds since the epoch: `created_at`, `completed_at`.
pub(crate) fn unix_seconds() -> u64 {
    unix_millis() / 1000
}

/// The ids of one request: 192 bits from the operating system.
pub(crate) fn ids() -> Ids {
    let mut seed = [0_u8; 24];
    if getrandom::fill(&mut seed).is_err() {
        // No entropy source is a broken system; unique ids are still better than none.
        seed[..8].copy_from_slice(&unix_millis().to_be_bytes());
    }
    Ids::new(seed)
}

/// A number that nobody can guess or needs to.
pub(crate) fn random() -> u64 {
    getrandom::u64().unwrap_or_else(|_| unix_millis())
}
