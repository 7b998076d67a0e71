//! A JSON value that satisfies a schema. Walks what schemas of tools and structured outputs use; depth and size
//! are capped, because a schema may refer to itself.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::wishes::Words;

/// Beyond this, optional parts are left out.
const SHALLOW: usize = 6;
const MAX_DEPTH: usize = 24;
const MAX_VALUES: usize = 5_000;
const MAX_ITEMS: u64 = 100;
/// How many arguments are made of words.
const MAX_WORDS: usize = 100;
/// What a value may be made of, in bytes, roughly: constants, names and long strings count as often as they are used.
const MAX_BYTES: usize = 256 << 10;

/// A value for the schema; free strings say `text`.
pub(super) fn instance(schema: &Value, text: &str) -> Value {
    let text = if text.is_empty() { "example" } else { text };
    Walk { root: schema, text, values: 0, bytes: 0 }.value(schema, 0)
}

/// Arguments for a tool with these parameters.
pub(super) fn arguments(parameters: &Value) -> String {
    let value = instance(parameters, "");
    if value.is_object() { value.to_string() } else { "{}".to_owned() }
}

/// Arguments for a tool with these parameters, as far as a message has them; what is not required is left out.
pub(super) fn from_words(parameters: &Value, words: &Words<'_>) -> String {
    let mut quoted = words.quoted.iter();
    let mut numbers = words.numbers.iter();
    let mut arguments = Map::new();
    for name in parameters["required"].as_array().into_iter().flatten().filter_map(Value::as_str).take(MAX_WORDS) {
        let property = &parameters["properties"][name];
        let is_address = property["format"] == "uri" || name == "url" || name == "uri";
        let options = property["enum"].as_array().into_iter().flatten();
        let chosen = options.filter_map(Value::as_str).find(|option| words.text.contains(option));
        let value = match kind(property) {
            "string" if chosen.is_some() => chosen.map(Value::from),
            "string" if property["enum"].is_array() || !property["const"].is_null() => None,
            "string" if is_address => words.address.map(Value::from),
            "string" => Some(json!(quoted.next().copied().unwrap_or(words.text))),
            "integer" | "number" => numbers.next().cloned(),
            _ => None,
        };
        arguments.insert(name.to_owned(), value.unwrap_or_else(|| instance(property, words.text)));
    }
    Value::Object(arguments).to_string()
}

struct Walk<'a> {
    root: &'a Value,
    text: &'a str,
    values: usize,
    bytes: usize,
}

impl Walk<'_> {
    /// Whether there is room for so much more.
    fn take(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        self.bytes <= MAX_BYTES
    }

    fn copy(&mut self, value: &Value) -> Value {
        if self.take(size(value)) { value.clone() } else { Value::Null }
    }

    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        self.values += 1;
        if depth > MAX_DEPTH || self.values > MAX_VALUES || self.bytes > MAX_BYTES {
            return Value::Null;
        }
        if let Some(pointer) = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#')) {
            let root = self.root;
            return root.pointer(pointer).map_or(Value::Null, |target| self.value(target, depth + 1));
        }
        let constant = schema.get("const").or_else(|| schema["enum"].as_array().and_then(|values| values.first()));
        if let Some(value) = constant {
            return self.copy(value);
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(options) = schema[key].as_array().filter(|options| !options.is_empty()) {
                return self.value(pick(options, depth), depth + 1);
            }
        }
        if let Some(parts) = schema["allOf"].as_array() {
            return if self.take(size(schema)) { self.value(&merge(schema, parts), depth + 1) } else { Value::Null };
        }
        self.typed(kind(schema), schema, depth)
    }

    fn typed(&mut self, kind: &str, schema: &Value, depth: usize) -> Value {
        match kind {
            "object" => self.object(schema, depth),
            "array" => self.array(schema, depth),
            "integer" => json!(whole(schema)),
            "number" => number(schema),
            "boolean" => json!(true),
            "null" => Value::Null,
            _ => {
                let string = string(schema, self.text, MAX_BYTES.saturating_sub(self.bytes));
                self.take(string.len());
                json!(string)
            }
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let names = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
        // Each is looked at, whether or not it is new.
        if !self.take(names.len()) {
            return json!({});
        }
        let required: HashSet<&str> = names.iter().filter_map(Value::as_str).collect();
        let mut object = Map::new();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            if !self.take(name.len() + 1) {
                break;
            }
            if depth <= SHALLOW || required.contains(name.as_str()) {
                object.insert(name.clone(), self.value(property, depth + 1));
            }
        }
        for name in names.iter().filter_map(Value::as_str) {
            if !object.contains_key(name) && self.take(name.len() + self.text.len()) {
                object.insert(name.to_owned(), json!(self.text));
            }
        }
        Value::Object(object)
    }

    fn array(&mut self, schema: &Value, depth: usize) -> Value {
        let mut items: Vec<Value> = Vec::new();
        for item in schema["prefixItems"].as_array().into_iter().flatten() {
            if !self.take(1) {
                break;
            }
            items.push(self.value(item, depth + 1));
        }
        let wanted = u64::from(depth <= SHALLOW && schema["items"].is_object());
        let max = schema["maxItems"].as_u64().unwrap_or(MAX_ITEMS).min(MAX_ITEMS);
        let count = wanted.max(schema["minItems"].as_u64().unwrap_or(0)).min(max);
        while (items.len() as u64) < count && self.take(1) {
            items.push(self.value(&schema["items"], depth + 1));
        }
        Value::Array(items)
    }
}

