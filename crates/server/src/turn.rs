//! A turn: one response, from the bytes of a request to its terminal event, whoever drives it.
//!
//! ```text
//!   open ──▶ attempt ──▶ answer ──▶ finish          rounds: a hosted tool's result, or a complaint about the
//!    │        ▲  plan × failover       │            answer, goes back to the model; the response goes on
//!    │        └────── rounds ◀─────────┘            compacting: what is too long is summarised first
//!    └─ compacting ─────┘
//! ```
//!
//! A turn is pulled: [`Turn::into_stream`] for server-sent events, [`Turn::next`] for events one by one, [`Turn::run`]
//! for the object. There is no task and no channel: hyper pulls frames, so a slow client slows the upstream, and a client
//! that is gone drops the turn and with it the upstream connection. Dropped before its end, nothing of it is stored.

mod affinity;
mod compacting;
mod count;
mod explain;
mod files;
mod finish;
mod open;
mod rounds;
mod standalone;
#[cfg(test)]
mod tests;
mod tools;
mod truncating;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bridge::{End, Events, Failure, FailureClass, Note, RejectedCall, ResponseWriter, RoundEnd};
use bytes::Bytes;
use futures_util::{FutureExt, Stream};
use tokio::time::Instant;

use crate::account::{Account, Outcome};
use crate::ask::{Alarm, Answer, Watch};
use crate::error::ApiError;
use crate::idempotency::{Held, Key, Known};
use crate::jobs::Job;
use crate::request::RequestContext;
use crate::session::{BegunRecord, Beside, NewRecord, Past, Record, Unstored};
use crate::upstream::{AnswerBody, late};
use compacting::{Compacting, Why};
pub(crate) use count::{Counted, count_input};
pub(crate) use explain::{Explained, Question};
use finish::Storing;
pub(crate) use finish::{Finished, pending};
use rounds::Material;
pub(crate) use standalone::{Compaction, compact};
use tools::{Run, Told};

/// What came in one go is sent on in frames of about this size.
const FRAME: usize = 16 << 10;

/// How long the end of an upstream body is waited for, so that its connection can be used again.
const DRAIN: Duration = Duration::from_millis(50);

/// What a turn is started with besides its request.
#[derive(Debug, Default)]
pub(crate) struct Start {
    /// Where what it continues is.
    pub(crate) past: Past,
    /// Whether a response that is not stored is to be remembered: see [`Turn::take_unstored`].
    pub(crate) remember: bool,
    /// Nobody is asked: the response is only there to be continued.
    pub(crate) warm_up: bool,
    /// The turn is in the store already, and this process runs it.
    pub(crate) job: Option<Job>,
    /// Under which the client sends the same request again.
    pub(crate) key: Option<Key>,
}

/// A request that is to be run in the background.
#[derive(Debug)]
pub(crate) struct Submission {
    pub(crate) context: RequestContext,
    /// What it runs in, with its place, if there is one for it at once.
    pub(crate) run: Option<RequestContext>,
    pub(crate) bytes: Bytes,
    pub(crate) record: NewRecord,
    pub(crate) response: ResponseWriter,
    pub(crate) stream: bool,
    /// It has keys in it that may be written nowhere.
    pub(crate) secret: bool,
    pub(crate) key: Option<Held>,
}

/// What came of a request.
#[derive(Debug)]
pub(crate) enum Started {
    /// An upstream has accepted, and the turn is to be driven.
    Turn(Box<Turn>),
    /// It is to be run in the background.
    Background(Box<Submission>),
    /// The same request was made before, under the same key.
    Known(Known),
}

