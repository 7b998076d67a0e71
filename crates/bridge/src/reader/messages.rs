//! The reader of an answer in the Messages API: events, or one whole message.
//!
//! ```text
//!  message_start ─▶ block start ─▶ deltas ─▶ block stop ─▶ … ─▶ message_delta: why it ended, usage ─▶ message_stop
//!                     text       ─▶ a message, one for blocks that follow each other
//!                     thinking   ─▶ reasoning, one item for blocks that follow each other; they return as they came
//!                     tool_use   ─▶ a call of the kind that the client declared
//! ```
//!
//! One block is open at a time, so items never overlap. `message_stop` is the only good end.

mod block;
mod blocks;
mod cited;
mod counts;
mod upstream_tool;
mod write;

use wire::json::{Kind, Raw, Text};
use wire::message_event::{MessageEvent, MessageHead};
use wire::responses::{Status, Usage};

use super::calls::Calls;
use super::calls::call::Offered;
use super::contract::Promise;
use super::finish::{self, Content, Finish};
use super::held_text::HeldText;
use super::report::{self, Report, Volume};
use super::{End, Flow, HeldCall, RoundEnd, Setup};
use crate::context::AnswerContext;
use crate::dialect::{EofTolerance, FinishMeaning};
use crate::events::Events;
use crate::failure::{Failure, FailureClass};
use crate::note::{Action, Note, code};
use crate::response::{ResponseWriter, Slot};
use crate::seal::PromptEnd;
use block::OpenBlock;
use blocks::Blocks;
use counts::Counts;
use upstream_tool::Search;

#[derive(Debug, Clone)]
pub struct MessagesReader {
    /// The client asked for `reasoning.summary`.
    reasoning_summary: bool,
    pub(super) setup: Setup,
    pub(super) report: Report,
    promise: Promise,
    heard: Heard,
    counts: Counts,
    /// The block that is being read.
    block: Option<OpenBlock>,
    /// The message, or the reasoning, that is open.
    open: Option<Slot>,
    /// Where in the open text the last block of text began.
    text_from: usize,
    /// What reasoning needs of its place that items do not say.
    place: Place,
    /// The beginning of the text, while it may be a tag or a fence.
    held: HeldText,
    calls: Calls,
    /// A search of the upstream's that is shown and has no result yet.
    search: Option<Search>,
    /// What must go back to the upstream with the reasoning.
    kept: Blocks,
}

/// So many characters of what a provider says about an end are repeated in a note.
const MOST_WORDS: usize = 256;

/// What the next reasoning is to remember.
#[derive(Debug, Clone, Default)]
struct Place {
    /// How the prompt ended, until some reasoning remembers it.
    prompt_end: PromptEnd,
    /// Where in the open text, or in the one before, another block began.
    breaks: Vec<usize>,
}

/// What has come of the answer.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is something that was heard")]
struct Heard {
    /// The id of the message.
    message: Option<String>,
    anything: bool,
    refusal: bool,
    volume: Volume,
    /// The upstream's own tools have taken long: it is to be asked again with what it said.
    is_paused: bool,
    /// It said that it is through.
    is_over: bool,
}

impl MessagesReader {
    pub(super) fn new(context: AnswerContext, mut setup: Setup) -> Self {
        let AnswerContext { tools, reasoning_summary, output, grammars, renamed, prompt_end, logprobs: _, wire: _ } =
            context;
        let promise = setup.promise(output);
        Self {
            reasoning_summary,
            report: Report::default(),
            held: setup.held_text(&promise),
            promise,
            heard: Heard::default(),
            counts: Counts::default(),
            block: None,
            open: None,
            text_from: 0,
            place: Place { prompt_end, breaks: Vec::new() },
            calls: Calls::new(Offered::new(tools, setup.input_checks(grammars), renamed)),
            search: None,
            kept: Blocks::default(),
            setup,
        }
    }

    pub(super) const fn has_begun(&self) -> bool {
        self.heard.anything
    }

    /// How many bytes of content are in no closed item yet.
    pub(super) fn held(&self) -> usize {
        let Self { open, calls, kept, block, .. } = self;
        open.as_ref().map_or(0, Slot::held) + calls.held() + kept.held() + block.as_ref().map_or(0, OpenBlock::held)
    }

    pub(super) fn take_hosted(&mut self) -> Vec<HeldCall> {
        self.calls.take_hosted()
    }

