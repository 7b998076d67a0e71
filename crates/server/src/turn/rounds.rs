//! Rounds: a response may be made of several upstream answers. After each, one decision: the response is over, hosted
//! tools must run and their results go back to the model, or the model is asked again for an answer that is not in the
//! format that was promised.
//!
//! For another round the request is read once more, with the items that came since; so all that is kept for it are the
//! request's bytes and the past, and only where there may be another round at all.

use std::sync::Arc;

use bridge::{Action, End, Failure, FailureClass, HostedCall, Note, RejectedCall, RoundEnd, note_code};
use bytes::Bytes;
use wire::json::{Kept, Kind, ObjectWriter, Raw};
use wire::responses::CreateResponse;

use super::compacting::{Came, Why};
use super::{Phase, Ran, Turn, drain_now, truncating};
use crate::account::Outcome;
use crate::ask::{Alarm, Answer, Asked, Attempt, HostedOutput, HostedTools, Unanswered};
use crate::body;
use crate::clock;
use crate::error::ApiError;
use crate::items::{self, answer_text, item, message};
use crate::request::RequestContext;
use crate::session::Context;
use crate::upstream::{Failover, late};

/// A model that calls tools for ever is stopped here.
const MOST: u32 = 32;

/// What another round is made of.
#[derive(Debug)]
pub(super) struct Material {
    pub(super) bytes: Bytes,
    pub(super) past: Context,
    pub(super) failover: Failover,
    pub(super) hosted: Option<Arc<dyn HostedTools>>,
    /// Whether an answer may be asked for once more.
    asks_again: bool,
    /// Whether a call whose input does not fit may be asked for once more.
    asks_input_again: bool,
    /// Items that follow the request's input, as JSON.
    added: Vec<String>,
    /// How many of the response's items are among them.
    shown: usize,
    rounds: u32,
}

/// What came of asking once more.
pub(super) struct Answered {
    material: Box<Material>,
    sent: Result<Attempt, Unanswered>,
}

impl Material {
    pub(super) const fn new(
        bytes: Bytes,
        past: Context,
        failover: Failover,
        hosted: Option<Arc<dyn HostedTools>>,
        asks_again: bool,
    ) -> Self {
        Self {
            bytes,
            past,
            failover,
            hosted,
            asks_again,
            asks_input_again: false,
            added: Vec::new(),
            shown: 0,
            rounds: 0,
        }
    }

    /// The same, and a call whose input does not fit is asked for once more, or is not.
    pub(super) const fn asking_for_input(mut self, asks_input_again: bool) -> Self {
        self.asks_input_again = asks_input_again;
        self
    }

    /// The response shows this item, and the model reads it.
    pub(super) fn show(&mut self, item: String) {
        self.added.push(item);
        self.shown += 1;
    }

    async fn ask(mut self: Box<Self>, context: RequestContext) -> Answered {
        self.failover.next_round();
        let sent = self.send(&context).await;
        Answered { material: self, sent }
    }

    async fn send(&mut self, context: &RequestContext) -> Result<Attempt, Unanswered> {
        let Self { bytes, past, failover, added, hosted, asks_input_again, .. } = self;
        let asks_input_again = *asks_input_again;
        let bytes = context.app.runtime.budget.hold(extended(bytes, added)).map_err(Unanswered::Invalid)?;
        let Kept { raw: document, value: mut request } =
            body::parse::<Kept<'_, CreateResponse<'_>>>(&bytes).map_err(Unanswered::Invalid)?;
        past.refer(&mut request).map_err(Unanswered::Invalid)?;
        let items = past.past().map_err(Unanswered::Invalid)?;
        let policy = context.snapshot.policy(&context.caller);
        let hosted = hosted.as_ref();
        let asked = Asked { request: &request, document, past: &items, policy, hosted, asks_input_again };
        truncating::send(context, failover, &asked).await
    }
}

