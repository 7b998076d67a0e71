//! The conversation that is to be summarised, as its items: which of them say anything, which stay word for word.

use std::ops::Range;

use bridge::{CallRole, Seal, call_role, each_sent_item};
use wire::json::Raw;
use wire::responses::{CreateResponse, Input, InputItem, Item};

use super::{shorten, size, units};
use crate::items;

/// One item.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) json: String,
    pub(super) role: Role,
    /// About how many tokens it is.
    pub(super) weight: u64,
}

/// What an item is in this respect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Role {
    /// A message of the application.
    Instruction,
    /// A message of the user.
    User,
    Call(String),
    Output(String),
    /// It declares tools; the search for them, too.
    Tools,
    Reasoning,
    /// What the model said, an earlier summary, and all else.
    Other,
}

impl Role {
    pub(super) fn of(item: &Item<'_>) -> Self {
        match item {
            Item::Message(message) => match message.role {
                Some(role) if role.is("system") || role.is("developer") => Self::Instruction,
                Some(role) if role.is("assistant") => Self::Other,
                _ => Self::User,
            },
            Item::Reasoning(_) => Self::Reasoning,
            Item::AdditionalTools(_) | Item::ToolSearchCall(_) | Item::ToolSearchOutput(_) | Item::McpListTools(_) => {
                Self::Tools
            }
            item => match call_role(item) {
                CallRole::Call(Some(id)) => Self::Call(id.decode().into_owned()),
                CallRole::Output(Some(id)) => Self::Output(id.decode().into_owned()),
                _ => Self::Other,
            },
        }
    }
}

/// What follows a summary.
#[derive(Debug)]
pub(super) struct Tail {
    pub(super) items: Vec<String>,
    /// It was too long to stay as it is.
    pub(super) shortened: bool,
}

#[derive(Debug)]
pub(super) struct History {
    entries: Vec<Entry>,
}

