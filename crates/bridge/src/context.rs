//! What the reader of an answer must know about the request: plan writes it, readers read it, nobody else.

use crate::dialect::ItemIds;
use crate::seal::PromptEnd;

/// How to read the answer to one request.
#[derive(Debug, Clone, Default)]
pub struct AnswerContext {
    /// The API in which the answer comes.
    pub wire: AnswerWire,
    /// The tools that were offered, under the names that the provider knows them by.
    pub tools: Vec<OfferedTool>,
    /// The client asked for `reasoning.summary`: reasoning also goes out as a summary.
    pub reasoning_summary: bool,
    /// Token probabilities were asked for.
    pub logprobs: bool,
    /// What the text of the answer must be.
    pub output: OutputContract,
    /// Grammars of custom tools that the provider does not see to itself.
    pub grammars: Vec<InputGrammar>,
    /// Tools whose parameters have other names there.
    pub renamed: Vec<RenamedKeys>,
    /// How what was sent ends: the answer's reasoning has to remember it.
    pub prompt_end: PromptEnd,
}

/// The API that an upstream speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AnswerWire {
    #[default]
    Chat,
    Responses(NativeContext),
    Messages,
}

impl AnswerWire {
    /// The Responses API, as far as nothing is known of the request.
    pub const RESPONSES: Self = Self::Responses(NativeContext { item_ids: ItemIds::Ours, silent_limit: None });
}

/// How to read the answer of an upstream that speaks the Responses API itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NativeContext {
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

/// What the provider knows a tool's parameters by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenamedKeys {
    /// The tool: [`OfferedTool::provider_name`].
    pub provider_name: String,
    /// In the order of their own names.
    pub keys: Vec<RenamedKey>,
}

/// One parameter: the name that it was declared under, and the one under which it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenamedKey {
    pub own: String,
    pub sent: String,
}

/// The grammar that the input of a custom tool has to fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputGrammar {
    /// The tool: [`OfferedTool::provider_name`].
    pub provider_name: String,
    pub syntax: InputSyntax,
    pub definition: String,
}

/// How a grammar is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InputSyntax {
    Lark,
    Regex,
}

/// The kind of tool that the client declared: a call of it becomes that kind's item. Calls of a hosted tool become no
/// item here; they are collected for whoever runs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolKind {
    Function,
    Custom,
    Shell,
    LocalShell,
    ApplyPatch,
    ToolSearch,
    /// godex runs it: the client never sees a call of it that it would have to answer. The namespace is the server's
    /// label.
    Mcp,
    /// godex runs these, for `web_search`.
    WebSearch,
    OpenPage,
    FindInPage,
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
            Self::Mcp => "mcp",
            Self::WebSearch => "web_search",
            Self::OpenPage => "open_page",
            Self::FindInPage => "find_in_page",
        }
    }

    /// Whether godex runs it.
    pub const fn is_hosted(self) -> bool {
        matches!(self, Self::Mcp | Self::WebSearch | Self::OpenPage | Self::FindInPage)
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
