//! `truncation: auto`: of a conversation that is too long for the model the oldest turns are left out.
//!
//! They go in large steps, so that what is sent begins at the same item for many turns and a provider's cache of it
//! holds. Where it begins follows from the items alone, one after the other: the next turn, which has the same items and
//! some more, begins where this one did, or a large step later.

use std::collections::HashSet;

use bridge::Seal;
use wire::responses::{CreateResponse, Input, InputItem, Item};

use super::history::Role;
use super::size;

/// After a step, the conversation takes this share of the room, in percent.
const AFTER: u64 = 70;

/// The items of a turn, with what each weighs.
#[derive(Debug)]
pub(crate) struct Truncation {
    entries: Vec<(Role, u64)>,
    /// What a summary stands for before this is not sent anyway.
    first: usize,
    /// What is sent beside the items weighs this much.
    beside: u64,
}

impl Truncation {
    pub(crate) fn of(request: &CreateResponse<'_>, past: &[InputItem<'_>], seal: &dyn Seal) -> Self {
        let entry = |item: &InputItem<'_>| (role(&item.value), size::weight(item.raw));
        let input = match &request.input {
            Some(Input::Items(items)) => items.as_slice(),
            _ => &[],
        };
        let mut entries: Vec<(Role, u64)> = past.iter().chain(input).map(entry).collect();
        if let Some(Input::Text(text)) = &request.input {
            entries.push((Role::User, size::tokens(text.escaped().len())));
        }
        let tools = request.tools.iter().flatten().map(|tool| size::weight(tool.raw)).sum::<u64>();
        let instructions = request.instructions.map_or(0, |text| size::tokens(text.escaped().len()));
        Self { entries, first: bridge::first_sent(request, past, seal), beside: tools + instructions }
    }

    /// What all of it weighs.
    pub(crate) fn weight(&self) -> u64 {
        self.beside + self.entries.iter().skip(self.first).map(|(_, weight)| weight).sum::<u64>()
    }

    /// Which items are sent so that all of it weighs no more than `room`, as far as that can be: messages of the
    /// application, declared tools, summaries and the newest turn are never left out, nor is an output without its call.
    /// None if nothing can be left out.
    pub(crate) fn within(&self, room: u64) -> Option<Vec<bool>> {
        let start = self.start(room.saturating_sub(self.beside));
        let mut left_out = HashSet::new();
        let mut sent = vec![true; self.entries.len()];
        let mut any = false;
        for (at, (role, _)) in self.entries.iter().enumerate().skip(self.first) {
            let goes = match role {
                Role::Instruction | Role::Tools => false,
                Role::Output(id) => at < start || left_out.contains(id.as_str()),
                Role::Call(id) if at < start => {
                    left_out.insert(id.as_str());
                    true
                }
                _ => at < start,
            };
            sent[at] = !goes;
            any |= goes;
        }
        any.then_some(sent)
    }

    /// The item from which on all are sent: the beginning of a turn.
    fn start(&self, room: u64) -> usize {
        let stays = |role: &Role| matches!(role, Role::Instruction | Role::Tools);
        let (mut start, mut staying, mut going) = (self.first, 0, 0);
        let mut turns = std::collections::VecDeque::new();
        for (at, (role, weight)) in self.entries.iter().enumerate().skip(self.first) {
            if stays(role) {
                staying += weight;
            } else {
                going += weight;
            }
            if *role == Role::User {
                turns.push_back(at);
            }
            if staying + going <= room {
                continue;
            }
            while staying + going > room * AFTER / 100
                && let Some(turn) = turns.pop_front()
            {
                let left = self.entries[start..turn].iter().filter(|(role, _)| !stays(role));
                going -= left.map(|(_, weight)| weight).sum::<u64>();
                start = turn;
            }
        }
        start
    }
}

/// A summary is never left out: it stands for more than it weighs.
fn role(item: &Item<'_>) -> Role {
    if matches!(item, Item::Compaction(_)) { Role::Instruction } else { Role::of(item) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn truncation(entries: &[(Role, u64)]) -> Truncation {
        Truncation { entries: entries.to_vec(), first: 0, beside: 0 }
    }

    fn sent(entries: &[(Role, u64)], room: u64) -> Option<String> {
        let sent = truncation(entries).within(room)?;
        Some(sent.iter().map(|sent| if *sent { '+' } else { '-' }).collect())
    }

    #[test]
    fn whole_turns_go_and_what_must_stay_stays() {
        let (call, output) = (|id: &str| Role::Call(id.to_owned()), |id: &str| Role::Output(id.to_owned()));
        let entries = [
            (Role::Instruction, 10),
            (Role::User, 10),
            (call("a"), 10),
            (call("b"), 10),
            (output("a"), 10),
            (Role::Tools, 10),
            (Role::User, 10),
            // It came late.
            (output("b"), 10),
            (Role::Other, 10),
            (Role::User, 10),
            (Role::Other, 10),
        ];
        for (room, expected) in [
            (110, None),
            (109, Some("+----++-+++")),
            (60, Some("+----+---++")),
            // The newest turn stays, whatever it weighs.
            (1, Some("+----+---++")),
        ] {
            assert_eq!(sent(&entries, room).as_deref(), expected, "{room}");
        }
    }

    /// The beginning moves seldom, and by much.
    #[test]
    fn the_next_turn_begins_where_this_one_did() {
        let mut entries = vec![(Role::Instruction, 50)];
        let (mut moves, mut before) = (0, 0);
        for turn in 0..300 {
            entries.extend([(Role::User, 10 + turn % 7), (Role::Other, 20 + turn % 13)]);
            let now = truncation(&entries).start(1000);
            let weight: u64 = entries[now..].iter().map(|(_, weight)| weight).sum();
            assert!(weight <= 1000, "{weight}");
            assert!(now >= before);
            moves += usize::from(now > before);
            before = now;
        }
        assert!((20..50).contains(&moves), "{moves}");
    }
}
