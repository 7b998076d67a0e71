//! Items → messages, as a total function: any list of items gives a transcript that a strict provider takes.
//!
//! Neighbouring items of the assistant become one message: its text, all its calls, its reasoning once. The
//! results of its calls come directly after it, whatever was between them; a call that nobody answered gets an
//! answer that says so.

mod calls;
mod hosted;
mod ids;
mod items;
mod pairs;
mod replay;
mod results;
mod shape;

use std::collections::BTreeSet;

use wire::chat::{Call, Content, Message, Part, Replay, Str};
use wire::json::{Invalid, InvalidCode};
use wire::responses::{CreateResponse, Input};

use super::content::{FilesRead, Renderer, ToolResult};
use super::hosted::Approvals;
use super::item_path::{ItemPath, Items};
use super::links::Source;
use super::notes::Notes;
use super::tools::Catalog;
use super::{FileTexts, ImageTexts, PlanTarget, Policy};
use crate::dialect::{DeveloperRole, Dialect, ToolImages};
pub use pairs::{CallRole, call_role};
use pairs::{Link, Pairs};

use replay::Recalled;
pub(super) use shape::{fill_lost_reasoning, shape};

/// Whether nobody has spoken since the assistant did.
pub(super) fn ends_with_assistant(request: &CreateResponse<'_>, items: &Items<'_, '_>) -> bool {
    !matches!(request.input, Some(Input::Text(_))) && pairs::assistant_spoke_last(&items.sent)
}

/// How many calls are the last items.
pub(super) fn calls_at_end(items: &Items<'_, '_>) -> usize {
    pairs::calls_at_end(&items.sent)
}

/// Words of ours at the end of a prompt, as the application's.
pub(super) fn demand(words: &str, messages: &mut Vec<Message<'_>>, notes: &mut Notes) {
    let is_leading = |message: &Message<'_>| matches!(message, Message::Plain { role: "system" | "developer", .. });
    // What the application says before all others is no end of anything.
    let role = if messages.iter().all(is_leading) { "user" } else { "system" };
    if let Some(links) = notes.links() {
        links.message(Source::Own, messages.len());
    }
    messages.push(Message::Plain { role, content: Content::Text(vec![Str::Ours(words.to_owned().into())]) });
}

/// What a turn's messages came to.
#[derive(Debug)]
pub(super) struct Transcript<'a> {
    pub(super) messages: Vec<Message<'a>>,
    /// Some message carries its reasoning back.
    pub(super) carries_reasoning: bool,
}

impl<'a> Transcript<'a> {
    /// Instructions first, then the past, then the input.
    pub(super) fn build(
        request: &CreateResponse<'a>,
        items: &Items<'_, 'a>,
        instruction: Option<String>,
        catalog: &Catalog<'a>,
        target: PlanTarget<'_>,
        notes: &mut Notes,
    ) -> Result<Self, Invalid> {
        let recalled = Recalled::of(items, target);
        let mut builder = Builder {
            dialect: target.dialect,
            policy: target.policy,
            images: target.images,
            files: target.files,
            read: FilesRead::default(),
            catalog,
            notes,
            items,
            pairs: Pairs::of(items, &recalled.starts),
            recalled,
            approvals: Approvals::of(items),
            made_ids: BTreeSet::new(),
            messages: Vec::with_capacity(items.sent.len() + 2),
            open: Open::default(),
            at_results: false,
            is_paused: false,
            carries_reasoning: false,
            at: Source::Instructions,
        };
        if let Some(instructions) = request.instructions.filter(|text| !text.is_empty()) {
            builder.instruct(Content::Text(vec![instructions.into()]));
        }
        if let Some(instruction) = instruction {
            builder.at = Source::Format;
            builder.instruct(Content::Text(vec![Str::Ours(instruction.into())]));
        }
        for (index, (item, path)) in items.sent.iter().enumerate() {
            builder.at = Source::Item(*path);
            builder.item(index, item, *path)?;
        }
        if let Some(Input::Text(text)) = &request.input {
            builder.at = Source::Text;
            builder.plain("user", Content::Text(vec![(*text).into()]));
        }
        builder.is_paused = target.hosting.resumes;
        builder.close();
        builder.check_not_empty(request)?;
        Ok(Self { messages: builder.messages, carries_reasoning: builder.carries_reasoning })
    }
}