/// A turn under way.
#[derive(Debug)]
pub(crate) struct Turn {
    context: RequestContext,
    response: ResponseWriter,
    events: Events,
    phase: Phase,
    /// Whether the client wants events.
    stream: bool,
    /// Whether anything of an answer has come.
    has_spoken: bool,
    /// What was not done as asked, as far as it is known before the answer.
    notes: Vec<Note>,
    /// The upstream answer that is read, or was read last.
    answer: Option<Answer>,
    watch: Watch,
    /// Since when the client has what there was, and has not asked for more.
    handed: Option<Instant>,
    waiting: Waiting,
    /// The first event that is to be kept with the trace; none where no bodies are.
    captures_from: Option<u64>,
    /// What another round needs; none where there cannot be one, which is nearly always.
    material: Option<Box<Material>>,
    /// A call whose input does not fit, while a better one is awaited.
    rejected: Option<Box<RejectedCall>>,
    /// What the model was told by hosted tools, item by item.
    told: Vec<Told>,
    /// What is to be stored; none with `store: false`.
    record: Option<Record>,
    /// The key under which the request is known, until its response is.
    key: Option<Held>,
    /// What continues the response as long as it is not stored, where somebody wants to remember it.
    unstored: Option<Unstored>,
    /// What is kept beside its items, where it is stored or remembered.
    kept: Vec<Beside>,
    /// Whether a failed response is kept: whoever got an HTTP error instead has no id to ask for it by.
    keeps_failures: bool,
    /// Why it ended, where the response's own status does not tell.
    cause: Option<Outcome>,
    /// What is wrong with the request, where that was found out late.
    refused: Option<ApiError>,
    /// The object as it was stored and sent.
    object: Bytes,
    not_kept: Option<store::Error>,
}

/// Since when a provider, or a hosted tool, is waited for; a wait that is dropped and begun again is one.
#[derive(Debug)]
struct Waiting {
    account: Account,
    since: Option<Instant>,
    for_tools: bool,
}

impl Waiting {
    fn new(account: &Account) -> Self {
        Self { account: account.clone(), since: None, for_tools: false }
    }

    fn begin(&mut self, for_tools: bool) {
        self.since.get_or_insert_with(Instant::now);
        self.for_tools = for_tools;
    }

    fn end(&mut self, now: Instant) {
        let Some(since) = self.since.take() else { return };
        let (pace, time) = (self.account.pace(), now.saturating_duration_since(since));
        if self.for_tools { pace.waited_for_tools(time) } else { pace.waited_upstream(time) }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.end(Instant::now());
    }
}

type Pending<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What follows the opening.
enum Next {
    Read,
    /// There is nobody to answer.
    Fail(Failure),
    Compact(Compacting, Why),
    /// The model is asked, after what is to be done before.
    Ask,
}

enum Phase {
    /// Nothing was said yet, unless that it is queued.
    Opening {
        next: Next,
        was_queued: bool,
    },
    /// Nothing was said yet, and nobody will be asked.
    WarmUp,
    Reading,
    /// The context is being summarised.
    Compacting(Compacting, Why),
    /// Hosted tools run.
    Running(Box<Run>),
    /// Another upstream answer is asked for. Without one, this is the end.
    Asking(Pending<rounds::Answered>, RoundEnd),
    /// All is there but the terminal event.
    Storing(Storing),
    /// The terminal event is out.
    Draining,
    Over,
}

impl fmt::Debug for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Opening { .. } => "Opening",
            Self::WarmUp => "WarmUp",
            Self::Reading => "Reading",
            Self::Compacting(..) => "Compacting",
            Self::Running(..) => "Running",
            Self::Asking(..) => "Asking",
            Self::Storing(_) => "Storing",
            Self::Draining => "Draining",
            Self::Over => "Over",
        })
    }
}

/// What came of waiting for the upstream.
enum Pulled {
    Bytes(Bytes),
    End(End),
    Silence,
}

impl From<Result<Option<Bytes>, Failure>> for Pulled {
    fn from(chunk: Result<Option<Bytes>, Failure>) -> Self {
        match chunk {
            Ok(Some(bytes)) => Self::Bytes(bytes),
            Ok(None) => Self::End(End::Eof),
            Err(failure) => Self::End(End::Failed(failure)),
        }
    }
}

impl Turn {
    /// Whether the client asked for events.
    pub(crate) const fn wants_events(&self) -> bool {
        self.stream
    }

    /// Whether its stream goes on, and can be asked for again, when the client is gone.
    pub(crate) fn is_resumable(&self) -> bool {
        self.stream
            && self.context.snapshot.config.session.resume_foreground
            && matches!(self.record, Some(Record::New(_)))
            && matches!(self.phase, Phase::Opening { next: Next::Read | Next::Compact(..) | Next::Ask, .. })
    }

