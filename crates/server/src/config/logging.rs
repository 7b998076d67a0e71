//! The `logging` section.

use std::path::PathBuf;

use providers::yaml::Reader;

use super::key::Keys;
use super::{Sources, locate, source, table};

/// What is a number of bytes: nobody wants a log file of a terabyte, and the comment in older samples said bytes.
const BYTES: u64 = 1 << 20;
const MEGABYTE: u64 = 1 << 20;

/// How much is logged, where, and in which form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggingConfig {
    /// On the console.
    pub level: LogLevel,
    /// Whether anything is logged to the console, which is stderr.
    pub console: bool,
    pub format: LogFormat,
    /// The log file, if one is wanted.
    pub file: Option<LogFileConfig>,
}

/// A log file, and its older ones beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFileConfig {
    pub dir: PathBuf,
    pub filename: String,
    pub level: LogLevel,
    /// The size after which a new file is begun.
    pub max_bytes: u64,
    /// All together, with the newest.
    pub max_files: u64,
}

impl LogFileConfig {
    pub fn path(&self) -> PathBuf {
        self.dir.join(&self.filename)
    }
}

/// From chatty to quiet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

impl LogLevel {
    pub const ALL: &'static [Self] = &[Self::Trace, Self::Debug, Self::Info, Self::Warn, Self::Error];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|level| level.name() == name)
    }
}

/// The form of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For humans on a terminal, JSON elsewhere.
    Auto,
    Human,
    Json,
}

impl LogFormat {
    pub const ALL: &'static [Self] = &[Self::Auto, Self::Human, Self::Json];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Human => "human",
            Self::Json => "json",
        }
    }
}

pub(super) fn read(reader: &Reader<'_>, sources: &Sources<'_>, keys: &mut Keys<'_>) -> LoggingConfig {
    let environment = source::LOG_LEVEL.find(reader, sources, LogLevel::from_name);
    let wanted = sources.overrides.log_level.or(environment);
    let level = keys.get(&table::LOGGING_LEVEL);
    let console_level = keys.find(&table::LOGGING_CONSOLE_LEVEL);
    let pretty = keys.find(&table::LOGGING_CONSOLE_PRETTY);
    let pretty = pretty.map(|pretty| if pretty { LogFormat::Human } else { LogFormat::Json });
    LoggingConfig {
        level: wanted.or(console_level).unwrap_or(level),
        console: keys.get(&table::LOGGING_CONSOLE_ENABLED),
        format: keys.find(&table::LOGGING_FORMAT).or(pretty).unwrap_or(LogFormat::Auto),
        file: file(sources, keys, wanted, level),
    }
}

/// All of its keys are read and checked, also those of a file that is not wanted.
fn file(
    sources: &Sources<'_>,
    keys: &mut Keys<'_>,
    wanted: Option<LogLevel>,
    usual: LogLevel,
) -> Option<LogFileConfig> {
    let enabled = keys.get(&table::LOGGING_FILE_ENABLED);
    let own = keys.find(&table::LOGGING_FILE_LEVEL);
    let max_size = keys.get(&table::LOGGING_FILE_MAX_SIZE);
    let file = LogFileConfig {
        dir: locate::expand(&keys.get(&table::LOGGING_FILE_DIR), sources),
        filename: keys.get(&table::LOGGING_FILE_NAME),
        level: wanted.or(own).unwrap_or(usual),
        max_bytes: if max_size >= BYTES { max_size } else { max_size * MEGABYTE },
        max_files: keys.get(&table::LOGGING_FILE_MAX_FILES).min(MOST_FILES),
    };
    enabled.then_some(file)
}

/// What is renamed whenever a new one is begun.
const MOST_FILES: u64 = 1000;

/// In the unit of the key.
pub(super) const fn max_size(file: &LogFileConfig) -> u64 {
    let megabytes = file.max_bytes / MEGABYTE;
    if file.max_bytes.is_multiple_of(MEGABYTE) && megabytes < BYTES { megabytes } else { file.max_bytes }
}
