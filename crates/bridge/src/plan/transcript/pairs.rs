//! Which output answers which call. Decided for all items at once, by id and order, before any message is
//! made. Some providers number calls anew in each answer, so an id alone says little: an output answers a call of the latest
//! answer before it that has open ones, and of these the first. One that stands before all calls answers the first. Only an
//! output that came after the model had gone on without it answers nothing: the provider has seen the call without it,
//! and what it has cached, and what the model thought since, begins with that.

use std::borrow::Cow;
use std::collections::BTreeMap;

use wire::json::Text;
use wire::responses::Item;

use crate::plan::item_path::{ItemPath, Items};
use crate::seal::PromptEnd;

/// What an item is in this respect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    Neither,
    /// A call, the output that answers it, and how many calls before it had the same id.
    Answered {
        output: usize,
        nth: usize,
    },
    /// A call that nobody answered, and how many calls before it had the same id.
    Unanswered {
        nth: usize,
    },
    /// A call whose id and answer belong to an earlier one of the same answer.
    Repeated,
    /// An output that goes after its call; more of the same result may follow.
    Result {
        more: Option<usize>,
    },
    /// An output of a call that has one already.
    Extra,
    /// An output that came after the model had gone on without it.
    Late,
    /// An output of no call.
    Orphan,
}

#[derive(Debug)]
pub(super) struct Pairs<'a> {
    links: Vec<Link>,
    /// The ids of all calls, sorted.
    calls: Vec<Keyed<'a>>,
}

type Keyed<'a> = (Cow<'a, str>, usize);

impl<'a> Pairs<'a> {
    /// `starts`: where answers began, beside those that began after the user or a tool had spoken.
    pub(super) fn of(items: &Items<'_, 'a>, starts: &BTreeMap<usize, PromptEnd>) -> Self {
        let mut links = vec![Link::Neither; items.sent.len()];
        let places = places(items, starts);
        let (mut calls, mut outputs): (Vec<Keyed<'a>>, Vec<Keyed<'a>>) = (Vec::new(), Vec::new());
        for (index, (item, _)) in items.sent.iter().enumerate() {
            match answered_role(item) {
                CallRole::Call(id) => calls.push((key(id), index)),
                CallRole::Output(id) => outputs.push((key(id), index)),
                CallRole::Neither => {}
            }
        }
        // Stable: within an id the order of the items stays.
        calls.sort_by(|(a, _), (b, _)| a.cmp(b));
        outputs.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (_, index) in &outputs {
            links[*index] = Link::Orphan;
        }
        for same in calls.chunk_by(|(a, _), (b, _)| a == b) {
            let id = same.first().map(|(id, _)| id.as_ref()).unwrap_or_default();
            let from = outputs.partition_point(|(other, _)| other.as_ref() < id);
            let count = outputs[from..].partition_point(|(other, _)| other.as_ref() == id);
            // No id is no id in common.
            let answers = if id.is_empty() { &[] } else { &outputs[from..from + count] };
            pair(same, answers, items, &places, &mut links);
        }
        Self { links, calls }
    }

    /// Whether a call has this very id.
    pub(super) fn is_taken(&self, id: &str) -> bool {
        self.calls.binary_search_by(|(other, _)| other.as_ref().cmp(id)).is_ok()
    }

    /// Whether a call before that place has this very id.
    pub(super) fn is_taken_before(&self, id: &str, index: usize) -> bool {
        // Within an id calls are in their order.
        let first = self.calls.partition_point(|(other, _)| other.as_ref() < id);
        self.calls.get(first).is_some_and(|(other, at)| other == id && *at < index)
    }

    pub(super) fn link(&self, index: usize) -> Link {
        self.links.get(index).copied().unwrap_or(Link::Neither)
    }
}

/// Where an item is, in numbers that only grow.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// Outputs in one batch have the same.
    batch: usize,
    /// What the model said in one answer has the same.
    answer: usize,
}

