//! The opening of a turn: who asks and the bytes of the request become the past, the record of what will be stored, the
//! response that will be written, and an upstream that has accepted. Until then everything that is wrong is an HTTP
//! error, and afterwards nothing is. A background turn is opened twice: when it is asked for, and when it is run.

use std::sync::Arc;

use bridge::{CompactionWish, Events, Failure, FailureClass, Needs, Note, Repair, ResponseWriter, Round};
use bytes::Bytes;
use providers::Wire;
use tokio::time::Instant;
use wire::id::{Id, IdKind, Ids};
use wire::json::{InvalidCode, Kept, Kind, ObjectWriter, Raw};
use wire::responses::CreateResponse;

use super::affinity;
use super::compacting::{self, Came, Why};
use super::files;
use super::rounds::Material;
use super::tools::{self, Prelude, input};
use super::truncating;
use super::{Next, Phase, Start, Started, Submission, Turn, Waiting};
use crate::account::{Body, Outcome};
use crate::ask::attempt::MayGoOn;
use crate::ask::{self, Answer, Attempt, Unanswered, Watch, attempt};
use crate::body;
use crate::clock;
use crate::compaction::{NotCompacted, Scope};
use crate::config::ModelError;
use crate::error::{ApiError, Code, clip};
use crate::hosted::{Hosted, allowed, approval};
use crate::idempotency::{Claimed, Held, Key, Known};
use crate::images;
use crate::jobs::Job;
use crate::limits::{Asks, Tokens};
use crate::request::RequestContext;
use crate::session::{BegunRecord, Context, Past, Record, Unstored};
use crate::trace::Asked;
use crate::upstream::{Failover, Refused};

impl Turn {
    /// Reads the request and what it continues, and asks, until an upstream accepts; or stores it, if it is to be run in
    /// the background.
    pub(crate) async fn start(context: RequestContext, bytes: Bytes, start: Start) -> Result<Started, ApiError> {
        let Start { past, remember, warm_up, job, key } = start;
        let Kept { raw: document, value: request } = read(&context, &bytes)?;
        ask_in(&context, &request, document)?;
        let wish = CompactionWish::of(&request)?;
        let (mut failover, model) = targets(&context, &request)?;
        keep_priced(&context, &mut failover)?;
        // Nobody asks again for a background response.
        if job.is_none() && request.background != Some(true) && context.caller.profile().retries_rate_limits {
            failover.leave_rate_limits();
        }
        let echo = bridge::echo(&request)?;
        let hosted = Hosted::of(&request, &failover, &context)?;
        let (id, mut ids, created_at) = match &job {
            Some(job) => job.identity()?,
            None => new_identity(&context),
        };
        let stream = request.stream.unwrap_or(false);
        let key = match key {
            Some(key) => match claim(&context, &key, &bytes, &request, &id).await? {
                Claimed::Ours(held) => Some(held),
                Claimed::Known(response_id) => return Ok(Started::Known(Known { response_id, stream })),
                Claimed::Running => return Err(ApiError::key_in_use()),
                Claimed::Different => return Err(ApiError::key_reused()),
            },
            None => None,
        };
        let tokens = || Tokens::of(&bytes, request.max_output_tokens);
        let begins = Begins { warm_up, is_job: job.is_some() };
        let mut past = match let_in(&context, &request, &failover, tokens, begins, past).await {
            Ok(past) => past,
            Err(error) => {
                release(None, key).await;
                return Err(error);
            }
        };
        let (mut record, unstored) = past.record(&request, &bytes, &mut ids, remember, key.as_ref());
        // One moment for the response and for the store: whoever goes on with the turn knows that one only.
        let created_at = match (&job, &record) {
            (None, Some(Record::New(record))) => record.created_at_seconds(),
            _ => created_at,
        };
        let mut response = ResponseWriter::with_id(id, ids, created_at, echo, request.store.unwrap_or(true))
            .in_forms(context.caller.profile().forms);
        context.account.opened(response.id(), &model);
        let background = request.background == Some(true);
        if let Some(job) = &job {
            response.resume(job.next_event);
            record = Some(Record::Begun(BegunRecord { session: context.session(), claim: job.claim.clone() }));
        } else if background && let Some(Record::New(record)) = record {
            let run = Box::pin(context.take_place(&failover, tokens, past.bytes())).await;
            if let Err(error) = check_plan(&context, request, document, &past, failover, hosted.as_deref()) {
                release(Some(Record::New(record)), key).await;
                return Err(error);
            }
            let secret = holds_secrets(document);
            let submission = Submission { context, run, bytes: bytes.clone(), record, response, stream, secret, key };
            return Ok(Started::Background(Box::new(submission)));
        }
        let notes = past.notes();
        let was_queued = job.is_some();
        let opened = Opened { context, response, stream, record, unstored, notes, key, was_queued };
        if warm_up {
            let watch = Watch::new(failover.deadlines(true), opened.context.snapshot.config.server.heartbeat);
            return Ok(Started::Turn(opened.begin(Phase::WarmUp, watch, None, None)));
        }
        if let Some(job) = &job {
            // Known to everybody before it is done: what was asked once is not asked again by somebody else.
            dispatch(&opened.context, job).await?;
        }
        let first = First { bytes: bytes.clone(), hosted, wish, prelude: None };
        Box::pin(opened.ask(first, request, document, past, failover)).await.map(Started::Turn)
    }
}

