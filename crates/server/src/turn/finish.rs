//! The one end of a turn: what is to be kept goes to the store, and then the terminal event goes to the client. That
//! event is a promise, so it waits for the store; a store that takes its time holds nothing back but that event.

use std::fmt;
use std::time::Duration;

use bridge::{Action, Events, Failure, FailureClass, IncompleteReason, Note, RoundEnd};
use bytes::Bytes;
use store::NewEvents;
use tokio::time::Instant;
use wire::id::Id;
use wire::responses::Status;

use super::tools::Told;
use super::{Phase, Turn};
use crate::account::{Body, Outcome};
use crate::ask::{MAX_CONTENT, oversized};
use crate::clock;
use crate::error::ApiError;
use crate::idempotency::Held;
use crate::session::{self, Commit, NotKept, Unstored};

/// How long the last deltas wait to go out together with the terminal event, which waits for the store.
const PATIENCE: Duration = Duration::from_millis(20);

/// The store has the answer, and the client waits for its last event.
pub(super) struct Storing {
    commit: Commit,
    completed_at: u64,
    began: Instant,
    /// The terminal event is stored with the end, and is written.
    begun: bool,
}

impl fmt::Debug for Storing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Storing").field("completed_at", &self.completed_at).finish_non_exhaustive()
    }
}

/// A turn that has run to its end without events.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) ended: Ended,
    /// What was not done as asked.
    pub(crate) notes: Vec<Note>,
}

/// What it came to.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The response object.
    Object(Bytes),
    Failed(Failure),
    /// The request cannot be done, which was found out late.
    Refused(ApiError),
    /// The server stopped, or all work of its tenant was ended.
    Stopped(ApiError),
    /// The answer is good, but could not be kept, which its client was promised.
    NotKept(store::Error),
}

impl Ended {
    /// The object, or what is answered instead.
    pub(crate) fn into_object(self) -> Result<Bytes, ApiError> {
        match self {
            Self::Object(object) => Ok(object),
            Self::Failed(failure) => Err(ApiError::upstream(&failure)),
            Self::Refused(error) | Self::Stopped(error) => Err(error),
            Self::NotKept(error) => Err(ApiError::store(&error)),
        }
    }
}

/// What waits to be taken, as the log has it.
pub(crate) fn pending(events: &Events) -> Option<NewEvents> {
    let first = events.iter().next()?.0.sequence;
    Some(NewEvents { first, events: events.iter().map(|(_, json)| Bytes::copy_from_slice(json)).collect() })
}

/// What a client is told whose response could not be kept.
const fn unstored_message(error: &store::Error) -> &'static str {
    match error {
        store::Error::KeyLost => {
            "Another request with the same Idempotency-Key took the place of this one. Please retry."
        }
        _ => "The response could not be stored.",
    }
}

const fn stored_status(status: Status) -> store::Status {
    match status {
        Status::Completed => store::Status::Completed,
        Status::Incomplete => store::Status::Incomplete,
        Status::Cancelled => store::Status::Cancelled,
        Status::Failed | Status::InProgress | Status::Queued => store::Status::Failed,
    }
}

impl Turn {
    /// The response is over. What is to be kept goes to the store first.
    pub(super) fn finish(&mut self, end: RoundEnd) {
        self.abandon_tools();
        let fails = self.context.caller.profile().failed_when_incomplete;
        let end = match end {
            RoundEnd::Incomplete(reason) if fails.contains(&reason) => self.failed_as_incomplete(reason),
            end => end,
        };
        self.response.finish(end);
        self.conclude();
    }

    /// The end of a response for a client that would ask for it again and again if it were told that it is incomplete.
    fn failed_as_incomplete(&mut self, reason: IncompleteReason) -> RoundEnd {
        let (class, why) = match reason {
            IncompleteReason::ContentFilter => {
                (FailureClass::ContentPolicy, "the provider's filter held the answer back")
            }
            IncompleteReason::MaxOutputTokens => {
                (FailureClass::InvalidRequest, "the answer is as long as the provider lets it be")
            }
        };
        self.cause.get_or_insert(Outcome::Incomplete);
        self.response.note(Note::new(Action::Degraded, "incomplete_details", "told as a failure: this client retries"));
        let message = format!("Incomplete response returned, reason: {}: {why}.", reason.name());
        RoundEnd::Failed(Failure::new(class, message))
    }

    /// What became of the response is known.
    pub(super) fn conclude(&mut self) {
        // What cannot be sent must not be kept. Items may be larger than what was read: reasoning is sealed, too.
        if self.response.content() > MAX_CONTENT {
            self.response.drop_output(oversized());
        }
        // While the words are whole: where they are cut, a key may be.
        if let (Some(failure), Some(answer)) = (self.response.failure_mut(), &self.answer) {
            answer.redactor.failure(failure);
        }
        self.redact_notes();
        if let Some(answer) = &mut self.answer {
            answer.abandon();
        }
        let account = &self.context.account;
        // Before anybody is told: whoever hears of the end may ask for the next.
        account.turn_is_over();
        account.last_byte();
        account.used(self.response.usage());
        account.noted(self.response.notes());
        account.ended(self.cause.unwrap_or_else(|| self.outcome()));
        if let Some(failure) = self.response.failure() {
            account.explained(&failure.shown());
        }
        let completed_at = clock::unix_seconds();
        let record = self.record.take_if(|_| self.response.failure().is_none() || self.keeps_failures);
        self.write_object(completed_at, record.is_some());
        self.kept = self.told.iter().map(Told::member).collect();
        let Some(record) = record else {
            self.context.session().remember(&self.kept);
            return self.close();
        };
        let begun = record.is_begun();
        if begun {
            // All that was not taken yet is stored with it, or nothing of it is ever sent.
            self.response.terminal(&self.object, &mut self.events);
        }
        let end = session::End {
            id: self.response.id().to_string(),
            status: stored_status(self.status()),
            object: self.object.clone(),
            kept: self.kept.clone(),
            events: begun.then(|| pending(&self.events)).flatten(),
        };
        let commit = record.commit(end);
        self.phase = Phase::Storing(Storing { commit, completed_at, began: Instant::now(), begun });
    }

