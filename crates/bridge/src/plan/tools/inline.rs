//! JSON schemas that others wrote, without references: what `$ref` names inside of the same document stands in its place.
//! Nothing is fetched, and a schema that would become much longer stays as it is.

use std::borrow::Cow;
use std::collections::BTreeMap;

use wire::json::{Kind, ObjectWriter, Raw, Text};

use super::reference;
use crate::plan::json;

/// How deep schemas may be in each other.
const DEPTH: usize = 64;
/// How many references of unusual form are looked up.
const WALKS: usize = 64;

/// A schema without references.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Inlined {
    pub(super) text: String,
    /// It says less: something refers to itself, or to nothing.
    pub(super) is_less: bool,
}

/// The schema without references and without `$schema`, and with `items` wherever there is an array; none where it may
/// stay as it is.
pub(super) fn inlined(schema: Raw<'_>) -> Option<Inlined> {
    let text = schema.as_str();
    if !["\"$ref\"", "\"$schema\"", "\"array\""].iter().any(|word| text.contains(word)) {
        return None;
    }
    let definitions = ["$defs", "definitions"].into_iter().flat_map(|list| {
        let members = schema.get(list).into_iter().flat_map(Raw::fields);
        members.map(move |(name, schema)| (format!("{list}/{}", name.decode()), schema))
    });
    let mut writer = Writer {
        root: schema,
        definitions: definitions.collect(),
        under_way: Vec::new(),
        longest: 4 * text.len() + (16 << 10),
        walks: 0,
        is_less: false,
        is_too_long: false,
    };
    let text = json::text(|out| writer.schema(schema, 0, out));
    (!writer.is_too_long).then_some(Inlined { text, is_less: writer.is_less })
}

struct Writer<'s> {
    root: Raw<'s>,
    /// By `$defs/NAME` or `definitions/NAME`.
    definitions: BTreeMap<String, Raw<'s>>,
    /// What the schemas that are being written refer to.
    under_way: Vec<Cow<'s, str>>,
    longest: usize,
    walks: usize,
    is_less: bool,
    is_too_long: bool,
}

impl<'s> Writer<'s> {
    fn schema(&mut self, schema: Raw<'s>, depth: usize, out: &mut Vec<u8>) {
        self.is_too_long |= out.len() > self.longest;
        if schema.kind() != Kind::Object && !self.is_too_long {
            return out.extend_from_slice(schema.as_str().as_bytes());
        }
        let mut object = ObjectWriter::new(out);
        if depth > DEPTH {
            self.is_less = true;
        } else if !self.is_too_long {
            self.members(schema, &[], depth, &mut object);
        }
        object.end();
    }

