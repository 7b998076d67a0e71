//! A function's parameters for the provider: an object schema always, without what its dialect refuses.

use memchr::memmem;
use wire::chat::Json;
use wire::json::{Kind, ObjectWriter, Raw, write_text};

use super::root::{Flat, is_joint};
use super::{draft, reference};
use crate::dialect::SchemaRule;
use crate::plan::content::clean;
use crate::plan::json;

const NOTHING: &[u8] = br#"{"type":"object","properties":{}}"#;

/// What the schema that is sent does not say any more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// The dialect made us change its meaning.
    pub(super) meaning: bool,
    /// It asked for arguments to be encrypted: only OpenAI's own server does that, and a model that is told so might
    /// try.
    pub(super) encryption: bool,
}

const ENCRYPTED: &str = "encrypted";

/// The parameters to send, and what was changed in them.
pub(super) fn parameters<'a>(declared: Option<Raw<'a>>, rules: &[SchemaRule]) -> (Json<'a>, Changes) {
    let Some(schema) = declared.filter(|schema| schema.kind() == Kind::Object) else {
        // Some servers demand parameters of a function that has none.
        return (Json::Ours(NOTHING.to_vec()), Changes::default());
    };
    let Some(inlined) = reference::without_at_root(schema) else { return mended(schema, rules) };
    let (json, changes) = mended(Raw::ours(&inlined), rules);
    (owned(&json), changes)
}

/// What is a schema by the draft that the dialect insists on, as far as it does.
fn mended<'a>(schema: Raw<'a>, rules: &[SchemaRule]) -> (Json<'a>, Changes) {
    let mended = if rules.contains(&SchemaRule::Draft2020) { draft::mended(schema) } else { None };
    let Some(mended) = mended else { return completed(schema, rules) };
    let (json, changes) = completed(Raw::ours(&mended), rules);
    (owned(&json), Changes { meaning: true, ..changes })
}

/// Apart from the text that it was read from.
fn owned(json: &Json<'_>) -> Json<'static> {
    let mut out = Vec::new();
    json.write(&mut out);
    Json::Ours(out)
}

/// An object schema, without what the dialect refuses of what is one.
fn completed<'a>(schema: Raw<'a>, rules: &[SchemaRule]) -> (Json<'a>, Changes) {
    let is_object = schema.get("type").is_some_and(|kind| kind.as_str() == "\"object\"");
    let has_properties = schema.get("properties").is_some_and(|properties| properties.kind() == Kind::Object);
    let may_ask_encryption = memmem::find(schema.as_str().as_bytes(), ENCRYPTED.as_bytes()).is_some();
    let is_kept =
        |rule: &SchemaRule| matches!(rule, SchemaRule::NoStrict | SchemaRule::Draft2020 | SchemaRule::PlainKeys);
    let unruled = !may_ask_encryption && rules.iter().all(is_kept);
    if is_object && has_properties && unruled {
        return (Json::Wire(schema), Changes::default());
    }
    let mut writer = Writer { rules, changes: Changes::default() };
    let flat = if writer.has(SchemaRule::PlainRoot) { Flat::of(schema) } else { None };
    writer.changes.meaning |= flat.is_some();
    let text = json::text(|out| {
        out.reserve(schema.as_str().len() + 64);
        let mut object = ObjectWriter::new(out);
        if !is_object {
            object.text("type", "object");
        }
        for (key, value) in schema.fields() {
            let key = key.decode();
            let is_replaced = match &*key {
                "type" => !is_object,
                "properties" => !has_properties || flat.is_some(),
                "required" => flat.is_some(),
                key => flat.is_some() && is_joint(key),
            };
            if !is_replaced {
                writer.member(&key, value, &mut object);
            }
        }
        match &flat {
            Some(flat) => writer.flat(flat, &mut object),
            None if has_properties => {}
            None => drop(object.json("properties", b"{}")),
        }
        object.end();
    });
    (Json::Ours(clean(&text).into_owned().into_bytes()), writer.changes)
}

struct Writer<'r> {
    rules: &'r [SchemaRule],
    changes: Changes,
}

