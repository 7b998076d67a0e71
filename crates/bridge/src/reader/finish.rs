//! How an answer ended, and what that means.

use super::calls::Calls;
use super::report::Volume;
use super::{End, IncompleteReason, RoundEnd};
use crate::dialect::{AnswerDialect, EofTolerance, FinishMeaning};
use crate::failure::{Failure, FailureClass};
use crate::note::Action;
use crate::response::ResponseWriter;

/// The upstream's `finish_reason`, and what it means; nothing where nobody has heard of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finish {
    reason: String,
    meaning: Option<FinishMeaning>,
}

impl Finish {
    /// A reason that needs no table.
    pub(super) fn known(reason: &str, meaning: FinishMeaning) -> Self {
        Self { reason: reason.to_owned(), meaning: Some(meaning) }
    }

    /// The dialect's own table goes before the usual one.
    pub(super) fn read(reason: &str, dialect: &AnswerDialect) -> Self {
        let own = dialect.finish.iter().find(|(name, _)| name == reason).map(|(_, meaning)| *meaning);
        let meaning = own.or_else(|| usual(reason));
        let shown = if meaning.is_some() || is_word(reason) { reason } else { UNREADABLE };
        Self { reason: shown.to_owned(), meaning }
    }

    /// Whether the answer is whole, as far as its reason says.
    pub(super) const fn is_complete(&self) -> bool {
        matches!(self.meaning, Some(FinishMeaning::Complete))
    }

    /// Whether nothing of an answer need be there.
    pub(super) const fn is_incomplete(&self) -> bool {
        matches!(self.meaning, Some(FinishMeaning::Length | FinishMeaning::ContentFilter))
    }
}

/// Instead of a reason that nobody knows, and that may be anything, such as a key.
const UNREADABLE: &str = "(unreadable)";

/// Whether it is a word such as those that we know: letters, short, without a digit.
fn is_word(reason: &str) -> bool {
    (1..=40).contains(&reason.len()) && reason.bytes().all(|c| c.is_ascii_alphabetic() || c == b'_')
}

fn usual(reason: &str) -> Option<FinishMeaning> {
    match reason {
        "stop" | "tool_calls" | "tool_call" | "tool_use" | "function_call" | "eos" | "end_turn" | "stop_sequence"
        | "STOP" | "" => Some(FinishMeaning::Complete),
        "length" | "max_tokens" | "MAX_TOKENS" | "model_length" | "repetition_truncation" => {
            Some(FinishMeaning::Length)
        }
        "model_context_window_exceeded" => Some(FinishMeaning::ContextOverflow),
        "content_filter" | "sensitive" | "SAFETY" | "safety" | "refusal" => Some(FinishMeaning::ContentFilter),
        "error" | "abort" | "network_error" | "insufficient_system_resource" => Some(FinishMeaning::Error),
        _ => None,
    }
}

/// What the answer was: the most that it came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Nothing,
    /// Reasoning, and no answer.
    Reasoning,
    /// Text, or a refusal.
    Text,
    /// `sound`: the arguments of every call can be all there is.
    Calls {
        sound: bool,
    },
}

impl Content {
    pub(super) fn of(calls: &Calls, volume: Volume) -> Self {
        match (calls.is_empty(), volume) {
            (false, _) => Self::Calls { sound: calls.are_sound() },
            (true, Volume { answered: 0, reasoned: 0 }) => Self::Nothing,
            (true, Volume { answered: 0, .. }) => Self::Reasoning,
            (true, _) => Self::Text,
        }
    }

    const fn is_answer(self) -> bool {
        matches!(self, Self::Text | Self::Calls { .. })
    }

    const fn is_sound(self) -> bool {
        !matches!(self, Self::Calls { sound: false })
    }
}

