//! Asking a model, for whatever reason: an attempt (plan × failover) until a target accepts, its answer as it is read, and
//! the deadlines meanwhile. A turn reads its answers into its response; a [`question`] is one of godex's own, inside a
//! request.
//!
//! Nothing here decides what an answer means, or what is shown of it.

mod answer;
pub(crate) mod attempt;
mod meter;
mod question;
mod watch;

pub(crate) use answer::{Answer, MAX_CONTENT, oversized};
pub(crate) use attempt::{Asked, Attempt, Unanswered};
pub(crate) use question::{NoAnswer, OwnAnswer, ask};
pub(crate) use watch::{Alarm, Watch};
