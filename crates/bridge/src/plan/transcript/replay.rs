//! Earlier reasoning: opened, if we sealed it, and given back to those who want it. What another family
//! thought, or what does not open, is left out and never forwarded.

use wire::chat::{Call, Replay, Str};
use wire::json::{Kind, Raw, Text};
use wire::responses::{Part, Reasoning};

use super::Builder;
use crate::dialect::{self, ReplayField};
use crate::plan::item_path::ItemPath;
use crate::plan::notes::code;
use crate::seal::SealedReasoning;

impl<'a> Builder<'_, 'a, '_> {
    /// Reasoning belongs to the assistant's message that follows, or is under way.
    pub(super) fn think(&mut self, reasoning: &Reasoning<'a>, path: ItemPath) {
        if self.dialect.request.reasoning.replay == dialect::Replay::Never {
            return;
        }
        self.open.thought_at = Some(path);
        let sealed = reasoning.encrypted_content.filter(|sealed| !sealed.is_empty());
        if let Some(sealed) = sealed {
            match self.seal.open(&sealed.decode()).and_then(|plain| SealedReasoning::decode(&plain)) {
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
        let texts = reasoning.content.iter().flatten().filter_map(|part| match part {
            Part::ReasoningText(part) => part.text,
            _ => None,
        });
        self.open.replay.text.extend(texts.filter(|text| !text.is_empty()).map(Str::Wire));
        self.thought();
    }

    fn thought(&mut self) {
        if self.notes.is_linking() {
            self.open.sources.thought.push(self.at);
        }
    }

    fn recall(&mut self, thought: SealedReasoning) {
        self.thought();
        let SealedReasoning { text, replay_data: bag, .. } = thought;
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
        if rules.field == ReplayField::Bag {
            replay.text.clear();
        }
        // A message has each member once: what was thought last counts.
        let mut members: Vec<(String, String)> = Vec::new();
        for (name, value) in replay.members {
            members.retain(|(known, _)| *known != name);
            members.push((name, value));
        }
        replay.members = members;
        self.carries_reasoning |= !replay.text.is_empty() || !replay.members.is_empty();
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

/// What a message's first call has instead of what came with its calls, where nothing did, or it was lost: a provider
/// that demands something there looks at the first.
pub(super) fn fill_lost_extras(calls: &mut [Call<'_>], placeholder: Option<&str>) {
    if calls.iter().all(|call| call.extra_content.is_none())
        && let (Some(first), Some(placeholder)) = (calls.first_mut(), placeholder)
    {
        first.extra_content = Some(placeholder.to_owned());
    }
}