    /// One event, or a whole message.
    pub(super) fn event(&mut self, text: &str, response: &mut ResponseWriter, out: &mut Events) -> Flow {
        let Ok(event) = MessageEvent::parse(text) else {
            let message = "The provider's answer could not be read: it is neither a message nor an event of one.";
            return self.report.fail(Failure::new(FailureClass::Protocol, message));
        };
        let name = event.kind.and_then(Raw::text).map(Text::decode).unwrap_or_default();
        let is_message = || event.content.is_some_and(|content| content.kind() == Kind::Array);
        match &*name {
            "content_block_delta" => self.delta(&event, response, out),
            "content_block_start" => self.start(&event, response, out),
            "content_block_stop" => self.stop(response, out),
            "message_start" => self.begin(&event, response),
            "message_delta" => self.message_delta(&event, response, out),
            "message_stop" => {
                self.stop(response, out);
                self.heard.is_over = true;
                return Flow::Over;
            }
            "ping" => {}
            "message" | "" if is_message() => return self.whole(&event, response, out),
            name if name.is_empty() || name == "error" || event.error.is_some_and(|error| !error.is_null()) => {
                return self.error(text);
            }
            name => {
                let name: String = name.chars().take(64).collect();
                response.remark(Action::Ignored, "stream", format!("the event '{name}' is not known"));
            }
        }
        if self.report.failure.is_some() { Flow::Over } else { Flow::More }
    }

    fn error(&mut self, text: &str) -> Flow {
        let failure = match Raw::parse(text) {
            Ok(document) => Failure::in_message(document, &self.setup.dialect),
            Err(_) => Failure::new(FailureClass::Server, "The provider reported an error."),
        };
        self.report.fail(failure)
    }

    /// A message begins. Some relays say so twice, and some begin anew in the middle of an answer, which then is two.
    fn begin(&mut self, event: &MessageEvent<'_>, response: &mut ResponseWriter) {
        let head = MessageHead::of(event.message.map_or("", Raw::as_str));
        let id = head.id.and_then(Raw::text).map(Text::decode);
        let is_other = id.as_deref().is_some_and(|id| self.heard.message.as_deref().is_some_and(|known| known != id));
        if is_other && (self.heard.anything || self.block.is_some()) {
            let message = "The provider's answer broke off, and another one began in its place.";
            self.report.failure = Some(Failure::new(FailureClass::Truncated, message));
            return;
        }
        self.heard.message = id.map(std::borrow::Cow::into_owned).or(self.heard.message.take());
        self.counts.begin(head.usage);
        self.used(head.usage, response);
        note_changes(head.input_transformations, response);
    }

    /// Why the message ended, and what it took.
    fn message_delta(&mut self, event: &MessageEvent<'_>, response: &mut ResponseWriter, out: &mut Events) {
        let delta = event.delta.as_ref();
        if let Some(reason) = delta.and_then(|delta| delta.stop_reason).and_then(Raw::text) {
            self.stop(response, out);
            self.stopped(reason, delta.and_then(|delta| delta.stop_details), response, out);
        }
        self.counts.end(event.usage);
        self.used(event.usage, response);
        note_changes(event.input_transformations, response);
    }

    /// A whole message; one that comes after its own deltas says everything twice.
    fn whole(&mut self, event: &MessageEvent<'_>, response: &mut ResponseWriter, out: &mut Events) -> Flow {
        if !self.heard.anything {
            for block in event.content.into_iter().flat_map(Raw::elements) {
                self.open_block(block, None, response, out);
                self.stop(response, out);
            }
        }
        if let Some(reason) = event.stop_reason.and_then(Raw::text) {
            self.stopped(reason, event.stop_details, response, out);
        }
        self.counts.end(event.usage);
        self.used(event.usage, response);
        note_changes(event.input_transformations, response);
        self.heard.is_over = true;
        Flow::Over
    }

    fn used(&mut self, usage: Option<Raw<'_>>, response: &mut ResponseWriter) {
        self.report.usage = self.counts.usage(self.setup.prompt_bytes, self.volume());
        let Some(tier) = usage.and_then(|usage| usage.get("service_tier")).and_then(Raw::text) else { return };
        // The usual one has another name there.
        if !tier.is("standard") {
            response.served_as(tier);
        }
    }

    fn stopped(&mut self, reason: Text<'_>, details: Option<Raw<'_>>, response: &mut ResponseWriter, out: &mut Events) {
        let words = details.and_then(|details| details.get("explanation")).and_then(Raw::text);
        let reason = reason.decode();
        self.heard.is_paused = reason == "pause_turn";
        let finish = match (&*reason, words.filter(|words| !words.is_empty())) {
            ("pause_turn", _) => Finish::known("pause_turn", FinishMeaning::Complete),
            // What was said before it is no answer any more, and stays incomplete.
            ("refusal", Some(words)) if self.volume().answered == 0 => {
                self.refuse(words, response, out);
                Finish::known("refusal", FinishMeaning::Complete)
            }
            (reason, words) => {
                if let Some(words) = words.filter(|_| reason == "refusal") {
                    let words: String = words.decode().chars().take(MOST_WORDS).collect();
                    response.remark(Action::Degraded, "output", format!("the provider broke it off: {words}"));
                }
                Finish::read(reason, &self.setup.dialect)
            }
        };
        self.report.finish = Some(finish);
    }

