//! The answer side: reads one chat answer, writes one Responses answer.
//!
//! ```text
//!            reasoning delta             text, refusal delta            tool call delta
//!   open() ─▶ Open::Slot(reasoning) ──close──▶ Open::Slot(message) ──close──▶ calls.live
//!                 ▲                                                            │
//!                 └───────── another kind: close what is open, open its own ◀──┘
//!   finish_reason ─▶ remembered; usage may follow ─▶ end() closes what is open ─▶ terminal()
//! ```
//!
//! Items never overlap, ids never change, and there is exactly one terminal event. `stream: false` is the same
//! machine with silent framing, so the two cannot disagree: the object is the fold of the events.

mod calls;
mod emit;
mod finish;
mod part;
mod slot;
mod usage;

use std::borrow::Cow;

use wire::chat::{Answer, Delta};
use wire::id::{Id, IdKind, Ids};
use wire::json::{Kind, Raw};
use wire::responses::{EventKind, ResponseError, Snapshot, Status, Usage};

use crate::failure::{Failure, FailureClass};
use crate::note::{Action, Note};
use crate::reading::Reading;
use calls::Calls;
use emit::Emitter;
use finish::{Finish, Verdict};
use part::PartKind;
use slot::Slot;

/// How the answer goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Events as server-sent events.
    Sse,
    /// No events: `stream: false`. `terminal` writes the object.
    Silent,
}

/// Whether to go on reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Flow {
    More,
    /// The upstream said `[DONE]`, or failed: call [`Machine::end`].
    Over,
}

/// How the upstream's answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It said so: `[DONE]`, or a whole completion was read.
    Done,
    /// The body ended in good order, without saying so.
    Eof,
    Failed(Failure),
}

#[derive(Debug)]
pub struct Machine {
    reading: Reading,
    ids: Ids,
    id: Id,
    created_at: u64,
    emitter: Emitter,
    open: Option<Slot>,
    calls: Calls,
    output: Output,
    usage: Option<Usage>,
    finish: Option<Finish>,
    failure: Option<Failure>,
    verdict: Option<Verdict>,
    notes: Vec<Note>,
}

/// The closed items, comma between them, as the object shows them.
#[derive(Debug, Default)]
struct Output {
    items: Vec<u8>,
    count: u32,
}

impl Output {
    fn push(&mut self, item: &[u8]) {
        if self.count > 0 {
            self.items.push(b',');
        }
        self.items.extend_from_slice(item);
        self.count += 1;
    }
}

impl Machine {
    pub fn new(reading: Reading, mut ids: Ids, created_at: u64, framing: Framing) -> Self {
        let id = ids.make(IdKind::Response);
        Self {
            reading,
            ids,
            id,
            created_at,
            emitter: Emitter::new(framing),
            open: None,
            calls: Calls::default(),
            output: Output::default(),
            usage: None,
            finish: None,
            failure: None,
            verdict: None,
            notes: Vec::new(),
        }
    }

    pub fn id(&self) -> &Id {
        &self.id
    }

    /// What was odd about the answer.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    pub fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// `created`, `in_progress`: as soon as the upstream accepted the request.
    pub fn open(&mut self, out: &mut Vec<u8>) {
        self.lifecycle(EventKind::Created, out);
        self.lifecycle(EventKind::InProgress, out);
    }

    /// A sign of life while the upstream is silent: comments do not reset every client's idle timer.
    pub fn heartbeat(&mut self, out: &mut Vec<u8>) {
        if !self.emitter.is_silent() {
            out.extend_from_slice(b": heartbeat\n\n");
            self.lifecycle(EventKind::InProgress, out);
        }
    }

    /// One `data` of the stream, or the whole body of a non-streamed answer.
    pub fn chunk(&mut self, data: &[u8], out: &mut Vec<u8>) -> Flow {
        if data.trim_ascii() == b"[DONE]" {
            return Flow::Over;
        }
        let text = str::from_utf8(data).map_or_else(|_| String::from_utf8_lossy(data), Cow::Borrowed);
        let Ok(answer) = Answer::parse(&text) else {
            let message = "The provider's answer could not be read: it is not a chat completion.";
            return self.fail(Failure::new(FailureClass::Protocol, message));
        };
        if let Some(error) = answer.error.filter(|error| !error.is_null()) {
            return self.fail(Failure::in_band(error));
        }
        if let Some(usage) = answer.usage.filter(|usage| usage.kind() == Kind::Object) {
            self.usage = usage::read(usage).or(self.usage);
        }
        let Some(choice) = answer.choice else { return Flow::More };
        if let Some(delta) = choice.said() {
            self.delta(delta, out);
        }
        if let Some(reason) = choice.finish_reason.and_then(Raw::text) {
            self.finish = Some(Finish::read(&reason.decode()));
        }
        Flow::More
    }

    fn fail(&mut self, failure: Failure) -> Flow {
        self.failure = Some(failure);
        Flow::Over
    }

    fn delta(&mut self, delta: &Delta<'_>, out: &mut Vec<u8>) {
        if let Some(reasoning) = delta.reasoning_content.or(delta.reasoning) {
            self.text(PartKind::Reasoning, reasoning, out);
        }
        if let Some(content) = delta.content {
            self.text(PartKind::Text, content, out);
        }
        if let Some(refusal) = delta.refusal {
            self.text(PartKind::Refusal, refusal, out);
        }
        for call in delta.tool_calls.map(Raw::elements).into_iter().flatten() {
            self.tool_call(call, out);
        }
    }

