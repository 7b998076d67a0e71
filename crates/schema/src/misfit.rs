//! Why a document does not fit: one place and one keyword, in words.

use crate::Schema;
use crate::document::{Document, Node, NodeId};
use crate::keyword::{Bound, Counted, Keyword, Side};

/// A keyword that does not hold at a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Misfit {
    pub(crate) node: NodeId,
    pub(crate) schema: usize,
    /// The keyword's place in its schema.
    pub(crate) place: usize,
}

/// What is shown to people: more helps nobody.
const MAX_MESSAGE: usize = 400;
const MAX_VALUE: usize = 60;

impl Misfit {
    pub(crate) fn message(self, schema: &Schema, document: &Document<'_>) -> String {
        let keyword = schema.schemas.get(self.schema).and_then(|schema| schema.0.get(self.place));
        clip(&keyword.map(|keyword| self.words(keyword, document)).unwrap_or_default())
    }

    fn words(self, keyword: &Keyword, document: &Document<'_>) -> String {
        let value = shown(document, self.node);
        match keyword {
            Keyword::Never => "nothing is allowed here".to_owned(),
            Keyword::Types(types) => format!("{value} is not of type {}", types.names()),
            Keyword::Values(_, listed) => format!("{value} is not one of {}", cut(listed, 200)),
            Keyword::Bound(bound, limit) => {
                let words = match bound {
                    Bound::Minimum => "less than the minimum",
                    Bound::Maximum => "more than the maximum",
                    Bound::ExclusiveMinimum => "not more than the exclusive minimum",
                    Bound::ExclusiveMaximum => "not less than the exclusive maximum",
                };
                format!("{value} is {words} ({limit})")
            }
            Keyword::MultipleOf(_) => format!("{value} is not a multiple of what 'multipleOf' says"),
            Keyword::Count(what, side, limit) => {
                let what = match what {
                    Counted::Characters => "characters",
                    Counted::Elements => "items",
                    Counted::Members => "properties",
                };
                let side = if *side == Side::Least { "fewer" } else { "more" };
                format!("{value} has {side} than {limit} {what}")
            }
            Keyword::Pattern(_) => format!("{value} does not match the pattern"),
            Keyword::UniqueItems => "two of the items are the same".to_owned(),
            Keyword::Required(names) => {
                let missing = names.iter().find(|name| document.member(self.node, name).is_none());
                format!("the property '{}' is missing", cut(missing.map_or("", String::as_str), MAX_VALUE))
            }
            Keyword::DependentRequired(_) => "a property that another one demands is missing".to_owned(),
            Keyword::Contains { min, max, .. } if *max == u64::MAX => {
                format!("fewer than {min} items fit 'contains'")
            }
            Keyword::Contains { .. } => "too few or too many items fit 'contains'".to_owned(),
            Keyword::AnyOf(options) => format!("{value} fits none of the {} schemas of 'anyOf'", options.len()),
            Keyword::OneOf(options) => {
                format!("{value} does not fit exactly one of the {} schemas of 'oneOf'", options.len())
            }
            Keyword::Not(_) => format!("{value} fits what 'not' forbids"),
            _ => format!("{value} does not fit"),
        }
    }
}

/// A value in short.
fn shown(document: &Document<'_>, node: NodeId) -> String {
    match document.node(node) {
        Node::Null => "null".to_owned(),
        Node::Bool(value) => value.to_string(),
        Node::Number(text) => cut(text, MAX_VALUE),
        Node::String(text) => format!("\"{}\"", cut(text, MAX_VALUE)),
        Node::Array(_) => format!("a list of {}", document.elements(node).len()),
        Node::Object(_) => "an object".to_owned(),
    }
}

fn cut(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

pub(crate) fn clip(text: &str) -> String {
    cut(text, MAX_MESSAGE)
}
