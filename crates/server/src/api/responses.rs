//! `POST /v1/responses`: JSON, or server-sent events with `stream: true`. What is done with stored responses is in
//! `stored`.

mod compat;
mod stored;

use std::sync::Arc;

use bridge::{
    Action, AnswerDialect, End, Failure, FailureClass, Framing, Machine, Needs, Note, PlanTarget, Policy, Repair, Setup,
};
use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use hyper::body::Incoming;
use providers::Wire;
use wire::id::Ids;
use wire::json::{InvalidCode, Kept, Raw};
use wire::responses::{CreateResponse, InputItem, Status};

use super::json;
use crate::app::{App, Provider};
use crate::body::{self, Body};
use crate::clock;
use crate::error::{ApiError, Code, clip};
use crate::output;
use crate::session::Record;
use crate::stop::Phase;
use crate::turn::{Finished, Turn};
use crate::upstream::{Accepted, Step, Walk};
pub(crate) use stored::{cancel, delete, input_items, retrieve};

pub(crate) async fn create(app: Arc<App>, request: Request<Incoming>, ids: Ids) -> Result<Response<Body>, ApiError> {
    let (parts, incoming) = request.into_parts();
    let bytes = body::read_json(&parts.headers, incoming, &app.bodies).await?;
    let policy = app.policy(&parts.headers);
    match begin(&app, &bytes, policy, ids).await? {
        Begun::Accepted(running) => {
            drop(bytes);
            answer(&app, running).await
        }
        Begun::Failed(response) => Ok(response),
    }
}

/// What came of a request.
enum Begun<'a> {
    /// An upstream has it; nothing of the request's text is needed any more.
    Accepted(Box<Running<'a>>),
    /// A stream that says only why there is no answer.
    Failed(Response<Body>),
}

/// A turn that an upstream has accepted.
struct Running<'a> {
    provider: &'a Provider,
    wire: Wire,
    machine: Machine,
    accepted: Accepted,
    notes: Vec<Note>,
    stream: bool,
    record: Option<Record>,
    /// Only an answer of which nothing was sent yet can be asked for again.
    again: Option<Box<(Machine, Bytes)>>,
}

/// Reads the request and what it continues, plans it for each target whose turn it is, until one accepts.
async fn begin<'a>(app: &'a App, bytes: &Bytes, policy: Policy, mut ids: Ids) -> Result<Begun<'a>, ApiError> {
    let Kept { raw: document, value: request } = body::parse::<Kept<'_, CreateResponse<'_>>>(bytes)?;
    check(&request)?;
    let name = request.model.map(|model| model.decode().into_owned()).unwrap_or_default();
    if name.trim().is_empty() {
        return Err(wire::json::Invalid::missing().at("model").into());
    }
    let mut walk = app.walk(&name).map_err(|error| ApiError::model_not_found(&name, &hint(&error)))?;
    let mut context = app.session().context(&request).await?;
    let mut record = context.record(&request, bytes, &mut ids);
    let mut request = request;
    context.refer(&mut request)?;
    let past = context.past()?;
    let asked = Asked { request: &request, document, past: &past, notes: context.notes(), policy, ids };
    walk.require(|| Needs::of(&request, &past));
    let begun = attempt(app, &mut walk, &asked, &mut record).await;
    if begun.is_err()
        && let Some(record) = record
    {
        record.release().await;
    }
    begun
}

/// Plans and sends, target by target. Who accepts takes the record along.
async fn attempt<'a>(
    app: &App,
    walk: &mut Walk<'a>,
    asked: &Asked<'_, '_>,
    record: &mut Option<Record>,
) -> Result<Begun<'a>, ApiError> {
    let stream = asked.request.stream.unwrap_or(false);
    loop {
        let Planned { chat_request, machine, mut notes } = match plan(app, walk, asked) {
            Ok(planned) => planned,
            Err(error) => match walk.unfit() {
                Ok(()) => continue,
                Err(failure) => return Err(failure.map_or(error, |failure| ApiError::upstream(&failure))),
            },
        };
        match walk.send(&chat_request, stream).await {
            Step::Accepted(accepted) => {
                notes.extend(asked.notes.iter().cloned());
                notes.extend(walk.notes());
                let reask = !stream && app.config.output.repair == Repair::Reask;
                let again = reask.then(|| Box::new((machine.clone(), chat_request)));
                let (provider, accepted, record) = (walk.provider(), *accepted, record.take());
                let wire = walk.wire();
                let running = Running { provider, wire, machine, accepted, notes, stream, record, again };
                return Ok(Begun::Accepted(Box::new(running)));
            }
            Step::Again => {}
            // Codex compacts when it reads this in a stream; an HTTP error would be the end of its turn.
            Step::Failed(failure) if stream && failure.class == FailureClass::ContextOverflow => {
                return Ok(Begun::Failed(failed_stream(machine, failure, &notes, record.take()).await));
            }
            Step::Failed(failure) => return Err(ApiError::upstream(&failure)),
        }
    }
}

/// A request with everything that it continues.
struct Asked<'r, 'a> {
    request: &'r CreateResponse<'a>,
    /// What it was read from.
    document: Raw<'a>,
    past: &'r [InputItem<'a>],
    /// Of what it continues and refers to.
    notes: Vec<Note>,
    policy: Policy,
    ids: Ids,
}

/// A turn planned for one target.
struct Planned {
    chat_request: Bytes,
    machine: Machine,
    notes: Vec<Note>,
}