/// The request. Also of one that cannot be read no words are kept, if it says so.
fn read<'b>(context: &RequestContext, bytes: &'b Bytes) -> Result<Kept<'b, CreateResponse<'b>>, ApiError> {
    body::parse(bytes).inspect_err(|_| {
        let store = body::parse::<Raw<'_>>(bytes).ok().and_then(|request| request.get("store"));
        if store.is_some_and(|store| store.as_str() == "false") {
            context.account.asks(Asked::default());
        }
    })
}

/// Says in the account what is asked for, with the request as it may be shown where bodies are kept; and refuses what no
/// model and no session is needed to refuse.
pub(super) fn ask_in(
    context: &RequestContext,
    request: &CreateResponse<'_>,
    document: Raw<'_>,
) -> Result<(), ApiError> {
    context.account.asks(Asked::new(request));
    if let Some(model) = request.model {
        context.account.names_model(&model.decode());
    }
    if let Some(mut tape) = context.account.tape() {
        tape.push(&shown(document));
        context.account.capture(Body::Request, Some(tape), |bytes| context.snapshot.redact(bytes));
    }
    check(request)
}

/// The request without the keys of its tools.
fn shown(document: Raw<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(document.as_str().len());
    let mut object = ObjectWriter::new(&mut out);
    for (name, value) in document.fields() {
        let name = name.decode();
        match (&*name, value.kind()) {
            ("tools", Kind::Array) => bridge::shown_tools(value, object.key(&name)),
            ("tool_choice", Kind::Object) => bridge::shown_tool(value, object.key(&name)),
            ("input", Kind::Array) => {
                let list = object.key(&name);
                list.push(b'[');
                for (at, item) in value.elements().enumerate() {
                    list.extend_from_slice(if at > 0 { b"," } else { b"" });
                    match bridge::shown_item(item) {
                        Some(shown) => list.extend_from_slice(&shown),
                        None => list.extend_from_slice(item.as_str().as_bytes()),
                    }
                }
                list.push(b']');
            }
            _ => drop(object.raw(&name, value)),
        }
    }
    object.end();
    out
}

const fn what_begins(warm_up: bool, is_job: bool, request: &CreateResponse<'_>) -> Asks {
    match (warm_up, is_job, request.background) {
        (true, ..) => Asks::WarmsUp,
        (false, true, _) => Asks::Runs,
        (false, false, Some(true)) => Asks::Submits,
        (false, false, _) => Asks::Turn,
    }
}

/// What the first upstream answer is asked for with.
struct First {
    bytes: Bytes,
    hosted: Option<Arc<Hosted>>,
    wish: CompactionWish,
    /// What is to be done first, where that is known already.
    prelude: Option<Prelude>,
}

