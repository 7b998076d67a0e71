//! The `logging` section.

use providers::yaml::{Field, Reader, Section};

use super::place::variable;
use super::{Sources, unused};

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

pub(super) fn read(
    reader: &Reader<'_>,
    sources: &Sources<'_>,
    mut section: Section<'_>,
    unused_keys: &mut Vec<String>,
) -> LoggingConfig {
    let file_level = section.read("level", level);
    let format = section.read("format", |field| field.choice(LogFormat::ALL, LogFormat::name));
    let mut console = section.section("console");
    let enabled = console.read("enabled", Field::boolean).unwrap_or(true);
    let console_level = console.read("level", level);
    let pretty = console.read("pretty", Field::boolean);
    console.finish();
    unused::log_file(section.section("file"), unused_keys);
    section.finish();
    let environment = variable(reader, sources, "GODEX_LOG_LEVEL", "a log level (trace to error)", LogLevel::from_name);
    let level = sources.overrides.log_level.or(environment).or(console_level).or(file_level);
    // `console.pretty` is the older word for the same wish.
    let pretty = pretty.map(|pretty| if pretty { LogFormat::Human } else { LogFormat::Json });
    LoggingConfig {
        level: level.unwrap_or(LogLevel::Info),
        console: enabled,
        format: format.or(pretty).unwrap_or(LogFormat::Auto),
    }
}

pub(super) fn level(field: &Field<'_>) -> Option<LogLevel> {
    field.choice(LogLevel::ALL, LogLevel::name)
}
