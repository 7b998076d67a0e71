//! A function's parameters for the provider: an object schema always, without what its dialect refuses.

use memchr::memmem;
use wire::chat::Json;
use wire::json::{Kind, ObjectWriter, Raw, write_text};

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
    let is_object = schema.get("type").is_some_and(|kind| kind.as_str() == "\"object\"");
    let has_properties = schema.get("properties").is_some_and(|properties| properties.kind() == Kind::Object);
    let may_ask_encryption = memmem::find(schema.as_str().as_bytes(), ENCRYPTED.as_bytes()).is_some();
    let unruled = !may_ask_encryption && rules.iter().all(|rule| *rule == SchemaRule::NoStrict);
    if is_object && has_properties && unruled {
        return (Json::Wire(schema), Changes::default());
    }
    let mut writer = Writer { rules, changes: Changes::default() };
    let text = json::text(|out| {
        out.reserve(schema.as_str().len() + 64);
        let mut object = ObjectWriter::new(out);
        if !is_object {
            object.text("type", "object");
        }
        for (key, value) in schema.fields() {
            let replaced = (!is_object && key.is("type")) || (!has_properties && key.is("properties"));
            if !replaced && !writer.left_out_of_root(&key.decode()) {
                writer.member(&key.decode(), value, &mut object);
            }
        }
        if !has_properties {
            object.json("properties", b"{}");
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

    fn left_out_of_root(&mut self, key: &str) -> bool {
        let left_out = self.has(SchemaRule::PlainRoot) && matches!(key, "anyOf" | "oneOf" | "allOf");
        self.changes.meaning |= left_out;
        left_out
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
        out.push(b'[');
        for (i, element) in array.elements().enumerate() {
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
        use SchemaRule::{EnumStrings, NoTuples, NoTypeArrays, PlainRoot, RefAlone};
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
}
