//! The conversation that is to be summarised, as its items: which of them say anything, which stay word for word.

use std::collections::HashSet;

use bridge::{CallRole, Seal, call_role, each_sent_item};
use wire::json::Raw;
use wire::responses::{CreateResponse, Input, InputItem, Item};

use super::{shorten, size};
use crate::items;

/// One item.
#[derive(Debug)]
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
    /// What the model said, a summary, and all else.
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
            Item::AdditionalTools(_) | Item::ToolSearchCall(_) | Item::ToolSearchOutput(_) => Self::Tools,
            item => match call_role(item) {
                CallRole::Call(Some(id)) => Self::Call(id.decode().into_owned()),
                CallRole::Output(Some(id)) => Self::Output(id.decode().into_owned()),
                _ => Self::Other,
            },
        }
    }
}

#[derive(Debug)]
pub(super) struct History {
    entries: Vec<Entry>,
}

impl History {
    /// Everything that would be sent: what an earlier summary stands for is not, what it holds is.
    pub(super) fn read(request: &CreateResponse<'_>, past: &[InputItem<'_>], seal: &dyn Seal) -> Self {
        let mut entries = Vec::new();
        each_sent_item(request, past, seal, |item| {
            if matches!(item.value, Item::CompactionTrigger(_)) {
                return;
            }
            let (role, weight) = (Role::of(&item.value), size::weight(item.raw));
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

    /// Takes out what follows the summary word for word, within that many tokens: the last message of the user, and what
    /// came after it as far back as there is room, calls together with their outputs. If there was no room for all that
    /// came after it, the message itself stays in the summary as well.
    pub(super) fn keep_tail(&mut self, budget: u64) -> Vec<String> {
        let kept = |entry: &Entry| !matches!(entry.role, Role::Instruction | Role::Tools);
        let asked = self.entries.iter().rposition(|entry| entry.role == Role::User);
        let weight_of = |at: usize| self.entries.get(at).map_or(0, |entry| entry.weight);
        let asked = asked.filter(|at| weight_of(*at) <= budget);
        let mut room = budget - asked.map_or(0, weight_of);
        let floor = asked.map_or(0, |at| at + 1);
        let mut start = self.entries.len();
        while start > floor {
            let entry = &self.entries[start - 1];
            let weight = if kept(entry) { entry.weight } else { 0 };
            if weight > room {
                break;
            }
            room -= weight;
            start -= 1;
        }
        // What is left out by this may have been the call of another output.
        loop {
            match self.whole_calls(start) {
                same if same == start => break,
                later => start = later,
            }
        }
        let all = start == floor;
        let mut tail: Vec<Entry> = self.entries.split_off(start);
        let mut items: Vec<String> = Vec::new();
        match asked {
            Some(at) if all => items.push(self.entries.remove(at).json),
            Some(at) => items.push(self.entries[at].json.clone()),
            None => {}
        }
        items.extend(tail.iter().filter(|entry| kept(entry)).map(|entry| entry.json.clone()));
        tail.retain(|entry| !kept(entry));
        self.entries.append(&mut tail);
        items
    }

    /// The first place from `start` on at which no output loses its call.
    fn whole_calls(&self, start: usize) -> usize {
        let earlier: HashSet<&str> = self.entries[..start]
            .iter()
            .filter_map(|entry| match &entry.role {
                Role::Call(id) => Some(id.as_str()),
                _ => None,
            })
            .collect();
        let lost = |entry: &Entry| matches!(&entry.role, Role::Output(id) if earlier.contains(id.as_str()));
        self.entries[start..].iter().rposition(lost).map_or(start, |last| start + last + 1)
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
            (5, "ask", "system, old, answer, ask, call a, call b, late, output a, output b, said"),
            (4, "", "system, old, answer, ask, call a, call b, late, output a, output b, said"),
        ] {
            let mut history = entries();
            assert_eq!(history.keep_tail(budget).join(", "), kept, "{budget}");
            let rest: Vec<&str> = history.entries.iter().map(|entry| entry.json.as_str()).collect();
            assert_eq!(rest.join(", "), left, "{budget}");
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
