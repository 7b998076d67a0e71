//! The request to a provider that speaks the Responses API itself: the client's own, with the model's name there,
//! and everything that godex answers for taken out of it. State is ours: what came before goes as items, and
//! nothing is stored there.

mod hosted;
mod items;

use wire::chat::Str;
use wire::json::{Invalid, ObjectWriter, Raw, Text, write_text};
use wire::responses::{CreateResponse, InputItem};

use super::hosted::Approvals;
use super::item_path::Items;
use super::notes::{Notes, code};
use super::options::LOGPROBS;
use super::output::Output;
use super::{Link, Plan, PlanTarget, capacity, check, compaction, reasoning, wants_summary};
use crate::context::{AnswerContext, AnswerWire, NativeContext};
use crate::dialect::{Dialect, Effort, EffortField, Parameter};
use crate::seal::PromptEnd;
use hosted::{HostedTools, Member};

const ENCRYPTED: &str = "reasoning.encrypted_content";

/// The least `max_output_tokens` of that API.
const LEAST_LIMIT: i64 = 16;

/// Written by us, or nobody's business there: who answers, what came before, how it is delivered and kept.
const OURS: &[&str] = &[
    "model",
    "input",
    "include",
    "stream",
    "stream_options",
    "store",
    "background",
    "previous_response_id",
    "conversation",
    "context_management",
    "metadata",
    "client_metadata",
];

/// The parameters that a spec may drop, and whether the answer is the same without.
const DROPPABLE: &[(Parameter, bool)] = &[
    (Parameter::Temperature, false),
    (Parameter::TopP, false),
    (Parameter::PresencePenalty, false),
    (Parameter::FrequencyPenalty, false),
    (Parameter::TopLogprobs, false),
    (Parameter::MaxOutputTokens, false),
    (Parameter::ParallelToolCalls, false),
    (Parameter::ToolChoice, false),
    (Parameter::Verbosity, false),
    (Parameter::ServiceTier, true),
    (Parameter::SafetyIdentifier, true),
    (Parameter::PromptCacheKey, true),
    (Parameter::User, true),
];