impl Turn {
    /// The upstream is through: decides what follows.
    pub(super) fn end_round(&mut self, end: End) {
        let Some(answer) = &mut self.answer else {
            return self.finish(RoundEnd::Failed(Failure::new(FailureClass::Server, "There is no answer.")));
        };
        let stopped = self.cause.is_some();
        let end = answer.end(end, &mut self.response, &mut self.events);
        let (hosted, reported) = (answer.take_hosted(), answer.reported());
        self.context.account.used(self.response.usage());
        self.context.reported(reported);
        match end {
            RoundEnd::Hosted(calls) if !stopped => self.run_tools(calls, None),
            RoundEnd::Completed if !hosted.is_empty() => self.run_tools(hosted, Some(RoundEnd::Completed)),
            RoundEnd::Failed(failure) if failure.class == FailureClass::InvalidOutput && self.may_ask_again() => {
                self.ask_again(failure);
            }
            RoundEnd::Failed(_) if !stopped && self.second_is_nothing() => self.show_first(end),
            RoundEnd::Rejected(call) if !stopped => self.ask_for_input(call),
            RoundEnd::Rejected(call) => self.show(&call),
            end => self.finish(end),
        }
    }

    /// Only an answer of which nothing was sent yet can be asked for again.
    fn may_ask_again(&self) -> bool {
        self.events.is_silent() && self.material.as_ref().is_some_and(|material| material.asks_again)
    }

    /// `output.repair: reask`: one more try for an answer that is not in the format that was asked for.
    fn ask_again(&mut self, failure: Failure) {
        let mut object = Vec::new();
        self.response.object(clock::unix_seconds(), false, &mut object);
        let Some(material) = &mut self.material else { return self.finish(RoundEnd::Failed(failure)) };
        material.asks_again = false;
        material
            .added
            .extend([message("assistant", "output_text", &answer_text(&object)), complaint(&failure.message)]);
        self.response.discard();
        self.response.note(Note::new(Action::Repaired, "text.format", "the answer was asked for twice"));
        self.ask(RoundEnd::Failed(failure));
    }

    /// `tools.grammar: reask`: one more try for a call whose input does not fit. To the model it was made and failed.
    fn ask_for_input(&mut self, call: RejectedCall) {
        let mut object = Vec::new();
        self.response.object(clock::unix_seconds(), false, &mut object);
        let Some(material) = &mut self.material else { return self.show(&call) };
        material.asks_input_again = false;
        let items = items::of_object(&object);
        material.added.extend(items.iter().skip(material.shown).cloned());
        material.added.extend(failed_call(&call));
        material.shown = items.len();
        let message = format!("{} was asked for twice: its input did not fit: {}", call.name, call.problem);
        self.response.note(Note::new(Action::Repaired, "tool_calls", message).coded(note_code::TOOL_INPUT));
        self.ask(RoundEnd::Rejected(call));
    }

    /// There is no better call: the client gets this one.
    fn show(&mut self, call: &RejectedCall) {
        let message = format!("the input of {} does not fit its grammar: {}", call.name, call.problem);
        self.response.note(Note::new(Action::Degraded, "tool_calls", message).coded(note_code::TOOL_INPUT));
        self.response.call(call, &mut self.events);
        self.finish(RoundEnd::Completed);
    }

    /// Whether a call was asked for once more and nothing of the answer to that was sent, or can be seen.
    fn second_is_nothing(&self) -> bool {
        self.rejected.is_some() && (self.events.is_silent() || !self.response.last_answer_has_items())
    }

    /// The second answer came to nothing: the first one counts.
    fn show_first(&mut self, otherwise: RoundEnd) {
        let Some(call) = self.rejected.take() else { return self.finish(otherwise) };
        if self.events.is_silent() {
            self.response.discard();
        }
        self.show(&call);
    }

