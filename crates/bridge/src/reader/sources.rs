//! The addresses that an answer may cite: those that its tools have shown.

use std::collections::BTreeMap;

/// A page that was found, or opened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Source {
    pub url: String,
    /// Empty where it is not known.
    pub title: String,
}

/// Addresses, with their titles.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sources(BTreeMap<String, String>);

impl Sources {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first title that is not empty counts.
    pub fn add(&mut self, source: &Source) {
        let title = self.0.entry(source.url.clone()).or_default();
        if title.is_empty() {
            title.clone_from(&source.title);
        }
    }

    /// The title of an address that was shown.
    pub fn title(&self, url: &str) -> Option<&str> {
        self.0.get(url).map(String::as_str)
    }
}
