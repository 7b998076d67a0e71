//! The response that is being written: its id, its numbers, its items, its usage, its end. It knows no wire of any
//! upstream; readers of answers write into it, one after the other.
//!
//! ```text
//!  open() ─▶ an answer's items ─▶ item() … ─▶ the next answer's items ─▶ finish() ─▶ object() ─▶ terminal()
//!                    ▲                │
//!                    └── discard() ◀──┘   asked again: its items are forgotten, what it cost is not
//! ```
//!
//! A response that is not worked on at once opens with `open_queued()`; who then works on it, maybe in another process,
//! goes on with `resume()` and `start()`.
//!
//! A response may be made of several answers: `output_index` and `sequence_number` run on, ids never repeat, usage adds
//! up. There is exactly one terminal event. The object is the fold of the events whatever the events are written into.

mod call_item;
mod citing;
mod client_call;
mod hosted;
mod hosted_kind;
mod part;
mod slot;

use std::borrow::Cow;
use std::collections::BTreeSet;

use wire::id::{Id, IdKind, Ids};
use wire::json::{ObjectWriter, Text};
use wire::responses::{EventKind, ServiceTier, Snapshot, Status, Tail, Usage};

pub(crate) use call_item::{CUSTOM, CallItem, CallKind, FUNCTION, Named};
pub(crate) use client_call::CallForm;
pub use client_call::ClientCall;
pub use hosted::{HostedEnd, HostedItem, HostedStart};
pub(crate) use hosted_kind::HostedKind;
pub(crate) use part::{Part, PartIndex, PartKind};
pub(crate) use slot::{Slot, SlotKind};

use crate::client::{ClientForms, Heartbeat};
use crate::dialect::RefusalForm;
use crate::escaped::{Escaped, EscapedBuf};
use crate::events::{DeltaHead, Events};
use crate::failure::{Failure, FailureClass};
use crate::note::{Action, Note};
use crate::reader::{IncompleteReason, RejectedCall, RoundEnd};

/// A response that is odd in more ways than this is not described any further.
const MAX_NOTES: usize = 32;

#[derive(Debug, Clone)]
pub struct ResponseWriter {
    id: Id,
    created_at: u64,
    /// What each snapshot repeats of the request.
    echo: Tail,
    /// Whether the response is meant to be stored.
    store: bool,
    /// How its client reads it.
    forms: ClientForms,
    /// How the provider says that it serves the request.
    service_tier: ServiceTier,
    sequence: u64,
    ids: Ids,
    adopted: Adopted,
    output: Output,
    rounds: Rounds,
    usage: Option<Usage>,
    notes: Vec<Note>,
    outcome: Option<Outcome>,
}

/// The closed items, comma between them, as the object shows them.
#[derive(Debug, Clone, Default)]
struct Output {
    items: Vec<u8>,
    count: u32,
}

/// The upstream's ids that were taken over: the next answer may use them again, and must not.
#[derive(Debug, Clone, Default)]
struct Adopted {
    items: BTreeSet<String>,
    /// Escaped.
    calls: BTreeSet<String>,
}

/// How far the response was.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    items: usize,
    count: u32,
    sequence: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Rounds {
    /// Where the answer that ended last began.
    last: Mark,
    /// Where the next one begins.
    next: Mark,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    Completed,
    Incomplete(IncompleteReason),
    Failed(Failure),
    Cancelled,
}

impl ResponseWriter {
    /// `echo`: see [`crate::echo`]. The first of the ids is the response's own.
    pub fn new(mut ids: Ids, created_at: u64, echo: Tail, store: bool) -> Self {
        Self::with_id(ids.make(IdKind::Response), ids, created_at, echo, store)
    }

    /// A response that has its id already: `ids` are for what is in it ([`Ids::of`]).
    pub fn with_id(id: Id, ids: Ids, created_at: u64, echo: Tail, store: bool) -> Self {
        Self {
            id,
            created_at,
            echo,
            store,
            forms: ClientForms::EXACT,
            service_tier: ServiceTier::default(),
            sequence: 0,
            ids,
            adopted: Adopted::default(),
            output: Output::default(),
            rounds: Rounds::default(),
            usage: None,
            notes: Vec::new(),
            outcome: None,
        }
    }

