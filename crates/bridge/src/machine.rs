//! The answer side: reads one chat answer, writes one Responses answer.
//!
//! ```text
//!            reasoning delta            text, refusal delta           tool call delta
//!   open() ─▶ open: reasoning ──close──▶ open: message ──close──▶ calls: the first is live
//!                 ▲                                                            │
//!                 └───────── another kind: close what is open, open its own ◀──┘
//!   finish_reason ─▶ remembered; usage may follow ─▶ end() closes what is open ─▶ terminal()
//! ```
//!
//! Items never overlap, ids never change, and there is exactly one terminal event. `stream: false` is the same
//! machine with silent framing, so the two cannot disagree: the object is the fold of the events.

mod arguments;
mod balance;
mod call;
mod calls;
mod cite;
mod contract;
mod custom;
mod emit;
mod fence;
mod finish;
mod grammar;
mod native;
mod opening;
mod part;
mod restore;
mod said;
mod setup;
mod sink;
mod slot;
mod think;
mod thought;
mod usage;

use std::borrow::Cow;
use std::sync::Arc;

use wire::chat::Answer;
use wire::id::{Id, IdKind, Ids};
use wire::json::{Kind, Raw, Text};
use wire::responses::{EventKind, ResponseError, ServiceTier, Snapshot, Status, Usage};

use crate::dialect::ThinkTags;
use crate::failure::{Failure, FailureClass};
use crate::note::{Action, Note};
use crate::reading::{OutputContract, Reading};
use calls::Calls;
pub use contract::{Checks, OutputCheck, OutputProblem, Repair};
use contract::{Doubt, Judged};
use emit::Emitter;
use fence::Fence;
use finish::{Content, Finish, Verdict};
use native::Native;
pub use opening::{Look, Opening};
use part::PartKind;
pub use setup::Setup;
use sink::{Output, Sink};
use slot::Slot;
use think::Think;
use thought::Bag;

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

#[derive(Debug, Clone)]
pub struct Machine {
    reading: Reading,
    setup: Setup,
    id: Id,
    created_at: u64,
    sink: Sink,
    open: Option<Slot>,
    calls: Calls,
    /// The items of a far side that speaks the Responses API itself; then all of the above stays empty.
    native: Option<Box<Native>>,
    /// Text that came while a call was not finished.
    pending: Vec<(PartKind, String)>,
    /// What must go back to the upstream with the reasoning.
    bag: Bag,
    think: Option<Think>,
    fence: Option<Fence>,
    /// Half a surrogate pair on its way to those two.
    half: String,
    /// Probabilities and citations that wait for their text.
    logprobs: Vec<u8>,
    annotations: Vec<Vec<u8>>,
    /// The text of an answer that was promised to be JSON.
    promised: Vec<u8>,
    /// The choice that is read; godex never asks for more than one.
    choice_index: Option<i64>,
    has_spoken: bool,
    has_tool_calls: bool,
    refused: bool,
    answered_bytes: usize,
    reasoned_bytes: usize,
    usage: Option<Usage>,
    /// What an earlier try of the same turn cost.
    spent: Usage,
    /// How the provider says that it serves the request.
    service_tier: ServiceTier,
    finish: Option<Finish>,
    failure: Option<Failure>,
    verdict: Option<Verdict>,
}

