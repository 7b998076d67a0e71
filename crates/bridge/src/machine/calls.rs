//! Tool calls. They may arrive side by side; they leave one after another, in the order of their index.
//!
//! The first call is live: it streams. Others wait until it has finished, which is known when its arguments are
//! whole and another call has begun, or at the end. Whose a delta is, servers tell in many ways: the id, else the
//! index, else the name; and two JSON objects are two calls, unless they say the same, or an empty one kept a place for
//! the other. What can be read in more than one way fails the turn: a call that was made up here would be carried out
//! there.

use std::borrow::Cow;

use wire::chat::{FunctionDelta, ToolCallDelta};
use wire::id::IdKind;
use wire::json::{Kind, Raw, Text, escape_into, sanitize_into, unescape};
use wire::responses::Status;

use super::arguments::{Took, has_grown, same};
use super::call::Call;
use super::sink::Sink;
use super::thought::Bag;
use crate::note::Action;
use crate::reading::ToolKind;

/// More parallel calls than any model makes; beyond it an upstream is up to no good.
const MAX_CALLS: usize = 128;
const CUMULATIVE: &str = "arguments that come whole with every delta were taken once";
/// The longest id that may be sent back to us.
const MAX_ID: usize = 64;

#[derive(Debug, Clone, Default)]
pub(super) struct Calls {
    /// Open and waiting calls, in order; the first is live.
    waiting: Vec<Call>,
    /// What identified each closed call: what comes late for it has no place any more.
    closed: Vec<Closed>,
    /// How long all names and arguments are, for an estimate of usage.
    bytes: usize,
    /// What cannot be made sense of.
    nonsense: Option<&'static str>,
}

/// What an entry of `tool_calls` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A part of a call, in a stream.
    Delta,
    /// A whole call, in a whole message.
    Whole,
}

#[derive(Debug, Clone)]
struct Closed {
    index: Option<i64>,
    name: Vec<u8>,
    upstream_id: String,
    call_id: String,
    /// As JSON.
    arguments: String,
    /// How much of them came once more.
    again: usize,
}

impl Closed {
    /// Whether these arguments say nothing, or begin to say what the call had, once more.
    fn has_said(&self, arguments: Option<Raw<'_>>) -> bool {
        let escaped = arguments.and_then(escaped).unwrap_or_default();
        let piece = unescape(&escaped);
        self.arguments.starts_with(piece.trim()) || same("{}", &piece) || same(&self.arguments, &piece)
    }
}

