//! JSON Schema within a budget: whether a document fits a schema that a client wrote, in bounded steps and memory.
//!
//! Why this is not a crate from elsewhere: schema and document both come from outside, and a schema of 100 bytes that
//! refers to itself twice makes any evaluator that follows each path by itself do 2^depth times the work. Of the
//! crates that evaluate JSON Schema none can be told how many steps it may take, and none remembers that it has seen
//! "this schema, at this place" before; some build a tree of every failed branch on top. Here
//!
//! - what a reference leads to is looked at once per place of the document, so recursive schemas cost schemas × places;
//! - every step is counted, strings by their length, and so are the remembered results: they are the memory;
//! - evaluation nests [`MAX_DEPTH`] deep at most, and a reference that leads to itself at the same place ends it;
//! - patterns run on an engine without backtracking, in programs of a limited size;
//! - one misfit is kept, the one deepest in the document, never a tree.
//!
//! Draft 2020-12, and of the drafts before it what generators still write (`definitions`, lists under `items`,
//! `dependencies`). `format` is an annotation. References stay within the document. What cannot be decided (a pattern
//! with look-around) is not guessed: the verdict says so. Equality with the `jsonschema` crate is tested.
//!
//! No I/O, no clock.

#![forbid(unsafe_code)]

mod compile;
mod decimal;
mod document;
mod evaluate;
mod keyword;
mod misfit;
mod pattern;
mod unevaluated;

use wire::json::Raw;

use compile::Compiler;
use document::Document;
use evaluate::{Evaluation, Stop};
use keyword::Keywords;

pub use evaluate::MAX_DEPTH;

/// More than any model writes; the nodes take about 60 bytes each.
const MAX_NODES: usize = 1 << 18;

/// A schema, compiled.
#[derive(Debug)]
pub struct Schema {
    /// The first is the root's.
    schemas: Vec<Keywords>,
    /// Where references lead to.
    targets: Vec<usize>,
    /// Which schemas may be come to in more ways than one.
    shared: Vec<bool>,
    /// What is not checked, and why.
    unchecked: Vec<String>,
    /// Some keyword fits because another does not: what is not checked may then be the reason for a misfit.
    negates: bool,
}

/// The schema cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub struct Unusable(pub String);

/// Whether a document fits.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Fits,
    /// Where in the document, as a JSON pointer, and why.
    Misfit {
        pointer: String,
        message: String,
    },
    /// It cannot be said: why.
    Unknown(String),
    /// More steps than were given.
    Spent,
}

impl Schema {
    /// Linear in the schema's size.
    pub fn compile(schema: Raw<'_>) -> Result<Self, Unusable> {
        let document = Document::read(schema, MAX_NODES).map_err(|_| Unusable("it is too large".to_owned()))?;
        Compiler::new(&document).compile().map_err(Unusable)
    }

    /// Looks at the document for at most so many steps. A step is a keyword at a place, or some bytes of a string.
    pub fn check(&self, document: Raw<'_>, steps: u64) -> Verdict {
        let Ok(document) = Document::read(document, MAX_NODES) else {
            return Verdict::Unknown("it is too large to be checked".to_owned());
        };
        let unchecked = || Verdict::Unknown(self.unchecked.join("; "));
        match Evaluation::new(self, &document, steps).root() {
            Ok(Some(_)) if self.negates && !self.unchecked.is_empty() => unchecked(),
            Ok(Some(misfit)) => {
                let message = misfit.message(self, &document);
                Verdict::Misfit { pointer: misfit::clip(&document.pointer(misfit.node)), message }
            }
            Ok(None) if !self.unchecked.is_empty() => unchecked(),
            Ok(None) => Verdict::Fits,
            Err(Stop::Spent) => Verdict::Spent,
            Err(Stop::TooDeep) => Verdict::Unknown("the schema nests too deep".to_owned()),
            Err(Stop::Endless) => Verdict::Unknown("a reference in the schema leads to itself".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests;
