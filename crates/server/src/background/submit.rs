//! Taking a request: it is stored, with a place in the queue, before its client hears of it.

use std::sync::Arc;

use bridge::Events;
use bytes::Bytes;
use store::{Begun, JobKind, JobLimits, NewJob, Status};
use tokio::sync::oneshot;

use super::{Ending, drive, end, envelope};
use crate::app::App;
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::jobs::Job;
use crate::request::RequestContext;
use crate::turn::{Submission, pending};

/// A response that is in the queue, at least.
#[derive(Debug)]
pub(crate) struct Submitted {
    pub(crate) response_id: String,
    /// As it is now.
    pub(crate) object: Bytes,
    pub(crate) stream: bool,
}

impl App {
    /// How many background responses a tenant may have. Whoever is about to end takes no more for itself.
    pub(super) fn job_limits(&self) -> JobLimits {
        let config = self.snapshot().config.session.background;
        JobLimits { running: if self.is_draining() { 0 } else { config.concurrency }, queued: config.queue }
    }

    /// The same for one who may have fewer. The queue is the tenant's: its other keys' responses wait in it as well. What
    /// has to wait for what its key may use waits there, too.
    fn job_limits_of(&self, caller: &Caller, has_to_wait: bool) -> JobLimits {
        let limits = self.job_limits();
        let Some(grant) = caller.grant() else { return limits };
        let terms = [grant.terms.queue, grant.tenant_terms.queue];
        let fewest = terms.into_iter().flatten().min().map(|queue| queue.try_into().unwrap_or(limits.queued));
        let queued = fewest.map_or(limits.queued, |fewest| limits.queued.min(fewest));
        JobLimits { running: if has_to_wait { 0 } else { limits.running }, queued }
    }
}

/// Stores it, and runs it if there is a place. In a task: a client that leaves meanwhile must not leave half of it behind.
pub(crate) async fn submit(submission: Box<Submission>) -> Result<Submitted, ApiError> {
    let (answer, answered) = oneshot::channel();
    submission.context.account.put_off();
    let tasks = submission.context.app.runtime.tasks.clone();
    tasks.spawn(async move {
        let session = submission.context.session();
        let repeatable = submission.key.is_some();
        match store(*submission).await {
            Err(error) => drop(answer.send(Err(error))),
            Ok((submitted, ready)) => {
                let id = submitted.response_id.clone();
                if answer.send(Ok(submitted)).is_ok() || repeatable {
                    return ready.go();
                }
                // Nobody will ever ask for it.
                ready.app.runtime.jobs.forget(&id);
                let claim = ready.job.map(|(_, _, job)| job.claim);
                let _ = end(&session, &id, claim, Ending::Cancelled).await;
            }
        }
    });
    let lost = |_| Err(ApiError::new(Code::StorageError, "The request could not be put into the queue."));
    answered.await.unwrap_or_else(lost)
}

/// A turn that is stored, and what is to be done for it.
struct Ready {
    app: Arc<App>,
    response_id: String,
    /// It has a place.
    job: Option<(RequestContext, Bytes, Job)>,
}

impl Ready {
    fn go(self) {
        let background = &self.app.runtime.jobs;
        match self.job {
            Some((context, bytes, job)) => {
                background.secret().remove(&self.response_id);
                drive::spawn(context, bytes, job);
            }
            // A place may have become free since.
            None => background.place_free.notify_one(),
        }
    }
}

async fn store(submission: Submission) -> Result<(Submitted, Ready), ApiError> {
    let Submission { context, run, bytes, record, mut response, stream, secret, key } = submission;
    let mut events = Events::frames();
    response.open_queued(&mut events);
    let (mut object, response_id) = (Vec::new(), response.id().to_string());
    response.queued_object(&mut object);
    let (object, first) = (Bytes::from(object), pending(&events).filter(|_| stream));
    let next_event = first.as_ref().map_or(0, |events| events.events.len() as u64);
    let background = &context.app.runtime.jobs;
    let request = envelope::seal(&context, &bytes);
    if secret {
        background.secret().insert(response_id.clone(), request.clone());
    }
    let job = NewJob { kind: JobKind::Background, request: (!secret).then_some(request) };
    let (limits, created_at) = (context.app.job_limits_of(&context.caller, run.is_none()), record.created_at());
    let begun = record.begin(&response_id, Status::Queued, &object, first, job, (&background.worker, limits)).await;
    // Its place is another's, if it is in the queue.
    let run = run.filter(|_| matches!(begun, Ok(Begun::Claimed(_))));
    let begun = begun.map_err(|error| {
        background.secret().remove(&response_id);
        match error {
            store::Error::QueueFull => {
                let message = "As many background responses wait as may. Please retry later.";
                ApiError { retry_after: Some(5), ..ApiError::new(Code::BackgroundQueueFull, message) }
            }
            error => ApiError::store(&error),
        }
    })?;
    background.secret().is_stored(&response_id);
    if let Some(key) = key {
        key.keep();
    }
    let job = match begun {
        Begun::Claimed(claim) => {
            let run = run.unwrap_or_else(|| context.for_background());
            run.account.is_told(true);
            Some((run, bytes, Job { claim, has_log: stream, next_event, created_at, line: None }))
        }
        Begun::Queued => None,
    };
    let ready = Ready { app: Arc::clone(&context.app), response_id: response_id.clone(), job };
    Ok((Submitted { response_id, object, stream }, ready))
}
