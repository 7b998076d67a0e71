//! The only wall clock, and the only randomness.

mod calendar;

use std::time::{SystemTime, UNIX_EPOCH};

use wire::id::Ids;

pub(crate) use calendar::{date, day_name, day_of, parse_rfc3339, rfc3339};

/// Microseconds since the epoch.
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the wall clock")]
pub(crate) fn unix_micros() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX)
}

/// Milliseconds since the epoch.
pub(crate) fn unix_millis() -> u64 {
    unix_micros() / 1000
}

/// Seconds since the epoch: `created_at`, `completed_at`.
pub(crate) fn unix_seconds() -> u64 {
    unix_millis() / 1000
}

/// The ids of one request: the moment in milliseconds, as 48 bits, and 144 bits from the operating system.
///
/// A store keeps ids in order. Those of one moment are then side by side, and written together; without that, each
/// new one would rewrite a page of its own.
pub(crate) fn ids() -> Ids {
    let mut seed = [0_u8; 24];
    let (moment, random) = seed.split_at_mut(6);
    moment.copy_from_slice(&unix_millis().to_be_bytes()[2..]);
    // No entropy source is a broken system; ids of the moment are still better than none.
    let _ = getrandom::fill(random);
    Ids::new(seed)
}

/// For keys: as many bits as nobody can guess, from the operating system or not at all.
pub(crate) fn secret_bits() -> Option<[u8; 20]> {
    let mut bits = [0; 20];
    getrandom::fill(&mut bits).ok().map(|()| bits)
}

/// A number that nobody can guess or needs to.
pub(crate) fn random() -> u64 {
    getrandom::u64().unwrap_or_else(|_| unix_millis())
}
