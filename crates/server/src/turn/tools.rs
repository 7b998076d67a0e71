//! Hosted tools at work: lists of servers' tools, approved calls, and the calls of an answer. They run side by side, and
//! the response shows them one after the other, in the model's order. Then the model is told, or the client acts.
//!
//! ```text
//!   steps:  list a │ list b │ call x │ call y │ ask for approval │ a call for the client
//!   shown:  begun ─▶ done ─▶ begun ─▶ done ─▶ …        run:  all that can, at once
//! ```
//!
//! Dropped with the turn: then nothing runs any more.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bridge::{
    Action, ClientCall, Failure, FailureClass, HeldCall, HostedCall, HostedEnd, HostedItem, HostedStart,
    IncompleteReason, Note, OfferedTool, RoundEnd, ToolKind,
};
use futures_util::{Stream, StreamExt};
use tokio::time::Instant;
use wire::id::{Id, IdKind};
use wire::json::ObjectWriter;
use wire::responses::{CreateResponse, Input, InputItem};

use super::rounds::Material;
use super::{Phase, Turn};
use crate::clock;
use crate::error::ApiError;
use crate::hosted::approval::{self, Approved, HeldApproval};
use crate::hosted::mcp::{Listed, NotListed};
use crate::hosted::{Hosted, HostedOutput, Running, refuse_approvals};
use crate::items::{self, item};
use crate::request::RequestContext;
use crate::trace::ToolCall;

/// So many tools run at once.
const AT_ONCE: usize = 8;

/// After so many rounds the model has to answer without tools.
const MOST_ROUNDS: u32 = 24;

/// What a model is told of a call beyond those that may be made.
const LIMIT: &str = "Skipped: the limit of tool calls is reached. Answer with what is known.";

/// What is done before the model is asked for the first time.
#[derive(Debug, Default)]
pub(super) struct Prelude {
    /// Servers that are asked for their tools.
    pub(super) lists: Vec<String>,
    /// Calls that the client approved of.
    pub(super) approved: Vec<(Approved, HeldApproval)>,
}

impl Prelude {
    pub(super) const fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.approved.is_empty()
    }

    /// Nothing of it will be done: the approvals can be used again.
    pub(super) async fn release(self) {
        for (_, held) in self.approved {
            held.release().await;
        }
    }
}

/// What has to be done before the model is asked. An approval is taken for this response.
pub(super) async fn before(
    hosted: Option<&Hosted>,
    request: &CreateResponse<'_>,
    past: &[InputItem<'_>],
    context: &RequestContext,
    response: &Id,
) -> Result<Prelude, ApiError> {
    let mut approved = Vec::new();
    let seal = context.app.runtime.seal(&context.caller);
    let mend = context.snapshot.policy(&context.caller).repair_history;
    let Some(hosted) = hosted else {
        // Whatever else is wrong with approvals is for the plan to say.
        let pending = approval::pending(&seal, past, input(request), mend).unwrap_or_default();
        return refuse_approvals(&pending).map(|()| Prelude::default());
    };
    hosted.look_at(past, request);
    for approval in approval::pending(&seal, past, input(request), mend)? {
        hosted.check_approved(&approval)?;
        let held = approval::claim(context, &approval, response, request.store.unwrap_or(true)).await?;
        approved.push((approval, held));
    }
    Ok(Prelude { lists: hosted.unlisted(), approved })
}

/// The items of a request's input.
pub(super) fn input<'r, 'a>(request: &'r CreateResponse<'a>) -> &'r [InputItem<'a>] {
    match &request.input {
        Some(Input::Items(items)) => items,
        Some(Input::Text(_)) | None => &[],
    }
}

/// Tools at work.
pub(super) struct Run {
    /// What is to be shown, in order.
    steps: VecDeque<Step>,
    /// What comes of those that run, in the same order.
    outputs: Pin<Box<dyn Stream<Item = Output> + Send>>,
    /// What is shown as begun, with the model's id of the call.
    open: Option<(HostedItem, String)>,
    /// Calls that are not made, and what the model is told of them.
    skipped: Vec<(HostedCall, String)>,
    /// How many of what is kept of items was there before.
    kept: usize,
    /// What follows: an end, or another round.
    then: Option<RoundEnd>,
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("steps", &self.steps).field("then", &self.then).finish_non_exhaustive()
    }
}

#[derive(Debug)]
enum Step {
    List(String),
    Call { call: HostedCall, approval_request_id: Option<String> },
    Approval(HostedCall),
    Client(ClientCall),
}

