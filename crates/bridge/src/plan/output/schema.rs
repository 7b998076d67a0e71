//! Whether a schema for the answer is one, and small enough to be enforced by anybody. Checked before it is
//! sent: a schema can be a bomb (T11), and a provider's error about one names no path.

use wire::json::{Invalid, InvalidCode, Kind, Raw};

const MAX_BYTES: usize = 256 << 10;
const MAX_DEPTH: usize = 32;
const MAX_PROPERTIES: usize = 5_000;
const MAX_ENUM_VALUES: usize = 1_000;
const MAX_ENUM_CHARS: usize = 15_000;

const TYPES: &[&str] = &["string", "number", "integer", "boolean", "object", "array", "null"];

pub(super) fn check(schema: Raw<'_>) -> Result<(), Invalid> {
    let size = schema.as_str().len();
    if size > MAX_BYTES {
        return Err(refused(format!("schema too large. Expected at most {MAX_BYTES} bytes, but got {size} instead.")));
    }
    Checker::default().schema(schema, 0)
}

#[derive(Default)]
struct Checker {
    properties: usize,
    enum_values: usize,
    enum_chars: usize,
}

impl Checker {
    fn schema(&mut self, schema: Raw<'_>, depth: usize) -> Result<(), Invalid> {
        match schema.kind() {
            Kind::Object => {}
            Kind::Bool => return Ok(()),
            _ => return Err(Invalid::expected("an object", schema)),
        }
        if depth > MAX_DEPTH {
            return Err(refused(format!("schema nested deeper than {MAX_DEPTH} levels.")));
        }
        for (key, value) in schema.fields() {
            let key = key.decode();
            self.keyword(&key, value, depth).map_err(|invalid| invalid.at(&key))?;
        }
        Ok(())
    }

    fn keyword(&mut self, key: &str, value: Raw<'_>, depth: usize) -> Result<(), Invalid> {
        match key {
            "type" => types(value),
            "$ref" | "$dynamicRef" | "$recursiveRef" => local(value),
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                self.named(value, depth)
            }
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => self.list(value, depth),
            "items" if value.kind() == Kind::Array => self.list(value, depth),
            "items"
            | "additionalProperties"
            | "not"
            | "contains"
            | "if"
            | "then"
            | "else"
            | "propertyNames"
            | "unevaluatedProperties"
            | "unevaluatedItems"
            | "additionalItems" => self.schema(value, depth + 1),
            "enum" => self.values(value),
            "required" => strings(value),
            "pattern" | "format" | "title" | "description" | "$id" | "$schema" | "$comment" | "$anchor" => {
                kind(value, Kind::String, "a string")
            }
            "minimum" | "maximum" | "minLength" | "maxLength" | "minItems" | "maxItems" | "multipleOf"
            | "minProperties" | "maxProperties" => kind(value, Kind::Number, "a number"),
            _ => Ok(()),
        }
    }

    fn named(&mut self, value: Raw<'_>, depth: usize) -> Result<(), Invalid> {
        kind(value, Kind::Object, "an object")?;
        for (name, schema) in value.fields() {
            self.properties += 1;
            if self.properties > MAX_PROPERTIES {
                return Err(refused(format!("schema with more than {MAX_PROPERTIES} properties.")));
            }
            self.schema(schema, depth + 1).map_err(|invalid| invalid.at(&name.decode()))?;
        }
        Ok(())
    }

    fn list(&mut self, value: Raw<'_>, depth: usize) -> Result<(), Invalid> {
        kind(value, Kind::Array, "an array")?;
        for (index, schema) in value.elements().enumerate() {
            self.schema(schema, depth + 1).map_err(|invalid| invalid.at_index(index))?;
        }
        Ok(())
    }

    fn values(&mut self, value: Raw<'_>) -> Result<(), Invalid> {
        kind(value, Kind::Array, "an array")?;
        for element in value.elements() {
            self.enum_values += 1;
            self.enum_chars += element.as_str().len();
        }
        if self.enum_values > MAX_ENUM_VALUES || self.enum_chars > MAX_ENUM_CHARS {
            let message =
                format!("schema with more than {MAX_ENUM_VALUES} enum values, or {MAX_ENUM_CHARS} characters of them.");
            return Err(refused(message));
        }
        Ok(())
    }
}

fn types(value: Raw<'_>) -> Result<(), Invalid> {
    let known = |raw: Raw<'_>| match raw.text() {
        Some(name) if TYPES.iter().any(|known| name.is(known)) => Ok(()),
        Some(name) => Err(Invalid::value(&name.decode(), TYPES)),
        None => Err(Invalid::expected("a string", raw)),
    };
    match value.kind() {
        Kind::Array => value.elements().try_for_each(known),
        _ => known(value),
    }
}

/// godex fetches nothing, and nobody else should because of us.
fn local(value: Raw<'_>) -> Result<(), Invalid> {
    match value.text() {
        Some(reference) if reference.escaped().starts_with('#') => Ok(()),
        Some(_) => Err(refused("reference to another document. Expected one that starts with '#'.".to_owned())),
        None => Err(Invalid::expected("a string", value)),
    }
}

fn strings(value: Raw<'_>) -> Result<(), Invalid> {
    kind(value, Kind::Array, "an array")?;
    value.elements().try_for_each(|element| kind(element, Kind::String, "a string"))
}

fn kind(value: Raw<'_>, wanted: Kind, name: &'static str) -> Result<(), Invalid> {
    if value.kind() == wanted { Ok(()) } else { Err(Invalid::expected(name, value)) }
}

fn refused(message: String) -> Invalid {
    Invalid::rule(InvalidCode::InvalidJsonSchema, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_refused_with_a_path() {
        let deep = r#"{"items":"#.repeat(34) + "{}" + &"}".repeat(34);
        let wide = format!(r#"{{"enum":[{}1]}}"#, "1,".repeat(1000));
        let large = format!(r#"{{"title":"{}"}}"#, "x".repeat(MAX_BYTES));
        let many = r#""p":true,"#.repeat(5000);
        let many = format!(r#"{{"properties":{{{many}"last":true}}}}"#);
        for (schema, path) in [
            (r#"{"type":"strng"}"#, "type"),
            (r#"{"type":["string",5]}"#, "type"),
            (r#"{"properties":{"a":5}}"#, "properties.a"),
            (r#"{"properties":{"a":{"anyOf":[{},{"required":"b"}]}}}"#, "properties.a.anyOf[1].required"),
            (r#"{"$ref":"https://example.com/x.json"}"#, "$ref"),
            (r#"{"properties":{"a":{"pattern":7}}}"#, "properties.a.pattern"),
            (&wide, "enum"),
            (&large, ""),
            (&many, "properties"),
        ] {
            assert_eq!(
                check(Raw::parse(schema).unwrap()).unwrap_err().path,
                path,
                "{}",
                &schema[..schema.len().min(80)]
            );
        }
        assert_eq!(check(Raw::parse(&deep).unwrap()).unwrap_err().code().name(), "invalid_json_schema");
        let good = r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/x"},"b":{"type":["null","array"],"items":true}},
            "required":["a"],"$defs":{"x":{"enum":["y",null]}},"additionalProperties":false,"x-own":[1]}"##;
        assert_eq!(check(Raw::parse(good).unwrap()), Ok(()));
    }
}
