//! What an upstream really does: a battery of small requests, a judgement on each answer, a report beside what
//! the spec declares, and a spec that says what was seen.
//!
//! No I/O: requests go out through an [`ProbeUpstream`] that the caller implements. Nothing of a user's is ever in
//! them: every prompt is a constant of this crate. What an answer does not decide is `unclear`; nothing here
//! guesses. JSON trees are fine here: this is not the road of traffic.
#![forbid(unsafe_code)]

mod ask;
mod bodies;
mod checks;
mod diff;
mod estimate;
mod finding;
mod listing;
mod nearest;
mod no_list;
mod reply;
mod report;
mod run;
mod spec_writer;
mod wires;

pub use ask::{Answer, Endpoint, Outcome, ProbeUpstream, Request};
pub use checks::{Check, run};
pub use diff::{Diff, Was};
pub use estimate::{Estimate, estimate};
pub use finding::{Change, Confidence, Difference, Finding, Observed};
pub use nearest::nearest;
pub use no_list::no_list;
pub use report::{Report, costs};
pub use run::{Abort, Cost, Limits, Probed, Settings, Spent};
pub use spec_writer::{Origin, spec};
