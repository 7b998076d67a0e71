//! Where a prompt is worth caching: what comes before the messages, the end of the turn before, which is cached already,
//! and the end of this one, which the next turn will find. Four marks at the most, each on something that may have one.

use wire::messages::{Message, Request, Role};

/// A mark finds what was cached at most so many blocks before it.
const REACH: usize = 15;

type Place = (usize, usize);

pub(super) fn place(body: &mut Request<'_>) {
    match body.system.last_mut() {
        Some(last) => last.is_marked = true,
        None => body.marks_tools = !body.tools.is_empty(),
    }
    let messages = &mut body.messages;
    let newest = messages.iter().rposition(|message| message.role == Role::Assistant).unwrap_or(0);
    let before = messages.get(..newest).and_then(last_of);
    let tail = last_of(messages);
    let between = before.zip(tail).and_then(|(before, tail)| midway(messages, before, tail));
    for (message, block) in [before, between, tail].into_iter().flatten() {
        if let Some(block) = messages.get_mut(message).and_then(|message| message.blocks.get_mut(block)) {
            block.is_marked = true;
        }
    }
}

/// The last block that may have a mark.
fn last_of(messages: &[Message<'_>]) -> Option<Place> {
    places(messages).next_back()
}

/// All blocks that may have one, in their order.
fn places<'m>(messages: &'m [Message<'_>]) -> impl DoubleEndedIterator<Item = Place> + 'm {
    let of = |(index, message): (usize, &'m Message<'_>)| {
        let blocks = message.blocks.iter().enumerate().filter(|(_, block)| block.content.takes_mark());
        blocks.map(move |(block, _)| (index, block))
    };
    messages.iter().enumerate().flat_map(of)
}

/// A place in the midst of a long turn.
fn midway(messages: &[Message<'_>], before: Place, tail: Place) -> Option<Place> {
    let inside: Vec<Place> = places(messages).filter(|place| (before..tail).contains(place)).skip(1).collect();
    (inside.len() > REACH).then(|| inside[inside.len() / 2])
}
