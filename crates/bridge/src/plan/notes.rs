//! The notes of one plan. In strict mode the first thing that would be ignored refuses the request instead.

use std::borrow::Cow;
use std::fmt::Display;

use wire::json::Invalid;

use crate::note::{Action, Note, Severity};

/// Beyond this many the rest is only counted: a history of thousands of images needs no thousand notes.
const LIMIT: usize = 100;

/// The codes of notes about requests.
pub(super) mod code {
    pub(in crate::plan) const PARAM_IGNORED: &str = "bridge.param.ignored";
    pub(in crate::plan) const PARAM_UNKNOWN: &str = "bridge.param.unknown";
    pub(in crate::plan) const PARAM_DEGRADED: &str = "bridge.param.degraded";
    pub(in crate::plan) const FORMAT_DEGRADED: &str = "bridge.format.degraded";
    pub(in crate::plan) const TOOL_IGNORED: &str = "bridge.tool.ignored";
    pub(in crate::plan) const TOOL_DEGRADED: &str = "bridge.tool.degraded";
    pub(in crate::plan) const TOOL_SCHEMA: &str = "bridge.tool.schema";
    pub(in crate::plan) const ITEM_IGNORED: &str = "bridge.item.ignored";
    pub(in crate::plan) const ITEM_DEGRADED: &str = "bridge.item.degraded";
    pub(in crate::plan) const ITEM_REPAIRED: &str = "bridge.item.repaired";
    pub(in crate::plan) const CONTENT_DEGRADED: &str = "bridge.content.degraded";
    pub(in crate::plan) const CONTENT_IGNORED: &str = "bridge.content.ignored";
    pub(in crate::plan) const REASONING_IGNORED: &str = "bridge.reasoning.ignored";
    pub(in crate::plan) const MORE: &str = "bridge.notes.more";
}

#[derive(Debug)]
pub(super) struct Notes {
    list: Vec<Note>,
    more: usize,
    strict: bool,
    refused: Option<Invalid>,
}

impl Notes {
    pub(super) const fn new(strict: bool) -> Self {
        Self { list: Vec::new(), more: 0, strict, refused: None }
    }

    /// Something is left out that changes the answer.
    pub(super) fn ignored(&mut self, code: &'static str, path: impl Display, message: impl Into<Cow<'static, str>>) {
        self.leave_out(code, Severity::Warn, path, message);
    }

    /// Something is left out that nobody will miss.
    pub(super) fn skipped(&mut self, code: &'static str, path: impl Display, message: impl Into<Cow<'static, str>>) {
        self.leave_out(code, Severity::Info, path, message);
    }

    /// Something is done in another way, and the answer may show it.
    pub(super) fn degraded(&mut self, code: &'static str, path: impl Display, message: impl Into<Cow<'static, str>>) {
        self.push(code, Severity::Warn, Action::Degraded, path, message);
    }

    /// Something is done in another way that comes to the same.
    pub(super) fn lowered(&mut self, code: &'static str, path: impl Display, message: impl Into<Cow<'static, str>>) {
        self.push(code, Severity::Info, Action::Degraded, path, message);
    }

    pub(super) fn repaired(&mut self, path: impl Display, message: impl Into<Cow<'static, str>>) {
        self.push(code::ITEM_REPAIRED, Severity::Warn, Action::Repaired, path, message);
    }

    /// What is refused whatever the policy says; the first counts.
    pub(super) fn refuse(&mut self, invalid: Invalid) {
        self.refused.get_or_insert(invalid);
    }

    pub(super) fn finish(mut self) -> Result<Vec<Note>, Invalid> {
        if let Some(invalid) = self.refused {
            return Err(invalid);
        }
        if self.more > 0 {
            let message = format!("and {} more notes", self.more);
            self.list.push(Note::new(Action::Degraded, "notes", message).coded(code::MORE));
        }
        Ok(self.list)
    }

    fn leave_out(
        &mut self,
        code: &'static str,
        severity: Severity,
        path: impl Display,
        message: impl Into<Cow<'static, str>>,
    ) {
        if !self.strict {
            return self.push(code, severity, Action::Ignored, path, message);
        }
        if self.refused.is_none() {
            let path = path.to_string();
            let (code, sentence) = if code == code::PARAM_UNKNOWN {
                ("unknown_parameter", format!("Unknown parameter: '{path}'."))
            } else if code == code::PARAM_IGNORED {
                ("unsupported_parameter", format!("Unsupported parameter: '{path}' ({}).", message.into()))
            } else {
                ("unsupported_value", format!("Unsupported value: '{path}' ({}).", message.into()))
            };
            let mut invalid = Invalid::sentence(code, sentence);
            invalid.path = path;
            self.refused = Some(invalid);
        }
    }

    fn push(
        &mut self,
        code: &'static str,
        severity: Severity,
        action: Action,
        path: impl Display,
        message: impl Into<Cow<'static, str>>,
    ) {
        if self.list.len() >= LIMIT {
            self.more += 1;
            return;
        }
        self.list.push(Note::new(action, path.to_string(), message).coded(code).with_severity(severity));
    }
}
