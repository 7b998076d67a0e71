//! `$ref` within one document: what it names, and a root that is nothing but one. Generators of schemas write such roots, and
//! what follows it has to be an object: so the root becomes what it refers to, and its definitions stay.

use std::collections::BTreeSet;

use wire::json::{Kind, ObjectWriter, Raw, Text};

use crate::plan::json;

/// How many references may lead to each other.
const STEPS: usize = 8;

/// What the root keeps of its own beside what it refers to: others refer to some of it, and the rest says what it is for.
const KEPT: [&str; 6] = ["$schema", "$id", "$defs", "definitions", "title", "description"];

/// A schema whose root is a reference, as what that names; none where it is not, or names nothing in it.
pub(super) fn without_at_root(schema: Raw<'_>) -> Option<String> {
    let first = reference(schema)?;
    let (mut known, mut layers) = (BTreeSet::from([first.decode()]), vec![schema, find(schema, &first.decode())?]);
    while let Some(next) = layers.last().copied().and_then(reference) {
        // What leads back to itself says nothing more.
        if layers.len() > STEPS || !known.insert(next.decode()) {
            break;
        }
        layers.push(find(schema, &next.decode())?);
    }
    if layers.iter().any(|layer| layer.kind() != Kind::Object) {
        return None;
    }
    let mut written = BTreeSet::new();
    let text = json::text(|out| {
        out.reserve(2 * schema.as_str().len());
        let mut object = ObjectWriter::new(out);
        let own = schema.fields().filter(|(key, _)| KEPT.contains(&&*key.decode()));
        let referred = layers.iter().skip(1).rev().flat_map(|layer| layer.fields());
        for (key, value) in own.chain(referred).chain(schema.fields()) {
            let key = key.decode();
            if key != "$ref" && written.insert(key.clone().into_owned()) {
                object.raw(&key, value);
            }
        }
        object.end();
    });
    Some(text)
}

fn reference(schema: Raw<'_>) -> Option<Text<'_>> {
    schema.get("$ref").and_then(Raw::text)
}

/// What a reference names, in this document.
pub(super) fn find<'s>(root: Raw<'s>, reference: &str) -> Option<Raw<'s>> {
    let path = reference.strip_prefix('#')?;
    if path.is_empty() {
        return Some(root);
    }
    path.strip_prefix('/')?.split('/').try_fold(root, |found, step| {
        let step = step.replace("~1", "/").replace("~0", "~");
        match found.kind() {
            Kind::Array => found.elements().nth(step.parse().ok()?),
            _ => found.get(&step),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_becomes_what_it_refers_to() {
        for (schema, expected) in [
            // As zod-to-json-schema writes a schema with a name.
            (
                r##"{"$ref":"#/definitions/Foo","definitions":{"Foo":{"type":"object","properties":{"a":{"$ref":"#/definitions/Foo"}}}},"$schema":"s"}"##,
                Some(
                    r##"{"definitions":{"Foo":{"type":"object","properties":{"a":{"$ref":"#/definitions/Foo"}}}},"$schema":"s","type":"object","properties":{"a":{"$ref":"#/definitions/Foo"}}}"##,
                ),
            ),
            // One after the other; what is nearer to the end counts, but for what the root is for.
            (
                r##"{"$ref":"#/$defs/A","description":"d","x":1,"$defs":{"A":{"$ref":"#/$defs/B/1","x":2,"y":2},"B":[{},{"y":3,"description":"e"}]}}"##,
                Some(
                    r##"{"description":"d","$defs":{"A":{"$ref":"#/$defs/B/1","x":2,"y":2},"B":[{},{"y":3,"description":"e"}]},"y":3,"x":2}"##,
                ),
            ),
            // What refers to itself ends.
            (r##"{"$ref":"#","type":"object"}"##, Some(r#"{"type":"object"}"#)),
            (
                r##"{"$ref":"#/$defs/A","$defs":{"A":{"$ref":"#/$defs/B"},"B":{"$ref":"#/$defs/A","x":1}}}"##,
                Some(r##"{"$defs":{"A":{"$ref":"#/$defs/B"},"B":{"$ref":"#/$defs/A","x":1}},"x":1}"##),
            ),
            // A name may have anything in it.
            (r##"{"$ref":"#/$defs/a~1b~0","$defs":{"a/b~":{"x":1}}}"##, Some(r#"{"$defs":{"a/b~":{"x":1}},"x":1}"#)),
            (r##"{"$ref":"#/$defs/A","$defs":{"A":true}}"##, None),
            (r##"{"$ref":"#/$defs/B","$defs":{"A":{}}}"##, None),
            (r#"{"$ref":"https://example.com/a"}"#, None),
            (r##"{"type":"object","properties":{"$ref":{"$ref":"#/$defs/A"}}}"##, None),
        ] {
            assert_eq!(without_at_root(Raw::parse(schema).unwrap()).as_deref(), expected, "{schema}");
        }
    }

    #[test]
    fn a_long_way_ends_somewhere() {
        let links: Vec<String> = (0..100).map(|n| format!(r##""d{n}":{{"$ref":"#/d/d{}"}}"##, n + 1)).collect();
        let schema = format!(r##"{{"$ref":"#/d/d0","d":{{{},"d100":{{}}}}}}"##, links.join(","));
        let inlined = without_at_root(Raw::parse(&schema).unwrap()).unwrap();
        assert!(inlined.len() < schema.len(), "{inlined}");
    }
}
