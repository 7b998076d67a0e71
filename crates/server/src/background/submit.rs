//! Taking a request: it is stored, with a place in the queue, before its client hears of it.

use bridge::{Events, ResponseWriter};
use bytes::Bytes;
use store::{Begun, JobKind, JobLimits, NewJob, Status};

use super::{Job, drive, envelope};
use crate::app::App;
use crate::error::{ApiError, Code};
use crate::idempotency::Held;
use crate::request::RequestContext;
use crate::session::NewRecord;
use crate::turn::pending;

/// A request that is to be run in the background.
#[derive(Debug)]
pub(crate) struct Submission {
    pub(crate) context: RequestContext,
    pub(crate) bytes: Bytes,
    pub(crate) record: NewRecord,
    pub(crate) response: ResponseWriter,
    pub(crate) stream: bool,
    /// It has keys in it that may be written nowhere.
    pub(crate) secret: bool,
}

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
}

pub(crate) async fn submit(submission: Submission, key: Option<Held>) -> Result<Submitted, ApiError> {
    let Submission { context, bytes, record, mut response, stream, secret } = submission;
    let mut events = Events::frames();
    response.open_queued(&mut events);
    let (mut object, response_id) = (Vec::new(), response.id().to_string());
    response.queued_object(&mut object);
    let (object, first) = (Bytes::from(object), pending(&events).filter(|_| stream));
    let next_event = first.as_ref().map_or(0, |events| events.events.len() as u64);
    let background = &context.app.runtime.background;
    let request = (!secret).then(|| envelope::seal(&context, &bytes));
    if secret {
        background.secret().insert(response_id.clone(), envelope::seal(&context, &bytes));
    }
    let job = NewJob { kind: JobKind::Background, request };
    let limits = context.app.job_limits();
    let created_at = record.created_at();
    let begun = record.begin(&response_id, Status::Queued, &object, first, job, (&background.worker, limits)).await;
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
    if let Some(key) = key {
        key.keep();
    }
    if let Begun::Claimed(claim) = begun {
        background.secret().remove(&response_id);
        let job = Job { claim, has_log: stream, next_event, created_at };
        drive::spawn(context.for_background(), bytes, job);
    } else {
        context.session().tell(&response_id);
        // Others may be idle, and a place may have become free since.
        background.place.notify_one();
    }
    Ok(Submitted { response_id, object, stream })
}
