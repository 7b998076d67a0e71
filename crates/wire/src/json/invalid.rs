//! What is wrong with a value, and where. The path grows outwards while the error travels up.

use super::{InvalidCode, Kind, Raw};

/// A value that does not fit, with the path to it: `input[0].content[1].type`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    pub path: String,
    pub problem: Problem,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    Type {
        expected: &'static str,
        found: &'static str,
    },
    Value {
        found: String,
        supported: &'static [&'static str],
    },
    Missing,
    /// A rule broken by a value of the right type; `code` is OpenAI's name for the rule.
    Rule {
        code: InvalidCode,
        message: String,
    },
    /// The same, in a sentence of its own.
    Sentence {
        code: InvalidCode,
        message: String,
    },
}

impl Invalid {
    pub fn new(problem: Problem) -> Self {
        Self { path: String::new(), problem }
    }

    /// No integer, or one that no machine counts to.
    pub fn integer(found: Raw<'_>) -> Self {
        if is_integer(found.as_str()) { Self::beyond(found.as_str()) } else { Self::expected("an integer", found) }
    }

    /// An integer that does not fit into 64 bits.
    pub fn beyond(digits: &str) -> Self {
        let (code, bound, limit) = if digits.starts_with('-') {
            (InvalidCode::IntegerBelowMinValue, "below minimum value. Expected a value >=", i64::MIN)
        } else {
            (InvalidCode::IntegerAboveMaxValue, "above maximum value. Expected a value <=", i64::MAX)
        };
        Self::rule(code, format!("integer {bound} {limit}, but got {} instead.", clip(digits)))
    }

    pub fn expected(expected: &'static str, found: Raw<'_>) -> Self {
        let found = match found.kind() {
            Kind::Number if is_integer(found.as_str()) => "an integer",
            Kind::Number => "a decimal",
            kind => kind.article(),
        };
        Self::new(Problem::Type { expected, found })
    }

    pub fn value(found: &str, supported: &'static [&'static str]) -> Self {
        Self::new(Problem::Value { found: clip(found), supported })
    }

    pub fn missing() -> Self {
        Self::new(Problem::Missing)
    }

    pub fn rule(code: InvalidCode, message: impl Into<String>) -> Self {
        Self::new(Problem::Rule { code, message: message.into() })
    }

    pub fn sentence(code: InvalidCode, message: impl Into<String>) -> Self {
        Self::new(Problem::Sentence { code, message: message.into() })
    }

    /// The same, one object further out.
    #[must_use]
    pub fn at(mut self, field: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{}{dot}{}", clip(field), self.path);
        self
    }

    /// The same, one array further out.
    #[must_use]
    pub fn at_index(mut self, index: usize) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("[{index}]{dot}{}", self.path);
        self
    }

    /// Which rule it breaks.
    pub const fn code(&self) -> InvalidCode {
        match &self.problem {
            Problem::Type { .. } => InvalidCode::InvalidType,
            Problem::Value { .. } => InvalidCode::InvalidValue,
            Problem::Missing => InvalidCode::MissingRequiredParameter,
            Problem::Rule { code, .. } | Problem::Sentence { code, .. } => *code,
        }
    }
}

impl std::fmt::Display for Invalid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = &self.path;
        match &self.problem {
            Problem::Type { expected, found } => {
                write!(f, "Invalid type for '{path}': expected {expected}, but got {found} instead.")
            }
            Problem::Value { found, supported } => {
                write!(f, "Invalid value: '{found}'. Supported values are: {}.", and_list(supported))
            }
            Problem::Missing => write!(f, "Missing required parameter: '{path}'."),
            Problem::Rule { message, .. } => write!(f, "Invalid '{path}': {message}"),
            Problem::Sentence { message, .. } => f.write_str(message),
        }
    }
}

impl std::error::Error for Invalid {}

/// Whether a number is written without a point or an exponent.
pub(super) fn is_integer(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn and_list(names: &[&str]) -> String {
    match names {
        [] => "none".to_owned(),
        [one] => format!("'{one}'"),
        [head @ .., last] => format!("'{}', and '{last}'", head.join("', '")),
    }
}

/// A client's text inside our message: enough to recognise it, not enough to fill a log.
fn clip(text: &str) -> String {
    match text.char_indices().nth(64) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
