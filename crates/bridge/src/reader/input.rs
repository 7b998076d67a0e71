//! Whether the input of a custom tool fits its grammar. That is somebody else's knowledge, asked through [`InputCheck`];
//! what follows from it is decided here: what may be sent while it comes, what is mended, what the client is told.

use std::fmt;
use std::sync::Arc;

use crate::context::InputGrammar;
use crate::escaped::{Escaped, EscapedBuf};
use crate::note::{Action, Note, code};
use crate::response::ResponseWriter;

/// Knows grammars.
pub trait InputCheck: fmt::Debug + Send + Sync {
    /// Begins to read one input that has to fit the grammar.
    fn begin(&self, grammar: &InputGrammar) -> Box<dyn InputReading>;
}

/// Reads one input while it comes.
pub trait InputReading: fmt::Debug + Send + Sync {
    /// Reads on.
    fn push(&mut self, text: &str) -> InputSoFar;

    /// Nothing more comes. This is the whole input, and what of it was sent already: a repair must begin with that.
    fn finish(&mut self, input: &str, sent: &str) -> InputVerdict;

    /// Another one that has read the same.
    fn copied(&self) -> Box<dyn InputReading>;
}

impl Clone for Box<dyn InputReading> {
    fn clone(&self) -> Self {
        (**self).copied()
    }
}

/// What can be said of the beginning of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputSoFar {
    /// It may become one that fits.
    Fits,
    /// It will not fit, but might be mended.
    Broken,
    /// It will not fit, and nothing can be done about it.
    Misfit,
    /// Nobody knows.
    Unknown,
}

/// What is found out about a whole input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputVerdict {
    Fits,
    /// It did not fit; this does. Each thing that was mended.
    Repaired {
        input: String,
        how: Vec<&'static str>,
    },
    /// It does not fit: where, and why.
    Misfit(String),
    /// Nobody knows: the grammar cannot be used, or not within reason.
    Unknown(String),
}

/// What a reader needs to check inputs.
#[derive(Debug, Clone, Default)]
pub(super) struct Inputs {
    pub(super) check: Option<Arc<dyn InputCheck>>,
    pub(super) grammars: Vec<InputGrammar>,
    /// A call that does not fit may be asked for once more, if the client has seen nothing of it.
    pub(super) asks_again: bool,
    /// How the answer ended.
    pub(super) ends: AnswerEnds,
}

/// Whether an answer said that it is whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum AnswerEnds {
    /// It did, or has not come to its end.
    #[default]
    Whole,
    /// Nobody knows: what is missing may have been on its way.
    Unsaid,
}

impl Inputs {
    /// Begins to check an input of the tool of this name.
    pub(super) fn begin(&self, provider_name: &str) -> Option<CheckedInput> {
        let check = self.check.as_ref()?;
        let grammar = self.grammars.iter().find(|grammar| grammar.provider_name == provider_name)?;
        Some(CheckedInput { reading: check.begin(grammar), read: 0, good: 0, stage: Stage::Fits, verdict: None })
    }
}

/// An input that is checked while it comes.
#[derive(Debug, Clone)]
pub(super) struct CheckedInput {
    reading: Box<dyn InputReading>,
    /// How much of it was read, as it is written.
    read: usize,
    /// How much of it can be sent without regret.
    good: usize,
    stage: Stage,
    verdict: Option<InputVerdict>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Fits,
    /// What came last waits for the end.
    Holds,
    /// Nothing is gained by holding anything.
    Open,
}

impl CheckedInput {
    /// Reads what is new in the input. Says how much of it may be sent: what fits so far, piece by piece; from the piece
    /// on that does not fit, nothing, if it can be mended or asked for once more.
    pub(super) fn sendable(&mut self, input: Escaped<'_>, may_ask_again: bool) -> usize {
        if self.stage == Stage::Fits && input.len() > self.read {
            let found = self.reading.push(&input.after(self.read).decode());
            self.read = input.len();
            let nothing_sent = self.good == 0;
            self.stage = match found {
                InputSoFar::Fits => Stage::Fits,
                InputSoFar::Broken => Stage::Holds,
                InputSoFar::Misfit if may_ask_again && nothing_sent => Stage::Holds,
                InputSoFar::Misfit | InputSoFar::Unknown => Stage::Open,
            };
            if self.stage == Stage::Fits {
                self.good = self.read;
            }
        }
        if self.stage == Stage::Open { input.len() } else { self.good }
    }

    /// What is found out about the whole input. It is asked once.
    pub(super) fn verdict(&mut self, input: Escaped<'_>, sent: usize) -> &InputVerdict {
        self.sendable(input, false);
        let Self { reading, verdict, .. } = self;
        verdict.get_or_insert_with(|| reading.finish(&input.decode(), &input.up_to(sent).decode()))
    }

    /// Says what was found out; gives the input that is to be sent instead, if it is another.
    pub(super) fn conclude(
        mut self,
        input: Escaped<'_>,
        sent: usize,
        tool: &str,
        ends: AnswerEnds,
        response: &mut ResponseWriter,
    ) -> Option<EscapedBuf> {
        match self.verdict(input, sent) {
            InputVerdict::Fits => None,
            InputVerdict::Repaired { .. } if ends == AnswerEnds::Unsaid => {
                let message = format!("the input of {tool} does not fit its grammar, and may not be whole");
                response.note(Note::new(Action::Degraded, "tool_calls", message).coded(code::TOOL_INPUT));
                None
            }
            InputVerdict::Repaired { input: mended, how } => {
                for what in how {
                    response.note(Note::new(Action::Repaired, "tool_calls", format!("{tool}: {what}")));
                }
                let before = input.up_to(sent);
                let mut text = EscapedBuf::from(before);
                text.push_plain(mended.get(before.decode().len()..).unwrap_or_default());
                Some(text)
            }
            InputVerdict::Misfit(why) => {
                let message = format!("the input of {tool} does not fit its grammar: {why}");
                response.note(Note::new(Action::Degraded, "tool_calls", message).coded(code::TOOL_INPUT));
                None
            }
            InputVerdict::Unknown(why) => {
                let message = format!("the input of {tool} could not be checked: {why}");
                response.note(Note::new(Action::Degraded, "tool_calls", message).coded(code::TOOL_INPUT));
                None
            }
        }
    }
}
