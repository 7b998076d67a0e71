//! What an upstream will not take although nobody knew: read out of its refusal, and done without. Whether others may
//! profit from it is another question: see [`super::hearsay`].

use wire::json::{Kind, Raw, Text};

use super::error_body::ErrorBody;
use super::{api, room};
use crate::dialect::{
    AnswerDialect, BlockCache, BlockRules, CacheMarks, Dialect, ErrorMeaning, JsonSchema, LateSystem, LimitField,
    Parameter, Replay, SchemaRule, StreamUsage, ThinkingType, ThoughtDisplay,
};

/// A member of the chat request that the provider refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsupported {
    Parameter(Parameter),
    /// This name of the output limit; there is another.
    Limit(LimitField),
    StreamOptions,
    ResponseFormat,
    /// `json_object` as the response format; others may do.
    JsonObject,
    /// Blocks in which the model thought: this request is no place for them any more.
    Thoughts,
    /// Marks on messages for a cache.
    CacheMarks,
    /// More output than this, whoever asks for it.
    Output(u64),
    /// More output than this beside the input of this one request. A client's own wish stays what it is.
    Room(u64),
    /// Thinking of this kind; none: of that which the request asks for.
    Thinking(Option<ThinkingType>),
    /// Where the Messages API has an effort and a format.
    OutputConfig,
    /// The format there alone.
    OutputFormat,
    /// Whether thoughts are shown in words.
    Display,
    /// What is to become of thoughts that no longer fit.
    Binding,
    /// What is tried out, which a header says.
    Betas,
    /// The input of calls while it is written.
    EagerInput,
    /// Tools whose schema is kept to.
    Strict,
    /// Schemas that are kept to, of tools or of the answer: those of tools are given up first.
    Schemas,
    /// System messages after the start of the conversation.
    LateSystem,
    /// Files as parts, one of which the provider cannot read.
    Files,
}

/// What a refusal is about, and what speaks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    pub unsupported: Unsupported,
    pub proof: Proof,
}

/// How far a refusal can be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// It may be about this one request, or repeat its words: enough to try once more, and for nothing else.
    Hearsay,
    /// It names the member in words, or a rule does that knows it by its words.
    Words,
    /// It names the member in a field that has no other use, or a rule does that knows it by its fields.
    Fields,
}

/// The members that can be done without.
const MEMBERS: &[(&str, Unsupported)] = &[
    ("temperature", Unsupported::Parameter(Parameter::Temperature)),
    ("top_p", Unsupported::Parameter(Parameter::TopP)),
    ("presence_penalty", Unsupported::Parameter(Parameter::PresencePenalty)),
    ("frequency_penalty", Unsupported::Parameter(Parameter::FrequencyPenalty)),
    ("top_logprobs", Unsupported::Parameter(Parameter::TopLogprobs)),
    ("logprobs", Unsupported::Parameter(Parameter::TopLogprobs)),
    ("max_tokens", Unsupported::Limit(LimitField::MaxTokens)),
    ("max_completion_tokens", Unsupported::Limit(LimitField::MaxCompletionTokens)),
    ("parallel_tool_calls", Unsupported::Parameter(Parameter::ParallelToolCalls)),
    ("tool_choice", Unsupported::Parameter(Parameter::ToolChoice)),
    ("reasoning_effort", Unsupported::Parameter(Parameter::ReasoningEffort)),
    ("verbosity", Unsupported::Parameter(Parameter::Verbosity)),
    ("service_tier", Unsupported::Parameter(Parameter::ServiceTier)),
    ("metadata", Unsupported::Parameter(Parameter::Metadata)),
    ("safety_identifier", Unsupported::Parameter(Parameter::SafetyIdentifier)),
    ("prompt_cache_key", Unsupported::Parameter(Parameter::PromptCacheKey)),
    ("user", Unsupported::Parameter(Parameter::User)),
    ("stop", Unsupported::Parameter(Parameter::Stop)),
    ("stream_options", Unsupported::StreamOptions),
    ("response_format", Unsupported::ResponseFormat),
    ("response_format", Unsupported::JsonObject),
    (CACHE_MARK, Unsupported::CacheMarks),
    ("output_config", Unsupported::OutputConfig),
    ("block_binding", Unsupported::Binding),
    (EAGER_INPUT, Unsupported::EagerInput),
    (STRICT, Unsupported::Strict),
];

