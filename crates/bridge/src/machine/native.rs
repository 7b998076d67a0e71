//! The second reader: a far side that speaks the Responses API itself. Its events are not passed on but said again:
//! numbers, ids, order, the events that it left out and the object at the end are ours, as on the other road.
//!
//! Items never overlap. What comes for an item while another is open waits until that one is closed.

mod call;
mod event;
mod item;
mod other;
mod queue;
mod text;

use std::collections::BTreeSet;

use wire::id::{Id, IdKind};
use wire::json::{Kind, Raw, Text};
use wire::responses::{Incoming, Status, Whole};

use super::finish::{Content, Finish};
use super::setup::Setup;
use super::sink::Sink;
use super::{Flow, Machine, usage};
use crate::dialect::{FinishMeaning, ItemIds};
use crate::failure::{Failure, FailureClass};
use crate::note::Action;
use crate::reading::{OutputContract, Reading};
use event::Said;
use queue::Queue;

#[derive(Debug, Clone, Default)]
pub(super) struct Native {
    queue: Queue,
    tally: Tally,
}

/// What the items come to.
#[derive(Debug, Clone, Default)]
struct Tally {
    answered: usize,
    reasoned: usize,
    refused: bool,
    /// The text of an answer that was promised to be JSON, escaped.
    promised: Vec<u8>,
    /// Calls, and whether the arguments of each can be all there is.
    calls: usize,
    broken_calls: usize,
    /// Items of which we know nothing but that they are an answer.
    others: usize,
    /// An item was closed as incomplete.
    cut: bool,
    /// The ids that were taken over from the far side.
    ids: BTreeSet<String>,
}

/// Where items go, and what they must know on the way.
struct Way<'m> {
    sink: &'m mut Sink,
    tally: &'m mut Tally,
    reading: &'m Reading,
    setup: &'m Setup,
}

impl Way<'_> {
    /// The id of an item, as the dialect has it.
    fn id(&mut self, upstream: &str, kind: IdKind) -> Id {
        let theirs = self.reading.native.is_some_and(|native| native.item_ids == ItemIds::Theirs);
        match Id::given(upstream).filter(|_| theirs && self.tally.ids.insert(upstream.to_owned())) {
            Some(id) => id,
            None => self.sink.ids.make(kind),
        }
    }

    fn promises(&self) -> bool {
        self.reading.output != OutputContract::Text
    }
}

/// Whether somebody else's JSON may become part of ours: it is not nested as deep as JSON may be.
fn fits(raw: Raw<'_>) -> bool {
    Raw::parse(&format!("[[[[{}]]]]", raw.as_str())).is_ok()
}

