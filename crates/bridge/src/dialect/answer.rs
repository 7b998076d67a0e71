//! The words for how a provider answers.

use super::errors::ErrorRules;

vocabulary! {
    /// Whether reasoning is in the text, between `<think>` and `</think>`.
    pub enum ThinkTags {
        /// Text is text: a literal tag in an answer stays there.
        Off = "off",
        /// An answer may begin with `<think>`.
        Leading = "leading",
        /// The prompt's template has opened the tag already: the answer begins inside of it.
        Opened = "opened",
    }
}

vocabulary! {
    /// What becomes of a refusal.
    pub enum RefusalForm {
        /// A `refusal` part, as OpenAI has it.
        Refusal = "refusal",
        /// Output text: for clients that drop messages with refusal parts.
        Text = "text",
    }
}

vocabulary! {
    /// Whether a body that just ends, without a finish reason or `[DONE]`, may be a whole answer.
    pub enum EofTolerance {
        Never = "never",
        /// If it made tool calls and the arguments of each are whole.
        ToolCalls = "tool_calls",
        /// Any answer that is not empty, if the arguments of each tool call are whole.
        Any = "any",
    }
}

vocabulary! {
    /// What a finish reason means.
    pub enum FinishMeaning {
        Complete = "complete",
        /// A limit was reached: the answer is incomplete.
        Length = "length",
        ContentFilter = "content_filter",
        /// The provider failed.
        Error = "error",
        /// The context is full: the prompt did not fit if nothing was said, else the answer is incomplete.
        ContextOverflow = "context_overflow",
    }
}

/// How the answers of one upstream model read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerDialect {
    /// Who thought what is sealed: replayed to the same family only.
    pub family: String,
    pub think_tags: ThinkTags,
    pub refusal: RefusalForm,
    pub eof: EofTolerance,
    /// JSON comes in a code fence even where it was asked for without one.
    pub fenced_json: bool,
    /// Finish reasons beside the usual ones, or with another meaning.
    pub finish: Vec<(String, FinishMeaning)>,
    /// Words in an error message that say that the prompt did not fit: short for rules of `errors`; lower case.
    pub overflow: Vec<String>,
    /// What comes before the time to wait in an error message; lower case.
    pub wait: Vec<String>,
    /// What errors mean.
    pub errors: ErrorRules,
}

impl Default for AnswerDialect {
    fn default() -> Self {
        Self {
            family: String::new(),
            think_tags: ThinkTags::Off,
            refusal: RefusalForm::Refusal,
            eof: EofTolerance::Never,
            fenced_json: false,
            finish: Vec::new(),
            overflow: Vec::new(),
            wait: Vec::new(),
            errors: ErrorRules::default(),
        }
    }
}
