//! Marks for caches that must be asked for: up to where a provider keeps what it has read. Marks move from turn to turn,
//! and nothing else may: see `Style::text_as_parts`.

use wire::chat::Message;

use crate::dialect::CacheMarks;

/// The places of the messages that are marked, in order: the end of the instructions, which other conversations begin
/// with as well; what the turn before ended with, where its own mark was; and the end, for the turn after this one.
/// Providers take four.
pub(super) fn places(messages: &[Message<'_>], rule: CacheMarks) -> Vec<usize> {
    let takes_mark = |message: &Message<'_>| match (rule, message) {
        (CacheMarks::None, _) | (CacheMarks::NotTools, Message::Tool { .. }) => false,
        _ => message.has_text(),
    };
    let last_of = |messages: &[Message<'_>]| messages.iter().rposition(takes_mark);
    let is_system = |message: &&Message<'_>| matches!(message, Message::Plain { role: "system" | "developer", .. });
    let instructions = messages.iter().take_while(is_system).count();
    // The model's last answer is new: what was asked for it ended before.
    let before_answer = messages.iter().rposition(|message| matches!(message, Message::Assistant { .. })).unwrap_or(0);
    let ends = [instructions, before_answer, messages.len()];
    let mut places: Vec<usize> = ends.into_iter().filter_map(|end| last_of(messages.get(..end)?)).collect();
    places.sort_unstable();
    places.dedup();
    places
}
