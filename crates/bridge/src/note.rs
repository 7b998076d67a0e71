//! Notes: what the bridge did differently from what was asked, and why. They go to the log, to the
//! `x-godex-compat` header in short form, and to traces.

use std::borrow::Cow;
use std::fmt;

/// One thing that was not done as asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub action: Action,
    /// Where in the request or the answer: `tools[2]`, `reasoning.effort`, `finish_reason`.
    pub path: Cow<'static, str>,
    pub message: Cow<'static, str>,
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

    /// The diagnostic's code.
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
        Self { action, path: path.into(), message: message.into() }
    }
}

impl fmt::Display for Note {
    /// The short form: `reasoning.effort=ignored`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.path, self.action.name())
    }
}
