//! The part of JSON Schema that such a provider can promise to keep to. What only narrows a value is put into words, and
//! is checked by us; what cannot be said at all is asked for in an instruction.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

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
    schema.kind() == Kind::Object && is_possible(schema) && ends(schema)
}

/// Whether it says nothing beyond that part: then a tool can be strict.
pub(super) fn is_within(schema: Raw<'_>) -> bool {
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
        // Each is closed: of several nothing fits all.
        "allOf" => {
            value.elements().count() < 2
                && value.elements().all(|inner| is_possible(inner) && inner.get("$ref").is_none())
        }
        "anyOf" | "oneOf" | "prefixItems" => value.elements().all(is_possible),
        "items" => is_possible(value),
        "enum" => value.elements().all(is_plain_value),
        "const" => is_plain_value(value),
        _ => true,
    })
}

fn is_plain_value(value: Raw<'_>) -> bool {
    !matches!(value.kind(), Kind::Object | Kind::Array)
}

/// Whether every `$ref` leads to a definition of the schema, and from there never back: what is compiled has an end.
fn ends(schema: Raw<'_>) -> bool {
    let lists = ["$defs", "definitions"].into_iter().flat_map(|list| {
        let members = schema.get(list).into_iter().flat_map(Raw::fields);
        members.map(move |(name, schema)| (format!("#/{list}/{}", name.decode()), targets(schema)))
    });
    let mut open: BTreeMap<String, BTreeSet<String>> = lists.collect();
    let is_known = |target: &String| open.contains_key(target);
    if !targets(schema).iter().all(is_known) {
        return false;
    }
    // What refers to nothing that is open is closed, and so on: what is left refers to itself.
    let mut users: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, targets) in &open {
        for target in targets {
            users.entry(target.clone()).or_default().push(name.clone());
        }
    }
    let mut closed: Vec<String> = open.iter().filter(|(_, to)| to.is_empty()).map(|(name, _)| name.clone()).collect();
    while let Some(name) = closed.pop() {
        open.remove(&name);
        for user in users.get(&name).into_iter().flatten() {
            if let Some(targets) = open.get_mut(user)
                && targets.remove(&name)
                && targets.is_empty()
            {
                closed.push(user.clone());
            }
        }
    }
    open.is_empty()
}

/// What is referred to anywhere within it.
fn targets(schema: Raw<'_>) -> BTreeSet<String> {
    let (mut found, mut rest) = (BTreeSet::new(), vec![schema]);
    while let Some(schema) = rest.pop() {
        found.extend(schema.get("$ref").and_then(Raw::text).map(|target| target.decode().into_owned()));
        for (key, value) in schema.fields() {
            match &*key.decode() {
                "properties" | "$defs" | "definitions" => rest.extend(value.fields().map(|(_, inner)| inner)),
                "anyOf" | "oneOf" | "allOf" | "prefixItems" => rest.extend(value.elements()),
                "items" => rest.push(value),
                _ => {}
            }
        }
    }
    found
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
            (
                r##"{"$defs":{"A":{"items":{"$ref":"#/$defs/B"}},"B":{"enum":["x",null,1]}},"anyOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/B"}]}"##,
                r##"{"$defs":{"A":{"items":{"$ref":"#/$defs/B"}},"B":{"enum":["x",null,1]}},"anyOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/B"}]}"##,
            ),
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
            // What is compiled there has an end, and leads to nothing that is not there.
            r##"{"$defs":{"A":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/A"}]}},"$ref":"#/$defs/A"}"##,
            r##"{"definitions":{"A":{"items":{"$ref":"#/definitions/B"}},"B":{"items":{"$ref":"#/definitions/A"}}}}"##,
            r##"{"type":"object","properties":{"a":{"$ref":"#"}}}"##,
            r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}}}"##,
            // Some things are not compiled.
            r##"{"$defs":{"A":{"type":"string"}},"type":"object","properties":{"a":{"allOf":[{"$ref":"#/$defs/A"}]}}}"##,
            r#"{"allOf":[{"type":"object","properties":{"a":{}}},{"type":"object","properties":{"b":{}}}]}"#,
            r#"{"type":"object","properties":{"a":{"enum":["x",{"y":1}]}}}"#,
            r#"{"type":"object","properties":{"a":{"const":{"y":1}}}}"#,
        ] {
            assert!(!can_be_promised(Raw::parse(schema).unwrap()), "{schema}");
        }
    }

    #[test]
    fn strict_tools_say_nothing_else() {
        let closed = r#"{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}"#;
        let within = |schema: &str| is_within(Raw::parse(schema).unwrap());
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