/// How a turn begins.
#[derive(Clone, Copy)]
struct Begins {
    warm_up: bool,
    is_job: bool,
}

/// Lets it begin, if it may, and reads what it continues.
async fn let_in(
    context: &RequestContext,
    request: &CreateResponse<'_>,
    failover: &Failover,
    tokens: impl Fn() -> Tokens + Copy,
    Begins { warm_up, is_job }: Begins,
    past: Past,
) -> Result<Context, ApiError> {
    // What was submitted while there was a place for it has it.
    let has_place = is_job && context.account.is_permitted();
    if !has_place {
        context.admit(what_begins(warm_up, is_job, request), Some(failover), tokens).await?;
    }
    let past = read_past(context, request, past).await?;
    allowed::check_items(request, &past, failover, context)?;
    if !warm_up && !has_place {
        context.set_aside(failover, tokens, past.bytes()).await?;
    }
    Ok(past)
}

/// What the request continues.
async fn read_past(context: &RequestContext, request: &CreateResponse<'_>, past: Past) -> Result<Context, ApiError> {
    let began = Instant::now();
    let read = context.session().context(request, past).await?;
    if request.previous_response_id.is_some() || request.conversation.is_some() {
        context.account.read_past(began.elapsed());
    }
    Ok(read)
}

/// Takes the key for the response of this id, if nobody has it.
async fn claim(
    context: &RequestContext,
    key: &Key,
    bytes: &Bytes,
    request: &CreateResponse<'_>,
    id: &Id,
) -> Result<Claimed, ApiError> {
    let (runtime, session) = (&context.app.runtime, context.session());
    if !request.store.unwrap_or(true) {
        return Ok(runtime.keys.enter(context.caller.tenant(), key, bytes));
    }
    session.ensure_up().await?;
    let claimed = runtime.keys.claim(session.store(), key, bytes, id, runtime.jobs.worker).await;
    session.observe(claimed, || ApiError::response_not_found(id.as_str()))
}

/// Says, for everybody and for ever, that a provider is about to be asked.
async fn dispatch(context: &RequestContext, job: &Job) -> Result<(), ApiError> {
    let session = context.session();
    let dispatched = session.store().dispatch(&job.claim).await;
    if let (Ok(()), Some(line)) = (&dispatched, &job.line) {
        line.leave();
    }
    session.observe(dispatched, || ApiError::response_not_found(job.claim.response_id()))
}

/// A new response's id, where the ids in it come from, and when it was made.
fn new_identity(context: &RequestContext) -> (Id, Ids, u64) {
    let mut ids = context.ids.clone();
    // The first of all, so that whoever goes on with the turn makes others.
    (ids.make(IdKind::Response), ids, clock::unix_seconds())
}

/// A turn that can be asked about.
struct Opened {
    context: RequestContext,
    response: ResponseWriter,
    stream: bool,
    record: Option<Record>,
    unstored: Option<Unstored>,
    notes: Vec<Note>,
    key: Option<Held>,
    was_queued: bool,
}

