//! How one client is told of errors, where it acts on a status or a code otherwise than the API means it. Data and its
//! application; which client has which is in [`crate::client`]. What went wrong stays what it was: `x-godex-error`, the
//! message and the log are the same for everybody.

use std::borrow::Cow;

use bridge::FailureClass;
use http::StatusCode;

use super::{ApiError, Code};

/// How errors are said.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ErrorSurface {
    /// Failures that a streamed request gets inside a stream, as `response.failed`, though nothing was said before.
    pub(crate) in_stream: &'static [FailureClass],
    /// Errors that keep the API's status.
    pub(crate) kept: &'static [Code],
    /// Other statuses than the API's, for all others. The first that fits counts.
    pub(crate) statuses: &'static [(Which, StatusCode)],
    /// Other statuses for godex's own limits, before those.
    pub(crate) limits: &'static [(Code, StatusCode)],
    /// Other codes than ours.
    pub(crate) codes: &'static [(Code, &'static str)],
    /// `Retry-After` is with every 429 that may pass, and never more seconds than this.
    pub(crate) longest_wait: Option<u32>,
}

/// Which errors are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    Code(Code),
    Status(StatusCode),
}

impl ErrorSurface {
    /// As the API has it. It, too, says in a stream that the context is too long.
    pub(crate) const EXACT: Self = Self {
        in_stream: &[FailureClass::ContextOverflow],
        kept: &[],
        statuses: &[],
        limits: &[],
        codes: &[],
        longest_wait: None,
    };

    /// The error as the client is told it.
    pub(crate) fn shown(&self, mut error: ApiError) -> ApiError {
        let fits = |which: Which| match which {
            Which::Code(code) => code == error.code,
            Which::Status(status) => status == error.status,
        };
        let limit = self.limits.iter().find(|(code, _)| *code == error.code).map(|(_, status)| *status);
        let status = self.statuses.iter().find(|(which, _)| fits(*which)).map(|(_, status)| *status);
        let status = limit.or(status);
        if let Some(status) = status.filter(|_| !self.kept.contains(&error.code)) {
            error.status = status;
        }
        if let Some((_, code)) = self.codes.iter().find(|(code, _)| *code == error.code) {
            error.wire = Some(Cow::Borrowed(*code));
        }
        if let Some(most) = self.longest_wait {
            let passes = error.status == StatusCode::TOO_MANY_REQUESTS && !error.code.lasts();
            let wait = error.retry_after.or(passes.then_some(1)).map(|seconds| seconds.min(most));
            error.retry_after = wait.filter(|_| !error.code.lasts());
        }
        error
    }
}