impl Machine {
    pub fn new(mut reading: Reading, setup: Setup, mut ids: Ids, created_at: u64, framing: Framing) -> Self {
        let id = ids.make(IdKind::Response);
        let tools = std::mem::take(&mut reading.tools);
        let promised = reading.output != OutputContract::Text;
        let unfenced = setup.repair == Repair::Off && !setup.dialect.fenced_json;
        Self {
            id,
            created_at,
            sink: Sink { ids, emitter: Emitter::new(framing), output: Output::default(), notes: Vec::new(), tools },
            open: None,
            calls: Calls::default(),
            native: reading.native.map(|_| Box::default()),
            pending: Vec::new(),
            bag: Bag::default(),
            think: match setup.dialect.think_tags {
                ThinkTags::Off => None,
                ThinkTags::Leading => Some(Think::leading()),
                ThinkTags::Opened => Some(Think::opened()),
            },
            fence: (promised && !unfenced).then(Fence::default),
            half: String::new(),
            logprobs: Vec::new(),
            annotations: Vec::new(),
            promised: Vec::new(),
            choice_index: None,
            has_spoken: false,
            has_tool_calls: false,
            refused: false,
            answered_bytes: 0,
            reasoned_bytes: 0,
            usage: None,
            spent: Usage::default(),
            service_tier: ServiceTier::default(),
            finish: None,
            failure: None,
            verdict: None,
            reading,
            setup,
        }
    }

    pub fn id(&self) -> &Id {
        &self.id
    }

    /// What was odd about the answer.
    pub fn notes(&self) -> &[Note] {
        &self.sink.notes
    }

