//! Compaction items: what they stand for is not sent, and what is sealed in them is sent in their place, as items: the
//! summary as a message, and what was kept beside it word for word. The same item becomes the same bytes on every turn.
//!
//! An item that was not sealed here, or not for this tenant, stays what it is: nothing is guessed about it.

use std::borrow::Cow;
use std::collections::HashMap;

use wire::json::{FromRaw, Invalid, InvalidCode, Kept, Kind, Raw};
use wire::responses::{CreateResponse, Input, InputItem, Item, Message};

use super::item_path::each;
use crate::seal::{Seal, SealedSummary};

/// The least `compact_threshold`.
const LEAST_THRESHOLD: i64 = 1000;

/// When the context of a request is to be compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactionWish {
    /// Never.
    No,
    /// Now, and nothing else: a `compaction_trigger` ends the input.
    Only,
    /// Before the answer, if the context has more tokens than this.
    Above(u64),
}

impl CompactionWish {
    /// What a request asks for.
    pub fn of(request: &CreateResponse<'_>) -> Result<Self, Invalid> {
        let threshold = threshold(request.context_management)?;
        if let Some(Input::Items(items)) = &request.input {
            let trigger = items.iter().position(|item| matches!(item.value, Item::CompactionTrigger(_)));
            match trigger {
                Some(at) if at + 1 == items.len() => return Ok(Self::Only),
                Some(at) => {
                    let message = "a 'compaction_trigger' must be the last item.";
                    return Err(Invalid::rule(InvalidCode::InvalidValue, message).at_index(at).at("input"));
                }
                None => {}
            }
        }
        Ok(threshold.map_or(Self::No, Self::Above))
    }
}

/// The lowest threshold of `context_management`.
fn threshold(given: Option<Raw<'_>>) -> Result<Option<u64>, Invalid> {
    const NAME: &str = "context_management";
    let Some(list) = given else { return Ok(None) };
    if list.kind() != Kind::Array {
        return Err(Invalid::expected("an array", list).at(NAME));
    }
    let mut lowest: Option<u64> = None;
    for (index, entry) in list.elements().enumerate() {
        let at = |invalid: Invalid| invalid.at_index(index).at(NAME);
        if entry.kind() != Kind::Object {
            return Err(at(Invalid::expected("an object", entry)));
        }
        let kind = entry.get("type").and_then(Raw::text);
        match kind.map(wire::json::Text::decode) {
            Some(kind) if kind == "compaction" => {}
            Some(kind) => return Err(at(Invalid::value(&kind, &["compaction"]).at("type"))),
            None => return Err(at(Invalid::missing().at("type"))),
        }
        let Some(threshold) = entry.get("compact_threshold").filter(|threshold| !threshold.is_null()) else { continue };
        let tokens = i64::from_raw(threshold).map_err(|invalid| at(invalid.at("compact_threshold")))?;
        if tokens < LEAST_THRESHOLD {
            let message = format!(
                "integer below minimum value. Expected a value >= {LEAST_THRESHOLD}, but got {tokens} instead."
            );
            return Err(at(Invalid::rule(InvalidCode::IntegerBelowMinValue, message).at("compact_threshold")));
        }
        let tokens = tokens.unsigned_abs();
        lowest = Some(lowest.map_or(tokens, |before| before.min(tokens)));
    }
    Ok(lowest)
}

/// What a compaction item of ours holds.
#[derive(Debug)]
pub(super) struct Opened {
    /// Its place among all items of the turn.
    place: usize,
    stands_for_all: bool,
    /// A JSON array: messages of the application, for when the list has none any more.
    instructions: String,
    /// A JSON array: the summary, and what was kept beside it.
    items: String,
}

/// The same, as items.
#[derive(Debug)]
pub(super) struct Unfolded<'a> {
    pub(super) place: usize,
    stands_for_all: bool,
    instructions: Vec<InputItem<'a>>,
    pub(super) items: Vec<InputItem<'a>>,
}

/// Every compaction item of a turn that opens.
pub(super) fn open(request: &CreateResponse<'_>, past: &[InputItem<'_>], seal: &dyn Seal) -> Vec<Opened> {
    let input = match &request.input {
        Some(Input::Items(items)) => items.as_slice(),
        _ => &[],
    };
    let mut first = None;
    let mut is_before = |place: usize, id: &str| {
        !id.is_empty() && first.get_or_insert_with(|| first_places(past, input)).get(id).is_some_and(|at| *at < place)
    };
    let opened = |(place, item): (usize, &InputItem<'_>)| {
        let Item::Compaction(compaction) = &item.value else { return None };
        let summary = seal.open(&compaction.encrypted_content?.decode())?;
        let SealedSummary { text, stands_for_all, after, instructions, kept } = SealedSummary::decode(&summary)?;
        let stands_for_all = stands_for_all || is_before(place, &after);
        let message = SealedSummary::message(&text);
        let kept = kept.trim_start().trim_start_matches('[').trim_start();
        let items = if kept == "]" { format!("[{message}]") } else { format!("[{message},{kept}") };
        Some(Opened { place, stands_for_all, instructions, items })
    };
    past.iter().chain(input).enumerate().filter_map(opened).collect()
}

