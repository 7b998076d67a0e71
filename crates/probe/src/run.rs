//! The state of a probe: what it may spend, what it has learnt, what it has found.

use bridge::{AnswerDialect, Dialect, EffortField, FailureClass, LimitField};
use providers::{DiscoveryRules, Wire};
use serde_json::{Map, Value, json};

use crate::ask::{Answer, Endpoint, Outcome, ProbeUpstream, Request};
use crate::checks::Check;
use crate::finding::Finding;
use crate::reply::{self, Reply};
use crate::wires;

/// A row of failures after which the upstream is taken for dead.
const PATIENCE: usize = 3;
/// A row of answers of no use, such as web pages or "too busy", after which asking more is no use either.
const USELESS: usize = 6;

/// The room that a model which thinks gets for that.
pub(crate) const THOUGHT: u64 = 600;

/// What is probed.
#[derive(Debug, Clone)]
pub struct Settings {
    pub model: String,
    /// The API by which the spec says that the model is asked.
    pub wire: Wire,
    /// What the spec declares.
    pub dialect: Dialect,
    /// How many tokens it says that the model takes.
    pub context_window: Option<u64>,
    /// How the provider's own list of models reads.
    pub discovery: DiscoveryRules,
    /// A far too long input may be sent.
    pub allow_overflow: bool,
    /// The address of a red picture that the provider may be told to fetch.
    pub image_url: Option<String>,
    /// The checks to run, with those that they need; empty: all.
    pub only: Vec<Check>,
    pub limits: Limits,
}

impl Settings {
    pub(crate) fn wants(&self, check: Check) -> bool {
        check == Check::Plain
            || self.only.is_empty()
            || self.only.iter().any(|wanted| *wanted == check || wanted.needs().contains(&check))
    }
}

/// What a probe may spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub requests: usize,
    pub tokens: u64,
}

/// What it has spent; tokens as the upstream counted them, or estimated where it did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    pub requests: usize,
    pub input_tokens: u64,
    pub output_tokens: u64,
}

/// What one check has cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    pub check: Check,
    pub requests: usize,
    pub tokens: u64,
}

/// What came of a probe.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Probed {
    pub findings: Vec<Finding>,
    /// Checks that were wanted and that this API has no words for.
    pub not_asked: Vec<Check>,
    pub spent: Spent,
    /// In the order of the checks.
    pub costs: Vec<Cost>,
    /// Why it ended before its end, if it did.
    pub ended: Option<Abort>,
}

/// Why a probe ended before its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Abort {
    #[error("the provider refused the key ({0})")]
    Auth(String),
    #[error("the account has no quota left ({0})")]
    Quota(String),
    #[error("the provider does not know the model ({0}); name one with --model")]
    Model(String),
    #[error("{0}")]
    Unreachable(String),
    #[error("even a plain request was refused ({0}); is this the base URL of a {1}?")]
    Refused(String, &'static str),
    #[error("a plain request got no answer that can be read: {0}")]
    Unreadable(String),
    #[error("{0} answers in a row were of no use; the last: {1}")]
    Useless(usize, String),
}

/// What later requests must know of earlier answers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    /// The member that limits the answer; None: none does.
    pub(crate) limit: Option<LimitField>,
    /// `temperature` is taken: 0 makes answers easier to judge.
    pub(crate) temperature: bool,
    /// The model reasons before it answers: small limits cut it off.
    pub(crate) thinks: bool,
    /// A `tool_choice` that made it call.
    pub(crate) calling: Option<Value>,
    pub(crate) tools: Tools,
    /// An answer with calls, as it came.
    pub(crate) call: Option<Value>,
    /// Whether the effort `none` ends the thinking; None where it is refused or unknown.
    pub(crate) quiet_effort: Option<bool>,
    /// Whether a history without anything odd is taken; None: nobody had to ask.
    pub(crate) histories: Option<bool>,
    /// The `content` of an assistant message with calls that was accepted.
    pub(crate) history: Option<crate::bodies::Absent>,
}

