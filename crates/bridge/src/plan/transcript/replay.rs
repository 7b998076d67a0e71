//! Earlier reasoning: opened, if we sealed it, and given back to those who want it. What another family
//! thought, or what does not open, is left out and never forwarded.

use std::collections::{BTreeMap, BTreeSet};

use wire::chat::{Call, Replay, Str, ThoughtBlock};
use wire::json::{Kind, Raw, Text};
use wire::responses::{Item, Part, Reasoning};

use super::pairs::{CallRole, assistant_spoke_last, call_role, calls_at_end};
use super::{Builder, PlanTarget, SEPARATOR, demand, is_separator};
use crate::dialect::{self, ReplayField};
use crate::plan::item_path::{ItemPath, Items};
use crate::plan::notes::code;
use crate::seal::{PromptEnd, SealedReasoning};

/// Earlier reasoning, opened before anything is written: where answers began is known from it, and so which output came
/// too late.
#[derive(Debug, Default)]
pub(super) struct Recalled {
    /// By the place of its item; none where it does not open.
    thoughts: BTreeMap<usize, Option<SealedReasoning>>,
    /// Where answers began whose prompts ended with something that is no item. It goes there again: thoughts of such an
    /// answer are signed after it.
    pub(super) starts: BTreeMap<usize, PromptEnd>,
    /// What was thought after something else than what is before it now.
    replaced: BTreeSet<usize>,
    /// Searches of the provider's own that return as they came, among its thoughts: no call of ours tells them, too.
    pub(super) searched: BTreeSet<usize>,
}

/// The summaries in a conversation, on the way through its items: one that is new there changes what comes before all that
/// follows it.
struct Summaries<'i> {
    rest: std::iter::Peekable<std::slice::Iter<'i, (usize, u64)>>,
    /// The last one so far, and the one after which the answer at hand was given.
    last: Option<u64>,
    answered: Option<u64>,
}

impl<'i> Summaries<'i> {
    fn of(items: &'i Items<'_, '_>) -> Self {
        Self { rest: items.summaries.iter().peekable(), last: None, answered: None }
    }

    /// Whether this thought was made after the summary that is before it; of an answer, the first one knows.
    fn fit(&mut self, index: usize, thought: &SealedReasoning) -> bool {
        while let Some((_, summary)) = self.rest.next_if(|(at, _)| *at <= index) {
            (self.last, self.answered) = (Some(*summary), None);
        }
        if let Some((_, end)) = &thought.place.began {
            self.answered = end.after_summary;
        }
        self.answered == self.last
    }
}

impl Recalled {
    pub(super) fn of(items: &Items<'_, '_>, target: PlanTarget<'_>) -> Self {
        let mut recalled = Self::default();
        let rules = &target.dialect.request.reasoning;
        if rules.replay == dialect::Replay::Never {
            return recalled;
        }
        let mut summaries = Summaries::of(items);
        for (index, (item, _)) in items.sent.iter().enumerate() {
            let Item::Reasoning(Reasoning { encrypted_content: Some(sealed), .. }) = item else { continue };
            if sealed.is_empty() {
                continue;
            }
            let thought = target.seal.open(&sealed.decode()).and_then(|plain| SealedReasoning::decode(&plain));
            let ours = thought.as_ref().filter(|thought| thought.family == target.dialect.family());
            let ours = ours.filter(|_| rules.field == ReplayField::Blocks);
            if ours.is_some_and(|thought| !summaries.fit(index, thought)) {
                recalled.replaced.insert(index);
                continue;
            }
            if let Some((before, end)) = ours.and_then(|thought| thought.place.began.clone())
                // That there was a summary, its item says.
                && (PromptEnd { after_summary: None, ..end.clone() }) != PromptEnd::default()
                && let Some(prompt) = index.checked_sub(before).and_then(|start| items.sent.get(..start))
            {
                // A client may give an answer's calls back before all else of it.
                let moved = calls_at_end(prompt).saturating_sub(end.after_calls);
                let start = prompt.len().saturating_sub(moved);
                // What was signed without the thoughts before it stays without them.
                if end.without_thoughts {
                    recalled = Self::default();
                }
                // It may have left items out, or given them back in yet another order.
                if assistant_spoke_last(prompt.get(..start).unwrap_or_default()) == end.after_assistant {
                    recalled.starts.insert(start, end);
                }
            }
            recalled.thoughts.insert(index, thought);
        }
        if rules.field == ReplayField::Blocks && rules.replay == dialect::Replay::Always {
            recalled.find_searches(items, target.dialect.family());
        }
        recalled
    }

