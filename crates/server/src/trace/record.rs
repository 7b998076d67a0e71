//! What is known of one request when it is over: the one source of metrics, traces and spans. Nothing that a client, a model
//! or a provider wrote is in it but names, unless bodies are to be captured.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bridge::{FailureClass, Note, note_code};
use http::{HeaderValue, Method};
use wire::id::Id;
use wire::json::Text;
use wire::responses::{CreateResponse, Input, Status, Usage};

use super::capture::Captured;
use crate::caller::Caller;
use crate::pace::Gaps;
use crate::prefix::Shared;
use crate::span::Span;

/// A request, as it was asked.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    pub(crate) method: Method,
    pub(crate) path: Box<str>,
    pub(crate) request_id: HeaderValue,
    /// In microseconds since 1970.
    pub(crate) began_at: u64,
    pub(crate) took: Duration,
}

/// One request that is over.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) head: Head,
    pub(crate) facts: Facts,
}

/// What was entered into its account.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// The pattern of the route that was found; `background` for a turn that runs by itself.
    pub(crate) route: Option<&'static str>,
    pub(crate) caller: Option<Caller>,
    /// Of the client, as far as it is known; None: it is on this machine.
    pub(crate) address: Option<IpAddr>,
    /// None: no response was asked for, or nobody could tell.
    pub(crate) kind: Option<Kind>,
    pub(crate) asked: Option<Box<Asked>>,
    pub(crate) response_id: Option<Id>,
    /// As the client asked for it.
    pub(crate) model: Option<Box<str>>,
    pub(crate) attempts: Vec<Attempted>,
    /// Upstream answers that the response is made of.
    pub(crate) rounds: Vec<Round>,
    /// What hosted tools did.
    pub(crate) tool_calls: Vec<ToolCall>,
    pub(crate) notes: Vec<Note>,
    pub(crate) usage: Option<Usage>,
    /// What godex's own questions have cost: summaries, descriptions of images. The response's usage does not have it.
    pub(crate) usage_beside: Option<Usage>,
    /// How much of the last body its provider had seen before.
    pub(crate) prefix: Option<Shared>,
    /// What was used: together what one model, or one tool, has.
    pub(crate) charges: Vec<Charge>,
    pub(crate) received: u64,
    pub(crate) sent: u64,
    /// Events that upstreams have sent; a whole answer counts as one.
    pub(crate) heard: u64,
    /// Events that were made of them for the client.
    pub(crate) told: u64,
    pub(crate) times: Times,
    /// The pauses between what came of answers.
    pub(crate) gaps: Gaps,
    /// Its place in a trace of several systems, if it has one.
    pub(crate) span: Option<Box<Span>>,
    pub(crate) status: Option<u16>,
    /// The domain code of an error.
    pub(crate) error: Option<&'static str>,
    /// What the client was told of it. It may have others' words in it.
    pub(crate) message: Option<Box<str>>,
    pub(crate) outcome: Option<Outcome>,
    /// It was put into the background, where it has an account of its own.
    pub(crate) put_off: bool,
    /// Bodies, where they are wanted.
    pub(crate) captured: Option<Box<Captured>>,
}

/// How a response is driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Sync,
    Stream,
    Websocket,
    Background,
}

impl Kind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Stream => "stream",
            Self::Websocket => "websocket",
            Self::Background => "background",
        }
    }
}

/// What a response was asked for with.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    pub(crate) stream: bool,
    pub(crate) store: bool,
    pub(crate) background: bool,
    pub(crate) previous_response_id: Option<Box<str>>,
    pub(crate) conversation_id: Option<Box<str>>,
    /// In the request itself.
    pub(crate) items: usize,
    pub(crate) tools: usize,
}

impl Asked {
    pub(crate) fn new(request: &CreateResponse<'_>) -> Self {
        Self {
            stream: request.stream.unwrap_or(false),
            store: request.store.unwrap_or(true),
            background: request.background.unwrap_or(false),
            previous_response_id: request.previous_response_id.and_then(|id| an_id(id, "resp_")),
            conversation_id: request.conversation.as_ref().and_then(|conversation| an_id(conversation.id, "conv_")),
            items: match &request.input {
                Some(Input::Items(items)) => items.len(),
                Some(Input::Text(_)) => 1,
                None => 0,
            },
            tools: request.tools.as_ref().map_or(0, Vec::len),
        }
    }
}

