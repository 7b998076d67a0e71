//! Tool calls. They may arrive side by side; they leave one after another, in the order of their index.
//!
//! The first call is live: it streams. Others wait until it has finished, which is known when its arguments are
//! whole and another call has begun, or at the end. Whose a delta is, servers tell in many ways: the id, else the
//! index, else the name; and two JSON objects are two calls, unless they say the same, or an empty one kept a place for
//! the other. What can be read in more than one way fails the turn: a call that was made up here would be carried out
//! there.

use wire::chat::{FunctionDelta, ToolCallDelta};
use wire::id::IdKind;
use wire::json::{Kind, Raw, Text};
use wire::responses::Status;

use super::super::input::AnswerEnds;
use super::super::{HeldCall, RejectedCall, RoundEnd, let_go, only_hosted};
use super::arguments::{Took, has_grown, same};
use super::call::{Call, Offered, Showing};
use super::replay_data::ReplayData;
use crate::context::{OfferedTool, ToolKind};
use crate::escaped::{Escaped, EscapedBuf, Pieces};
use crate::events::Events;
use crate::note::Action;
use crate::response::ResponseWriter;

/// More parallel calls than any model makes; beyond it an upstream is up to no good.
const MAX_CALLS: usize = 128;
const CUMULATIVE: &str = "arguments that come whole with every delta were taken once";
/// The longest id that may be sent back to us.
const MAX_ID: usize = 64;

#[derive(Debug, Clone, Default)]
pub(super) struct Calls {
    offered: Offered,
    /// Open and waiting calls, in order; the first is live.
    waiting: Vec<Call>,
    /// What identified each closed call: what comes late for it has no place any more.
    closed: Vec<Closed>,
    /// Closed calls from the first one on that godex runs, and how many of all closed ones are the client's.
    held: Vec<HeldCall>,
    client: usize,
    /// The answer is not whole: nothing of it is run.
    is_cut: bool,
    /// How long all names and arguments are, for an estimate of usage.
    bytes: usize,
    /// What cannot be made sense of.
    nonsense: Option<&'static str>,
}

/// What an entry of `tool_calls` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryForm {
    /// A part of a call, in a stream.
    Delta,
    /// A whole call, in a whole message.
    Whole,
}

#[derive(Debug, Clone)]
struct Closed {
    index: Option<i64>,
    name: EscapedBuf,
    upstream_id: EscapedBuf,
    /// As JSON.
    arguments: String,
    /// How much of them came once more.
    again: usize,
}

impl Closed {
    /// Whether these arguments say nothing, or begin to say what the call had, once more.
    fn has_said(&self, arguments: Option<Raw<'_>>) -> bool {
        let piece = plain(arguments);
        self.arguments.starts_with(piece.trim()) || same("{}", &piece) || same(&self.arguments, &piece)
    }
}

/// One delta.
struct CallDelta<'a> {
    id: Option<Escaped<'a>>,
    index: Option<i64>,
    name: Option<Escaped<'a>>,
    arguments: Option<Raw<'a>>,
}

/// Whose it is.
enum Owner {
    Open(usize),
    New,
    /// This call is closed.
    Late(usize),
}

impl Calls {
    pub(super) fn new(offered: Offered) -> Self {
        Self { offered, ..Self::default() }
    }

    /// Nothing that a client could be shown.
    pub(super) fn is_empty(&self) -> bool {
        self.closed.is_empty() && self.waiting.iter().all(|call| call.name.is_empty())
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many bytes of calls there are that are in no closed item.
    pub(super) fn held(&self) -> usize {
        let waiting: usize = self.waiting.iter().map(Call::held).sum();
        waiting + self.held.iter().map(HeldCall::held).sum::<usize>()
    }

    /// Whether some call may still get arguments.
    pub(super) fn is_busy(&self) -> bool {
        self.waiting.iter().any(|call| !call.arguments.is_whole())
    }

    /// What cannot be made sense of, if something came that cannot.
    pub(super) const fn nonsense(&mut self) -> Option<&'static str> {
        self.nonsense.take()
    }