/// A member that is a string and not empty.
fn string(raw: Option<Raw<'_>>) -> Option<Text<'_>> {
    raw.and_then(Raw::text).filter(|text| !text.is_empty())
}

impl Machine {
    /// One event, or a whole response.
    pub(super) fn native_event(&mut self, text: &str, out: &mut Vec<u8>) -> Flow {
        let Ok(event) = Incoming::parse(text) else {
            let message = "The provider's answer could not be read: it is neither a response nor an event of one.";
            return self.fail(Failure::new(FailureClass::Protocol, message));
        };
        let name = string(event.kind).map(Text::decode).unwrap_or_default();
        match event::read(&name) {
            Said::Nothing => Flow::More,
            Said::Error => self.native_error(event.error, text),
            Said::Over(status) => self.native_over(event.response.map_or(text, Raw::as_str), status, out),
            Said::Item(op) => {
                self.has_spoken |= op.says_something(&event);
                match self.on_the_way(|queue, way| queue.accept(op, &event, way, out)).and_then(Result::err) {
                    Some(failure) => self.fail(failure),
                    None => Flow::More,
                }
            }
            Said::Unknown if name.is_empty() => self.native_whole(&event, text, out),
            // An error that is called by its own name.
            Said::Unknown if !name.starts_with("response.") && event.is_error() => self.native_error(event.error, text),
            Said::Unknown => {
                let name: String = name.chars().take(64).collect();
                self.sink.note(Action::Ignored, "stream", format!("the event '{name}' is not known"));
                Flow::More
            }
        }
    }

    /// What is no event: the answer to a request that is not streamed, or an error in its place.
    fn native_whole(&mut self, event: &Incoming<'_>, text: &str, out: &mut Vec<u8>) -> Flow {
        let is_response = event.object.and_then(Raw::text).is_some_and(|object| object.is("response"))
            || event.output.is_some_and(|output| output.kind() == Kind::Array);
        if is_response { self.native_over(text, "completed", out) } else { self.native_error(event.error, text) }
    }

    fn native_error(&mut self, error: Option<Raw<'_>>, text: &str) -> Flow {
        let nested = error.filter(|error| matches!(error.kind(), Kind::Object | Kind::String));
        let failure = match nested.or_else(|| Raw::parse(text).ok()) {
            Some(error) => Failure::in_band(error, &self.setup.dialect),
            None => Failure::new(FailureClass::Server, "The provider reported an error."),
        };
        self.fail(failure)
    }

    /// The response is over, with this status unless it says another one itself: some say `completed` of everything.
    fn native_over(&mut self, response: &str, named: &str, out: &mut Vec<u8>) -> Flow {
        let whole = Whole::of(response);
        if let Some(usage) = whole.usage.filter(|usage| usage.kind() == Kind::Object) {
            self.usage = usage::read(usage).or(self.usage);
        }
        if let Some(tier) = string(whole.service_tier) {
            self.served_as(tier);
        }
        let status = string(whole.status).map_or(named.into(), Text::decode);
        let reason = string(whole.incomplete_details.and_then(|details| details.get("reason"))).map(Text::decode);
        let last = if status == "completed" && reason.is_none() { Status::Completed } else { Status::Incomplete };
        let items: Vec<Raw<'_>> = whole.output.into_iter().flat_map(Raw::elements).collect();
        self.on_the_way(|queue, way| queue.finish(&items, last, way, out));
        let error = whole.error.filter(|error| error.kind() == Kind::Object);
        match (&*status, error) {
            ("completed", None) => self.finish = Some(self.native_finish(reason.as_deref())),
            ("incomplete", _) => {
                self.finish = Some(self.native_finish(Some(reason.as_deref().unwrap_or("max_output_tokens"))));
            }
            (_, Some(error)) => self.failure = Some(Failure::in_band(error, &self.setup.dialect)),
            (status, None) => {
                let status: String = status.chars().take(64).collect();
                let message = format!("The provider ended the response with status '{status}'.");
                self.failure = Some(Failure::new(FailureClass::Server, message));
            }
        }
        Flow::Over
    }

    /// What it means that the response ended, for the reason that is given.
    fn native_finish(&mut self, reason: Option<&str>) -> Finish {
        match reason {
            Some("content_filter") => return Finish::known("content_filter", FinishMeaning::ContentFilter),
            Some(_) => return Finish::known("max_output_tokens", FinishMeaning::Length),
            None => {}
        }
        let limit = self.reading.native.and_then(|native| native.silent_limit);
        let reached = limit.zip(self.usage).is_some_and(|(limit, usage)| usage.output_tokens >= limit);
        let cut = self.native.as_ref().is_some_and(|native| native.tally.cut);
        if !reached && !cut {
            return Finish::known("completed", FinishMeaning::Complete);
        }
        let message = if cut { "an item in it is incomplete" } else { "it is as long as was allowed" };
        self.sink.note(Action::Repaired, "status", format!("the response counts as incomplete: {message}"));
        Finish::known("max_output_tokens", FinishMeaning::Length)
    }

    fn on_the_way<T>(&mut self, step: impl FnOnce(&mut Queue, &mut Way<'_>) -> T) -> Option<T> {
        let mut native = self.native.take()?;
        let Native { queue, tally } = &mut *native;
        let mut way = Way { sink: &mut self.sink, tally, reading: &self.reading, setup: &self.setup };
        let done = step(queue, &mut way);
        self.native = Some(native);
        Some(done)
    }

    /// What the answer was, if it was read here.
    pub(super) fn native_content(&mut self, out: &mut Vec<u8>) -> Option<Content> {
        self.on_the_way(|queue, way| queue.hurry(way, out));
        let Native { queue, tally } = &mut **self.native.as_mut()?;
        self.answered_bytes = tally.answered;
        self.reasoned_bytes = tally.reasoned;
        self.refused = tally.refused;
        self.promised = std::mem::take(&mut tally.promised);
        // An item that says that it was cut is an ending, too, where there is no other.
        if tally.cut {
            self.finish.get_or_insert_with(|| Finish::known("max_output_tokens", FinishMeaning::Length));
        }
        let open_call = queue.has_open_call();
        Some(if tally.calls > 0 || open_call {
            Content::Calls { sound: tally.broken_calls == 0 && !open_call }
        } else if tally.answered > 0 || tally.others > 0 {
            Content::Text
        } else if tally.reasoned > 0 {
            Content::Reasoning
        } else {
            Content::Nothing
        })
    }

    /// Closes what the far side left open.
    pub(super) fn close_native(&mut self, last: Status, out: &mut Vec<u8>) {
        self.on_the_way(|queue, way| queue.finish(&[], last, way, out));
    }
}