impl Opened {
    /// Asks, until an upstream accepts; before that, or when it is refused as too long, the context may be compacted.
    async fn ask(
        mut self,
        first: First,
        request: CreateResponse<'_>,
        document: Raw<'_>,
        past: Context,
        mut failover: Failover,
    ) -> Result<Box<Turn>, ApiError> {
        let First { bytes, hosted, wish, prelude } = first;
        let policy = self.context.snapshot.policy(&self.context.caller);
        let mut before = prelude.unwrap_or_default();
        let is_known = !before.is_empty();
        let (sent, compact) = {
            let mut request = request;
            past.refer(&mut request)?;
            let items = past.past()?;
            failover.require(|| Needs::of(&request, &items));
            failover.belongs_to(|| affinity::of(&self.context, &request, &items));
            Box::pin(images::describe(&self.context, &failover, &request, &items)).await;
            Box::pin(files::read(&self.context, &failover, &request, &items)).await;
            if !is_known && (hosted.is_some() || failover.wire() != Wire::Responses) {
                match tools::before(hosted.as_deref(), &request, &items, &self.context, self.response.id()).await {
                    Ok(found) => before = found,
                    Err(error) => return self.unanswered(Unanswered::Invalid(error), &failover).await,
                }
            }
            let pending = !before.lists.is_empty();
            let hosting = hosted.as_deref().map(|hosted| hosted.hosting(Round::First, 0, pending));
            let hosted = (hosted.as_deref(), hosting.unwrap_or_default());
            let asked =
                ask::Asked { request: &request, document, past: &items, policy, hosted, asks_input_again: true };
            match compacting::wanted(&self.context, &failover, &asked, &past, wish) {
                Some(wanted) => (None, Some(wanted)),
                None if !before.is_empty() => {
                    if let Err(error) = attempt::check(&self.context, &mut failover, &asked) {
                        before.release().await;
                        return self.unanswered(Unanswered::Invalid(error), &failover).await;
                    }
                    (None, None)
                }
                None => {
                    let sent = truncating::send(&self.context, &mut failover, &asked).await;
                    let rescue = sent.as_ref().err().and_then(|not| compacting::rescue(&self.context, &asked, not));
                    (Some(sent), rescue)
                }
            }
        };
        let reasks = !self.stream && self.context.snapshot.config.output.repair == Repair::Reask;
        let is_due = !before.is_empty();
        let material = |past, failover, asks_again, asks_input_again| {
            let material = Material::new(bytes, past, failover, hosted, asks_again).after(before);
            Box::new(material.asking_for_input(asks_input_again))
        };
        if let Some((scope, why)) = compact {
            let material = material(past, failover, reasks, true);
            return Box::pin(self.compact(material, scope, why, sent.and_then(Result::err))).await;
        }
        match sent {
            Some(Ok(attempt)) => {
                let asks_again = attempt.may_go_on.promised && reasks;
                // Nothing of the request's text is kept through a stream that needs it no more.
                let MayGoOn { hosted, input, pauses, .. } = attempt.may_go_on;
                let goes_on = asks_again || hosted || input || pauses;
                let material = goes_on.then(|| material(past, failover, asks_again, input));
                self.notes.splice(0..0, attempt.notes.iter().cloned());
                Ok(self.turn(attempt, material))
            }
            Some(Err(unanswered)) => self.unanswered(unanswered, &failover).await,
            None if is_due => {
                let watch = Watch::new(failover.deadlines(true), self.context.snapshot.config.server.heartbeat);
                failover.next_round();
                let material = material(past, failover, reasks, true);
                let phase = Phase::Opening { next: Next::Ask, was_queued: self.was_queued };
                Ok(self.begin(phase, watch, None, Some(material)))
            }
            None => Err(ApiError::shutting_down()),
        }
    }

    /// Has the context summarised, and goes on from that as soon as somebody writes the summary. Where nobody does, it is
    /// as if there had been no such wish; a request that was refused stays refused.
    async fn compact(
        mut self,
        material: Box<Material>,
        scope: Scope,
        why: Why,
        refused: Option<Unanswered>,
    ) -> Result<Box<Turn>, ApiError> {
        let mut watch = Watch::new(material.failover.deadlines(true), self.context.snapshot.config.server.heartbeat);
        match (compacting::begin(material, &self.context, scope).await, why) {
            (Ok(compacting), why) => {
                watch.waits();
                let phase = Phase::Opening { next: Next::Compact(compacting, why), was_queued: self.was_queued };
                Ok(self.begin(phase, watch, None, None))
            }
            (Err(Came { material, compacted }), why) => {
                let not = match (compacted, refused) {
                    (_, Some(refused)) => return self.unanswered(refused, &material.failover).await,
                    (Ok(_), None) => return Err(ApiError::shutting_down()),
                    (Err(not), None) => not,
                };
                match (not, why) {
                    (NotCompacted::NoAnswer(no_answer), Why::Asked) => {
                        self.unanswered(no_answer.into(), &material.failover).await
                    }
                    (NotCompacted::NothingToDo, Why::Asked) => {
                        self.unanswered(Unanswered::Invalid(compacting::nothing_to_do()), &material.failover).await
                    }
                    (not, _) => {
                        let note = compacting::not_compacted(&not);
                        if self.context.snapshot.policy(&self.context.caller).strict {
                            let refused = Unanswered::Invalid(compacting::refused(&note));
                            return self.unanswered(refused, &material.failover).await;
                        }
                        self.notes.push(note);
                        self.ask_as_it_is(material).await
                    }
                }
            }
        }
    }

