//! How the answer ended → what the response is.

use wire::responses::Status;

use super::End;
use crate::failure::{Failure, FailureClass};
use crate::note::{Action, Note};

/// The upstream's `finish_reason`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Finish {
    Complete,
    Length,
    ContentFilter,
    Failed(String),
    /// A reason nobody has heard of; the answer decides.
    Unknown(String),
}

impl Finish {
    pub(super) fn read(reason: &str) -> Self {
        match reason {
            "stop" | "tool_calls" | "function_call" | "eos" | "end_turn" | "" => Self::Complete,
            "length" | "max_tokens" | "model_length" | "model_context_window_exceeded" => Self::Length,
            "content_filter" | "sensitive" => Self::ContentFilter,
            "error" | "abort" | "network_error" | "insufficient_system_resource" => Self::Failed(reason.to_owned()),
            other => Self::Unknown(other.chars().take(64).collect()),
        }
    }
}

/// What became of the turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Completed,
    Incomplete(&'static str),
    Failed(Failure),
}

impl Verdict {
    pub(super) const fn status(&self) -> Status {
        match self {
            Self::Completed => Status::Completed,
            Self::Incomplete(_) => Status::Incomplete,
            Self::Failed(_) => Status::Failed,
        }
    }

    pub(super) const fn incomplete_reason(&self) -> Option<&'static str> {
        match self {
            Self::Incomplete(reason) => Some(reason),
            _ => None,
        }
    }
}

/// `empty`: the answer had nothing in it. What broke off is never completed.
pub(super) fn verdict(end: End, finish: Option<&Finish>, empty: bool, notes: &mut Vec<Note>) -> Verdict {
    let verdict = match (end, finish) {
        // The answer was whole before the connection broke.
        (End::Failed(failure), Some(finish)) if failure.class == FailureClass::Truncated => {
            notes.push(Note::new(Action::Repaired, "stream", "the connection broke behind the finish reason"));
            finished(finish, notes)
        }
        (End::Failed(failure), _) => Verdict::Failed(failure),
        (End::Done | End::Eof, Some(finish)) => finished(finish, notes),
        (End::Done, None) => {
            notes.push(Note::new(Action::Repaired, "finish_reason", "the provider sent none"));
            Verdict::Completed
        }
        (End::Eof, None) => {
            let message = "The provider's answer broke off before it was finished.";
            Verdict::Failed(Failure::new(FailureClass::Truncated, message))
        }
    };
    if empty && verdict == Verdict::Completed {
        return Verdict::Failed(Failure::new(FailureClass::Empty, "The model gave an empty answer."));
    }
    verdict
}

fn finished(finish: &Finish, notes: &mut Vec<Note>) -> Verdict {
    match finish {
        Finish::Complete => Verdict::Completed,
        Finish::Length => Verdict::Incomplete("max_output_tokens"),
        Finish::ContentFilter => Verdict::Incomplete("content_filter"),
        Finish::Failed(reason) => {
            let message = format!("The provider stopped with finish_reason '{reason}'.");
            Verdict::Failed(Failure::new(FailureClass::Server, message))
        }
        Finish::Unknown(reason) => {
            let message = format!("the reason '{reason}' is not known; the answer counts as complete");
            notes.push(Note::new(Action::Degraded, "finish_reason", message));
            Verdict::Completed
        }
    }
}
