//! The account of one request: everything that is known about it meets here. It is closed when its last holder is gone,
//! whatever happened: the answer was sent, the client left, the server stopped. Closing it writes the one line that
//! each request leaves in the log, and gives what is known to whoever counts it or keeps it ([`Observers`]).
//!
//! Nothing that a client, a model or a provider wrote is in it but names: the model, the path, the request's id.

mod charge;
mod line;

use std::net::IpAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bridge::{FailureClass, Note};
use http::{HeaderMap, HeaderValue, Method};
use tokio::time::Instant;
use wire::id::Id;
use wire::responses::Usage;

use crate::caller::Caller;
use crate::clock;
use crate::error::ApiError;
use crate::limits::{Admitted, Permit, Rates};
use crate::observe::Observers;
use crate::pace::Pace;
use crate::prefix::Shared;
use crate::presence::Present;
use crate::span::{Propagated, Span};
use crate::spending::{Reservation, Spending};
use crate::trace::{Asked, Attempted, Captured, Facts, Head, Kind, Round, Tape, ToolCall, Trace};

pub(crate) use crate::trace::{Charge, Deadline, Outcome};

/// Lines of the log that could not be written. Whoever writes the log counts them; `/health` shows them.
pub static LOST_LOG_LINES: AtomicU64 = AtomicU64::new(0);

/// The longest `x-request-id` of a client that is taken over.
const LONGEST_ID: usize = 128;

/// What is kept of a model's name.
const LONGEST_MODEL: usize = 128;

/// What the log shows of a path.
const LONGEST_PATH: usize = 256;

/// The account of one request. Clones are the same account.
#[derive(Debug, Clone)]
pub(crate) struct Account(Arc<Open>);

#[derive(Debug)]
struct Open {
    began: Instant,
    /// The same moment on the clock of people, in microseconds since 1970.
    began_at: u64,
    request_id: HeaderValue,
    method: Method,
    path: Box<str>,
    /// What changes with every chunk, and is entered without a lock.
    pace: Pace,
    entries: Mutex<Entries>,
}

/// A body that may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    /// Of the client.
    Request,
    /// To the provider of the last attempt, and of it.
    ChatRequest,
    ChatResponse,
    /// To the client.
    Response,
}

/// What was entered so far.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    /// What stays of it.
    facts: Facts,
    /// Its tenant's work is under way until this is gone.
    present: Option<Present>,
    /// Whom the last body went to, and how many tokens it was taken to have, until that is known.
    estimated: Option<(String, String, u64)>,
    /// What holds the turn's place, among those of its key and all.
    permit: Option<Permit>,
    /// What is left of its key's limits.
    rates: Rates,
    /// What is set aside of its budgets while it runs.
    reservation: Option<Reservation>,
    /// Where what was used is counted.
    spending: Option<Arc<Spending>>,
    /// Who looks at it when it is over; nobody at one whose server is not known yet.
    observers: Option<Arc<Observers>>,
    /// Nothing is done in it that anybody is told of.
    untold: bool,
}

impl Account {
    /// Opens the account of a request whose head has come. The client's own `x-request-id` is taken if it is plain.
    pub(crate) fn open(method: &Method, path: &str, headers: &HeaderMap, own_id: &Id) -> Self {
        let theirs = headers.get("x-request-id").filter(|id| is_plain(id.as_bytes()));
        let ours = || HeaderValue::try_from(own_id.as_str()).unwrap_or_else(|_| HeaderValue::from_static("req"));
        let facts = Facts { span: Span::of(headers).map(Box::new), ..Facts::default() };
        Self(Arc::new(Open {
            began: Instant::now(),
            began_at: clock::unix_micros(),
            request_id: theirs.cloned().unwrap_or_else(ours),
            method: method.clone(),
            path: path.chars().take(LONGEST_PATH).collect(),
            pace: Pace::default(),
            entries: Mutex::new(Entries { facts, ..Entries::default() }),
        }))
    }

    /// Opens the account of a background turn, under the id of the request that asked for it.
    pub(crate) fn of_job(request_id: &str) -> Self {
        Self(Arc::new(Open {
            began: Instant::now(),
            began_at: clock::unix_micros(),
            request_id: HeaderValue::try_from(request_id).unwrap_or_else(|_| HeaderValue::from_static("req")),
            method: Method::POST,
            path: "/v1/responses".into(),
            pace: Pace::default(),
            entries: Mutex::default(),
        }))
    }

