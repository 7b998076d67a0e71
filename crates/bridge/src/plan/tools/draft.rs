//! Schemas that are none by JSON Schema's draft 2020-12, because they are older or were never valid, as such ones: for
//! providers that refuse a whole request because of one of them. What is valid stays as it is, byte for byte: caches of
//! prompts begin with the tools.
//!
//! What is left out never forbids anything: what would forbid more without it goes, too. What a `$ref` leads to is not
//! followed for that. All is read in one sweep, and each value once, however deep they are in each other and however often
//! a name is repeated.

mod fate;
mod keyword;
mod members;
mod neighbours;
mod pattern;
mod plain;

use wire::json::{Cursor, Kind, Raw};

use fate::{Fate, Loss, list};
use keyword::{Shape, is_in_place};
use members::Members;

/// The schema as that draft has it; none where it is one of that draft already.
pub(super) fn mended(schema: Raw<'_>) -> Option<String> {
    match read(&mut Cursor::new(schema)) {
        Fate::Becomes(text, _) => Some(text.into_owned()),
        Fate::Stays | Fate::Goes(_) => None,
    }
}

/// Reads a schema.
fn read(cursor: &mut Cursor<'_>) -> Fate {
    if !is_schema(cursor.kind()) {
        cursor.raw();
        // What is no schema says nothing.
        return Fate::Becomes("{}".into(), Loss::Limits);
    }
    if cursor.kind() == Kind::Bool {
        cursor.raw();
        return Fate::Stays;
    }
    let mut members = Members::read(cursor, keyword);
    neighbours::settle(&mut members);
    members.fate()
}

const fn is_schema(kind: Kind) -> bool {
    matches!(kind, Kind::Object | Kind::Bool)
}

/// Reads what a keyword says.
fn keyword(name: &str, cursor: &mut Cursor<'_>) -> Fate {
    let kind = cursor.kind();
    let fate = match Shape::of(name) {
        None => {
            cursor.raw();
            Fate::Stays
        }
        // What writes every keyword writes those that say nothing as null. A type that is null may be meant as one.
        Some(_) if kind == Kind::Null && name != "type" => {
            cursor.raw();
            Fate::Goes(Loss::Nothing)
        }
        // For each place one.
        Some(_) if name == "items" && kind == Kind::Array => list(cursor, read),
        Some(shape) => value(shape, kind, cursor),
    };
    if is_in_place(name) { fate } else { fate.of_parts() }
}

fn value(shape: Shape, kind: Kind, cursor: &mut Cursor<'_>) -> Fate {
    match shape {
        Shape::Plain(plain) => plain.fate(cursor.raw()),
        Shape::Schema if is_schema(kind) => read(cursor),
        Shape::Negated => negated(cursor),
        Shape::Schemas if kind == Kind::Array => schemas(cursor),
        Shape::Named if kind == Kind::Object => named(cursor, |_, cursor| read(cursor)),
        Shape::ByPattern if kind == Kind::Object => named(cursor, by_pattern),
        Shape::Dependencies if kind == Kind::Object => named(cursor, |_, cursor| dependency(cursor)),
        Shape::Named | Shape::ByPattern | Shape::Dependencies => {
            // As PHP writes an object without members.
            let is_empty = cursor.raw().as_str().trim_matches(['[', ']', ' ', '\n', '\r', '\t']).is_empty();
            Fate::Goes(if is_empty { Loss::Nothing } else { Loss::Places })
        }
        Shape::Schema | Shape::Schemas => {
            cursor.raw();
            Fate::Goes(Loss::Places)
        }
    }
}

fn named<'s>(cursor: &mut Cursor<'s>, fate: impl FnMut(&str, &mut Cursor<'s>) -> Fate) -> Fate {
    Members::read(cursor, fate).fate()
}

/// Schemas, at least one.
fn schemas(cursor: &mut Cursor<'_>) -> Fate {
    let mut count = 0_usize;
    let fate = list(cursor, |cursor| {
        count += 1;
        read(cursor)
    });
    if count > 0 { fate } else { Fate::Goes(Loss::Limits) }
}

/// A schema that must not fit: one that allows more would forbid more here.
fn negated(cursor: &mut Cursor<'_>) -> Fate {
    let fate = read(cursor);
    if fate.loss() > Loss::Nothing { Fate::Goes(Loss::Limits) } else { fate }
}

/// A schema of the properties with such names.
fn by_pattern(name: &str, cursor: &mut Cursor<'_>) -> Fate {
    if pattern::may_be_one(name) {
        return read(cursor).of_parts();
    }
    cursor.raw();
    Fate::Goes(Loss::Places)
}

/// What has to be where a property is: a schema, or the names of others.
fn dependency(cursor: &mut Cursor<'_>) -> Fate {
    if is_schema(cursor.kind()) { read(cursor) } else { plain::names(cursor.raw()) }
}

#[cfg(test)]
mod tests;
