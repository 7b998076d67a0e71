//! How long LiteLLM waits, in our words. Its `timeout` holds for the whole of an answer that is not streamed, and for each
//! wait of one that is: a stream that goes on is never cut.

use providers::yaml::Node;

use super::deployment::milliseconds;
use super::notes::Notes;

/// In milliseconds.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Times {
    /// `timeout`.
    pub(super) all: Option<u64>,
    /// `stream_timeout`, which takes its place for streams.
    pub(super) streams: Option<u64>,
}

/// How long LiteLLM waits for an answer that is not streamed, where nobody says.
const USUAL: u64 = 600_000;
/// How long any request may take here, unless `total_ms` says otherwise. LiteLLM has no such limit.
const LONGEST_TOTAL: u64 = 3_600_000;

impl Times {
    /// Those of a deployment.
    pub(super) fn of(params: &Node, notes: &mut Notes) -> Self {
        let all = milliseconds(params, "timeout", notes);
        Self { all, streams: milliseconds(params, "stream_timeout", notes) }
    }

    /// With what holds for all, where nothing is said.
    pub(super) fn or(self, others: Self) -> Self {
        Self { all: self.all.or(others.all), streams: self.streams.or(others.streams) }
    }

    /// The members of `timeouts`.
    pub(super) fn members(self) -> Vec<(&'static str, u64)> {
        let Some(wait) = self.streams.or(self.all) else { return Vec::new() };
        // It is always said: what is not streamed would else have the time of what is.
        let whole = self.all.unwrap_or(USUAL);
        let longest = wait.max(whole);
        let mut members = vec![("first_byte_ms", wait), ("whole_ms", whole), ("idle_ms", wait)];
        members.extend((longest > LONGEST_TOTAL).then_some(("total_ms", longest)));
        members
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_of_what_it_was_for() {
        for (all, streams, expected) in [
            (None, None, &[][..]),
            (Some(60), Some(2), &[("first_byte_ms", 2), ("whole_ms", 60), ("idle_ms", 2)]),
            (Some(30), None, &[("first_byte_ms", 30), ("whole_ms", 30), ("idle_ms", 30)]),
            (None, Some(20), &[("first_byte_ms", 20), ("whole_ms", USUAL), ("idle_ms", 20)]),
            (
                Some(7_200_000),
                Some(9),
                &[("first_byte_ms", 9), ("whole_ms", 7_200_000), ("idle_ms", 9), ("total_ms", 7_200_000)],
            ),
        ] {
            assert_eq!(Times { all, streams }.members(), expected, "{all:?} {streams:?}");
        }
    }
}