    fn run_tools(&mut self, calls: Vec<HostedCall>, then: Option<RoundEnd>) {
        let material = self.material.as_ref();
        let too_many = material.is_none_or(|material| material.rounds >= MOST);
        let Some(hosted) = material.and_then(|material| material.hosted.clone()).filter(|_| !too_many) else {
            let message = "The model calls hosted tools without an end.";
            return self.finish(RoundEnd::Failed(Failure::new(FailureClass::Server, message)));
        };
        self.watch.waits();
        let run = async move {
            // One after the other: what the client sees has the model's order.
            let mut ran = Vec::with_capacity(calls.len());
            for call in calls {
                let output = hosted.call(call.clone()).await;
                ran.push((call, output));
            }
            ran
        };
        self.phase = Phase::Running(Box::pin(run), then);
    }

    /// The tools ran: the response shows it, and the model is told, unless the client has to act first.
    fn ran_tools(&mut self, ran: &[Ran], then: Option<RoundEnd>) {
        let mut object = Vec::new();
        self.response.object(clock::unix_seconds(), false, &mut object);
        if let Some(material) = &mut self.material {
            let items = items::of_object(&object);
            material.added.extend(items.iter().skip(material.shown).cloned());
            material.added.extend(ran.iter().flat_map(|(call, output)| exchange(call, output)));
            material.shown = items.len() + ran.iter().filter(|(_, output)| output.item.is_some()).count();
            material.rounds += 1;
        }
        for item in ran.iter().filter_map(|(_, output)| output.item.as_ref()) {
            self.response.item(&item.added, &item.done, &mut self.events);
        }
        match then {
            Some(end) => self.finish(end),
            None => {
                let message = "There was no answer after a hosted tool.";
                self.ask(RoundEnd::Failed(Failure::new(FailureClass::Server, message)));
            }
        }
    }

    /// Asks for another upstream answer. Without one, the response ends so.
    pub(super) fn ask(&mut self, otherwise: RoundEnd) {
        let Some(material) = self.material.take() else { return self.finish(otherwise) };
        if let Some(Answer { body, .. }) = self.answer.take() {
            drain_now(body);
        }
        self.watch.waits();
        self.phase = Phase::Asking(Box::pin(material.ask(self.context.clone())), otherwise);
    }

    /// Waits for tools, or for another answer to begin.
    pub(super) async fn go_on(&mut self) {
        let done = async {
            match &mut self.phase {
                Phase::Running(running, then) => Done::Ran(running.await, then.take()),
                Phase::Asking(asking, otherwise) => {
                    let failed = || RoundEnd::Failed(Failure::new(FailureClass::Server, "There was no answer."));
                    let answered = asking.await;
                    Done::Answered(answered, std::mem::replace(otherwise, failed()))
                }
                Phase::Compacting(compacting, why) => Done::Compacted(compacting.await, why.clone()),
                _ => std::future::pending().await,
            }
        };
        let done = tokio::select! {
            biased;
            done = done => done,
            () = self.stop.now() => Done::Stopped,
            alarm = self.watch.alarm() => match alarm {
                Alarm::Heartbeat => return self.response.heartbeat(&mut self.events),
                Alarm::Late(deadline) => {
                    self.cause = Some(Outcome::Late(deadline));
                    return self.finish(RoundEnd::Failed(late(deadline)));
                }
            },
        };
        match done {
            Done::Ran(ran, then) => self.ran_tools(&ran, then),
            Done::Compacted(came, why) => self.compacted(came, why),
            Done::Answered(Answered { material, sent }, otherwise) => {
                self.material = Some(material);
                self.answered(sent, otherwise);
            }
            Done::Stopped => {
                let End::Failed(failure) = self.stopped() else { return };
                self.finish(RoundEnd::Failed(failure));
            }
        }
    }