    /// Whether the end is being stored, and all events that were not taken with it.
    pub(crate) const fn is_storing(&self) -> bool {
        matches!(self.phase, Phase::Storing(_))
    }

    /// Whether the end is stored: the events that are taken from now on are in the log already.
    pub(crate) const fn is_stored(&self) -> bool {
        matches!(self.phase, Phase::Draining | Phase::Over)
    }

    /// Why the end could not be stored, if it could not.
    pub(crate) const fn not_kept(&self) -> Option<&store::Error> {
        self.not_kept.as_ref()
    }

    fn status(&self) -> Status {
        self.response.status().unwrap_or(Status::Failed)
    }

    fn outcome(&self) -> Outcome {
        self.response.failure().map_or_else(|| self.status().into(), |failure| Outcome::Failed(failure.class))
    }

    fn write_object(&mut self, completed_at: u64, stored: bool) {
        let mut object = Vec::new();
        self.response.object(completed_at, stored, &mut object);
        if let (Some(_), Some(answer)) = (self.response.failure(), &self.answer) {
            answer.redactor.bytes(&mut object, 0);
        }
        self.object = object.into();
    }

    /// The object as it is sent is kept with the trace, where bodies are.
    fn capture_object(&self) {
        if let Some(mut tape) = self.captures_from.and_then(|_| self.context.account.tape()) {
            tape.push(&self.object);
            self.context.account.capture(Body::Response, Some(tape), |bytes| {
                if let Some(answer) = &self.answer {
                    answer.redactor.bytes(bytes, 0);
                }
            });
        }
    }

    /// Waits for the store, then says the last word.
    pub(super) async fn stored(&mut self) {
        let Phase::Storing(Storing { commit, completed_at, began, begun }) = &mut self.phase else { return };
        let begun = *begun;
        let kept = if begun || self.events.is_empty() {
            commit.await
        } else {
            match tokio::time::timeout(PATIENCE, commit).await {
                Ok(kept) => kept,
                Err(_) => return,
            }
        };
        self.context.account.committed(began.elapsed());
        let completed_at = *completed_at;
        if kept.is_ok() {
            self.unstored = None;
            self.key.take().into_iter().for_each(Held::keep);
        }
        if begun {
            return self.ended_begun(kept);
        }
        if let Err(NotKept { error, fatal }) = kept {
            if fatal && self.response.failure().is_none() {
                self.response.fail(Failure::new(FailureClass::Server, unstored_message(&error)));
                self.context.account.ended(self.outcome());
                self.not_kept = Some(error);
            }
            self.write_object(completed_at, false);
        }
        self.close();
    }

    /// A turn that was begun has its end in the store, or none that this process could give it.
    fn ended_begun(&mut self, kept: Result<(), NotKept>) {
        self.said_all();
        self.phase = Phase::Draining;
        if let Err(NotKept { error, .. }) = kept {
            self.events.clear();
            self.not_kept = Some(error);
            self.phase = Phase::Over;
        }
        if self.response.failure().is_some() {
            self.answer = None;
        }
    }

    /// The terminal event.
    fn close(&mut self) {
        self.response.terminal(&self.object, &mut self.events);
        self.said_all();
        self.phase = Phase::Draining;
        if self.response.failure().is_some() {
            // What is wrong must be seen at once: the body ends after the terminal event.
            self.answer = None;
        }
    }

    /// The terminal event is written: how many there were is known.
    fn said_all(&self) {
        if !self.events.is_silent() {
            self.context.account.pace().told(self.response.events());
        }
        self.capture_object();
    }

    /// Whether the terminal event was written.
    pub(crate) const fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Draining | Phase::Over)
    }

    /// Why it failed, if it did.
    pub(crate) const fn failure(&self) -> Option<&Failure> {
        self.response.failure()
    }

    /// What continues a response that has come to a good end and is not in the store, where that was asked for.
    pub(crate) fn take_unstored(&mut self) -> Option<(Id, Unstored)> {
        let status = self.status();
        let mut unstored = self.unstored.take().filter(|unstored| unstored.may_follow(status))?;
        unstored.answer(&self.object, &self.kept);
        Some((self.response.id().clone(), unstored))
    }

    /// What the turn came to, for whoever sent no events. A conversation that was not extended is free again.
    pub(super) async fn into_finished(mut self: Box<Self>) -> Finished {
        if let Some(record) = self.record.take() {
            record.release().await;
        }
        if let Some(key) = self.key.take() {
            key.release().await;
        }
        let notes = self.notes().cloned().collect();
        let ended = match (self.not_kept, self.response.failure()) {
            (Some(error), _) => Ended::NotKept(error),
            (None, Some(_)) if self.cause == Some(Outcome::Stopped) => Ended::Stopped(self.context.must_end_because()),
            (None, Some(failure)) => match self.refused {
                Some(error) => Ended::Refused(error),
                None => Ended::Failed(failure.clone()),
            },
            (None, None) => Ended::Object(self.object),
        };
        Finished { ended, notes }
    }
}
