//! The part of JSON Schema that such a provider can promise to keep to. What only narrows a value is put into words, and
//! is checked by us; what cannot be said at all is asked for in an instruction.

use std::fmt::Write;

use wire::chat::Json;
use wire::json::{Kind, ObjectWriter, Raw, write_text};

use crate::plan::content::clean;
use crate::plan::json;

/// Keywords that narrow a value: the model is told of them.
const TOLD: &[&str] = &[
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];

/// Keywords without which a schema means something else.
const IMPOSSIBLE: &[&str] = &[
    "not",
    "patternProperties",
    "if",
    "then",
    "else",
    "contains",
    "dependentSchemas",
    "dependentRequired",
    "propertyNames",
    "unevaluatedProperties",
    "unevaluatedItems",
    "$dynamicRef",
    "$recursiveRef",
];

const FORMATS: &[&str] = &["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

/// `format` in `output_config`: the member and its JSON. Only of what [`can_be_promised`].
pub(super) fn of(schema: Raw<'_>) -> (String, String) {
    let format = json::text(|out| {
        let mut format = ObjectWriter::new(out);
        format.text("type", "json_schema");
        write(schema, format.key("schema"));
        format.end();
    });
    ("format".to_owned(), clean(&format).into_owned())
}

/// Whether every document that fits what is sent also fits this schema, and there are such documents.
pub(super) fn can_be_promised(schema: Raw<'_>) -> bool {
    schema.kind() == Kind::Object && is_possible(schema)
}

/// Whether it says nothing beyond that part: then a tool can be strict.
pub(super) fn is_within(schema: &Json<'_>) -> bool {
    let mut text = Vec::new();
    schema.write(&mut text);
    let Some(schema) = str::from_utf8(&text).ok().and_then(|text| Raw::parse(text).ok()) else { return false };
    can_be_promised(schema) && is_plain(schema)
}

/// Whether nothing would have to be put into other words, or be closed.
fn is_plain(schema: Raw<'_>) -> bool {
    let is_object = schema.get("type").is_some_and(names_object) || has_properties(schema);
    let is_closed = !is_object || schema.get("additionalProperties").is_some();
    is_closed
        && schema.fields().all(|(key, value)| match &*key.decode() {
            "oneOf" => false,
            "format" => is_format(value),
            "properties" | "$defs" | "definitions" => value.fields().all(|(_, inner)| is_plain(inner)),
            "anyOf" | "allOf" | "prefixItems" => value.elements().all(is_plain),
            "items" => is_plain(value),
            key => !TOLD.contains(&key),
        })
}

fn is_possible(schema: Raw<'_>) -> bool {
    if schema.kind() != Kind::Object {
        return schema.as_str() == "true";
    }
    let is_object = schema.get("type").is_some_and(names_object);
    // Closed, it would have nothing in it, which was hardly meant unless it is said.
    if is_object && !has_properties(schema) && schema.get("additionalProperties").is_none() {
        return false;
    }
    schema.fields().all(|(key, value)| match &*key.decode() {
        name if IMPOSSIBLE.contains(&name) => false,
        "additionalProperties" => value.as_str() == "false",
        // Only what is inside of the document itself.
        "$ref" => value.text().is_some_and(|target| target.decode().starts_with('#')),
        "properties" | "$defs" | "definitions" => value.fields().all(|(_, inner)| is_possible(inner)),
        "anyOf" | "oneOf" | "allOf" | "prefixItems" => value.elements().all(is_possible),
        "items" => is_possible(value),
        _ => true,
    })
}

fn names_object(kind: Raw<'_>) -> bool {
    let is = |kind: Raw<'_>| kind.as_str() == "\"object\"";
    is(kind) || kind.elements().any(is)
}

fn has_properties(schema: Raw<'_>) -> bool {
    schema.get("properties").is_some_and(|properties| properties.fields().next().is_some())
}

fn write(schema: Raw<'_>, out: &mut Vec<u8>) {
    if schema.kind() != Kind::Object {
        return out.extend_from_slice(schema.as_str().as_bytes());
    }
    let mut told = String::new();
    for (key, value) in schema.fields() {
        let key = key.decode();
        if TOLD.contains(&&*key) || &*key == "format" && !is_format(value) {
            let _ = write!(told, "{}{key}: {}", if told.is_empty() { "" } else { ", " }, value.as_str());
        }
    }
    let closes = schema.get("type").is_some_and(names_object) || has_properties(schema);
    let mut object = ObjectWriter::new(out);
    for (key, value) in schema.fields() {
        match &*key.decode() {
            key if TOLD.contains(&key) => {}
            "format" if !is_format(value) => {}
            "description" if !told.is_empty() => {
                let words = value.text().map(|text| text.decode().into_owned()).unwrap_or_default();
                write_text(object.key("description"), format!("{words} ({told})").trim_start());
                told.clear();
            }
            key @ ("properties" | "$defs" | "definitions") if value.kind() == Kind::Object => {
                let mut named = ObjectWriter::new(object.key(key));
                for (name, inner) in value.fields() {
                    write(inner, named.key(&name.decode()));
                }
                named.end();
            }
            // The first that fits is one that fits.
            "oneOf" => write_all(value, object.key("anyOf")),
            key @ ("anyOf" | "allOf" | "prefixItems") => write_all(value, object.key(key)),
            "items" => write(value, object.key("items")),
            key => {
                object.raw(key, value);
            }
        }
    }
    if !told.is_empty() {
        object.text("description", &told);
    }
    if closes && schema.get("additionalProperties").is_none() {
        object.bool("additionalProperties", false);
    }
    object.end();
}

fn write_all(schemas: Raw<'_>, out: &mut Vec<u8>) {
    out.push(b'[');
    for (i, schema) in schemas.elements().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write(schema, out);
    }
    out.push(b']');
}

