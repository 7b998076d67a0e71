//! A refusal, and what may be tried after it. Nothing of an answer has reached the client yet.

use bridge::{Failure, FailureClass};
use wire::responses::Usage;

use crate::account::Deadline;

#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) failure: Failure,
    pub(super) remedy: Remedy,
    /// The deadline that was missed, if that is what it was.
    pub(crate) deadline: Option<Deadline>,
    /// It never left this machine: no file descriptor was left for a connection.
    pub(super) is_ours: bool,
    /// Of the answer, where there was one.
    pub(super) status: Option<u16>,
    /// What was answered, as it was: there may be keys in it.
    pub(super) body: Option<Box<[u8]>>,
    /// What its provider has counted, of an answer that came to nothing.
    pub(super) usage: Option<Usage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remedy {
    /// The request itself is refused: nobody else would take it.
    Nothing,
    /// This target will not do, now or in a while; another may.
    Elsewhere,
    /// Another target, or the same in a while.
    Again,
}

impl Refused {
    pub(super) const fn new(failure: Failure, remedy: Remedy) -> Self {
        Self { failure, remedy, deadline: None, is_ours: false, status: None, body: None, usage: None }
    }

    pub(super) fn late(deadline: Deadline) -> Self {
        Self::new(super::late(deadline), Remedy::Elsewhere).missed(Some(deadline))
    }

    /// The same, with the deadline that was missed.
    #[must_use]
    pub(crate) const fn missed(mut self, deadline: Option<Deadline>) -> Self {
        self.deadline = deadline;
        self
    }

    /// Whether the target itself is in trouble; None when this says nothing about it.
    pub(super) fn is_trouble(&self) -> Option<bool> {
        if self.is_ours { None } else { is_trouble(&self.failure) }
    }
}

/// Whether a failure says that its target is in trouble; None when it says nothing about it.
pub(super) fn is_trouble(failure: &Failure) -> Option<bool> {
    if failure.basis.is_hearsay() {
        return None;
    }
    match failure.class {
        FailureClass::Server
        | FailureClass::Overloaded
        | FailureClass::Unreachable
        | FailureClass::Timeout
        | FailureClass::Truncated
        | FailureClass::Protocol
        | FailureClass::Empty => Some(true),
        FailureClass::InvalidRequest
        | FailureClass::ContentPolicy
        | FailureClass::ContextOverflow
        | FailureClass::ModelNotFound
        | FailureClass::RateLimit => Some(false),
        FailureClass::Auth
        | FailureClass::Quota
        | FailureClass::InvalidOutput
        | FailureClass::KeyEnded
        | FailureClass::Shutdown
        | FailureClass::McpServer
        | FailureClass::Lost => None,
    }
}

impl From<Failure> for Refused {
    /// What an upstream said of itself.
    fn from(failure: Failure) -> Self {
        let remedy = match failure.class {
            FailureClass::Server
            | FailureClass::Overloaded
            | FailureClass::RateLimit
            | FailureClass::Timeout
            | FailureClass::Truncated => Remedy::Again,
            FailureClass::Auth
            | FailureClass::Quota
            | FailureClass::ModelNotFound
            | FailureClass::Unreachable
            | FailureClass::Protocol
            | FailureClass::Empty => Remedy::Elsewhere,
            FailureClass::InvalidRequest
            | FailureClass::ContentPolicy
            | FailureClass::ContextOverflow
            | FailureClass::InvalidOutput
            | FailureClass::KeyEnded
            | FailureClass::Shutdown
            | FailureClass::McpServer
            | FailureClass::Lost => Remedy::Nothing,
        };
        let remedy = match (failure.retry, remedy) {
            (Some(true), _) => Remedy::Again,
            (Some(false), Remedy::Again) => Remedy::Elsewhere,
            _ => remedy,
        };
        Self::new(failure, remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A spec may know better than the class what is worth another try.
    #[test]
    fn a_failure_may_say_whether_to_ask_again() {
        for (class, retry, expected) in [
            (FailureClass::Server, None, Remedy::Again),
            (FailureClass::Server, Some(false), Remedy::Elsewhere),
            (FailureClass::ModelNotFound, Some(true), Remedy::Again),
            (FailureClass::InvalidRequest, Some(false), Remedy::Nothing),
        ] {
            let failure = Failure { retry, ..Failure::new(class, "words") };
            assert_eq!(Refused::from(failure).remedy, expected, "{class:?} {retry:?}");
        }
    }
}