/// What broke off is never completed, and nothing is never a success.
pub(super) fn round_end(
    end: End,
    finish: Option<&Finish>,
    content: Content,
    dialect: &AnswerDialect,
    response: &mut ResponseWriter,
) -> RoundEnd {
    let round = match (end, finish) {
        // The answer was whole before the connection broke.
        (End::Failed(failure), Some(finish)) if failure.class == FailureClass::Truncated => {
            response.remark(Action::Repaired, "stream", "the connection broke after the finish reason");
            finished(finish, content, response)
        }
        (End::Failed(failure), _) => RoundEnd::Failed(failure),
        (End::Done | End::Eof, Some(finish)) => finished(finish, content, response),
        (End::Done, None) if content.is_sound() => {
            response.remark(Action::Repaired, "finish_reason", "the provider sent none");
            RoundEnd::Completed
        }
        (End::Eof, None) if tolerated(dialect.eof, content) => {
            let message = "the answer ended without one, and everything in it is whole";
            response.remark(Action::Repaired, "finish_reason", message);
            RoundEnd::Completed
        }
        (End::Done | End::Eof, None) => truncated("The provider's answer broke off before it was finished."),
    };
    if round != RoundEnd::Completed || content.is_answer() {
        return round;
    }
    RoundEnd::Failed(Failure::new(FailureClass::Empty, empty(finish, content)))
}

fn empty(finish: Option<&Finish>, content: Content) -> String {
    let what = if content == Content::Reasoning {
        "The model reasoned and gave no answer"
    } else {
        "The model gave an empty answer"
    };
    match finish.filter(|finish| finish.meaning.is_none()) {
        Some(finish) => format!("{what} (finish_reason '{}').", finish.reason),
        None => format!("{what}."),
    }
}

/// Some servers end an answer with a call in it without a finish reason.
const fn tolerated(eof: EofTolerance, content: Content) -> bool {
    match eof {
        EofTolerance::Never => false,
        EofTolerance::ToolCalls => matches!(content, Content::Calls { sound: true }),
        EofTolerance::Any => content.is_answer() && content.is_sound(),
    }
}

fn finished(finish: &Finish, content: Content, response: &mut ResponseWriter) -> RoundEnd {
    let reason = &finish.reason;
    match finish.meaning {
        Some(FinishMeaning::Complete) => RoundEnd::Completed,
        Some(FinishMeaning::Length) => RoundEnd::Incomplete(IncompleteReason::MaxOutputTokens),
        Some(FinishMeaning::ContentFilter) => RoundEnd::Incomplete(IncompleteReason::ContentFilter),
        Some(FinishMeaning::Error) => {
            let message = format!("The provider stopped with finish_reason '{reason}'.");
            RoundEnd::Failed(Failure::new(FailureClass::Server, message))
        }
        // With room for an answer the prompt did fit.
        Some(FinishMeaning::ContextOverflow) if content != Content::Nothing => {
            RoundEnd::Incomplete(IncompleteReason::MaxOutputTokens)
        }
        Some(FinishMeaning::ContextOverflow) => {
            let message = format!("The input does not fit into the model's context window ('{reason}').");
            RoundEnd::Failed(Failure::new(FailureClass::ContextOverflow, message))
        }
        None if content.is_sound() => {
            let message = format!("the reason '{reason}' is not known; the answer counts as complete");
            response.remark(Action::Degraded, "finish_reason", message);
            RoundEnd::Completed
        }
        None => truncated(&format!("The provider broke off in a tool call with finish_reason '{reason}'.")),
    }
}

pub(super) fn truncated(message: &str) -> RoundEnd {
    RoundEnd::Failed(Failure::new(FailureClass::Truncated, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It comes into notes and the log, where nobody looks for keys any more.
    #[test]
    fn of_an_unknown_reason_only_a_word_is_repeated() {
        let long = "x".repeat(41);
        for (reason, expected) in [
            ("stop", "stop"),
            ("new_kind", "new_kind"),
            ("sk-upstream-key", UNREADABLE),
            ("gsk_0123", UNREADABLE),
            ("two words", UNREADABLE),
            ("\u{1b}[2J", UNREADABLE),
            (long.as_str(), UNREADABLE),
        ] {
            assert_eq!(Finish::read(reason, &AnswerDialect::default()).reason, expected, "{reason}");
        }
    }
}