fn is_format(value: Raw<'_>) -> bool {
    value.text().is_some_and(|name| FORMATS.iter().any(|known| name.is(known)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_become_what_can_be_promised() {
        for (schema, expected) in [
            (
                r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}"#,
                r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}"#,
            ),
            (
                r#"{"type":"integer","minimum":1,"maximum":9}"#,
                r#"{"type":"integer","description":"minimum: 1, maximum: 9"}"#,
            ),
            (
                r#"{"description":"A name","type":"string","pattern":"^a\"$"}"#,
                r#"{"description":"A name (pattern: \"^a\\\"$\")","type":"string"}"#,
            ),
            (r#"{"oneOf":[{"type":"null"},{"type":"string"}]}"#, r#"{"anyOf":[{"type":"null"},{"type":"string"}]}"#),
            (r#"{"type":"string","format":"uuid"}"#, r#"{"type":"string","format":"uuid"}"#),
            (r#"{"type":"string","format":"byte"}"#, r#"{"type":"string","description":"format: \"byte\""}"#),
        ] {
            let schema = Raw::parse(schema).unwrap();
            assert!(can_be_promised(schema), "{schema:?}");
            assert_eq!(json::text(|out| write(schema, out)), expected);
        }
    }

    #[test]
    fn what_means_something_else_is_not_promised() {
        for schema in [
            r#"{"type":"object"}"#,
            r#"{"type":"object","properties":{}}"#,
            r#"{"type":"object","properties":{"a":{"type":"object","additionalProperties":{"type":"string"}}}}"#,
            r#"{"type":"object","properties":{"a":{"not":{}}}}"#,
            r#"{"type":"array","items":{"type":"object"}}"#,
            r#"{"$ref":"https://example.com/a"}"#,
            "true",
        ] {
            assert!(!can_be_promised(Raw::parse(schema).unwrap()), "{schema}");
        }
    }

    #[test]
    fn strict_tools_say_nothing_else() {
        let closed = r#"{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}"#;
        let within = |schema: &str| is_within(&Json::Ours(schema.as_bytes().to_vec()));
        assert!(within(closed));
        // However it is written, and without anything in it.
        assert!(within(&closed.replace(':', ": ").replace(',', ",\n ")));
        assert!(within(r#"{"type":"object","properties":{},"additionalProperties":false}"#));
        assert!(!within(
            r#"{"type":"object","properties":{"a":{"oneOf":[{"type":"null"}]}},"additionalProperties":false}"#
        ));
        assert!(!within(&closed.replace(",\"additionalProperties\":false", "")));
        assert!(!within(&closed.replace("\"string\"", "\"string\",\"minLength\":1")));
    }
}