impl Writer<'_> {
    fn has(&self, rule: SchemaRule) -> bool {
        self.rules.contains(&rule)
    }

    /// The parameters of a root that was more than one schema.
    fn flat(&mut self, flat: &Flat<'_>, object: &mut ObjectWriter<'_>) {
        let mut named = ObjectWriter::new(object.key("properties"));
        for (name, schemas) in flat.properties() {
            let out = named.key(name);
            if let [schema] = &*schemas {
                self.schema(*schema, out);
                continue;
            }
            let mut either = ObjectWriter::new(out);
            self.list(schemas.into_iter(), either.key("anyOf"), Self::schema);
            either.end();
        }
        named.end();
        let required = flat.required();
        if !required.is_empty() {
            self.list(required.into_iter(), object.key("required"), |_, name, out| write_text(out, name));
        }
    }

    /// A schema anywhere below the root.
    fn schema(&mut self, schema: Raw<'_>, out: &mut Vec<u8>) {
        if schema.kind() != Kind::Object {
            return out.extend_from_slice(schema.as_str().as_bytes());
        }
        let mut object = ObjectWriter::new(out);
        if let Some(reference) = schema.get("$ref").filter(|_| self.has(SchemaRule::RefAlone)) {
            self.changes.meaning |= schema.fields().count() > 1;
            object.raw("$ref", reference);
            return object.end();
        }
        for (key, value) in schema.fields() {
            self.member(&key.decode(), value, &mut object);
        }
        object.end();
    }

    fn member(&mut self, key: &str, value: Raw<'_>, object: &mut ObjectWriter<'_>) {
        match (key, value.kind()) {
            (ENCRYPTED, Kind::Bool) => self.changes.encryption = true,
            ("properties" | "patternProperties" | "$defs" | "definitions", Kind::Object) => {
                let mut named = ObjectWriter::new(object.key(key));
                for (name, schema) in value.fields() {
                    self.schema(schema, named.key(&name.decode()));
                }
                named.end();
            }
            ("items", Kind::Array) if self.has(SchemaRule::NoTuples) => {
                self.changes.meaning = true;
                match value.elements().next() {
                    Some(first) => self.schema(first, object.key(key)),
                    None => object.key(key).extend_from_slice(b"{}"),
                }
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Kind::Array) => {
                self.each(value, object.key(key), Self::schema);
            }
            ("items" | "additionalProperties" | "not" | "contains" | "if" | "then" | "else", Kind::Object) => {
                self.schema(value, object.key(key));
            }
            ("type", Kind::Array) if self.has(SchemaRule::NoTypeArrays) => {
                self.changes.meaning = true;
                let first = value.elements().find(|kind| kind.as_str() != "\"null\"");
                object.raw(key, first.or_else(|| value.elements().next()).unwrap_or(Raw::NULL));
            }
            ("enum", Kind::Array) if self.has(SchemaRule::EnumStrings) => {
                self.each(value, object.key(key), Self::as_string);
            }
            _ => {
                object.raw(key, value);
            }
        }
    }

    fn each(&mut self, array: Raw<'_>, out: &mut Vec<u8>, write: impl Fn(&mut Self, Raw<'_>, &mut Vec<u8>)) {
        self.list(array.elements(), out, write);
    }

    fn list<E>(
        &mut self,
        elements: impl Iterator<Item = E>,
        out: &mut Vec<u8>,
        write: impl Fn(&mut Self, E, &mut Vec<u8>),
    ) {
        out.push(b'[');
        for (i, element) in elements.enumerate() {
            if i > 0 {
                out.push(b',');
            }
            write(self, element, out);
        }
        out.push(b']');
    }

    fn as_string(&mut self, value: Raw<'_>, out: &mut Vec<u8>) {
        if value.kind() == Kind::String {
            return out.extend_from_slice(value.as_str().as_bytes());
        }
        self.changes.meaning = true;
        write_text(out, value.as_str());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_completed_and_cleaned() {
        use SchemaRule::{Draft2020, EnumStrings, NoTuples, NoTypeArrays, PlainRoot, RefAlone};
        let empty = r#"{"type":"object","properties":{}}"#;
        for (schema, rules, expected) in [
            ("{}", &[][..], empty),
            ("null", &[], empty),
            (r#"{"type":"object"}"#, &[], empty),
            (r#"{"properties":[]}"#, &[], empty),
            (r#"{"type":"object","properties":{"a":{"x":1}}}"#, &[], r#"{"type":"object","properties":{"a":{"x":1}}}"#),
            (
                r##"{"type":"object","properties":{"a":{"$ref":"#/x","description":"d"}}}"##,
                &[RefAlone],
                r##"{"type":"object","properties":{"a":{"$ref":"#/x"}}}"##,
            ),
            (
                r#"{"type":"object","properties":{"a":{"items":[{"type":"string"},{}]}}}"#,
                &[NoTuples],
                r#"{"type":"object","properties":{"a":{"items":{"type":"string"}}}}"#,
            ),
            (
                r#"{"type":"object","properties":{"a":{"type":["null","integer"],"enum":[1,"2"]}}}"#,
                &[NoTypeArrays, EnumStrings],
                r#"{"type":"object","properties":{"a":{"type":"integer","enum":["1","2"]}}}"#,
            ),
            (r#"{"type":"object","anyOf":[{}],"properties":{}}"#, &[PlainRoot], r#"{"type":"object","properties":{}}"#),
            // What can be of several forms is one object of all of them.
            (
                r#"{"anyOf":[{"type":"object","properties":{"a":{"type":"string"},"b":{}},"required":["a","b"]},{"properties":{"c":{},"a":{"type":"string"}},"required":["a"]}]}"#,
                &[PlainRoot],
                r#"{"type":"object","properties":{"a":{"type":"string"},"b":{},"c":{}},"required":["a"]}"#,
            ),
            (
                r#"{"type":"object","oneOf":[{"properties":{"do":{"const":"x"},"p":{}},"required":["do","p"]},{"properties":{"do":{"const":"y"}},"required":["do"]}],"$comment":"c"}"#,
                &[PlainRoot],
                r#"{"type":"object","$comment":"c","properties":{"do":{"anyOf":[{"const":"x"},{"const":"y"}]},"p":{}},"required":["do"]}"#,
            ),
            (
                r##"{"properties":{"a":{"x":1}},"required":["a"],"allOf":[{"$ref":"#/$defs/B"},{"properties":{"a":{"x":2},"c":{"enum":[1]}},"required":["c","a"]}],"$defs":{"B":{"properties":{"b":{}},"required":["b"]}}}"##,
                &[PlainRoot, EnumStrings],
                r#"{"type":"object","$defs":{"B":{"properties":{"b":{}},"required":["b"]}},"properties":{"a":{"x":1},"b":{},"c":{"enum":["1"]}},"required":["a","b","c"]}"#,
            ),
            // No arguments are null, or a list; what is not there says nothing.
            (
                r#"{"anyOf":[{"type":"null"},{"type":["object","null"],"properties":{"a":{}},"required":["a"]},{"type":"array"},false]}"#,
                &[PlainRoot],
                r#"{"type":"object","properties":{"a":{}},"required":["a"]}"#,
            ),
            (
                r##"{"anyOf":[{"allOf":[{"oneOf":[{"properties":{"a":{}},"required":["a"]}]}]},{"$ref":"#/$defs/A"}]}"##,
                &[PlainRoot],
                r#"{"type":"object","properties":{"a":{}}}"#,
            ),
            // An older schema is read as what it means; what is none any more is no object either.
            (
                r#"{"type":"any","anyOf":[{"properties":{"a":{"items":[{"type":"any"}]}}}],"required":true}"#,
                &[PlainRoot, Draft2020],
                r#"{"type":"object","properties":{"a":{"prefixItems":[{}]}}}"#,
            ),
            (
                r#"{ "type":"object","properties":{"a": {"exclusiveMinimum":true,"minimum":0}}}"#,
                &[Draft2020],
                r#"{"type":"object","properties":{"a":{"exclusiveMinimum":0}}}"#,
            ),
            (
                r#"{ "type":"object", "properties":{"a": {"exclusiveMinimum" : 1}}}"#,
                &[Draft2020],
                r#"{ "type":"object", "properties":{"a": {"exclusiveMinimum" : 1}}}"#,
            ),
            // Only the root is refused.
            (
                r#"{"type":"object","properties":{"a":{"anyOf":[{}]}}}"#,
                &[PlainRoot],
                r#"{"type":"object","properties":{"a":{"anyOf":[{}]}}}"#,
            ),
            (
                r#"{"anyOf":[{"properties":{"a":{}}}]}"#,
                &[],
                r#"{"type":"object","anyOf":[{"properties":{"a":{}}}],"properties":{}}"#,
            ),
            // A root that only refers to one is that one, for every dialect.
            (
                r##"{"$ref":"#/definitions/F","definitions":{"F":{"type":"object","properties":{"a":{"$ref":"#/definitions/F"}}}},"$schema":"s"}"##,
                &[],
                r##"{"definitions":{"F":{"type":"object","properties":{"a":{"$ref":"#/definitions/F"}}}},"$schema":"s","type":"object","properties":{"a":{"$ref":"#/definitions/F"}}}"##,
            ),
            (
                r##"{"$ref":"#/definitions/F","definitions":{"F":{"anyOf":[{"properties":{"a":{}}},{"type":"null"}]}}}"##,
                &[PlainRoot, Draft2020],
                r#"{"type":"object","definitions":{"F":{"anyOf":[{"properties":{"a":{}}},{"type":"null"}]}},"properties":{"a":{}}}"#,
            ),
            (r##"{"$ref":"#"}"##, &[], empty),
            // The keyword goes, a property of that name stays.
            (
                r#"{"type":"object","properties":{"encrypted":{"type":"string","encrypted":true}}}"#,
                &[],
                r#"{"type":"object","properties":{"encrypted":{"type":"string"}}}"#,
            ),
        ] {
            let (json, _) = parameters(Some(Raw::parse(schema).unwrap()), rules);
            let mut out = Vec::new();
            json.write(&mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{schema}");
        }
    }

    /// All alternatives are there, though they share much; where they are too many, none is forbidden for that.
    #[test]
    fn alternatives_that_cannot_be_read_are_not_forbidden() {
        let written = |schema: &str| {
            let (json, _) = parameters(Some(Raw::parse(schema).unwrap()), &[SchemaRule::PlainRoot]);
            let mut out = Vec::new();
            json.write(&mut out);
            String::from_utf8(out).unwrap()
        };
        let shared: Vec<String> =
            (0..60).map(|n| format!(r#""p{n}":{{"description":"{}"}}"#, "x".repeat(70))).collect();
        let one = |n: usize| {
            let own = format!(r#"{{"properties":{{"action":{{"const":"a{n}."}}}},"required":["action"]}}"#);
            format!(r##"{{"allOf":[{{"$ref":"#/$defs/B"}},{own}]}}"##)
        };
        let schema = |count: usize| {
            let all: Vec<String> = (0..count).map(one).collect();
            format!(r#"{{"oneOf":[{}],"$defs":{{"B":{{"properties":{{{}}}}}}}}}"#, all.join(","), shared.join(","))
        };
        let few = written(&schema(25));
        assert!((0..25).all(|n| few.contains(&format!("a{n}."))) && few.contains(r#""required":["action"]"#), "{few}");
        let many = written(&schema(5000));
        assert!(many.contains(r#""action":{}"#) && !many.contains("required"), "{}", &many[..200]);
        let deep = (0..12).fold(r#"{"properties":{"a":{"const":1}}}"#.to_owned(), |inner, _| {
            format!(r#"{{"anyOf":[{inner},{{"properties":{{"b":{{"const":2}}}}}}]}}"#)
        });
        let deep = written(&deep);
        assert!(deep.contains(r#""b":{}"#) && !deep.contains("const"), "{deep}");
    }

    /// What refers to itself, or to much, many times, ends.
    #[test]
    fn no_schema_takes_long() {
        let twice = r##"{"anyOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/A"}],"properties":{"a":{}}}"##;
        let itself = format!(r##"{{"anyOf":[{{"$ref":"#/$defs/A"}}],"$defs":{{"A":{twice}}}}}"##);
        let long = format!(r#"{{"properties":{{"a":{{"enum":["{}"]}}}}}}"#, "x".repeat(10_000));
        let many = vec![r##"{"$ref":"#/$defs/A"}"##; 10_000].join(",");
        let much = format!(r#"{{"oneOf":[{many}],"$defs":{{"A":{long}}}}}"#);
        for schema in [itself, much] {
            let (json, changes) = parameters(Some(Raw::parse(&schema).unwrap()), &[SchemaRule::PlainRoot]);
            let mut out = Vec::new();
            json.write(&mut out);
            assert!(changes.meaning && out.len() < 2 * schema.len(), "{}", out.len());
        }
    }
}
