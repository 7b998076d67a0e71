//! Reads one upstream answer into the response that is being written. There is a reader for each API that an upstream
//! may speak; they have nothing in common but what they write, and how an answer can end.
//!
//! A reader never waits, never asks for anything, and sends nothing that it may have to take back.

mod balance;
mod calls;
mod chat;
mod cite;
mod contract;
mod finish;
mod held_text;
mod input;
mod messages;
mod native;
mod opening;
mod ran;
mod report;
mod setup;
mod sources;
mod usage;

use std::borrow::Cow;

use wire::json::Raw;
use wire::responses::Usage;

pub use chat::ChatReader;
pub use contract::{Checks, OutputCheck, OutputProblem, Repair};
pub use input::{InputCheck, InputReading, InputSoFar, InputVerdict};
pub use messages::MessagesReader;
pub use native::NativeReader;
pub use opening::{Look, Opening};
pub use setup::Setup;
pub use sources::{Source, Sources};

use crate::context::{AnswerContext, AnswerWire, OfferedTool};
use crate::dialect::AnswerDialect;
use crate::events::Events;
use crate::failure::{Failure, FailureClass};
use crate::response::{ClientCall, ResponseWriter};
use report::Report;

/// Whether to go on reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Flow {
    More,
    /// The upstream said that it is done, or failed: call [`Reader::end`].
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

/// What an answer came to, and so what comes next. After an answer that was cut or failed there is no other, unless it is
/// taken back: its last item may be incomplete.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum RoundEnd {
    Completed,
    Incomplete(IncompleteReason),
    Failed(Failure),
    /// The model waits for tools that godex runs, and for nothing else: it is asked again with what they gave.
    Hosted(Vec<HostedCall>),
    /// The only call of the answer does not fit its grammar, and the client has not seen it: the model is asked again
    /// with what is wrong; else the call is shown as it is ([`ResponseWriter::call`]).
    Rejected(RejectedCall),
    /// The upstream has stopped in the middle, without being asked to, and waits to go on: it is asked again with what it
    /// said.
    Paused,
}

/// `incomplete_details.reason`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IncompleteReason {
    MaxOutputTokens,
    ContentFilter,
}

impl IncompleteReason {
    pub const fn name(self) -> &'static str {
        match self {
            Self::MaxOutputTokens => "max_output_tokens",
            Self::ContentFilter => "content_filter",
        }
    }
}

/// A call of a tool that godex runs. The client never sees it as something to answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostedCall {
    /// As the model gave it, or one of ours.
    pub call_id: String,
    /// Without a namespace, and of an MCP server: a tool that was not offered.
    pub tool: OfferedTool,
    /// As the model wrote them; `{}` where it wrote none.
    pub arguments: String,
}

/// A call of an answer that calls tools of the client and tools that godex runs, from its first hosted call on: items keep
/// the model's order, so the client's calls wait until the hosted ones before them have run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeldCall {
    Hosted(HostedCall),
    /// Written with [`ResponseWriter::client_call`].
    Client(ClientCall),
}

impl HeldCall {
    /// How many bytes it has.
    fn held(&self) -> usize {
        match self {
            Self::Hosted(call) => call.arguments.len(),
            Self::Client(call) => call.held(),
        }
    }
}

/// Whether the model waits for nothing but tools that godex runs: then these.
fn only_hosted(held: &mut Vec<HeldCall>, client_calls: usize) -> Option<Vec<HostedCall>> {
    if held.is_empty() || client_calls > 0 {
        return None;
    }
    let hosted = |call| if let HeldCall::Hosted(call) = call { Some(call) } else { None };
    Some(std::mem::take(held).into_iter().filter_map(hosted).collect())
}

/// The answer is not whole: its hosted calls are not run, and the client's that waited for them are shown.
fn let_go(held: &mut Vec<HeldCall>, response: &mut ResponseWriter, out: &mut Events) {
    for call in std::mem::take(held) {
        if let HeldCall::Client(ClientCall(form)) = call {
            form.write(None, response, out);
        }
    }
}

/// A call of a custom tool whose input does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedCall {
    pub call_id: String,
    /// As the client declared the tool.
    pub name: String,
    pub namespace: Option<String>,
    pub input: String,
    /// Where and why.
    pub problem: String,
}

/// The reader of one answer.
#[derive(Debug, Clone)]
pub enum Reader {
    Chat(Box<ChatReader>),
    Responses(Box<NativeReader>),
    Messages(Box<MessagesReader>),
}

impl Reader {
    pub fn new(context: AnswerContext, setup: Setup) -> Self {
        match context.wire {
            AnswerWire::Chat => Self::Chat(Box::new(ChatReader::new(context, setup))),
            AnswerWire::Responses(native) => Self::Responses(Box::new(NativeReader::new(native, context, setup))),
            AnswerWire::Messages => Self::Messages(Box::new(MessagesReader::new(context, setup))),
        }
    }

