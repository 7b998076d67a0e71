//! The same verdicts as the `jsonschema` crate, on schemas and documents of all sorts; and, where its folder is given
//! (`JSON_SCHEMA_TEST_SUITE`), on the official test suite.
#![cfg(test)]

use proptest::prelude::*;
use schema::{Schema, Verdict};
use serde_json::{Map, Value, json};
use wire::json::Raw;

fn ours(schema: &Value, document: &Value) -> Result<Verdict, schema::Unusable> {
    let (schema, document) = (schema.to_string(), document.to_string());
    let schema = Schema::compile(Raw::parse(&schema).unwrap())?;
    Ok(schema.check(Raw::parse(&document).unwrap(), 1_000_000))
}

fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-3..6_i64).prop_map(Value::from),
        prop_oneof![Just(json!(0.5)), Just(json!(1.0)), Just(json!(2.5)), Just(json!(1e10))],
        "[ab]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[abc]", inner, 0..4)
                .prop_map(|members| members.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

fn types() -> impl Strategy<Value = Value> {
    let name = || proptest::sample::select(vec!["null", "boolean", "object", "array", "number", "string", "integer"]);
    prop_oneof![
        name().prop_map(Value::from),
        proptest::sample::subsequence(vec!["null", "object", "array", "number", "string"], 1..4).prop_map(Value::from)
    ]
}

/// One keyword and its value. Where a schema speaks of a smaller part of the document, it may be a reference.
fn keyword(inner: BoxedStrategy<Value>) -> impl Strategy<Value = (&'static str, Value)> {
    let child =
        prop_oneof![3 => inner.clone(), 1 => Just(json!({"$ref": "#/$defs/x"})), 1 => Just(json!({"$ref": "#y"}))]
            .boxed();
    let list = |of: &BoxedStrategy<Value>| proptest::collection::vec(of.clone(), 1..4).prop_map(Value::from).boxed();
    let named = |of: &BoxedStrategy<Value>| {
        proptest::collection::btree_map("[abc]", of.clone(), 0..3)
            .prop_map(|members| Value::from(members.into_iter().collect::<Map<_, _>>()))
            .boxed()
    };
    let of = |name: &'static str, value: BoxedStrategy<Value>| value.prop_map(move |value| (name, value)).boxed();
    let number = || prop_oneof![(-2..5_i64).prop_map(Value::from), Just(json!(0.5)), Just(json!(1.5))].boxed();
    let count = || (0..4_u64).prop_map(Value::from).boxed();
    let names = || proptest::sample::subsequence(vec!["a", "b", "c"], 0..3).prop_map(Value::from).boxed();
    let pattern = || proptest::sample::select(vec!["^a", "b$", "^[ab]{2}$", "c|a"]);
    proptest::strategy::Union::new([
        of("type", types().boxed()),
        of("enum", proptest::collection::vec(document(), 1..4).prop_map(Value::from).boxed()),
        of("const", document().boxed()),
        of("minimum", number()),
        of("maximum", number()),
        of("exclusiveMinimum", number()),
        of("exclusiveMaximum", number()),
        of("multipleOf", prop_oneof![Just(json!(2)), Just(json!(0.5)), Just(json!(1.5))].boxed()),
        of("minLength", count()),
        of("maxLength", count()),
        of("minItems", count()),
        of("maxItems", count()),
        of("minProperties", count()),
        of("maxProperties", count()),
        of("pattern", pattern().prop_map(Value::from).boxed()),
        of("uniqueItems", any::<bool>().prop_map(Value::from).boxed()),
        of("required", names()),
        of("dependentRequired", names().prop_map(|names| json!({"a": names})).boxed()),
        of("dependentSchemas", named(&inner)),
        of("propertyNames", inner.clone()),
        of("properties", named(&child)),
        of("patternProperties", (pattern(), child.clone()).prop_map(|(name, schema)| json!({name: schema})).boxed()),
        of("additionalProperties", child.clone()),
        of("items", child.clone()),
        of("prefixItems", list(&child)),
        of("contains", child.clone()),
        of("minContains", count()),
        of("maxContains", count()),
        of("allOf", list(&inner)),
        of("anyOf", list(&inner)),
        of("oneOf", list(&inner)),
        of("not", inner.clone()),
        of("if", inner.clone()),
        of("then", inner.clone()),
        of("else", inner),
        of("unevaluatedItems", child.clone()),
        of("unevaluatedProperties", child),
        of("format", Just(json!("email")).boxed()),
    ])
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf =
        prop_oneof![4 => types().prop_map(|types| json!({"type": types})), 1 => any::<bool>().prop_map(Value::from)];
    let schema = leaf.prop_recursive(3, 24, 4, |inner| {
        proptest::collection::vec(keyword(inner.boxed()), 1..5).prop_map(|keywords| {
            keywords.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>().into()
        })
    });
    (schema.clone(), schema.clone(), schema).prop_map(|(root, x, y)| {
        let object = |schema: Value| if schema.is_object() { schema } else { json!({"not": {"not": schema}}) };
        let (mut root, mut y) = (object(root), object(y));
        y["$anchor"] = json!("y");
        root["$defs"] = json!({"x": x, "y": y});
        root
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, max_shrink_iters: 3000, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_another_validator(schema in schema(), documents in proptest::collection::vec(document(), 1..6)) {
        let other = jsonschema::options().offline().build(&schema);
        prop_assert!(other.is_ok(), "{schema}: {:?}", other.err());
        for document in &documents {
            let expected = if other.as_ref().unwrap().is_valid(document) { "fits" } else { "misfit" };
            let found = match ours(&schema, document) {
                Ok(Verdict::Fits) => "fits",
                Ok(Verdict::Misfit { .. }) => "misfit",
                _ => "unknown",
            };
            prop_assert_eq!(found, expected, "{} {}", schema, document);
        }
    }

    #[test]
    fn never_panics(schema in document(), document in document()) {
        let _ = ours(&schema, &document);
    }
}

/// Everything that is decided is decided as the suite says; what is refused or left open is counted. The folder is one
/// draft's; for the old ones the draft is named, as their documents do.
#[test]
#[ignore = "JSON_SCHEMA_TEST_SUITE is to name a folder of the official suite"]
fn agrees_with_the_official_suite() {
    let folder = std::path::PathBuf::from(std::env::var_os("JSON_SCHEMA_TEST_SUITE").unwrap());
    let draft = folder.file_name().unwrap().to_string_lossy().into_owned();
    let old = draft.strip_prefix("draft").filter(|number| number.len() == 1);
    let (mut agreed, mut open, mut wrong) = (0, Vec::new(), Vec::new());
    for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
        let stem = file.file_stem().unwrap().to_string_lossy().into_owned();
        // Drafts that a schema defines itself are not supported.
        if stem == "vocabulary" {
            continue;
        }
        let groups: Vec<Value> = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        for group in &groups {
            let mut schema = group["schema"].clone();
            if let (Some(old), Some(schema)) = (old, schema.as_object_mut()) {
                schema.insert("$schema".to_owned(), json!(format!("http://json-schema.org/draft-0{old}/schema#")));
            }
            for test in group["tests"].as_array().into_iter().flatten() {
                let name = format!("{stem}: {}: {}", group["description"], test["description"]);
                match ours(&schema, &test["data"]) {
                    Ok(Verdict::Fits) if test["valid"] == true => agreed += 1,
                    Ok(Verdict::Misfit { .. }) if test["valid"] == false => agreed += 1,
                    Ok(Verdict::Fits | Verdict::Misfit { .. }) => wrong.push(name),
                    other => open.push(format!("{name}: {other:?}")),
                }
            }
        }
    }
    let numbers = format!("{draft}: {agreed} agreed, {} open, {} wrong", open.len(), wrong.len());
    assert!(wrong.is_empty() && agreed > 5 * open.len(), "{numbers}\n{}\n{}", wrong.join("\n"), open.join("\n"));
}