/// What came of a step that runs.
#[derive(Debug)]
pub(super) enum Output {
    Listed(Result<Listed, NotListed>, Duration),
    Called(HostedOutput, Duration),
}

/// What is kept beside an item, and never shown: how the model called the tool, and what it was told.
#[derive(Debug)]
pub(super) struct Told {
    item_id: String,
    call_id: String,
    output: Option<(String, Vec<String>)>,
    sources: Vec<bridge::Source>,
    ends_round: bool,
}

impl Told {
    /// The item's id, and the member `godex_output`.
    pub(super) fn member(&self) -> (String, String) {
        let member = item(|object| {
            object.text("call_id", &self.call_id);
            if let Some((text, images)) = &self.output {
                output(text, images, object);
            }
            if !self.sources.is_empty() {
                let sources = self.sources.iter().map(|source| {
                    item(|object| {
                        object.text("url", &source.url).text("title", &source.title);
                    })
                });
                let sources: Vec<String> = sources.collect();
                object.json("sources", format!("[{}]", sources.join(",")).as_bytes());
            }
            if self.ends_round {
                object.bool("ends_round", true);
            }
        });
        (self.item_id.clone(), member)
    }
}

/// A text, or parts where there are images.
fn output(text: &str, images: &[String], object: &mut ObjectWriter<'_>) {
    if images.is_empty() {
        object.text("output", text);
        return;
    }
    let text = item(|part| {
        part.text("type", "input_text").text("text", text);
    });
    let images = images.iter().map(|image| {
        item(|part| {
            part.text("type", "input_image").text("image_url", image);
        })
    });
    let parts: Vec<String> = std::iter::once(text).chain(images).collect();
    object.json("output", format!("[{}]", parts.join(",")).as_bytes());
}

impl Run {
    fn new(steps: VecDeque<Step>, running: Vec<Running<Output>>, parallel: bool, kept: usize) -> Self {
        let at_once = if parallel { AT_ONCE } else { 1 };
        let outputs = Box::pin(futures_util::stream::iter(running).buffered(at_once));
        Self { steps, outputs, open: None, skipped: Vec::new(), kept, then: None }
    }

    /// What comes of the next step that runs. May be dropped and called again.
    pub(super) async fn output(&mut self) -> Option<Output> {
        self.outputs.next().await
    }
}

fn called(running: Running<HostedOutput>) -> Running<Output> {
    Box::pin(async move {
        let began = Instant::now();
        Output::Called(running.await, began.elapsed())
    })
}

impl Turn {
    /// Lists what is not known yet; then makes the calls that the client approved of, since what may be called depends on
    /// what servers say of their tools; then the model is asked.
    pub(super) fn prepare(&mut self, hosted: &Arc<Hosted>, prelude: &mut Prelude) {
        let (mut steps, mut running) = (VecDeque::new(), Vec::<Running<Output>>::new());
        let lists = std::mem::take(&mut prelude.lists);
        let approved = if lists.is_empty() { std::mem::take(&mut prelude.approved) } else { Vec::new() };
        for label in lists {
            let listing = hosted.list(&label);
            running.push(Box::pin(async move {
                let began = Instant::now();
                Output::Listed(listing.await, began.elapsed())
            }));
            steps.push_back(Step::List(label));
        }
        for (approved, held) in approved {
            let Approved { request_id, server_label, name, arguments, call_id } = approved;
            let tool =
                OfferedTool { provider_name: name.clone(), kind: ToolKind::Mcp, name, namespace: Some(server_label) };
            let call_id = call_id.unwrap_or_else(|| self.response.make_id(IdKind::Call).to_string());
            let call = HostedCall { call_id, tool, arguments };
            let calling = hosted.call(&call);
            running.push(Box::pin(async move {
                held.keep();
                called(calling).await
            }));
            steps.push_back(Step::Call { call, approval_request_id: Some(request_id) });
        }
        let run = Run::new(steps, running, hosted.parallel, self.told.len());
        self.watch.waits();
        self.phase = Phase::Running(Box::new(run));
    }

