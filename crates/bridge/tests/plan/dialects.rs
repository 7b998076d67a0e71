//! The dialects of the tables: four providers' and the generic one as their specs say it, one that takes
//! nothing beyond the bare protocol, and one that takes all.

use std::sync::OnceLock;

use bridge::{
    AbsentContent, AfterTool, AnswerDialect, CallIds, ChoiceKind, ContentRules, CustomForm, DeveloperRole, Dialect,
    EffortField, Hosted, ImageInput, JsonSchema, Lacking, LateSystem, LimitField, MessageRules, Parameter,
    ReasoningRules, Replay, RequestRules, SchemaRule, StreamUsage, ToolImages, ToolRules, Turns,
};
use providers::{Library, resolve_named};
use testkit::transcript::{Ids, Strictness};

/// A spec's dialect, or that of one of its models: `spec/model`.
pub(crate) fn named(name: &str) -> Dialect {
    let spec = |name: &str| resolve_named(Library::BUILTIN, name, &|_| None).unwrap();
    match name {
        "generic" => named("openai-compatible"),
        "strict" => strict(),
        "rich" => rich(),
        name => match name.split_once('/') {
            Some((name, model)) => spec(name).for_model(model).dialect,
            None => spec(name).dialect,
        },
    }
}

pub(crate) const TABLE: [&str; 7] = ["deepseek", "zhipu", "minimax", "xiaomi", "generic", "strict", "rich"];

/// Models of whom more is said than of all at their provider: marks, placeholders, what families need.
const MODELS: [&str; 6] = [
    "openai-compatible/claude-opus-5",
    "openai-compatible/deepseek-v4-pro",
    "openai-compatible/minimax-m3",
    "openrouter/qwen/qwen3.7-plus",
    "gemini/gemini-3-pro",
    "qwen/qwen3.7-plus",
];

/// Every built-in spec that asks for something of its own, some of their models, and the two made here.
pub(crate) fn all() -> Vec<(String, Dialect)> {
    static ALL: OnceLock<Vec<(String, Dialect)>> = OnceLock::new();
    ALL.get_or_init(read).clone()
}

fn read() -> Vec<(String, Dialect)> {
    // Regions and plans of a vendor differ in their addresses; what answers mean is not planned.
    let asked =
        |dialect: &Dialect| Dialect { family: String::new(), answer: AnswerDialect::default(), ..dialect.clone() };
    let mut all: Vec<(String, Dialect)> = Vec::new();
    for name in Library::BUILTIN.names().chain(MODELS).chain(["strict", "rich"]) {
        let dialect = named(name);
        if all.iter().all(|(_, known)| asked(known) != asked(&dialect)) {
            all.push((name.to_owned(), dialect));
        }
    }
    all
}

fn strict() -> Dialect {
    let mut dialect = Dialect {
        limit_field: LimitField::MaxTokens,
        developer_role: DeveloperRole::System,
        stream_usage: StreamUsage::Omit,
        json_schema: JsonSchema::Prompt,
        drop: Parameter::ALL.to_vec(),
        request: RequestRules {
            messages: MessageRules {
                absent_content: AbsentContent::Omit,
                late_system: LateSystem::User,
                turns: Turns::Merged,
                after_tool: AfterTool::Assistant,
                call_ids: CallIds::Alnum9,
                ..MessageRules::default()
            },
            content: ContentRules { images: ImageInput::None, ..ContentRules::default() },
            tools: ToolRules {
                max: Some(4),
                name_length: 32,
                choices: vec![ChoiceKind::Auto],
                lacking_choice: Lacking::Reject,
                lacking_hosted: Lacking::Reject,
                schema: SchemaRule::ALL.to_vec(),
                ..ToolRules::default()
            },
            reasoning: ReasoningRules { effort: EffortField::None, ..ReasoningRules::default() },
            ..RequestRules::default()
        },
        ..Dialect::default()
    };
    dialect.family = "strict".to_owned();
    dialect
}

fn rich() -> Dialect {
    let mut dialect = named("openai");
    dialect.family = "rich".to_owned();
    dialect.request.content = ContentRules {
        images: ImageInput::All,
        tool_images: ToolImages::Native,
        video: true,
        audio: true,
        files: true,
        file_urls: false,
        lacking: Lacking::Reject,
        ..ContentRules::default()
    };
    dialect.request.tools.custom = vec![CustomForm::Text, CustomForm::Lark];
    dialect.request.tools.native = vec![(Hosted::WebSearch, r#"{"type":"web_search"}"#.to_owned())];
    dialect.request.reasoning.replay = Replay::Always;
    dialect
}

/// What the independent checker may demand of this dialect's requests.
pub(crate) fn strictness(dialect: &Dialect) -> Strictness {
    let messages = &dialect.request.messages;
    Strictness {
        developer: dialect.developer_role == DeveloperRole::Developer,
        no_empty_text: messages.empty_text == bridge::EmptyText::Fill,
        system_first: messages.late_system == LateSystem::User,
        alternate: messages.turns == Turns::Merged,
        assistant_after_tool: messages.after_tool == AfterTool::Assistant,
        no_null_content: messages.absent_content != AbsentContent::Null,
        ids: match messages.call_ids {
            CallIds::Any => Ids::NotEmpty,
            CallIds::Safe => Ids::Safe64,
            CallIds::Alnum9 => Ids::Alnum9,
        },
        name_length: dialect.request.tools.name_length,
        custom: !dialect.request.tools.custom.is_empty(),
    }
}