/// Members of a tool.
const EAGER_INPUT: &str = "eager_input_streaming";
const STRICT: &str = "strict";

/// How servers write where that is: below the kind of the tool.
const STRICT_PATHS: [&str; 2] = ["custom.strict", "function.strict"];

/// The member of a part that is a mark, and what we mark with.
const CACHE_MARK: &str = "cache_control";
const MARKS: [&str; 2] = [r#"{"type":"ephemeral"}"#, r#"{"type":"ephemeral","ttl":"1h"}"#];

const OUTPUT_FORMAT: &str = "output_config.format";

impl Unsupported {
    /// Its name in the chat request.
    pub fn member(self) -> &'static str {
        match self {
            Self::Thoughts => return "reasoning",
            Self::Output(_) | Self::Room(_) => return LimitField::MaxTokens.name(),
            Self::Thinking(_) => return "thinking",
            Self::Betas => return "betas",
            Self::OutputFormat => return OUTPUT_FORMAT,
            Self::Display => return "display",
            Self::Schemas => return "schemas",
            Self::LateSystem => return "late_system",
            Self::Files => return "files",
            _ => {}
        }
        MEMBERS.iter().find(|(_, unsupported)| *unsupported == self).map_or("", |(name, _)| name)
    }

    /// How an answer spells it of which a client cannot have said so, in one of these ways.
    pub(super) fn spelled(self) -> Vec<&'static str> {
        match self {
            Self::Thinking(Some(ThinkingType::Adaptive)) => vec!["thinking.type.adaptive"],
            Self::Thinking(Some(ThinkingType::Enabled)) => vec!["thinking.type.enabled"],
            Self::Thinking(Some(ThinkingType::Disabled)) => vec!["thinking.type.disabled"],
            Self::Strict => STRICT_PATHS.to_vec(),
            Self::Display => vec![".display"],
            _ => vec![self.member()],
        }
    }

    /// Everything that a rule may name. Of the limit it cannot say which of its names is meant, which helps nobody.
    pub fn nameable() -> impl Iterator<Item = Self> {
        let parameters = Parameter::ALL.iter().copied().filter(|parameter| *parameter != Parameter::MaxOutputTokens);
        let of_schemas = [Self::Strict, Self::OutputFormat, Self::Schemas];
        let added = [Self::Thinking(None), Self::Betas, Self::Binding, Self::EagerInput].into_iter().chain(of_schemas);
        parameters.map(Self::Parameter).chain(added).chain([Self::LateSystem, Self::Files])
    }

    /// What of it this chat request has: only then is there something to do without.
    pub fn within(self, body: &[u8]) -> Option<Self> {
        let request = str::from_utf8(body).ok().and_then(|text| Raw::parse(text).ok())?;
        let is_more = |most: u64| {
            let asked = |name: &LimitField| request.get(name.name())?.as_str().parse::<u64>().ok();
            LimitField::ALL.iter().filter_map(asked).any(|asked| asked > most)
        };
        match self {
            Self::Thoughts => return has_thoughts(request).then_some(self),
            Self::CacheMarks => return has_marks(request).then_some(self),
            Self::Output(most) | Self::Room(most) => return is_more(most).then_some(self),
            Self::Thinking(kind) => {
                return thinking(request)
                    .filter(|asked| kind.is_none_or(|kind| kind == *asked))
                    .map(Some)
                    .map(Self::Thinking);
            }
            Self::OutputConfig => {
                let of = |name: &str| request.get(self.member())?.get(name);
                let effort = of("effort").map(|_| Self::Parameter(Parameter::ReasoningEffort));
                return effort.or_else(|| of("format").map(|_| Self::OutputFormat));
            }
            Self::OutputFormat => return request.get("output_config")?.get("format").map(|_| self),
            Self::Binding | Self::Display => return request.get("thinking")?.get(self.member()).map(|_| self),
            // They are in no body.
            Self::Betas => return Some(self),
            Self::LateSystem => return has_late_system(request).then_some(self),
            Self::Files => return has_files(request).then_some(self),
            Self::EagerInput | Self::Strict => return has_on_a_tool(request, self.member()).then_some(self),
            Self::Schemas if has_strict_tools(request) => return Some(Self::Strict),
            Self::Schemas if !asks_for_schema(request) => return None,
            Self::Schemas => {
                return Self::OutputFormat.within(body).or_else(|| Self::ResponseFormat.within(body));
            }
            _ => {}
        }
        let value = self.value(request).filter(|value| !value.is_null())?;
        let is_object = || value.get("type").and_then(Raw::text).is_some_and(|name| name.is("json_object"));
        match self {
            Self::ResponseFormat if is_object() => Some(Self::JsonObject),
            Self::JsonObject => is_object().then_some(self),
            _ => Some(self),
        }
    }

    /// What the request says of it. An effort has several places: the second is the Responses API's, and the third the
    /// Messages API's.
    fn value(self, request: Raw<'_>) -> Option<Raw<'_>> {
        let deep = |outer: &str| request.get(outer)?.get("effort");
        match self {
            Self::Parameter(Parameter::ReasoningEffort) => {
                request.get(self.member()).or_else(|| deep("reasoning")).or_else(|| deep("output_config"))
            }
            _ => request.get(self.member()),
        }
    }

    /// Whether this chat request has it.
    pub fn is_in(self, body: &[u8]) -> bool {
        self.within(body).is_some()
    }
}