    /// Runs the hosted calls of an answer. `end`: the response ends with it, because the client has to act, too.
    pub(super) fn run_tools(&mut self, calls: Vec<HeldCall>, end: Option<RoundEnd>) {
        let Some((material, hosted)) = self.material.as_mut().and_then(|material| {
            let hosted = material.hosted.clone()?;
            Some((material, hosted))
        }) else {
            let message = "The model calls tools that nobody can run.";
            return self.finish(RoundEnd::Failed(Failure::new(FailureClass::Server, message)));
        };
        if material.is_last && end.is_none() {
            let note = Note::new(Action::Ignored, "tool_calls", "calls after the last that may be made were left out");
            self.response.note(note);
            return self.finish(RoundEnd::Completed);
        }
        let (mut steps, mut running, mut skipped) = (VecDeque::new(), Vec::new(), Vec::new());
        let mut asks_for_approval = false;
        for call in calls {
            match call {
                HeldCall::Client(call) => steps.push_back(Step::Client(call)),
                HeldCall::Hosted(call) if call.tool.kind == ToolKind::Mcp && call.tool.namespace.is_none() => {
                    let told = format!(
                        "There is no tool '{}'. Only the tools that are offered can be called.",
                        call.tool.name
                    );
                    skipped.push((call, told));
                }
                HeldCall::Hosted(call) if hosted.max_calls.is_some_and(|most| material.calls >= most) => {
                    skipped.push((call, LIMIT.to_owned()));
                }
                HeldCall::Hosted(call) if hosted.needs_approval(&call) => {
                    asks_for_approval = true;
                    steps.push_back(Step::Approval(call));
                }
                HeldCall::Hosted(call) => {
                    material.calls += 1;
                    running.push(called(hosted.call(&call)));
                    steps.push_back(Step::Call { call, approval_request_id: None });
                }
            }
        }
        material.rounds += 1;
        let spent = hosted.max_calls.is_some_and(|most| material.calls >= most);
        material.is_last = spent || material.rounds >= MOST_ROUNDS;
        let mut run = Run::new(steps, running, hosted.parallel, self.told.len());
        run.skipped = skipped;
        run.then = end.or(asks_for_approval.then_some(RoundEnd::Completed));
        self.watch.waits();
        self.phase = Phase::Running(Box::new(run));
    }

    /// Shows what can be shown before another tool has run. When all are through, the response goes on. Whether anything
    /// was shown, or changed.
    pub(super) fn show_steps(&mut self) -> bool {
        let mut has_changed = false;
        loop {
            let Phase::Running(run) = &mut self.phase else { return has_changed };
            if run.open.is_some() {
                return has_changed;
            }
            has_changed = true;
            match run.steps.pop_front() {
                None => {
                    self.ran_tools();
                    return true;
                }
                Some(Step::List(server_label)) => {
                    let start = HostedStart::ListTools { server_label };
                    run.open = Some((self.response.open_hosted(start, &mut self.events), String::new()));
                }
                Some(Step::Call { call, approval_request_id }) => {
                    let HostedCall { call_id, tool, arguments } = call;
                    let start = match tool.kind {
                        ToolKind::Mcp => HostedStart::McpCall {
                            server_label: tool.namespace.unwrap_or_default(),
                            name: tool.name,
                            arguments,
                            approval_request_id,
                        },
                        _ => HostedStart::WebSearch,
                    };
                    run.open = Some((self.response.open_hosted(start, &mut self.events), call_id));
                }
                Some(Step::Approval(call)) => self.ask_for_approval(call),
                Some(Step::Client(call)) => self.response.client_call(&call, &mut self.events),
            }
        }
    }

    fn ask_for_approval(&mut self, call: HostedCall) {
        let HostedCall { call_id, tool, arguments } = call;
        let label = tool.namespace.unwrap_or_default();
        let seal = self.context.app.runtime.seal(&self.context.caller);
        let id = self.response.make_id(IdKind::McpApprovalRequest);
        let id = approval::make(&seal, &id, &label, &tool.name, &arguments);
        let item_id = id.to_string();
        self.response.approval_request(&id, &label, &tool.name, &arguments, &mut self.events);
        let sources = Vec::new();
        self.told.push(Told { item_id, call_id, output: None, sources, ends_round: false });
    }

    /// The tool whose item is open has run.
    pub(super) fn ran(&mut self, output: Option<Output>) {
        let Phase::Running(run) = &mut self.phase else { return };
        let Some((item, call_id)) = run.open.take() else { return };
        let hosted = self.material.as_ref().and_then(|material| material.hosted.clone());
        match output {
            Some(Output::Listed(listed, took)) => {
                self.tool_called(&item, listed.is_ok(), took);
                self.ran_list(&item, hosted.as_deref(), listed);
            }
            Some(Output::Called(output, took)) => {
                let failed = matches!(output.end, HostedEnd::Failed { .. } | HostedEnd::NotSearched { .. });
                self.tool_called(&item, !failed, took);
                self.response.close_hosted(&item, &output.end, &mut self.events);
                if let Some(hosted) = hosted {
                    hosted.told(&output);
                }
                let HostedOutput { text, images, sources, .. } = output;
                let (item_id, output) = (item.id().to_string(), Some((text, images)));
                self.told.push(Told { item_id, call_id, output, sources, ends_round: false });
            }
            None => {
                self.response.abandon_hosted(&item, &mut self.events);
                let message = "A tool came to no end.";
                self.finish(RoundEnd::Failed(Failure::new(FailureClass::Server, message)));
            }
        }
    }