impl History {
    /// Everything that would be sent: what an earlier summary stands for is not, what it holds is.
    pub(super) fn read(request: &CreateResponse<'_>, past: &[InputItem<'_>], seal: &dyn Seal) -> Self {
        let mut entries = Vec::new();
        each_sent_item(request, past, seal, |item, is_summary| {
            if matches!(item.value, Item::CompactionTrigger(_)) {
                return;
            }
            // A summary reads like a message of the user, and is none.
            let role = if is_summary { Role::Other } else { Role::of(&item.value) };
            let weight = size::weight(item.raw);
            entries.push(Entry { json: item.raw.as_str().to_owned(), role, weight });
        });
        if let Some(Input::Text(text)) = &request.input {
            let json = items::message("user", "input_text", &text.decode());
            entries.push(Entry { weight: size::tokens(json.len()), json, role: Role::User });
        }
        Self { entries }
    }

    pub(super) fn bytes(&self) -> usize {
        self.entries.iter().map(|entry| entry.json.len()).sum()
    }

    /// The application's messages, if they are not too much to be carried.
    pub(super) fn instructions(&self) -> Vec<String> {
        const MOST: usize = 256 << 10;
        let of_application = || self.entries.iter().filter(|entry| entry.role == Role::Instruction);
        if of_application().map(|entry| entry.json.len()).sum::<usize>() > MOST {
            return Vec::new();
        }
        of_application().map(|entry| entry.json.clone()).collect()
    }

    /// Whether there is anything to summarise.
    pub(super) fn says_anything(&self) -> bool {
        self.entries.iter().any(|entry| entry.role != Role::Instruction && is_said(&entry.role))
    }

    /// What a summary is made of: no reasoning, no tools.
    pub(super) fn into_said(self) -> Vec<Entry> {
        self.entries.into_iter().filter(|entry| is_said(&entry.role)).collect()
    }

    /// Takes out what follows the summary: the last message of the user, and what came after it as far back as there is
    /// room, calls together with their outputs. The message and the newest of what came after it always follow; they are
    /// shortened if they are more than `most` tokens, and all else has to be within `budget`. What does not follow as it
    /// is, or has a gap after it, stays in the summary as well.
    pub(super) fn keep_tail(&mut self, most: u64, budget: u64) -> Tail {
        let units = units::of(&self.entries);
        let weight = |unit: &Range<usize>| kept_of(&self.entries[unit.clone()]).map(|entry| entry.weight).sum::<u64>();
        let asked = self.entries.iter().rposition(|entry| entry.role == Role::User);
        let asked = asked.and_then(|at| units.iter().position(|unit| unit.contains(&at)));
        let floor = asked.map_or(0, |asked| asked + 1);
        let newest = (floor..units.len()).rev().find(|at| kept_of(&self.entries[units[*at].clone()]).next().is_some());
        let of = |at: Option<usize>| at.map_or(0, |at| weight(&units[at]));
        let (of_asked, of_newest) = (of(asked), of(newest));
        let shortened = of_asked + of_newest > most;
        let mut room = budget.saturating_sub(of_asked + of_newest);
        let mut first = newest.unwrap_or(units.len());
        while !shortened && first > floor {
            let weight = weight(&units[first - 1]);
            if weight > room {
                break;
            }
            room -= weight;
            first -= 1;
        }
        let whole = !shortened && first <= floor;
        // What each may have of the room: half, or what the other leaves.
        let share =
            |own: u64, other: u64| if shortened { most.saturating_sub(other.min(most / 2)).min(own) } else { own };
        let copy = |range: Range<usize>, most: u64| {
            let mut copied: Vec<Entry> = kept_of(&self.entries[range]).cloned().collect();
            units::shorten(&mut copied, most);
            copied
        };
        let mut tail = asked.map_or_else(Vec::new, |at| copy(units[at].clone(), share(of_asked, of_newest)));
        let start = units.get(first).map_or(self.entries.len(), |unit| unit.start);
        let most = if shortened { share(of_newest, of_asked) } else { u64::MAX };
        tail.extend(copy(start..self.entries.len(), most));
        if !shortened {
            let start = if whole { asked.map_or(start, |at| units[at].start) } else { start };
            let rest = self.entries.split_off(start);
            self.entries.extend(rest.into_iter().filter(|entry| !is_kept(&entry.role)));
        }
        Tail { items: tail.into_iter().map(|entry| entry.json).collect(), shortened }
    }

    /// The newest messages of the user within that many tokens, oldest first; of one that is too long by itself, what
    /// fits.
    pub(super) fn newest_of_user(self, budget: u64) -> Vec<String> {
        let mut room = budget;
        let mut newest = Vec::new();
        for entry in self.entries.into_iter().rev().filter(|entry| entry.role == Role::User) {
            if entry.weight <= room {
                room -= entry.weight;
                newest.push(entry.json);
                continue;
            }
            if newest.is_empty()
                && let Ok(raw) = Raw::parse(&entry.json)
            {
                newest.push(shorten::item(raw, size::bytes_of(room) / 2, true));
            }
            break;
        }
        newest.reverse();
        newest
    }
}

const fn is_said(role: &Role) -> bool {
    !matches!(role, Role::Reasoning | Role::Tools)
}

/// Whether it may follow a summary: messages of the application and declared tools stay anyway.
const fn is_kept(role: &Role) -> bool {
    !matches!(role, Role::Instruction | Role::Tools)
}

