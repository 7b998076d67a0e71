//! The reader of a chat answer: chunks, or one whole completion.
//!
//! ```text
//!            reasoning delta            text, refusal delta           tool call delta
//!          ▶ open: reasoning ──close──▶ open: message ──close──▶ calls: the first is live
//!                 ▲                                                            │
//!                 └───────── another kind: close what is open, open its own ◀──┘
//!   finish_reason ─▶ remembered; usage may follow ─▶ end() closes what is open
//! ```
//!
//! Items never overlap, and ids never change.

mod calls;
mod delta;
mod replay_data;

use wire::chat::Answer;
use wire::json::Raw;
use wire::responses::{Status, Usage};

use super::calls::Calls;
use super::calls::call::Offered;
use super::contract::Promise;
use super::finish::{self, Content, Finish};
use super::held_text::HeldText;
use super::report::{self, Report, Volume};
use super::{End, Flow, HeldCall, Repair, RoundEnd, Setup};
use crate::context::AnswerContext;
use crate::escaped::EscapedBuf;
use crate::events::Events;
use crate::failure::{Failure, FailureClass};
use crate::note::{Action, Note, code};
use crate::response::{PartKind, ResponseWriter, Slot};
use replay_data::ReplayData;

#[derive(Debug, Clone)]
pub struct ChatReader {
    wanted: Wanted,
    pub(super) setup: Setup,
    pub(super) report: Report,
    promise: Promise,
    heard: Heard,
    /// The message, or the reasoning, that is open.
    open: Option<Slot>,
    calls: Calls,
    /// Text that came while a call was not finished, and how much that is.
    pending: Vec<(PartKind, EscapedBuf)>,
    pending_bytes: usize,
    /// The beginning of the text, while it may be a tag or a fence.
    held: HeldText,
    attached: Attached,
    /// What must go back to the upstream with the reasoning.
    replay_data: ReplayData,
}

/// What the client asked to see.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    reasoning_summary: bool,
    logprobs: bool,
}

/// What has come of the answer.
#[derive(Debug, Clone, Copy, Default)]
struct Heard {
    /// The choice that is read; godex never asks for more than one.
    choice_index: Option<i64>,
    anything: bool,
    tool_calls: bool,
    refusal: bool,
    volume: Volume,
}

/// Probabilities and citations that wait for their text.
#[derive(Debug, Clone, Default)]
struct Attached {
    /// JSON, comma between them.
    logprobs: Vec<u8>,
    annotations: Vec<Vec<u8>>,
    annotation_bytes: usize,
}

impl ChatReader {
    pub(super) fn new(context: AnswerContext, mut setup: Setup) -> Self {
        let AnswerContext { tools, reasoning_summary, logprobs, output, grammars, renamed, wire: _, prompt_end: _ } =
            context;
        let promise = setup.promise(output);
        Self {
            wanted: Wanted { reasoning_summary, logprobs },
            report: Report::default(),
            held: setup.held_text(&promise),
            promise,
            heard: Heard::default(),
            open: None,
            calls: Calls::new(Offered::new(tools, setup.input_checks(grammars), renamed)),
            pending: Vec::new(),
            pending_bytes: 0,
            attached: Attached::default(),
            replay_data: ReplayData::default(),
            setup,
        }
    }

    pub(super) const fn has_begun(&self) -> bool {
        self.heard.anything || !self.heard.volume.is_empty()
    }

    /// How many bytes of content are in no closed item yet. What is looked at for a tag or a fence is never much.
    pub(super) fn held(&self) -> usize {
        let Self { open, calls, pending_bytes, attached, replay_data, .. } = self;
        let attached = attached.logprobs.len() + attached.annotation_bytes;
        open.as_ref().map_or(0, Slot::held) + calls.held() + pending_bytes + attached + replay_data.held()
    }

