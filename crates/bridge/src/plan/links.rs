//! Which item became which messages and tools, for whoever wants to see it. Nothing is recorded for anybody else, and
//! nothing of what is sent depends on it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};

use wire::json::Text;
use wire::responses::{CreateResponse, Input, InputItem, Item, Tool};

use super::compaction::{Sent, Unfolded};
use super::item_path::{ItemPath, each};
use crate::note::Note;

/// Of whatever godex has written by itself.
const OWN: &str = "godex";

/// What became of a part of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// `instructions`, `input[0]`, `past[3]`, `tools[1]`, `text.format`; `input`, where that is a text; `godex` for what
    /// nobody has asked for.
    pub item: String,
    /// Where it is in what is sent: `messages[0]`, `system[0]`, `tools[1]`; `input[0]` for those who speak the Responses API.
    pub to: Vec<String>,
    /// Why it is nowhere.
    pub left_out: Option<Cow<'static, str>>,
    /// It is nowhere itself, and godex does what it asks for: how.
    pub by_godex: Option<Cow<'static, str>>,
}

/// Of an MCP server that godex asks.
const SERVER: &str = "godex offers the tools that this server lists; for a plan it is not asked";

/// A part of the request that becomes messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Instructions,
    /// The format that is asked for in words.
    Format,
    /// An input that is a text.
    Text,
    Item(ItemPath),
    Own,
}

impl Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Instructions => "instructions",
            Self::Format => "text.format",
            Self::Text => "input",
            Self::Own => OWN,
            Self::Item(path) => return path.fmt(f),
        })
    }
}

/// Where a message went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placed {
    System(usize),
    Message(usize),
    Nowhere,
}

/// What is known so far: parts by the names that links have.
#[derive(Debug, Default)]
pub(super) struct Links {
    messages: BTreeMap<String, BTreeSet<usize>>,
    /// Of a request to the Messages API.
    system: BTreeMap<String, BTreeSet<usize>>,
    tools: BTreeMap<String, BTreeSet<usize>>,
    /// Of a request to the Responses API.
    items: BTreeMap<String, BTreeSet<usize>>,
    instructions: bool,
}

impl Links {
    pub(super) fn message(&mut self, from: impl Display, index: usize) {
        self.messages.entry(name(&from.to_string())).or_default().insert(index);
    }

    pub(super) fn tool(&mut self, from: impl Display, index: usize) {
        self.tools.entry(name(&from.to_string())).or_default().insert(index);
    }

    pub(super) fn item(&mut self, from: impl Display, index: usize) {
        self.items.entry(name(&from.to_string())).or_default().insert(index);
    }

    /// The instructions stay what they are.
    pub(super) const fn keeps_instructions(&mut self) {
        self.instructions = true;
    }

    /// The messages have new places.
    pub(super) fn move_messages(&mut self, places: &[usize]) {
        for of_one in self.messages.values_mut() {
            *of_one = of_one.iter().filter_map(|index| places.get(*index).copied()).collect();
        }
    }

    /// The messages have new places, some of them among the instructions.
    pub(super) fn place_messages(&mut self, places: &[Placed]) {
        for (item, indices) in std::mem::take(&mut self.messages) {
            for index in indices {
                match places.get(index).copied().unwrap_or(Placed::Nowhere) {
                    Placed::System(index) => drop(self.system.entry(item.clone()).or_default().insert(index)),
                    Placed::Message(index) => drop(self.messages.entry(item.clone()).or_default().insert(index)),
                    Placed::Nowhere => {}
                }
            }
        }
    }

    /// The tools have new places; those without one are not sent.
    pub(super) fn move_tools(&mut self, places: &[Option<usize>]) {
        for of_one in self.tools.values_mut() {
            *of_one = of_one.iter().filter_map(|index| places.get(*index).copied().flatten()).collect();
        }
    }

    /// Nothing is known of the tools.
    pub(super) fn forget_tools(&mut self) {
        self.tools.clear();
    }