/// The transcript while it grows.
struct Builder<'r, 'a, 't> {
    dialect: &'t Dialect,
    policy: Policy,
    images: Option<&'t dyn ImageTexts>,
    files: Option<&'t dyn FileTexts>,
    read: FilesRead,
    catalog: &'t Catalog<'a>,
    notes: &'t mut Notes,
    items: &'t Items<'r, 'a>,
    pairs: Pairs<'a>,
    recalled: Recalled,
    approvals: Approvals<'a>,
    /// Ids of calls that had none of their own.
    made_ids: BTreeSet<String>,
    messages: Vec<Message<'a>>,
    open: Open<'a>,
    /// The last messages are a batch's results: an output here is where it belongs.
    at_results: bool,
    /// The assistant's message under way is not over.
    is_paused: bool,
    carries_reasoning: bool,
    /// What is being written.
    at: Source,
}

/// The assistant's message under way.
#[derive(Debug, Default)]
struct Open<'a> {
    content: Vec<Str<'a>>,
    calls: Vec<Call<'a>>,
    /// One for each call.
    results: Vec<Pending<'a>>,
    /// Some of the calls have run already.
    ran: bool,
    replay: Replay<'a>,
    /// What came with the reasoning and belongs to single calls, by their ids.
    call_extras: Vec<(String, String)>,
    /// Where its reasoning was.
    thought_at: Option<ItemPath>,
    sources: Sources,
}

/// What the assistant's message under way is made of, where somebody asks.
#[derive(Debug, Default)]
struct Sources {
    said: Vec<Source>,
    thought: Vec<Source>,
    /// Of each result that is no item's own.
    results: Vec<Vec<Source>>,
}

/// Where a call's result comes from.
#[derive(Debug)]
enum Pending<'a> {
    /// This item, and those that it says belong to it.
    Output(usize),
    Interrupted,
    Inline(ToolResult<'a>),
}

/// Between two texts of one message.
const SEPARATOR: &str = "\n";

/// Whether a piece of a message separates texts, and is none of its own.
pub(super) fn is_separator(piece: &Str<'_>) -> bool {
    matches!(piece, Str::Ours(text) if text == SEPARATOR)
}

const INTERRUPTED: &str = "[tool result unavailable: call interrupted]";

impl<'a> Builder<'_, 'a, '_> {
    fn plain(&mut self, role: &'static str, content: Content<'a>) {
        self.close();
        self.at_results = false;
        if let Some(links) = self.notes.links() {
            links.message(self.at, self.messages.len());
        }
        self.messages.push(Message::Plain { role, content });
    }

    /// A message of the application, under the role that the provider has for it.
    fn instruct(&mut self, content: Content<'a>) {
        let role = match self.dialect.developer_role {
            DeveloperRole::Developer => "developer",
            DeveloperRole::System => "system",
            DeveloperRole::User => "user",
        };
        self.plain(role, content);
    }

    fn say(&mut self, texts: Vec<Str<'a>>) {
        let mut texts = texts.into_iter().filter(|text| !text.is_empty()).peekable();
        if texts.peek().is_some() && !self.open.content.is_empty() {
            self.open.content.push(SEPARATOR.into());
        }
        self.at_results &= texts.peek().is_none();
        if texts.peek().is_some() && self.notes.is_linking() {
            self.open.sources.said.push(self.at);
        }
        self.open.content.extend(texts);
    }

