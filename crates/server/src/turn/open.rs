//! The opening of a turn: who asks and the bytes of the request become the past, the record of what will be stored, the
//! response that will be written, and an upstream that has accepted. Until then everything that is wrong is an HTTP
//! error, and afterwards nothing is.

use std::sync::Arc;

use bridge::{Events, FailureClass, Needs, Note, Repair, ResponseWriter};
use bytes::Bytes;
use wire::json::{InvalidCode, Kept};
use wire::responses::CreateResponse;

use super::answer::Answer;
use super::attempt::{self, Asked, Attempt, Unanswered};
use super::rounds::Material;
use super::watch::Watch;
use super::{Phase, Start, Turn};
use crate::account::Outcome;
use crate::body;
use crate::clock;
use crate::config::ModelError;
use crate::error::{ApiError, Code, clip};
use crate::request::RequestContext;
use crate::session::{Record, Unstored};
use crate::upstream::{Failover, Refused};

impl Turn {
    /// Reads the request and what it continues, and asks, until an upstream accepts.
    pub(crate) async fn start(context: RequestContext, bytes: Bytes, start: Start) -> Result<Box<Self>, ApiError> {
        let Start { hosted, remembered, remember, warm_up } = start;
        let Kept { raw: document, value: request } = body::parse::<Kept<'_, CreateResponse<'_>>>(&bytes)?;
        check(&request)?;
        let (mut failover, model) = targets(&context, &request)?;
        let echo = bridge::echo(&request)?;
        let mut past = context.session().context(&request, remembered).await?;
        let mut ids = context.ids.clone();
        let (record, unstored) = past.record(&request, &bytes, &mut ids, remember);
        let stream = request.stream.unwrap_or(false);
        let response = ResponseWriter::new(ids, clock::unix_seconds(), echo, request.store.unwrap_or(true));
        context.account.opened(response.id(), &model);
        let notes = past.notes();
        let mut opened = Opened { context, response, stream, record, unstored, notes };
        if warm_up {
            let watch = Watch::new(failover.deadlines(true), opened.context.snapshot.config.server.heartbeat);
            return Ok(opened.begin(Phase::WarmUp, watch, None, None));
        }
        let sent = {
            let mut request = request;
            past.refer(&mut request)?;
            let items = past.past()?;
            failover.require(|| Needs::of(&request, &items));
            let policy = opened.context.snapshot.policy(&opened.context.caller);
            let asked = Asked { request: &request, document, past: &items, policy, hosted: hosted.as_ref() };
            attempt::send(&opened.context, &mut failover, &asked).await
        };
        let attempt = match sent {
            Ok(attempt) => attempt,
            Err(unanswered) => return opened.unanswered(unanswered, &failover).await,
        };
        let asks_again =
            attempt.may_go_on.promised && !stream && opened.context.snapshot.config.output.repair == Repair::Reask;
        // Nothing of the request's text is kept through a stream that needs it no more.
        let material = (asks_again || attempt.may_go_on.hosted)
            .then(|| Box::new(Material::new(bytes, past, failover, hosted, asks_again)));
        opened.notes.splice(0..0, attempt.notes.iter().cloned());
        Ok(opened.turn(attempt, material))
    }
}

/// A turn that can be asked about.
struct Opened {
    context: RequestContext,
    response: ResponseWriter,
    stream: bool,
    record: Option<Record>,
    unstored: Option<Unstored>,
    notes: Vec<Note>,
}

impl Opened {
    fn turn(self, attempt: Attempt, material: Option<Box<Material>>) -> Box<Turn> {
        let Attempt { reader, accepted, deadlines, .. } = attempt;
        let watch = Watch::new(deadlines, self.context.snapshot.config.server.heartbeat);
        self.begin(Phase::Opening(None), watch, Some(Answer::new(reader, accepted)), material)
    }

    fn begin(self, phase: Phase, watch: Watch, answer: Option<Answer>, material: Option<Box<Material>>) -> Box<Turn> {
        let Self { context, response, stream, record, unstored, notes } = self;
        context.account.noted(&notes);
        Box::new(Turn {
            stop: Arc::clone(&context.app.runtime.stop),
            context,
            response,
            events: Events::silent(),
            phase,
            stream,
            has_spoken: false,
            notes,
            answer,
            watch,
            material,
            record,
            unstored,
            keeps_failures: false,
            cause: None,
            object: Bytes::new(),
            not_kept: None,
        })
    }

    /// Nobody answers: an HTTP error, or a stream that says only that.
    async fn unanswered(mut self, unanswered: Unanswered, failover: &Failover) -> Result<Box<Turn>, ApiError> {
        let error = match unanswered {
            Unanswered::Invalid(error) => error,
            // Codex compacts when it reads this in a stream; an HTTP error would be the end of its turn.
            Unanswered::Refused(Refused { failure, .. }, notes)
                if self.stream && failure.class == FailureClass::ContextOverflow =>
            {
                self.notes = notes;
                let watch = Watch::new(failover.deadlines(true), self.context.snapshot.config.server.heartbeat);
                return Ok(self.begin(Phase::Opening(Some(failure)), watch, None, None));
            }
            Unanswered::Refused(Refused { failure, deadline, .. }, _) => {
                self.context.account.ended(deadline.map_or(Outcome::Failed(failure.class), Outcome::Late));
                ApiError::upstream(&failure)
            }
        };
        if let Some(record) = self.record {
            record.release().await;
        }
        Err(error)
    }
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

/// Who may serve the request, and the model's name as the client wrote it.
fn targets(context: &RequestContext, request: &CreateResponse<'_>) -> Result<(Failover, String), ApiError> {
    let model = request.model.map(|model| model.decode().into_owned()).unwrap_or_default();
    if model.trim().is_empty() {
        return Err(wire::json::Invalid::missing().at("model").into());
    }
    let failover = context.snapshot.failover(&model, &context.app.runtime, &context.account);
    let failover = failover.map_err(|error| ApiError::model_not_found(&model, &hint(&error)))?;
    Ok((failover, model))
}

fn hint(error: &ModelError) -> String {
    match error {
        ModelError::UnknownProvider { provider, configured, .. } => {
            format!(" There is no provider '{}'; configured: {}.", clip(provider), configured.join(", "))
        }
        ModelError::Incomplete { .. } => String::new(),
    }
}
