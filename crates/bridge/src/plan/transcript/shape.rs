//! The last pass over a transcript: what a dialect does not take in the order or shape of messages.

use wire::chat::{Content, Message, Part, Str};

use crate::dialect::{AfterTool, EmptyText, LastMessage, LateSystem, MessageRules, ReasoningRules, Replay, Turns};
use crate::plan::links::{Links, Source};

/// Goes between a tool's result and the user's message, where a provider wants the assistant to speak next.
const BRIDGE: &str = "Understood.";
const EMPTY: &str = "(empty)";
/// Is said at the end, where a provider wants the user to speak last.
const CONTINUE: &str = "(continue)";

pub(in crate::plan) fn shape<'a>(
    messages: Vec<Message<'a>>,
    rules: &MessageRules,
    links: Option<&mut Links>,
) -> Vec<Message<'a>> {
    let (mut places, mut own, is_linking) = (Vec::new(), Vec::new(), links.is_some());
    let mut out: Vec<Message<'a>> = Vec::with_capacity(messages.len());
    let mut leading = true;
    for mut message in messages {
        if let Message::Plain { role, .. } = &mut message {
            leading &= matches!(*role, "system" | "developer");
            if !leading && rules.late_system == LateSystem::User {
                *role = "user";
            }
        } else {
            leading = false;
        }
        if rules.empty_text == EmptyText::Fill {
            fill(&mut message);
        }
        let behind_tool = matches!(out.last(), Some(Message::Tool { .. }));
        if behind_tool && rules.after_tool == AfterTool::Assistant && matches!(message, Message::Plain { .. }) {
            let content = vec![BRIDGE.into()];
            if is_linking {
                own.push(out.len());
            }
            out.push(Message::Assistant { content, tool_calls: Vec::new(), replay: wire::chat::Replay::default() });
        }
        // Some templates take one system message and no more, at the start; to all others one says the same.
        let leads = leading && matches!(message, Message::Plain { role: "system", .. });
        match out.last_mut() {
            Some(last) if leads || rules.turns == Turns::Merged => {
                if let Some(message) = merge(last, message) {
                    out.push(message);
                }
            }
            _ => out.push(message),
        }
        if is_linking {
            places.push(out.len() - 1);
        }
    }
    let is_asked = matches!(out.last(), None | Some(Message::Tool { .. } | Message::Plain { role: "user", .. }));
    if rules.last == LastMessage::User && !is_asked {
        own.push(out.len());
        out.push(Message::Plain { role: "user", content: Content::Text(vec![CONTINUE.into()]) });
    }
    if let Some(links) = links {
        links.move_messages(&places);
        for index in own {
            links.message(Source::Own, index);
        }
    }
    out
}

/// Gives a blank to the messages that must carry reasoning and have lost it. Not where thinking is switched off: to say so
/// in another way, such as an effort, does not count everywhere.
pub(in crate::plan) fn fill_lost_reasoning(messages: &mut [Message<'_>], rules: &ReasoningRules) {
    for message in messages {
        if let Message::Assistant { tool_calls, replay, .. } = message {
            let wanted = match rules.replay {
                Replay::Never => false,
                Replay::Tools => !tool_calls.is_empty(),
                Replay::Always => true,
            };
            if wanted && replay.text.is_empty() && replay.members.is_empty() {
                replay.text.push(" ".into());
            }
        }
    }
}

fn fill(message: &mut Message<'_>) {
    if let Message::Plain { content, .. } | Message::Tool { content, .. } = message
        && content.is_empty()
    {
        *content = Content::Text(vec![EMPTY.into()]);
    }
}

/// Joins two messages of one role; gives the second back where it must stay by itself.
fn merge<'a>(last: &mut Message<'a>, next: Message<'a>) -> Option<Message<'a>> {
    match (last, next) {
        (Message::Plain { role, content }, Message::Plain { role: same, content: more }) if *role == same => {
            join(content, more);
            None
        }
        (_, next) => Some(next),
    }
}

fn join<'a>(content: &mut Content<'a>, more: Content<'a>) {
    if let (Content::Text(texts), Content::Text(more)) = (&mut *content, &more) {
        texts.extend(more.iter().cloned());
        return;
    }
    let mut parts = into_parts(std::mem::replace(content, Content::Text(Vec::new())));
    parts.extend(into_parts(more));
    *content = Content::Parts(parts);
}

fn into_parts(content: Content<'_>) -> Vec<Part<'_>> {
    match content {
        Content::Text(texts) => texts.into_iter().filter(|text: &Str<'_>| !text.is_empty()).map(Part::Text).collect(),
        Content::Parts(parts) => parts,
    }
}
