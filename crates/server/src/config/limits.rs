//! The `limits` section: what all requests together, and a single slow client, may hold.

use std::time::Duration;

use super::key::Keys;
use super::{size, table, units};

/// What may be held at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitsConfig {
    /// Bytes of request bodies, inflated, and of what is made of them for providers, over all requests.
    pub body_bytes_in_flight: usize,
    /// Of responses that are not stored, over all WebSockets.
    pub remembered_bytes: usize,
    /// Turns at once; None: as many as come.
    pub turns: Option<usize>,
    /// Bytes that the process may use; None: what its container or the machine has.
    pub memory: Option<u64>,
    /// How long a client may take none of what is ready for it.
    pub write_stall: Duration,
    /// How long API keys work from memory while the store is away.
    pub key_grace: Duration,
}

/// Bytes that the process may use. Read once, for both of the others: what is wrong with it is told once.
pub(super) fn memory(keys: &mut Keys<'_>) -> Option<u64> {
    keys.find(&table::LIMITS_MEMORY)
}

/// The largest body. Where memory is short, one request must not take most of it: while it is looked at, planned and
/// answered, a body may be there six times over.
pub(super) fn max_body_bytes(keys: &mut Keys<'_>, memory: Option<u64>) -> usize {
    let usual = table::SERVER_MAX_BODY_BYTES.kind.0.default.min(memory.unwrap_or(u64::MAX) / 16);
    size(keys.find(&table::SERVER_MAX_BODY_BYTES).unwrap_or(usual))
}

/// A body that is allowed must be able to get in: it needs room for itself and for what is made of it.
pub(super) fn read(keys: &mut Keys<'_>, max_body_bytes: usize, memory: Option<u64>) -> LimitsConfig {
    let two_bodies = (max_body_bytes as u64).saturating_mul(2);
    let bodies = keys.find(&table::LIMITS_BODY_BYTES_IN_FLIGHT);
    if bodies.is_some_and(|bytes| bytes < two_bodies) {
        let help = format!("at least {}, or lower `server.max_body_bytes`", units::print_size(two_bodies));
        if let Some(field) = keys.field(&table::LIMITS_BODY_BYTES_IN_FLIGHT) {
            field.problem("too little for one request of `server.max_body_bytes`", Some(help));
        }
    }
    // What is read for requests must not fill the memory that there is.
    let usual = table::LIMITS_BODY_BYTES_IN_FLIGHT.kind.0.default.min(memory.unwrap_or(u64::MAX) / 8).max(two_bodies);
    LimitsConfig {
        body_bytes_in_flight: size(bodies.unwrap_or(usual)),
        remembered_bytes: size(keys.get(&table::LIMITS_REMEMBERED_BYTES)),
        turns: keys.find(&table::LIMITS_TURNS).map(size),
        memory,
        write_stall: keys.get(&table::LIMITS_WRITE_STALL),
        key_grace: keys.get(&table::LIMITS_KEY_GRACE),
    }
}