/// What a client says that it continues, if that may be an id of ours: any other text is its own.
fn an_id(said: Text<'_>, prefix: &str) -> Option<Box<str>> {
    /// No id is longer that anything was ever stored under.
    const LONGEST: usize = 128;
    let said = said.decode();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let rest = said.strip_prefix(prefix).filter(|rest| !rest.is_empty() && rest.bytes().all(is_plain))?;
    (prefix.len() + rest.len() <= LONGEST).then(|| said.as_ref().into())
}

/// One upstream answer of a response.
#[derive(Debug, Clone)]
pub(crate) struct Round {
    /// Which of the attempts it is the answer to, from 1.
    pub(crate) attempt: usize,
    /// How it ended.
    pub(crate) end: &'static str,
    pub(crate) usage: Option<Usage>,
}

/// What a hosted tool did.
#[derive(Debug, Clone)]
pub(crate) struct ToolCall {
    pub(crate) name: Box<str>,
    /// `mcp`, `mcp_list_tools`, `web_search`.
    pub(crate) kind: &'static str,
    /// When it was over, counted from the request's head; its answer may have waited for those of others.
    pub(crate) ended: Duration,
    pub(crate) took: Duration,
    /// `completed` or `failed`.
    pub(crate) outcome: &'static str,
}

impl Facts {
    /// Whether what the client and the model said may be written nowhere.
    pub(crate) fn is_unstored(&self) -> bool {
        // What is only counted is never stored.
        self.asked.as_ref().map_or(self.route == Some("/v1/responses/input_tokens"), |asked| !asked.store)
    }

    /// Whether a note's detail may have words of a client or a model in it: those on calls tell what is wrong with an input,
    /// those on the form of an answer what is wrong with the answer. Of what is not stored, every detail that was made for
    /// this request may: names of its tools are in them, and its values.
    pub(crate) fn has_words(&self, note: &Note) -> bool {
        let is_made = matches!(note.message, Cow::Owned(_));
        note.path == "tool_calls" || is_made && (note.path == "text.format" || self.is_unstored())
    }

    /// Of what is not stored, the client's own names of what is not known stay nowhere either.
    pub(crate) fn forget_names(&mut self) {
        if self.is_unstored() {
            let unknown = self.notes.iter_mut().filter(|note| note.code == note_code::PARAM_UNKNOWN);
            unknown.for_each(|note| note.path = Cow::Borrowed("unnamed"));
        }
    }

    /// What models used for it, of what has no usage of its own.
    pub(crate) fn charged(&self) -> Option<Usage> {
        let used = self.charges.iter().filter(|charge| charge.tool_calls == 0).map(|charge| charge.usage);
        used.reduce(Usage::plus)
    }

    /// What it cost, as far as prices are known; None if none is.
    pub(crate) fn cost(&self) -> Option<u64> {
        self.charges.iter().filter_map(|charge| charge.nanodollars).reduce(u64::saturating_add)
    }
}

/// What one upstream answer has used, also one of godex's own questions.
#[derive(Debug, Clone)]
pub(crate) struct Charge {
    pub(crate) provider: String,
    pub(crate) model: String,
    pub(crate) usage: Usage,
    /// The provider did not say.
    pub(crate) estimated: bool,
    /// None: its price is not known.
    pub(crate) nanodollars: Option<u64>,
    pub(crate) tool_calls: u64,
}

impl Charge {
    /// A call of a hosted tool.
    pub(crate) fn of_call(service: &str, tool: &str, nanodollars: Option<u64>) -> Self {
        let (provider, model, usage) = (service.to_owned(), tool.to_owned(), Usage::default());
        Self { provider, model, usage, estimated: false, nanodollars, tool_calls: 1 }
    }
}

/// When what happened, counted from the request's head.
#[derive(Debug, Default)]
pub(crate) struct Times {
    /// Until the body and what it continues were there, and the turn could be planned.
    pub(crate) opened: Option<Duration>,
    /// Spent on planning, over all attempts.
    pub(crate) planning: Duration,
    /// Spent on reading what it continues.
    pub(crate) reading: Option<Duration>,
    /// Spent until there was a connection, for the attempt that was accepted.
    pub(crate) connecting: Option<Duration>,
    pub(crate) first_byte: Option<Duration>,
    pub(crate) first_token: Option<Duration>,
    pub(crate) last_byte: Option<Duration>,
    /// Spent on storing.
    pub(crate) committing: Option<Duration>,
    /// Waited for providers, also between two tries.
    pub(crate) upstream: Duration,
    /// Waited for hosted tools.
    pub(crate) tools: Duration,
    /// Waited for the client: for the request's body, and until it took what was ready.
    pub(crate) client: Duration,
}