fn places(items: &Items<'_, '_>, starts: &BTreeMap<usize, PromptEnd>) -> Vec<Place> {
    let (mut place, mut was_asked) = (Place::default(), false);
    let number = |(index, (item, _)): (usize, &(&Item<'_>, _))| {
        let role = answered_role(item);
        was_asked |= starts.contains_key(&index);
        place.batch += usize::from(!matches!(role, CallRole::Output(_)));
        match (item, role) {
            (Item::Message(message), _) if !message.role.is_some_and(|role| role.is("assistant")) => was_asked = true,
            (_, CallRole::Output(_)) => was_asked = true,
            (Item::Message(_) | Item::Reasoning(_), _) | (_, CallRole::Call(_)) => {
                place.answer += usize::from(was_asked);
                was_asked = false;
            }
            _ => {}
        }
        place
    };
    items.sent.iter().enumerate().map(number).collect()
}

/// What the output before has been, of those of one id.
enum Before {
    Nothing,
    /// One that answers this call.
    Result {
        call: usize,
        output: usize,
    },
    Late,
}

/// Pairs the calls and the outputs of one id.
fn pair(calls: &[Keyed<'_>], outputs: &[Keyed<'_>], items: &Items<'_, '_>, places: &[Place], links: &mut [Link]) {
    let answer = |nth: usize| calls.get(nth).map(|(_, call)| places[*call].answer);
    for (nth, (id, call)) in calls.iter().enumerate() {
        let repeats = !id.is_empty() && nth > 0 && answer(nth) == answer(nth - 1);
        links[*call] = if repeats { Link::Repeated } else { Link::Unanswered { nth } };
    }
    // Calls that came so far, and those of them that nobody has answered.
    let (mut came, mut open, mut before) = (0, Vec::new(), Before::Nothing);
    for (_, output) in outputs {
        while calls.get(came).is_some_and(|(_, call)| came == 0 || call < output) {
            open.push(came);
            came += 1;
        }
        let latest = open.last().and_then(|nth| answer(*nth));
        let Some(at) = open.iter().position(|nth| answer(*nth) == latest) else {
            (links[*output], before) = another(*output, before, items, places, links);
            continue;
        };
        let nth = open.remove(at);
        if latest.is_some_and(|answer| places[*output].answer > answer) {
            (links[*output], before) = (Link::Late, Before::Late);
        } else {
            let (_, call) = calls[nth];
            links[call] = Link::Answered { output: *output, nth };
            (links[*output], before) = (Link::Result { more: None }, Before::Result { call, output: *output });
        }
    }
}

/// What an output is for which no call is open. A free-form tool may report several times while it runs; all that comes at
/// once is one result. What comes later stays there: the provider has seen the result as it was, and what it has cached
/// begins with it.
fn another(
    output: usize,
    before: Before,
    items: &Items<'_, '_>,
    places: &[Place],
    links: &mut [Link],
) -> (Link, Before) {
    match before {
        Before::Late => (Link::Late, Before::Late),
        Before::Result { call, output: first }
            if matches!(items.sent.get(call), Some((Item::CustomToolCall(_), _)))
                && places[first].batch == places[output].batch =>
        {
            links[first] = Link::Result { more: Some(output) };
            (Link::Result { more: None }, Before::Result { call, output })
        }
        before => (Link::Extra, before),
    }
}

/// Whether the assistant was the last to speak in these.
pub(super) fn assistant_spoke_last(items: &[(&Item<'_>, ItemPath)]) -> bool {
    let spoke = |(item, _): &(&Item<'_>, ItemPath)| match (item, answered_role(item)) {
        (Item::Message(message), _) => Some(message.role.is_some_and(|role| role.is("assistant"))),
        (Item::Reasoning(_), _) | (_, CallRole::Call(_)) => Some(true),
        (_, CallRole::Output(_)) => Some(false),
        // What godex ran has told the model its result.
        (Item::McpCall(call), _) => call.godex_output.as_ref().map(|_| false),
        (Item::WebSearchCall(call), _) => call.godex_output.as_ref().map(|_| false),
        _ => None,
    };
    items.iter().rev().find_map(spoke).unwrap_or(false)
}

/// How many calls these end with.
pub(super) fn calls_at_end(items: &[(&Item<'_>, ItemPath)]) -> usize {
    items.iter().rev().take_while(|(item, _)| matches!(answered_role(item), CallRole::Call(_))).count()
}

/// Whether an item is a call of a tool or the output of one, and the id that both have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CallRole<'a> {
    Call(Option<Text<'a>>),
    Output(Option<Text<'a>>),
    Neither,
}

/// What an item is in this respect. What asks for an approval, and what came of that, belong together like a call and its
/// outputs.
pub fn call_role<'a>(item: &Item<'a>) -> CallRole<'a> {
    match item {
        Item::McpApprovalRequest(request) => CallRole::Call(request.id),
        Item::McpApprovalResponse(response) => CallRole::Output(response.approval_request_id),
        Item::McpCall(call) if call.approval_request_id.is_some() => CallRole::Output(call.approval_request_id),
        item => answered_role(item),
    }
}

/// The same, of calls that the client answers.
fn answered_role<'a>(item: &Item<'a>) -> CallRole<'a> {
    match item {
        Item::FunctionCall(call) => CallRole::Call(call.call_id),
        Item::CustomToolCall(call) => CallRole::Call(call.call_id),
        Item::ShellCall(call) => CallRole::Call(call.call_id),
        Item::LocalShellCall(call) => CallRole::Call(call.call_id.or(call.id)),
        Item::ApplyPatchCall(call) => CallRole::Call(call.call_id),
        // Without ids the search ran elsewhere; only what it loaded counts.
        Item::ToolSearchCall(call) if call.call_id.is_some() => CallRole::Call(call.call_id),
        Item::ComputerCall(call) => CallRole::Call(call.call_id),
        Item::Program(call) => CallRole::Call(call.call_id),
        Item::FunctionCallOutput(output) => CallRole::Output(output.call_id),
        Item::CustomToolCallOutput(output) => CallRole::Output(output.call_id),
        Item::ShellCallOutput(output) => CallRole::Output(output.call_id),
        Item::LocalShellCallOutput(output) => CallRole::Output(output.call_id.or(output.id)),
        Item::ApplyPatchCallOutput(output) => CallRole::Output(output.call_id),
        Item::ToolSearchOutput(output) if output.call_id.is_some() => CallRole::Output(output.call_id),
        Item::ComputerCallOutput(output) => CallRole::Output(output.call_id),
        Item::ProgramOutput(output) => CallRole::Output(output.call_id),
        // What is neither, or holds its own result.
        Item::ToolSearchCall(_)
        | Item::ToolSearchOutput(_)
        | Item::Message(_)
        | Item::Reasoning(_)
        | Item::WebSearchCall(_)
        | Item::FileSearchCall(_)
        | Item::CodeInterpreterCall(_)
        | Item::ImageGenerationCall(_)
        | Item::McpListTools(_)
        | Item::McpCall(_)
        | Item::McpApprovalRequest(_)
        | Item::McpApprovalResponse(_)
        | Item::Compaction(_)
        | Item::CompactionTrigger(_)
        | Item::AdditionalTools(_)
        | Item::AgentMessage(_)
        | Item::ConfigurationUpdate(_)
        | Item::ItemReference(_)
        | Item::Other { .. } => CallRole::Neither,
    }
}

fn key(id: Option<Text<'_>>) -> Cow<'_, str> {
    id.map(Text::decode).unwrap_or_default()
}