    /// The members of a schema, but for those that are written by who refers to it.
    fn members(&mut self, schema: Raw<'s>, except: &[Cow<'s, str>], depth: usize, object: &mut ObjectWriter<'_>) {
        if let Some(reference) = schema.get("$ref").and_then(Raw::text) {
            let own = schema.fields().map(|(key, _)| key.decode());
            let except: Vec<Cow<'s, str>> = own.chain(except.iter().cloned()).collect();
            self.referred(reference, &except, depth, object);
        }
        let written = |key: &str| except.iter().any(|name| name == key);
        let mut has_items = false;
        for (key, value) in schema.fields() {
            let key = key.decode();
            has_items |= matches!(&*key, "items" | "prefixItems");
            if !written(&key) {
                self.member(&key, value, depth, object);
            }
        }
        let is_array = schema.get("type").is_some_and(|kind| kind.as_str() == "\"array\"");
        if is_array && !has_items && !written("items") {
            object.json("items", b"{}");
        }
    }

    fn referred(&mut self, reference: Text<'s>, except: &[Cow<'s, str>], depth: usize, object: &mut ObjectWriter<'_>) {
        let reference = reference.decode();
        let target = if self.under_way.contains(&reference) { None } else { self.find(&reference) };
        let Some(target) = target.filter(|_| self.under_way.len() < DEPTH) else {
            self.is_less = true;
            return;
        };
        self.under_way.push(reference);
        self.members(target, except, depth, object);
        self.under_way.pop();
    }

    fn member(&mut self, key: &str, value: Raw<'s>, depth: usize, object: &mut ObjectWriter<'_>) {
        match (key, value.kind()) {
            ("$ref", Kind::String) | ("$schema" | "$defs" | "definitions", _) => {}
            ("properties" | "patternProperties" | "dependentSchemas", Kind::Object) => {
                let mut named = ObjectWriter::new(object.key(key));
                for (name, schema) in value.fields() {
                    self.schema(schema, depth + 1, named.key(&name.decode()));
                }
                named.end();
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Kind::Array) => {
                let out = object.key(key);
                out.push(b'[');
                for (index, schema) in value.elements().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    self.schema(schema, depth + 1, out);
                }
                out.push(b']');
            }
            (
                "items"
                | "additionalProperties"
                | "unevaluatedProperties"
                | "propertyNames"
                | "not"
                | "contains"
                | "if"
                | "then"
                | "else",
                Kind::Object,
            ) => self.schema(value, depth + 1, object.key(key)),
            _ => drop(object.raw(key, value)),
        }
    }

    /// What a reference names, in this document.
    fn find(&mut self, reference: &str) -> Option<Raw<'s>> {
        let known = |path: &str| self.definitions.get(path).copied();
        if let Some(found) = reference.strip_prefix("#/").and_then(known) {
            return Some(found);
        }
        self.walks += 1;
        if self.walks > WALKS {
            return None;
        }
        reference::find(self.root, reference)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_replaced_by_what_they_name() {
        for (schema, expected, is_less) in [
            (
                r##"{"$schema":"x","type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"string"}}}"##,
                r#"{"type":"object","properties":{"a":{"type":"string"}}}"#,
                false,
            ),
            // What stands beside a reference counts; a property may have the name of a keyword.
            (
                r##"{"properties":{"$defs":{"$ref":"#/definitions/A","description":"mine"}},"definitions":{"A":{"description":"its","enum":["$ref"]}}}"##,
                r#"{"properties":{"$defs":{"enum":["$ref"],"description":"mine"}}}"#,
                false,
            ),
            (
                r##"{"properties":{"a":{"$ref":"#/properties/b/items/0"},"b":{"items":[{"type":"null"}]}}}"##,
                r#"{"properties":{"a":{"type":"null"},"b":{"items":[{"type":"null"}]}}}"#,
                false,
            ),
            (
                r##"{"properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"$ref":"#/$defs/B"},"B":{"type":"integer"}}}"##,
                r#"{"properties":{"a":{"type":"integer"}}}"#,
                false,
            ),
            // Itself, nothing, and something elsewhere.
            (
                r##"{"properties":{"a":{"$ref":"#/$defs/T"}},"$defs":{"T":{"type":"object","properties":{"t":{"$ref":"#/$defs/T"}}}}}"##,
                r#"{"properties":{"a":{"type":"object","properties":{"t":{}}}}}"#,
                true,
            ),
            (r##"{"items":{"$ref":"#"}}"##, r#"{"items":{"items":{}}}"#, true),
            (r##"{"properties":{"a":{"$ref":"#/$defs/X"}}}"##, r#"{"properties":{"a":{}}}"#, true),
            (r#"{"properties":{"a":{"$ref":"https://x.y/z"}}}"#, r#"{"properties":{"a":{}}}"#, true),
            (
                r#"{"properties":{"a":{"type":"array"},"b":{"type":"array","items":{"type":"string"}}}}"#,
                r#"{"properties":{"a":{"type":"array","items":{}},"b":{"type":"array","items":{"type":"string"}}}}"#,
                false,
            ),
        ] {
            let inlined = inlined(Raw::parse(schema).unwrap()).unwrap();
            assert_eq!((inlined.text.as_str(), inlined.is_less), (expected, is_less), "{schema}");
        }
        assert_eq!(inlined(Raw::parse(r#"{"type":"object","properties":{}}"#).unwrap()), None);
    }

    /// Ten references in each of ten definitions would be ten thousand millions of schemas.
    #[test]
    fn what_would_grow_without_end_stays_as_it_is() {
        let definitions: Vec<String> = (0..10)
            .map(|at| {
                let inner = vec![format!(r##"{{"$ref":"#/$defs/d{}"}}"##, at + 1); 10].join(",");
                format!(r#""d{at}":{{"anyOf":[{inner}]}}"#)
            })
            .collect();
        let schema = format!(
            r##"{{"properties":{{"a":{{"$ref":"#/$defs/d0"}}}},"$defs":{{{},"d10":{{"type":"string"}}}}}}"##,
            definitions.join(",")
        );
        assert_eq!(inlined(Raw::parse(&schema).unwrap()), None);
    }
}
