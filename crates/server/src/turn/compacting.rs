//! Turns whose context is compacted before there is an answer: because the client asks for that alone, because the context
//! has grown beyond what the client wants, or because the provider refused it as too long. The summary is made while the
//! client waits and gets signs of life; then the response shows the compaction item, and goes on from it.

use std::sync::Arc;

use bridge::{Action, CompactionWish, Failure, FailureClass, Note, RoundEnd};
use tokio::sync::Notify;
use wire::id::IdKind;
use wire::json::{Invalid, InvalidCode, Kept};
use wire::responses::CreateResponse;

use super::rounds::Material;
use super::{Pending, Turn};
use crate::account::Outcome;
use crate::ask::{Asked, NoAnswer, Unanswered, attempt};
use crate::body;
use crate::compaction::{self, Compacted, NotCompacted, Scope, Truncation, body_tokens};
use crate::config::Rescue;
use crate::error::ApiError;
use crate::request::RequestContext;
use crate::session::Context;
use crate::upstream::Failover;

/// Why the context is compacted.
#[derive(Debug, Clone)]
pub(super) enum Why {
    /// The client wants the compaction item, and nothing else.
    Asked,
    /// `context_management`.
    Grown,
    /// The provider refused it; this stays the failure if nothing helps.
    Refused(Failure),
}

/// What came of it.
pub(super) struct Came {
    pub(super) material: Box<Material>,
    pub(super) compacted: Result<Compacted, NotCompacted>,
}

/// A summary under way.
pub(super) type Compacting = Pending<Came>;

/// Begins to make a summary, and waits until somebody writes it, or nobody does.
pub(super) async fn begin(material: Box<Material>, context: &RequestContext, scope: Scope) -> Result<Compacting, Came> {
    let accepted = Arc::new(Notify::new());
    let mut compacting: Compacting = Box::pin(compact(material, context.clone(), scope, Arc::clone(&accepted)));
    tokio::select! {
        biased;
        came = &mut compacting => match came.compacted {
            Ok(_) => Ok(Box::pin(std::future::ready(came))),
            Err(_) => Err(came),
        },
        () = accepted.notified() => Ok(compacting),
    }
}

async fn compact(mut material: Box<Material>, context: RequestContext, scope: Scope, accepted: Arc<Notify>) -> Came {
    let compacted = material.summarise(&context, scope, &accepted).await;
    Came { material, compacted }
}

impl Material {
    async fn summarise(
        &mut self,
        context: &RequestContext,
        scope: Scope,
        accepted: &Notify,
    ) -> Result<Compacted, NotCompacted> {
        let invalid = |error| NotCompacted::NoAnswer(NoAnswer::from(Unanswered::Invalid(error)));
        let Kept { value: mut request, .. } =
            body::parse::<Kept<'_, CreateResponse<'_>>>(&self.bytes).map_err(invalid)?;
        self.past.refer(&mut request).map_err(invalid)?;
        let items = self.past.past().map_err(invalid)?;
        let accepted = || accepted.notify_one();
        compaction::compact(context, &mut self.failover, &request, &items, scope, &accepted).await
    }
}

/// Whether a request is to be compacted before anybody is asked, and what the summary is to take the place of.
pub(super) fn wanted(
    context: &RequestContext,
    failover: &Failover,
    asked: &Asked<'_, '_>,
    past: &Context,
    wish: CompactionWish,
) -> Option<(Scope, Why)> {
    match wish {
        CompactionWish::No => None,
        CompactionWish::Only if past.is_remembered() => Some((Scope::WhatIsRemembered, Why::Asked)),
        // What the store has, no client can leave out.
        CompactionWish::Only if past.has_past() => Some((Scope::EverythingStored, Why::Asked)),
        CompactionWish::Only => Some((Scope::WhatIsLeftOut, Why::Asked)),
        CompactionWish::Above(threshold) => {
            let body = attempt::body(context, failover, asked).ok()?;
            let tokens = body_tokens(context, failover, &body, threshold);
            (tokens > threshold).then_some((Scope::Everything(threshold), Why::Grown))
        }
    }
}