/// The dialect without what turned out to be unsupported, in the order in which that was learned.
#[must_use]
pub fn adapted(dialect: &Dialect, learned: &[Unsupported]) -> Dialect {
    let mut dialect = dialect.clone();
    for (at, unsupported) in learned.iter().enumerate() {
        match *unsupported {
            Unsupported::Parameter(parameter) => dialect.drop.push(parameter),
            Unsupported::Limit(name) => {
                // Neither name will do: no limit.
                if learned[..at].iter().any(|before| matches!(before, Unsupported::Limit(other) if *other != name)) {
                    dialect.drop.push(Parameter::MaxOutputTokens);
                }
                dialect.limit_field = match name {
                    LimitField::MaxTokens => LimitField::MaxCompletionTokens,
                    LimitField::MaxCompletionTokens => LimitField::MaxTokens,
                };
            }
            Unsupported::StreamOptions => dialect.stream_usage = StreamUsage::Omit,
            Unsupported::ResponseFormat | Unsupported::OutputFormat => {
                if dialect.json_schema == JsonSchema::Native {
                    dialect.json_schema = JsonSchema::JsonObject;
                }
            }
            Unsupported::JsonObject => dialect.no_json_object = true,
            Unsupported::Thoughts => dialect.request.reasoning.replay = Replay::Never,
            Unsupported::CacheMarks => {
                dialect.request.messages.cache_marks = CacheMarks::None;
                dialect.request.blocks.cache = BlockCache::Off;
            }
            Unsupported::Output(most) => {
                dialect.max_output = Some(dialect.max_output.map_or(most, |known| known.min(most)));
            }
            Unsupported::Strict => dialect.request.tools.schema.push(SchemaRule::NoStrict),
            Unsupported::LateSystem => dialect.request.messages.late_system = LateSystem::User,
            Unsupported::Files => dialect.request.content.files = false,
            Unsupported::Room(_)
            | Unsupported::Schemas
            | Unsupported::Thinking(_)
            | Unsupported::OutputConfig
            | Unsupported::Binding
            | Unsupported::Betas
            | Unsupported::Display
            | Unsupported::EagerInput => with_fewer_additions(&mut dialect.request.blocks, *unsupported),
        }
    }
    dialect
}

/// What is said of our own accord to a provider that speaks the Messages API.
fn with_fewer_additions(rules: &mut BlockRules, unsupported: Unsupported) {
    match unsupported {
        Unsupported::Room(most) => rules.default_limit = rules.default_limit.min(most),
        Unsupported::Thinking(kind) => rules.refused.extend(kind),
        Unsupported::Binding => rules.binding_beta.clear(),
        Unsupported::Betas => {
            rules.betas.clear();
            rules.binding_beta.clear();
        }
        Unsupported::Display => rules.display = ThoughtDisplay::Unsaid,
        Unsupported::EagerInput => rules.eager_input = false,
        _ => {}
    }
}

/// The kind of thinking that this request asks for.
fn thinking(request: Raw<'_>) -> Option<ThinkingType> {
    let kind = request.get("thinking")?.get("type")?.text()?;
    ThinkingType::ALL.iter().copied().find(|known| kind.is(known.name()))
}

