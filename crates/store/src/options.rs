//! How a store is opened, and what it counts.

use std::time::Duration;

/// What the memory backend may hold.
#[derive(Debug, Clone, Copy)]
pub struct MemoryLimits {
    pub bytes: u64,
    pub responses: u64,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self { bytes: 256 << 20, responses: 100_000 }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct SqliteOptions {
    /// Threads that read; one more writes.
    pub readers: usize,
    /// Look the whole file over at start. It reads all of it: a second or so per GB.
    pub integrity_check: bool,
    /// Pages that each connection may keep in memory, in KiB.
    pub cache_kib: u32,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { readers: 2, integrity_check: true, cache_kib: 16_000 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostgresOptions {
    /// Connections of this process.
    pub connections: usize,
    /// How long to wait for a connection, free or new, before the store counts as unavailable.
    pub acquire: Duration,
    /// How long one statement may take.
    pub statement: Duration,
    /// How long a turn is tried again while the database is away, before the caller is told.
    pub retry: Duration,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            connections: 8,
            acquire: Duration::from_secs(2),
            statement: Duration::from_secs(5),
            retry: Duration::from_secs(15),
        }
    }
}

/// What was written, for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Jobs that changed something, or in memory read something.
    pub writes: u64,
    /// Transactions that they shared.
    pub commits: u64,
}