/// Whether tools can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Tools {
    #[default]
    Taken,
    /// It calls when it has seen an example of a call.
    ByExample,
    /// They are refused altogether.
    Refused,
}

/// A probe under way.
#[derive(Debug)]
pub(crate) struct Run<'a, U> {
    upstream: &'a mut U,
    pub(crate) settings: &'a Settings,
    /// The API in which questions go out; that of the settings, but for an estimate.
    speaks: Wire,
    pub(crate) known: Known,
    pub(crate) findings: Vec<Finding>,
    pub(crate) spent: Spent,
    /// Something was answered: address, key and model are good.
    answered: bool,
    failures: usize,
    useless: usize,
    out_of_time: bool,
}

impl<'a, U: ProbeUpstream> Run<'a, U> {
    pub(crate) fn new(upstream: &'a mut U, settings: &'a Settings, speaks: Wire) -> Self {
        let known = Known { limit: Some(settings.dialect.limit_field), ..Known::default() };
        Self {
            upstream,
            settings,
            speaks,
            known,
            findings: Vec::new(),
            spent: Spent::default(),
            answered: false,
            failures: 0,
            useless: 0,
            out_of_time: false,
        }
    }

    pub(crate) fn dialect(&self) -> &'a Dialect {
        &self.settings.dialect
    }

    /// Whether it is a chat server: others have checks of their own for some of it.
    pub(crate) fn is_chat(&self) -> bool {
        matches!(self.settings.wire, Wire::Chat | Wire::Demo)
    }

    /// Where questions go.
    pub(crate) fn endpoint(&self) -> Endpoint {
        wires::endpoint(self.speaks)
    }

    /// A chat request's body: these messages, and room for about so many tokens.
    pub(crate) fn body(&self, messages: Value, room: u64) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("model".to_owned(), json!(self.settings.model));
        let rules = &self.dialect().request;
        body.extend(members(rules.options.members.as_deref()));
        body.extend(members(rules.reasoning.always.as_deref()));
        if let Some(field) = self.known.limit {
            body.insert(field.name().to_owned(), json!(self.room(room)));
        }
        if self.known.temperature && !self.known.thinks {
            body.insert("temperature".to_owned(), json!(0));
        }
        body.insert("messages".to_owned(), messages);
        body
    }

    /// The members that switch thinking off, where the spec has any.
    pub(crate) fn thinking_off(&self) -> Map<String, Value> {
        members(self.dialect().request.reasoning.off.as_deref())
    }

    /// The members that switch it on. Where a Messages API has none of its own for that, thinking is on with an effort.
    pub(crate) fn thinking_on(&self) -> Map<String, Value> {
        let rules = &self.dialect().request.reasoning;
        let on = members(rules.on.as_deref());
        let by_effort = self.settings.wire == Wire::Messages && rules.effort == EffortField::Members && on.is_empty();
        if by_effort { members(rules.ladder.first().map(|(_, object)| object.as_str())) } else { on }
    }

    /// A model that thinks needs room for that, too.
    pub(crate) fn room(&self, room: u64) -> u64 {
        if self.known.thinks { room + THOUGHT } else { room }
    }

    /// Asks a question, which is written as a chat request, by the wire of the provider.
    pub(crate) async fn ask(&mut self, about: &'static str, body: Map<String, Value>) -> Result<Reply, Abort> {
        let stream = body.get("stream") == Some(&Value::Bool(true));
        let model = body.get("model").and_then(Value::as_str).unwrap_or_default().to_owned();
        let (wire, endpoint) = (self.speaks, self.endpoint());
        let body = wires::lower(wire, self.dialect(), body).to_string().into_bytes();
        let request = Request { about, endpoint, model, body, stream };
        self.exchange(request, |answer, dialect| wires::read(wire, answer, dialect)).await
    }

    /// Sends any request, within what may be spent. Its answer stays as it is, but for a chat.
    pub(crate) async fn send(&mut self, request: Request) -> Result<Reply, Abort> {
        let read = if request.endpoint == Endpoint::Chat { reply::read } else { reply::read_other };
        self.exchange(request, read).await
    }

    async fn exchange(
        &mut self,
        request: Request,
        read: impl Fn(&Answer, &AnswerDialect) -> Reply,
    ) -> Result<Reply, Abort> {
        if let Some(why) = self.exhausted() {
            return Ok(Reply::Unsent(why));
        }
        let estimate = request.body.len() as u64 / 4;
        self.spent.requests += 1;
        let answer = match self.upstream.send(request).await {
            Outcome::Answered(answer) => answer,
            Outcome::TimedOut => return self.failed("the provider did not answer in time".to_owned()),
            Outcome::Unreachable(message) => return self.failed(message),
            Outcome::OutOfTime => {
                self.spent.requests -= 1;
                self.out_of_time = true;
                return Ok(Reply::Unsent("the time is up"));
            }
        };
        self.failures = 0;
        let reply = read(&answer, &self.dialect().answer);
        self.count(&reply, estimate);
        self.answered |= matches!(reply, Reply::Answered(_));
        match reply {
            // The key is good: this is about something else, such as a plan, and says nothing about the request.
            Reply::Refused(refusal) if refusal.failure.class == FailureClass::Auth && self.answered => {
                self.lost(refusal.words())
            }
            Reply::Refused(refusal) => {
                self.useless = 0;
                self.must_stop(&refusal).map_or(Ok(Reply::Refused(refusal)), Err)
            }
            Reply::Lost(why) => self.lost(why),
            other => {
                self.useless = 0;
                Ok(other)
            }
        }
    }

    /// An answer that tells nothing: many of them in a row are the end.
    fn lost(&mut self, why: String) -> Result<Reply, Abort> {
        self.useless += 1;
        if self.useless >= USELESS { Err(Abort::Useless(USELESS, why)) } else { Ok(Reply::Lost(why)) }
    }

    fn exhausted(&self) -> Option<&'static str> {
        let Limits { requests, tokens } = self.settings.limits;
        if self.out_of_time {
            Some("the time is up")
        } else if self.spent.requests >= requests {
            Some("the limit of requests is reached")
        } else if self.spent.input_tokens + self.spent.output_tokens >= tokens {
            Some("the limit of tokens is reached")
        } else {
            None
        }
    }

    /// No answer. Once is bad luck, and the first time or three times in a row is the end.
    fn failed(&mut self, message: String) -> Result<Reply, Abort> {
        self.failures += 1;
        if !self.answered || self.failures >= PATIENCE {
            return Err(Abort::Unreachable(message));
        }
        Ok(Reply::Lost(message))
    }

    fn count(&mut self, reply: &Reply, estimate: u64) {
        let (input, output) = match reply {
            Reply::Answered(said) => said
                .usage
                .map_or_else(|| (estimate, said.text.len() as u64 / 4 + 1), |usage| (usage.input.max(1), usage.output)),
            // What is refused is rarely paid for.
            _ => (0, 0),
        };
        self.spent.input_tokens += input;
        self.spent.output_tokens += output;
    }

    /// Refusals that all later requests would get, too.
    fn must_stop(&self, refusal: &reply::Refusal) -> Option<Abort> {
        let words = refusal.words();
        match refusal.failure.class {
            FailureClass::Auth if !self.answered => Some(Abort::Auth(words)),
            FailureClass::Quota => Some(Abort::Quota(words)),
            FailureClass::ModelNotFound if !self.answered => Some(Abort::Model(words)),
            _ => None,
        }
    }
}

/// The members of an object that a spec carries as text.
pub(crate) fn members(json: Option<&str>) -> Map<String, Value> {
    json.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}
