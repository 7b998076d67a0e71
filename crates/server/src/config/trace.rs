//! The `trace` section: what is kept of each request for whoever wants to know later, where, and for how long.

use std::path::PathBuf;
use std::time::Duration;

use super::key::Keys;
use super::{Backend, Sources, locate, size, table};

/// What a trace store in memory may hold where nobody says.
const IN_MEMORY: u64 = 64 << 20;

/// What is kept of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceConfig {
    pub enabled: bool,
    pub place: TracePlace,
    /// How many may wait to be written; more are not kept.
    pub max_queue_size: usize,
    /// How long the first of them waits for others.
    pub flush_interval: Duration,
    /// How many are written at once.
    pub batch_size: usize,
    pub capture: CaptureConfig,
    /// How long they are kept; None is for ever.
    pub ttl: Option<Duration>,
    /// How many bytes all of them may have.
    pub max_bytes: u64,
}

/// Which bodies are kept with a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureConfig {
    pub enabled: bool,
    /// Also of requests with `store: false`.
    pub unstored: bool,
    /// How much of each body.
    pub max_bytes: usize,
}

/// Where traces are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TracePlace {
    File(PathBuf),
    Memory,
    /// Where sessions are, in Postgres.
    Shared,
}

impl TracePlace {
    /// The file, where it is one.
    pub(super) fn file(&self) -> Option<String> {
        match self {
            Self::File(path) => Some(path.display().to_string()),
            Self::Memory | Self::Shared => None,
        }
    }
}

impl TraceConfig {
    /// For a server that one client starts and ends: see [`super::SessionConfig::beside`]. A file is one process's alone.
    #[must_use]
    pub fn beside(self) -> Self {
        Self { place: TracePlace::Memory, max_bytes: self.max_bytes.min(IN_MEMORY), ..self }
    }
}

pub(super) fn read(sources: &Sources<'_>, keys: &mut Keys<'_>, backend: &Backend) -> TraceConfig {
    let path = keys.find(&table::TRACE_PATH).map(|path| locate::expand(&path, sources));
    let place = match (path, backend) {
        (Some(path), _) => TracePlace::File(path),
        (None, Backend::Sqlite { path }) => TracePlace::File(path.with_file_name("trace.db")),
        (None, Backend::Memory { .. }) => TracePlace::Memory,
        (None, Backend::Postgres(_)) => TracePlace::Shared,
    };
    let usual = if place == TracePlace::Memory { IN_MEMORY } else { table::TRACE_MAX_BYTES.kind.0.default };
    TraceConfig {
        enabled: keys.get(&table::TRACE_ENABLED),
        max_queue_size: size(keys.get(&table::TRACE_MAX_QUEUE_SIZE)),
        flush_interval: keys.get(&table::TRACE_FLUSH_INTERVAL),
        batch_size: size(keys.get(&table::TRACE_BATCH_SIZE)),
        capture: CaptureConfig {
            enabled: keys.get(&table::TRACE_CAPTURE_PAYLOAD),
            unstored: keys.get(&table::TRACE_CAPTURE_UNSTORED),
            max_bytes: size(keys.get(&table::TRACE_PAYLOAD_MAX_BYTES)),
        },
        ttl: keys.get(&table::TRACE_TTL),
        max_bytes: keys.find(&table::TRACE_MAX_BYTES).unwrap_or(usual),
        place,
    }
}

impl std::fmt::Display for TracePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Memory => f.write_str("memory"),
            Self::Shared => f.write_str("postgres"),
        }
    }
}