/// Whether a refused request is to be compacted, and what the summary is to take the place of.
pub(super) fn rescue(context: &RequestContext, asked: &Asked<'_, '_>, unanswered: &Unanswered) -> Option<(Scope, Why)> {
    let Unanswered::Refused(refused, _) = unanswered else { return None };
    let overflow = refused.failure.class == FailureClass::ContextOverflow;
    if !overflow || context.snapshot.config.context.rescue != Rescue::Compact {
        return None;
    }
    // It takes less than this, however much that is.
    let weight = Truncation::of(asked.request, asked.past, &context.app.runtime.seal(&context.caller)).weight();
    Some((Scope::Everything(weight / 2), Why::Refused(refused.failure.clone())))
}

/// A note that the context was not compacted, and why.
pub(super) fn not_compacted(why: &NotCompacted) -> Note {
    let message = match why {
        NotCompacted::NothingToDo => "nothing of the context could be summarised".to_owned(),
        NotCompacted::NoAnswer(NoAnswer { failure, .. }) => {
            format!("there is no summary of the context ({})", failure.class.code())
        }
    };
    Note::new(Action::Ignored, "context_management", message)
}

/// The same where the operator wants nothing to be left out.
pub(super) fn refused(note: &Note) -> ApiError {
    let message = format!("Unsupported parameter: '{}' ({}).", note.path, note.message);
    ApiError::bad_request(InvalidCode::UnsupportedParameter, message).with_param("context_management")
}

/// What there is to say when a client wants nothing but a summary of nothing.
pub(super) fn nothing_to_do() -> ApiError {
    Invalid::rule(InvalidCode::EmptyArray, "expected at least one message to compact.").at("input").into()
}

impl Turn {
    /// The summary is there, or will not be.
    pub(super) fn compacted(&mut self, came: Came, why: Why) {
        let Came { mut material, compacted } = came;
        let failed = match compacted {
            Ok(compacted) => {
                let id = self.response.make_id(IdKind::Compaction);
                let item = compacted.item(&id);
                compacted.notes.iter().cloned().for_each(|note| self.response.note(note));
                self.response.item(item.as_bytes(), item.as_bytes(), &mut self.events);
                if matches!(why, Why::Asked) {
                    self.response.used(compacted.usage);
                    return self.finish(RoundEnd::Completed);
                }
                material.show(item);
                None
            }
            Err(not) => Some(not),
        };
        self.material = Some(material);
        let otherwise = RoundEnd::Failed(Failure::new(FailureClass::Server, "There was no answer."));
        match (failed, why) {
            (None, _) => self.ask(otherwise),
            (Some(NotCompacted::NoAnswer(NoAnswer { failure, deadline })), why)
                if matches!(why, Why::Asked) || deadline.is_some() || failure.class == FailureClass::Shutdown =>
            {
                self.cause = match failure.class {
                    FailureClass::Shutdown => Some(Outcome::Stopped),
                    _ => deadline.map(Outcome::Late),
                };
                self.finish(RoundEnd::Failed(failure));
            }
            (Some(_), Why::Refused(refused)) => self.finish(RoundEnd::Failed(refused)),
            (Some(NotCompacted::NothingToDo), Why::Asked) => self.invalid(nothing_to_do()),
            // The context is larger than the client wants, and may still fit.
            (Some(not), _) => {
                let note = not_compacted(&not);
                if self.context.snapshot.policy(&self.context.caller).strict {
                    return self.invalid(refused(&note));
                }
                self.response.note(note);
                self.ask(otherwise);
            }
        }
    }

    /// The request cannot be done as it is: an HTTP error, if nothing of the response was sent.
    pub(super) fn invalid(&mut self, error: ApiError) {
        self.finish(RoundEnd::Failed(Failure::new(FailureClass::InvalidRequest, error.message.clone())));
        self.refused = Some(error);
    }
}
