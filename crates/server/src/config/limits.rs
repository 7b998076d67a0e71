//! The `limits` section: what all requests together, and a single slow client, may hold.

use std::time::Duration;

use providers::yaml::Section;

use super::{size, units};

/// What may be held at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitsConfig {
    /// Bytes of request bodies, inflated, and of what is made of them for providers, over all requests.
    pub body_bytes_in_flight: usize,
    /// How long a client may take none of what is ready for it.
    pub write_stall: Duration,
}

const BODIES: u64 = 256 << 20;

/// A body that is allowed must be able to get in: it needs room for itself and for what is made of it.
pub(super) fn read(mut section: Section<'_>, max_body_bytes: usize) -> LimitsConfig {
    let two_bodies = (max_body_bytes as u64).saturating_mul(2);
    let bodies = section.read("body_bytes_in_flight", |field| {
        let bytes = units::size(field, 1 << 16..=1 << 44)?;
        if bytes < two_bodies {
            let help = format!("at least {}, or lower `server.max_body_bytes`", units::print_size(two_bodies));
            field.problem("too little for one request of `server.max_body_bytes`", Some(help));
        }
        Some(bytes)
    });
    let stall = Duration::from_millis(100)..=Duration::from_hours(24);
    let write_stall = section.read("write_stall", |field| units::duration(field, stall));
    section.finish();
    LimitsConfig {
        body_bytes_in_flight: size(bodies.unwrap_or(BODIES.max(two_bodies))),
        write_stall: write_stall.unwrap_or(Duration::from_mins(1)),
    }
}
