//! Schemas that are none by JSON Schema's draft 2020-12, because they are older or were never valid, as such ones: for
//! providers that refuse a whole request because of one of them. What is valid stays as it is, byte for byte: caches of
//! prompts begin with the tools.

mod pattern;

use std::borrow::Cow;
use std::collections::BTreeSet;

use wire::json::{Kind, ObjectWriter, Raw, Text};

use crate::plan::json;

const TYPES: &[&str] = &["string", "number", "integer", "boolean", "object", "array", "null"];

/// How that draft is named.
const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// What becomes of a member, or of an element.
enum Fate {
    Stays,
    Goes,
    Becomes(String),
}

impl Fate {
    const fn stays_if(good: bool) -> Self {
        if good { Self::Stays } else { Self::Goes }
    }
}

/// What the value of a keyword is, by the schemas of that draft.
#[derive(Clone, Copy)]
enum Shape {
    Text,
    /// An address without a fragment.
    Id,
    Anchor,
    Regex,
    Bool,
    Number,
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
    Schema,
    /// A schema that must not fit.
    Negated,
    /// Schemas, at least one.
    Schemas,
    /// Schemas by name.
    Named,
    /// Schemas by what names look like.
    ByPattern,
    /// Lists of names, by name.
    NamesByName,
    /// Each of them a schema or a list of names.
    Dependencies,
    /// Yes or no, by name.
    Flags,
}

/// The shape of each keyword that the draft has; any other may say anything.
fn shape(keyword: &str) -> Option<Shape> {
    Some(match keyword {
        "$schema" | "$ref" | "$dynamicRef" | "$recursiveRef" | "$comment" | "title" | "description" | "format"
        | "contentEncoding" | "contentMediaType" => Shape::Text,
        "$id" => Shape::Id,
        "$anchor" | "$dynamicAnchor" | "$recursiveAnchor" => Shape::Anchor,
        "pattern" => Shape::Regex,
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => Shape::Bool,
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => Shape::Number,
        "multipleOf" => Shape::Positive,
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minContains" | "maxContains" | "minProperties"
        | "maxProperties" => Shape::Count,
        "enum" | "examples" => Shape::List,
        "required" => Shape::Names,
        "type" => Shape::Types,
        "items"
        | "contains"
        | "additionalProperties"
        | "propertyNames"
        | "if"
        | "then"
        | "else"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "contentSchema" => Shape::Schema,
        "not" => Shape::Negated,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Shape::Schemas,
        "properties" | "$defs" | "definitions" | "dependentSchemas" => Shape::Named,
        "patternProperties" => Shape::ByPattern,
        "dependentRequired" => Shape::NamesByName,
        "dependencies" => Shape::Dependencies,
        "$vocabulary" => Shape::Flags,
        _ => return None,
    })
}

/// The schema as that draft has it; none where it is one of that draft already.
pub(super) fn mended(schema: Raw<'_>) -> Option<String> {
    if !is_schema(schema) {
        // What is no schema says nothing.
        return Some("{}".to_owned());
    }
    let exclusive = [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")];
    let exclusive = exclusive.map(|(key, limit)| (key, limit, excluded(schema, key, limit)));
    let is_tuple = schema.get("items").is_some_and(|items| items.kind() == Kind::Array);
    let is_opened = schema.get("patternProperties").is_some_and(has_odd_pattern);
    let fate = |key: &str, value: Raw<'_>| match key {
        // A limit that is excluded stands there.
        _ if exclusive.iter().any(|(_, limit, excluded)| *limit == key && excluded.is_some()) => Fate::Goes,
        "exclusiveMinimum" | "exclusiveMaximum" if value.kind() == Kind::Bool => {
            let found = exclusive.iter().find(|(name, ..)| *name == key).and_then(|(.., excluded)| *excluded);
            found.map_or(Fate::Goes, |limit| Fate::Becomes(limit.as_str().to_owned()))
        }
        "items" if is_tuple => elements(value, schema_fate),
        // It would forbid what a pattern allowed that is left out.
        "additionalProperties" | "unevaluatedProperties" if is_opened => Fate::Goes,
        key => shape(key).map_or(Fate::Stays, |shape| fate_of(shape, value)),
    };
    let members: Vec<(Cow<'_, str>, Raw<'_>)> = schema.fields().map(|(key, value)| (key.decode(), value)).collect();
    let fates: Vec<Fate> = members.iter().map(|(key, value)| fate(key, *value)).collect();
    if !is_tuple && fates.iter().all(|fate| matches!(fate, Fate::Stays)) {
        return None;
    }
    Some(json::text(|out| {
        let mut object = ObjectWriter::new(out);
        for ((key, value), fate) in members.iter().zip(&fates) {
            match (&**key, fate) {
                ("items", _) if is_tuple => tuple(schema, *value, fate, &mut object),
                // It is said as what `items` says now.
                ("additionalItems", _) if is_tuple => {}
                // It is of that draft now, whatever it was.
                ("$schema", _) if !value.text().is_some_and(|draft| draft.is(DRAFT)) => {}
                (_, Fate::Goes) => {}
                (key, Fate::Stays) => drop(object.raw(key, *value)),
                (key, Fate::Becomes(text)) => drop(object.json(key, text.as_bytes())),
            }
        }
        object.end();
    }))
}