    /// Opens the account of something that only looks, and asks nobody: it leaves no line.
    pub(crate) fn of_nobody() -> Self {
        let account = Self::of_job("req");
        account.enter().untold = true;
        account
    }

    /// What it has cost so far, as far as prices are known.
    pub(crate) fn cost(&self) -> Option<u64> {
        self.enter().facts.cost()
    }

    /// Who looks at it when it is over.
    pub(crate) fn observed_by(&self, observers: &Arc<Observers>) {
        let mut entries = self.enter();
        if entries.facts.span.is_none() {
            entries.facts.span = observers.begin_trace().map(Box::new);
        }
        entries.observers = Some(Arc::clone(observers));
    }

    /// Who looks at it, once that is known.
    pub(crate) fn observers(&self) -> Option<Arc<Observers>> {
        self.enter().observers.clone()
    }

    /// How the request goes on, chunk by chunk.
    pub(crate) fn pace(&self) -> &Pace {
        &self.0.pace
    }

    /// What the request has begun goes on in that account, as a part of the same trace.
    pub(crate) fn passes_trace_to(&self, other: &Self) {
        let child = self.enter().facts.span.as_deref().map(|span| Box::new(span.child()));
        other.enter().facts.span = child;
    }

    /// What is sent to a provider along with the try that was entered last.
    pub(crate) fn propagated(&self) -> Option<Propagated> {
        let entries = self.enter();
        let number = sent_before(&entries.facts.attempts);
        entries.facts.span.as_deref().map(|span| span.propagated(number))
    }

    pub(crate) fn began(&self) -> Instant {
        self.0.began
    }

    pub(crate) fn request_id(&self) -> &HeaderValue {
        &self.0.request_id
    }

    fn enter(&self) -> MutexGuard<'_, Entries> {
        self.0.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn elapsed(&self) -> Duration {
        self.0.began.elapsed()
    }

    /// What it is for, of one that is refused before it gets there.
    pub(crate) fn heads_for(&self, route: &'static str) {
        self.enter().facts.route = Some(route);
    }

    /// The model that is asked for, whether anybody has it or not.
    pub(crate) fn names_model(&self, model: &str) {
        self.enter().facts.model = Some(model.chars().take(LONGEST_MODEL).collect());
    }

    pub(crate) fn routed(&self, route: &'static str, caller: &Caller) {
        let mut entries = self.enter();
        entries.facts.route = Some(route);
        entries.facts.caller = Some(caller.clone());
    }

    /// Where the client is.
    pub(crate) fn came_from(&self, address: IpAddr) {
        let address = address.to_canonical();
        if !address.is_loopback() {
            self.enter().facts.address = Some(address);
        }
    }