fn plan(app: &App, walk: &Walk<'_>, asked: &Asked<'_, '_>) -> Result<Planned, ApiError> {
    let Asked { request, document, past, notes: _, policy, ids } = asked;
    let seal = app.seal();
    let (model, dialect) = (walk.model(), walk.dialect());
    let target = PlanTarget { model, dialect: &dialect, policy: *policy, seal: &seal };
    let plan = match walk.wire() {
        Wire::Responses => bridge::forward(request, *document, past, target)?,
        Wire::Chat | Wire::Demo => bridge::plan(request, past, target)?,
    };
    let stream = request.stream.unwrap_or(false);
    let framing = if stream { Framing::Sse } else { Framing::Silent };
    let setup = Setup {
        dialect: walk.answer(),
        seal: Arc::new(seal),
        check: output::check(&plan.reading.output),
        checks: app.config.output.check,
        repair: app.config.output.repair,
        prompt_bytes: plan.body.len(),
    };
    let machine = Machine::new(plan.reading, setup, ids.clone(), clock::unix_seconds(), framing);
    tracing::debug!(response_id = %machine.id(), model, stream, notes = plan.notes.len(), "planned");
    Ok(Planned { chat_request: app.bodies.budget.hold(plan.body)?, machine, notes: plan.notes })
}

/// What no model and no session is needed to refuse.
fn check(request: &CreateResponse<'_>) -> Result<(), ApiError> {
    if request.previous_response_id.is_some() && request.conversation.is_some() {
        let message = "Mutually exclusive parameters: 'previous_response_id' and 'conversation'.";
        return Err(ApiError::bad_request(Code::MutuallyExclusiveParameters, message));
    }
    if request.background == Some(true) {
        let message = "Unsupported parameter: 'background'. Background responses are not available yet.";
        return Err(ApiError::bad_request(InvalidCode::UnsupportedParameter, message).with_param("background"));
    }
    Ok(())
}

/// Answers as the client asked.
async fn answer(app: &App, running: Box<Running<'_>>) -> Result<Response<Body>, ApiError> {
    let Running { provider, wire, machine, accepted, notes, stream, record, again } = *running;
    let heartbeat = app.config.server.heartbeat;
    let stop = Arc::clone(&app.stop);
    compat::log(&notes);
    let turn = Turn::new(machine, accepted, provider.deadlines(stream), heartbeat, record, stop);
    if stream {
        return Ok(events(Body::stream(turn.into_stream()), &notes));
    }
    let mut finished = turn.run().await;
    if let Some(again) = again {
        let (machine, chat_request) = *again;
        // Boxed: it is rare, and would make room for itself in every request.
        finished = Box::pin(ask_again(app, (provider, wire), machine, &chat_request, finished)).await;
    }
    if let Some(record) = finished.record.take() {
        record.release().await;
    }
    if let Some(error) = &finished.not_kept {
        return Err(ApiError::store(error));
    }
    if let Some(failure) = &finished.failure {
        // The turn may have seen the end of the server before the route did.
        let stopped = app.stop.phase() == Phase::Now;
        return Err(if stopped { ApiError::shutting_down() } else { ApiError::upstream(failure) });
    }
    let mut response = json(finished.object);
    compat::insert(response.headers_mut(), notes.iter().chain(&finished.notes));
    Ok(response)
}

/// `output.repair: reask`: one more try for an answer that is not in the format that was asked for.
async fn ask_again(
    app: &App,
    (provider, wire): (&Provider, Wire),
    mut machine: Machine,
    chat_request: &[u8],
    mut first: Finished,
) -> Finished {
    let failure = first.failure.as_ref().filter(|failure| failure.class == FailureClass::InvalidOutput);
    let Some(failure) = failure else { return first };
    let Some(request) = output::ask_again(chat_request, &first.object, &failure.message) else { return first };
    let deadlines = provider.deadlines(false);
    // How it fails does not matter: then the first answer stands.
    let usual = Arc::<AnswerDialect>::default();
    let sent = provider.upstream.send(wire, request.into(), false, &usual, deadlines, true).await;
    let Ok(accepted) = sent else { return first };
    machine.spent_before(first.usage.unwrap_or_default());
    let record = first.record.take();
    let (heartbeat, stop) = (app.config.server.heartbeat, Arc::clone(&app.stop));
    let mut second = Turn::new(machine, accepted, deadlines, heartbeat, record, stop).run().await;
    let twice = Note::new(Action::Repaired, "text.format", "the answer was asked for twice");
    compat::log(std::slice::from_ref(&twice));
    second.notes.push(twice);
    second
}

/// A stream that says only that it failed.
async fn failed_stream(
    mut machine: Machine,
    failure: Failure,
    notes: &[Note],
    record: Option<Record>,
) -> Response<Body> {
    let (mut out, now) = (Vec::new(), clock::unix_seconds());
    machine.open(&mut out);
    machine.end(End::Failed(failure), &mut out);
    let stored = match record {
        Some(record) => {
            let mut object = Vec::new();
            machine.object(now, true, &mut object);
            record.commit(machine.id().to_string(), Status::Failed, object.into()).await.is_ok()
        }
        None => false,
    };
    machine.terminal(now, stored, &mut out);
    compat::log(notes);
    events(Body::full(out.into()), notes)
}

fn events(body: Body, notes: &[Note]) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    compat::insert(headers, notes.iter());
    response
}

fn hint(error: &crate::config::ModelError) -> String {
    match error {
        crate::config::ModelError::UnknownProvider { provider, configured, .. } => {
            format!(" There is no provider '{}'; configured: {}.", clip(provider), configured.join(", "))
        }
        crate::config::ModelError::Incomplete { .. } => String::new(),
    }
}
