//! The request to a provider that speaks the Messages API. What each thing becomes is decided where it is decided for
//! chat: tools, formats, reasoning, items. Here the outcome is put into that API's form.
//!
//! What comes before a message depends on what is before it in the conversation, and on nothing else: such a provider
//! may refuse what it has thought itself when anything before it has changed.

mod fit;
mod format;
mod lower;
mod marks;
mod media;
mod options;
mod promises;
mod thinking;

use wire::chat::{self, Declared, ResponseFormat};
use wire::json::Invalid;
use wire::messages::{CacheMark, Function, Request, Role, Tool};
use wire::responses::{CreateResponse, InputItem};

use super::item_path::Items;
use super::notes::{Notes, code};
use super::remaining_params::{self, Retention};
use super::{Decided, Link, Plan, PlanTarget, capacity, check, compaction, transcript, wants_summary};
use crate::context::{AnswerContext, AnswerWire};
use crate::dialect::{BlockCache, BlockRules, Replay};
use crate::seal::PromptEnd;
use lower::Conversation;
use promises::Promises;

/// Plans one turn of such a provider. `past` is the history that the session holds, oldest first.
pub fn plan_messages(
    request: &CreateResponse<'_>,
    past: &[InputItem<'_>],
    target: PlanTarget<'_>,
) -> Result<Plan, Invalid> {
    build(request, past, target, Notes::new(target.policy.strict)).map(|(plan, _)| plan)
}

/// The same plan, with what became of each part of the request.
pub fn plan_messages_linked(
    request: &CreateResponse<'_>,
    past: &[InputItem<'_>],
    target: PlanTarget<'_>,
) -> Result<(Plan, Vec<Link>), Invalid> {
    build(request, past, target, Notes::linking(target.policy.strict))
}

fn build(
    request: &CreateResponse<'_>,
    past: &[InputItem<'_>],
    target: PlanTarget<'_>,
    mut notes: Notes,
) -> Result<(Plan, Vec<Link>), Invalid> {
    check::ranges(request)?;
    let fitted = fit::dialect(target.dialect, request);
    let target = PlanTarget { dialect: &fitted, ..target };
    let dialect = target.dialect;
    let rules = &dialect.request.blocks;
    let opened = compaction::open(request, past, target.seal);
    let unfolded = compaction::unfold(&opened);
    let items = Items::of(request, past, &unfolded);
    let Decided { mut tools, format, contract, mut messages, reasoning } =
        Decided::plan(request, &items, target, &mut notes)?;
    let demand = tools.demand.take().filter(|_| !target.hosting.resumes);
    if let Some(words) = &demand {
        transcript::demand(words, &mut messages, &mut notes);
    }
    let Conversation { system, messages } =
        lower::lower(messages, &dialect.request.messages, target.hosting.resumes, &mut notes);
    // Who goes on by itself begins nothing.
    let goes_on = messages.last().is_some_and(|last| last.role == Role::Assistant);
    let after_assistant = !goes_on && transcript::ends_with_assistant(request, &items);
    let without_thoughts = dialect.request.reasoning.replay == Replay::Never && items.have_thoughts();
    let after_calls = if after_assistant { transcript::calls_at_end(&items) } else { 0 };
    let after_summary = items.summaries.last().map(|(_, summary)| *summary);
    let mut body = Request {
        model: (!rules.model_in_path).then_some(target.model),
        // A connection on which nothing comes for long is cut by proxies.
        stream: true,
        mark: CacheMark { for_an_hour: rules.cache_hour && wants_retention(request) },
        marks_itself: rules.cache == BlockCache::Automatic,
        system,
        messages,
        ..Request::default()
    };
    options::plan(request, target, &mut body, &mut notes);
    thinking::plan(reasoning, wants_summary(request), dialect, &mut body, &mut notes);
    let mut promises = Promises::default();
    if let Some(ResponseFormat::JsonSchema { schema: chat::Json::Wire(schema), .. }) = format {
        promises.have_room_for(schema);
        body.output_config.push(format::of(schema));
    }
    let retention = if rules.cache_hour { Retention::Told } else { Retention::Unknown };
    remaining_params::plan(request, target.hosting, retention, &mut notes)?;
    let context = AnswerContext {
        wire: AnswerWire::Messages,
        tools: tools.offered(),
        reasoning_summary: wants_summary(request),
        logprobs: false,
        output: contract,
        grammars: tools.grammars(),
        renamed: tools.renamed(),
        prompt_end: PromptEnd { after_assistant, after_calls, without_thoughts, demand, after_summary },
    };
    body.tool_choice = tools.choice.take();
    body.one_call = tools.parallel == Some(false);
    tools.place(&mut notes);
    body.tools = declared(tools.into_declared(), promises, rules, &mut notes);
    if rules.cache == BlockCache::Marks {
        marks::place(&mut body);
    }
    let body = body.write(capacity(request, past));
    let (notes, links) = notes.finish_linked(request, past, &unfolded)?;
    Ok((Plan { body, context, notes }, links))
}

/// Whether the client wants its prompts to be kept for longer than usual.
fn wants_retention(request: &CreateResponse<'_>) -> bool {
    request.prompt_cache_retention.is_some_and(|retention| retention.is("24h"))
}

/// The tools in that API's form, in the order in which they came first: what is added later is at the end.
fn declared<'a>(
    tools: Vec<Declared<'a>>,
    mut promises: Promises,
    rules: &BlockRules,
    notes: &mut Notes,
) -> Vec<Tool<'a>> {
    let tool = |declared| match declared {
        Declared::Function(chat::Function { name, description, parameters, strict: asked }) => {
            let is_strict = asked == Some(true) && promises.of_tool(&parameters);
            if asked == Some(true) && !is_strict {
                notes.lowered(
                    code::PARAM_DEGRADED,
                    "tools.strict",
                    "this provider does not promise to keep to the schema",
                );
            }
            let description = description.into_iter().filter(|text| !text.is_blank()).collect();
            let streams_input = rules.eager_input;
            Tool::Function(Function { name, description, input_schema: parameters, is_strict, streams_input })
        }
        // There are none: the dialect was made to fit.
        Declared::Custom(chat::Custom { name, description, .. }) => Tool::Function(Function {
            name,
            description,
            input_schema: chat::Json::Ours(br#"{"type":"object","properties":{"input":{"type":"string"}}}"#.to_vec()),
            is_strict: false,
            streams_input: rules.eager_input,
        }),
        Declared::Native(json) => Tool::Native(json),
    };
    tools.into_iter().map(tool).collect()
}