    /// Whether the upstream gave a finish reason: only usage may follow.
    pub fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Whether anything of an answer has come. That it was cut, or held back, before it began is an answer, too.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_spoken
            || self.answered_bytes + self.reasoned_bytes > 0
            || self.finish.as_ref().is_some_and(Finish::is_incomplete)
    }

    pub fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// This is not the first try of the turn: what the others cost is counted, too.
    pub fn spent_before(&mut self, usage: Usage) {
        self.spent = usage;
    }

    /// `created`, `in_progress`: as soon as the upstream accepted the request.
    pub fn open(&mut self, out: &mut Vec<u8>) {
        self.lifecycle(EventKind::Created, out);
        self.lifecycle(EventKind::InProgress, out);
    }

    /// A sign of life while the upstream is silent: comments do not reset every client's idle timer.
    pub fn heartbeat(&mut self, out: &mut Vec<u8>) {
        if !self.sink.emitter.is_silent() {
            out.extend_from_slice(b": heartbeat\n\n");
            self.lifecycle(EventKind::InProgress, out);
        }
    }

    /// One event of the stream: its name, if it has one, and its data.
    pub fn event(&mut self, name: &[u8], data: &[u8], out: &mut Vec<u8>) -> Flow {
        let flow = self.chunk(data, out);
        if flow == Flow::Over || name != b"error" {
            return flow;
        }
        // An error in no shape that is known is one all the same.
        let document = str::from_utf8(data).ok().and_then(|text| Raw::parse(text).ok());
        let silent = || Failure::new(FailureClass::Server, "The provider reported an error.");
        self.fail(document.map_or_else(silent, |document| Failure::in_band(document, &self.setup.dialect)))
    }

    /// One `data` of the stream, or the whole body of a non-streamed answer.
    pub fn chunk(&mut self, data: &[u8], out: &mut Vec<u8>) -> Flow {
        let data = wire::json::without_mark(data.trim_ascii()).trim_ascii_start();
        if data == b"[DONE]" {
            return Flow::Over;
        }
        if data.is_empty() {
            return Flow::More;
        }
        let text = str::from_utf8(data).map_or_else(|_| String::from_utf8_lossy(data), Cow::Borrowed);
        if self.native.is_some() {
            return self.native_event(&text, out);
        }
        let Ok(answer) = Answer::parse(&text) else {
            let message = "The provider's answer could not be read: it is not a chat completion.";
            return self.fail(Failure::new(FailureClass::Protocol, message));
        };
        if let Some(failure) = Failure::in_answer(&answer, &text, &self.setup.dialect) {
            return self.fail(failure);
        }
        if let Some(tier) = answer.service_tier.and_then(Raw::text) {
            self.served_as(tier);
        }
        let choice_usage = answer.choice.as_ref().and_then(|choice| choice.usage);
        if let Some(usage) = answer.usage.or(choice_usage).filter(|usage| usage.kind() == Kind::Object) {
            self.usage = usage::read(usage).or(self.usage);
        }
        let Some(choice) = answer.choice else { return Flow::More };
        let index = choice.index.and_then(|index| index.as_str().parse().ok()).unwrap_or(0);
        if *self.choice_index.get_or_insert(index) != index {
            return Flow::More;
        }
        self.choice(&choice, out);
        if let Some(reason) = choice.finish_reason.and_then(Raw::text) {
            self.finish = Some(Finish::read(&reason.decode(), &self.setup.dialect));
        }
        if self.failure.is_some() { Flow::Over } else { Flow::More }
    }

    fn served_as(&mut self, tier: Text<'_>) {
        if tier.is_empty() {
            return;
        }
        match ServiceTier::named(&tier.decode()) {
            Some(tier) => self.service_tier = tier,
            None => {
                let tier: String = tier.decode().chars().take(64).collect();
                let message = format!("the provider's tier '{tier}' has no name in this API");
                self.sink.note(Action::Degraded, "service_tier", message);
            }
        }
    }

    fn fail(&mut self, failure: Failure) -> Flow {
        self.failure = Some(failure);
        Flow::Over
    }

    /// The upstream is through: closes what is open. The store may now be written; then call `terminal`.
    pub fn end(&mut self, end: End, out: &mut Vec<u8>) -> Status {
        self.release(out);
        if !matches!(end, End::Failed(_)) {
            self.calls.settle(&mut self.sink);
            self.check_calls();
        }
        let end = self.failure.take().map_or(end, End::Failed);
        let content = self.native_content(out).unwrap_or(
            match (self.calls.is_empty(), self.answered_bytes, self.reasoned_bytes) {
                (false, ..) => Content::Calls { sound: self.calls.are_sound(&self.sink) },
                (true, 0, 0) => Content::Nothing,
                (true, 0, _) => Content::Reasoning,
                (true, ..) => Content::Text,
            },
        );
        let end = match end {
            // There, the terminal event says that the response is whole; `[DONE]` is no event of that API.
            End::Done if self.native.is_some() => End::Eof,
            end => end,
        };
        let dialect = Arc::clone(&self.setup.dialect);
        let mut verdict = finish::verdict(end, self.finish.as_ref(), content, &dialect, &mut self.sink.notes);
        let last = if verdict == Verdict::Completed { Status::Completed } else { Status::Incomplete };
        if verdict == Verdict::Completed && content == Content::Text && !self.refused {
            verdict = self.keep_promise(out).map_or(Verdict::Completed, Verdict::Failed);
        }
        self.close_native(last, out);
        self.close_slot(last, out);
        self.close_calls(last, out);
        self.close_slot(last, out);
        // An item that was cut is the last one.
        if last == Status::Completed {
            self.settle(out);
        }
        if !self.annotations.is_empty() {
            self.sink.note(Action::Ignored, "annotations", "citations without a text were left out");
        }
        self.count(&verdict);
        let status = verdict.status();
        self.verdict = Some(verdict);
        status
    }

    /// Checks, and mends by writing on, text that was asked for as JSON; why it breaks what was promised.
    fn keep_promise(&mut self, out: &mut Vec<u8>) -> Option<Failure> {
        if self.reading.output == OutputContract::Text {
            return None;
        }
        if self.fence.as_ref().is_some_and(Fence::found) {
            self.sink.note(Action::Repaired, "text.format", "the code fence around the answer was taken off");
        }
        if self.setup.checks == Checks::Off {
            return None;
        }
        let check = self.setup.check.as_deref();
        // Only an open text can be written on.
        let repair = if self.open.as_ref().is_some_and(Slot::is_text) { self.setup.repair } else { Repair::Off };
        let Judged { closing, doubt } = contract::judge(&self.reading.output, check, &self.promised, repair);
        match doubt {
            None => {}
            Some(Doubt::Unknown(why)) => {
                self.sink.note(Action::Degraded, "text.format", format!("the answer could not be validated: {why}"));
            }
            Some(Doubt::Broken(failure)) if self.setup.checks.demand(&self.reading.output) => {
                self.sink.note(Action::Degraded, "text.format", "the answer is not what was asked for");
                return Some(failure);
            }
            Some(Doubt::Broken(failure)) => self.sink.note(Action::Degraded, "text.format", failure.message),
        }
        if let Some(closing) = closing {
            self.sink.note(Action::Repaired, "text.format", "brackets that the model left open were closed");
            let mut escaped = Vec::new();
            wire::json::escape_into(&mut escaped, &closing);
            self.write(PartKind::Text, str::from_utf8(&escaped).unwrap_or_default(), out);
        }
        None
    }

    /// Usage where the provider sent none; a failed turn has what it has.
    fn count(&mut self, verdict: &Verdict) {
        let nothing = self.usage.is_none_or(|usage| usage.total_tokens == 0);
        if nothing && !matches!(verdict, Verdict::Failed(_)) {
            let answer = self.answered_bytes + self.calls.bytes();
            self.usage = Some(usage::estimate(self.setup.prompt_bytes, answer, self.reasoned_bytes));
            self.sink.note(Action::Degraded, "usage", "the provider sent none: estimated from sizes");
        }
        self.usage = self.usage.map(|usage| usage.plus(self.spent));
    }

    /// Why the turn failed, once [`Machine::end`] has said that it did.
    pub fn failure(&self) -> Option<&Failure> {
        match &self.verdict {
            Some(Verdict::Failed(failure)) => Some(failure),
            _ => None,
        }
    }

    /// The same, for whoever must take something out of it before it is shown.
    pub fn failure_mut(&mut self) -> Option<&mut Failure> {
        match &mut self.verdict {
            Some(Verdict::Failed(failure)) => Some(failure),
            _ => None,
        }
    }

    /// The answer is good but could not be kept, which its client was promised.
    pub fn not_kept(&mut self, failure: Failure) {
        self.verdict = Some(Verdict::Failed(failure));
    }

    pub fn is_silent(&self) -> bool {
        self.sink.emitter.is_silent()
    }

    /// The object at its end. `stored` tells what became of it.
    pub fn object(&self, now: u64, stored: bool, out: &mut Vec<u8>) {
        let status = self.verdict.as_ref().map_or(Status::Failed, Verdict::status);
        let error = self.failure().map(Failure::response_error);
        let snapshot = Snapshot {
            id: &self.id,
            created_at: self.created_at,
            completed_at: (status == Status::Completed).then_some(now),
            status,
            error: error.as_ref(),
            incomplete_reason: self.verdict.as_ref().and_then(Verdict::incomplete_reason),
            output: &self.sink.output.items,
            usage: self.usage,
            store: stored,
            service_tier: self.service_tier,
            echo: &self.reading.echo,
        };
        snapshot.write(out);
    }

    /// The terminal event and `[DONE]`; with silent framing, the object.
    pub fn terminal(&mut self, now: u64, stored: bool, out: &mut Vec<u8>) {
        if self.is_silent() {
            return self.object(now, stored, out);
        }
        let mut emitter = self.sink.emitter.clone();
        if let Some(error) = self.failure().map(Failure::response_error) {
            emitter.error(&error, out);
        }
        let kind = match self.verdict.as_ref().map(Verdict::status) {
            Some(Status::Completed) => EventKind::Completed,
            Some(Status::Incomplete) => EventKind::Incomplete,
            Some(Status::Failed | Status::InProgress) | None => EventKind::Failed,
        };
        emitter.event(kind, out, |event| self.object(now, stored, event.key("response")));
        self.sink.emitter = emitter;
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
            service_tier: self.service_tier,
            echo: &self.reading.echo,
        };
        self.sink.emitter.event(kind, out, |event| snapshot.write(event.key("response")));
    }
}
