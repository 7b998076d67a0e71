//! The `logging` section.

use providers::yaml::Reader;

use super::key::Keys;
use super::{Sources, source, table};

/// How much is logged, and in which form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggingConfig {
    pub level: LogLevel,
    /// Whether anything is logged at all; there is no other place than the console yet.
    pub console: bool,
    pub format: LogFormat,
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
    let console_level = keys.find(&table::LOGGING_CONSOLE_LEVEL);
    let level = keys.get(&table::LOGGING_LEVEL);
    let pretty = keys.find(&table::LOGGING_CONSOLE_PRETTY);
    let pretty = pretty.map(|pretty| if pretty { LogFormat::Human } else { LogFormat::Json });
    LoggingConfig {
        level: sources.overrides.log_level.or(environment).or(console_level).unwrap_or(level),
        console: keys.get(&table::LOGGING_CONSOLE_ENABLED),
        format: keys.find(&table::LOGGING_FORMAT).or(pretty).unwrap_or(LogFormat::Auto),
    }
}
