//! What of a conversation belongs together: calls with their outputs, and the thinking that led to them.

use std::collections::HashMap;
use std::ops::Range;

use wire::json::Raw;

use super::history::{Entry, Role};
use super::{shorten, size};

/// No text is cut to fewer bytes than this.
const LEAST_TEXT: usize = 64;

/// The units of a conversation, in order: between two of them no call is separated from its output.
pub(super) fn of(entries: &[Entry]) -> Vec<Range<usize>> {
    let mut output_of = HashMap::new();
    // Up to where an entry's unit reaches at least; ids may be used again.
    let mut reach = vec![0; entries.len()];
    for (at, entry) in entries.iter().enumerate().rev() {
        reach[at] = match &entry.role {
            Role::Output(id) => {
                output_of.insert(id.as_str(), at);
                at + 1
            }
            Role::Call(id) => output_of.get(id.as_str()).map_or(at, |output| *output) + 1,
            Role::Reasoning => (at + 2).min(entries.len()),
            _ => at + 1,
        };
    }
    let mut units = Vec::new();
    let (mut start, mut end) = (0, 0);
    for (at, reach) in reach.into_iter().enumerate() {
        end = end.max(reach);
        if at + 1 >= end {
            units.push(start..at + 1);
            start = at + 1;
        }
    }
    units
}

pub(super) fn weight(entries: &[Entry]) -> u64 {
    entries.iter().map(|entry| entry.weight).sum()
}

/// Takes the middle out of long texts until the entries weigh no more than `most`, as far as that can be; only if that is
/// not enough, the bytes of images and files.
pub(super) fn shorten(entries: &mut [Entry], most: u64) {
    if weight(entries) <= most {
        return;
    }
    let originals: Vec<String> = entries.iter().map(|entry| entry.json.clone()).collect();
    for bare in [false, true] {
        let mut longest = size::bytes_of(most);
        while longest >= LEAST_TEXT {
            for (entry, original) in entries.iter_mut().zip(&originals) {
                if let Ok(raw) = Raw::parse(original) {
                    entry.json = shorten::item(raw, longest, bare);
                    entry.weight = Raw::parse(&entry.json).map_or(entry.weight, size::weight);
                }
            }
            if weight(entries) <= most {
                return;
            }
            longest = longest / 4 * 3;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(role: Role) -> Entry {
        Entry { json: "{}".to_owned(), role, weight: 1 }
    }

    #[test]
    fn calls_and_their_outputs_are_one_unit() {
        let call = |id: &str| Role::Call(id.to_owned());
        let output = |id: &str| Role::Output(id.to_owned());
        for (roles, expected) in [
            (vec![], vec![]),
            (vec![Role::User, Role::Other], vec![0..1, 1..2]),
            (vec![call("a"), call("b"), output("a"), output("b"), Role::Other], vec![0..4, 4..5]),
            // The same id again.
            (vec![call("a"), output("a"), call("a"), output("a")], vec![0..2, 2..4]),
            // Without an output, without a call.
            (vec![call("a"), Role::User, output("b")], vec![0..1, 1..2, 2..3]),
            (vec![Role::Reasoning, call("a"), output("a"), Role::Reasoning], vec![0..3, 3..4]),
            (vec![call("a"), Role::User, output("a")], std::iter::once(0..3).collect()),
        ] {
            let entries: Vec<Entry> = roles.into_iter().map(entry).collect();
            assert_eq!(of(&entries), expected);
        }
    }
}