    fn answered(&mut self, sent: Result<Attempt, Unanswered>, otherwise: RoundEnd) {
        let asked_twice =
            matches!(&otherwise, RoundEnd::Failed(failure) if failure.class == FailureClass::InvalidOutput);
        match sent {
            Ok(Attempt { reader, accepted, deadlines, notes, may_go_on }) => {
                self.context.account.noted(&notes);
                self.notes.extend(notes);
                if let RoundEnd::Rejected(call) = otherwise {
                    self.rejected = Some(Box::new(call));
                }
                // Nothing of the request's text is kept through an answer after which there is none.
                self.material.take_if(|material| !may_go_on.hosted && !material.asks_again);
                self.watch.answers(deadlines);
                self.answer = Some(Answer::new(reader, accepted));
                self.phase = Phase::Reading;
            }
            // How it fails does not matter: then the first answer counts.
            Err(_) if let RoundEnd::Rejected(call) = &otherwise => self.show(call),
            Err(_) if asked_twice => self.finish(otherwise),
            Err(Unanswered::Refused(refused, _)) => {
                self.cause = refused.deadline.map(Outcome::Late);
                self.finish(RoundEnd::Failed(refused.failure));
            }
            Err(Unanswered::Invalid(ApiError { message, .. })) => {
                self.finish(RoundEnd::Failed(Failure::new(FailureClass::Server, message)));
            }
        }
    }
}

enum Done {
    Ran(Vec<Ran>, Option<RoundEnd>),
    Answered(Answered, RoundEnd),
    Compacted(Came, Why),
    Stopped,
}

/// The request with these items after its input.
fn extended(request: &[u8], added: &[String]) -> Vec<u8> {
    let Some(request) = str::from_utf8(request).ok().and_then(|text| Raw::parse(text).ok()) else { return Vec::new() };
    let mut out = Vec::with_capacity(request.as_str().len() + added.iter().map(String::len).sum::<usize>() + 64);
    let mut object = ObjectWriter::new(&mut out);
    for (name, value) in request.fields().filter(|(name, _)| !name.is("input")) {
        object.raw(&name.decode(), value);
    }
    let mut items: Vec<String> = match request.get("input") {
        Some(input) if input.kind() == Kind::Array => input.elements().map(|item| item.as_str().to_owned()).collect(),
        Some(input) => input.text().map(|text| message("user", "input_text", &text.decode())).into_iter().collect(),
        None => Vec::new(),
    };
    items.extend_from_slice(added);
    object.json("input", format!("[{}]", items.join(",")).as_bytes());
    object.end();
    out
}

fn complaint(problem: &str) -> String {
    let words = "Answer again: only the JSON, complete, in the format that was asked for, without any other text.";
    message("user", "input_text", &format!("{problem}\n{words}"))
}

/// A hosted call and its result, as the model is shown them.
fn exchange(call: &HostedCall, output: &HostedOutput) -> [String; 2] {
    let HostedCall { call_id, tool, arguments } = call;
    let name = &tool.provider_name;
    [
        item(|item| {
            item.text("type", "function_call").text("call_id", call_id).text("name", name);
            item.text("arguments", arguments);
        }),
        item(|item| {
            item.text("type", "function_call_output").text("call_id", call_id).text("output", &output.output);
        }),
    ]
}

/// A call whose input does not fit, and what is wrong with it, as the model is shown them.
fn failed_call(call: &RejectedCall) -> [String; 2] {
    let RejectedCall { call_id, name, namespace, input, problem } = call;
    [
        item(|item| {
            item.text("type", "custom_tool_call").text("call_id", call_id).text("name", name);
            if let Some(namespace) = namespace {
                item.text("namespace", namespace);
            }
            item.text("input", input);
        }),
        item(|item| {
            let output = format!(
                "The call was not made: its input does not fit the grammar of the tool.\n{problem}\n\
                 Call the tool again with the whole input, and without this mistake."
            );
            item.text("type", "custom_tool_call_output").text("call_id", call_id).text("output", &output);
        }),
    ]
}