    pub(super) fn chunk(&mut self, text: &str, response: &mut ResponseWriter, out: &mut Events) -> Flow {
        let Ok(answer) = Answer::parse(text) else {
            let message = "The provider's answer could not be read: it is not a chat completion.";
            return self.report.fail(Failure::new(FailureClass::Protocol, message));
        };
        if let Some(failure) = Failure::in_answer(&answer, text, &self.setup.dialect) {
            return self.report.fail(failure);
        }
        if let Some(tier) = answer.service_tier.and_then(Raw::text) {
            response.served_as(tier);
        }
        let choice_usage = answer.choice.as_ref().and_then(|choice| choice.usage);
        self.report.used(answer.usage.or(choice_usage));
        let Some(choice) = answer.choice else { return Flow::More };
        let index = choice.index.and_then(|index| index.as_str().parse().ok()).unwrap_or(0);
        if *self.heard.choice_index.get_or_insert(index) != index {
            return Flow::More;
        }
        self.choice(&choice, response, out);
        if let Some(reason) = choice.finish_reason.and_then(Raw::text) {
            self.report.finish = Some(Finish::read(&reason.decode(), &self.setup.dialect));
        }
        if self.report.failure.is_some() { Flow::Over } else { Flow::More }
    }

    pub(super) fn end(&mut self, end: End, response: &mut ResponseWriter, out: &mut Events) -> RoundEnd {
        self.release(response, out);
        if !matches!(end, End::Failed(_)) {
            self.calls.decide_what_is_open(response);
            self.check_calls();
        }
        let end = self.report.failure.take().map_or(end, End::Failed);
        let content = Content::of(&self.calls, self.heard.volume);
        let mut round = finish::round_end(end, self.report.finish.as_ref(), content, &self.setup.dialect, response);
        if round == RoundEnd::Completed {
            round = self.look_for_cut_inputs(response);
        }
        let last = if round == RoundEnd::Completed { Status::Completed } else { Status::Incomplete };
        if round == RoundEnd::Completed && content == Content::Text && !self.heard.refusal {
            round = self.keep_promise(response, out).map_or_else(RoundEnd::Failed, |()| RoundEnd::Completed);
        }
        self.close_slot(last, response, out);
        if round == RoundEnd::Completed
            && self.pending.is_empty()
            && let Some(rejected) = self.calls.reject(response, out)
        {
            round = RoundEnd::Rejected(rejected);
        }
        self.close_calls(last, response, out);
        self.close_slot(last, response, out);
        // An item that was cut is the last one.
        if last == Status::Completed {
            self.write_replay_data(response, out);
        }
        if !self.attached.annotations.is_empty() {
            response.remark(Action::Ignored, "annotations", "citations without a text were left out");
        }
        let cost = self.report.cost(&round, self.setup.prompt_bytes, self.volume(), response);
        response.end_round(cost);
        self.calls.end_round(round)
    }

    fn volume(&self) -> Volume {
        Volume { answered: self.heard.volume.answered + self.calls.bytes(), ..self.heard.volume }
    }

    pub(super) fn taken(&self) -> (Usage, bool) {
        report::taken(&self.report, self.setup.prompt_bytes, self.volume())
    }

    pub(super) fn take_hosted(&mut self) -> Vec<HeldCall> {
        self.calls.take_hosted()
    }

    /// What broke off in the input of a custom tool is not whole, whatever it says. Part of a text can be another text
    /// that can be carried out; so such an answer is never completed.
    fn look_for_cut_inputs(&mut self, response: &mut ResponseWriter) -> RoundEnd {
        if !self.report.finish.as_ref().is_some_and(Finish::is_complete) {
            self.calls.ends_unsaid();
        }
        let Some(tool) = self.calls.cut() else { return RoundEnd::Completed };
        let message = format!("the arguments of {tool} broke off: its input is not whole");
        response.note(Note::new(Action::Degraded, "tool_calls", message).coded(code::TOOL_INPUT));
        finish::truncated(&format!("The provider's answer broke off in the input of the tool '{tool}'."))
    }

    /// Checks, and mends by writing on, text that was asked for as JSON.
    fn keep_promise(&mut self, response: &mut ResponseWriter, out: &mut Events) -> Result<(), Failure> {
        if self.held.found_fence() {
            response.remark(Action::Repaired, "text.format", "the code fence around the answer was taken off");
        }
        // Only an open text can be written on.
        let repair = if self.open.as_ref().is_some_and(Slot::is_text) { self.setup.repair } else { Repair::Off };
        if let Some(closing) = self.promise.keep(repair, response)? {
            self.write(PartKind::Text, EscapedBuf::of_plain(&closing).get(), response, out);
        }
        Ok(())
    }
}
