//! Schemas of tools that are none by the draft that Claude insists on: it refuses a request, and so every turn of a
//! conversation, because of a single one.

use proptest::prelude::*;
use serde_json::{Value, json};
use testkit::messages::check_for_model;
use wire::json::Raw;

use super::{named, plan_text};
use crate::run::{MEND, TransparentSeal};

const OPUS: &str = "anthropic/claude-opus-5-5";

/// The schema that is sent of a tool with this one, and whether it is said to be another.
fn sent_text(schema: &str) -> (String, bool) {
    let tool = format!(r#"{{"type":"function","name":"f","parameters":{schema}}}"#);
    let request = format!(r#"{{"model":"m","input":"Hi","tools":[{tool}]}}"#);
    let (planned, _) = plan_text(&request, &named(OPUS), MEND, &TransparentSeal).unwrap();
    assert_eq!(check_for_model("claude-opus-5-5", &planned.body), Ok(()), "{schema}");
    let body = Raw::parse(str::from_utf8(&planned.bytes).unwrap()).unwrap();
    let tool = body.get("tools").and_then(|tools| tools.elements().next()).unwrap();
    let sent = tool.get("input_schema").unwrap().as_str().to_owned();
    (sent, planned.has_note("bridge.tool.schema", "tools[0]"))
}

fn sent(schema: &Value) -> (Value, bool) {
    let (sent, is_other) = sent_text(&schema.to_string());
    (serde_json::from_str(&sent).unwrap(), is_other)
}

#[test]
fn what_that_draft_has_not_is_left_out_wherever_it_stands() {
    let property = |inner: Value| json!({"type": "object", "properties": {"p": inner}});
    let places: &[&dyn Fn(Value) -> Value] = &[
        &property,
        &|inner| property(json!({"properties": {"description": inner}})),
        &|inner| property(json!({"type": "array", "items": inner})),
        &|inner| property(json!({"prefixItems": [true, inner], "contains": {}})),
        &|inner| property(json!({"anyOf": [{"allOf": [{"anyOf": [inner]}]}, {}]})),
        &|inner| property(json!({"additionalProperties": inner, "propertyNames": {}})),
        &|inner| property(json!({"patternProperties": {"^a": inner}})),
        &|inner| property(json!({"dependentSchemas": {"a": inner}, "dependencies": {"a": ["b"]}})),
        &|inner| property(json!({"if": {}, "then": inner, "else": {"dependencies": {"a": {}}}})),
        &|inner| property(json!({"unevaluatedProperties": inner, "unevaluatedItems": {}})),
        &|inner| json!({"type": "object", "properties": {}, "$defs": {"pattern": inner}}),
        &|inner| json!({"type": "object", "properties": {}, "definitions": {"a": {"contentSchema": inner}}}),
    ];
    for (key, value) in [
        ("description", json!(null)),
        ("description", json!(5)),
        ("title", json!(null)),
        ("format", json!(null)),
        ("pattern", json!(null)),
        ("pattern", json!("^(?i)x\\Z")),
        ("pattern", json!("(?P<x>a)")),
        ("enum", json!(null)),
        ("minLength", json!(null)),
        ("maxLength", json!(null)),
        ("minItems", json!(-1)),
        ("anyOf", json!(null)),
        ("anyOf", json!([])),
        ("properties", json!(null)),
        ("$ref", json!(null)),
        ("minimum", json!(null)),
        ("readOnly", json!(null)),
        ("$comment", json!(null)),
        ("deprecated", json!("yes")),
        ("examples", json!("x")),
    ] {
        for (at, place) in places.iter().enumerate() {
            let mut bad = json!({"type": "string"});
            bad[key] = value.clone();
            assert_eq!(sent(&place(bad)), (place(json!({"type": "string"})), true), "{key} {value} {at}");
        }
        // As a value, or as a name, it is none.
        let free =
            json!({"enum": [{key: value}], "const": {key: value}, "default": {key: value}, "examples": [{key: value}]});
        let name = if key.starts_with('$') { "plain" } else { key };
        let good = json!({"type": "object", "properties": {name: free}});
        assert_eq!(sent(&good), (good, false), "{key} {value}");
    }
}

#[test]
fn what_is_rewritten_is_called_an_older_draft_no_more() {
    let old = "http://json-schema.org/draft-07/schema#";
    let new = "https://json-schema.org/draft/2020-12/schema";
    let schema = |draft: &str, inner: Value| json!({"$schema": draft, "type": "object", "properties": {"p": inner}});
    let tuple = || json!({"items": [{}]});
    for (draft, inner, kept) in
        [(old, tuple(), false), (old, json!({"items": {}}), true), (new, tuple(), true), (new, json!({}), true)]
    {
        let (sent, _) = sent(&schema(draft, inner.clone()));
        assert_eq!(sent.get("$schema").is_some(), kept, "{draft} {inner}");
    }
}

const WORDS: &[&str] = &[
    "$anchor",
    "$comment",
    "$defs",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveAnchor",
    "$recursiveRef",
    "$ref",
    "$schema",
    "$vocabulary",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "deprecated",
    "description",
    "else",
    "enum",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "nullable",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "readOnly",
    "required",
    "then",
    "title",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
    "writeOnly",
];

/// Those that mean much to others beside them; often enough to be repeated, too.
const OFTEN: &[&str] = &[
    "additionalItems",
    "additionalProperties",
    "allOf",
    "exclusiveMinimum",
    "if",
    "items",
    "minimum",
    "oneOf",
    "pattern",
    "patternProperties",
    "properties",
    "unevaluatedProperties",
    r"^a",
    r"\\Aa",
    r"(?i)a",
];

const LEAVES: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "-1",
    "2",
    "1.0",
    "0.5",
    "1e300",
    "1e-400",
    r#""""#,
    r#""a b""#,
    r#""a#b""#,
    r#""string""#,
    r#""file""#,
    r#""^a$""#,
    r#""\\Aa""#,
    r#""(?i)a""#,
    r#""*.txt""#,
    r#""a{2,1}""#,
    r#""[z-a]""#,
    "[]",
    "{}",
];

/// The text of anything, with keywords all over, some of them more than once.
fn anything() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(LEAVES).prop_map(str::to_owned);
    leaf.prop_recursive(5, 60, 5, |inner| {
        let name = prop_oneof![prop::sample::select(WORDS), prop::sample::select(OFTEN)];
        let members = prop::collection::vec((name, inner.clone()), 0..6);
        let list = prop::collection::vec(inner, 0..3).prop_map(|values| format!("[{}]", values.join(",")));
        let object = members.prop_map(|members| {
            let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
            format!("{{{}}}", members.join(","))
        });
        prop_oneof![3 => object, 1 => list]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever is declared, what is sent is a schema, and not much longer; and one that is, is sent as it is.
    #[test]
    fn anything_becomes_a_schema(inner in anything()) {
        let schema = format!(r#"{{"type":"object","properties":{{"p":{inner}}}}}"#);
        let (mended, is_other) = sent_text(&schema);
        prop_assert_eq!(is_other, mended != schema, "{} {}", schema, mended);
        prop_assert!(mended.len() <= 2 * schema.len(), "{} {}", schema, mended);
        prop_assert_eq!(sent_text(&mended), (mended.clone(), false), "{}", schema);
    }
}
