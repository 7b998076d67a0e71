//! Tool calls as chat deltas bring them: side by side, or one after the other. A call has finished when its arguments are
//! whole and another call has begun, or at the end. Whose a delta is, servers tell in many ways: the id, else the index,
//! else the name; and two JSON objects are two calls, unless they say the same, or an empty one kept a place for the
//! other. What can be read in more than one way fails the turn: a call that was made up here would be carried out there.

use wire::chat::{FunctionDelta, ToolCallDelta};
use wire::json::{Kind, Raw, Text};

use super::super::calls::arguments::{Took, has_grown, same};
use super::super::calls::call::Call;
use super::super::calls::{Calls, Closed};
use super::replay_data::ReplayData;
use crate::context::{OfferedTool, ToolKind};
use crate::escaped::{Escaped, EscapedBuf, Pieces};
use crate::note::Action;
use crate::response::ResponseWriter;

const CUMULATIVE: &str = "arguments that come whole with every delta were taken once";

/// What an entry of `tool_calls` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryForm {
    /// A part of a call, in a stream.
    Delta,
    /// A whole call, in a whole message.
    Whole,
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
    /// What cannot be made sense of, if something came that cannot.
    pub(super) const fn nonsense(&mut self) -> Option<&'static str> {
        self.nonsense.take()
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
