//! Turns that outlive the request that asked for them: they run in tasks of this process, and what they say goes into the
//! store's log before anybody reads it.
//!
//! The store decides who runs a turn and how it ended. A process that is gone, or frozen, or cut off from the database has
//! lost its turns: another one gives them an end, and nothing that the first one writes afterwards counts. What was sent
//! to a provider once is not sent again by itself.
//!
//! ```text
//!  submit ─▶ queued ─▶ claimed ─▶ dispatched ─▶ driven to its end, or cancelled
//!               ▲         │            └──────── its process is gone: failed
//!               └─────────┘ its process is gone: somebody else's
//! ```

mod drive;
mod end;
mod envelope;
mod maintain;
mod submit;

pub(crate) use drive::follow_foreground;
pub(crate) use end::{Ending, end};
pub(crate) use maintain::maintain;
pub(crate) use submit::{Submitted, submit};
