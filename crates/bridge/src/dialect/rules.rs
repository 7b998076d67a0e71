//! The rules for requests, by concern. Defaults are what nearly every chat server takes.

use super::blocks::BlockRules;
use super::request::{
    AbsentContent, AfterTool, CacheKeyField, CacheMarks, CallIds, ChoiceKind, CustomForm, Effort, EffortField,
    EmptyText, Exclusion, ForcedWhileThinking, Hosted, ImageInput, ItemIds, Lacking, LastMessage, LateSystem, Parallel,
    Replay, ReplayField, RequiredWord, SchemaRule, Thinking, ToolImages, Turns, UserField,
};

/// How requests must look beyond the few things that every dialect says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestRules {
    pub messages: MessageRules,
    pub content: ContentRules,
    pub tools: ToolRules,
    pub reasoning: ReasoningRules,
    pub options: OptionRules,
    pub native: NativeRules,
    pub blocks: BlockRules,
}

/// A provider that speaks the Responses API itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativeRules {
    pub item_ids: ItemIds,
    /// It encrypts its reasoning when asked to, and takes that back.
    pub encrypted: bool,
    /// An answer that was cut by its limit is called complete there.
    pub silent_limit: bool,
}

impl Default for NativeRules {
    fn default() -> Self {
        Self { item_ids: ItemIds::Ours, encrypted: false, silent_limit: false }
    }
}

/// Order and shape of messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRules {
    pub absent_content: AbsentContent,
    pub empty_text: EmptyText,
    /// Text goes as a list of parts.
    pub text_as_parts: bool,
    pub late_system: LateSystem,
    pub turns: Turns,
    pub after_tool: AfterTool,
    pub last: LastMessage,
    pub call_ids: CallIds,
    pub cache_marks: CacheMarks,
}

impl Default for MessageRules {
    fn default() -> Self {
        Self {
            absent_content: AbsentContent::Null,
            empty_text: EmptyText::Fill,
            text_as_parts: false,
            late_system: LateSystem::Keep,
            turns: Turns::Free,
            after_tool: AfterTool::Any,
            last: LastMessage::Any,
            call_ids: CallIds::Any,
            cache_marks: CacheMarks::None,
        }
    }
}

/// What else than text can be in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a word of specs")]
pub struct ContentRules {
    pub images: ImageInput,
    pub tool_images: ToolImages,
    pub video: bool,
    pub audio: bool,
    /// Files as parts; text files always go inline.
    pub files: bool,
    /// Such files may be named by their address.
    pub file_urls: bool,
    /// How many images a request may have.
    pub max_images: Option<usize>,
    /// How many digits of base64 one image may have, and all of them together.
    pub max_image_bytes: Option<usize>,
    pub max_images_bytes: Option<usize>,
    /// How many pixels an image may be wide or high.
    pub max_image_side: Option<usize>,
    /// The same of each image where there are more than so many.
    pub many_images: Option<usize>,
    pub many_images_side: Option<usize>,
    /// What to do about the rest.
    pub lacking: Lacking,
}

impl Default for ContentRules {
    fn default() -> Self {
        Self {
            images: ImageInput::All,
            tool_images: ToolImages::Hoist,
            video: false,
            audio: false,
            files: false,
            file_urls: false,
            max_images: None,
            max_image_bytes: None,
            max_images_bytes: None,
            max_image_side: None,
            many_images: None,
            many_images_side: None,
            lacking: Lacking::Degrade,
        }
    }
}

/// Tools and the choice among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRules {
    pub max: Option<usize>,
    /// How long a name may be; names are of letters, digits, `_` and `-` everywhere.
    pub name_length: usize,
    pub choices: Vec<ChoiceKind>,
    /// What to do about a choice that is not among them.
    pub lacking_choice: Lacking,
    pub required_word: RequiredWord,
    pub forced_while_thinking: ForcedWhileThinking,
    pub parallel: Parallel,
    pub schema: Vec<SchemaRule>,
    /// Custom tools with these forms of input go as custom tools; the others as functions with one string.
    pub custom: Vec<CustomForm>,
    /// Tools that the provider runs itself, each as it declares them: JSON templates, see `plan::tools::template`.
    pub native: Vec<(Hosted, String)>,
    /// Those of them that are not declared, but switched on by members of the body: the same templates.
    pub native_members: Vec<(Hosted, String)>,
    /// What to do about the other hosted tools.
    pub lacking_hosted: Lacking,
    /// A response format is not sent beside these.
    pub format_excludes: Vec<Exclusion>,
}

impl Default for ToolRules {
    fn default() -> Self {
        Self {
            max: None,
            name_length: 64,
            choices: ChoiceKind::ALL.to_vec(),
            lacking_choice: Lacking::Degrade,
            required_word: RequiredWord::Required,
            forced_while_thinking: ForcedWhileThinking::Allowed,
            parallel: Parallel::WhenFalse,
            schema: Vec::new(),
            custom: Vec::new(),
            native: Vec::new(),
            native_members: Vec::new(),
            lacking_hosted: Lacking::Degrade,
            format_excludes: Vec::new(),
        }
    }
}

impl ToolRules {
    /// Whether the provider runs tools of this kind itself, however it is told to.
    pub fn runs(&self, kind: Hosted) -> bool {
        self.native.iter().chain(&self.native_members).any(|(native, _)| *native == kind)
    }
}

/// Thinking: how it is asked for, and what becomes of it afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReasoningRules {
    pub effort: EffortField,
    /// What each effort is called there; one that is missing goes to the next lower, else to the lowest.
    /// Empty: efforts keep their names. For [`EffortField::Members`] these are JSON objects.
    pub ladder: Vec<(Effort, String)>,
    /// Members of the body that switch thinking on and off; JSON objects.
    pub on: Option<String>,
    pub off: Option<String>,
    /// Members that are always sent; a JSON object.
    pub always: Option<String>,
    pub unsaid: Thinking,
    /// Thinking stays on while the history carries reasoning.
    pub history_keeps_on: bool,
    pub replay: Replay,
    pub field: ReplayField,
    /// A message that must carry reasoning and has lost it gets a blank; with `wire: messages`, which has none, such a model
    /// does not think once a message with calls has lost it.
    pub placeholder: bool,
    /// What the first call of a message has beside it when nothing came with it, or it was lost; a JSON object.
    pub call_placeholder: Option<String>,
}

impl Default for ReasoningRules {
    fn default() -> Self {
        Self {
            effort: EffortField::Native,
            ladder: Vec::new(),
            on: None,
            off: None,
            always: None,
            unsaid: Thinking::Unsaid,
            history_keeps_on: false,
            replay: Replay::Never,
            field: ReplayField::ReasoningContent,
            placeholder: false,
            call_placeholder: None,
        }
    }
}

/// Ranges and names of options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionRules {
    pub temperature: Option<Bounds>,
    pub top_p: Option<Bounds>,
    pub user_field: UserField,
    pub cache_key_field: CacheKeyField,
    /// Members that every request has; a JSON object.
    pub members: Option<String>,
}

impl Default for OptionRules {
    fn default() -> Self {
        Self {
            temperature: None,
            top_p: None,
            user_field: UserField::Own,
            cache_key_field: CacheKeyField::PromptCacheKey,
            members: None,
        }
    }
}

/// A range, as the JSON numbers that are sent at its ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    pub min: String,
    pub max: String,
}
