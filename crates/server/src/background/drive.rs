//! Driving a turn without its client: pulled by a task of its own, its events logged and then shown to whoever follows.

use std::sync::Arc;
use std::time::Duration;

use bridge::{Failure, FailureClass};
use bytes::Bytes;
use store::{Begun, Error, JobKind, JobLimits, NewEvents, NewJob, Status};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep_until};

use super::maintain::granted;
use super::{Ending, end};
use crate::account::Outcome;
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::follow::Follower;
use crate::jobs::{Entered, Job, Order};
use crate::live::Channel;
use crate::request::RequestContext;
use crate::session::{BegunRecord, Past, Record, Session};
use crate::stop::Phase;
use crate::turn::{Start, Started, Turn, pending};

/// Events that come shortly after each other are logged together.
const GATHER: Duration = Duration::from_millis(20);
/// So many bytes are not waited with.
const ENOUGH: usize = 16 << 10;

/// How long a store that is away is waited for. Longer than that, the turn may be somebody else's by now.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(500);

/// How long one that has no place among the turns of its key waits for it, and how often it looks.
const QUEUED: Duration = Duration::from_hours(1);
const PLACE_PAUSE: Duration = Duration::from_secs(1);

/// What became of a turn.
enum Left {
    /// Its end is stored.
    Ended,
    /// It is somebody else's, or was deleted.
    Lost,
    /// It never got so far as to have an end of its own.
    Unended(Ending),
}

/// Runs a turn that is in the store.
pub(super) fn spawn(context: RequestContext, body: Bytes, job: Job) {
    let app = Arc::clone(&context.app);
    context.account.received(body.len());
    let entered = app.runtime.jobs.enter(&job.claim);
    let task = async move {
        let session = context.session();
        let left = Box::pin(start_and_drive(context, body, &job, &entered)).await;
        leave(entered, &session, left).await;
    };
    app.runtime.tasks.spawn(task);
}

/// Makes a stream that a client waits for one that goes on without it, and follows it from its beginning. In a task: a
/// client that leaves meanwhile must not leave half of it behind.
pub(crate) async fn follow_foreground(turn: Box<Turn>) -> Result<Follower, ApiError> {
    let tasks = turn.context().app.runtime.tasks.clone();
    let (answer, answered) = oneshot::channel();
    tasks.spawn(async move {
        let session = turn.context().session();
        match Box::pin(begin_foreground(turn, &session)).await {
            Err(error) => drop(answer.send(Err(error))),
            Ok((turn, job, entered)) => {
                let app = Arc::clone(&turn.context().app);
                let follower = Follower::new(&app, session.clone(), job.claim.response_id(), 0);
                drop(answer.send(Ok(follower)));
                let left = drive(turn, &session, &job, &entered).await;
                leave(entered, &session, left).await;
            }
        }
    });
    let lost = |_| Err(ApiError::new(Code::StorageError, "The stream could not be begun."));
    answered.await.unwrap_or_else(lost)
}

async fn begin_foreground(mut turn: Box<Turn>, session: &Session) -> Result<(Box<Turn>, Job, Entered), ApiError> {
    let background = Arc::clone(&turn.context().app.runtime.jobs);
    let Some(Record::New(record)) = turn.take_record() else {
        return Err(ApiError::new(Code::StorageError, "There is nothing to be resumed."));
    };
    let (mut object, id) = (Vec::new(), turn.response().id().to_string());
    turn.response().running_object(&mut object);
    let log = NewEvents { first: 0, events: Vec::new() };
    let job = NewJob { kind: JobKind::Foreground, request: None };
    let limits = JobLimits { running: 0, queued: 0 };
    let by = (&background.worker, limits);
    let begun = record.begin(&id, Status::InProgress, &object.into(), Some(log), job, by).await;
    let Begun::Claimed(claim) = begun.map_err(|error| ApiError::store(&error))? else {
        return Err(ApiError::new(Code::StorageError, "The session store put a running stream in its queue."));
    };
    turn.begun(BegunRecord { session: session.clone(), claim: claim.clone() });
    let entered = background.enter(&claim);
    Ok((turn, Job { claim, has_log: true, next_event: 0, created_at: 0, line: None }, entered))
}

/// A turn has no more to do here: it gets an end if it has none, and whoever waits for one hears of it.
async fn leave(mut entered: Entered, session: &Session, left: Left) {
    let id = entered.claim.response_id().to_owned();
    entered.ended = match left {
        Left::Ended | Left::Lost => true,
        Left::Unended(ending) => match end(session, &id, Some(entered.claim.clone()), ending).await {
            Ok(()) | Err(Error::Lost | Error::Ended { .. } | Error::NotFound) => true,
            Err(error) => {
                tracing::warn!(response_id = id, %error, "a background response has no end yet");
                false
            }
        },
    };
    session.ring(&id);
}

