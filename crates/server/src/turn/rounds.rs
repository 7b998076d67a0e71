//! Rounds: a response may be made of several upstream answers. After each, one decision: the response is over, hosted
//! tools must run and their results go back to the model, or the model is asked again: for an answer that is not in the
//! format that was promised, or because it paused in the middle of one.
//!
//! For another round the request is read once more, with the items that came since; so all that is kept for it are the
//! request's bytes and the past, and only where there may be another round at all.

use std::sync::Arc;

use bridge::{Action, End, Failure, FailureClass, HeldCall, Hosting, Note, RejectedCall, Round, RoundEnd, note_code};
use bytes::Bytes;
use tokio::time::Instant;
use wire::json::{Kept, Kind, ObjectWriter, Raw};
use wire::responses::CreateResponse;

use super::compacting::{Came, Why};
use super::tools::{Output, Prelude};
use super::{Phase, Turn, drain_now, truncating};
use crate::account::Outcome;
use crate::ask::{Alarm, Answer, Asked, Attempt, Unanswered};
use crate::body;
use crate::clock;
use crate::hosted::Hosted;
use crate::items::{self, answer_text, item, message};
use crate::request::RequestContext;
use crate::session::Context;
use crate::upstream::{Failover, late};

/// How often an upstream that pauses is asked to go on, in one response.
const MAX_PAUSES: u32 = 10;

/// What another round is made of.
#[derive(Debug)]
pub(super) struct Material {
    pub(super) bytes: Bytes,
    pub(super) past: Context,
    pub(super) failover: Failover,
    pub(super) hosted: Option<Arc<Hosted>>,
    /// What is done before the model is asked for the first time.
    pub(super) prelude: Prelude,
    /// Whether an answer may be asked for once more.
    asks_again: bool,
    /// Whether a call whose input does not fit may be asked for once more.
    asks_input_again: bool,
    /// Items that follow the request's input, as JSON.
    pub(super) added: Vec<String>,
    /// How many of the response's items are among them.
    pub(super) shown: usize,
    /// How often hosted tools ran, and how many of their calls.
    pub(super) rounds: u32,
    pub(super) calls: u64,
    pauses: Pauses,
    /// The next answer is to call no tool.
    pub(super) is_last: bool,
    /// What the answers so far have, in tokens.
    pub(super) answered_tokens: u64,
}