/// Where each id is first. Looked up, because there may be many compaction items that ask for one.
fn first_places<'a>(past: &[InputItem<'a>], input: &[InputItem<'a>]) -> HashMap<Cow<'a, str>, usize> {
    let mut places = HashMap::new();
    for (place, item) in past.iter().chain(input).enumerate() {
        if let Some(id) = item.raw.get("id").and_then(Raw::text) {
            places.entry(id.decode()).or_insert(place);
        }
    }
    places
}

/// Reads what was opened.
pub(super) fn unfold(opened: &[Opened]) -> Vec<Unfolded<'_>> {
    opened.iter().map(Opened::unfold).collect()
}

impl Opened {
    fn unfold(&self) -> Unfolded<'_> {
        let Self { place, stands_for_all, instructions, items } = self;
        Unfolded {
            place: *place,
            stands_for_all: *stands_for_all,
            instructions: listed(instructions),
            items: listed(items),
        }
    }
}

/// The items of a JSON array.
fn listed(array: &str) -> Vec<InputItem<'_>> {
    let array = Raw::parse(array).ok().into_iter().flat_map(Raw::elements);
    array.filter_map(|item| Kept::from_raw(item).ok()).collect()
}

/// Every item of a turn that is sent, in order: what a compaction item of ours stands for is not, and what it holds is
/// there in its place. With whether it is such a summary.
pub fn each_sent_item(
    request: &CreateResponse<'_>,
    past: &[InputItem<'_>],
    seal: &dyn Seal,
    mut item: impl FnMut(&InputItem<'_>, bool),
) {
    let opened = open(request, past, seal);
    each(request, past, &unfold(&opened), |sent, _, how| {
        if how != Sent::Nothing {
            item(sent, how == Sent::Summary);
        }
    });
}

/// The place of the last compaction item that stands for everything before it, the past and the input counted together; 0
/// if there is none.
pub fn first_sent(request: &CreateResponse<'_>, past: &[InputItem<'_>], seal: &dyn Seal) -> usize {
    let opened = open(request, past, seal);
    opened.iter().rfind(|opened| opened.stands_for_all).map_or(0, |opened| opened.place)
}

/// Whether a message is the application's own.
fn instructs(item: &Item<'_>) -> bool {
    matches!(item, Item::Message(Message { role: Some(role), .. }) if role.is("system") || role.is("developer"))
}

/// What is sent of each item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    Whole,
    /// As a whole; it is the summary of a compaction item, and nobody's message.
    Summary,
    /// Only the tools that it declares.
    Tools,
    Nothing,
}

/// Which items of the turn are sent, given what compaction items stand for.
#[derive(Debug)]
pub(super) struct Standing<'u, 'a> {
    unfolded: &'u [Unfolded<'a>],
    /// The last one that stands for everything before it.
    last: Option<&'u Unfolded<'a>>,
}

impl<'u, 'a> Standing<'u, 'a> {
    pub(super) fn of(unfolded: &'u [Unfolded<'a>]) -> Self {
        Self { unfolded, last: unfolded.iter().rfind(|unfolded| unfolded.stands_for_all) }
    }

    pub(super) fn sent(&self, place: usize, item: &Item<'_>) -> Sent {
        if self.last.is_none_or(|last| place >= last.place) || instructs(item) {
            return Sent::Whole;
        }
        match item {
            Item::AdditionalTools(_) | Item::ToolSearchOutput(_) | Item::McpListTools(_) => Sent::Tools,
            _ => Sent::Nothing,
        }
    }

    /// What takes the place of the item there, if it is a compaction item of ours.
    pub(super) fn replacement(&self, place: usize) -> Option<&'u Unfolded<'a>> {
        let found = self.unfolded.binary_search_by_key(&place, |unfolded| unfolded.place);
        found.ok().and_then(|at| self.unfolded.get(at))
    }

    /// The application's messages that a client has dropped together with all else before the compaction item. What it
    /// says after that item changes nothing about them.
    pub(super) fn dropped_instructions<'i>(&self, items: impl Iterator<Item = &'i InputItem<'i>>) -> &'u [InputItem<'a>]
    where
        'a: 'i,
    {
        match self.last {
            Some(last) if !items.take(last.place).any(|item| instructs(&item.value)) => &last.instructions,
            _ => &[],
        }
    }
}