/// One delta.
struct Piece<'a> {
    id: Option<&'a str>,
    index: Option<i64>,
    name: Option<&'a str>,
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
    /// Nothing that a client could be shown.
    pub(super) fn is_empty(&self) -> bool {
        self.closed.is_empty() && self.waiting.iter().all(|call| call.name.is_empty())
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
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
    pub(super) fn are_sound(&self, sink: &Sink) -> bool {
        self.waiting.iter().all(|call| call.is_sound(&sink.tools))
    }

    /// Takes one entry of `tool_calls`; sends nothing. An entry of a whole message is a call of its own, whatever its
    /// id and index say.
    pub(super) fn accept(&mut self, raw: Raw<'_>, form: Form, bag: &mut Bag, sink: &mut Sink) {
        let Ok(mut delta) = serde_json::from_str::<ToolCallDelta<'_>>(raw.as_str()) else {
            return sink.note(Action::Ignored, "tool_calls", "a call that could not be read was left out");
        };
        let index = delta.index.and_then(|index| match index.text() {
            Some(text) => text.decode().parse().ok(),
            None => index.as_str().parse().ok(),
        });
        let id = delta.id.and_then(Raw::text).filter(|id| !id.is_empty()).map(Text::escaped);
        let at = self.function(id, index, &delta.called(), form, sink);
        if let (Some(at), Some(extra)) = (at, delta.extra_content.filter(|extra| extra.kind() == Kind::Object)) {
            bag.call(&unescape(&self.waiting[at].call_id), extra);
        }
    }

    /// Takes the old `function_call`.
    pub(super) fn accept_function(&mut self, raw: Raw<'_>, sink: &mut Sink) {
        if let Ok(function) = serde_json::from_str::<FunctionDelta<'_>>(raw.as_str()) {
            self.function(None, None, &function, Form::Delta, sink);
        }
    }

    fn function(
        &mut self,
        id: Option<&str>,
        index: Option<i64>,
        function: &FunctionDelta<'_>,
        form: Form,
        sink: &mut Sink,
    ) -> Option<usize> {
        let name = function.name.and_then(Raw::text).filter(|name| !name.is_empty()).map(Text::escaped);
        let piece = Piece { id, index, name, arguments: function.arguments };
        let owner = if form == Form::Whole { Owner::New } else { self.owner(&piece, sink) };
        let at = match owner {
            Owner::Open(at) => {
                if !self.waiting[at].is_called(id) {
                    self.nonsense = Some("two tool calls come side by side and cannot be told apart");
                    return None;
                }
                at
            }
            Owner::New => self.begin(id, index, sink)?,
            Owner::Late(at) => {
                self.late(at, piece.arguments, sink);
                return None;
            }
        };
        // The name that a call was waiting for begins no other.
        let piece = Piece { name: name.filter(|_| !self.waiting[at].name.is_empty()), ..piece };
        self.waiting[at].is_plain |= function.is_custom;
        if let Some(name) = name {
            let before = self.waiting[at].name.len();
            self.waiting[at].take_name(name);
            self.bytes += self.waiting[at].name.len() - before;
        }
        self.bytes += piece.arguments.map_or(0, |raw| raw.text().map_or(raw.as_str(), Text::escaped).len());
        if let Some(arguments) = piece.arguments.and_then(escaped) {
            self.feed(at, &arguments, &piece, sink);
        }
        Some(at)
    }

    fn owner(&self, piece: &Piece<'_>, sink: &Sink) -> Owner {
        let same_index = |index: Option<i64>| piece.index.is_none() || index.is_none() || index == piece.index;
        let by_id = piece.id.and_then(|id| {
            let of = |call: &&Call| call.upstream_id == id;
            let exact = self.waiting.iter().rposition(|call| of(&call) && same_index(call.index));
            // Two calls under one id differ in their index; a name begins the second.
            exact.or_else(|| self.waiting.iter().rposition(|call| of(&call) && piece.name.is_none()))
        });
        if let Some(at) = by_id {
            // Two tools under one id are two calls.
            let other = piece.name.is_some_and(|name| self.waiting[at].is_other(name, sink));
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
                call.name.is_empty() || call.has_arguments() && !call.arguments.is_whole() && !call.is_other(name, sink)
            }
            (None, None) => true,
            (None, Some(name)) => call.goes_on_with(name, piece.index.is_some(), sink),
        };
        if goes_on { Owner::Open(at) } else { self.stranger(piece) }
    }

    /// A delta of no open call: of a closed one, or of a new one.
    fn stranger(&self, piece: &Piece<'_>) -> Owner {
        let late = self.closed.iter().rposition(|closed| match piece.id {
            Some(id) => {
                let same_name = piece.name.is_none_or(|name| closed.name == name.as_bytes());
                same_name && closed.upstream_id == id && (piece.index.is_none() || closed.index == piece.index)
            }
            None if piece.index.is_none() || closed.index != piece.index => false,
            None => piece.name.is_none_or(|name| closed.name == name.as_bytes() && closed.has_said(piece.arguments)),
        });
        late.map_or(Owner::New, Owner::Late)
    }

    /// What comes for a closed call can only be what it had, once more.
    fn late(&mut self, at: usize, arguments: Option<Raw<'_>>, sink: &mut Sink) {
        let closed = &mut self.closed[at];
        let piece = arguments.and_then(escaped).map(|piece| unescape(&piece).into_owned()).unwrap_or_default();
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
        sink.note(Action::Repaired, "tool_calls", "what came for a call after its end was left out");
    }

    /// A new call, in its place: by index, behind what a client has seen already.
    fn begin(&mut self, id: Option<&str>, index: Option<i64>, sink: &mut Sink) -> Option<usize> {
        if self.waiting.len() + self.closed.len() >= MAX_CALLS {
            sink.note(Action::Repaired, "tool_calls", "calls beyond the limit were left out");
            return None;
        }
        let call_id = self.call_id(id, sink);
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
        self.waiting.insert(at, Call::new(index, id.unwrap_or_default().to_owned(), call_id));
        Some(at)
    }

    /// The upstream's id, if it is one by which a result can come back; else ours.
    fn call_id(&self, id: Option<&str>, sink: &mut Sink) -> String {
        let mut clean = Vec::new();
        let whole = id.is_some_and(|id| id.len() <= MAX_ID && sanitize_into(&mut clean, id).is_empty());
        let clean = String::from_utf8(clean).unwrap_or_default();
        let mut used =
            self.waiting.iter().map(|call| &call.call_id).chain(self.closed.iter().map(|call| &call.call_id));
        if whole && !clean.trim().is_empty() && used.all(|other| *other != clean) {
            return clean;
        }
        sink.ids.make(IdKind::Call).as_str().to_owned()
    }

    /// More arguments.
    fn feed(&mut self, at: usize, escaped: &str, piece: &Piece<'_>, sink: &mut Sink) {
        let (mut at, mut rest) = (at, escaped);
        loop {
            let call = &mut self.waiting[at];
            if call.is_plain {
                return call.arguments.push(rest);
            }
            match call.arguments.take(rest) {
                Took::All => {
                    if call.arguments.is_cumulative() {
                        sink.note(Action::Repaired, "tool_calls", CUMULATIVE);
                    }
                    // A name behind the whole begins another call, or says the same again.
                    if rest.is_empty() && piece.name.is_some() && piece.id.is_none() && call.arguments.is_finished() {
                        call.arguments.second.get_or_insert_default().is_named = true;
                    }
                    return;
                }
                Took::Nonsense => {
                    self.nonsense = Some("the arguments of a tool call are neither pieces nor all so far");
                    return;
                }
                Took::Behind(behind) => {
                    // The delta has nothing of the first object.
                    let apart = behind.len() == escaped.len();
                    let again = apart && piece.id.is_some_and(|id| id == call.upstream_id);
                    match self.behind(at, behind, (piece.name.is_some() && apart, again), sink) {
                        Some(next) => (at, rest) = next,
                        None => return,
                    }
                }
            }
        }
    }

    /// What comes after whole arguments: the real ones after an empty object, the same again, or another call's.
    /// Gives whose the rest is.
    fn behind<'e>(
        &mut self,
        at: usize,
        behind: &'e str,
        (is_named, is_under_its_id): (bool, bool),
        sink: &mut Sink,
    ) -> Option<(usize, &'e str)> {
        let call = &mut self.waiting[at];
        // Of a custom tool they may be any text, and then nothing tells where it ends.
        let is_text =
            call.kind(&sink.tools) == ToolKind::Custom && Raw::parse(&unescape(call.arguments.text())).is_err();
        let arguments = &mut call.arguments;
        if arguments.second.is_none() {
            let text = unescape(behind);
            let is_object = text.trim_start().starts_with('{');
            if is_object && arguments.is_blank() && !arguments.is_spoiled {
                arguments.restart();
                sink.note(Action::Repaired, "tool_calls", "an empty object before the arguments was left out");
                return Some((at, behind));
            }
            if !is_object || is_text || arguments.is_spoiled || arguments.first() != Some(b'{') {
                // Behind anything but an object nothing can be told apart any more.
                arguments.is_spoiled |= !text.trim().is_empty();
                arguments.push(behind);
                return None;
            }
        }
        let second = arguments.second.get_or_insert_default();
        second.is_named |= is_named;
        second.is_under_its_id |= is_under_its_id;
        let end = second.balance.push(behind);
        second.text.push_str(end.map_or(behind, |end| &behind[..end]));
        let end = end?;
        let next = self.resolve(at, sink)?;
        Some((next, &behind[end..])).filter(|(_, rest)| !rest.is_empty())
    }

    /// Two whole objects: one call said twice, two calls, or neither. Gives the call that goes on.
    fn resolve(&mut self, at: usize, sink: &mut Sink) -> Option<usize> {
        let call = &mut self.waiting[at];
        let Some(second) = call.arguments.second.take() else { return Some(at) };
        let (before, after) = (unescape(call.arguments.text()), unescape(&second.text));
        // An empty object behind the arguments says no more than one before them.
        if same(&before, &after) || !second.is_named && same("{}", &after) {
            sink.note(Action::Repaired, "tool_calls", "arguments that came twice were taken once");
            return Some(at);
        }
        if second.is_under_its_id || !second.is_named && has_grown(&before, &after) {
            self.nonsense = Some("a tool call came twice, with different arguments");
            return None;
        }
        if !second.is_named {
            sink.note(Action::Repaired, "tool_calls", "arguments of two calls in one were taken apart");
        }
        let (name, index) = (call.name.clone(), call.index);
        let next = self.begin(None, index, sink)?;
        self.waiting[next].name = name;
        let _ = self.waiting[next].arguments.take(&second.text);
        Some(next)
    }

    /// Nothing more will come: what is left open is decided.
    pub(super) fn settle(&mut self, sink: &mut Sink) {
        let mut at = 0;
        while let Some(call) = self.waiting.get_mut(at) {
            if call.arguments.settle() {
                sink.note(Action::Repaired, "tool_calls", CUMULATIVE);
            }
            let known = unescape(call.arguments.text());
            // The beginning of the same again, or a head with nothing after it.
            let repeats = |text: &str| known.trim().starts_with(unescape(text).trim());
            if call.arguments.second.as_ref().is_some_and(|second| repeats(&second.text)) {
                call.arguments.second = None;
                sink.note(Action::Repaired, "tool_calls", "arguments that came twice were taken once");
            }
            self.resolve(at, sink);
            at += 1;
        }
    }

    /// Closes what has finished, so that the next can go out.
    pub(super) fn close_finished(&mut self, sink: &mut Sink, out: &mut Vec<u8>) {
        while self.waiting.len() > 1 && self.waiting[0].arguments.is_finished() {
            self.close_first(Status::Completed, sink, out);
        }
    }

    /// Sends what the live call has and has not sent.
    pub(super) fn stream(&mut self, sink: &mut Sink, out: &mut Vec<u8>) {
        if let Some(call) = self.waiting.first_mut() {
            call.advance(sink, out);
        }
    }

    fn close_first(&mut self, status: Status, sink: &mut Sink, out: &mut Vec<u8>) {
        let call = self.waiting.remove(0);
        if call.name.is_empty() {
            return sink.note(Action::Repaired, "tool_calls", "a call without a name was left out");
        }
        let (index, name) = (call.index, call.name.clone());
        let (upstream_id, call_id) = (call.upstream_id.clone(), call.call_id.clone());
        let arguments = unescape(call.arguments.text()).trim().to_owned();
        self.closed.push(Closed { index, name, upstream_id, call_id, arguments, again: 0 });
        call.close(status, sink, out);
    }

    /// Closes all; where the answer broke off, the last one is the unfinished one.
    pub(super) fn close(&mut self, last: Status, sink: &mut Sink, out: &mut Vec<u8>) {
        while let Some(first) = self.waiting.first() {
            let finished = self.waiting.len() > 1 && (first.arguments.is_whole() || !first.has_arguments());
            self.close_first(if finished { Status::Completed } else { last }, sink, out);
        }
    }
}