    /// Whether the live call has been announced.
    pub(super) fn is_live(&self) -> bool {
        self.waiting.first().is_some_and(Call::is_announced)
    }

    /// Whether the arguments of every call can be all there is.
    pub(super) fn are_sound(&self) -> bool {
        self.waiting.iter().all(|call| call.is_sound(&self.offered.tools))
    }

    /// The tool whose input broke off, if one did: its arguments have no end.
    pub(super) fn cut(&self) -> Option<String> {
        let tools = &self.offered.tools;
        self.waiting.iter().find(|call| call.is_cut(tools)).map(|call| call.client_name(tools))
    }

    /// The answer has not said that it is whole.
    pub(super) const fn ends_unsaid(&mut self) {
        self.offered.inputs.ends = AnswerEnds::Unsaid;
    }

    /// Takes one entry of `tool_calls`; sends nothing. An entry of a whole message is a call of its own, whatever its
    /// id and index say.
    pub(super) fn accept(
        &mut self,
        raw: Raw<'_>,
        form: EntryForm,
        replay_data: &mut ReplayData,
        response: &mut ResponseWriter,
    ) {
        let Ok(mut delta) = serde_json::from_str::<ToolCallDelta<'_>>(raw.as_str()) else {
            return response.remark(Action::Ignored, "tool_calls", "a call that could not be read was left out");
        };
        let index = delta.index.and_then(|index| match index.text() {
            Some(text) => text.decode().parse().ok(),
            None => index.as_str().parse().ok(),
        });
        let id = delta.id.and_then(Raw::text).filter(|id| !id.is_empty()).map(Escaped::of);
        let at = self.function(id, index, &delta.called(), form, response);
        if let (Some(at), Some(extra)) = (at, delta.extra_content.filter(|extra| extra.kind() == Kind::Object)) {
            replay_data.call(&self.waiting[at].call_id.get().decode(), extra);
        }
    }

    /// Takes the old `function_call`.
    pub(super) fn accept_function(&mut self, raw: Raw<'_>, response: &mut ResponseWriter) {
        if let Ok(function) = serde_json::from_str::<FunctionDelta<'_>>(raw.as_str()) {
            self.function(None, None, &function, EntryForm::Delta, response);
        }
    }

    fn function(
        &mut self,
        id: Option<Escaped<'_>>,
        index: Option<i64>,
        function: &FunctionDelta<'_>,
        form: EntryForm,
        response: &mut ResponseWriter,
    ) -> Option<usize> {
        let name = function.name.and_then(Raw::text).filter(|name| !name.is_empty()).map(Escaped::of);
        let piece = CallDelta { id, index, name, arguments: function.arguments };
        let owner = if form == EntryForm::Whole { Owner::New } else { self.owner(&piece) };
        let at = match owner {
            Owner::Open(at) => {
                if !self.waiting[at].is_called(id) {
                    self.nonsense = Some("two tool calls come side by side and cannot be told apart");
                    return None;
                }
                at
            }
            Owner::New => self.begin(id, index, response)?,
            Owner::Late(at) => {
                self.late(at, piece.arguments, response);
                return None;
            }
        };
        // The name that a call was waiting for begins no other.
        let piece = CallDelta { name: name.filter(|_| !self.waiting[at].name.is_empty()), ..piece };
        self.waiting[at].is_plain |= function.is_custom;
        if let Some(name) = name {
            let before = self.waiting[at].name.get().len();
            self.waiting[at].take_name(name);
            self.bytes += self.waiting[at].name.get().len() - before;
        }
        self.bytes += piece.arguments.map_or(0, |raw| raw.text().map_or(raw.as_str(), Text::escaped).len());
        if let Some(arguments) = piece.arguments.and_then(written) {
            self.feed(at, arguments.get(), &piece, response);
        }
        Some(at)
    }

    fn owner(&self, piece: &CallDelta<'_>) -> Owner {
        let same_index = |index: Option<i64>| piece.index.is_none() || index.is_none() || index == piece.index;
        let by_id = piece.id.and_then(|id| {
            let of = |call: &&Call| call.upstream_id.get() == id;
            let exact = self.waiting.iter().rposition(|call| of(&call) && same_index(call.index));
            // Two calls under one id differ in their index; a name begins the second.
            exact.or_else(|| self.waiting.iter().rposition(|call| of(&call) && piece.name.is_none()))
        });
        if let Some(at) = by_id {
            // Two tools under one id are two calls.
            let other = piece.name.is_some_and(|name| self.waiting[at].is_other(name, &self.offered.tools));
            return if other { Owner::New } else { Owner::Open(at) };
        }
        let by_index = match piece.index {
            Some(index) => self.waiting.iter().rposition(|call| call.index == Some(index)),
            None => self.waiting.len().checked_sub(1),
        };
        let Some(at) = by_index else { return self.stranger(piece) };
        let call = &self.waiting[at];
        let goes_on = match (piece.id, piece.name) {
            // The id changes from delta to delta, or came late.
            (Some(_), None) => !call.arguments.is_finished(),
            (Some(_), Some(name)) => {
                call.name.is_empty()
                    || call.has_arguments() && !call.arguments.is_whole() && !call.is_other(name, &self.offered.tools)
            }
            (None, None) => true,
            (None, Some(name)) => call.goes_on_with(name, piece.index.is_some(), &self.offered.tools),
        };
        if goes_on { Owner::Open(at) } else { self.stranger(piece) }
    }

    /// A delta of no open call: of a closed one, or of a new one.
    fn stranger(&self, piece: &CallDelta<'_>) -> Owner {
        let late = self.closed.iter().rposition(|closed| match piece.id {
            Some(id) => {
                let same_name = piece.name.is_none_or(|name| closed.name.get() == name);
                same_name && closed.upstream_id.get() == id && (piece.index.is_none() || closed.index == piece.index)
            }
            None if piece.index.is_none() || closed.index != piece.index => false,
            None => piece.name.is_none_or(|name| closed.name.get() == name && closed.has_said(piece.arguments)),
        });
        late.map_or(Owner::New, Owner::Late)
    }

    /// What comes for a closed call can only be what it had, once more.
    fn late(&mut self, at: usize, arguments: Option<Raw<'_>>, response: &mut ResponseWriter) {
        let closed = &mut self.closed[at];
        let piece = plain(arguments);
        let (piece, known) = (piece.trim(), closed.arguments.as_str());
        let rest = known.get(closed.again..).unwrap_or_default().trim_start();
        if rest.starts_with(piece) {
            let read = known.len() - rest.len() + piece.len();
            closed.again = if read < known.len() { read } else { 0 };
        } else if known.starts_with(piece) {
            // All so far.
            closed.again = piece.len();
        } else if !same("{}", piece) && !same(known, piece) {
            self.nonsense = Some("arguments came for a tool call that was over");
        }
        response.remark(Action::Repaired, "tool_calls", "what came for a call after its end was left out");
    }

    /// A new call, in its place: by index, after what a client has seen already.
    fn begin(&mut self, id: Option<Escaped<'_>>, index: Option<i64>, response: &mut ResponseWriter) -> Option<usize> {
        if self.waiting.len() + self.closed.len() >= MAX_CALLS {
            response.remark(Action::Repaired, "tool_calls", "calls beyond the limit were left out");
            return None;
        }
        let call_id = Self::call_id(id, response);
        let mut at = self.waiting.len();
        // An index that is used again tells no order.
        let is_reused = id.is_some() && self.waiting.iter().any(|call| call.index == index);
        let index_of_order = index.filter(|_| !is_reused);
        while let (Some(before), Some(index)) = (at.checked_sub(1).map(|before| &self.waiting[before]), index_of_order)
        {
            if before.is_announced() || before.index.is_none_or(|other| other <= index) {
                break;
            }
            at -= 1;
        }
        self.waiting.insert(at, Call::new(index, id.unwrap_or_default().into(), call_id));
        Some(at)
    }

    /// The upstream's id, if it is one by which a result can come back; else ours.
    fn call_id(id: Option<Escaped<'_>>, response: &mut ResponseWriter) -> EscapedBuf {
        let mut pieces = id.filter(|id| id.len() <= MAX_ID).map(Pieces::of).unwrap_or_default();
        let id = pieces.take();
        let good = pieces.is_empty() && !id.get().as_written().trim().is_empty();
        match Some(id).filter(|id| good && response.adopt_call_id(id.get())) {
            Some(id) => id,
            None => EscapedBuf::of_plain(response.make_id(IdKind::Call).as_str()),
        }
    }

    /// More arguments.
    fn feed(&mut self, at: usize, arguments: Escaped<'_>, piece: &CallDelta<'_>, response: &mut ResponseWriter) {
        let (mut at, mut rest) = (at, arguments);
        loop {
            let call = &mut self.waiting[at];
            if call.is_plain {
                return call.arguments.push(rest);
            }
            match call.arguments.take(rest) {
                Took::All => {
                    if call.arguments.is_cumulative() {
                        response.remark(Action::Repaired, "tool_calls", CUMULATIVE);
                    }
                    // A name after the whole begins another call, or says the same again.
                    if rest.is_empty() && piece.name.is_some() && piece.id.is_none() && call.arguments.is_finished() {
                        call.arguments.second.get_or_insert_default().is_named = true;
                    }
                    return;
                }
                Took::Nonsense => {
                    self.nonsense = Some("the arguments of a tool call are neither pieces nor all so far");
                    return;
                }
                Took::After(rest_of_it) => {
                    // The delta has nothing of the first object.
                    let apart = rest_of_it.len() == arguments.len();
                    let again = apart && piece.id.is_some_and(|id| id == call.upstream_id.get());
                    match self.after_whole(at, rest_of_it, (piece.name.is_some() && apart, again), response) {
                        Some(next) => (at, rest) = next,
                        None => return,
                    }
                }
            }
        }
    }

    /// What comes after whole arguments: the real ones after an empty object, the same again, or another call's.
    /// Gives whose the rest is.
    fn after_whole<'e>(
        &mut self,
        at: usize,
        more: Escaped<'e>,
        (is_named, is_under_its_id): (bool, bool),
        response: &mut ResponseWriter,
    ) -> Option<(usize, Escaped<'e>)> {
        let call = &mut self.waiting[at];
        // Of a custom tool they may be any text, and then nothing tells where it ends.
        let is_text =
            call.kind(&self.offered.tools) == ToolKind::Custom && Raw::parse(&call.arguments.text().decode()).is_err();
        let arguments = &mut call.arguments;
        if arguments.second.is_none() {
            let text = more.decode();
            let is_object = text.trim_start().starts_with('{');
            if is_object && arguments.is_blank() && !arguments.is_spoiled {
                arguments.restart();
                response.remark(Action::Repaired, "tool_calls", "an empty object before the arguments was left out");
                return Some((at, more));
            }
            if !is_object || is_text || arguments.is_spoiled || arguments.first() != Some(b'{') {
                // After anything but an object nothing can be told apart any more.
                arguments.is_spoiled |= !text.trim().is_empty();
                arguments.push(more);
                return None;
            }
        }
        let second = arguments.second.get_or_insert_default();
        second.is_named |= is_named;
        second.is_under_its_id |= is_under_its_id;
        let end = second.balance.push(more);
        second.text.push(end.map_or(more, |end| more.up_to(end)));
        let end = end?;
        let next = self.resolve(at, response)?;
        Some((next, more.after(end))).filter(|(_, rest)| !rest.is_empty())
    }

    /// Two whole objects: one call said twice, two calls, or neither. Gives the call that goes on.
    fn resolve(&mut self, at: usize, response: &mut ResponseWriter) -> Option<usize> {
        let call = &mut self.waiting[at];
        let Some(second) = call.arguments.second.take() else { return Some(at) };
        let (before, after) = (call.arguments.text().decode(), second.text.get().decode());
        // An empty object after the arguments says no more than one before them.
        if same(&before, &after) || !second.is_named && same("{}", &after) {
            response.remark(Action::Repaired, "tool_calls", "arguments that came twice were taken once");
            return Some(at);
        }
        if second.is_under_its_id || !second.is_named && has_grown(&before, &after) {
            self.nonsense = Some("a tool call came twice, with different arguments");
            return None;
        }
        if !second.is_named {
            response.remark(Action::Repaired, "tool_calls", "arguments of two calls in one were taken apart");
        }
        let (name, index) = (call.name.clone(), call.index);
        let next = self.begin(None, index, response)?;
        self.waiting[next].name = name;
        let _ = self.waiting[next].arguments.take(second.text.get());
        Some(next)
    }

    /// Nothing more will come: what is left open is decided.
    pub(super) fn decide_what_is_open(&mut self, response: &mut ResponseWriter) {
        let mut at = 0;
        while let Some(call) = self.waiting.get_mut(at) {
            if call.arguments.decide_manner() {
                response.remark(Action::Repaired, "tool_calls", CUMULATIVE);
            }
            let known = call.arguments.text().decode();
            // The beginning of the same again, or a head with nothing after it.
            let repeats = |text: &EscapedBuf| known.trim().starts_with(text.get().decode().trim());
            if call.arguments.second.as_ref().is_some_and(|second| repeats(&second.text)) {
                call.arguments.second = None;
                response.remark(Action::Repaired, "tool_calls", "arguments that came twice were taken once");
            }
            self.resolve(at, response);
            at += 1;
        }
    }

    /// Closes what has finished, so that the next can go out.
    pub(super) fn close_finished(&mut self, response: &mut ResponseWriter, out: &mut Events) {
        while self.waiting.len() > 1 && self.waiting[0].arguments.is_finished() {
            self.close_first(Status::Completed, response, out);
        }
    }

    /// Sends what the live call has and has not sent; after a hosted call nothing is.
    pub(super) fn stream(&mut self, response: &mut ResponseWriter, out: &mut Events) {
        let showing = self.showing();
        if let Some(call) = self.waiting.first_mut() {
            call.advance(&self.offered, showing, response, out);
        }
    }

    const fn showing(&self) -> Showing {
        if self.held.is_empty() { Showing::Now } else { Showing::Later }
    }

    fn close_first(&mut self, status: Status, response: &mut ResponseWriter, out: &mut Events) {
        let call = self.waiting.remove(0);
        if call.name.is_empty() {
            return response.remark(Action::Repaired, "tool_calls", "a call without a name was left out");
        }
        let (index, name, upstream_id) = (call.index, call.name.clone(), call.upstream_id.clone());
        let arguments = call.arguments.text().decode().trim().to_owned();
        self.closed.push(Closed { index, name, upstream_id, arguments, again: 0 });
        let is_hosted = call.kind(&self.offered.tools).is_hosted();
        self.client += usize::from(!is_hosted);
        let held = call.close(status, &self.offered, self.showing(), response, out);
        self.held.extend(held.filter(|_| !self.is_cut));
    }

    /// Takes the call that the whole answer is, if its input does not fit and it may be asked for once more. A client that
    /// has to act on other calls first cannot wait for this one.
    pub(super) fn reject(&mut self, response: &mut ResponseWriter, out: &mut Events) -> Option<RejectedCall> {
        let [call] = &mut *self.waiting else { return None };
        if !self.offered.inputs.asks_again || !self.closed.is_empty() {
            return None;
        }
        let rejected = call.reject(&self.offered, response, out)?;
        self.waiting.clear();
        Some(rejected)
    }

    /// What the end of an answer means where it calls hosted tools: they are run if the answer is whole, and the model
    /// is asked again if there is nothing that it waits for but them.
    pub(super) fn end_round(&mut self, end: RoundEnd) -> RoundEnd {
        if end != RoundEnd::Completed {
            return end;
        }
        only_hosted(&mut self.held, self.client).map_or(end, RoundEnd::Hosted)
    }

    pub(super) fn take_hosted(&mut self) -> Vec<HeldCall> {
        std::mem::take(&mut self.held)
    }

    /// Closes all; where the answer broke off, the last one is the unfinished one.
    pub(super) fn close(&mut self, last: Status, response: &mut ResponseWriter, out: &mut Events) {
        if last != Status::Completed {
            self.is_cut = true;
            let_go(&mut self.held, response, out);
        }
        while let Some(first) = self.waiting.first() {
            let finished = self.waiting.len() > 1 && (first.arguments.is_whole() || !first.has_arguments());
            self.close_first(if finished { Status::Completed } else { last }, response, out);
        }
    }
}

