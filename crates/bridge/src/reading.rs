//! What the answer's reader must know about the request: plan writes it, the machine reads it, nobody else.

use wire::responses::Tail;

use crate::dialect::ItemIds;

/// How to read the answer to one request.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// `Echo::tail`: what each snapshot repeats of the request.
    pub echo: Tail,
    /// Whether the response is meant to be stored.
    pub store: bool,
    /// The tools that were offered, under the names that the provider knows them by.
    pub tools: Vec<OfferedTool>,
    /// The client asked for `reasoning.summary`: reasoning also goes out as a summary.
    pub reasoning_summary: bool,
    /// Token probabilities were asked for.
    pub logprobs: bool,
    /// What the text of the answer must be.
    pub output: OutputContract,
    /// The far side speaks the Responses API itself.
    pub native: Option<NativeReading>,
}

/// How to read the answer of such a far side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NativeReading {
    pub item_ids: ItemIds,
    /// An answer of that many tokens was cut, whatever is said about it.
    pub silent_limit: Option<u64>,
}

/// A tool as the provider sees it, and what the client declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedTool {
    /// The function's name in the chat request; unique in it.
    pub provider_name: String,
    pub kind: ToolKind,
    /// As the client declared it.
    pub name: String,
    pub namespace: Option<String>,
}

/// The kind of tool that the client declared: a call comes back as that kind's item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolKind {
    Function,
    Custom,
    Shell,
    LocalShell,
    ApplyPatch,
    ToolSearch,
}

impl ToolKind {
    /// The tool's `type`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Custom => "custom",
            Self::Shell => "shell",
            Self::LocalShell => "local_shell",
            Self::ApplyPatch => "apply_patch",
            Self::ToolSearch => "tool_search",
        }
    }
}

/// What was promised about the text of the answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum OutputContract {
    #[default]
    Text,
    JsonObject,
    JsonSchema {
        name: String,
        /// The schema as the client wrote it.
        schema: String,
        /// Whether a fit was promised (`strict: true`), or only to be tried.
        strict: bool,
        /// Whether the provider enforces it itself.
        native: bool,
    },
}