/// Plans one turn of such a provider. `document` is what `request` was read from; `past` is the history that the
/// session holds, oldest first.
pub fn forward(
    request: &CreateResponse<'_>,
    document: Raw<'_>,
    past: &[InputItem<'_>],
    target: PlanTarget<'_>,
) -> Result<Plan, Invalid> {
    build(request, document, past, target, Notes::new(target.policy.strict)).map(|(plan, _)| plan)
}

/// The same plan, with what became of each part of the request.
pub fn forward_linked(
    request: &CreateResponse<'_>,
    document: Raw<'_>,
    past: &[InputItem<'_>],
    target: PlanTarget<'_>,
) -> Result<(Plan, Vec<Link>), Invalid> {
    build(request, document, past, target, Notes::linking(target.policy.strict))
}

fn build(
    request: &CreateResponse<'_>,
    document: Raw<'_>,
    past: &[InputItem<'_>],
    target: PlanTarget<'_>,
    mut notes: Notes,
) -> Result<(Plan, Vec<Link>), Invalid> {
    check::ranges(request)?;
    let dialect = target.dialect;
    let rules = &dialect.request.native;
    // A schema goes as it is: only its name and its form are ours to check.
    let contract = Output::plan(request, &Dialect::default(), false, &mut notes)?.contract;
    let opened = compaction::open(request, past, target.seal);
    let unfolded = compaction::unfold(&opened);
    let all = Items::of(request, past, &unfolded);
    let hosted = HostedTools::of(request, &all, target, &mut notes)?;
    hosted.place(request, &mut notes);
    let limit = request.max_output_tokens.map(|limit| target.hosting.left_of(limit, LEAST_LIMIT));
    let mut body = Vec::with_capacity(capacity(request, past));
    let mut object = ObjectWriter::new(&mut body);
    object.text("model", target.model);
    let ours = Ours {
        hosted: &hosted,
        limit: limit.filter(|_| target.hosting.answered_tokens > 0),
        cache_key: target.cache_key,
    };
    parameters(request, document, dialect, ours, &mut object, &mut notes);
    let searches = !hosted.catalog.of_search().is_empty();
    include(request, rules.encrypted, searches, object.key("include"));
    object.bool("store", false).bool("stream", request.stream.unwrap_or(false));
    let context = items::Context { unfolded: &unfolded, hosted: &hosted, approvals: Approvals::of(&all), all: &all };
    items::write(request, past, target, context, object.key("input"), &mut notes);
    object.end();
    let limit = limit.and_then(|limit| u64::try_from(limit).ok());
    let silent_limit = limit.filter(|_| rules.silent_limit);
    let context = AnswerContext {
        wire: AnswerWire::Responses(NativeContext { item_ids: rules.item_ids, silent_limit }),
        tools: hosted.offered,
        reasoning_summary: wants_summary(request),
        logprobs: wants_logprobs(request),
        output: contract,
        grammars: Vec::new(),
        renamed: Vec::new(),
        prompt_end: PromptEnd::default(),
    };
    let (notes, links) = notes.finish_linked(request, past, &unfolded)?;
    Ok((Plan { body, context, notes }, links))
}

fn wants_logprobs(request: &CreateResponse<'_>) -> bool {
    let included = request.include.iter().flatten().any(|value| value.is(LOGPROBS));
    included || request.top_logprobs.is_some_and(|count| count > 0)
}

/// What is written otherwise than it was asked for: because of the tools that godex runs, or of who asks.
#[derive(Clone, Copy)]
struct Ours<'h, 'a> {
    hosted: &'h HostedTools<'a>,
    limit: Option<i64>,
    cache_key: Option<&'h str>,
}

impl Ours<'_, '_> {
    /// Whether the member is written, or left out, here.
    fn write(self, name: &str, object: &mut ObjectWriter<'_>) -> bool {
        let member = match (name, self.limit) {
            ("tools", _) => &self.hosted.tools,
            ("tool_choice", _) => &self.hosted.choice,
            ("max_output_tokens", Some(limit)) => {
                object.int(name, limit);
                return true;
            }
            ("prompt_cache_key", _) => {
                self.cache_key.map(|key| object.text(name, key));
                return self.cache_key.is_some();
            }
            _ => return false,
        };
        if let Member::Json(json) = member {
            object.json(name, json);
        }
        *member != Member::AsAsked
    }
}

/// Everything that the request says and that is not ours, as it was written.
fn parameters(
    request: &CreateResponse<'_>,
    document: Raw<'_>,
    dialect: &Dialect,
    ours: Ours<'_, '_>,
    object: &mut ObjectWriter<'_>,
    notes: &mut Notes,
) {
    let members: Vec<(Text<'_>, Raw<'_>)> = document.fields().collect();
    for (at, (key, value)) in members.iter().enumerate() {
        let name = key.decode();
        // A name that is repeated means its last value, as everywhere; also if that takes it back.
        let repeated = || members[at + 1..].iter().any(|(later, _)| later.is(&name));
        if value.is_null() || OURS.contains(&&*name) || repeated() {
            continue;
        }
        if request.extra.iter().any(|(unknown, _)| unknown.is(&name)) {
            let name: String = name.chars().take(64).collect();
            notes.ignored(code::PARAM_UNKNOWN, name, "this parameter is not known");
            continue;
        }
        // Where there is one tier only, everybody gets the default.
        let usual = || value.text().is_some_and(|tier| tier.is("auto") || tier.is("default"));
        if name == Parameter::ServiceTier.name() && dialect.drops(Parameter::ServiceTier) && usual() {
            continue;
        }
        let dropped = DROPPABLE.iter().find(|(parameter, _)| parameter.name() == name && dialect.drops(*parameter));
        match (dropped, &*name) {
            (Some((_, true)), _) => notes.skipped(code::PARAM_IGNORED, name, "this provider does not take it"),
            (Some((_, false)), _) => notes.ignored(code::PARAM_IGNORED, name, "this provider does not take it"),
            (None, name) if ours.write(name, object) => {}
            (None, "reasoning") => match effort(request, dialect, notes) {
                Some(effort) => with_effort(&effort, *value, object),
                None => without(Parameter::ReasoningEffort, ("reasoning", "effort"), *value, dialect, object, notes),
            },
            (None, "text") => without(Parameter::Verbosity, ("text", "verbosity"), *value, dialect, object, notes),
            (None, _) => {
                object.raw(&name, *value);
            }
        }
    }
    // A choice that nobody asked for.
    if request.tool_choice.is_none() && !dialect.drops(Parameter::ToolChoice) {
        ours.write(Parameter::ToolChoice.name(), object);
    }
}

/// The effort that the model has in the place of the one that was asked for, where a spec says which ones it has.
fn effort<'a>(request: &CreateResponse<'a>, dialect: &'a Dialect, notes: &mut Notes) -> Option<Str<'a>> {
    let rules = &dialect.request.reasoning;
    let is_told = matches!(rules.effort, EffortField::Native | EffortField::Object) && !rules.ladder.is_empty();
    let asked = request.reasoning.as_ref()?.effort.filter(|_| is_told && !dialect.drops(Parameter::ReasoningEffort))?;
    // What nobody knows goes as it is.
    Effort::ALL.iter().find(|effort| asked.is(effort.name()))?;
    reasoning::effort(Some(asked.into()), &asked.decode(), dialect, notes).map(|(_, word)| word)
}

fn with_effort(effort: &Str<'_>, value: Raw<'_>, object: &mut ObjectWriter<'_>) {
    let mut inner = ObjectWriter::new(object.key("reasoning"));
    for (key, value) in value.fields() {
        if key.is("effort") {
            effort.write(inner.key("effort"));
        } else {
            inner.raw(&key.decode(), value);
        }
    }
    inner.end();
}

/// An object, without the one member of it that the provider may not take.
fn without(
    parameter: Parameter,
    (name, member): (&'static str, &'static str),
    value: Raw<'_>,
    dialect: &Dialect,
    object: &mut ObjectWriter<'_>,
    notes: &mut Notes,
) {
    if !dialect.drops(parameter) || value.get(member).is_none_or(Raw::is_null) {
        object.raw(name, value);
        return;
    }
    notes.ignored(code::PARAM_IGNORED, format!("{name}.{member}"), "this provider does not take it");
    let mut inner = ObjectWriter::new(object.key(name));
    for (key, value) in value.fields().filter(|(key, _)| !key.is(member)) {
        inner.raw(&key.decode(), value);
    }
    inner.end();
}

/// What the client wants to see, and the encrypted reasoning that we need; where there is none, it is not asked for.
fn include(request: &CreateResponse<'_>, encrypted: bool, searches: bool, out: &mut Vec<u8>) {
    // What godex searches is not there to be included.
    let is_ours = |value: &Text<'_>| value.is(ENCRYPTED) || searches && value.decode().starts_with("web_search_call.");
    let asked = request.include.iter().flatten().filter(|value| !is_ours(value));
    out.push(b'[');
    for (index, value) in asked.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(value.raw().as_str().as_bytes());
    }
    if encrypted {
        if out.last() != Some(&b'[') {
            out.push(b',');
        }
        write_text(out, ENCRYPTED);
    }
    out.push(b']');
}