async fn start_and_drive(context: RequestContext, body: Bytes, job: &Job, entered: &Entered) -> Left {
    let session = context.session();
    let mut orders = entered.running.order.subscribe();
    let mut stopping = context.app.runtime.stop.subscribe();
    let started = tokio::select! {
        biased;
        order = ordered(&mut orders, Order::GoOn) => match order {
            Order::Leave => return Left::Lost,
            Order::GoOn | Order::Cancel => {
                context.account.ended(Outcome::Cancelled);
                return Left::Unended(Ending::Cancelled);
            }
        },
        _ = stopping.wait_for(|phase| *phase == Phase::Now) => {
            context.account.ended(Outcome::Stopped);
            let failure = Failure::new(FailureClass::Shutdown, "The server was shut down before the response was made.");
            return Left::Unended(Ending::Failed(failure));
        }
        // Who has all of a tenant's work end lets everybody look who waits for the server's end.
        () = context.must_end() => {
            context.account.ended(Outcome::Stopped);
            let failure = Failure::new(FailureClass::Shutdown, "All that ran for its tenant was ended.");
            return Left::Unended(Ending::Failed(failure));
        }
        started = start(&context, body, job) => started,
    };
    match started {
        Ok(Started::Turn(mut turn)) => {
            if job.has_log {
                turn.as_frames();
            }
            drive(turn, &session, job, entered).await
        }
        Ok(Started::Background(_) | Started::Known(_)) => {
            Left::Unended(Ending::Failed(Failure::new(FailureClass::Server, "The request was queued twice.")))
        }
        Err(error) => {
            let failure = failure(error);
            context.account.ended(Outcome::Failed(failure.class));
            context.account.explained(&failure.shown());
            Left::Unended(Ending::Failed(failure))
        }
    }
}

/// Nothing was asked of anybody yet, so a store that is away for a moment is waited for, and a place among the turns of
/// its key much longer: it is in the queue as long as it has none, and older ones come first. After each wait its key has to
/// be good still.
async fn start(context: &RequestContext, body: Bytes, job: &Job) -> Result<Started, ApiError> {
    let (began, mut job, mut context) = (Instant::now(), job.clone(), context.clone());
    loop {
        if let Some(line) = &job.line {
            let moved = line.moved();
            if !line.is_first() && began.elapsed() < QUEUED {
                let _ = tokio::time::timeout(PLACE_PAUSE, moved).await;
                context.caller = renewed(&context).await?;
                continue;
            }
        }
        let start = Start { past: Past::Begun, job: Some(job.clone()), ..Start::default() };
        let started = Box::pin(Turn::start(context.clone(), body.clone(), start)).await;
        if started.is_err() {
            context.account.waits();
        }
        match started {
            Err(ApiError { code: Code::StorageUnavailable | Code::TooManyBytesInFlight, .. })
                if began.elapsed() < PATIENCE =>
            {
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) if error.code.waits_for_place() && began.elapsed() < QUEUED => {
                let wait = Duration::from_secs(error.retry_after.unwrap_or(1).into()).min(PLACE_PAUSE);
                if let Some(grant) = context.caller.grant().filter(|_| job.line.is_none()) {
                    let line = context.app.runtime.jobs.lines.join(grant.limited_as(), job.created_at);
                    job.line = Some(Arc::new(line));
                }
                match &job.line {
                    Some(line) => drop(tokio::time::timeout(wait, line.moved()).await),
                    None => tokio::time::sleep(wait).await,
                }
            }
            started => return started,
        }
        context.caller = renewed(&context).await?;
    }
}

/// Whoever asked, with what it may do by now.
async fn renewed(context: &RequestContext) -> Result<Caller, ApiError> {
    let earlier = context.caller.grant().map(|grant| grant.for_later());
    let grant = granted(&context.app, &context.caller, earlier.as_ref()).await?;
    Ok(context.caller.with(grant))
}

/// An error that a foreground client would have been answered with.
pub(super) fn failure(error: ApiError) -> Failure {
    let class = match error.code {
        Code::Upstream(class) => class,
        code if code.waits_for_place() || code == Code::RequestBeyondLimit => FailureClass::RateLimit,
        code if code.status().is_server_error() => FailureClass::Server,
        Code::ModelNotFound => FailureClass::ModelNotFound,
        Code::BudgetSpent => FailureClass::Quota,
        Code::InvalidApiKey | Code::ExpiredApiKey => FailureClass::KeyEnded,
        _ => FailureClass::InvalidRequest,
    };
    Failure::new(class, error.message)
}

async fn ordered(orders: &mut watch::Receiver<Order>, seen: Order) -> Order {
    let order = orders.wait_for(|order| *order > seen).await.map(|order| *order);
    match order {
        Ok(order) => order,
        // Who gives orders is gone only when we are.
        Err(_) => std::future::pending().await,
    }
}

