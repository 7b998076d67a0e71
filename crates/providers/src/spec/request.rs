//! The `request` section of a spec: the kernel's rules for requests, layer over layer. The keys are the names
//! of the rules' own fields.

use bridge::{
    AbsentContent, AfterTool, BlockCache, BlockRules, Bounds, CacheKeyField, CacheMarks, CallIds, ChoiceKind,
    ContentRules, CustomForm, Effort, EffortField, EmptyText, Exclusion, ForcedWhileThinking, Hosted, ImageInput,
    ItemIds, Lacking, LastMessage, LateSystem, MessageRules, NativeRules, OptionRules, Parallel, ReasoningRules,
    Replay, ReplayField, RequestRules, RequiredWord, SchemaRule, Thinking, ThoughtDisplay, ToolImages, ToolRules,
    Turns, UserField,
};

use super::SpecKey;
use super::catalog::tokens;
use super::layer::{Setting, Sources, layer, word};
use crate::yaml::{Field, Section};

layer!(Messages over MessageRules {
    /// How `content` is written on a message of the assistant that only calls tools.
    absent_content: AbsentContent = word!(AbsentContent),
    /// What becomes of a message or a tool result without any text.
    empty_text: EmptyText = word!(EmptyText),
    /// Whether text goes as a list of parts.
    text_as_parts: bool = Field::boolean,
    /// What becomes of system messages after the start of the conversation.
    late_system: LateSystem = word!(LateSystem),
    /// Whether messages of one role may follow each other.
    turns: Turns = word!(Turns),
    /// What may follow a tool result.
    after_tool: AfterTool = word!(AfterTool),
    /// Whose message may be the last.
    last: LastMessage = word!(LastMessage),
    /// Which ids of calls the provider takes; others are replaced.
    call_ids: CallIds = word!(CallIds),
    /// Which messages are marked with `cache_control: {type: ephemeral}`, for a cache that must be asked for; at most three
    /// of them, and none without text. All text goes as lists of parts then, so that only the marks move from turn to turn.
    cache_marks: CacheMarks = word!(CacheMarks),
});

layer!(Content over ContentRules {
    /// Which images the model sees.
    images: ImageInput = word!(ImageInput),
    /// Where an image in a tool result goes.
    tool_images: ToolImages = word!(ToolImages),
    /// Whether the model takes video.
    video: bool = Field::boolean,
    /// Whether the model takes audio.
    audio: bool = Field::boolean,
    /// Whether files go as parts; text files always go inline.
    files: bool = Field::boolean,
    /// Whether such files may be named by their address.
    file_urls: bool = Field::boolean,
    /// How many images a request may have. Of more, the oldest are left out, several at a time, so that the beginning of
    /// a conversation seldom changes.
    max_images: Option<usize> = limit,
    /// How many digits of base64 an image may have; larger ones are left out.
    max_image_bytes: Option<usize> = limit,
    /// How many all images may have together; the oldest are left out.
    max_images_bytes: Option<usize> = limit,
    /// How many pixels an image may be wide or high; larger ones are left out.
    max_image_side: Option<usize> = limit,
    /// The number of images above which `many_images_side` holds instead.
    many_images: Option<usize> = limit,
    /// The same for each of so many: large ones of long ago are left out, else the oldest of all.
    many_images_side: Option<usize> = limit,
    /// What is done about content that the model does not take.
    lacking: Lacking = word!(Lacking),
});

layer!(Tools over ToolRules {
    /// How many tools a request may have.
    max: Option<usize> = |field| count(field).map(Some),
    /// How long the name of a tool may be, from 16 to 256; longer ones are shortened.
    name_length: usize = |field| usize::try_from(field.integer(16..=256)?).ok(),
    /// The forms of `tool_choice` that the provider takes.
    choices: Vec<ChoiceKind> = word!([ChoiceKind]),
    /// What is done about the others.
    lacking_choice: Lacking = word!(Lacking),
    /// The word for "some tool must be called".
    required_word: RequiredWord = word!(RequiredWord),
    /// A choice that forces a call, on a model that thinks.
    forced_while_thinking: ForcedWhileThinking = word!(ForcedWhileThinking),
    /// When `parallel_tool_calls` is sent.
    parallel: Parallel = word!(Parallel),
    /// What a tool's JSON schema must not have there, and what is done about it.
    schema: Vec<SchemaRule> = word!([SchemaRule]),
    /// Which forms of input a custom tool may have there; others go as functions with one string.
    custom: Vec<CustomForm> = word!([CustomForm]),
    /// Tools that the provider runs itself, each as it declares them: a JSON object in quotes, in which `"$NAME"`
    /// takes the client's member of that name, and `{"$NAME": {"high": 5, "default": 3}}` chooses by it.
    native: Vec<(Hosted, String)> = |field| keyed(field, Hosted::ALL, Hosted::name, json),
    /// Those of them that are no tools there, but members of the body: the same JSON objects, without a declaration.
    native_members: Vec<(Hosted, String)> = |field| keyed(field, Hosted::ALL, Hosted::name, json),
    /// What is done about other tools that the client does not run.
    lacking_hosted: Lacking = word!(Lacking),
    /// What a response format cannot be combined with.
    format_excludes: Vec<Exclusion> = word!([Exclusion]),
});