    /// Where the client is; None: on this machine.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.enter().facts.address
    }

    /// The request is work for its tenant, until this account closes.
    pub(crate) fn works_for(&self, present: Present) {
        self.enter().present = Some(present);
    }

    /// What this request has begun goes on in that account.
    pub(crate) fn passes_work_to(&self, other: &Self) {
        let present = self.enter().present.clone();
        other.enter().present = present;
    }

    pub(crate) fn received(&self, bytes: usize) {
        self.enter().facts.received += bytes as u64;
    }

    /// A response is being made, of a model that the client named.
    pub(crate) fn opened(&self, response_id: &Id, model: &str) {
        let mut entries = self.enter();
        entries.facts.response_id = Some(response_id.clone());
        if entries.facts.model.as_deref() != Some(model) {
            entries.facts.model = Some(model.chars().take(LONGEST_MODEL).collect());
        }
        entries.facts.times.opened = Some(self.elapsed());
    }

    /// What it continues was read.
    pub(crate) fn read_past(&self, took: Duration) {
        self.enter().facts.times.reading = Some(took);
    }

    pub(crate) fn planned(&self, took: Duration) {
        self.enter().facts.times.planning += took;
    }

    /// How the response is driven, where its request does not tell.
    pub(crate) fn driven(&self, kind: Kind) {
        self.enter().facts.kind = Some(kind);
    }

    /// A response is asked for so. From here on it is known what may be kept of it.
    pub(crate) fn asks(&self, asked: Asked) {
        let mut entries = self.enter();
        entries.facts.captured = entries.observers.as_ref().and_then(|observers| observers.traces.capture(&asked));
        let kind = if asked.stream { Kind::Stream } else { Kind::Sync };
        entries.facts.kind.get_or_insert(kind);
        entries.facts.asked = Some(Box::new(asked));
    }

    /// It goes on in the background, in an account of its own.
    pub(crate) fn put_off(&self) {
        self.enter().facts.put_off = true;
    }

    /// A target is asked, or would be if it were not known to fail.
    pub(crate) fn asked(&self, target: String, replica: Option<Arc<str>>, wire: &'static str, bytes: usize) {
        /// No policy allows as many; an account has to end somewhere.
        const MOST: usize = 64;
        let began = self.elapsed();
        self.0.pace.asks();
        let attempts = &mut self.enter().facts.attempts;
        if attempts.len() < MOST {
            let (outcome, status, ended, usage) = (None, None, None, None);
            let took = Duration::ZERO;
            attempts.push(Attempted { target, replica, wire, bytes, status, outcome, began, took, ended, usage });
        }
    }

    /// What came of asking it.
    pub(crate) fn attempted(&self, outcome: &'static str, status: Option<u16>, took: Duration) {
        self.0.pace.waited_upstream(took);
        let is_unsent = outcome == FailureClass::Unreachable.code() && !self.0.pace.went_out();
        if let Some(attempt) = self.enter().facts.attempts.last_mut() {
            (attempt.outcome, attempt.status, attempt.took) = (Some(outcome), status, took);
            // Whoever could not be reached was sent nothing.
            attempt.bytes = if is_unsent { 0 } else { attempt.bytes };
        }
    }

    /// Whether the last target that was asked has the request, and has not said that it will not answer it: it is waited for,
    /// was for too long, or its answer broke off before there was anything in it.
    pub(crate) fn is_with_upstream(&self) -> bool {
        const WORKED_ON: [&str; 2] = [FailureClass::Timeout.code(), FailureClass::Truncated.code()];
        let last = self.enter().facts.attempts.last().map(|attempt| attempt.outcome);
        self.0.pace.went_out() && last.is_some_and(|outcome| outcome.is_none_or(|outcome| WORKED_ON.contains(&outcome)))
    }

    /// An upstream answer has ended that the response is made of.
    pub(crate) fn round(&self, end: &'static str, usage: Option<Usage>) {
        let facts = &mut self.enter().facts;
        facts.rounds.push(Round { attempt: facts.attempts.len(), end, usage });
    }

    /// A hosted tool has run.
    pub(crate) fn tool_called(&self, mut call: ToolCall) {
        /// Rounds and their calls are bounded, but not so closely.
        const MOST: usize = 256;
        call.ended = self.elapsed();
        let calls = &mut self.enter().facts.tool_calls;
        if calls.len() < MOST {
            calls.push(call);
        }
    }

    /// An upstream answer had so many events.
    pub(crate) fn heard(&self, events: u64) {
        self.enter().facts.heard += events;
    }

    /// What the client is told of an error.
    pub(crate) fn explained(&self, message: &str) {
        self.enter().facts.message = Some(message.into());
    }

    /// What a body is written to that comes in pieces; None: bodies are not kept.
    pub(crate) fn tape(&self) -> Option<Tape> {
        self.enter().facts.captured.as_deref().map(Captured::tape)
    }

    /// A body, if bodies are kept. It is looked at only then. Those of attempts are numbered.
    pub(crate) fn capture(&self, body: Body, tape: Option<Tape>, redact: impl FnOnce(&mut Vec<u8>)) {
        let Some(tape) = tape else { return };
        let facts = &mut self.enter().facts;
        let attempt = facts.attempts.len();
        if let Some(captured) = &mut facts.captured {
            let name = match body {
                Body::Request => "request".to_owned(),
                Body::ChatRequest => format!("chat_request.{attempt}"),
                Body::ChatResponse => format!("chat_response.{attempt}"),
                Body::Response => "response".to_owned(),
            };
            captured.push(name, tape, redact);
        }
    }

    /// Events that the client is sent, if bodies are kept.
    pub(crate) fn capture_events(&self, events: &[u8]) {
        if let Some(captured) = &mut self.enter().facts.captured {
            captured.sent(events);
        }
    }

    /// An upstream has taken the request.
    pub(crate) fn accepted(&self, connecting: Duration) {
        let mut entries = self.enter();
        entries.facts.times.connecting = Some(connecting);
        entries.facts.times.first_byte = entries.facts.times.first_byte.or_else(|| Some(self.elapsed()));
    }

    /// Something of an answer has come.
    pub(crate) fn spoke(&self) {
        self.enter().facts.times.first_token = Some(self.elapsed());
    }

    /// The last upstream answer of the response is over.
    pub(crate) fn last_byte(&self) {
        self.enter().facts.times.last_byte = Some(self.elapsed());
    }

    pub(crate) fn committed(&self, took: Duration) {
        self.enter().facts.times.committing = Some(took);
    }

    pub(crate) fn noted(&self, notes: &[Note]) {
        self.enter().facts.notes.extend_from_slice(notes);
    }

    pub(crate) fn used(&self, usage: Option<Usage>) {
        self.enter().facts.usage = usage;
    }

    /// A question of godex's own was answered, at this cost.
    pub(crate) fn used_beside(&self, usage: Option<Usage>) {
        let mut entries = self.enter();
        if let Some(usage) = usage {
            entries.facts.usage_beside = Some(entries.facts.usage_beside.unwrap_or_default().plus(usage));
        }
    }

    /// The turn may run, or not; it keeps its place, and what is set aside of its budgets, until it is over or this account
    /// closes.
    pub(crate) fn admitted(
        &self,
        Admitted { permit, rates }: Admitted,
        reservation: Option<Reservation>,
    ) -> Result<(), ApiError> {
        let mut entries = self.enter();
        entries.rates = rates;
        entries.permit = Some(permit?);
        if reservation.is_some() {
            entries.reservation = reservation;
        }
        Ok(())
    }

    /// What it may run with, if tokens are held back for it: whoever takes it brings another.
    pub(crate) fn permit_with_tokens(&self) -> Option<Permit> {
        self.enter().permit.take_if(|permit| permit.has_tokens())
    }

    /// Whether it may run.
    pub(crate) fn is_permitted(&self) -> bool {
        self.enter().permit.is_some()
    }

    /// Whether anybody is told of it when it closes.
    pub(crate) fn is_told(&self, told: bool) {
        self.enter().untold = !told;
    }

    /// The turn did not begin, and waits to do so: its place, and what was set aside for it, are others' meanwhile.
    pub(crate) fn waits(&self) {
        let held = {
            let mut entries = self.enter();
            (entries.permit.take(), entries.reservation.take())
        };
        drop(held);
    }

    /// The client gets an error instead of an answer. If nobody was asked, it was no request, and what is left is as before.
    pub(crate) fn refused(&self) {
        let permit = {
            let mut entries = self.enter();
            let unasked = entries.facts.attempts.is_empty() && entries.facts.charges.is_empty();
            entries.permit.take_if(|_| unasked)
        };
        if let Some(permit) = permit {
            self.limited(permit.undo());
        }
    }

    /// So much is left of the limits of whoever asks.
    pub(crate) fn limited(&self, rates: Rates) {
        self.enter().rates = rates;
    }

    /// Writes into the head of the answer whose it is, and what is left of the limits.
    pub(crate) fn sign(&self, headers: &mut HeaderMap) {
        self.enter().rates.write(&self.0.request_id, headers);
    }

    /// What is used is to be counted here.
    pub(crate) fn counted_by(&self, spending: &Arc<Spending>) {
        self.enter().spending = Some(Arc::clone(spending));
    }

    /// So much of the turn's budgets is set aside until it is over or this account closes.
    pub(crate) fn reserved(&self, reservation: Reservation) {
        self.enter().reservation = Some(reservation);
    }

    /// The turn is over, and only to be stored and told: its place, and what was held back for it, are others' from now on.
    pub(crate) fn turn_is_over(&self) {
        let now = Instant::now();
        let mut entries = self.enter();
        let charges = std::mem::take(&mut entries.facts.charges);
        entries.settle(&charges, now);
        entries.facts.charges = charges;
        drop(entries.reservation.take());
    }

    /// What was set aside is not any more; whether anything was.
    pub(crate) fn not_reserved(&self) -> bool {
        self.enter().reservation.take().is_some()
    }

    /// An upstream answer has ended, of this turn or of a question of godex's own; or a hosted tool was called. It counts
    /// at once: a turn may be long.
    pub(crate) fn charged(&self, charge: Charge) {
        let (now, mut entries) = (self.elapsed(), self.enter());
        if let Some(attempt) = entries.facts.attempts.iter_mut().find(|attempt| attempt.awaits(&charge)) {
            (attempt.ended, attempt.usage) = (Some(now), Some(charge.usage));
        }
        entries.charge(charge);
    }

    /// A body of about so many tokens went to that model.
    pub(crate) fn estimated(&self, provider: &str, model: &str, tokens: u64) {
        self.enter().estimated = Some((provider.to_owned(), model.to_owned(), tokens));
    }

    pub(crate) fn take_estimated(&self) -> Option<(String, String, u64)> {
        self.enter().estimated.take()
    }

    /// So much of the body that went out was in the one before.
    pub(crate) fn shared(&self, prefix: Shared) {
        self.enter().facts.prefix = Some(prefix);
    }

    pub(crate) fn response_id(&self) -> Option<Id> {
        self.enter().facts.response_id.clone()
    }

    /// The turn came to this end.
    pub(crate) fn ended(&self, outcome: Outcome) {
        self.enter().facts.outcome = Some(outcome);
    }

    /// The head of the answer is made.
    pub(crate) fn answered(&self, status: u16, error: Option<&'static str>) {
        let mut entries = self.enter();
        entries.facts.status = Some(status);
        entries.facts.error = error;
    }

    /// So much was said to the client; whether that is all of it, nobody knows.
    pub(crate) fn sent(&self, bytes: u64) {
        self.enter().facts.sent = bytes;
    }

    /// The answer's body is gone: so much of it was taken, and whether that was all.
    pub(crate) fn delivered(&self, bytes: u64, whole: bool) {
        let mut entries = self.enter();
        entries.facts.sent = bytes;
        match entries.facts.outcome {
            _ if !whole => entries.facts.outcome = Some(Outcome::ClientLeft),
            None => entries.facts.outcome = Some(Outcome::Answered),
            Some(_) => {}
        }
    }
}

