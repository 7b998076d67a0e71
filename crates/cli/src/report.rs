//! What doctors say: one line for each thing that they looked at, and what to do about it.

use std::fmt::Write;
use std::process::ExitCode;

use serde_json::{Value, json};
use wire::visible::visible;

use crate::output;

/// What came of a look at one thing.
#[derive(Debug)]
pub(crate) struct Check {
    /// Of what.
    pub(crate) name: &'static str,
    pub(crate) status: Status,
    message: String,
    /// What to do.
    advice: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Ok,
    Warn,
    Fail,
}

impl Status {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

impl Check {
    pub(crate) fn ok(name: &'static str, message: impl Into<String>) -> Self {
        Self { name, status: Status::Ok, message: message.into(), advice: None }
    }

    pub(crate) fn warn(name: &'static str, message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, status: Status::Warn, message: message.into(), advice: Some(advice.into()) }
    }

    pub(crate) fn fail(name: &'static str, message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, status: Status::Fail, message: message.into(), advice: Some(advice.into()) }
    }

    /// The same where it stops nothing.
    pub(crate) fn softened(self) -> Self {
        Self { status: Status::Warn, ..self }
    }

    /// One line, whatever others wrote in it.
    pub(crate) fn line(&self) -> String {
        let mut line = format!("{:<5} {:<11} {}", self.status.name(), self.name, visible(&self.message));
        line.truncate(line.trim_end_matches('.').len());
        if let Some(advice) = &self.advice {
            // Writing to a String cannot fail.
            let _ = write!(line, "; {}", visible(advice));
        }
        line + "\n"
    }

    pub(crate) fn json(&self) -> Value {
        json!({"check": self.name, "status": self.status.name(), "message": self.message, "advice": self.advice})
    }
}

/// What was found so far: printed as it is found, unless it is wanted as JSON.
pub(crate) struct Report {
    checks: Vec<Check>,
    json: bool,
}

impl Report {
    pub(crate) const fn new(json: bool) -> Self {
        Self { checks: Vec::new(), json }
    }

    pub(crate) fn add(&mut self, check: Check) -> anyhow::Result<()> {
        if !self.json {
            output::print(&check.line())?;
        }
        self.checks.push(check);
        Ok(())
    }

    pub(crate) fn all(&mut self, checks: Vec<Check>) -> anyhow::Result<()> {
        checks.into_iter().try_for_each(|check| self.add(check))
    }

    pub(crate) fn finish(self) -> anyhow::Result<ExitCode> {
        let good = self.checks.iter().all(|check| check.status != Status::Fail);
        if self.json {
            let checks: Vec<Value> = self.checks.iter().map(Check::json).collect();
            let report = json!({"ok": good, "checks": checks});
            output::print(&format!("{}\n", serde_json::to_string_pretty(&report)?))?;
        }
        Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