layer!(Reasoning over ReasoningRules {
    /// How `reasoning.effort` is told.
    effort: EffortField = word!(EffortField),
    /// What each effort is called there; one that is missing goes to the next lower, else to the lowest. With
    /// `effort: members` these are JSON objects in quotes.
    ladder: Vec<(Effort, String)> = |field| keyed(field, Effort::ALL, Effort::name, rung),
    /// Members of the body that switch thinking on: a JSON object in quotes.
    on: Option<String> = |field| json(field).map(Some),
    /// Members that switch it off: a JSON object in quotes; an empty one for a model that always thinks.
    off: Option<String> = |field| json(field).map(Some),
    /// Members that are always sent: a JSON object in quotes.
    always: Option<String> = |field| json(field).map(Some),
    /// What is said about thinking when the request says nothing.
    unsaid: Thinking = word!(Thinking),
    /// Whether thinking stays on while the history has reasoning.
    history_keeps_on: bool = Field::boolean,
    /// Which messages carry their reasoning back.
    replay: Replay = word!(Replay),
    /// The member that carries it.
    field: ReplayField = word!(ReplayField),
    /// Whether a message that must carry reasoning and has lost it gets a blank.
    placeholder: bool = Field::boolean,
    /// What the first call of a message has as `extra_content` when nothing came with it, or it was lost: a JSON object in
    /// quotes.
    call_placeholder: Option<String> = |field| json(field).map(Some),
});

layer!(Options over OptionRules {
    /// The range of `temperature`; values outside go to its ends.
    temperature: Option<Bounds> = |field| bounds(field).map(Some),
    /// The range of `top_p`.
    top_p: Option<Bounds> = |field| bounds(field).map(Some),
    /// The member that tells users apart.
    user_field: UserField = word!(UserField),
    /// The member for `prompt_cache_key`.
    cache_key_field: CacheKeyField = word!(CacheKeyField),
    /// Members that every request has: a JSON object in quotes.
    members: Option<String> = |field| json(field).map(Some),
});

layer!(Native over NativeRules {
    /// Whose ids the items of an answer have (`wire: responses`).
    item_ids: ItemIds = word!(ItemIds),
    /// Whether it encrypts its reasoning when asked to, and takes that back.
    encrypted: bool = Field::boolean,
    /// Whether an answer that was cut by its limit is called complete there.
    silent_limit: bool = Field::boolean,
});

layer!(Blocks over BlockRules {
    /// Whether the model's name is in the path, and not in the body (`wire: messages`).
    model_in_path: bool = Field::boolean,
    /// The limit of an answer that the client sets none for: that API demands one. At most half of the `context_window` of a
    /// model, where that is known.
    default_limit: u64 = tokens,
    /// How the provider is told what of a prompt it should cache.
    cache: BlockCache = word!(BlockCache),
    /// Whether it may be told to cache for an hour, where `prompt_cache_retention` asks for long.
    cache_hour: bool = Field::boolean,
    /// Whether what the model thinks is shown in words.
    display: ThoughtDisplay = word!(ThoughtDisplay),
    /// Whether the input of calls comes while it is written (`eager_input_streaming`).
    eager_input: bool = Field::boolean,
    /// Whether `service_tier: fast` is known there, as `speed: fast`.
    fast: bool = Field::boolean,
    /// What is tried out with each request, by the names that go into the header for it.
    betas: Vec<String> = betas,
    /// The trial with which thoughts that no longer fit the conversation are dropped there, instead of the request being
    /// refused; empty: there is none.
    binding_beta: String = |field| if field.string()?.is_empty() { Some(String::new()) } else { beta(field) },
});

/// The whole section.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Request {
    messages: Messages,
    content: Content,
    tools: Tools,
    reasoning: Reasoning,
    options: Options,
    native: Native,
    blocks: Blocks,
}

impl Request {
    pub(super) fn read(mut section: Section<'_>) -> Self {
        let request = Self {
            messages: group(&mut section, "messages", Messages::pick),
            content: group(&mut section, "content", Content::pick),
            tools: group(&mut section, "tools", Tools::pick),
            reasoning: group(&mut section, "reasoning", Reasoning::pick),
            options: group(&mut section, "options", Options::pick),
            native: group(&mut section, "native", Native::pick),
            blocks: group(&mut section, "blocks", Blocks::pick),
        };
        section.finish();
        request
    }