/// Whether some tool of this request is to have its schema kept to.
fn has_strict_tools(request: Raw<'_>) -> bool {
    let tools = request.get("tools").into_iter().flat_map(Raw::elements);
    let is_strict = |tool: Raw<'_>| tool.get(STRICT).is_some_and(|value| value.as_str() == "true");
    tools.into_iter().any(|tool| is_strict(tool) || tool.get("function").is_some_and(is_strict))
}

/// Whether the answer is to be in a schema, in the place of either API.
fn asks_for_schema(request: Raw<'_>) -> bool {
    let format = request.get("output_config").and_then(|config| config.get("format"));
    let kind = format.or_else(|| request.get("response_format")).and_then(|format| format.get("type"));
    kind.and_then(Raw::text).is_some_and(|kind| kind.is("json_schema"))
}

/// Whether the system speaks after somebody else has.
fn has_late_system(request: Raw<'_>) -> bool {
    let is_system = |message: Raw<'_>| message.get("role").and_then(Raw::text).is_some_and(|role| role.is("system"));
    listed(request.get("messages")).skip_while(|message| is_system(*message)).any(is_system)
}

/// Whether a message has a file as a part; those of a result are a level deeper in the Messages API.
fn has_files(request: Raw<'_>) -> bool {
    let is = |part: Raw<'_>| {
        let kind = part.get("type").and_then(Raw::text);
        kind.is_some_and(|kind| kind.is("file") || kind.is("document"))
    };
    let mut parts = listed(request.get("messages")).flat_map(|message| listed(message.get("content")));
    parts.any(|part| is(part) || listed(part.get("content")).any(is))
}

/// Whether some tool of this request has this member.
fn has_on_a_tool(request: Raw<'_>, member: &str) -> bool {
    let tools = request.get("tools").into_iter().flat_map(Raw::elements);
    let has = |tool: Raw<'_>| tool.get(member).is_some_and(|value| !value.is_null());
    tools.into_iter().any(|tool| has(tool) || tool.get("function").is_some_and(has))
}

/// Whether something of this request is marked: a part of a message, of what comes before them, or all of it at once.
fn has_marks(request: Raw<'_>) -> bool {
    let has = |value: Option<Raw<'_>>| listed(value).any(|part| part.get(CACHE_MARK).is_some());
    request.get(CACHE_MARK).is_some_and(|mark| MARKS.contains(&mark.as_str()))
        || has(request.get("system"))
        || has(request.get("tools"))
        || listed(request.get("messages")).any(|message| has(message.get("content")))
}

/// What is in it, if it is a list.
fn listed(value: Option<Raw<'_>>) -> impl Iterator<Item = Raw<'_>> {
    value.filter(|value| value.kind() == Kind::Array).into_iter().flat_map(Raw::elements)
}

/// Whether this member, below the body, is one that we add.
pub(super) fn is_ours(name: Text<'_>, value: Raw<'_>) -> bool {
    match value.as_str() {
        "true" => name.is(EAGER_INPUT) || name.is(STRICT),
        value => name.is(CACHE_MARK) && MARKS.contains(&value),
    }
}

impl ErrorBody {
    /// What this refusal is about, if it says that something is not supported and names it.
    pub(super) fn unsupported(&self, dialect: &AnswerDialect, status: u16) -> Option<Refusal> {
        if let Some(member) = &self.unknown_member {
            return named(member).map(|unsupported| Refusal { unsupported, proof: Proof::Fields });
        }
        if self.fits(dialect, status, ErrorMeaning::Thoughts) {
            return Some(Refusal { unsupported: Unsupported::Thoughts, proof: Proof::Hearsay });
        }
        if self.fits(dialect, status, ErrorMeaning::OutputLimit)
            && let Some(refusal) = room::allowed(self.lower())
        {
            return Some(refusal);
        }
        let coded = api::is_unsupported(|code| self.has_code(code));
        let of_value = self.fits(dialect, status, ErrorMeaning::UnsupportedValue);
        if !coded && !of_value && !self.fits(dialect, status, ErrorMeaning::Unsupported) {
            return None;
        }
        let (unsupported, proof) = match &self.param {
            Some(param) => (named(top(param))?, if coded { Proof::Fields } else { Proof::Words }),
            // A list repeats what it was sent.
            None => (mentioned(self.lower())?, if self.is_list { Proof::Hearsay } else { Proof::Words }),
        };
        let of_value = of_value || api::is_unsupported_value(|code| self.has_code(code));
        let proof = if self.is_about_one_value(unsupported, of_value) { Proof::Hearsay } else { proof };
        Some(Refusal { unsupported, proof })
    }

    /// The same, where the error never names it and a rule of the dialect does. Also what the rule knew it by.
    pub(super) fn unsupported_by_rule<'a>(
        &self,
        dialect: &'a AnswerDialect,
        status: u16,
    ) -> Option<(Refusal, &'a str)> {
        let (rule, unsupported, words) = self.parameter_by(dialect, status)?;
        let proof = match rule.means {
            ErrorMeaning::UnsupportedValue if self.is_about_one_value(unsupported, true) => Proof::Hearsay,
            _ if words.is_empty() => Proof::Fields,
            _ => Proof::Words,
        };
        Some((Refusal { unsupported, proof }, words))
    }

    /// Whether others, who ask for other values, may well be served.
    fn is_about_one_value(&self, unsupported: Unsupported, of_value: bool) -> bool {
        use Parameter as P;
        match unsupported {
            // Models that take one number only take no other; and the kinds of thinking are told apart.
            Unsupported::Parameter(P::Temperature | P::TopP | P::PresencePenalty | P::FrequencyPenalty)
            | Unsupported::Thinking(_) => false,
            // A client's own schema may be what is wrong.
            Unsupported::ResponseFormat | Unsupported::OutputFormat => {
                self.lower().replace("json_schema", "").contains("schema")
            }
            _ => of_value,
        }
    }
}