    /// Text of any kind: a string, or (from some servers) parts with strings.
    fn text(&mut self, kind: PartKind, said: Raw<'_>, out: &mut Vec<u8>) {
        match said.kind() {
            Kind::String => {
                let escaped = said.text().map(wire::json::Text::escaped).unwrap_or_default();
                self.text_delta(kind, escaped, out);
            }
            Kind::Array => {
                for part in said.elements() {
                    if let Some(text) = part.get("text").and_then(Raw::text) {
                        self.text_delta(kind, text.escaped(), out);
                    }
                }
            }
            _ => {}
        }
    }

    fn text_delta(&mut self, kind: PartKind, escaped: &str, out: &mut Vec<u8>) {
        if escaped.is_empty() {
            return;
        }
        self.late();
        self.close_calls(out);
        if self.open.as_ref().is_some_and(|slot| slot.kind() != kind.slot()) {
            self.close_slot(Status::Completed, out);
        }
        let index = self.output.count;
        let slot = self.open.get_or_insert_with(|| {
            let slot = Slot::new(kind.slot(), self.ids.make(kind.slot().id_kind()), index);
            slot.announce(&mut self.emitter, out);
            slot
        });
        slot.push(kind, escaped, &mut self.emitter, out);
    }

    /// Deltas behind the finish reason are kept: the last reason counts.
    fn late(&mut self) {
        if self.finish.is_some() && !self.notes.iter().any(|note| note.path == "finish_reason") {
            self.notes.push(Note::new(Action::Repaired, "finish_reason", "more of the answer came after it"));
        }
    }

    fn tool_call(&mut self, call: Raw<'_>, out: &mut Vec<u8>) {
        self.late();
        self.close_slot(Status::Completed, out);
        self.calls.delta(call, &mut self.ids, &mut self.emitter, &mut self.output, out);
    }

    fn close_calls(&mut self, out: &mut Vec<u8>) {
        self.calls.close(Status::Completed, &mut self.emitter, &mut self.output, out);
    }

    fn close_slot(&mut self, status: Status, out: &mut Vec<u8>) {
        if let Some(slot) = self.open.take() {
            let item = slot.close(status, &mut self.emitter, out);
            self.output.push(&item);
        }
    }

    /// The upstream is through: closes what is open. The store may now be written; then call `terminal`.
    pub fn end(&mut self, end: End, out: &mut Vec<u8>) -> Status {
        let end = self.failure.take().map_or(end, End::Failed);
        let empty = self.output.count == 0 && self.open.is_none() && self.calls.is_empty();
        let verdict = finish::verdict(end, self.finish.as_ref(), empty, &mut self.notes);
        let status = verdict.status();
        let last = if status == Status::Completed { Status::Completed } else { Status::Incomplete };
        self.close_slot(last, out);
        self.calls.close(last, &mut self.emitter, &mut self.output, out);
        self.note_lost_calls();
        self.verdict = Some(verdict);
        status
    }

    fn note_lost_calls(&mut self) {
        let lost = self.calls.lost();
        for (happened, message) in [
            (lost.nameless, "a call without a name was left out"),
            (lost.late, "arguments that came after their call had ended were left out"),
            (lost.too_many, "calls beyond the limit were left out"),
        ] {
            if happened {
                self.notes.push(Note::new(Action::Repaired, "tool_calls", message));
            }
        }
    }

    /// Why the turn failed, once [`Machine::end`] has said that it did.
    pub fn failure(&self) -> Option<&Failure> {
        match &self.verdict {
            Some(Verdict::Failed(failure)) => Some(failure),
            _ => None,
        }
    }

    /// The terminal event and `[DONE]`; with silent framing, the object. `stored` tells what became of it.
    pub fn terminal(&mut self, now: u64, stored: bool, out: &mut Vec<u8>) {
        let error = self.failure().map(Failure::response_error);
        if let Some(error) = &error {
            self.emitter.error(error, out);
        }
        let status = self.verdict.as_ref().map_or(Status::Failed, Verdict::status);
        let snapshot = Snapshot {
            id: &self.id,
            created_at: self.created_at,
            completed_at: (status == Status::Completed).then_some(now),
            status,
            error: error.as_ref(),
            incomplete_reason: self.verdict.as_ref().and_then(Verdict::incomplete_reason),
            output: &self.output.items,
            usage: self.usage,
            store: stored,
            echo: &self.reading.echo,
        };
        if self.emitter.is_silent() {
            snapshot.write(out);
            return;
        }
        let kind = match status {
            Status::Completed => EventKind::Completed,
            Status::Incomplete => EventKind::Incomplete,
            Status::Failed | Status::InProgress => EventKind::Failed,
        };
        self.emitter.event(kind, out, |event| snapshot.write(event.key("response")));
        out.extend_from_slice(wire::sse::DONE);
    }

    fn lifecycle(&mut self, kind: EventKind, out: &mut Vec<u8>) {
        let snapshot = Snapshot {
            id: &self.id,
            created_at: self.created_at,
            completed_at: None,
            status: Status::InProgress,
            error: None::<&ResponseError>,
            incomplete_reason: None,
            output: b"",
            usage: None,
            store: self.reading.store,
            echo: &self.reading.echo,
        };
        self.emitter.event(kind, out, |event| snapshot.write(event.key("response")));
    }
}
