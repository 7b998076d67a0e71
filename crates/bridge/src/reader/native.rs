//! The reader of an answer in the Responses API itself. The upstream's events are not passed on but written anew:
//! numbers, ids, order, the events that it left out and the object at the end are ours, as with a chat answer.
//!
//! Items never overlap. What comes for an item while another is open waits until that one is closed.

mod call;
mod event;
mod item;
mod other;
mod queue;
mod text;

use wire::id::{Id, IdKind};
use wire::json::{Kind, MAX_DEPTH, ObjectWriter, Raw, Text};
use wire::responses::{EventKind, Incoming, Status, Usage, Whole};

use super::contract::Promise;
use super::finish::{self, Content, Finish};
use super::ran::Ran;
use super::report::{self, Report, Volume};
use super::{End, Flow, HeldCall, Repair, RoundEnd, Setup, let_go, only_hosted};
use crate::context::{AnswerContext, NativeContext, OfferedTool};
use crate::dialect::{FinishMeaning, ItemIds};
use crate::events::Events;
use crate::failure::{Failure, FailureClass};
use crate::note::Action;
use crate::response::{PartKind, ResponseWriter};
use event::EventMeaning;
use queue::Queue;

#[derive(Debug, Clone)]
pub struct NativeReader {
    wanted: Wanted,
    pub(super) setup: Setup,
    pub(super) report: Report,
    promise: Promise,
    queue: Queue,
    tally: Tally,
    /// Something of an answer has come.
    has_begun: bool,
}

/// What the request asked for, and how the upstream is.
#[derive(Debug, Clone)]
struct Wanted {
    native: NativeContext,
    logprobs: bool,
    tools: Vec<OfferedTool>,
}

/// What the items come to.
#[derive(Debug, Clone, Default)]
struct Tally {
    volume: Volume,
    refused: bool,
    /// Calls, and how many of them have arguments that cannot be all there is.
    calls: usize,
    broken_calls: usize,
    /// Calls from the first one on that godex runs, and how many of all are the client's.
    held: Vec<HeldCall>,
    client: usize,
    /// Items of which we know nothing but that they are an answer.
    others: usize,
    /// An item was closed as incomplete.
    cut: bool,
}

impl Tally {
    /// Whether calls of the client wait: a hosted one goes before them.
    const fn holds(&self) -> bool {
        !self.held.is_empty()
    }
}

/// Where items are written, and what that needs to know.
struct Ctx<'r> {
    response: &'r mut ResponseWriter,
    out: &'r mut Events,
    tally: &'r mut Tally,
    promise: &'r mut Promise,
    wanted: &'r Wanted,
    setup: &'r Setup,
    ran: &'r mut Ran,
}

impl Ctx<'_> {
    /// The id of an item, as the dialect has it.
    fn id(&mut self, upstream: &str, kind: IdKind) -> Id {
        let theirs = self.wanted.native.item_ids == ItemIds::Theirs;
        let adopted = if theirs { self.response.adopt_item_id(upstream) } else { None };
        adopted.unwrap_or_else(|| self.response.make_id(kind))
    }

    /// The kind of part that the client is shown instead of this one.
    fn shown(&mut self, kind: PartKind, text: Text<'_>) -> PartKind {
        if text.is_empty() {
            return kind;
        }
        self.tally.refused |= kind == PartKind::Refusal;
        self.response.shown_as(kind)
    }

    fn event(&mut self, kind: EventKind, members: impl FnOnce(&mut ObjectWriter<'_>)) {
        self.response.event(kind, self.out, members);
    }
}

/// Whether somebody else's JSON may become part of ours: it is not nested as deep as JSON may be, with what is around
/// it.
fn fits(raw: Raw<'_>) -> bool {
    !raw.is_deeper_than(MAX_DEPTH - 4)
}