/// How often the upstream has paused.
#[derive(Debug)]
struct Pauses {
    count: u32,
    /// It has just now, and goes on from there.
    is_new: bool,
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
        hosted: Option<Arc<Hosted>>,
        asks_again: bool,
    ) -> Self {
        Self {
            bytes,
            past,
            failover,
            hosted,
            prelude: Prelude { lists: Vec::new(), approved: Vec::new() },
            asks_again,
            asks_input_again: false,
            added: Vec::new(),
            shown: 0,
            rounds: 0,
            calls: 0,
            pauses: Pauses { count: 0, is_new: false },
            is_last: false,
            answered_tokens: 0,
        }
    }

    /// The same, with something to be done before the model is asked.
    pub(super) fn after(mut self, prelude: Prelude) -> Self {
        self.prelude = prelude;
        self
    }

    const fn round(&self) -> Round {
        match (self.rounds + self.pauses.count, self.is_last) {
            (0, _) => Round::First,
            (_, false) => Round::Later,
            (_, true) => Round::Last,
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
        let (round, answered, resumes) = (self.round(), self.answered_tokens, std::mem::take(&mut self.pauses.is_new));
        let Self { bytes, past, failover, added, hosted, asks_input_again, .. } = self;
        let asks_input_again = *asks_input_again;
        let bytes = context.app.runtime.budget.hold(extended(bytes, added)).map_err(Unanswered::Invalid)?;
        let Kept { raw: document, value: mut request } =
            body::parse::<Kept<'_, CreateResponse<'_>>>(&bytes).map_err(Unanswered::Invalid)?;
        past.refer(&mut request).map_err(Unanswered::Invalid)?;
        let items = past.past().map_err(Unanswered::Invalid)?;
        let policy = context.snapshot.policy(&context.caller);
        let alone = Hosting { round, answered_tokens: answered, ..Hosting::default() };
        let hosting = hosted.as_deref().map_or(alone, |hosted| hosted.hosting(round, answered, false));
        let hosted = (hosted.as_deref(), Hosting { resumes, ..hosting });
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
        self.redact_notes();
        self.context.account.used(self.response.usage());
        self.context.account.round(end_name(&end), reported);
        self.context.reported(reported);
        match end {
            RoundEnd::Hosted(calls) if !stopped => {
                self.run_tools(calls.into_iter().map(HeldCall::Hosted).collect(), None);
            }
            RoundEnd::Completed if !hosted.is_empty() => self.run_tools(hosted, Some(RoundEnd::Completed)),
            RoundEnd::Failed(failure) if failure.class == FailureClass::InvalidOutput && self.may_ask_again() => {
                self.ask_again(failure);
            }
            RoundEnd::Failed(_) if !stopped && self.second_is_nothing() => self.show_first(end),
            RoundEnd::Rejected(call) if !stopped => self.ask_for_input(call),
            RoundEnd::Rejected(call) => self.show(&call),
            RoundEnd::Paused => self.resume(),
            end => self.finish(end),
        }
    }

    /// Some notes have words of the provider in them.
    pub(super) fn redact_notes(&mut self) {
        if let Some(answer) = &self.answer {
            self.response.notes_mut().iter_mut().for_each(|note| answer.redactor.note(note));
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

    /// The upstream has paused by itself, in the middle of what it does: it goes on from what it said, in the same response.
    /// One that does nothing but pause is not waited for without end.
    fn resume(&mut self) {
        let mut object = Vec::new();
        self.response.object(clock::unix_seconds(), false, &mut object);
        let answered = self.response.usage().map_or(0, |usage| usage.output_tokens);
        let Some(material) = self.material.as_mut().filter(|material| material.pauses.count < MAX_PAUSES) else {
            return self.finish(RoundEnd::Paused);
        };
        material.pauses = Pauses { count: material.pauses.count + 1, is_new: true };
        material.answered_tokens = answered;
        let items = items::of_object(&object);
        material.added.extend(items.iter().skip(material.shown).cloned());
        material.shown = items.len();
        self.ask(RoundEnd::Paused);
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

    /// Asks for another upstream answer. Without one, the response ends so.
    pub(super) fn ask(&mut self, otherwise: RoundEnd) {
        if let Some(material) = &mut self.material
            && let (false, Some(hosted)) = (material.prelude.is_empty(), material.hosted.clone())
        {
            let mut prelude = std::mem::take(&mut material.prelude);
            self.prepare(&hosted, &mut prelude);
            if let Some(material) = &mut self.material {
                material.prelude = prelude;
            }
            return;
        }
        let Some(material) = self.material.take() else { return self.finish(otherwise) };
        if let Some(Answer { body, .. }) = self.answer.take() {
            drain_now(body);
        }
        self.watch.waits();
        self.phase = Phase::Asking(Box::pin(material.ask(self.context.clone())), otherwise);
    }

    /// Waits for tools, or for another answer to begin.
    pub(super) async fn go_on(&mut self) {
        if self.show_steps() {
            return;
        }
        if matches!(self.phase, Phase::Running(_)) {
            self.waiting.begin(true);
        }
        let done = async {
            match &mut self.phase {
                Phase::Running(run) => Done::Ran(run.output().await),
                Phase::Asking(asking, otherwise) => {
                    let failed = || RoundEnd::Failed(Failure::new(FailureClass::Server, "There was no answer."));
                    let answered = asking.await;
                    Done::Answered(Box::new(answered), std::mem::replace(otherwise, failed()))
                }
                Phase::Compacting(compacting, why) => Done::Compacted(compacting.await, why.clone()),
                _ => std::future::pending().await,
            }
        };
        let done = tokio::select! {
            biased;
            done = done => done,
            () = self.context.must_end() => Done::Stopped,
            alarm = self.watch.alarm() => Done::Alarmed(alarm),
        };
        self.waiting.end(Instant::now());
        match done {
            Done::Alarmed(Alarm::Heartbeat) => self.response.heartbeat(&mut self.events),
            Done::Alarmed(Alarm::Late(deadline)) => {
                self.cause = Some(Outcome::Late(deadline));
                self.finish(RoundEnd::Failed(late(deadline)));
            }
            Done::Ran(output) => self.ran(output),
            Done::Compacted(came, why) => self.compacted(came, why),
            Done::Answered(answered, otherwise) => {
                let Answered { material, sent } = *answered;
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
                self.material.take_if(|material| !may_go_on.hosted && !may_go_on.pauses && !material.asks_again);
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
            Err(Unanswered::Invalid(error)) => self.invalid(error),
        }
    }
}

enum Done {
    Ran(Option<Output>),
    Answered(Box<Answered>, RoundEnd),
    Compacted(Came, Why),
    Alarmed(Alarm),
    Stopped,
}

/// How an upstream answer ended, as traces have it.
const fn end_name(end: &RoundEnd) -> &'static str {
    match end {
        RoundEnd::Completed => "completed",
        RoundEnd::Incomplete(_) => "incomplete",
        RoundEnd::Failed(_) => "failed",
        RoundEnd::Hosted(_) => "hosted_tools",
        RoundEnd::Rejected(_) => "rejected_call",
        RoundEnd::Paused => "paused",
    }
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