impl Times {
    /// Waited for providers and hosted tools.
    pub(crate) fn others(&self) -> Duration {
        self.upstream + self.tools
    }

    /// What is left of it for ourselves. Several may have been waited for at the same time: then it is nothing.
    pub(crate) fn own(&self, took: Duration) -> Duration {
        took.saturating_sub(self.others()).saturating_sub(self.client)
    }
}

/// One try to get an answer from an upstream.
#[derive(Debug, Clone)]
pub(crate) struct Attempted {
    /// `provider/model`.
    pub(crate) target: String,
    /// The base URL, where the provider has several.
    pub(crate) replica: Option<Arc<str>>,
    /// What is spoken there.
    pub(crate) wire: &'static str,
    /// Of the request.
    pub(crate) bytes: usize,
    /// Of its answer, where there was one.
    pub(crate) status: Option<u16>,
    /// `accepted`, or the class of the refusal; none while it is waited for.
    pub(crate) outcome: Option<&'static str>,
    /// When it was asked, counted from the request's head.
    pub(crate) began: Duration,
    /// Until it had accepted or refused.
    pub(crate) took: Duration,
    /// When its answer was over, counted from the request's head, and what that took.
    pub(crate) ended: Option<Duration>,
    pub(crate) usage: Option<Usage>,
}

impl Attempted {
    /// What is said of a try over a connection that had ended: the same was sent again.
    pub(crate) const CONNECTION_ENDED: &str = "connection_ended";
    /// The provider has taken the request.
    pub(crate) const ACCEPTED: &str = "accepted";
    /// The breaker was open.
    pub(crate) const KEPT_AWAY: &str = "kept_away";

    /// The names of the provider, and of its model.
    pub(crate) fn names(&self) -> (&str, &str) {
        // A few letters are quicker looked at than searched.
        let end = self.target.bytes().position(|byte| byte == b'/').unwrap_or(self.target.len());
        (&self.target[..end], self.target.get(end + 1..).unwrap_or_default())
    }

    /// Whether it asked this provider.
    pub(crate) fn is_of(&self, provider: &str) -> bool {
        self.target.strip_prefix(provider).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Whether it asked whoever is charged for.
    pub(crate) fn serves(&self, charge: &Charge) -> bool {
        let model = self.target.strip_prefix(&*charge.provider).and_then(|rest| rest.strip_prefix('/'));
        model == Some(&*charge.model)
    }

    /// Whether its answer is awaited, and this is what it took.
    pub(crate) fn awaits(&self, charge: &Charge) -> bool {
        self.outcome == Some(Self::ACCEPTED) && self.usage.is_none() && self.serves(charge)
    }
}

/// The deadlines that an upstream may miss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deadline {
    Connect,
    FirstByte,
    Idle,
    Total,
}

impl Deadline {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::FirstByte => "first_byte",
            Self::Idle => "idle",
            Self::Total => "total",
        }
    }
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was answered, with whatever status.
    Answered,
    Completed,
    Incomplete,
    Failed(FailureClass),
    /// Somebody asked for its end.
    Cancelled,
    /// The upstream missed a deadline.
    Late(Deadline),
    /// The server stopped before the answer was whole.
    Stopped,
    /// The client was gone before the answer was whole.
    ClientLeft,
}

/// What outcomes are called, in traces and metrics.
pub const OUTCOMES: [&str; 8] =
    ["answered", "completed", "incomplete", "failed", "cancelled", "late", "stopped", "client_left"];

impl Outcome {
    pub(crate) const fn name(self) -> &'static str {
        let [answered, completed, incomplete, failed, cancelled, late, stopped, client_left] = OUTCOMES;
        match self {
            Self::Answered => answered,
            Self::Completed => completed,
            Self::Incomplete => incomplete,
            Self::Failed(_) => failed,
            Self::Cancelled => cancelled,
            Self::Late(_) => late,
            Self::Stopped => stopped,
            Self::ClientLeft => client_left,
        }
    }
}

impl From<Status> for Outcome {
    fn from(status: Status) -> Self {
        match status {
            Status::Completed => Self::Completed,
            Status::Incomplete => Self::Incomplete,
            Status::Cancelled => Self::Cancelled,
            Status::Failed | Status::Queued | Status::InProgress => Self::Failed(FailureClass::Server),
        }
    }
}
