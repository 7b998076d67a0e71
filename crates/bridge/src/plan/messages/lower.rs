//! Messages of a transcript → turns of blocks, as a total function: roles alternate, the user speaks first and last (but
//! for an assistant that paused), all results of a turn are together and first, no text is blank.

use wire::chat::{self, Call, Content as Said, Part, Str, ThoughtBlock};
use wire::json::Raw;
use wire::messages::{Block, Content, Message, Role};

use super::media::{block, one_text};
use crate::dialect::{LateSystem, MessageRules};
use crate::plan::links::{Placed, Source};
use crate::plan::notes::{Notes, code};
use crate::plan::transcript::is_separator;

/// Where the user has to say something, and has nothing to say.
const CONTINUE: &str = "(continue)";
const EMPTY: &str = "(empty)";
const NO_OUTPUT: &str = "(empty tool output)";

/// What a transcript comes to.
pub(super) struct Conversation<'a> {
    pub(super) system: Vec<Block<'a>>,
    pub(super) messages: Vec<Message<'a>>,
}

/// `resumes`: the assistant paused at the end, and goes on from there.
pub(super) fn lower<'a>(
    messages: Vec<chat::Message<'a>>,
    rules: &MessageRules,
    resumes: bool,
    notes: &mut Notes,
) -> Conversation<'a> {
    let mut lowering = Lowering {
        resumes_at: messages.len().checked_sub(1).filter(|_| resumes),
        late_system: rules.late_system,
        notes,
        conversation: Conversation { system: Vec::new(), messages: Vec::with_capacity(messages.len()) },
        late: Vec::new(),
        is_leading: true,
        is_cut: false,
        places: Vec::with_capacity(messages.len()),
        own: Vec::new(),
    };
    for message in messages {
        lowering.message(message);
    }
    lowering.end()
}

struct Lowering<'a, 'n> {
    /// The message that is not over.
    resumes_at: Option<usize>,
    late_system: LateSystem,
    notes: &'n mut Notes,
    conversation: Conversation<'a>,
    /// Messages of the application since the assistant spoke: they go behind what the user says. The same ones wait
    /// whether the assistant has spoken since or is about to.
    late: Vec<(usize, Vec<Content<'a>>)>,
    /// Only the application has spoken.
    is_leading: bool,
    /// What the assistant said last ended with a thought, and goes without it.
    is_cut: bool,
    /// Where each message of the transcript went.
    places: Vec<Placed>,
    /// Messages of which nothing is the client's.
    own: Vec<usize>,
}

impl<'a> Lowering<'a, '_> {
    fn message(&mut self, message: chat::Message<'a>) {
        let place = match message {
            chat::Message::Plain { role: "system" | "developer", content } => self.instruct(content),
            chat::Message::Plain { content, .. } => {
                let blocks = self.contents(content, EMPTY);
                self.user(blocks)
            }
            chat::Message::Tool { tool_call_id: id, content } => {
                let content = self.contents(content, NO_OUTPUT);
                self.user(vec![Content::ToolResult { id, content }])
            }
            chat::Message::Assistant { content, tool_calls, replay } => {
                self.is_leading = false;
                self.assistant(content, tool_calls, &replay.blocks)
            }
        };
        self.places.push(place);
    }

    /// The application speaks: before everybody else, or later.
    fn instruct(&mut self, content: Said<'a>) -> Placed {
        let blocks = self.words(content);
        if blocks.is_empty() {
            return Placed::Nowhere;
        }
        if self.is_leading {
            self.conversation.system.extend(blocks.into_iter().map(Block::from));
            return Placed::System(self.conversation.system.len() - 1);
        }
        if self.late_system == LateSystem::User {
            return self.user(tagged(blocks));
        }
        // Its place is not known before the user has said all that there is to say.
        self.late.push((self.places.len(), blocks));
        Placed::Nowhere
    }

