//! One line of the report: what was declared, what was seen, how sure that is, and what follows from it.

use crate::checks::Check;

/// What is known about one feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The check that found it.
    pub check: Check,
    pub feature: &'static str,
    /// What the spec says; `-` where specs say nothing about it.
    pub declared: String,
    pub observed: Observed,
    pub confidence: Confidence,
    pub difference: Difference,
    /// What the upstream did, in its own words where it had any.
    pub evidence: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observed {
    Seen(String),
    /// The answers do not decide it.
    Unclear,
    /// It was not tried.
    Skipped,
}

impl Observed {
    pub fn text(&self) -> &str {
        match self {
            Self::Seen(text) => text,
            Self::Unclear => "unclear",
            Self::Skipped => "skipped",
        }
    }
}

bridge::vocabulary! {
    /// How sure it is that another look would show the same.
    pub enum Confidence {
        /// It was refused, or the answer itself shows it.
        Certain = "certain",
        /// It was so whenever it was tried, and chance would have done otherwise.
        Likely = "likely",
        /// The provider's own list of models says so; nothing was tried.
        Listed = "listed",
        /// A sign, such as a number of tokens or a time. It never changes a spec.
        Weak = "weak",
    }
}

/// Whether what was seen is what was declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    None,
    /// The spec should say this instead.
    Spec(Vec<Change>),
    /// It differs, and specs have no word for it.
    Note(String),
}

/// One value of a spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The keys from the root, with dots: `request.tools.choices`.
    pub path: &'static str,
    pub yaml: String,
}

impl Change {
    pub fn new(path: &'static str, yaml: impl Into<String>) -> Self {
        Self { path, yaml: yaml.into() }
    }

    /// A list of words.
    pub fn list<'a>(path: &'static str, words: impl IntoIterator<Item = &'a str>) -> Self {
        Self { path, yaml: format!("[{}]", words.into_iter().collect::<Vec<_>>().join(", ")) }
    }
}

impl Finding {
    pub(crate) fn seen(
        feature: &'static str,
        declared: impl Into<String>,
        observed: impl Into<String>,
        evidence: impl Into<String>,
    ) -> Self {
        Self {
            // The battery writes the name of the check that ran into all that it found.
            check: Check::Plain,
            feature,
            declared: declared.into(),
            observed: Observed::Seen(observed.into()),
            confidence: Confidence::Certain,
            difference: Difference::None,
            evidence: evidence.into(),
        }
    }

    pub(crate) fn unclear(feature: &'static str, declared: impl Into<String>, evidence: impl Into<String>) -> Self {
        Self { observed: Observed::Unclear, ..Self::seen(feature, declared, "", evidence) }
    }

    pub(crate) fn skipped(feature: &'static str, declared: impl Into<String>, evidence: impl Into<String>) -> Self {
        Self { observed: Observed::Skipped, ..Self::seen(feature, declared, "", evidence) }
    }

    #[must_use]
    pub(crate) fn change(self, change: Change) -> Self {
        self.changes(vec![change])
    }

    #[must_use]
    pub(crate) fn changes(mut self, changes: Vec<Change>) -> Self {
        if !changes.is_empty() {
            self.difference = Difference::Spec(changes);
        }
        self
    }

    #[must_use]
    pub(crate) fn sure(mut self, confidence: Confidence) -> Self {
        self.confidence = confidence;
        self
    }

    #[must_use]
    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.difference = Difference::Note(note.into());
        self
    }
}