    /// Ends the assistant's message: it goes out, and its results after it.
    fn close(&mut self) {
        let Open { content, mut calls, results, replay, call_extras, thought_at, sources, ran: _ } =
            std::mem::take(&mut self.open);
        let goes_on = self.is_paused && !replay.blocks.is_empty();
        if content.is_empty() && calls.is_empty() && !goes_on {
            return self.lose_thought(thought_at);
        }
        let replay = self.settle_replay(replay, !calls.is_empty());
        for call in &mut calls {
            call.extra_content = replay::extra_of(call, &call_extras);
        }
        replay::fill_lost_extras(&mut calls, self.dialect.request.reasoning.call_placeholder.as_deref());
        if self.notes.is_linking() {
            let carried = |call: &Call<'_>| replay::extra_of(call, &call_extras).is_some();
            let kept = !replay.text.is_empty() || !replay.members.is_empty() || !replay.blocks.is_empty();
            let thought = kept || calls.iter().any(carried);
            self.link(&sources.said, self.messages.len());
            self.link(if thought { &sources.thought } else { &[] }, self.messages.len());
        }
        let ids: Vec<Str<'a>> = calls.iter().map(|call| call.id.clone()).collect();
        self.messages.push(Message::Assistant { content, tool_calls: calls, replay });
        self.at_results = !results.is_empty();
        let (mut hoisted, mut shown) = (Vec::new(), Vec::new());
        for (nth, (tool_call_id, pending)) in ids.into_iter().zip(results).enumerate() {
            let of =
                if self.notes.is_linking() { self.sources_of(&pending, sources.results.get(nth)) } else { Vec::new() };
            self.link(&of, self.messages.len());
            let before = hoisted.len();
            let result = match pending {
                Pending::Output(index) => self.result(index),
                Pending::Interrupted => ToolResult::text(INTERRUPTED),
                Pending::Inline(result) => result,
            };
            let content = self.tool_content(result, &mut hoisted);
            if hoisted.len() > before {
                shown.extend(of);
            }
            self.messages.push(Message::Tool { tool_call_id, content });
        }
        if !hoisted.is_empty() {
            hoisted.insert(0, Part::Text("Images from the tool results above:".into()));
            self.link(&shown, self.messages.len());
            self.messages.push(Message::Plain { role: "user", content: Content::Parts(hoisted) });
        }
    }

    /// What was written at this place is made of these.
    fn link(&mut self, sources: &[Source], index: usize) {
        if let Some(links) = self.notes.links() {
            for source in sources {
                links.message(source, index);
            }
        }
    }

    /// What a result is made of.
    fn sources_of(&self, pending: &Pending<'a>, call: Option<&Vec<Source>>) -> Vec<Source> {
        let Pending::Output(first) = pending else { return call.cloned().unwrap_or_default() };
        let (mut sources, mut next) = (Vec::new(), Some(*first));
        while let Some(index) = next {
            sources.extend(self.items.sent.get(index).map(|(_, path)| Source::Item(*path)));
            next = match self.pairs.link(index) {
                Link::Result { more } => more,
                _ => None,
            };
        }
        sources
    }

    fn tool_content(&self, result: ToolResult<'a>, hoisted: &mut Vec<Part<'a>>) -> Content<'a> {
        let ToolResult { texts, media } = result;
        if media.is_empty() || self.dialect.request.content.tool_images == ToolImages::Hoist {
            hoisted.extend(media);
            return Content::Text(texts);
        }
        // An empty text is no part: several APIs refuse one.
        let texts = texts.into_iter().filter(|text| !text.is_empty()).map(Part::Text);
        Content::Parts(texts.chain(media).collect())
    }

    fn renderer(&mut self) -> Renderer<'_> {
        Renderer {
            rules: &self.dialect.request.content,
            images: self.images,
            files: self.files,
            read: &mut self.read,
            notes: self.notes,
        }
    }

    /// Whether what is wrong there is put right: always in the past, which nobody can change by sending it again.
    fn mends(&self, path: ItemPath) -> bool {
        self.policy.repair_history || path.is_past()
    }

    /// What OpenAI refuses is refused, unless broken histories are to be mended.
    fn demand(&mut self, name: &'static str, path: ItemPath) -> Result<(), Invalid> {
        if self.mends(path) {
            self.notes.repaired(path.member(name), "it is missing");
            return Ok(());
        }
        Err(path.locate(Invalid::missing().at(name)))
    }

    /// Without any input there is nothing to answer; input of which nothing could be sent still asks for one.
    fn check_not_empty(&mut self, request: &CreateResponse<'a>) -> Result<(), Invalid> {
        if !self.messages.is_empty() {
            return Ok(());
        }
        if !self.items.sent.is_empty() {
            self.notes.repaired("input", "nothing in it could be sent: an empty message takes its place");
            if let Some(links) = self.notes.links() {
                links.message(Source::Own, 0);
            }
            self.messages.push(Message::Plain { role: "user", content: Content::Text(vec!["(empty)".into()]) });
            return Ok(());
        }
        Err(match request.input {
            None => Invalid::missing().at("input"),
            Some(_) => Invalid::rule(InvalidCode::EmptyArray, "expected at least one message.").at("input"),
        })
    }
}