    /// For a client that reads these forms.
    #[must_use]
    pub const fn in_forms(mut self, forms: ClientForms) -> Self {
        self.forms = forms;
        self
    }

    pub(crate) const fn forms(&self) -> ClientForms {
        self.forms
    }

    pub const fn id(&self) -> &Id {
        &self.id
    }

    /// What was odd about the answers.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// The same, to take out of them what nobody may see.
    pub fn notes_mut(&mut self) -> &mut [Note] {
        &mut self.notes
    }

    /// What all answers cost that have ended.
    pub const fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// What became of it; none before [`ResponseWriter::finish`].
    pub fn status(&self) -> Option<Status> {
        self.outcome.as_ref().map(Outcome::status)
    }

    /// How many bytes the closed items have.
    pub const fn content(&self) -> usize {
        self.output.items.len()
    }

    /// Notes an oddity, once.
    pub fn note(&mut self, note: Note) {
        if self.notes.len() < MAX_NOTES && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    pub(crate) fn remark(&mut self, action: Action, path: &'static str, message: impl Into<Cow<'static, str>>) {
        self.note(Note::new(action, path, message));
    }

    /// An id for something in this response.
    pub fn make_id(&mut self, kind: IdKind) -> Id {
        self.ids.make(kind)
    }

    /// `created`, `in_progress`: as soon as an upstream accepted the request.
    pub fn open(&mut self, out: &mut Events) {
        self.lifecycle(EventKind::Created, Status::InProgress, out);
        self.start(out);
    }

    /// `created`, `queued`: the request is taken, and will be worked on later.
    pub fn open_queued(&mut self, out: &mut Events) {
        self.lifecycle(EventKind::Created, Status::Queued, out);
        self.lifecycle(EventKind::Queued, Status::Queued, out);
        self.keep_all();
    }

    /// How many events there are so far.
    pub const fn events(&self) -> u64 {
        self.sequence
    }

    /// The events before this number are written already, by another writer of the same response.
    pub fn resume(&mut self, sequence: u64) {
        self.sequence = sequence;
        self.keep_all();
    }

    /// `in_progress`: a queued response is worked on.
    pub fn start(&mut self, out: &mut Events) {
        self.lifecycle(EventKind::InProgress, Status::InProgress, out);
        self.keep_all();
    }

    /// A sign of life while the upstream is silent: comments do not reset every client's idle timer.
    pub fn heartbeat(&mut self, out: &mut Events) {
        if !out.is_silent() {
            if self.forms.heartbeat == Heartbeat::CommentAndEvent {
                out.comment("heartbeat");
            }
            self.lifecycle(EventKind::InProgress, Status::InProgress, out);
        }
    }

    /// What the response cost beside its answers.
    pub fn used(&mut self, usage: Option<Usage>) {
        if let Some(usage) = usage {
            self.usage = Some(self.usage.unwrap_or_default().plus(usage));
        }
    }

    /// An item that no model wrote, as JSON: as it is announced, and as it is when it is done. Only between answers, or
    /// before the first one.
    pub fn item(&mut self, added: &[u8], done: &[u8], out: &mut Events) {
        let output_index = self.output.count;
        self.event(EventKind::OutputItemAdded, out, |event| {
            event.int("output_index", output_index).json("item", added);
        });
        self.close_item(output_index, done, out);
        self.keep_all();
    }

    /// A call that the client has not seen yet, as the model made it. Only between answers.
    pub fn call(&mut self, call: &RejectedCall, out: &mut Events) {
        let RejectedCall { call_id, name, namespace, input, problem: _ } = call;
        let [call_id, name, input] = [call_id, name, input].map(|text| EscapedBuf::of_plain(text));
        let named = Named { call_id, name, namespace: namespace.clone(), more: Vec::new() };
        let id = self.make_id(CUSTOM.id_kind);
        CallItem::open(id, &CUSTOM, &named, self, out).close(input.get(), &named, Status::Completed, self, out);
        self.keep_all();
    }

    /// A call of the client that waited for hosted ones, as it was made. Only between answers.
    pub fn client_call(&mut self, call: &ClientCall, out: &mut Events) {
        call.0.write(None, self, out);
        self.keep_all();
    }

    /// Whether the answer that ended last has any.
    pub const fn last_answer_has_items(&self) -> bool {
        self.output.count > self.rounds.last.count
    }

    /// Forgets the items of the answer that ended last, as if it had never been. Nothing of it may have been sent: the
    /// numbers of its events are given out again. What it cost and what was noted about it stays.
    pub fn discard(&mut self) {
        let Mark { items, count, sequence } = self.rounds.last;
        self.output.items.truncate(items);
        (self.output.count, self.sequence) = (count, sequence);
        self.rounds.next = self.rounds.last;
        self.outcome = None;
    }

    /// There are no more answers.
    pub fn finish(&mut self, end: RoundEnd) {
        self.outcome = Some(match end {
            RoundEnd::Completed => Outcome::Completed,
            RoundEnd::Incomplete(reason) => Outcome::Incomplete(reason),
            RoundEnd::Failed(failure) => Outcome::Failed(failure),
            // No reason of an incomplete response says this, and completed it is not.
            RoundEnd::Paused => {
                let message = "The provider paused in the middle of its answer, and was not asked to go on any more.";
                Outcome::Failed(Failure::new(FailureClass::Server, message))
            }
            RoundEnd::Hosted(_) | RoundEnd::Rejected(_) => {
                let message = "The response ended although the model was to be asked again.";
                Outcome::Failed(Failure::new(FailureClass::Server, message))
            }
        });
    }

    /// Whatever it was, it has failed: there was nobody to ask, or the response could not be kept.
    pub fn fail(&mut self, failure: Failure) {
        self.outcome = Some(Outcome::Failed(failure));
    }

    /// The items are more than can be kept and sent: the object shows none of them. What would have been a good end has
    /// failed for this reason.
    pub fn drop_output(&mut self, failure: Failure) {
        self.output = Output::default();
        if matches!(self.outcome, None | Some(Outcome::Completed | Outcome::Incomplete(_))) {
            self.fail(failure);
        }
    }

    /// Whatever it was, nobody wants it any more: it ends with the items that are closed by now.
    pub fn cancel(&mut self) {
        self.outcome = Some(Outcome::Cancelled);
    }

    /// Why the response failed, if it has.
    pub const fn failure(&self) -> Option<&Failure> {
        match &self.outcome {
            Some(Outcome::Failed(failure)) => Some(failure),
            _ => None,
        }
    }

    /// The same, for whoever must take something out of it before it is shown.
    pub const fn failure_mut(&mut self) -> Option<&mut Failure> {
        match &mut self.outcome {
            Some(Outcome::Failed(failure)) => Some(failure),
            _ => None,
        }
    }

    /// The object of a response that nobody works on yet, as it is stored.
    pub fn queued_object(&self, out: &mut Vec<u8>) {
        Snapshot { store: true, ..self.snapshot(Status::Queued) }.write(out);
    }

    /// The object while it is being worked on, as it is stored: its items are shown when it has ended.
    pub fn running_object(&self, out: &mut Vec<u8>) {
        Snapshot { store: true, ..self.snapshot(Status::InProgress) }.write(out);
    }

    /// The object at its end. `stored` tells what became of it.
    pub fn object(&self, now: u64, stored: bool, out: &mut Vec<u8>) {
        let status = self.status().unwrap_or(Status::Failed);
        let error = self.failure().map(|failure| self.forms.error(failure));
        let incomplete_reason = match &self.outcome {
            Some(Outcome::Incomplete(reason)) => Some(reason.name()),
            _ => None,
        };
        let snapshot = Snapshot {
            completed_at: (status == Status::Completed).then_some(now),
            error: error.as_ref(),
            incomplete_reason,
            output: &self.output.items,
            usage: self.usage,
            store: stored,
            ..self.snapshot(status)
        };
        snapshot.write(out);
    }

    /// The terminal event around the object as it was written (and stored), and what ends the stream. Before the
    /// terminal event of a failure goes `error`, flat and nested: clients read one or the other.
    pub fn terminal(&mut self, object: &[u8], out: &mut Events) {
        if let Some(error) = self.failure().map(|failure| self.forms.error(failure)) {
            out.error(&error, &mut self.sequence);
        }
        out.terminal(self.status().unwrap_or(Status::Failed), &mut self.sequence, object);
    }

    fn lifecycle(&mut self, kind: EventKind, status: Status, out: &mut Events) {
        let mut sequence = self.sequence;
        let snapshot = self.snapshot(status);
        out.event(kind, &mut sequence, |event| snapshot.write(event.key("response")));
        self.sequence = sequence;
    }

    /// The object while it is being written.
    const fn snapshot(&self, status: Status) -> Snapshot<'_> {
        Snapshot {
            id: &self.id,
            created_at: self.created_at,
            completed_at: None,
            status,
            error: None,
            incomplete_reason: None,
            output: b"",
            usage: None,
            store: self.store,
            service_tier: self.service_tier,
            echo: &self.echo,
        }
    }
}

