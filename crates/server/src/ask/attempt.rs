//! An attempt: one plan for one target, sent, until a target accepts. A later round of the same response is an attempt
//! like the first, with the same breaker, budget, deadline and dialect.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bridge::{
    AnswerWire, FileTexts, Hosting, ImageTexts, InputCheck, Link, Note, OutputContract, Plan, PlanTarget, Policy,
    Reader, Setup, Unsearched,
};
use bytes::Bytes;
use providers::Wire;
use store::Tenant;
use tokio::time::Instant;
use wire::json::Raw;
use wire::responses::{CreateResponse, InputItem};

use super::meter::Metered;
use crate::config::GrammarPolicy;
use crate::error::ApiError;
use crate::grammar::InputChecks;
use crate::hosted::Hosted;
use crate::output;
use crate::request::RequestContext;
use crate::seal::TenantSeal;
use crate::upstream::{Accepted, Deadlines, Failover, Refused, Step};

/// A request with everything that it continues.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'r, 'a> {
    pub(crate) request: &'r CreateResponse<'a>,
    /// What it was read from.
    pub(crate) document: Raw<'a>,
    pub(crate) past: &'r [InputItem<'a>],
    pub(crate) policy: Policy,
    /// The tools that godex runs for it, and how far its rounds are.
    pub(crate) hosted: (Option<&'r Hosted>, Hosting),
    /// Whether a call whose input does not fit may be asked for once more.
    pub(crate) asks_input_again: bool,
}

/// An upstream has accepted.
pub(crate) struct Attempt {
    pub(crate) reader: Metered,
    pub(crate) accepted: Accepted,
    pub(crate) deadlines: Deadlines,
    /// What is not done as asked.
    pub(crate) notes: Vec<Note>,
    /// Another upstream answer may have to follow this one.
    pub(crate) may_go_on: MayGoOn,
}

/// What may make another round necessary.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a reason of its own")]
pub(crate) struct MayGoOn {
    /// The text of the answer was promised to be JSON, and may not be.
    pub(crate) promised: bool,
    /// Tools were offered that godex runs.
    pub(crate) hosted: bool,
    /// A call of a custom tool has to fit a grammar, and may be asked for once more.
    pub(crate) input: bool,
    /// The upstream runs tools itself, and may pause while it does.
    pub(crate) pauses: bool,
}

/// Why there is no answer.
pub(crate) enum Unanswered {
    /// The request cannot be planned for anybody.
    Invalid(ApiError),
    /// Nobody took it. The notes are of the last plan.
    Refused(Refused, Vec<Note>),
}

/// Plans and sends, target by target.
pub(crate) async fn send(
    context: &RequestContext,
    failover: &mut Failover,
    asked: &Asked<'_, '_>,
) -> Result<Attempt, Unanswered> {
    loop {
        // Whatever the client asked for: an answer of this wire is a stream, and may be long.
        let stream = asked.request.stream.unwrap_or(false) || failover.wire() == Wire::Messages;
        let began = Instant::now();
        let planned = plan(context, failover, asked);
        context.account.planned(began.elapsed());
        let Planned { body, reader, mut notes, may_go_on, cache_key } = match planned {
            Ok(planned) => planned,
            Err(error) => match failover.unfit() {
                Ok(()) => continue,
                Err(Some(refused)) => return Err(Unanswered::Refused(*refused, Vec::new())),
                Err(None) => return Err(Unanswered::Invalid(error)),
            },
        };
        let mut reader = Metered::new(reader, context, failover);
        let step = failover.send(&body, cache_key.as_deref(), stream).await;
        reader.wasted(failover.wasted());
        match step {
            Step::Accepted(accepted) => {
                context.account.accepted(accepted.connecting);
                context.sent(failover, asked.request, &body);
                notes.extend(failover.notes());
                let deadlines = failover.deadlines(stream);
                let reader = reader.accepted(&accepted.redactor);
                return Ok(Attempt { reader, accepted: *accepted, deadlines, notes, may_go_on });
            }
            Step::Again => {}
            Step::Failed(refused) => return Err(Unanswered::Refused(refused, notes)),
        }
    }
}

/// Whether the request can be planned for any target: what is wrong with it is known before anybody is asked.
pub(crate) fn check(context: &RequestContext, failover: &mut Failover, asked: &Asked<'_, '_>) -> Result<(), ApiError> {
    preview(context, failover, asked).map(drop)
}

/// The plan for the first target that there is one for.
pub(crate) fn preview(
    context: &RequestContext,
    failover: &mut Failover,
    asked: &Asked<'_, '_>,
) -> Result<Planned, ApiError> {
    loop {
        match plan(context, failover, asked) {
            Err(error) if failover.unfit().is_err() => return Err(error),
            Err(_) => {}
            planned => return planned,
        }
    }
}

/// What would be sent to the target whose turn it is.
pub(crate) fn body(context: &RequestContext, failover: &Failover, asked: &Asked<'_, '_>) -> Result<Bytes, ApiError> {
    plan(context, failover, asked).map(|planned| planned.body)
}