    /// Asks without a compacted context, although one was wanted.
    async fn ask_as_it_is(self, material: Box<Material>) -> Result<Box<Turn>, ApiError> {
        let Material { bytes, past, mut failover, hosted, prelude, .. } = *material;
        failover.next_round();
        let Kept { raw: document, value: request } = body::parse::<Kept<'_, CreateResponse<'_>>>(&bytes)?;
        let first = First { bytes: bytes.clone(), hosted, wish: CompactionWish::No, prelude: Some(prelude) };
        Box::pin(self.ask(first, request, document, past, failover)).await
    }

    fn turn(self, attempt: Attempt, material: Option<Box<Material>>) -> Box<Turn> {
        let Attempt { reader, accepted, deadlines, .. } = attempt;
        let watch = Watch::new(deadlines, self.context.snapshot.config.server.heartbeat);
        let phase = Phase::Opening { next: Next::Read, was_queued: self.was_queued };
        self.begin(phase, watch, Some(Answer::new(reader, accepted)), material)
    }

    fn begin(self, phase: Phase, watch: Watch, answer: Option<Answer>, material: Option<Box<Material>>) -> Box<Turn> {
        let Self { context, response, stream, record, unstored, notes, key, was_queued } = self;
        context.account.noted(&notes);
        Box::new(Turn {
            waiting: Waiting::new(&context.account),
            captures_from: context.account.tape().map(|_| 0),
            context,
            response,
            events: Events::silent(),
            phase,
            stream,
            has_spoken: false,
            notes,
            answer,
            watch,
            handed: None,
            material,
            record,
            key,
            unstored,
            kept: Vec::new(),
            keeps_failures: was_queued,
            rejected: None,
            told: Vec::new(),
            cause: None,
            refused: None,
            object: Bytes::new(),
            not_kept: None,
        })
    }

    /// Nobody answers: an HTTP error, or a response that says only that.
    async fn unanswered(mut self, unanswered: Unanswered, failover: &Failover) -> Result<Box<Turn>, ApiError> {
        let (failure, deadline) = match unanswered {
            Unanswered::Invalid(error) if self.was_queued => {
                (Failure::new(FailureClass::InvalidRequest, error.message), None)
            }
            Unanswered::Invalid(error) => {
                self.release().await;
                return Err(error);
            }
            Unanswered::Refused(Refused { failure, deadline, .. }, notes) => {
                self.notes = notes;
                (failure, deadline)
            }
        };
        let in_stream = self.context.caller.profile().errors.in_stream.contains(&failure.class);
        if self.was_queued || self.stream && in_stream {
            let watch = Watch::new(failover.deadlines(true), self.context.snapshot.config.server.heartbeat);
            let phase = Phase::Opening { next: Next::Fail(failure), was_queued: self.was_queued };
            return Ok(self.begin(phase, watch, None, None));
        }
        self.context.account.ended(deadline.map_or(Outcome::Failed(failure.class), Outcome::Late));
        self.release().await;
        Err(ApiError::upstream(&failure))
    }

    /// Nothing will be stored: whoever comes next finds the conversation and the key free.
    async fn release(self) {
        release(self.record, self.key).await;
    }
}

async fn release(record: Option<Record>, key: Option<Held>) {
    if let Some(record) = record {
        record.release().await;
    }
    if let Some(key) = key {
        key.release().await;
    }
}