/// What readers of answers write with.
impl ResponseWriter {
    /// The kind of part that a message's part becomes for this client.
    pub(crate) fn shown_as(&mut self, kind: PartKind) -> PartKind {
        if kind != PartKind::Refusal || self.forms.refusal == RefusalForm::Refusal {
            return kind;
        }
        self.remark(Action::Degraded, "output", "a refusal is sent as text: this client leaves refusals out");
        PartKind::Text
    }

    pub(crate) fn event(&mut self, kind: EventKind, out: &mut Events, members: impl FnOnce(&mut ObjectWriter<'_>)) {
        out.event(kind, &mut self.sequence, members);
    }

    pub(crate) fn delta(&mut self, head: &DeltaHead, text: Escaped<'_>, out: &mut Events) {
        out.delta(head, &mut self.sequence, text);
    }

    /// The place of the item that is open, or of the next one: items never overlap.
    pub(crate) const fn output_index(&self) -> u32 {
        self.output.count
    }

    /// How many items of this answer are closed.
    pub(crate) const fn items_of_answer(&self) -> u32 {
        self.output.count.saturating_sub(self.rounds.next.count)
    }

    /// `output_item.done`, and the item is part of the output.
    pub(crate) fn close_item(&mut self, output_index: u32, item: &[u8], out: &mut Events) {
        self.event(EventKind::OutputItemDone, out, |event| {
            event.int("output_index", output_index).json("item", item);
        });
        if self.output.count > 0 {
            self.output.items.push(b',');
        }
        self.output.items.extend_from_slice(item);
        self.output.count += 1;
    }

    /// The upstream's id of an item as ours, if it can be one and no other item has it.
    pub(crate) fn adopt_item_id(&mut self, upstream: &str) -> Option<Id> {
        Id::given(upstream).filter(|_| self.adopted.items.insert(upstream.to_owned()))
    }

    /// Whether the upstream's id of a call can be ours: no other call has it.
    pub(crate) fn adopt_call_id(&mut self, upstream: Escaped<'_>) -> bool {
        self.adopted.calls.insert(upstream.as_written().to_owned())
    }

    /// How the provider serves the request; a word that the API does not have is noted.
    pub(crate) fn served_as(&mut self, tier: Text<'_>) {
        if tier.is_empty() {
            return;
        }
        match ServiceTier::named(&tier.decode()) {
            Some(tier) => self.service_tier = tier,
            None => {
                let tier: String = tier.decode().chars().take(64).collect();
                let message = format!("the provider's tier '{tier}' has no name in this API");
                self.remark(Action::Degraded, "service_tier", message);
            }
        }
    }

    /// An answer is over, and all of its items are closed.
    pub(crate) fn end_round(&mut self, usage: Option<Usage>) {
        self.used(usage);
        self.rounds = Rounds { last: self.rounds.next, next: self.mark() };
    }

    fn keep_all(&mut self) {
        let here = self.mark();
        self.rounds = Rounds { last: here, next: here };
    }

    const fn mark(&self) -> Mark {
        Mark { items: self.output.items.len(), count: self.output.count, sequence: self.sequence }
    }
}

impl Outcome {
    const fn status(&self) -> Status {
        match self {
            Self::Completed => Status::Completed,
            Self::Incomplete(_) => Status::Incomplete,
            Self::Failed(_) => Status::Failed,
            Self::Cancelled => Status::Cancelled,
        }
    }
}
