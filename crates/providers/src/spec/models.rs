//! The `models` list of a spec: names, and entries `{match: PATTERN, …}` with what differs for those models.

use super::Wire;
use super::glob;
use super::layer::{Places, Setting, Source, Variables};
use super::terms::Terms;
use crate::yaml::Field;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Models {
    /// What is listed by name.
    pub(crate) names: Vec<String>,
    pub(crate) entries: Vec<Entry>,
}

/// What differs for some models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) patterns: Vec<String>,
    pub(super) terms: Terms,
    pub(crate) places: Places,
}

impl Entry {
    /// Which API these models are asked by, if it says so.
    pub(super) const fn wire(&self) -> Option<Wire> {
        self.terms.wire
    }

    pub(super) fn fits(&self, model: &str) -> bool {
        self.patterns.iter().any(|pattern| glob::matches(pattern, model))
    }
}

impl Entry {
    /// Whether it names this model in full.
    pub(crate) fn names(&self, model: &str) -> bool {
        self.patterns.iter().any(|pattern| pattern == model)
    }

    pub(crate) fn settings(&self, variables: Variables) -> Vec<Setting> {
        let mut out = Vec::new();
        self.terms.settings(&|_| Source { places: Some(&self.places), variables }, &mut out);
        out
    }
}

impl Models {
    pub(crate) fn read(field: &Field<'_>) -> Option<Self> {
        let mut models = Self::default();
        for element in field.list()? {
            if element.is_mapping() {
                models.entries.extend(entry(&element));
            } else {
                models.names.extend(element.text());
            }
        }
        Some(models)
    }

    /// The list of names: those given here replace what was there before; a model that an entry names in full
    /// is listed, too.
    pub(super) fn list(&self, names: &mut Vec<String>) {
        if !self.names.is_empty() {
            names.clone_from(&self.names);
        }
        let exact = self.entries.iter().flat_map(|entry| &entry.patterns).filter(|pattern| glob::is_exact(pattern));
        for name in exact {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
}

fn entry(field: &Field<'_>) -> Option<Entry> {
    let places = Places::of(field);
    let mut section = field.clone().section()?;
    let patterns =
        section.read("match", |field| if field.is_list() { field.texts() } else { Some(vec![field.text()?]) });
    let terms = Terms::pick(&mut section);
    if patterns.as_ref().is_none_or(Vec::is_empty) {
        let help = "a name, a pattern such as `glm-*v*`, or a list of them".to_owned();
        section.problem("an entry for models needs `match`", Some(help));
    }
    section.finish();
    Some(Entry { patterns: patterns?, terms, places })
}
