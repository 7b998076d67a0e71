//! What a provider can do: plain data, closed enums, no vendor's name.
//!
//! A [`Dialect`] is made by `providers` out of a spec file. The kernel reads it and never asks who is on
//! the other end: a quirk that these types cannot say becomes a new variant here, implemented once, named
//! by any number of specs.

/// Makes a closed vocabulary: an enum whose variants have the names that spec files use. The comment of a variant is
/// what the documentation says of the word; a word that speaks for itself needs none.
#[macro_export]
macro_rules! vocabulary {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[doc = $about:literal])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[doc = $about])* $variant),+ }

        impl $name {
            /// Every value, in the order in which documentation lists them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name in spec files.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// What it means, if its name does not say so.
            pub const fn about(self) -> &'static str {
                match self { $(Self::$variant => concat!($($about),*).trim_ascii()),+ }
            }
        }
    };
}

mod answer;
mod blocks;
mod errors;
mod request;
mod rules;

pub use answer::{AnswerDialect, EofTolerance, FinishMeaning, RefusalForm, ThinkTags};
pub use blocks::{BlockCache, BlockRules, ThinkingType, ThoughtDisplay};
pub use errors::{ErrorMeaning, ErrorRule, ErrorRules};
pub use request::Tokenizer;
pub use request::{
    AbsentContent, AfterTool, CacheKeyField, CacheMarks, CallIds, ChoiceKind, CustomForm, DeveloperRole, Effort,
    EffortField, EmptyText, Exclusion, ForcedWhileThinking, Hosted, ImageInput, ItemIds, JsonSchema, Lacking,
    LastMessage, LateSystem, LimitField, Parallel, Parameter, Replay, ReplayField, RequiredWord, SchemaRule,
    StreamUsage, Thinking, ToolImages, Turns, UserField,
};
pub use rules::{
    Bounds, ContentRules, MessageRules, NativeRules, OptionRules, ReasoningRules, RequestRules, ToolRules,
};

/// How one upstream model wants its chat requests and how its answers read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialect {
    /// The field that carries `max_output_tokens`.
    pub limit_field: LimitField,
    /// The role under which `developer` messages and `instructions` are sent.
    pub developer_role: DeveloperRole,
    /// Whether a streamed request asks for usage (`stream_options.include_usage`).
    pub stream_usage: StreamUsage,
    /// How a JSON schema for the answer is asked for.
    pub json_schema: JsonSchema,
    /// `response_format: {type: json_object}` turned out to be refused: it is asked for in an instruction.
    pub no_json_object: bool,
    /// How many tokens an answer may have; more is not asked for.
    pub max_output: Option<u64>,
    /// What its text is cut into tokens with.
    pub tokenizer: Tokenizer,
    /// Parameters that the provider refuses; each is left out with a note.
    pub drop: Vec<Parameter>,
    /// Whose reasoning can be given back to whom; empty: `chat`.
    pub family: String,
    /// Everything else about requests.
    pub request: RequestRules,
    /// How its answers read.
    pub answer: AnswerDialect,
}

impl Default for Dialect {
    /// What nearly every OpenAI-compatible chat server understands.
    fn default() -> Self {
        Self {
            limit_field: LimitField::MaxTokens,
            developer_role: DeveloperRole::System,
            stream_usage: StreamUsage::Request,
            json_schema: JsonSchema::Native,
            no_json_object: false,
            max_output: None,
            tokenizer: Tokenizer::Estimate,
            drop: Vec::new(),
            family: String::new(),
            request: RequestRules::default(),
            answer: AnswerDialect::default(),
        }
    }
}

impl Dialect {
    /// The family that seals and opens reasoning.
    pub fn family(&self) -> &str {
        if self.family.is_empty() { "chat" } else { &self.family }
    }

    pub fn drops(&self, parameter: Parameter) -> bool {
        self.drop.contains(&parameter)
    }
}