    pub(super) fn end(&mut self, end: End, response: &mut ResponseWriter, out: &mut Events) -> RoundEnd {
        self.break_off(response, out);
        self.release(response, out);
        let end = match self.report.failure.take().map_or(end, End::Failed) {
            End::Failed(failure) => End::Failed(failure),
            end if self.is_whole(&end) => End::Done,
            _ if self.setup.dialect.eof == EofTolerance::Any => End::Eof,
            _ => {
                let message = "The provider's answer broke off before it was finished.";
                End::Failed(Failure::new(FailureClass::Truncated, message))
            }
        };
        // Only what it says last makes a reason count.
        if !self.heard.is_over && matches!(end, End::Failed(_)) {
            self.report.finish = None;
        }
        let content = Content::of(&self.calls, self.heard.volume);
        let is_paused = self.heard.is_paused && self.calls.is_empty() && !matches!(end, End::Failed(_));
        let mut round = if is_paused {
            RoundEnd::Paused
        } else {
            finish::round_end(end, self.report.finish.as_ref(), content, &self.setup.dialect, response)
        };
        if round == RoundEnd::Completed {
            round = self.look_for_broken_calls(response);
        }
        let is_good = matches!(round, RoundEnd::Completed | RoundEnd::Paused);
        let last = if is_good { Status::Completed } else { Status::Incomplete };
        if round == RoundEnd::Completed && content == Content::Text && !self.heard.refusal {
            round = self.keep_promise(response, out).map_or_else(RoundEnd::Failed, |()| RoundEnd::Completed);
        }
        self.close_search(None, response, out);
        self.close_slot(last, response, out);
        if round == RoundEnd::Completed
            && let Some(rejected) = self.calls.reject(response, out)
        {
            round = RoundEnd::Rejected(rejected);
        }
        self.calls.close(last, response, out);
        // An item that was cut is the last one.
        if is_good {
            self.write_kept(response, out);
        }
        self.report.usage = self.counts.usage(self.setup.prompt_bytes, self.volume());
        if self.report.usage.is_some() && !self.counts.is_final() && !matches!(round, RoundEnd::Failed(_)) {
            response.remark(Action::Degraded, "usage", "the provider did not say all of it: estimated from sizes");
        }
        let cost = self.report.cost(&round, self.setup.prompt_bytes, self.volume(), response);
        response.end_round(cost);
        self.calls.end_round(round)
    }

    /// Whether the upstream has said all that it had to say: some relays end with the words of another API.
    fn is_whole(&self, end: &End) -> bool {
        self.heard.is_over || *end == End::Done && self.report.finish.is_some()
    }

    /// Arguments that are no JSON were cut, whatever the answer says about its end; so such an answer is never completed.
    fn look_for_broken_calls(&mut self, response: &mut ResponseWriter) -> RoundEnd {
        if !self.report.finish.as_ref().is_some_and(Finish::is_complete) {
            self.calls.ends_unsaid();
        }
        if let Some(tool) = self.calls.cut() {
            let message = format!("the arguments of {tool} broke off: its input is not whole");
            response.note(Note::new(Action::Degraded, "tool_calls", message).coded(code::TOOL_INPUT));
            return finish::truncated(&format!("The provider's answer broke off in the input of the tool '{tool}'."));
        }
        if self.calls.are_sound() {
            return RoundEnd::Completed;
        }
        finish::truncated("The provider's answer broke off in the arguments of a tool call.")
    }

    fn volume(&self) -> Volume {
        Volume { answered: self.heard.volume.answered + self.calls.bytes(), ..self.heard.volume }
    }

    pub(super) fn taken(&self) -> (Usage, bool) {
        match self.counts.usage(self.setup.prompt_bytes, self.volume()) {
            Some(usage) => (usage, !self.counts.is_final()),
            None => report::taken(&Report::default(), self.setup.prompt_bytes, self.volume()),
        }
    }
}

/// What the upstream left out of the request, and why.
fn note_changes(changes: Option<Raw<'_>>, response: &mut ResponseWriter) {
    for change in changes.into_iter().flat_map(Raw::elements) {
        let word = |name: &str| {
            let text = change.get(name).and_then(Raw::text).map(Text::decode).unwrap_or_default();
            text.chars().take(128).collect::<String>()
        };
        let message = format!("the provider changed the request: {} ({})", word("type"), word("reason"));
        response.remark(Action::Degraded, "input", message);
    }
}
