//! `POST /v1/responses`: JSON, or server-sent events with `stream: true`.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use bridge::{Action, End, Failure, FailureClass, Framing, Machine, Note, Policy, Repair, Setup, Target};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use hyper::body::Incoming;
use wire::id::Ids;
use wire::json::{FromRaw, Raw};
use wire::responses::{CreateResponse, Input, Item};

use super::json;
use crate::app::{App, Provider};
use crate::body::{self, Body};
use crate::clock;
use crate::error::ApiError;
use crate::output;
use crate::turn::{Finished, Turn};

pub(crate) async fn create(app: Arc<App>, request: Request<Incoming>, ids: Ids) -> Result<Response<Body>, ApiError> {
    let (parts, incoming) = request.into_parts();
    content_type(&parts.headers)?;
    let bytes = body::read(&parts.headers, incoming, app.config.server.max_body_bytes).await?;
    let opened = open(&app, &bytes, app.policy(&parts.headers), ids)?;
    drop(bytes);
    answer(&app, opened).await
}

/// A planned turn: nothing of the request's text is needed any more.
struct Opened<'a> {
    provider: &'a Provider,
    chat_request: Vec<u8>,
    machine: Machine,
    notes: Vec<Note>,
    stream: bool,
}

/// Reads and plans the request.
fn open<'a>(app: &'a App, bytes: &Bytes, policy: Policy, ids: Ids) -> Result<Opened<'a>, ApiError> {
    let text = str::from_utf8(bytes).map_err(|error| {
        let message = format!("The request body is not valid UTF-8 (byte {}).", error.valid_up_to());
        ApiError::bad_request("invalid_utf8", message)
    })?;
    let raw = Raw::parse(text).map_err(|error| {
        let message = format!("We could not parse the JSON body of your request: {error}.");
        ApiError::bad_request("invalid_json", message)
    })?;
    let request = CreateResponse::from_raw(raw).map_err(|mut invalid| {
        if invalid.path.is_empty() {
            invalid = invalid.at("body");
        }
        ApiError::from(invalid)
    })?;
    session(&request)?;
    let model = request.model.map(|model| model.decode().into_owned()).unwrap_or_default();
    if model.trim().is_empty() {
        return Err(wire::json::Invalid::missing().at("model").into());
    }
    let resolved = app.resolve(&model);
    let (provider, model) = resolved.map_err(|error| ApiError::model_not_found(&model, &hint(&error)))?;
    let seal = app.seal();
    let manner = provider.manner(&model);
    let target = Target { model: &model, dialect: &manner.dialect, policy, seal: &seal };
    let mut plan = bridge::plan(&request, &[], target)?;
    // Nothing is stored yet, and the response says so.
    plan.reading.store = false;
    let stream = request.stream.unwrap_or(false);
    let framing = if stream { Framing::Sse } else { Framing::Silent };
    let setup = Setup {
        dialect: Arc::clone(&manner.answer),
        seal: Arc::new(seal),
        check: output::check(&plan.reading.output),
        repair: app.config.output.repair,
        prompt_bytes: plan.body.len(),
    };
    let machine = Machine::new(plan.reading, setup, ids, clock::unix_seconds(), framing);
    tracing::debug!(response_id = %machine.id(), model, stream, notes = plan.notes.len(), "planned");
    Ok(Opened { provider, chat_request: plan.body, machine, notes: plan.notes, stream })
}

/// What refers to stored state. There is none, so nothing that is named can be found.
fn session(request: &CreateResponse<'_>) -> Result<(), ApiError> {
    if let (Some(_), Some(_)) = (request.previous_response_id, request.conversation) {
        let message = "Mutually exclusive parameters: 'previous_response_id' and 'conversation'.";
        return Err(ApiError::bad_request("mutually_exclusive_parameters", message));
    }
    if let Some(id) = request.previous_response_id {
        let message = format!("Previous response with id '{}' not found.", clip(&id.decode()));
        return Err(ApiError::bad_request("previous_response_not_found", message).with_param("previous_response_id"));
    }
    if let Some(conversation) = request.conversation {
        let message = format!("Conversation with id '{}' not found.", clip(&conversation.id.decode()));
        return Err(ApiError::not_found_object("conversation_not_found", message).with_param("conversation"));
    }
    if request.background == Some(true) {
        let message = "Unsupported parameter: 'background'. Background responses are not available yet.";
        return Err(ApiError::bad_request("unsupported_parameter", message).with_param("background"));
    }
    let Some(Input::Items(items)) = &request.input else { return Ok(()) };
    for item in items {
        if let Item::ItemReference(reference) = &item.value {
            let id = reference.id.map(|id| clip(&id.decode())).unwrap_or_default();
            let message = format!(
                "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again \
                 with `store` set to true, or remove this item from your input."
            );
            return Err(ApiError::not_found_object("item_not_found", message).with_param("input"));
        }
    }
    Ok(())
}