/// Whether messages have blocks in which the model thought.
fn has_thoughts(request: Raw<'_>) -> bool {
    let is_thought = |block: Raw<'_>| {
        block.get("type").is_some_and(|kind| matches!(kind.as_str(), "\"thinking\"" | "\"redacted_thinking\""))
    };
    let messages = request.get("messages").into_iter().flat_map(Raw::elements);
    messages.filter_map(|message| message.get("content")).flat_map(Raw::elements).any(is_thought)
}

/// A member by its path: what lies deeper has names that a client chose.
fn top(param: &str) -> &str {
    let param = param.strip_prefix("$.").or_else(|| param.strip_prefix("body.")).unwrap_or(param);
    param.strip_prefix('/').unwrap_or(param)
}

fn named(name: &str) -> Option<Unsupported> {
    MEMBERS.iter().find(|(member, _)| *member == name).map(|(_, unsupported)| *unsupported)
}

/// The first member that a message names. Words of everyday language count only in quotes.
fn mentioned(message: &str) -> Option<Unsupported> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut at = 0;
    for word in message.split(|c| !is_word(c)) {
        let start = at;
        at += word.len() + 1;
        // One separator was one character, perhaps of several bytes.
        while at < message.len() && !message.is_char_boundary(at) {
            at += 1;
        }
        let (before, after) = (&message[..start], &message[start + word.len()..]);
        let through = &message[..start + word.len()];
        let quoted = before.ends_with(['\'', '"', '`']) || STRICT_PATHS.into_iter().any(|path| through.ends_with(path));
        let plain = matches!(word, "user" | "stop" | "metadata" | STRICT);
        let deeper = match word {
            "thinking" => thinking_in(after),
            "output_config" if after.starts_with(".format") => Some(Unsupported::OutputFormat),
            _ => None,
        };
        if deeper.is_some() {
            return deeper;
        }
        if let Some(unsupported) = named(word).or_else(|| run_together(word)).filter(|_| quoted || !plain) {
            return Some(unsupported);
        }
    }
    None
}

/// What follows `thinking` in a message: `.type.enabled`, `.adaptive.display`, or a colon, if it is about all of it.
fn thinking_in(after: &str) -> Option<Unsupported> {
    if after.starts_with(':') {
        return Some(Unsupported::Thinking(None));
    }
    let kind_of = |text: &str| ThinkingType::ALL.iter().copied().find(|known| text.starts_with(known.name()));
    if let Some(kind) = after.strip_prefix(".type.").and_then(kind_of) {
        return Some(Unsupported::Thinking(Some(kind)));
    }
    let path = after.split([':', ' ']).next().unwrap_or_default();
    path.ends_with(".display").then_some(Unsupported::Display)
}

