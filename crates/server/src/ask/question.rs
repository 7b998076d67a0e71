//! A question of godex's own, inside a request of a client: for a summary, or for what is in an image. It goes the way of
//! any other: the same failover, breakers, retries, deadlines, and the end of the server ends it. Whoever drops it drops
//! the upstream connection.
//!
//! Its answer is read to its end without a word and is nobody's response: it has no id that a client could ask for,
//! nothing of it is stored, no tool is run for it, and what it cost is in the account beside the response's usage, not in
//! it.

use std::time::Duration;

use bridge::{End, Events, Failure, FailureClass, Hosting, IncompleteReason, Policy, ResponseWriter, RoundEnd};
use bytes::Bytes;
use tokio::time::Instant;
use wire::json::Kept;
use wire::responses::{CreateResponse, Usage};

use super::answer::Answer;
use super::attempt::{self, Asked, Attempt, Unanswered};
use super::watch::{Alarm, Watch};
use crate::account::Deadline;
use crate::body;
use crate::clock;
use crate::items;
use crate::request::RequestContext;
use crate::upstream::{Failover, Refused, late};

/// Nobody waits for a sign of life from it: whoever asks gives their own.
const NO_HEARTBEAT: Duration = Duration::from_hours(24);

/// Nothing that is left out of our own question is worth refusing it.
const POLICY: Policy = Policy { strict: false, repair_history: true };

/// What the model said.
#[derive(Debug)]
pub(crate) struct OwnAnswer {
    /// Never blank.
    pub(crate) text: String,
    pub(crate) usage: Option<Usage>,
    /// It ends where the model ended it, and not at a limit of its length.
    pub(crate) whole: bool,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) struct NoAnswer {
    pub(crate) failure: Failure,
    /// The deadline that was missed, if that is what it was.
    pub(crate) deadline: Option<Deadline>,
}

impl From<Failure> for NoAnswer {
    fn from(failure: Failure) -> Self {
        Self { failure, deadline: None }
    }
}

impl From<NoAnswer> for Unanswered {
    fn from(NoAnswer { failure, deadline }: NoAnswer) -> Self {
        Self::Refused(Refused::from(failure).missed(deadline), Vec::new())
    }
}

impl From<Unanswered> for NoAnswer {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::Invalid(error) => Failure::new(FailureClass::InvalidRequest, error.message).into(),
            Unanswered::Refused(Refused { failure, deadline, .. }, _) => Self { failure, deadline },
        }
    }
}

/// Asks `request`, the body of a create request that offers no tools; its `model` does not matter, the targets decide. They
/// may be asked several questions, one after the other: the one that has answered comes first.
pub(crate) async fn ask(
    context: &RequestContext,
    failover: &mut Failover,
    request: Vec<u8>,
    accepted: impl FnOnce() + Send,
) -> Result<OwnAnswer, NoAnswer> {
    failover.next_round();
    let held = context.app.runtime.budget.hold(request).map_err(Unanswered::Invalid)?;
    let Attempt { reader, accepted: upstream, deadlines, .. } = send(context, failover, &held).await?;
    drop(held);
    accepted();
    let mut answer = Answer::new(reader, upstream);
    let mut response =
        ResponseWriter::new(clock::ids(), clock::unix_seconds(), wire::responses::Tail::default(), false);
    let watch = Watch::new(deadlines, NO_HEARTBEAT);
    let (end, deadline) = read(context, &mut answer, watch, &mut response).await;
    let end = answer.end(end, &mut response, &mut Events::silent());
    context.account.used_beside(response.usage());
    context.reported(answer.reported());
    let whole = match end {
        RoundEnd::Completed => true,
        RoundEnd::Incomplete(IncompleteReason::MaxOutputTokens) => false,
        RoundEnd::Incomplete(IncompleteReason::ContentFilter) => {
            return Err(Failure::new(FailureClass::ContentPolicy, "The provider held its answer back.").into());
        }
        RoundEnd::Hosted(_) | RoundEnd::Rejected(_) | RoundEnd::Paused => return Err(empty().into()),
        RoundEnd::Failed(mut failure) => {
            answer.redactor.failure(&mut failure);
            return Err(NoAnswer { failure, deadline });
        }
    };
    let mut object = Vec::new();
    response.finish(RoundEnd::Completed);
    response.object(0, false, &mut object);
    let text = items::answer_text(&object);
    if text.trim().is_empty() {
        return Err(empty().into());
    }
    Ok(OwnAnswer { text, usage: response.usage(), whole })
}

fn empty() -> Failure {
    Failure::new(FailureClass::Empty, "The model gave no text as its answer.")
}

async fn send(context: &RequestContext, failover: &mut Failover, request: &Bytes) -> Result<Attempt, Unanswered> {
    let Kept { raw: document, value: request } =
        body::parse::<Kept<'_, CreateResponse<'_>>>(request).map_err(Unanswered::Invalid)?;
    let asked = Asked {
        request: &request,
        document,
        past: &[],
        policy: POLICY,
        hosted: (None, Hosting::default()),
        asks_input_again: false,
    };
    attempt::send(context, failover, &asked).await
}

/// Reads until the answer is over, or too late. The events of it go nowhere.
async fn read(
    context: &RequestContext,
    answer: &mut Answer,
    mut watch: Watch,
    response: &mut ResponseWriter,
) -> (End, Option<Deadline>) {
    let mut nowhere = Events::silent();
    loop {
        let since = Instant::now();
        let chunk = tokio::select! {
            biased;
            chunk = answer.body.chunk() => chunk,
            () = context.must_end() => {
                let why = context.must_end_because().message;
                return (End::Failed(Failure::new(FailureClass::Shutdown, why)), None);
            }
            alarm = watch.alarm() => match alarm {
                Alarm::Heartbeat => continue,
                Alarm::Late(_) if answer.is_finished() => return (End::Eof, None),
                Alarm::Late(deadline) => return (End::Failed(late(deadline)), Some(deadline)),
            },
        };
        let now = watch.heard(context.account.pace());
        context.account.pace().waited_upstream(now - since);
        match chunk {
            Ok(Some(bytes)) => {
                if let Some(end) = answer.feed(&bytes, response, &mut nowhere) {
                    return (end, None);
                }
                if answer.is_finished() {
                    watch.expect_end();
                }
            }
            Ok(None) => return (End::Eof, None),
            Err(failure) => return (End::Failed(failure), None),
        }
    }
}