    /// Of each answer: the blocks of a search may be in any of its thoughts, and return where something was said, too.
    fn find_searches(&mut self, items: &Items<'_, '_>, family: &str) {
        let is_search = |(item, _): &(&Item<'_>, _)| matches!(item, Item::WebSearchCall(_));
        if !items.sent.iter().any(is_search) {
            return;
        }
        let mut answer = Searches::default();
        for (index, (item, _)) in items.sent.iter().enumerate() {
            match (item, call_role(item)) {
                (Item::WebSearchCall(call), _) => answer.shown.push((index, subject(call.action))),
                (Item::Reasoning(_), _) => {
                    let thought = self.thoughts.get(&index).and_then(Option::as_ref);
                    let ours = thought.filter(|thought| thought.family == family);
                    answer.recall(ours.and_then(|thought| thought.replay_data.as_deref()));
                }
                (Item::Message(message), _) if message.role.is_some_and(|role| role.is("assistant")) => {
                    answer.speaks = true;
                }
                (_, CallRole::Call(_)) => answer.speaks = true,
                (Item::Message(_), _) | (_, CallRole::Output(_)) => {
                    self.searched.extend(std::mem::take(&mut answer).returned());
                }
                _ => {}
            }
        }
        self.searched.extend(answer.returned());
    }
}

/// The searches of one answer: the items that show them, and the blocks that return.
#[derive(Debug, Default)]
struct Searches {
    shown: Vec<(usize, String)>,
    blocks: BTreeSet<String>,
    speaks: bool,
}

impl Searches {
    fn recall(&mut self, bag: Option<&str>) {
        const USE: &str = "server_tool_use";
        let Some(bag) = bag.filter(|bag| bag.contains(USE)).and_then(|bag| Raw::parse(bag).ok()) else { return };
        let uses =
            bag.elements().filter(|block| block.get("type").and_then(Raw::text).is_some_and(|kind| kind.is(USE)));
        self.blocks.extend(uses.map(|block| subject(block.get("input"))));
    }

    /// The items whose blocks do.
    fn returned(self) -> impl Iterator<Item = usize> {
        let Self { shown, blocks, speaks } = self;
        shown.into_iter().filter(move |(_, subject)| speaks && blocks.contains(subject)).map(|(index, _)| index)
    }
}

/// What was searched, or opened.
fn subject(value: Option<Raw<'_>>) -> String {
    let member = |name: &str| value.and_then(|value| value.get(name)).and_then(Raw::text).map(Text::decode);
    member("url").or_else(|| member("query")).unwrap_or_default().into_owned()
}

impl<'a> Builder<'_, 'a, '_> {
    /// Reasoning belongs to the assistant's message that follows, or is under way.
    pub(super) fn think(&mut self, index: usize, reasoning: &Reasoning<'a>, path: ItemPath) {
        if self.dialect.request.reasoning.replay == dialect::Replay::Never {
            return;
        }
        self.open.thought_at = Some(path);
        if let Some(opened) = self.recalled.thoughts.remove(&index) {
            match opened {
                Some(thought) if thought.family == self.dialect.family() => return self.recall(thought),
                Some(_) => {
                    return self.notes.ignored(code::REASONING_IGNORED, path, "another model's reasoning");
                }
                None => {
                    let at = path.member("encrypted_content");
                    self.notes.ignored(code::REASONING_IGNORED, at, "not sealed here, or broken");
                }
            }
        }
        if self.recalled.replaced.remove(&index) {
            return self.notes.skipped(code::REASONING_IGNORED, path, "a summary has changed what comes before it");
        }
        // Words without their signature are no thought to those who sign.
        if self.dialect.request.reasoning.field == ReplayField::Blocks {
            return;
        }
        let texts = reasoning.content.iter().flatten().filter_map(|part| match part {
            Part::ReasoningText(part) => part.text,
            _ => None,
        });
        self.open.replay.text.extend(texts.filter(|text| !text.is_empty()).map(Str::Wire));
        self.thought();
    }

    /// An answer begins: what the assistant said before it is a message of its own, and what we said then comes again.
    pub(super) fn begin_answer(&mut self, end: PromptEnd) {
        self.close();
        if let Some(words) = end.demand {
            self.at_results = false;
            demand(&words, &mut self.messages, self.notes);
        }
    }

    /// What is being written returns with the message under way.
    pub(super) fn thought(&mut self) {
        if self.notes.is_linking() {
            self.open.sources.thought.push(self.at);
        }
    }