/// Arguments come as (pieces of) a string; some servers send the value itself.
fn written(arguments: Raw<'_>) -> Option<Written<'_>> {
    match arguments.kind() {
        Kind::String => arguments.text().map(Escaped::of).map(Written::Theirs),
        Kind::Null => None,
        _ => Some(Written::Ours(EscapedBuf::of_plain(arguments.as_str()))),
    }
}

enum Written<'a> {
    Theirs(Escaped<'a>),
    Ours(EscapedBuf),
}

impl Written<'_> {
    fn get(&self) -> Escaped<'_> {
        match self {
            Self::Theirs(text) => *text,
            Self::Ours(text) => text.get(),
        }
    }
}

/// What the arguments say.
fn plain(arguments: Option<Raw<'_>>) -> String {
    arguments.and_then(written).map(|arguments| arguments.get().decode().into_owned()).unwrap_or_default()
}

impl Call {
    /// Notes the id under which a delta came. Some servers give every delta an id of its own; but one that comes back
    /// after another belongs to a call of its own, which was not seen.
    fn is_called(&mut self, id: Option<Escaped<'_>>) -> bool {
        let Some(id) = id else { return true };
        if self.upstream_id.is_empty() || self.upstream_id.get() == id {
            return !self.had_other_id;
        }
        self.had_other_id = true;
        true
    }