/// A request planned for one target.
pub(crate) struct Planned {
    pub(crate) body: Bytes,
    reader: Box<Reader>,
    pub(crate) notes: Vec<Note>,
    may_go_on: MayGoOn,
    /// What the provider gets as the cache key.
    cache_key: Option<String>,
}

/// What a provider gets instead of the client's `prompt_cache_key`, which names a cache of one account for all tenants:
/// nobody is to find, or to crowd out, what another tenant has cached there. The tenant of those who have no key, and of
/// all that was there before, keeps its own words: so its caches stay as they are.
fn cache_key(tenant: &Tenant, seal: &TenantSeal, request: &CreateResponse<'_>) -> Option<String> {
    let asked = request.prompt_cache_key.filter(|_| *tenant != Tenant::default())?;
    let code = seal.mac("prompt cache key", &[asked.decode().as_bytes()]);
    Some(URL_SAFE_NO_PAD.encode(code))
}

/// What would be sent to the target whose turn it is, with what became of each part of the request.
pub(crate) fn explained(
    context: &RequestContext,
    failover: &Failover,
    asked: &Asked<'_, '_>,
) -> Result<(Plan, Vec<Link>), ApiError> {
    let Asked { request, document, past, .. } = asked;
    let seal = context.app.runtime.seal(&context.caller);
    let explained = for_target(context, failover, asked, &seal, |target| match failover.wire() {
        Wire::Responses => bridge::forward_linked(request, *document, past, target),
        Wire::Messages => bridge::plan_messages_linked(request, past, target),
        Wire::Chat | Wire::Demo => bridge::plan_linked(request, past, target),
    });
    Ok(explained?)
}

/// Plans with all that is known of the target whose turn it is.
fn for_target<T>(
    context: &RequestContext,
    failover: &Failover,
    asked: &Asked<'_, '_>,
    seal: &TenantSeal,
    plan: impl FnOnce(PlanTarget<'_>) -> T,
) -> T {
    let Asked { request, policy, hosted, .. } = asked;
    let (runtime, config) = (&context.app.runtime, &context.snapshot.config);
    let (model, dialect) = (failover.model(), failover.dialect());
    let hosting = Hosting {
        unsearched: match config.tools.web_search.unavailable.into() {
            Unsearched::ClientCall if !context.caller.profile().may_search => Unsearched::LeaveOut,
            unsearched => unsearched,
        },
        ..hosted.1
    };
    let seen = config.images.describe.as_ref().map(|by| runtime.descriptions.of(context.caller.tenant(), by));
    let images = seen.as_ref().map(|seen| seen as &dyn ImageTexts);
    let read = runtime.files.of(context.caller.tenant(), &config.files);
    let files = read.as_ref().map(|read| read as &dyn FileTexts);
    let cache_key = cache_key(context.caller.tenant(), seal, request);
    let cache_key = cache_key.as_deref();
    plan(PlanTarget { model, dialect: &dialect, policy: *policy, seal, images, files, cache_key, hosting })
}

fn plan(context: &RequestContext, failover: &Failover, asked: &Asked<'_, '_>) -> Result<Planned, ApiError> {
    let Asked { request, document, past, hosted, asks_input_again, .. } = asked;
    let (runtime, config) = (&context.app.runtime, &context.snapshot.config);
    let seal = runtime.seal(&context.caller);
    let plan = for_target(context, failover, asked, &seal, |target| match failover.wire() {
        Wire::Responses => bridge::forward(request, *document, past, target),
        Wire::Messages => bridge::plan_messages(request, past, target),
        Wire::Chat | Wire::Demo => bridge::plan(request, past, target),
    })?;
    let asked_key = request.prompt_cache_key.map(|key| key.decode().into_owned());
    let cache_key = cache_key(context.caller.tenant(), &seal, request).or(asked_key);
    let checks_inputs = !plan.context.grammars.is_empty() && config.tools.grammar != GrammarPolicy::Off;
    let asks_input_again = checks_inputs && *asks_input_again && config.tools.grammar == GrammarPolicy::Reask;
    let may_go_on = MayGoOn {
        input: asks_input_again,
        promised: plan.context.output != OutputContract::Text,
        hosted: plan.context.tools.iter().any(|tool| tool.kind.is_hosted()),
        pauses: plan.context.wire == AnswerWire::Messages && !failover.dialect().request.tools.native.is_empty(),
    };
    let setup = Setup {
        dialect: failover.answer(),
        seal: Arc::new(seal),
        check: output::check(&plan.context.output),
        checks: config.output.check,
        repair: config.output.repair,
        inputs: checks_inputs.then(|| Arc::new(InputChecks::new(&runtime.grammars)) as Arc<dyn InputCheck>),
        asks_input_again,
        sources: hosted.0.and_then(Hosted::sources),
        prompt_bytes: plan.body.len(),
    };
    let body = runtime.budget.hold(plan.body)?;
    let reader = Box::new(Reader::new(plan.context, setup));
    Ok(Planned { body, reader, notes: plan.notes, may_go_on, cache_key })
}
