//! Schemas that are none by JSON Schema's draft 2020-12, because they are older or were never valid, as such ones: for
//! providers that refuse a whole request because of one of them. What is valid stays as it is, byte for byte: caches of
//! prompts begin with the tools.

use std::borrow::Cow;
use std::collections::BTreeSet;

use wire::json::{Kind, ObjectWriter, Raw, Text};

use crate::plan::json;

const TYPES: &[&str] = &["string", "number", "integer", "boolean", "object", "array", "null"];

/// What becomes of a member, or of an element.
enum Fate {
    Stays,
    Goes,
    Becomes(String),
}

/// The schema as that draft has it; none where it is one of that draft already.
pub(super) fn mended(schema: Raw<'_>) -> Option<String> {
    if schema.kind() != Kind::Object {
        // What is no schema says nothing.
        return (schema.kind() != Kind::Bool).then(|| "{}".to_owned());
    }
    let exclusive = [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")];
    let exclusive = exclusive.map(|(key, limit)| (key, limit, excluded(schema, key, limit)));
    let is_tuple = schema.get("items").is_some_and(|items| items.kind() == Kind::Array);
    let fate = |key: &str, value: Raw<'_>| match key {
        // A limit that is excluded stands there.
        _ if exclusive.iter().any(|(_, limit, excluded)| *limit == key && excluded.is_some()) => Fate::Goes,
        "exclusiveMinimum" | "exclusiveMaximum" if value.kind() == Kind::Bool => {
            let found = exclusive.iter().find(|(name, ..)| *name == key).and_then(|(.., excluded)| *excluded);
            found.map_or(Fate::Goes, |limit| Fate::Becomes(limit.as_str().to_owned()))
        }
        "required" => required(value),
        "type" => kinds(value),
        _ => inside(key, value),
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
                (_, Fate::Goes) => {}
                (key, Fate::Stays) => drop(object.raw(key, *value)),
                (key, Fate::Becomes(text)) => drop(object.json(key, text.as_bytes())),
            }
        }
        object.end();
    }))
}

/// A list under `items`: one schema for each place, and one for what comes after them.
fn tuple(schema: Raw<'_>, places: Raw<'_>, fate: &Fate, object: &mut ObjectWriter<'_>) {
    let is_empty = places.elements().next().is_none();
    if !is_empty && schema.get("prefixItems").is_none() {
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

/// Names, each once.
fn required(value: Raw<'_>) -> Fate {
    if value.kind() != Kind::Array {
        return Fate::Goes;
    }
    let mut known = BTreeSet::new();
    kept(value, |name| name.text().is_some_and(|name| known.insert(name.decode())))
}

/// Names of types that there are, each once.
fn kinds(value: Raw<'_>) -> Fate {
    let is_type = |kind: Raw<'_>| kind.text().is_some_and(|name| TYPES.iter().any(|known| name.is(known)));
    if value.kind() != Kind::Array {
        return if is_type(value) { Fate::Stays } else { Fate::Goes };
    }
    let mut known = BTreeSet::new();
    let fate = kept(value, |kind| is_type(kind) && known.insert(kind.text().map(Text::decode)));
    if known.is_empty() { Fate::Goes } else { fate }
}

/// The elements of a list that may stay.
fn kept<'s>(list: Raw<'s>, mut may_stay: impl FnMut(Raw<'s>) -> bool) -> Fate {
    let all = list.elements().count();
    let kept: Vec<&str> = list.elements().filter(|element| may_stay(*element)).map(Raw::as_str).collect();
    if kept.len() == all { Fate::Stays } else { Fate::Becomes(format!("[{}]", kept.join(","))) }
}

/// Schemas inside of a schema.
fn inside(key: &str, value: Raw<'_>) -> Fate {
    match (key, value.kind()) {
        ("properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas", Kind::Object) => {
            named(value)
        }
        ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Kind::Array) => {
            let all: Vec<(Raw<'_>, Option<String>)> =
                value.elements().map(|element| (element, mended(element))).collect();
            if all.iter().all(|(_, mended)| mended.is_none()) {
                return Fate::Stays;
            }
            let texts: Vec<&str> =
                all.iter().map(|(element, mended)| mended.as_deref().unwrap_or(element.as_str())).collect();
            Fate::Becomes(format!("[{}]", texts.join(",")))
        }
        (
            "items"
            | "additionalProperties"
            | "unevaluatedItems"
            | "unevaluatedProperties"
            | "propertyNames"
            | "contains"
            | "if"
            | "then"
            | "else",
            _,
        ) => mended(value).map_or(Fate::Stays, Fate::Becomes),
        // What says less would forbid more here.
        ("not", _) => mended(value).map_or(Fate::Stays, |_| Fate::Goes),
        _ => Fate::Stays,
    }
}

/// Schemas by name.
fn named(value: Raw<'_>) -> Fate {
    let all: Vec<_> = value.fields().map(|(name, schema)| (name.decode(), schema, mended(schema))).collect();
    if all.iter().all(|(.., mended)| mended.is_none()) {
        return Fate::Stays;
    }
    Fate::Becomes(json::text(|out| {
        let mut object = ObjectWriter::new(out);
        for (name, schema, mended) in &all {
            object.json(name, mended.as_deref().unwrap_or(schema.as_str()).as_bytes());
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
        ] {
            assert_eq!(mended(Raw::parse(schema).unwrap()), None, "{schema}");
        }
    }
}
