//! Values of keywords that have no schemas in them.

use std::collections::BTreeSet;

use wire::json::{Cursor, Kind, Raw, Text};

use super::fate::{Fate, Loss, list};
use super::members::Members;
use super::pattern;

const TYPES: &[&str] = &["string", "number", "integer", "boolean", "object", "array", "null"];

#[derive(Debug, Clone, Copy)]
pub(super) enum Plain {
    /// Text that forbids nothing.
    Text,
    /// The address of another schema.
    Reference,
    /// An address without a fragment.
    Id,
    Anchor,
    Regex,
    Bool,
    Number,
    /// A number, or in older drafts whether another one is excluded.
    Exclusive,
    /// A number above zero.
    Positive,
    /// An integer that is not below zero.
    Count,
    /// Any values.
    List,
    /// Names, each once.
    Names,
    /// A type, or several.
    Types,
    /// Lists of names, by name.
    NamesByName,
    /// Yes or no, by name.
    Flags,
}

impl Plain {
    pub(super) fn fate(self, value: Raw<'_>) -> Fate {
        let kind = value.kind();
        let text = |good: fn(&str) -> bool| value.text().is_some_and(|text| good(&text.decode()));
        let number = |good: fn(f64) -> bool| kind == Kind::Number && value.as_str().parse().is_ok_and(good);
        let is_good = match self {
            Self::Text | Self::Reference => kind == Kind::String,
            Self::Id => text(|id| !id.strip_suffix('#').unwrap_or(id).contains('#')),
            Self::Anchor => text(is_anchor),
            Self::Regex => text(pattern::may_be_one),
            Self::Bool => kind == Kind::Bool,
            Self::Number => kind == Kind::Number,
            Self::Exclusive => matches!(kind, Kind::Number | Kind::Bool),
            Self::Positive => number(|number| number > 0.0),
            Self::Count => number(|number| number >= 0.0 && number.fract() == 0.0),
            Self::List => kind == Kind::Array,
            Self::Names => return names(value),
            Self::Types => return types(value),
            Self::NamesByName => return by_name(value, names),
            Self::Flags => {
                return by_name(value, |flag| Fate::stays_if(flag.kind() == Kind::Bool, Loss::Nothing));
            }
        };
        Fate::stays_if(is_good, self.loss())
    }

    /// What is lost without it.
    const fn loss(self) -> Loss {
        match self {
            Self::Text | Self::Id | Self::Anchor | Self::Flags => Loss::Nothing,
            Self::Reference => Loss::Places,
            _ => Loss::Limits,
        }
    }
}

fn is_anchor(name: &str) -> bool {
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(begins) && name.chars().all(|c| begins(c) || c.is_ascii_digit() || matches!(c, '-' | '.'))
}

/// Names, each once.
pub(super) fn names(value: Raw<'_>) -> Fate {
    if value.kind() != Kind::Array {
        return Fate::Goes(Loss::Limits);
    }
    let mut known = BTreeSet::new();
    list(&mut Cursor::new(value), |cursor| match cursor.raw().text() {
        Some(name) => Fate::stays_if(known.insert(name.decode()), Loss::Nothing),
        None => Fate::Goes(Loss::Limits),
    })
}

/// Names of types that there are, each once. One that there is not may have meant any: the others alone would forbid it.
fn types(value: Raw<'_>) -> Fate {
    let is_type = |kind: Raw<'_>| kind.text().is_some_and(|name| TYPES.iter().any(|known| name.is(known)));
    if value.kind() != Kind::Array {
        return Fate::stays_if(is_type(value), Loss::Limits);
    }
    let mut known = BTreeSet::new();
    if value.elements().next().is_none() || !value.elements().all(is_type) {
        return Fate::Goes(Loss::Limits);
    }
    list(&mut Cursor::new(value), |cursor| {
        let name = cursor.raw().text().map(Text::decode);
        Fate::stays_if(known.insert(name), Loss::Nothing)
    })
}

fn by_name(value: Raw<'_>, fate: fn(Raw<'_>) -> Fate) -> Fate {
    if value.kind() != Kind::Object {
        return Fate::Goes(Loss::Limits);
    }
    Members::read(&mut Cursor::new(value), |_, cursor| fate(cursor.raw())).fate()
}
