//! Notes: what the bridge did differently from what was asked, and why. They go to the log, to the
//! `x-godex-compat` header in short form, and to traces.

use std::borrow::Cow;
use std::fmt;

/// One thing that was not done as asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Stable: what dashboards and tests match on.
    pub code: &'static str,
    pub severity: Severity,
    pub action: Action,
    /// Where in the request or the answer: `tools[2]`, `reasoning.effort`, `finish_reason`.
    pub path: Cow<'static, str>,
    pub message: Cow<'static, str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nobody will miss it.
    Info,
    /// The answer may differ from what was wanted.
    Warn,
    /// The answer cannot be what was wanted.
    Error,
}

impl Severity {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Done in another way, or to another value.
    Degraded,
    /// Left out.
    Ignored,
    /// Broken input or a broken answer was mended.
    Repaired,
}

impl Action {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Degraded => "degraded",
            Self::Ignored => "ignored",
            Self::Repaired => "repaired",
        }
    }

    /// The code of a note that has none of its own.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Degraded => "bridge.degraded",
            Self::Ignored => "bridge.ignored",
            Self::Repaired => "bridge.repaired",
        }
    }
}

impl Note {
    pub fn new(action: Action, path: impl Into<Cow<'static, str>>, message: impl Into<Cow<'static, str>>) -> Self {
        let (path, message) = (path.into(), message.into());
        Self { code: action.code(), severity: Severity::Warn, action, path, message }
    }

    /// The same under a code of its own.
    #[must_use]
    pub const fn coded(mut self, code: &'static str) -> Self {
        self.code = code;
        self
    }

    #[must_use]
    pub const fn with_severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }
}

impl fmt::Display for Note {
    /// The short form: `reasoning.effort=ignored`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.path, self.action.name())
    }
}