fn kept_of(entries: &[Entry]) -> impl Iterator<Item = &Entry> {
    entries.iter().filter(|entry| is_kept(&entry.role))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(entries: &[(&str, Role, u64)]) -> History {
        let entry = |(json, role, weight): &(&str, Role, u64)| Entry {
            json: (*json).to_owned(),
            role: role.clone(),
            weight: *weight,
        };
        History { entries: entries.iter().map(entry).collect() }
    }

    /// What is kept word for word, and what is left to be summarised.
    #[test]
    fn the_last_question_and_what_followed_it_stay_as_they_are() {
        use Role::{Call, Instruction, Other, Output, User};
        let entries = || {
            history(&[
                ("system", Instruction, 5),
                ("old", User, 5),
                ("answer", Other, 5),
                ("ask", User, 5),
                ("call a", Call("a".to_owned()), 5),
                ("call b", Call("b".to_owned()), 5),
                ("late", Instruction, 50),
                ("output a", Output("a".to_owned()), 5),
                ("output b", Output("b".to_owned()), 5),
                ("said", Other, 5),
            ])
        };
        for (budget, kept, left) in [
            (100, "ask, call a, call b, output a, output b, said", "system, old, answer, late"),
            (30, "ask, call a, call b, output a, output b, said", "system, old, answer, late"),
            // No output without its call.
            (25, "ask, said", "system, old, answer, ask, call a, call b, late, output a, output b"),
            (10, "ask, said", "system, old, answer, ask, call a, call b, late, output a, output b"),
            // The question and what came last stay, whatever else does.
            (4, "ask, said", "system, old, answer, ask, call a, call b, late, output a, output b"),
        ] {
            let mut history = entries();
            let tail = history.keep_tail(100, budget);
            assert_eq!((tail.items.join(", ").as_str(), tail.shortened), (kept, false), "{budget}");
            let rest: Vec<&str> = history.entries.iter().map(|entry| entry.json.as_str()).collect();
            assert_eq!(rest.join(", "), left, "{budget}");
        }
    }

    /// What is too long to stay as it is loses its middle, and is summarised as well.
    #[test]
    fn the_last_question_and_the_newest_output_never_go() {
        let message = |text: &str| format!(r#"{{"role":"user","content":"{text}"}}"#);
        let long = |length: usize| message(&format!("BEGIN {} END", "x ".repeat(length)));
        let call = r#"{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}"#;
        let output = |length: usize| {
            format!(r#"{{"type":"function_call_output","call_id":"c","output":"FIRST {} LAST"}}"#, "y ".repeat(length))
        };
        for (asked, said) in [(4000, None), (2, Some(4000)), (4000, Some(2)), (4000, Some(4000))] {
            let (asked, said) = (long(asked), said.map(output));
            let weigh = |json: &str| size::tokens(json.len());
            let old = message("old");
            let mut entries = vec![(old.as_str(), Role::User, 5), (asked.as_str(), Role::User, weigh(&asked))];
            if let Some(said) = &said {
                entries.push((call, Role::Call("c".to_owned()), weigh(call)));
                entries.push((said.as_str(), Role::Output("c".to_owned()), weigh(said)));
            }
            let mut history = history(&entries);
            let tail = history.keep_tail(400, 300);
            assert!(tail.shortened);
            assert_eq!(history.entries.len(), entries.len());
            let all = tail.items.join(",");
            assert!(weigh(&all) <= 420, "{}", all.len());
            assert!(all.contains("BEGIN ") && all.contains(" END") && all.contains("bytes left out"), "{all}");
            assert_eq!(tail.items.len(), entries.len() - 1);
            assert!(said.is_none() || all.contains(call) && all.contains("FIRST ") && all.contains(" LAST"), "{all}");
        }
    }

    #[test]
    fn the_newest_messages_of_the_user_are_retained() {
        let long = format!(r#"{{"role":"user","content":"{}"}}"#, "x".repeat(4000));
        let entries = [("1", Role::User, 5), ("said", Role::Other, 5), ("2", Role::User, 5), ("3", Role::User, 5)];
        assert_eq!(history(&entries).newest_of_user(10), ["2", "3"]);
        assert_eq!(history(&entries).newest_of_user(100), ["1", "2", "3"]);
        let cut = history(&[("1", Role::User, 5), (&long, Role::User, 1000)]).newest_of_user(100);
        assert_eq!(cut.len(), 1);
        assert!(cut[0].contains("bytes left out") && cut[0].len() < 400, "{}", cut[0]);
    }
}
