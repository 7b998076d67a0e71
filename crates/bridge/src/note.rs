//! Notes: what the bridge did differently from what was asked, and why. They go to the log, to the
//! `x-godex-compat` header in short form, and to traces.

use std::borrow::Cow;
use std::fmt;

/// One thing that was not done as asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Stable: what dashboards and tests match on.
    pub code: NoteCode,
    pub severity: Severity,
    pub action: Action,
    /// Where in the request or the answer: `tools[2]`, `reasoning.effort`, `finish_reason`.
    pub path: Cow<'static, str>,
    pub message: Cow<'static, str>,
}

/// The code of a note: one of [`code`], and nothing else can make one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoteCode(&'static Facts);

#[derive(Debug, PartialEq, Eq)]
struct Facts {
    name: &'static str,
    when: &'static str,
    remedy: &'static str,
}

impl NoteCode {
    /// As it is logged.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// When such a note is made.
    pub const fn when(self) -> &'static str {
        self.0.when.trim_ascii()
    }

    /// What to do about it.
    pub const fn remedy(self) -> &'static str {
        self.0.remedy
    }
}

impl fmt::Display for NoteCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Declares the codes. The comment of a code says when it is made, the text after `=>` what to do then: the
/// documentation is made of both.
macro_rules! note_codes {
    ($($(#[doc = $when:literal])+ $code:ident = $name:literal => $remedy:literal;)+) => {
        /// Every code that a note can have.
        pub mod code {
            use super::{Facts, NoteCode};

            $(
                $(#[doc = $when])+
                pub const $code: NoteCode =
                    NoteCode(&Facts { name: $name, when: concat!($($when),+), remedy: $remedy });
            )+

            /// All of them, in the order of the documentation.
            pub const ALL: &[NoteCode] = &[$($code),+];
        }
    };
}

note_codes! {
    /// A parameter is left out: the provider does not take it, or has nothing like it.
    PARAM_IGNORED = "bridge.param.ignored" => "Remove the parameter, or use a model that takes it.";
    /// A parameter is left out that the API does not have.
    PARAM_UNKNOWN = "bridge.param.unknown" => "Check its spelling. A parameter newer than this version of godex is left out as well.";
    /// A parameter is sent with another value: the nearest that the provider takes.
    PARAM_DEGRADED = "bridge.param.degraded" => "Nothing, if the nearest value will do.";
    /// The output format is asked for in an instruction, because the provider cannot be bound to it.
    FORMAT_DEGRADED = "bridge.format.degraded" => "Nothing: the answer is checked. For fewer second tries use a model that takes schemas.";
    /// A tool is not offered to the model: the provider has none of its kind.
    TOOL_IGNORED = "bridge.tool.ignored" => "Remove the tool, or use a provider that runs it.";
    /// A tool is offered in another form, such as a function.
    TOOL_DEGRADED = "bridge.tool.degraded" => "Nothing: calls are translated back.";
    /// The schema of a tool is simplified, because the provider refuses part of it.
    TOOL_SCHEMA = "bridge.tool.schema" => "Nothing, or simplify the schema yourself; arguments may be less exact.";
    /// The input of a custom tool does not fit the grammar that was declared for it, or could not be checked.
    TOOL_INPUT = "bridge.tool.input" => "Nothing: the client's tool says what is wrong, and the model tries again. `tools.grammar: reask` has godex ask first.";
    /// An item of the input is left out.
    ITEM_IGNORED = "bridge.item.ignored" => "Remove the item, if the model does not need what it says.";
    /// An item of the input is sent in another form, such as a message.
    ITEM_DEGRADED = "bridge.item.degraded" => "Nothing: the model reads the same words.";
    /// The input had a fault that providers refuse, such as a call without output, and was mended.
    ITEM_REPAIRED = "bridge.item.repaired" => "Mend the client's history, if it is made by hand.";
    /// A part of a message, such as an image or a file, is replaced with words or moved.
    CONTENT_DEGRADED = "bridge.content.degraded" => "Use a model that takes such content, if the model must see it.";
    /// A part of a message is left out.
    CONTENT_IGNORED = "bridge.content.ignored" => "Remove the part, or use a model that takes it.";
    /// Reasoning of an earlier turn is not sent back: another model made it, it was not sealed here, or the provider does not take it.
    REASONING_IGNORED = "bridge.reasoning.ignored" => "Nothing: the model thinks anew. Replicas need the same `session.seal_key`.";
    /// There were more than a hundred notes; the others are only counted.
    MORE = "bridge.notes.more" => "Mend what the first hundred say.";
    /// Anything else that was done in another way; the path and the message say what.
    DEGRADED = "bridge.degraded" => "Read the message.";
    /// Anything else that was left out; the path and the message say what.
    IGNORED = "bridge.ignored" => "Read the message.";
    /// Something broken, mostly in the provider's answer, was mended; the path and the message say what.
    REPAIRED = "bridge.repaired" => "Nothing; if it comes often, the provider's spec can say what it does.";
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
    pub const fn code(self) -> NoteCode {
        match self {
            Self::Degraded => code::DEGRADED,
            Self::Ignored => code::IGNORED,
            Self::Repaired => code::REPAIRED,
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
    pub const fn coded(mut self, code: NoteCode) -> Self {
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