    /// Whether a named delta without an id belongs to this call: its name in pieces or once more.
    fn goes_on_with(&self, name: Escaped<'_>, has_index: bool, tools: &[OfferedTool]) -> bool {
        if self.name.is_empty() {
            // Some servers send the name last.
            return true;
        }
        if !self.has_arguments() || !self.arguments.is_whole() {
            return !self.is_other(name, tools);
        }
        // The same once more, or another call of the same tool: its arguments will tell.
        // Whoever gave the first one an id would give the second one its own.
        let is_placed = has_index || !self.upstream_id.is_empty();
        self.name.get() == name && (is_placed || !self.arguments.is_blank())
    }

    /// Whether the name is that of another tool, and not a piece of this one's.
    fn is_other(&self, name: Escaped<'_>, tools: &[OfferedTool]) -> bool {
        let known = self.name.get();
        let offered = |name: Escaped<'_>| {
            let name = name.decode();
            tools.iter().any(|tool| tool.provider_name == name)
        };
        known != name && offered(known) && offered(name)
    }

    /// A name, or a piece of it, or the same once more.
    fn take_name(&mut self, name: Escaped<'_>) {
        if self.is_announced() || self.has_arguments() && !self.name.is_empty() {
            return;
        }
        let clean = Pieces::of(name).take();
        if clean.get().starts_with(self.name.get()) {
            self.name = clean;
        } else if self.name != clean {
            self.name.push(clean.get());
        }
    }
}
