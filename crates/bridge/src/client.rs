//! What a client reads otherwise than others, as data: the forms in which it is told what the API leaves open, or what
//! it would leave out as the API has it. The kernel knows no client by its name, and guesses none: whoever writes the
//! response says which forms.

use wire::responses::ResponseError;

use crate::dialect::RefusalForm;
use crate::failure::{Failure, FailureClass};

/// The forms that one client reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientForms {
    pub heartbeat: Heartbeat,
    /// What becomes of a refusal.
    pub refusal: RefusalForm,
    pub reasoning: ReasoningChannel,
    /// `error.code` of responses that failed so, instead of the usual one.
    pub failure_codes: &'static [(FailureClass, &'static str)],
    /// How long to wait is also said in the words of a rate limit.
    pub wait_in_words: Option<WaitInWords>,
}

/// A number of seconds for a client that reads it out of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitInWords {
    pub before: &'static str,
    pub after: &'static str,
    /// The most that is said.
    pub most: u32,
}

/// The sign of life while the upstream is silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heartbeat {
    /// `response.in_progress`.
    Event,
    /// The same after a comment, for whatever counts lines on the way.
    CommentAndEvent,
}

/// Where the reasoning of a model that has no summaries of its own goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasoningChannel {
    /// Raw, or as a summary where the request asks for one.
    AsAsked,
    /// Always as a summary.
    Summary,
}

impl ClientForms {
    /// As the API has it.
    pub const EXACT: Self = Self {
        heartbeat: Heartbeat::CommentAndEvent,
        refusal: RefusalForm::Refusal,
        reasoning: ReasoningChannel::AsAsked,
        failure_codes: &[],
        wait_in_words: None,
    };

    /// A failure as this client is shown it inside a response.
    pub(crate) fn error(&self, failure: &Failure) -> ResponseError {
        let mut error = failure.response_error();
        if let Some((_, code)) = self.failure_codes.iter().find(|(class, _)| *class == failure.class) {
            (*code).clone_into(&mut error.code);
        }
        if let (FailureClass::RateLimit, Some(WaitInWords { before, after, most })) =
            (failure.class, self.wait_in_words)
        {
            // In front of the provider's own words: the first time that is named counts, and theirs may be an hour.
            let seconds = failure.retry_after.unwrap_or(1).min(most);
            error.message = format!("{before}{seconds}{after} {}", error.message);
        }
        error
    }
}

impl Default for ClientForms {
    fn default() -> Self {
        Self::EXACT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_said_as_the_client_reads_it() {
        const CODES: &[(FailureClass, &str)] = &[(FailureClass::Overloaded, "server_error")];
        const WAIT: WaitInWords = WaitInWords { before: "Come back in ", after: "s.", most: 60 };
        let told = ClientForms { failure_codes: CODES, wait_in_words: Some(WAIT), ..ClientForms::EXACT };
        for (forms, class, wait, code, message) in [
            (ClientForms::EXACT, FailureClass::Overloaded, None, "server_is_overloaded", "words"),
            (told, FailureClass::Overloaded, None, "server_error", "words"),
            (ClientForms::EXACT, FailureClass::RateLimit, Some(7), "rate_limit_exceeded", "words"),
            (told, FailureClass::RateLimit, Some(7), "rate_limit_exceeded", "Come back in 7s. words"),
            (told, FailureClass::RateLimit, None, "rate_limit_exceeded", "Come back in 1s. words"),
            (told, FailureClass::RateLimit, Some(3600), "rate_limit_exceeded", "Come back in 60s. words"),
            (told, FailureClass::Quota, Some(7), "insufficient_quota", "words"),
        ] {
            let error = forms.error(&Failure { retry_after: wait, ..Failure::new(class, "words") });
            assert_eq!((&*error.code, &*error.message), (code, message), "{class:?} {wait:?}");
        }
    }
}