fn is_schema(value: Raw<'_>) -> bool {
    matches!(value.kind(), Kind::Object | Kind::Bool)
}

/// A list under `items`: one schema for each place, and one for what comes after them.
fn tuple(schema: Raw<'_>, places: Raw<'_>, fate: &Fate, object: &mut ObjectWriter<'_>) {
    let has_places = |list: Raw<'_>| list.elements().next().is_some();
    if has_places(places) && !schema.get("prefixItems").is_some_and(has_places) {
        let text = if let Fate::Becomes(text) = fate { text } else { places.as_str() };
        object.json("prefixItems", text.as_bytes());
    }
    if let Some(more) = schema.get("additionalItems") {
        let text = mended(more).map_or(Cow::Borrowed(more.as_str()), Cow::Owned);
        object.json("items", text.as_bytes());
    }
}

/// The limit that is excluded, where that is said in the older way.
fn excluded<'s>(schema: Raw<'s>, key: &str, limit: &str) -> Option<Raw<'s>> {
    let is_excluded = schema.get(key).is_some_and(|value| value.as_str() == "true");
    schema.get(limit).filter(|limit| is_excluded && limit.kind() == Kind::Number)
}

/// Whether some of the properties are described by a pattern that is none.
fn has_odd_pattern(patterns: Raw<'_>) -> bool {
    patterns.fields().any(|(name, _)| !pattern::may_be_one(&name.decode()))
}

fn fate_of(shape: Shape, value: Raw<'_>) -> Fate {
    let is = |kind: Kind| Fate::stays_if(value.kind() == kind);
    let text = |good: fn(&str) -> bool| Fate::stays_if(value.text().is_some_and(|text| good(&text.decode())));
    let number = |good: fn(f64) -> bool| {
        let number = value.as_str().parse().ok().filter(|_| value.kind() == Kind::Number);
        Fate::stays_if(number.is_some_and(good))
    };
    match shape {
        Shape::Text => is(Kind::String),
        Shape::Id => text(|id| !id.strip_suffix('#').unwrap_or(id).contains('#')),
        Shape::Anchor => text(is_anchor),
        Shape::Regex => text(pattern::may_be_one),
        Shape::Bool => is(Kind::Bool),
        Shape::Number => is(Kind::Number),
        Shape::Positive => number(|number| number > 0.0),
        Shape::Count => number(|number| number >= 0.0 && number.fract() == 0.0),
        Shape::List => is(Kind::Array),
        Shape::Names => names(value),
        Shape::Types => kinds(value),
        Shape::Schema if is_schema(value) => schema_fate(value),
        // What says less would forbid more here.
        Shape::Negated => Fate::stays_if(mended(value).is_none()),
        Shape::Schemas if value.elements().next().is_some() => elements(value, schema_fate),
        Shape::Named => members(value, |_, schema| schema_fate(schema)),
        Shape::ByPattern => {
            members(value, |name, schema| if pattern::may_be_one(name) { schema_fate(schema) } else { Fate::Goes })
        }
        Shape::NamesByName => members(value, |_, list| names(list)),
        Shape::Dependencies => members(value, |_, needed| match needed.kind() {
            Kind::Array => names(needed),
            Kind::Object | Kind::Bool => schema_fate(needed),
            _ => Fate::Goes,
        }),
        Shape::Flags => members(value, |_, flag| Fate::stays_if(flag.kind() == Kind::Bool)),
        Shape::Schema | Shape::Schemas => Fate::Goes,
    }
}

fn is_anchor(name: &str) -> bool {
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(begins) && name.chars().all(|c| begins(c) || c.is_ascii_digit() || matches!(c, '-' | '.'))
}

fn schema_fate(schema: Raw<'_>) -> Fate {
    mended(schema).map_or(Fate::Stays, Fate::Becomes)
}

/// Names, each once.
fn names(value: Raw<'_>) -> Fate {
    if value.kind() != Kind::Array {
        return Fate::Goes;
    }
    let mut known = BTreeSet::new();
    elements(value, |name| Fate::stays_if(name.text().is_some_and(|name| known.insert(name.decode()))))
}