    /// A link for each part of the request, and for what is godex's own.
    pub(super) fn finish(
        self,
        request: &CreateResponse<'_>,
        past: &[InputItem<'_>],
        unfolded: &[Unfolded<'_>],
        notes: &[Note],
    ) -> Vec<Link> {
        let mut summarised = BTreeSet::new();
        each(request, past, unfolded, |_, path, sent| {
            if matches!(sent, Sent::Nothing | Sent::Tools) {
                summarised.insert(path.to_string());
            }
        });
        let tools = request.tools.iter().flatten().enumerate();
        let unlisted = tools.filter(|(_, tool)| is_unlisted(&tool.value, request, past));
        let unlisted: BTreeSet<String> = unlisted.map(|(index, _)| format!("tools[{index}]")).collect();
        let mut list = Vec::new();
        let mut add = |path: String, why: &'static str| {
            let item = name(&path);
            let to = self.places(&item);
            if to.is_empty() && unlisted.contains(&path) && said(notes, &path).is_none() {
                return list.push(Link { item, to, left_out: None, by_godex: Some(SERVER.into()) });
            }
            let left_out = to.is_empty().then(|| match said(notes, &path) {
                _ if summarised.contains(&path) => "a summary has taken its place".into(),
                Some(message) => message.clone(),
                None => why.into(),
            });
            list.push(Link { item, to, left_out, by_godex: None });
        };
        if request.instructions.is_some() {
            add("instructions".to_owned(), "there are no words in them");
        }
        for (index, item) in past.iter().enumerate() {
            add(format!("history[{index}]"), why_not(&item.value));
        }
        match &request.input {
            Some(Input::Text(_)) => add("input".to_owned(), "there are no words in it"),
            Some(Input::Items(items)) => {
                for (index, item) in items.iter().enumerate() {
                    add(format!("input[{index}]"), why_not(&item.value));
                }
            }
            None => {}
        }
        for (index, tool) in request.tools.iter().flatten().enumerate() {
            let empty = matches!(&tool.value, Tool::Namespace(space) if space.tools.as_ref().is_none_or(Vec::is_empty));
            let why =
                if empty { "there is no tool in it" } else { "`tool_choice`, or another declaration, leaves it out" };
            add(format!("tools[{index}]"), why);
        }
        for own in [Source::Format.to_string(), OWN.to_owned()] {
            let to = self.places(&own);
            if !to.is_empty() {
                list.push(Link { item: own, to, left_out: None, by_godex: None });
            }
        }
        list
    }

    fn places(&self, item: &str) -> Vec<String> {
        let of = |map: &BTreeMap<String, BTreeSet<usize>>, list: &str| {
            map.get(item).into_iter().flatten().map(|index| format!("{list}[{index}]")).collect::<Vec<_>>()
        };
        let mut places = of(&self.system, "system");
        places.extend(of(&self.messages, "messages"));
        places.extend(of(&self.items, "input"));
        places.extend(of(&self.tools, "tools"));
        if self.instructions && item == "instructions" {
            places.push("instructions".to_owned());
        }
        places
    }
}

/// Whether it is an MCP server of which no list of tools is among the items.
fn is_unlisted(tool: &Tool<'_>, request: &CreateResponse<'_>, past: &[InputItem<'_>]) -> bool {
    let Tool::Mcp(server) = tool else { return false };
    let own = match &request.input {
        Some(Input::Items(items)) => items.as_slice(),
        _ => &[],
    };
    let label = server.server_label.map(Text::decode);
    let mut lists = past.iter().chain(own).filter_map(|item| match &item.value {
        Item::McpListTools(list) => Some(list.server_label.map(Text::decode)),
        _ => None,
    });
    lists.all(|listed| listed != label)
}

/// The part of the request that a path is in, as links call it.
fn name(path: &str) -> String {
    let end = path.find(']').map_or(path.len(), |at| at + 1);
    let part = path.get(..end).unwrap_or(path);
    part.strip_prefix("history[").map_or_else(|| part.to_owned(), |index| format!("past[{index}"))
}

/// What was noted of a part.
fn said<'n>(notes: &'n [Note], path: &str) -> Option<&'n Cow<'static, str>> {
    let inside = |note: &&Note| {
        note.path
            .strip_prefix(path)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || rest.starts_with('['))
    };
    notes.iter().find(inside).map(|note| &note.message)
}

/// Why an item is not sent of which nothing was noted: because nobody misses it.
const fn why_not(item: &Item<'_>) -> &'static str {
    match item {
        Item::Reasoning(_) => "the provider is not given this reasoning back, or there is none in it",
        Item::ToolSearchCall(_) | Item::ToolSearchOutput(_) => "a search for tools that ran elsewhere",
        Item::AdditionalTools(_) | Item::McpListTools(_) => "no tool of it is offered",
        Item::McpApprovalResponse(_) => "what was said is told with the call",
        _ => "there are no words in it",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_named_by_their_first_index() {
        for (path, expected) in [
            ("input[0].content[1]", "input[0]"),
            ("history[12].tools[3]", "past[12]"),
            ("tools[1].tools[0]", "tools[1]"),
            ("instructions", "instructions"),
            ("", ""),
        ] {
            assert_eq!(name(path), expected);
        }
    }

    #[test]
    fn a_note_is_about_the_part_that_it_names() {
        let note = |path: &'static str| Note::new(crate::note::Action::Ignored, path, path);
        let notes = [note("input[10]"), note("input[1].content[0]")];
        assert_eq!(said(&notes, "input[1]").map(|text| &**text), Some("input[1].content[0]"));
        assert_eq!(said(&notes, "input[0]"), None);
        assert_eq!(said(&notes, "input[10]").map(|text| &**text), Some("input[10]"));
    }
}
