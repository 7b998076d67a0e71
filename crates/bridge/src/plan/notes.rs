//! The notes of one plan, and, for whoever asks, what became of each part of the request. In strict mode the first thing that would be ignored refuses the request instead.

use std::borrow::Cow;
use std::fmt::Display;

use wire::json::{Invalid, InvalidCode};
use wire::responses::{CreateResponse, InputItem};

use super::compaction::Unfolded;
use super::links::{Link, Links};
pub(super) use crate::note::code;
use crate::note::{Action, Note, NoteCode, Severity};

/// Beyond this many the rest is only counted: a history of thousands of images needs no thousand notes.
const LIMIT: usize = 100;

#[derive(Debug)]
pub(super) struct Notes {
    list: Vec<Note>,
    more: usize,
    strict: bool,
    refused: Option<Invalid>,
    links: Option<Box<Links>>,
}

impl Notes {
    pub(super) const fn new(strict: bool) -> Self {
        Self { list: Vec::new(), more: 0, strict, refused: None, links: None }
    }

    /// The same, for whoever wants to know what became of what.
    pub(super) fn linking(strict: bool) -> Self {
        Self { links: Some(Box::default()), ..Self::new(strict) }
    }

    /// Where that is recorded; None where nobody asks.
    pub(super) fn links(&mut self) -> Option<&mut Links> {
        self.links.as_deref_mut()
    }

    pub(super) const fn is_linking(&self) -> bool {
        self.links.is_some()
    }

    /// Something is left out that changes the answer.
    pub(super) fn ignored(&mut self, code: NoteCode, path: impl Display, message: impl Into<Cow<'static, str>>) {
        self.leave_out(code, Severity::Warn, path, message);
    }

    /// Something is left out that nobody will miss.
    pub(super) fn skipped(&mut self, code: NoteCode, path: impl Display, message: impl Into<Cow<'static, str>>) {
        self.leave_out(code, Severity::Info, path, message);
    }

    /// Something is done in another way, and the answer may show it.
    pub(super) fn degraded(&mut self, code: NoteCode, path: impl Display, message: impl Into<Cow<'static, str>>) {
        self.push(code, Severity::Warn, Action::Degraded, path, message);
    }

    /// Something is done in another way that comes to the same.
    pub(super) fn lowered(&mut self, code: NoteCode, path: impl Display, message: impl Into<Cow<'static, str>>) {
        self.push(code, Severity::Info, Action::Degraded, path, message);
    }

    pub(super) fn repaired(&mut self, path: impl Display, message: impl Into<Cow<'static, str>>) {
        self.push(code::ITEM_REPAIRED, Severity::Warn, Action::Repaired, path, message);
    }

    /// What is refused whatever the policy says; the first counts.
    pub(super) fn refuse(&mut self, invalid: Invalid) {
        self.refused.get_or_insert(invalid);
    }

    fn finish(mut self) -> Result<Vec<Note>, Invalid> {
        if let Some(invalid) = self.refused {
            return Err(invalid);
        }
        if self.more > 0 {
            let message = format!("and {} more notes", self.more);
            self.list.push(Note::new(Action::Degraded, "notes", message).coded(code::MORE));
        }
        Ok(self.list)
    }

    pub(super) fn finish_linked(
        mut self,
        request: &CreateResponse<'_>,
        past: &[InputItem<'_>],
        unfolded: &[Unfolded<'_>],
    ) -> Result<(Vec<Note>, Vec<Link>), Invalid> {
        let links = self.links.take();
        let notes = self.finish()?;
        let links = links.map(|links| links.finish(request, past, unfolded, &notes)).unwrap_or_default();
        Ok((notes, links))
    }

    fn leave_out(
        &mut self,
        code: NoteCode,
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
                (InvalidCode::UnknownParameter, format!("Unknown parameter: '{path}'."))
            } else if code == code::PARAM_IGNORED {
                (InvalidCode::UnsupportedParameter, format!("Unsupported parameter: '{path}' ({}).", message.into()))
            } else {
                (InvalidCode::UnsupportedValue, format!("Unsupported value: '{path}' ({}).", message.into()))
            };
            let mut invalid = Invalid::sentence(code, sentence);
            invalid.path = path;
            self.refused = Some(invalid);
        }
    }

    fn push(
        &mut self,
        code: NoteCode,
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