/// `presencepenalty`, of `presencePenalty`.
fn run_together(word: &str) -> Option<Unsupported> {
    let same = |member: &str| member.contains('_') && member.len() > word.len() && member.replace('_', "") == word;
    MEMBERS.iter().find(|(member, _)| same(member)).map(|(_, unsupported)| *unsupported)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{MessageRules, RequestRules};

    #[test]
    fn thoughts_are_left_out_of_the_request_that_lost_them() {
        use crate::dialect::ErrorRule;
        let words = vec!["`signature` in `thinking` block".to_owned()];
        let rule = ErrorRule { words, ..ErrorRule::new(ErrorMeaning::Thoughts) };
        let dialect = AnswerDialect { errors: [rule].into_iter().collect(), ..AnswerDialect::default() };
        let body = br#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid `signature` in `thinking` block"}}"#;
        let refusal = ErrorBody::read(body).unsupported(&dialect, 400);
        assert_eq!(refusal, Some(Refusal { unsupported: Unsupported::Thoughts, proof: Proof::Hearsay }));
        let mut replaying = Dialect::default();
        replaying.request.reasoning.replay = Replay::Always;
        assert_eq!(adapted(&replaying, &[Unsupported::Thoughts]).request.reasoning.replay, Replay::Never);
        let with = |kind: &str| format!(r#"{{"messages":[{{"role":"assistant","content":[{{"type":"{kind}"}}]}}]}}"#);
        assert!(Unsupported::Thoughts.is_in(with("redacted_thinking").as_bytes()));
        assert!(!Unsupported::Thoughts.is_in(with("text").as_bytes()));
    }

    #[test]
    fn a_dialect_does_without_what_was_learned() {
        let dialect = Dialect::default();
        let limit = [Unsupported::Limit(LimitField::MaxTokens), Unsupported::Limit(LimitField::MaxCompletionTokens)];
        assert_eq!(adapted(&dialect, &limit[..1]).limit_field, LimitField::MaxCompletionTokens);
        assert!(!adapted(&dialect, &limit[..1]).drops(Parameter::MaxOutputTokens));
        assert!(adapted(&dialect, &limit).drops(Parameter::MaxOutputTokens));
        let format = adapted(&dialect, &[Unsupported::ResponseFormat; 2]);
        assert_eq!((format.json_schema, format.no_json_object), (JsonSchema::JsonObject, false));
        let object = adapted(&dialect, &[Unsupported::JsonObject]);
        assert_eq!((object.json_schema, object.no_json_object), (JsonSchema::Native, true));
        let format = |kind: &str| format!(r#"{{"response_format":{{"type":"{kind}"}}}}"#);
        let within = |kind: &str| Unsupported::ResponseFormat.within(format(kind).as_bytes());
        assert_eq!(within("json_object"), Some(Unsupported::JsonObject));
        assert_eq!(within("json_schema"), Some(Unsupported::ResponseFormat));
        assert_eq!(adapted(&dialect, &[Unsupported::StreamOptions]).stream_usage, StreamUsage::Omit);
        let marks = named("cache_control").unwrap();
        let marking = MessageRules { cache_marks: CacheMarks::All, ..MessageRules::default() };
        let request = RequestRules { messages: marking, ..RequestRules::default() };
        let marking = Dialect { request, ..Dialect::default() };
        assert_eq!(adapted(&marking, &[marks]), dialect);
        let part = r#"{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}"#;
        assert!(marks.is_in(format!(r#"{{"messages":[{{"content":"x"}},{{"content":[{part}]}}]}}"#).as_bytes()));
        assert!(!marks.is_in(br#"{"cache_control":{},"messages":[{"content":null},{"content":[{"type":"text"}]}]}"#));
        let temperature = named("temperature").unwrap();
        assert!(adapted(&dialect, &[temperature]).drops(Parameter::Temperature));
        assert!(temperature.is_in(br#"{"model":"m","temperature":0.2}"#));
        assert!(!temperature.is_in(br#"{"model":"m","messages":[{"temperature":1}]}"#));
        let effort = named("reasoning_effort").unwrap();
        for said in
            [r#""reasoning_effort":"low""#, r#""reasoning":{"effort":"low"}"#, r#""output_config":{"effort":"low"}"#]
        {
            assert!(effort.is_in(format!("{{{said}}}").as_bytes()), "{said}");
        }
        assert!(!effort.is_in(br#"{"reasoning":{"enabled":true},"output_config":{"format":{}}}"#));
    }
}