    /// What was not done as asked, as far as it is known by now.
    pub(crate) fn notes(&self) -> impl Iterator<Item = &Note> {
        self.notes.iter().chain(self.response.notes())
    }

    /// The turn as server-sent events: pulled frame by frame.
    pub(crate) fn into_stream(mut self: Box<Self>) -> impl Stream<Item = Bytes> + Send {
        self.events = Events::sse();
        self.keeps_failures = true;
        self.notes = Vec::new();
        futures_util::stream::unfold(self, |mut turn| async move {
            turn.advance().await.then(|| (Bytes::from(turn.events.take()), turn))
        })
    }

    /// From now on the turn's events are written, to be pulled with [`Turn::next`].
    pub(crate) fn as_frames(&mut self) {
        self.events = Events::frames();
        self.keeps_failures = true;
    }

    /// Nobody wants the response any more: it ends with what it has. One that is being stored, or has ended, stays as it is.
    pub(crate) fn cancel(&mut self) {
        if matches!(self.phase, Phase::Storing(_) | Phase::Draining | Phase::Over) {
            return;
        }
        if let Some(mut answer) = self.answer.take() {
            answer.leave();
            let end = End::Failed(Failure::new(FailureClass::Server, "The response was cancelled."));
            let _ = answer.end(end, &mut self.response, &mut self.events);
        }
        self.abandon_tools();
        self.cause = Some(Outcome::Cancelled);
        self.response.cancel();
        self.conclude();
    }

    /// What is to be stored when the turn ends.
    pub(crate) const fn take_record(&mut self) -> Option<Record> {
        self.record.take()
    }

    /// The turn is stored: whoever sends the request again is given it, however it ends.
    pub(crate) fn begun(&mut self, record: BegunRecord) {
        self.record = Some(Record::Begun(record));
        self.key.take().into_iter().for_each(Held::keep);
    }

    pub(crate) const fn context(&self) -> &RequestContext {
        &self.context
    }

    /// The events that wait to be taken.
    pub(crate) const fn events_mut(&mut self) -> &mut Events {
        &mut self.events
    }

    pub(crate) const fn response(&self) -> &ResponseWriter {
        &self.response
    }

    /// The events that came since; whoever took them clears them. None at the end. What was not taken when this is dropped
    /// and called again comes with what follows.
    pub(crate) async fn next(&mut self) -> Option<&mut Events> {
        if self.advance().await { Some(&mut self.events) } else { None }
    }

    /// Runs to the end without a word.
    pub(crate) async fn run(mut self: Box<Self>) -> Finished {
        while let Some(events) = self.next().await {
            events.clear();
        }
        self.into_finished().await
    }

    /// Goes on until there is something to send, all events of one upstream read in one go. False at the end.
    async fn advance(&mut self) -> bool {
        if let Some(handed) = self.handed.take() {
            self.context.account.pace().waited_client(handed.elapsed());
        }
        loop {
            match &mut self.phase {
                Phase::Opening { next, was_queued } => {
                    let next = std::mem::replace(next, Next::Read);
                    if *was_queued {
                        self.response.start(&mut self.events);
                    } else {
                        self.response.open(&mut self.events);
                    }
                    match next {
                        Next::Fail(failure) => self.finish(RoundEnd::Failed(failure)),
                        Next::Compact(compacting, why) => self.phase = Phase::Compacting(compacting, why),
                        Next::Read => self.phase = Phase::Reading,
                        Next::Ask => {
                            let message = "There was no answer.";
                            self.ask(RoundEnd::Failed(Failure::new(FailureClass::Server, message)));
                        }
                    }
                }
                Phase::WarmUp => {
                    self.response.open(&mut self.events);
                    self.finish(RoundEnd::Completed);
                }
                Phase::Reading => match self.pull().await {
                    Pulled::Bytes(bytes) => {
                        self.feed(&bytes);
                        self.gather();
                    }
                    Pulled::Silence => self.response.heartbeat(&mut self.events),
                    Pulled::End(end) => self.end_round(end),
                },
                Phase::Compacting(..) | Phase::Running(..) | Phase::Asking(..) => self.go_on().await,
                Phase::Storing(_) => self.stored().await,
                Phase::Draining => {
                    self.drain().await;
                    self.phase = Phase::Over;
                }
                // What was not taken is still there to be taken.
                Phase::Over => return !self.events.is_empty(),
            }
            if !self.events.is_empty() {
                self.watch.spoke();
                self.context.account.pace().told(self.response.events());
                self.capture_events();
                // What runs by itself waits for the store, not for a client.
                let runs_by_itself = matches!(self.record, Some(Record::Begun(_)));
                self.handed = (!runs_by_itself).then(Instant::now);
                return true;
            }
        }
    }