/// How many of these tries, the last one left out, have a span of their own.
fn sent_before(attempts: &[Attempted]) -> u32 {
    let before = attempts.len().saturating_sub(1);
    let sent = attempts[..before].iter().filter(|attempt| attempt.outcome != Some(Attempted::CONNECTION_ENDED));
    u32::try_from(sent.count()).unwrap_or(u32::MAX)
}

/// Visible ASCII, and not too much of it.
fn is_plain(id: &[u8]) -> bool {
    (1..=LONGEST_ID).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic)
}

impl Drop for Open {
    fn drop(&mut self) {
        let now = Instant::now();
        let took = now.saturating_duration_since(self.began);
        let mut entries = std::mem::take(self.entries.get_mut().unwrap_or_else(PoisonError::into_inner));
        let mut facts = std::mem::take(&mut entries.facts);
        // Whoever left, or was stopped, while a provider was waited for.
        if let Some(waiting) = facts.attempts.last_mut().filter(|attempt| attempt.outcome.is_none()) {
            waiting.took = took.saturating_sub(waiting.began);
            self.pace.waited_upstream(waiting.took);
        }
        self.pace.settle(&mut facts.times.upstream, &mut facts.times.tools, &mut facts.times.client);
        facts.gaps = self.pace.gaps();
        facts.told = self.pace.events_told();
        entries.settle(&facts.charges, now);
        facts.forget_names();
        if entries.untold {
            return;
        }
        let (method, path) = (std::mem::take(&mut self.method), std::mem::take(&mut self.path));
        let head = Head { method, path, request_id: self.request_id.clone(), began_at: self.began_at, took };
        let trace = Trace { head, facts };
        line::write(&trace);
        if let Some(observers) = entries.observers.take() {
            observers.observe(trace);
        }
    }
}