/// Names of types that there are, each once.
fn kinds(value: Raw<'_>) -> Fate {
    let is_type = |kind: Raw<'_>| kind.text().is_some_and(|name| TYPES.iter().any(|known| name.is(known)));
    if value.kind() != Kind::Array {
        return Fate::stays_if(is_type(value));
    }
    let mut known = BTreeSet::new();
    let fate = elements(value, |kind| Fate::stays_if(is_type(kind) && known.insert(kind.text().map(Text::decode))));
    if known.is_empty() { Fate::Goes } else { fate }
}

/// A list, with what becomes of each element.
fn elements<'s>(list: Raw<'s>, fate: impl FnMut(Raw<'s>) -> Fate) -> Fate {
    let fates: Vec<Fate> = list.elements().map(fate).collect();
    if fates.iter().all(|fate| matches!(fate, Fate::Stays)) {
        return Fate::Stays;
    }
    let kept = list.elements().zip(&fates).filter_map(|(element, fate)| match fate {
        Fate::Stays => Some(element.as_str()),
        Fate::Goes => None,
        Fate::Becomes(text) => Some(text),
    });
    Fate::Becomes(format!("[{}]", kept.collect::<Vec<_>>().join(",")))
}

/// An object, with what becomes of each member.
fn members<'s>(object: Raw<'s>, fate: impl Fn(&str, Raw<'s>) -> Fate) -> Fate {
    if object.kind() != Kind::Object {
        return Fate::Goes;
    }
    let all: Vec<_> = object.fields().map(|(name, value)| (name.decode(), value)).collect();
    let fates: Vec<Fate> = all.iter().map(|(name, value)| fate(name, *value)).collect();
    if fates.iter().all(|fate| matches!(fate, Fate::Stays)) {
        return Fate::Stays;
    }
    Fate::Becomes(json::text(|out| {
        let mut object = ObjectWriter::new(out);
        for ((name, value), fate) in all.iter().zip(&fates) {
            match fate {
                Fate::Stays => drop(object.raw(name, *value)),
                Fate::Goes => {}
                Fate::Becomes(text) => drop(object.json(name, text.as_bytes())),
            }
        }
        object.end();
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_schema_of_that_draft_becomes_one() {
        for (schema, expected) in [
            // A list of places, with what comes after them.
            (r#"{"items":[{"type":"string"},{}]}"#, r#"{"prefixItems":[{"type":"string"},{}]}"#),
            (
                r#"{"a":1,"items":[{"type":"any"}, true],"additionalItems":false,"z":{"b" : 1}}"#,
                r#"{"a":1,"prefixItems":[{},true],"items":false,"z":{"b" : 1}}"#,
            ),
            (r#"{"additionalItems":{"type":"x"},"items":[{}]}"#, r#"{"prefixItems":[{}],"items":{}}"#),
            (r#"{"items":[],"additionalItems":{"type":"null"}}"#, r#"{"items":{"type":"null"}}"#),
            (r#"{"items":["string"]}"#, r#"{"prefixItems":[{}]}"#),
            // Limits that are excluded, in the older way.
            (r#"{"minimum":1.50,"exclusiveMinimum":true}"#, r#"{"exclusiveMinimum":1.50}"#),
            (r#"{"exclusiveMaximum":true,"maximum":9,"minimum":1}"#, r#"{"exclusiveMaximum":9,"minimum":1}"#),
            (r#"{"minimum":1,"exclusiveMinimum":false}"#, r#"{"minimum":1}"#),
            (r#"{"exclusiveMaximum":true}"#, "{}"),
            // Types that there are not.
            (r#"{"type":"any","description":"d"}"#, r#"{"description":"d"}"#),
            (r#"{"type":["string","file","string", "null"]}"#, r#"{"type":["string","null"]}"#),
            (r#"{"type":["file"]}"#, "{}"),
            (r#"{"type":{"type":"string"}}"#, "{}"),
            // Names that are required are a list of names.
            (r#"{"properties":{"a":{"type":"string","required":true}}}"#, r#"{"properties":{"a":{"type":"string"}}}"#),
            (r#"{"required":["a","b","\u0061",1]}"#, r#"{"required":["a","b"]}"#),
            (r#"{"required":[1]}"#, r#"{"required":[]}"#),
            // Wherever schemas are.
            (r#"{"$defs":{"A":{"anyOf":[{"type":"x"},{}]}}}"#, r#"{"$defs":{"A":{"anyOf":[{},{}]}}}"#),
            (
                r#"{"additionalProperties":{"contains":{"if":{"propertyNames":{"type":"x"}}}}}"#,
                r#"{"additionalProperties":{"contains":{"if":{"propertyNames":{}}}}}"#,
            ),
            (r#"{"not":{"type":"x"},"if":{"type":"string"}}"#, r#"{"if":{"type":"string"}}"#),
            (r#"{"items":{"patternProperties":{"^a":null}}}"#, r#"{"items":{"patternProperties":{"^a":{}}}}"#),
            // Values that a keyword cannot have.
            (r#"{"description":null, "type": "string"}"#, r#"{"type":"string"}"#),
            (r#"{"title":1,"format":[],"$comment":{},"contentEncoding":true,"$ref":null}"#, "{}"),
            (
                r#"{"$id":"a#b","$anchor":"1","$dynamicAnchor":"a b","$vocabulary":{"a":1,"b":true}}"#,
                r#"{"$vocabulary":{"b":true}}"#,
            ),
            (r#"{"uniqueItems":null,"deprecated":"yes","readOnly":1,"writeOnly":[]}"#, "{}"),
            (r#"{"minimum":"1","maximum":null,"exclusiveMaximum":{},"multipleOf":0,"minItems":-1}"#, "{}"),
            (r#"{"minLength":null,"maxLength":1.5,"maxProperties":"2","minContains":1e400}"#, "{}"),
            (r#"{"enum":null,"examples":"x","required":null,"type":null}"#, "{}"),
            (r#"{"items":null,"if":null,"contains":1,"not":"x","additionalProperties":[]}"#, "{}"),
            (r#"{"anyOf":null,"allOf":[],"oneOf":{},"prefixItems":""}"#, "{}"),
            (r#"{"anyOf":[null,{"title":null}]}"#, r#"{"anyOf":[{},{}]}"#),
            (r#"{"properties":null,"$defs":[],"patternProperties":1,"dependentSchemas":true}"#, "{}"),
            (r#"{"dependentRequired":{"a":["b","b"],"c":null}}"#, r#"{"dependentRequired":{"a":["b"]}}"#),
            (r#"{"dependencies":{"a":[1],"b":{"title":0},"c":"d"}}"#, r#"{"dependencies":{"a":[],"b":{}}}"#),
            (r#"{"prefixItems":[],"items":[{"type":"null"}]}"#, r#"{"prefixItems":[{"type":"null"}]}"#),
            // Patterns of other languages; what they would have allowed is not forbidden.
            (r#"{"pattern":"^(?i)x\\Z","items":{"pattern":"*"}}"#, r#"{"items":{}}"#),
            (
                r#"{"patternProperties":{"\\Aa":{},"^b":{"title":null}},"additionalProperties":false}"#,
                r#"{"patternProperties":{"^b":{}}}"#,
            ),
            // What is mended is of the newer draft.
            (r#"{"$schema":"http://json-schema.org/draft-07/schema#","items":[{}]}"#, r#"{"prefixItems":[{}]}"#),
            (
                r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","title":null}"#,
                r#"{"$schema":"https://json-schema.org/draft/2020-12/schema"}"#,
            ),
        ] {
            let mended_once = mended(Raw::parse(schema).unwrap());
            assert_eq!(mended_once.as_deref(), Some(expected), "{schema}");
            assert_eq!(mended(Raw::parse(expected).unwrap()), None, "{expected}");
        }
    }

    #[test]
    fn what_is_one_stays_as_it_is() {
        for schema in [
            "{}",
            "true",
            r#"{ "type" : ["string", "null"], "required":[], "exclusiveMinimum": 1, "minimum": 0 }"#,
            r#"{"items":{"type":"string"},"prefixItems":[{"type":"integer"}],"additionalItems":false}"#,
            // Properties with the names of keywords, and values that are no schemas.
            r#"{"properties":{"type":{},"required":{"type":"boolean"},"items":{"const":[1]},"exclusiveMinimum":true}}"#,
            r#"{"default":{"type":"any","required":true},"enum":[{"items":[]}],"const":{"type":"x"},"examples":[{"type":"x"}]}"#,
            r#"{"type":"\u0073tring"}"#,
            r#"{"minLength":2.0,"maxLength":0,"minItems":-0,"multipleOf":1e-3,"enum":[],"const":null,"default":null}"#,
            r##"{"$id":"https://a.b/c#","$anchor":"_a-1.b","$ref":"#/$defs/A B","$schema":"http://json-schema.org/draft-07/schema#"}"##,
            r#"{"properties":{"description":{"type":"null"},"pattern":true},"required":["enum"],"pattern":"^[^\\p{Cc}]+$"}"#,
            // Keywords of others.
            r#"{"nullable":null,"example":null,"id":5,"x-order":-1,"additionalItems":null}"#,
        ] {
            assert_eq!(mended(Raw::parse(schema).unwrap()), None, "{schema}");
        }
    }
}