    fn user(&mut self, blocks: Vec<Content<'a>>) -> Placed {
        self.is_leading = false;
        let messages = &mut self.conversation.messages;
        match messages.last_mut() {
            Some(Message { role: Role::User, blocks: known }) => known.extend(blocks.into_iter().map(Block::from)),
            _ => messages.push(Message { role: Role::User, blocks: blocks.into_iter().map(Block::from).collect() }),
        }
        Placed::Message(messages.len() - 1)
    }

    fn assistant(&mut self, content: Vec<Str<'a>>, calls: Vec<Call<'a>>, thoughts: &[ThoughtBlock]) -> Placed {
        let mut blocks = spoken(content, calls, thoughts);
        let is_cut = self.resumes_at != Some(self.places.len()) && self.end_in_words(&mut blocks);
        if blocks.is_empty() {
            return Placed::Nowhere;
        }
        self.is_cut = is_cut;
        self.settle();
        let messages = &mut self.conversation.messages;
        // Two messages of the assistant are two answers: what was between them when the second one began is there again.
        if matches!(messages.last(), None | Some(Message { role: Role::Assistant, .. })) {
            self.own.push(messages.len());
            messages.push(user_says(CONTINUE));
        }
        let blocks = blocks.into_iter().map(Block::from).collect();
        messages.push(Message { role: Role::Assistant, blocks });
        Placed::Message(messages.len() - 1)
    }

    /// A thought cannot be the end of a message. Says whether one was.
    fn end_in_words(&mut self, blocks: &mut Vec<Content<'a>>) -> bool {
        let count = blocks.len();
        while blocks.pop_if(|last| matches!(last, Content::Raw(json) if is_thought(json))).is_some() {
            self.notes.skipped(code::REASONING_IGNORED, "input", "no message or call follows this reasoning");
        }
        blocks.len() < count
    }

    /// What the application said late finds its place: behind the user. Where the user said nothing, it goes as the
    /// user's word.
    fn settle(&mut self) {
        let late = std::mem::take(&mut self.late);
        let after_user = matches!(self.conversation.messages.last(), Some(Message { role: Role::User, .. }));
        let mut places = Vec::with_capacity(late.len());
        let mut blocks = Vec::new();
        for (index, content) in late {
            places.push(index);
            blocks.extend(content);
        }
        if places.is_empty() {
            return;
        }
        let place = if after_user {
            let blocks = blocks.into_iter().map(Block::from).collect();
            self.conversation.messages.push(Message { role: Role::System, blocks });
            Placed::Message(self.conversation.messages.len() - 1)
        } else {
            self.user(tagged(blocks))
        };
        for index in places {
            if let Some(known) = self.places.get_mut(index) {
                *known = place;
            }
        }
    }

    fn end(mut self) -> Conversation<'a> {
        self.settle();
        let messages = &mut self.conversation.messages;
        let is_said = matches!(messages.last(), Some(Message { role: Role::User | Role::System, .. }));
        // Who went on after a thought that is not there would have it before its next one later.
        let goes_on = is_paused(messages) && !self.is_cut;
        if !is_said && (messages.is_empty() || self.resumes_at.is_none()) && !goes_on {
            self.own.push(messages.len());
            messages.push(user_says(CONTINUE));
        }
        if let Some(links) = self.notes.links() {
            links.place_messages(&self.places);
            for index in self.own {
                links.message(Source::Own, index);
            }
        }
        self.conversation
    }

    /// Content of the user or of a tool; where there is none, `nothing` says so.
    fn contents(&mut self, content: Said<'a>, nothing: &'static str) -> Vec<Content<'a>> {
        let mut blocks = match content {
            Said::Text(pieces) => text(pieces, "\\n").into_iter().collect(),
            Said::Parts(parts) => parts.into_iter().filter_map(|part| block(part, self.notes)).collect::<Vec<_>>(),
        };
        if blocks.is_empty() {
            blocks.push(one_text(nothing.into()));
        }
        blocks
    }

    /// Content of the application, which can only be words.
    fn words(&mut self, content: Said<'a>) -> Vec<Content<'a>> {
        let parts = match content {
            Said::Text(pieces) => return text(pieces, "\\n").into_iter().collect(),
            Said::Parts(parts) => parts,
        };
        let mut left_out = false;
        let mut words = Vec::new();
        for part in parts {
            match part {
                Part::Text(text) if !text.is_blank() => words.push(one_text(text)),
                Part::Text(_) => {}
                Part::ImageUrl { .. } | Part::VideoUrl { .. } | Part::InputAudio(_) | Part::File { .. } => {
                    left_out = true;
                }
            }
        }
        if left_out {
            self.notes.ignored(code::CONTENT_IGNORED, "input", "the application's messages can hold only text");
        }
        words
    }
}