    pub(super) fn apply(&self, to: &mut RequestRules) {
        let Self { messages, content, tools, reasoning, options, native, blocks } = self;
        messages.apply(&mut to.messages);
        content.apply(&mut to.content);
        tools.apply(&mut to.tools);
        reasoning.apply(&mut to.reasoning);
        options.apply(&mut to.options);
        native.apply(&mut to.native);
        blocks.apply(&mut to.blocks);
    }

    pub(super) fn whole(of: &RequestRules) -> Self {
        let RequestRules { messages, content, tools, reasoning, options, native, blocks } = of;
        Self {
            messages: Messages::whole(messages),
            content: Content::whole(content),
            tools: Tools::whole(tools),
            reasoning: Reasoning::whole(reasoning),
            options: Options::whole(options),
            native: Native::whole(native),
            blocks: Blocks::whole(blocks),
        }
    }

    /// The keys of the section as documentation shows them.
    pub(super) fn described() -> Vec<SpecKey> {
        let mut keys = Messages::described("request.messages.");
        keys.extend(Content::described("request.content."));
        keys.extend(Tools::described("request.tools."));
        keys.extend(Reasoning::described("request.reasoning."));
        keys.extend(Options::described("request.options."));
        keys.extend(Native::described("request.native."));
        keys.extend(Blocks::described("request.blocks."));
        keys
    }

    pub(super) fn settings(&self, from: Sources<'_>, out: &mut Vec<Setting>) {
        self.messages.settings("request.messages.", from, out);
        self.content.settings("request.content.", from, out);
        self.tools.settings("request.tools.", from, out);
        self.reasoning.settings("request.reasoning.", from, out);
        self.options.settings("request.options.", from, out);
        self.native.settings("request.native.", from, out);
        self.blocks.settings("request.blocks.", from, out);
    }
}

fn group<'r, T>(section: &mut Section<'r>, key: &'static str, pick: impl FnOnce(&mut Section<'r>) -> T) -> T {
    let mut group = section.section(key);
    let picked = pick(&mut group);
    group.finish();
    picked
}

fn betas(field: &Field<'_>) -> Option<Vec<String>> {
    Some(field.list()?.iter().filter_map(beta).collect())
}

/// A name in a header's list.
fn beta(field: &Field<'_>) -> Option<String> {
    let name = field.text()?;
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
        return field.expected("a name of letters, digits, `-`, `_` and `.`");
    }
    Some(name)
}

fn count(field: &Field<'_>) -> Option<usize> {
    usize::try_from(field.integer(0..=100_000)?).ok()
}

#[expect(clippy::option_option, reason = "one says that it is a number, the other that there is a limit")]
fn limit(field: &Field<'_>) -> Option<Option<usize>> {
    usize::try_from(field.integer(1..=1_000_000_000)?).ok().map(Some)
}

/// A mapping from words of a vocabulary; the rest of its keys are mistakes.
fn keyed<'r, T: Copy>(
    field: &Field<'r>,
    all: &[T],
    name: impl Fn(T) -> &'static str,
    read: impl Fn(&Field<'r>) -> Option<String>,
) -> Option<Vec<(T, String)>> {
    let entry = |(key, field): (String, Field<'r>)| {
        let Some(word) = all.iter().copied().find(|word| name(*word) == key) else {
            let known: Vec<&str> = all.iter().map(|word| name(*word)).collect();
            field.problem(format!("unknown key `{key}`"), Some(format!("known keys: {}", known.join(", "))));
            return None;
        };
        Some((word, read(&field)?))
    };
    Some(field.entries()?.into_iter().filter_map(entry).collect())
}

/// A word, or members of the body.
fn rung(field: &Field<'_>) -> Option<String> {
    if field.text()?.starts_with('{') { json(field) } else { field.text() }
}

/// A JSON object as text: it becomes part of the request as it is written.
fn json(field: &Field<'_>) -> Option<String> {
    let text = field.text()?;
    let object: Result<serde_json::Map<String, serde_json::Value>, _> = serde_json::from_str(&text);
    match object {
        Ok(_) => Some(text),
        // Not in the parser's own words: they may repeat what a variable holds.
        Err(error) => {
            let place = format!("line {}, column {}", error.line(), error.column());
            field.problem(format!("expected a JSON object in quotes: it is none at {place}"), None);
            None
        }
    }
}

fn bounds(field: &Field<'_>) -> Option<Bounds> {
    let mut section = field.clone().section()?;
    let (min, max) = (section.read("min", number), section.read("max", number));
    section.finish();
    match (min, max) {
        (Some(min), Some(max)) => Some(Bounds { min, max }),
        _ => {
            field.problem("expected `min` and `max`", None);
            None
        }
    }
}

fn number(field: &Field<'_>) -> Option<String> {
    let text = field.text()?;
    if serde_json::from_str::<f64>(&text).is_err() {
        return field.expected("a number");
    }
    Some(text)
}