    /// One event of the stream: its name, if it has one, and its data.
    pub fn event(&mut self, name: &[u8], data: &[u8], response: &mut ResponseWriter, out: &mut Events) -> Flow {
        let flow = self.chunk(data, response, out);
        if flow == Flow::Over || name != b"error" {
            return flow;
        }
        // An error in no shape that is known is one all the same.
        let document = str::from_utf8(data).ok().and_then(|text| Raw::parse(text).ok());
        let failure = match document {
            Some(document) => Failure::in_band(document, self.dialect()),
            None => Failure::new(FailureClass::Server, "The provider reported an error."),
        };
        self.report_mut().fail(failure)
    }

    /// One `data` of the stream, or the whole body of an answer that is not streamed.
    pub fn chunk(&mut self, data: &[u8], response: &mut ResponseWriter, out: &mut Events) -> Flow {
        let data = wire::json::without_mark(data.trim_ascii()).trim_ascii_start();
        if data == b"[DONE]" {
            return Flow::Over;
        }
        if data.is_empty() {
            return Flow::More;
        }
        let text = str::from_utf8(data).map_or_else(|_| String::from_utf8_lossy(data), Cow::Borrowed);
        match self {
            Self::Chat(reader) => reader.chunk(&text, response, out),
            Self::Responses(reader) => reader.event(&text, response, out),
            Self::Messages(reader) => reader.event(&text, response, out),
        }
    }

    /// How many bytes of content the response has by now, of all its answers: closed items, and what was read for those
    /// to come. However many chunks brought them.
    pub fn content(&self, response: &ResponseWriter) -> usize {
        let held = match self {
            Self::Chat(reader) => reader.held(),
            Self::Responses(reader) => reader.held(),
            Self::Messages(reader) => reader.held(),
        };
        response.content() + held
    }

    /// Whether the upstream said how the answer ended: only usage may follow.
    pub fn is_finished(&self) -> bool {
        self.report().finish.is_some()
    }

    /// The upstream is through: closes what is open, and adds what the answer cost to the response. It ends once: a
    /// second end, of an answer that nobody waits for any more, adds nothing.
    pub fn end(&mut self, end: End, response: &mut ResponseWriter, out: &mut Events) -> RoundEnd {
        if std::mem::replace(&mut self.report_mut().has_ended, true) {
            return match end {
                End::Failed(failure) => RoundEnd::Failed(failure),
                End::Done | End::Eof => RoundEnd::Completed,
            };
        }
        match self {
            Self::Chat(reader) => reader.end(end, response, out),
            Self::Responses(reader) => reader.end(end, response, out),
            Self::Messages(reader) => reader.end(end, response, out),
        }
    }

    /// Takes the hosted calls of an answer that also calls tools of the client, once it has ended as `Completed`, with
    /// the client's calls that came after the first of them, in the model's order. Hosted ones are to be run, all are to
    /// be shown; but the model is not asked again: it waits for the client. Of an answer that was cut or failed there are
    /// none: what broke off is not run, and what waited for it is shown already.
    pub fn take_hosted(&mut self) -> Vec<HeldCall> {
        match self {
            Self::Chat(reader) => reader.take_hosted(),
            Self::Responses(reader) => reader.take_hosted(),
            Self::Messages(reader) => reader.take_hosted(),
        }
    }

    /// What the upstream says that the answer took; none where it says nothing.
    pub const fn reported(&self) -> Option<Usage> {
        self.report().usage
    }

    /// What the answer took so far, though it may have broken off: as the upstream says, else estimated from sizes, which
    /// the second value tells.
    pub fn taken(&self) -> (Usage, bool) {
        match self {
            Self::Chat(reader) => reader.taken(),
            Self::Responses(reader) => reader.taken(),
            Self::Messages(reader) => reader.taken(),
        }
    }

    /// Which tools the upstream has run itself so far, and how often, as far as it tells.
    pub fn ran(&self) -> &[(&'static str, u64)] {
        self.report().ran.all()
    }

    /// Whether anything of an answer has come. That it was cut, or held back, before it began is an answer, too.
    fn has_begun(&self) -> bool {
        let said = match self {
            Self::Chat(reader) => reader.has_begun(),
            Self::Responses(reader) => reader.has_begun(),
            Self::Messages(reader) => reader.has_begun(),
        };
        said || self.report().finish.as_ref().is_some_and(finish::Finish::is_incomplete)
    }

    const fn report(&self) -> &Report {
        match self {
            Self::Chat(reader) => &reader.report,
            Self::Responses(reader) => &reader.report,
            Self::Messages(reader) => &reader.report,
        }
    }

    const fn report_mut(&mut self) -> &mut Report {
        match self {
            Self::Chat(reader) => &mut reader.report,
            Self::Responses(reader) => &mut reader.report,
            Self::Messages(reader) => &mut reader.report,
        }
    }

    fn dialect(&self) -> &AnswerDialect {
        match self {
            Self::Chat(reader) => &reader.setup.dialect,
            Self::Responses(reader) => &reader.setup.dialect,
            Self::Messages(reader) => &reader.setup.dialect,
        }
    }
}