/// A member that is a string and not empty.
fn string(raw: Option<Raw<'_>>) -> Option<Text<'_>> {
    raw.and_then(Raw::text).filter(|text| !text.is_empty())
}

impl NativeReader {
    pub(super) fn new(native: NativeContext, context: AnswerContext, mut setup: Setup) -> Self {
        let AnswerContext {
            tools,
            logprobs,
            output,
            reasoning_summary: _,
            wire: _,
            grammars: _,
            renamed: _,
            prompt_end: _,
        } = context;
        let promise = setup.promise(output);
        Self {
            wanted: Wanted { native, logprobs, tools },
            promise,
            setup,
            report: Report::default(),
            queue: Queue::default(),
            tally: Tally::default(),
            has_begun: false,
        }
    }

    pub(super) const fn has_begun(&self) -> bool {
        self.has_begun || !self.tally.volume.is_empty()
    }

    /// How many bytes of content are in no closed item yet.
    pub(super) fn held(&self) -> usize {
        self.queue.held() + self.tally.held.iter().map(HeldCall::held).sum::<usize>()
    }

    pub(super) fn take_hosted(&mut self) -> Vec<HeldCall> {
        std::mem::take(&mut self.tally.held)
    }

    /// One event, or a whole response.
    pub(super) fn event(&mut self, text: &str, response: &mut ResponseWriter, out: &mut Events) -> Flow {
        let Ok(event) = Incoming::parse(text) else {
            let message = "The provider's answer could not be read: it is neither a response nor an event of one.";
            return self.report.fail(Failure::new(FailureClass::Protocol, message));
        };
        let name = string(event.kind).map(Text::decode).unwrap_or_default();
        match event::read(&name) {
            EventMeaning::Nothing => Flow::More,
            EventMeaning::Error => self.error(event.error, text),
            EventMeaning::Over(status) => self.over(event.response.map_or(text, Raw::as_str), status, response, out),
            EventMeaning::Item(op) => {
                self.has_begun |= op.says_something(&event);
                match self.with_ctx(response, out, |queue, ctx| queue.accept(op, &event, ctx)) {
                    Err(failure) => self.report.fail(failure),
                    Ok(()) => Flow::More,
                }
            }
            EventMeaning::Unknown if name.is_empty() => self.whole(&event, text, response, out),
            // An error that is called by its own name.
            EventMeaning::Unknown if !name.starts_with("response.") && event.is_error() => {
                self.error(event.error, text)
            }
            EventMeaning::Unknown => {
                let name: String = name.chars().take(64).collect();
                response.remark(Action::Ignored, "stream", format!("the event '{name}' is not known"));
                Flow::More
            }
        }
    }

    /// What is no event: the answer to a request that is not streamed, or an error in its place.
    fn whole(&mut self, event: &Incoming<'_>, text: &str, response: &mut ResponseWriter, out: &mut Events) -> Flow {
        let is_response = event.object.and_then(Raw::text).is_some_and(|object| object.is("response"))
            || event.output.is_some_and(|output| output.kind() == Kind::Array);
        if is_response { self.over(text, "completed", response, out) } else { self.error(event.error, text) }
    }

    fn error(&mut self, error: Option<Raw<'_>>, text: &str) -> Flow {
        let nested = error.filter(|error| matches!(error.kind(), Kind::Object | Kind::String));
        let failure = match nested.or_else(|| Raw::parse(text).ok()) {
            Some(error) => Failure::in_band(error, &self.setup.dialect),
            None => Failure::new(FailureClass::Server, "The provider reported an error."),
        };
        self.report.fail(failure)
    }

    /// The response is over, with this status unless it says another one itself: some say `completed` of everything.
    fn over(&mut self, object: &str, named: &str, response: &mut ResponseWriter, out: &mut Events) -> Flow {
        let whole = Whole::of(object);
        self.report.used(whole.usage);
        if let Some(tier) = string(whole.service_tier) {
            response.served_as(tier);
        }
        let status = string(whole.status).map_or(named.into(), Text::decode);
        let reason = string(whole.incomplete_details.and_then(|details| details.get("reason"))).map(Text::decode);
        let last = if status == "completed" && reason.is_none() { Status::Completed } else { Status::Incomplete };
        let items: Vec<Raw<'_>> = whole.output.into_iter().flat_map(Raw::elements).collect();
        self.with_ctx(response, out, |queue, ctx| queue.finish(&items, last, ctx));
        let error = whole.error.filter(|error| error.kind() == Kind::Object);
        match (&*status, error) {
            ("completed", None) => self.report.finish = Some(self.finish(reason.as_deref(), response)),
            ("incomplete", _) => {
                let reason = reason.as_deref().unwrap_or("max_output_tokens");
                self.report.finish = Some(self.finish(Some(reason), response));
            }
            (_, Some(error)) => self.report.failure = Some(Failure::in_band(error, &self.setup.dialect)),
            (status, None) => {
                let status: String = status.chars().take(64).collect();
                let message = format!("The provider ended the response with status '{status}'.");
                self.report.failure = Some(Failure::new(FailureClass::Server, message));
            }
        }
        Flow::Over
    }

    /// What it means that the response ended, for the reason that is given.
    fn finish(&self, reason: Option<&str>, response: &mut ResponseWriter) -> Finish {
        match reason {
            Some("content_filter") => return Finish::known("content_filter", FinishMeaning::ContentFilter),
            Some(_) => return cut(),
            None => {}
        }
        let limit = self.wanted.native.silent_limit;
        let reached = limit.zip(self.report.usage).is_some_and(|(limit, usage)| usage.output_tokens >= limit);
        if !reached && !self.tally.cut {
            return Finish::known("completed", FinishMeaning::Complete);
        }
        let message = if self.tally.cut { "an item in it is incomplete" } else { "it is as long as was allowed" };
        response.remark(Action::Repaired, "status", format!("the response counts as incomplete: {message}"));
        cut()
    }

    pub(super) fn end(&mut self, end: End, response: &mut ResponseWriter, out: &mut Events) -> RoundEnd {
        let end = match self.report.failure.take().map_or(end, End::Failed) {
            // The terminal event says that the response is whole; `[DONE]` is no event of this API.
            End::Done => End::Eof,
            end => end,
        };
        self.with_ctx(response, out, Queue::close_waiting);
        // An item that says that it was cut is an ending, too, where there is no other.
        if self.tally.cut {
            self.report.finish.get_or_insert_with(cut);
        }
        let content = self.content_so_far();
        let mut round = finish::round_end(end, self.report.finish.as_ref(), content, &self.setup.dialect, response);
        let last = if round == RoundEnd::Completed { Status::Completed } else { Status::Incomplete };
        if round == RoundEnd::Completed && content == Content::Text && !self.tally.refused {
            // What is closed cannot be mended.
            round = self.promise.keep(Repair::Off, response).map_or_else(RoundEnd::Failed, |_| RoundEnd::Completed);
        }
        self.with_ctx(response, out, |queue, ctx| queue.finish(&[], last, ctx));
        if round != RoundEnd::Completed {
            let_go(&mut self.tally.held, response, out);
        }
        let cost = self.report.cost(&round, self.setup.prompt_bytes, self.tally.volume, response);
        response.end_round(cost);
        self.end_round(round)
    }

    pub(super) fn taken(&self) -> (Usage, bool) {
        report::taken(&self.report, self.setup.prompt_bytes, self.tally.volume)
    }

    /// As with a chat answer: hosted calls are run if the answer is whole, and the model is asked again if it waits for
    /// nothing but them.
    fn end_round(&mut self, end: RoundEnd) -> RoundEnd {
        if end != RoundEnd::Completed {
            return end;
        }
        only_hosted(&mut self.tally.held, self.tally.client).map_or(end, RoundEnd::Hosted)
    }

    fn content_so_far(&self) -> Content {
        let tally = &self.tally;
        let open_call = self.queue.has_open_call();
        if tally.calls > 0 || open_call {
            Content::Calls { sound: tally.broken_calls == 0 && !open_call }
        } else if tally.volume.answered > 0 || tally.others > 0 {
            Content::Text
        } else if tally.volume.reasoned > 0 {
            Content::Reasoning
        } else {
            Content::Nothing
        }
    }

    fn with_ctx<T>(
        &mut self,
        response: &mut ResponseWriter,
        out: &mut Events,
        step: impl FnOnce(&mut Queue, &mut Ctx<'_>) -> T,
    ) -> T {
        let Self { wanted, setup, promise, queue, tally, report, .. } = self;
        step(queue, &mut Ctx { response, out, tally, promise, wanted, setup, ran: &mut report.ran })
    }
}

fn cut() -> Finish {
    Finish::known("max_output_tokens", FinishMeaning::Length)
}
