//! The `request` section of a spec: the kernel's rules for requests, layer over layer. The keys are the names
//! of the rules' own fields.

use bridge::{
    AbsentContent, AfterTool, Bounds, CacheKeyField, CallIds, ChoiceKind, ContentRules, CustomForm, Effort,
    EffortField, EmptyText, Exclusion, ForcedWhileThinking, Hosted, ImageInput, ItemIds, Lacking, LateSystem,
    MessageRules, NativeRules, OptionRules, Parallel, ReasoningRules, Replay, ReplayField, RequestRules, RequiredWord,
    SchemaRule, Thinking, ToolImages, ToolRules, Turns, UserField,
};

use super::layer::{Setting, Sources, layer, word};
use crate::yaml::{Field, Section};

layer!(Messages over MessageRules {
    absent_content: AbsentContent = word!(AbsentContent),
    empty_text: EmptyText = word!(EmptyText),
    text_as_parts: bool = Field::boolean,
    late_system: LateSystem = word!(LateSystem),
    turns: Turns = word!(Turns),
    after_tool: AfterTool = word!(AfterTool),
    call_ids: CallIds = word!(CallIds),
});

layer!(Content over ContentRules {
    images: ImageInput = word!(ImageInput),
    tool_images: ToolImages = word!(ToolImages),
    video: bool = Field::boolean,
    audio: bool = Field::boolean,
    files: bool = Field::boolean,
    lacking: Lacking = word!(Lacking),
});

layer!(Tools over ToolRules {
    max: Option<usize> = |field| count(field).map(Some),
    name_length: usize = |field| usize::try_from(field.integer(16..=256)?).ok(),
    choices: Vec<ChoiceKind> = word!([ChoiceKind]),
    lacking_choice: Lacking = word!(Lacking),
    required_word: RequiredWord = word!(RequiredWord),
    forced_while_thinking: ForcedWhileThinking = word!(ForcedWhileThinking),
    parallel: Parallel = word!(Parallel),
    schema: Vec<SchemaRule> = word!([SchemaRule]),
    custom: Vec<CustomForm> = word!([CustomForm]),
    native: Vec<(Hosted, String)> = |field| keyed(field, Hosted::ALL, Hosted::name, json),
    lacking_hosted: Lacking = word!(Lacking),
    format_excludes: Vec<Exclusion> = word!([Exclusion]),
});

layer!(Reasoning over ReasoningRules {
    effort: EffortField = word!(EffortField),
    ladder: Vec<(Effort, String)> = |field| keyed(field, Effort::ALL, Effort::name, rung),
    on: Option<String> = |field| json(field).map(Some),
    off: Option<String> = |field| json(field).map(Some),
    always: Option<String> = |field| json(field).map(Some),
    unsaid: Thinking = word!(Thinking),
    history_keeps_on: bool = Field::boolean,
    replay: Replay = word!(Replay),
    field: ReplayField = word!(ReplayField),
    placeholder: bool = Field::boolean,
});

layer!(Options over OptionRules {
    temperature: Option<Bounds> = |field| bounds(field).map(Some),
    top_p: Option<Bounds> = |field| bounds(field).map(Some),
    user_field: UserField = word!(UserField),
    cache_key_field: CacheKeyField = word!(CacheKeyField),
    members: Option<String> = |field| json(field).map(Some),
});

layer!(Native over NativeRules {
    item_ids: ItemIds = word!(ItemIds),
    encrypted: bool = Field::boolean,
    silent_limit: bool = Field::boolean,
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
        };
        section.finish();
        request
    }

    pub(super) fn apply(&self, to: &mut RequestRules) {
        let Self { messages, content, tools, reasoning, options, native } = self;
        messages.apply(&mut to.messages);
        content.apply(&mut to.content);
        tools.apply(&mut to.tools);
        reasoning.apply(&mut to.reasoning);
        options.apply(&mut to.options);
        native.apply(&mut to.native);
    }

    pub(super) fn whole(of: &RequestRules) -> Self {
        let RequestRules { messages, content, tools, reasoning, options, native } = of;
        Self {
            messages: Messages::whole(messages),
            content: Content::whole(content),
            tools: Tools::whole(tools),
            reasoning: Reasoning::whole(reasoning),
            options: Options::whole(options),
            native: Native::whole(native),
        }
    }

    pub(super) fn settings(&self, from: Sources<'_>, out: &mut Vec<Setting>) {
        self.messages.settings("request.messages.", from, out);
        self.content.settings("request.content.", from, out);
        self.tools.settings("request.tools.", from, out);
        self.reasoning.settings("request.reasoning.", from, out);
        self.options.settings("request.options.", from, out);
        self.native.settings("request.native.", from, out);
    }
}

fn group<'r, T>(section: &mut Section<'r>, key: &'static str, pick: impl FnOnce(&mut Section<'r>) -> T) -> T {
    let mut group = section.section(key);
    let picked = pick(&mut group);
    group.finish();
    picked
}

fn count(field: &Field<'_>) -> Option<usize> {
    usize::try_from(field.integer(0..=100_000)?).ok()
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