/// Whether the assistant stopped in the middle of what it does with tools of its own: it goes on from there, also where
/// nobody says that it paused. A word of the user between would have to be there ever after.
fn is_paused(messages: &[Message<'_>]) -> bool {
    let last = messages.last().filter(|last| last.role == Role::Assistant).and_then(|last| last.blocks.last());
    last.is_some_and(|block| matches!(&block.content, Content::Raw(json) if !is_thought(json)))
}

/// Of all that returns as it came, what is no thought is what the provider's own tools did, which may be the end.
pub(super) fn is_thought(block: &str) -> bool {
    let kind = Raw::parse(block).ok().and_then(|block| block.get("type"));
    kind.is_some_and(|kind| matches!(kind.as_str(), "\"thinking\"" | "\"redacted_thinking\""))
}

fn user_says<'a>(text: &'static str) -> Message<'a> {
    Message { role: Role::User, blocks: vec![one_text(text.into()).into()] }
}

/// One text out of pieces; none without words.
fn text<'a>(pieces: Vec<Str<'a>>, glue: &'static str) -> Option<Content<'a>> {
    (!pieces.iter().all(Str::is_blank)).then_some(Content::Text { pieces, glue })
}

/// Words of the application where only the user can speak.
fn tagged(blocks: Vec<Content<'_>>) -> Vec<Content<'_>> {
    let tag = |content| match content {
        Content::Text { mut pieces, glue } => {
            // The glue is between pieces: so the tags are pieces of the first and the last.
            if glue.is_empty() {
                pieces.insert(0, "<system>\n".into());
                pieces.push("\n</system>".into());
            } else {
                pieces.insert(0, "<system>".into());
                pieces.push("</system>".into());
            }
            Content::Text { pieces, glue }
        }
        other => other,
    };
    blocks.into_iter().map(tag).collect()
}

/// The assistant's blocks: what it said and thought in its order, then its calls, with what it thought between them.
fn spoken<'a>(content: Vec<Str<'a>>, calls: Vec<Call<'a>>, thoughts: &[ThoughtBlock]) -> Vec<Content<'a>> {
    let count = calls.len();
    // A client may give its items back in another order, calls first: what is after all of them led to them.
    let calls_before = |thought: &ThoughtBlock| if thought.calls_before < count { thought.calls_before } else { 0 };
    let raw = |thought: &ThoughtBlock| Content::Raw(thought.json.clone());
    let mut blocks: Vec<Content<'a>> = Vec::new();
    let mut texts = content.into_iter().enumerate().peekable();
    let mut texts_until = |end: usize| {
        let mut blocks: Vec<Vec<Str<'a>>> = vec![Vec::new()];
        while let Some((_, piece)) = texts.next_if(|(index, _)| *index < end) {
            // What separates two texts belongs to neither, and they stay apart: so they were when the second one was said.
            if is_separator(&piece) {
                blocks.push(Vec::new());
            } else if let Some(last) = blocks.last_mut() {
                last.push(piece);
            }
        }
        blocks.into_iter().filter_map(|pieces| text(pieces, ""))
    };
    for thought in thoughts.iter().filter(|thought| calls_before(thought) == 0) {
        blocks.extend(texts_until(thought.texts_before));
        blocks.push(raw(thought));
    }
    blocks.extend(texts_until(usize::MAX));
    for (index, Call { id, name, arguments: input, .. }) in calls.into_iter().enumerate() {
        let between = thoughts.iter().filter(|thought| index > 0 && calls_before(thought) == index);
        blocks.extend(between.map(raw));
        blocks.push(Content::ToolUse { id, name, input });
    }
    blocks
}
