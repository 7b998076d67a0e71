//! The words for what an error of a provider means.

use std::sync::Arc;

use crate::failure::{FailureClass, Unsupported};

vocabulary! {
    /// What an error means, and with that what is done about it.
    pub enum ErrorMeaning {
        /// The provider does not accept the operator's key: another key or provider is asked.
        Auth = "auth",
        /// What was paid for is used up: another key or provider is asked.
        Quota = "quota",
        /// Too many requests for now: the same is asked again in a while.
        RateLimit = "rate_limit",
        /// The provider is too busy: the same is asked again in a while.
        Overloaded = "overloaded",
        /// The prompt is too long: the client is told so, and can compact it.
        ContextOverflow = "context_overflow",
        /// The request is wrong: nobody else is asked.
        InvalidRequest = "invalid_request",
        /// The content is refused: nobody else is asked.
        ContentPolicy = "content_policy",
        /// There is no such model: another provider is asked.
        ModelNotFound = "model_not_found",
        /// The provider failed: the same is asked again in a while.
        Server = "server",
        /// The provider gave up waiting: the same is asked again in a while.
        Timeout = "timeout",
        /// A parameter is not supported, which the error or the rule names: the request is sent again without it.
        Unsupported = "unsupported",
        /// The value of a parameter is not supported: as above, for this request only.
        UnsupportedValue = "unsupported_value",
        /// What the model thought is not taken back, because something before it has changed: the request is sent again
        /// without any of it.
        Thoughts = "thoughts",
        /// The output that is asked for is more than there is, or than there is room for, as the error's numbers say: the
        /// request is sent again with as much as they allow. Beside it the error has a class as any other.
        OutputLimit = "output_limit",
        /// Nothing by itself: the HTTP status decides. Takes back a rule of the spec below.
        ByStatus = "by_status",
    }
}

impl ErrorMeaning {
    /// The class that it decides by itself.
    pub(crate) const fn class(self) -> Option<FailureClass> {
        Some(match self {
            Self::Auth => FailureClass::Auth,
            Self::Quota => FailureClass::Quota,
            Self::RateLimit => FailureClass::RateLimit,
            Self::Overloaded => FailureClass::Overloaded,
            Self::ContextOverflow => FailureClass::ContextOverflow,
            Self::InvalidRequest => FailureClass::InvalidRequest,
            Self::ContentPolicy => FailureClass::ContentPolicy,
            Self::ModelNotFound => FailureClass::ModelNotFound,
            Self::Server => FailureClass::Server,
            Self::Timeout => FailureClass::Timeout,
            Self::Unsupported | Self::UnsupportedValue | Self::Thoughts | Self::OutputLimit | Self::ByStatus => {
                return None;
            }
        })
    }

    /// Whether it is about a parameter, beside which the error has a class as any other.
    pub const fn is_of_a_parameter(self) -> bool {
        matches!(self, Self::Unsupported | Self::UnsupportedValue | Self::Thoughts | Self::OutputLimit)
    }
}

/// How errors of one kind are known, and what they mean. Every condition that is given must hold; of several values,
/// one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorRule {
    /// What such an error means.
    pub means: ErrorMeaning,
    /// HTTP statuses. In an error inside a successful answer: the number that it gives for one.
    pub status: Vec<u16>,
    /// Values of the error's `code`, `type`, `status`, `status_code` or `error_code`; numbers as they are written.
    pub code: Vec<String>,
    /// Words in the error's message; lower case.
    pub words: Vec<String>,
    /// Words in what the error's `details` say, as JSON; lower case.
    pub details: Vec<String>,
    /// Whether the error names a wait, of at most some minutes.
    pub names_wait: bool,
    /// Whether the error comes without a message.
    pub no_message: bool,
    /// What is not supported, where the error itself never names it.
    pub parameter: Option<Unsupported>,
    /// Whether the same provider is asked again; none: as it is usual for what the error means.
    pub retry: Option<bool>,
}

impl ErrorRule {
    /// A rule without a condition, which fits every error.
    pub const fn new(means: ErrorMeaning) -> Self {
        Self {
            means,
            status: Vec::new(),
            code: Vec::new(),
            words: Vec::new(),
            details: Vec::new(),
            names_wait: false,
            no_message: false,
            parameter: None,
            retry: None,
        }
    }

    /// Whether it asks for more than words: words alone are the weakest sign, as anybody may have written them.
    pub(crate) const fn asks_for_fields(&self) -> bool {
        !self.status.is_empty() || !self.code.is_empty() || self.no_message
    }
}

/// All rules for the errors of one provider. The first that fits decides. Shared: a dialect is copied for each of its
/// models.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ErrorRules(Arc<[ErrorRule]>);

impl ErrorRules {
    pub fn iter(&self) -> std::slice::Iter<'_, ErrorRule> {
        self.0.iter()
    }

    /// These rules, and after them those of the spec below that are not among them.
    #[must_use]
    pub fn over(&self, below: &Self) -> Self {
        if below.0.is_empty() {
            return self.clone();
        }
        let inherited = below.iter().filter(|rule| !self.0.contains(rule));
        self.iter().chain(inherited).cloned().collect()
    }
}

impl FromIterator<ErrorRule> for ErrorRules {
    fn from_iter<I: IntoIterator<Item = ErrorRule>>(rules: I) -> Self {
        Self(rules.into_iter().collect())
    }
}

impl<'a> IntoIterator for &'a ErrorRules {
    type Item = &'a ErrorRule;
    type IntoIter = std::slice::Iter<'a, ErrorRule>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