/// Calls the upstream and answers as the client asked.
async fn answer(app: &App, opened: Opened<'_>) -> Result<Response<Body>, ApiError> {
    let Opened { provider, chat_request, mut machine, notes, stream } = opened;
    let heartbeat = app.config.server.heartbeat;
    // Only an answer of which nothing was sent yet can be asked for again.
    let again = (!stream && app.config.output.repair == Repair::Reask).then(|| (machine.clone(), chat_request.clone()));
    let accepted = match provider.upstream.send(chat_request, stream, provider.deadlines).await {
        Ok(accepted) => accepted,
        // Codex compacts when it reads this in a stream; an HTTP error would be the end of its turn.
        Err(failure) if stream && failure.class == FailureClass::ContextOverflow => {
            return Ok(failed_stream(&mut machine, failure, &notes));
        }
        Err(failure) => return Err(ApiError::upstream(&failure)),
    };
    let turn = Turn::new(machine, accepted, provider.deadlines, heartbeat);
    if stream {
        return Ok(events(Body::stream(turn.into_stream()), &notes));
    }
    let mut finished = turn.run().await;
    if let Some((machine, chat_request)) = again {
        finished = ask_again(provider, machine, &chat_request, finished, heartbeat).await;
    }
    if let Some(failure) = &finished.failure {
        return Err(ApiError::upstream(failure));
    }
    let mut response = json(finished.object);
    compat(response.headers_mut(), notes.iter().chain(&finished.notes));
    Ok(response)
}

/// `output.repair: reask`: one more try for an answer that is not in the format that was asked for.
async fn ask_again(
    provider: &Provider,
    mut machine: Machine,
    chat_request: &[u8],
    first: Finished,
    heartbeat: Duration,
) -> Finished {
    let failure = first.failure.as_ref().filter(|failure| failure.class == FailureClass::InvalidOutput);
    let Some(failure) = failure else { return first };
    let Some(request) = output::ask_again(chat_request, &first.object, &failure.message) else { return first };
    let Ok(accepted) = provider.upstream.send(request, false, provider.deadlines).await else { return first };
    machine.spent_before(first.usage.unwrap_or_default());
    let mut second = Turn::new(machine, accepted, provider.deadlines, heartbeat).run().await;
    second.notes.push(Note::new(Action::Repaired, "text.format", "the answer was asked for twice"));
    second
}

fn failed_stream(machine: &mut Machine, failure: Failure, notes: &[Note]) -> Response<Body> {
    let mut out = Vec::new();
    machine.open(&mut out);
    machine.end(End::Failed(failure), &mut out);
    machine.terminal(clock::unix_seconds(), false, &mut out);
    events(Body::full(out.into()), notes)
}

fn events(body: Body, notes: &[Note]) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    compat(headers, notes.iter());
    response
}

/// `x-godex-compat`: what was not done as asked, in short.
fn compat<'n>(headers: &mut HeaderMap, notes: impl Iterator<Item = &'n Note>) {
    const LIMIT: usize = 1024;
    let mut text = String::new();
    for note in notes {
        let (code, severity, action) = (note.code, note.severity.name(), note.action.name());
        tracing::info!(code, severity, action, path = %note.path, detail = %note.message, "compat");
        if text.len() < LIMIT {
            let comma = if text.is_empty() { "" } else { ", " };
            let _ = write!(text, "{comma}{note}");
        }
    }
    let printable = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
    let text: String = text.chars().map(printable).take(LIMIT).collect();
    if let Some(value) = HeaderValue::try_from(text).ok().filter(|value| !value.is_empty()) {
        headers.insert("x-godex-compat", value);
    }
}

/// JSON, or no word about it.
fn content_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let name = value.to_str().unwrap_or("?").split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if name == "application/json" || name.ends_with("+json") {
        return Ok(());
    }
    Err(ApiError::unsupported_content_type(&clip(&name)))
}

fn hint(error: &crate::config::ModelError) -> String {
    match error {
        crate::config::ModelError::UnknownProvider { provider, configured, .. } => {
            format!(" There is no provider '{}'; configured: {}.", clip(provider), configured.join(", "))
        }
        crate::config::ModelError::Incomplete { .. } => String::new(),
    }
}

fn clip(text: &str) -> String {
    text.chars().take(128).collect()
}