enum Step {
    Order(Order),
    Events,
    Flush,
    Again,
    Over,
}

async fn drive(mut turn: Box<Turn>, session: &Session, job: &Job, entered: &Entered) -> Left {
    let mut log = job.has_log.then(|| Log::new(session, job));
    let mut orders = entered.running.order.subscribe();
    let mut stopping = turn.context().app.runtime.stop.subscribe();
    let mut seen = Order::GoOn;
    if log.is_some() {
        turn.as_frames();
    }
    loop {
        let flush_at = log.as_ref().and_then(|log| log.flush_at);
        let step = tokio::select! {
            biased;
            order = ordered(&mut orders, seen) => Step::Order(order),
            // The turn looks for itself whether it must end.
            Ok(()) = stopping.changed() => Step::Again,
            () = due(flush_at) => Step::Flush,
            more = async { turn.next().await.is_some() } => if more { Step::Events } else { Step::Over },
        };
        match step {
            Step::Order(Order::Leave) => return Left::Lost,
            Step::Order(order) => {
                seen = order;
                turn.cancel();
            }
            Step::Over => return turn.not_kept().map_or(Left::Ended, unended),
            Step::Again => {}
            Step::Events | Step::Flush => {
                let Some(log) = &mut log else {
                    turn.events_mut().clear();
                    continue;
                };
                if matches!(step, Step::Flush) {
                    log.flush_at = None;
                }
                if turn.is_stored() {
                    log.publish(&mut turn, true);
                } else if turn.is_storing() {
                    // What waits is stored with the end.
                } else if (matches!(step, Step::Flush) || log.is_due(turn.events_mut().len()))
                    && let Err(error) = log.append(&mut turn).await
                {
                    return unended(&error);
                }
            }
        }
    }
}

/// A turn whose events or whose end the store refused. If it is nobody else's, it gets another one: what it took to run it is free then.
fn unended(error: &Error) -> Left {
    let message = match error {
        Error::Lost | Error::Ended { .. } | Error::NotFound => return Left::Lost,
        Error::Locked | Error::DeletedAncestor => {
            "The conversation was deleted, or somebody else has written to it, while the response was made."
        }
        Error::Full => "The session store is full.",
        _ => "The response could not be stored.",
    };
    Left::Unended(Ending::Failed(Failure::new(FailureClass::Server, message)))
}

async fn due(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// The log of one turn.
struct Log<'j> {
    session: &'j Session,
    job: &'j Job,
    channel: Arc<Channel>,
    appended: Option<Instant>,
    /// When what waits is logged, at the latest.
    flush_at: Option<Instant>,
}

impl<'j> Log<'j> {
    fn new(session: &'j Session, job: &'j Job) -> Self {
        let channel = session.live().channel(job.claim.response_id());
        Self { session, job, channel, appended: None, flush_at: None }
    }

    /// Whether what waits is to be logged now; else it is soon.
    fn is_due(&mut self, bytes: usize) -> bool {
        let now = Instant::now();
        let at = self.appended.map_or(now, |appended| appended + GATHER);
        if now >= at || bytes >= ENOUGH {
            return true;
        }
        self.flush_at = Some(at);
        false
    }

    /// Logs what waits, and shows it. An error: the turn is somebody else's, or the store has been away for too long.
    async fn append(&mut self, turn: &mut Turn) -> Result<(), Error> {
        let Some(mut events) = pending(turn.events_mut()) else { return Ok(()) };
        let (id, began) = (self.job.claim.response_id(), Instant::now());
        let next = events.first + events.events.len() as u64;
        loop {
            match self.session.store().append_events(id, &events, Some(&self.job.claim)).await {
                Ok(()) => break,
                // An earlier try worked, and only its answer was lost.
                Err(Error::OutOfOrder { expected }) if expected == next => break,
                Err(Error::Unavailable(_)) if began.elapsed() < PATIENCE => tokio::time::sleep(PAUSE).await,
                Err(error) => match self.channel.mended(&error, &events) {
                    Some(mended) => events = mended,
                    None => {
                        tracing::info!(response_id = id, %error, "a turn's events could not be logged any more");
                        return Err(error);
                    }
                },
            }
        }
        (self.appended, self.flush_at) = (Some(Instant::now()), None);
        self.publish(turn, false);
        Ok(())
    }

    /// Shows what is in the log now.
    fn publish(&mut self, turn: &mut Turn, over: bool) {
        if let Some(NewEvents { first, events }) = pending(turn.events_mut()) {
            self.channel.publish(first, events, over);
            self.session.tell(self.job.claim.response_id());
        }
        turn.events_mut().clear();
    }
}