    fn recall(&mut self, thought: SealedReasoning) {
        self.thought();
        let SealedReasoning { text, replay_data: bag, place, .. } = thought;
        if self.dialect.request.reasoning.field == ReplayField::Blocks {
            if !place.breaks.is_empty() {
                self.break_text(&place.breaks);
            }
            return self.recall_blocks(bag.as_deref(), place.calls);
        }
        if !text.is_empty() {
            self.open.replay.text.push(Str::Ours(text.into()));
        }
        let Some(bag) = bag else { return };
        let Ok(bag) = Raw::parse(&bag) else { return };
        if bag.kind() == Kind::Array {
            self.open.replay.members.push(("reasoning_details".to_owned(), bag.as_str().to_owned()));
        }
        for (key, value) in bag.fields() {
            if key.is("calls") {
                let calls = value.fields().map(|(id, extra)| (id.decode().into_owned(), extra.as_str().to_owned()));
                self.open.call_extras.extend(calls);
            } else {
                self.open.replay.members.push((key.decode().into_owned(), value.as_str().to_owned()));
            }
        }
    }

    /// The text before it came in several blocks, and is the last of the message under way.
    fn break_text(&mut self, breaks: &[usize]) {
        let content = &mut self.open.content;
        let begins = content.iter().rposition(is_separator).map_or(0, |at| at + 1);
        let texts: String = content.iter().skip(begins).map(Str::decode).collect();
        if texts.trim().is_empty() {
            return;
        }
        content.truncate(begins);
        let (mut rest, mut taken) = (texts.as_str(), 0);
        for end in breaks {
            let at = rest.char_indices().nth(end.saturating_sub(taken)).map(|(at, _)| at);
            // No block is blank.
            let Some((block, more)) = at.and_then(|at| rest.split_at_checked(at)) else { break };
            if block.trim().is_empty() || more.trim().is_empty() {
                continue;
            }
            content.extend([Str::Ours(block.to_owned().into()), SEPARATOR.into()]);
            (rest, taken) = (more, *end);
        }
        content.push(Str::Ours(rest.to_owned().into()));
    }

    /// The blocks in which it came: their bytes, and their place among what else the message says. `calls`: after so many
    /// of the message's calls, where that is known; the others are after as many as are there by now.
    fn recall_blocks(&mut self, bag: Option<&str>, calls: Option<usize>) {
        let Some(blocks) = bag.and_then(|bag| Raw::parse(bag).ok()) else { return };
        let (texts_before, calls_before) = (self.open.content.len(), calls.unwrap_or(self.open.calls.len()));
        let block = |block: Raw<'_>| ThoughtBlock { texts_before, calls_before, json: block.as_str().to_owned() };
        self.open.replay.blocks.extend(blocks.elements().map(block));
    }

    /// What the dialect wants of it on this message.
    pub(super) fn settle_replay(&mut self, mut replay: Replay<'a>, calls: bool) -> Replay<'a> {
        let rules = &self.dialect.request.reasoning;
        let wanted = match rules.replay {
            dialect::Replay::Never => false,
            dialect::Replay::Tools => calls,
            dialect::Replay::Always => true,
        };
        if !wanted {
            return Replay::default();
        }
        if matches!(rules.field, ReplayField::Bag | ReplayField::Blocks) {
            replay.text.clear();
        }
        // A message has each member once: what was thought last counts.
        let mut members: Vec<(String, String)> = Vec::new();
        for (name, value) in replay.members {
            members.retain(|(known, _)| *known != name);
            members.push((name, value));
        }
        replay.members = members;
        self.carries_reasoning |= !replay.text.is_empty() || !replay.members.is_empty() || !replay.blocks.is_empty();
        replay
    }

    /// Reasoning that led to nothing has no message to go with.
    pub(super) fn lose_thought(&mut self, path: Option<ItemPath>) {
        if let Some(path) = path {
            self.notes.skipped(code::REASONING_IGNORED, path, "no message or call follows it");
        }
    }
}

/// What must return with this call.
pub(super) fn extra_of(call: &Call<'_>, extras: &[(String, String)]) -> Option<String> {
    let id = match &call.id {
        Str::Wire(id) => Text::decode(*id),
        Str::Ours(id) => id.as_ref().into(),
        Str::Pieces(_) => return None,
    };
    extras.iter().find(|(known, _)| *known == id).map(|(_, extra)| extra.clone())
}

/// What a message's first call has instead of what came with it, where nothing did, or it was lost: a provider that demands
/// something there looks at the first, whatever a later call of a message that was several has.
pub(super) fn fill_lost_extras(calls: &mut [Call<'_>], placeholder: Option<&str>) {
    if let (Some(first), Some(placeholder)) = (calls.first_mut(), placeholder)
        && first.extra_content.is_none()
    {
        first.extra_content = Some(placeholder.to_owned());
    }
}
