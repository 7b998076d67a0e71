//! What a schema demands, ready to be looked at.

use std::collections::{HashMap, HashSet};

use crate::decimal::Decimal;
use crate::document::Node;
use crate::pattern::Pattern;

/// The number of a schema.
pub(crate) type SchemaId = usize;

/// One schema: all of these must hold, the cheap and telling ones first.
#[derive(Debug, Default)]
pub(crate) struct Keywords(pub(crate) Vec<Keyword>);

#[derive(Debug)]
pub(crate) enum Keyword {
    /// The schema `false`.
    Never,
    Types(Types),
    /// `enum` and `const`: the values, as canonical texts, and as they were written.
    Values(HashSet<String>, String),
    Bound(Bound, Decimal),
    MultipleOf(Decimal),
    /// How many characters, elements, members.
    Count(Counted, Side, u64),
    Pattern(Pattern),
    UniqueItems,
    Required(Vec<String>),
    DependentRequired(Vec<(String, Vec<String>)>),
    DependentSchemas(Vec<(String, SchemaId)>),
    PropertyNames(SchemaId),
    Properties(Box<Properties>),
    Items {
        prefix: Vec<SchemaId>,
        rest: Option<SchemaId>,
    },
    Contains {
        schema: SchemaId,
        min: u64,
        max: u64,
    },
    /// A place in the list of targets.
    Reference(usize),
    AllOf(Vec<SchemaId>),
    AnyOf(Vec<SchemaId>),
    OneOf(Vec<SchemaId>),
    Not(SchemaId),
    If {
        test: SchemaId,
        then: Option<SchemaId>,
        otherwise: Option<SchemaId>,
    },
    UnevaluatedItems(SchemaId),
    UnevaluatedProperties(SchemaId),
}

/// `properties`, `patternProperties`, `additionalProperties`.
#[derive(Debug, Default)]
pub(crate) struct Properties {
    pub(crate) named: HashMap<String, SchemaId>,
    pub(crate) patterns: Vec<(Pattern, SchemaId)>,
    pub(crate) rest: Option<SchemaId>,
    /// A pattern could not be compiled: any name may be one that it means.
    pub(crate) open: bool,
}

/// A set of types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Types(u8);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    Minimum,
    Maximum,
    ExclusiveMinimum,
    ExclusiveMaximum,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    Characters,
    Elements,
    Members,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Least,
    Most,
}

const NAMES: [&str; 7] = ["null", "boolean", "object", "array", "number", "string", "integer"];
const NUMBER: u8 = 1 << 4;
const INTEGER: u8 = 1 << 6;

impl Types {
    pub(crate) const NONE: Self = Self(0);

    pub(crate) fn with(self, name: &str) -> Option<Self> {
        NAMES.iter().position(|known| *known == name).map(|bit| Self(self.0 | 1 << bit))
    }

    pub(crate) fn hold(self, node: &Node<'_>) -> bool {
        let bit = match node {
            Node::Null => 1,
            Node::Bool(_) => 1 << 1,
            Node::Object(_) => 1 << 2,
            Node::Array(_) => 1 << 3,
            Node::Number(text) => {
                return self.0 & NUMBER != 0 || self.0 & INTEGER != 0 && Decimal::parse(text).is_integer();
            }
            Node::String(_) => 1 << 5,
        };
        self.0 & bit != 0
    }

    pub(crate) fn names(self) -> String {
        let names = NAMES.iter().enumerate().filter(|(bit, _)| self.0 & (1 << bit) != 0);
        names.map(|(_, name)| *name).collect::<Vec<_>>().join(" or ")
    }
}

impl Keyword {
    /// In which order they are looked at. What the others have evaluated must be known before the last two.
    pub(crate) const fn rank(&self) -> u8 {
        match self {
            Self::Never | Self::Types(_) => 0,
            Self::Required(_) => 1,
            Self::UnevaluatedItems(_) | Self::UnevaluatedProperties(_) => 3,
            _ => 2,
        }
    }
}
