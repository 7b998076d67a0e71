//! The store's clock: the only one by which it decides whether a turn has expired.
//!
//! Leases are not measured by it: several instances share them, so they run by the database's own clock.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Tells the time in Unix milliseconds.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> i64 + Send + Sync>);

impl Clock {
    /// A clock that this function reads.
    pub fn new(read: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    pub(crate) fn system() -> Self {
        Self::new(system_millis)
    }

    pub(crate) fn now(&self) -> i64 {
        (self.0)()
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place in this crate that reads the wall clock")]
fn system_millis() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
}