    /// Waits for the upstream, or for a deadline.
    async fn pull(&mut self) -> Pulled {
        let Some(answer) = self.answer.as_mut() else { return Pulled::End(End::Eof) };
        self.waiting.begin(false);
        let pulled = tokio::select! {
            biased;
            chunk = answer.body.chunk() => {
                let now = self.watch.heard(self.context.account.pace());
                self.waiting.end(now);
                return chunk.into();
            }
            () = self.context.must_end() => Pulled::End(self.stopped()),
            alarm = self.watch.alarm() => match alarm {
                Alarm::Heartbeat => Pulled::Silence,
                Alarm::Late(_) if answer.is_finished() => Pulled::End(End::Eof),
                Alarm::Late(deadline) => {
                    self.cause = Some(Outcome::Late(deadline));
                    Pulled::End(End::Failed(late(deadline)))
                }
            },
        };
        self.waiting.end(Instant::now());
        pulled
    }

    /// What is about to be sent is kept with the trace, where bodies are.
    fn capture_events(&mut self) {
        let Some(next) = &mut self.captures_from else { return };
        let mut events = Vec::new();
        // Of frames, those that nobody took the last time are still here; events of a stream are always taken.
        for (frame, json) in self.events.iter() {
            if frame.sequence >= *next {
                events.extend_from_slice(json);
                events.push(b'\n');
                *next = frame.sequence + 1;
            }
        }
        if self.events.iter().next().is_none() {
            events.extend_from_slice(self.events.bytes());
        }
        if let Some(answer) = &self.answer {
            answer.redactor.bytes(&mut events, 0);
        }
        self.context.account.capture_events(&events);
    }

    fn stopped(&mut self) -> End {
        self.cause = Some(Outcome::Stopped);
        End::Failed(Failure::new(FailureClass::Shutdown, self.context.must_end_because().message))
    }

    /// Takes what more is there already: a read may bring many chunks, and a write to our client for each of them
    /// costs more than all else together.
    fn gather(&mut self) {
        while matches!(self.phase, Phase::Reading) && self.events.len() < FRAME {
            let Some(answer) = self.answer.as_mut() else { return };
            let Some(chunk) = answer.body.chunk().now_or_never() else { return };
            match chunk.into() {
                Pulled::Bytes(bytes) => self.feed(&bytes),
                Pulled::End(end) => self.end_round(end),
                Pulled::Silence => {}
            }
        }
    }

    fn feed(&mut self, bytes: &Bytes) {
        let Some(answer) = self.answer.as_mut() else { return };
        let end = answer.feed(bytes, &mut self.response, &mut self.events);
        if !self.has_spoken {
            self.has_spoken = true;
            self.context.account.spoke();
        }
        match end {
            Some(end) => self.end_round(end),
            None if answer.is_finished() => self.watch.expect_end(),
            None => {}
        }
    }

    /// Reads the rest of a finished body, so that its connection goes back to the pool.
    async fn drain(&mut self) {
        let Some(Answer { mut body, .. }) = self.answer.take() else { return };
        let end = async { while let Ok(Some(_)) = body.chunk().await {} };
        let mut end = std::pin::pin!(end);
        if end.as_mut().now_or_never().is_none() {
            let _ = tokio::time::timeout(DRAIN, end).await;
        }
    }
}

/// Reads what has come already of the rest of a body: if that is all, its connection goes back to the pool.
fn drain_now(mut body: AnswerBody) {
    let _ = async { while let Ok(Some(_)) = body.chunk().await {} }.now_or_never();
}