/// What is wrong with a request that nobody is asked yet, as far as its plan tells.
fn check_plan<'a>(
    context: &RequestContext,
    mut request: CreateResponse<'a>,
    document: Raw<'a>,
    past: &'a Context,
    mut failover: Failover,
    hosted: Option<&Hosted>,
) -> Result<(), ApiError> {
    past.refer(&mut request)?;
    let items = past.past()?;
    failover.require(|| Needs::of(&request, &items));
    let policy = context.snapshot.policy(&context.caller);
    if let Some(hosted) = hosted {
        hosted.look_at(&items, &request);
        approval::pending(&context.app.runtime.seal(&context.caller), &items, input(&request), policy.repair_history)?;
    }
    let hosting = hosted.map(|hosted| hosted.hosting(Round::First, 0, !hosted.unlisted().is_empty()));
    let hosted = (hosted, hosting.unwrap_or_default());
    let asked = ask::Asked { request: &request, document, past: &items, policy, hosted, asks_input_again: false };
    attempt::check(context, &mut failover, &asked)
}

/// Whether the request holds keys for tools, which are written nowhere.
fn holds_secrets(document: Raw<'_>) -> bool {
    let input = document.get("input").into_iter().flat_map(Raw::elements);
    bridge::holds_secrets(document) || input.map(bridge::shown_item).any(|shown| shown.is_some())
}

/// What no model and no session is needed to refuse.
pub(super) fn check(request: &CreateResponse<'_>) -> Result<(), ApiError> {
    if request.previous_response_id.is_some() && request.conversation.is_some() {
        let message = "Mutually exclusive parameters: 'previous_response_id' and 'conversation'.";
        return Err(ApiError::bad_request(Code::MutuallyExclusiveParameters, message));
    }
    if request.background == Some(true) && request.store == Some(false) {
        let message = "Unsupported parameter: 'background' is not available with 'store' set to false.";
        return Err(ApiError::bad_request(InvalidCode::UnsupportedParameter, message).with_param("background"));
    }
    Ok(())
}

/// Where a budget counts, only models whose price is known are asked.
pub(super) fn keep_priced(context: &RequestContext, failover: &mut Failover) -> Result<(), ApiError> {
    let is_limited = context.caller.grant().is_some_and(|grant| grant.has_budget());
    if is_limited && !failover.keep_priced() {
        return Err(ApiError::not_priced(failover.model()));
    }
    Ok(())
}

/// Who may serve the request, and the model's name as the client wrote it. Who wants no stream is told nothing before
/// all is there.
pub(super) fn targets(context: &RequestContext, request: &CreateResponse<'_>) -> Result<(Failover, String), ApiError> {
    let model = request.model.map(|model| model.decode().into_owned()).unwrap_or_default();
    let mut failover = targets_of(context, &model)?;
    if !request.stream.unwrap_or(false) {
        failover.wait_for_content();
    }
    Ok((failover, model))
}

pub(super) fn targets_of(context: &RequestContext, model: &str) -> Result<Failover, ApiError> {
    /// No model has a longer name, and each request leaves its model's in the log, its trace and its spans.
    const LONGEST: usize = 512;
    if model.trim().is_empty() {
        return Err(wire::json::Invalid::missing().at("model").into());
    }
    if model.len() > LONGEST {
        let message = format!("string too long. Expected at most {LONGEST} bytes.");
        return Err(wire::json::Invalid::rule(InvalidCode::StringAboveMaxLength, message).at("model").into());
    }
    // By the name that was sent: whoever may use an alias may not use all that it stands for.
    if context.caller.grant().is_some_and(|grant| !grant.allows_model(model)) {
        return Err(ApiError::model_not_allowed(model));
    }
    unasked_targets_of(context, model)
}

/// The same for a model that the client has not named.
pub(super) fn unasked_targets_of(context: &RequestContext, model: &str) -> Result<Failover, ApiError> {
    let failover = context.failover(model);
    failover.map_err(|error| ApiError::model_not_found(model, &hint(&error)))
}

fn hint(error: &ModelError) -> String {
    match error {
        ModelError::UnknownProvider { provider, configured, .. } => {
            format!(" There is no provider '{}'; configured: {}.", clip(provider), configured.join(", "))
        }
        ModelError::Incomplete { .. } => String::new(),
    }
}