/// The first option; deep down the plainest, so that a schema that refers to itself comes to an end.
fn pick(options: &[Value], depth: usize) -> &Value {
    let plain = |option: &&Value| option["$ref"].is_null() && !matches!(kind(option), "object" | "array");
    let plainest = (depth > SHALLOW).then(|| options.iter().find(plain)).flatten();
    plainest.or(options.first()).unwrap_or(&Value::Null)
}

fn kind(schema: &Value) -> &str {
    let named = schema["type"].as_str().or_else(|| schema["type"][0].as_str());
    named.unwrap_or(if schema["properties"].is_object() {
        "object"
    } else if schema["items"].is_object() {
        "array"
    } else {
        "string"
    })
}

/// `allOf` as one schema: properties and required names add up, other keys of later parts win.
fn merge(schema: &Value, parts: &[Value]) -> Value {
    let mut merged = schema.clone();
    if let Some(merged) = merged.as_object_mut() {
        merged.remove("allOf");
        for (key, value) in parts.iter().filter_map(Value::as_object).flatten() {
            match (merged.get_mut(key), value) {
                (Some(Value::Object(have)), Value::Object(more)) => have.extend(more.clone()),
                (Some(Value::Array(have)), Value::Array(more)) => have.extend(more.clone()),
                _ => drop(merged.insert(key.clone(), value.clone())),
            }
        }
    }
    merged
}

fn whole(schema: &Value) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "saturates, and a demo needs no more")]
    let bound = |key: &str, round: fn(f64) -> f64| schema[key].as_f64().map(|bound| round(bound) as i64);
    let low = bound("minimum", f64::ceil).or(bound("exclusiveMinimum", f64::floor).map(|low| low.saturating_add(1)));
    let high = bound("maximum", f64::floor).or(bound("exclusiveMaximum", f64::ceil).map(|high| high.saturating_sub(1)));
    let step = bound("multipleOf", f64::ceil).filter(|step| *step > 0).unwrap_or(1);
    let value = 1.max(low.unwrap_or(1)).min(high.unwrap_or(i64::MAX)).max(low.unwrap_or(i64::MIN));
    let up = value.saturating_add(step - 1).div_euclid(step).saturating_mul(step);
    if high.is_some_and(|high| up > high) { value.div_euclid(step).saturating_mul(step) } else { up }
}

fn number(schema: &Value) -> Value {
    if let (Some(low), Some(high)) = (schema["exclusiveMinimum"].as_f64(), schema["exclusiveMaximum"].as_f64()) {
        return json!(f64::midpoint(low, high));
    }
    let low = schema["minimum"].as_f64().or(schema["exclusiveMinimum"].as_f64().map(|low| low + 0.5));
    let high = schema["maximum"].as_f64().or(schema["exclusiveMaximum"].as_f64().map(|high| high - 0.5));
    match (low, high) {
        (Some(low), Some(high)) if low > high => json!(low),
        _ if schema["multipleOf"].is_number() => json!(whole(schema)),
        (low, high) => json!(1_f64.max(low.unwrap_or(1.0)).min(high.unwrap_or(f64::MAX)).max(low.unwrap_or(f64::MIN))),
    }
}

/// About what a value takes.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(size).sum::<usize>() + 2,
        Value::Object(members) => members.iter().map(|(name, value)| name.len() + 4 + size(value)).sum::<usize>() + 2,
        _ => 4,
    }
}

fn string(schema: &Value, text: &str, room: usize) -> String {
    let sample = match schema["format"].as_str() {
        Some("date-time") => "2025-01-01T00:00:00Z",
        Some("date") => "2025-01-01",
        Some("time") => "00:00:00Z",
        Some("duration") => "P1D",
        Some("email") => "demo@example.com",
        Some("uri") => "https://example.com/",
        Some("uuid") => "00000000-0000-4000-8000-000000000000",
        Some("ipv4") => "192.0.2.1",
        Some("ipv6") => "2001:db8::1",
        Some("hostname") => "example.com",
        _ => text,
    };
    let bound = |key: &str| schema[key].as_u64().and_then(|bound| usize::try_from(bound).ok());
    let max = bound("maxLength").unwrap_or(usize::MAX);
    let min = bound("minLength").unwrap_or(0).min(10_000).min(room);
    let mut string: String = sample.chars().take(max).collect();
    let missing = min.saturating_sub(string.chars().count());
    string.extend(std::iter::repeat_n('x', missing));
    string
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