/// Arguments come as (pieces of) a string; some servers send the value itself.
fn escaped(arguments: Raw<'_>) -> Option<Cow<'_, str>> {
    match arguments.kind() {
        Kind::String => arguments.text().map(Text::escaped).map(Cow::Borrowed),
        Kind::Null => None,
        _ => {
            let mut escaped = Vec::with_capacity(arguments.as_str().len() + 16);
            escape_into(&mut escaped, arguments.as_str());
            String::from_utf8(escaped).ok().map(Cow::Owned)
        }
    }
}

impl Call {
    /// Notes the id under which a delta came. Some servers give every delta an id of its own; but one that comes back
    /// after another belongs to a call of its own, which was not seen.
    fn is_called(&mut self, id: Option<&str>) -> bool {
        let Some(id) = id else { return true };
        if self.upstream_id.is_empty() || self.upstream_id == id {
            return !self.had_other_id;
        }
        self.had_other_id = true;
        true
    }

    /// Whether a named delta without an id belongs to this call: its name in pieces or once more.
    fn goes_on_with(&self, name: &str, has_index: bool, sink: &Sink) -> bool {
        if self.name.is_empty() {
            // Some servers send the name last.
            return true;
        }
        if !self.has_arguments() || !self.arguments.is_whole() {
            return !self.is_other(name, sink);
        }
        // The same once more, or another call of the same tool: its arguments will tell.
        // Whoever gave the first one an id would give the second one its own.
        let is_placed = has_index || !self.upstream_id.is_empty();
        self.name == name.as_bytes() && (is_placed || !self.arguments.is_blank())
    }

    /// Whether the name is that of another tool, and not a piece of this one's.
    fn is_other(&self, name: &str, sink: &Sink) -> bool {
        let offered = |name: &str| sink.tools.iter().any(|tool| tool.provider_name == unescape(name));
        let known = str::from_utf8(&self.name).unwrap_or_default();
        known != name && offered(known) && offered(name)
    }

    /// A name, or a piece of it, or the same once more.
    fn take_name(&mut self, name: &str) {
        if self.is_announced() || self.has_arguments() && !self.name.is_empty() {
            return;
        }
        let mut clean = Vec::with_capacity(name.len());
        let _ = sanitize_into(&mut clean, name);
        if clean.starts_with(&self.name) {
            self.name = clean;
        } else if self.name != clean {
            self.name.extend_from_slice(&clean);
        }
    }
}