    fn tool_called(&self, item: &HostedItem, completed: bool, took: Duration) {
        let (name, kind) = match item.start() {
            HostedStart::ListTools { server_label } => (server_label.clone(), "mcp_list_tools"),
            HostedStart::McpCall { server_label, name, .. } => (format!("{server_label}/{name}"), "mcp"),
            HostedStart::WebSearch => ("web_search".to_owned(), "web_search"),
        };
        let name = name.chars().take(128).collect();
        let outcome = if completed { "completed" } else { "failed" };
        self.context.account.tool_called(ToolCall { name, kind, ended: Duration::ZERO, took, outcome });
    }

    fn ran_list(&mut self, item: &HostedItem, hosted: Option<&Hosted>, listed: Result<Listed, NotListed>) {
        let HostedStart::ListTools { server_label } = item.start() else { return };
        match listed {
            Ok(Listed { tools }) => {
                if let Some(hosted) = hosted {
                    hosted.listed(server_label, tools.clone());
                }
                self.response.close_hosted(item, &HostedEnd::Tools(tools), &mut self.events);
            }
            Err(NotListed { message, error, optional }) => {
                let end = HostedEnd::Failed { error };
                self.response.close_hosted(item, &end, &mut self.events);
                if optional {
                    let message = format!("the response goes on without the server '{server_label}': {message}");
                    return self.response.note(Note::new(Action::Degraded, "tools", message));
                }
                self.finish(RoundEnd::Failed(Failure::new(FailureClass::McpServer, message)));
            }
        }
    }

    /// All tools ran: the model is told, unless the client has to act first.
    fn ran_tools(&mut self) {
        let Phase::Running(run) = &mut self.phase else { return };
        let (then, skipped, before) = (run.then.take(), std::mem::take(&mut run.skipped), run.kept);
        if let Some(end) = then {
            return self.finish(end);
        }
        if self.told.len() > before
            && let Some(last) = self.told.last_mut()
        {
            last.ends_round = true;
        }
        let mut object = Vec::new();
        self.response.object(clock::unix_seconds(), false, &mut object);
        let (kept, answered) = (&self.told[before..], self.response.usage().map_or(0, |usage| usage.output_tokens));
        let Some(material) = &mut self.material else { return };
        material.take_items(&items::of_object(&object), kept);
        material.added.extend(skipped.iter().flat_map(|(call, told)| skipped_call(call, told)));
        material.answered_tokens = answered;
        let most = material.hosted.as_ref().and_then(|hosted| hosted.max_output_tokens);
        if most.is_some_and(|most| answered >= most) {
            return self.finish(RoundEnd::Incomplete(IncompleteReason::MaxOutputTokens));
        }
        let message = "There was no answer after a hosted tool.";
        self.ask(RoundEnd::Failed(Failure::new(FailureClass::Server, message)));
    }

    /// The response ends while tools are at work: what has begun is not left open.
    pub(super) fn abandon_tools(&mut self) {
        if let Phase::Running(run) = &mut self.phase
            && let Some((item, _)) = run.open.take()
        {
            self.response.abandon_hosted(&item, &mut self.events);
        }
    }
}

impl Material {
    /// Takes the items that the response has beyond those that the model reads already, with what is kept beside them.
    fn take_items(&mut self, items: &[String], kept: &[Told]) {
        let members: Vec<(String, String)> = kept.iter().map(Told::member).collect();
        for item in items.iter().skip(self.shown) {
            self.added.push(items::with_kept(item, &members));
        }
        self.shown = items.len();
    }
}

/// A call that is not made, and that the model is told so.
fn skipped_call(call: &HostedCall, told: &str) -> [String; 2] {
    let HostedCall { call_id, tool, arguments } = call;
    [
        item(|item| {
            item.text("type", "function_call").text("call_id", call_id).text("name", &tool.provider_name);
            item.text("arguments", arguments);
        }),
        item(|item| {
            item.text("type", "function_call_output").text("call_id", call_id).text("output", told);
        }),
    ]
}
