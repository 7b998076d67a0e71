use serde_json::{Value, json};

use super::*;

fn verdict(schema: &Value, document: &Value, steps: u64) -> Verdict {
    let (schema, document) = (schema.to_string(), document.to_string());
    let schema = Schema::compile(Raw::parse(&schema).unwrap()).unwrap();
    schema.check(Raw::parse(&document).unwrap(), steps)
}

fn misfit(schema: &Value, document: &Value) -> Option<String> {
    match verdict(schema, document, 100_000) {
        Verdict::Fits => None,
        Verdict::Misfit { pointer, message } => Some(format!("{pointer}: {message}")),
        other => panic!("{other:?}"),
    }
}

fn nested(depth: usize, leaf: Value) -> Value {
    (0..depth).fold(leaf, |value, _| json!([value]))
}

#[test]
fn misfits_are_named_where_they_are() {
    let node = json!({"type": "object", "properties": {"value": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]}}, "required": ["value"], "additionalProperties": false});
    let list = json!({"$ref": "#/$defs/n", "$defs": {"n": node}});
    for (schema, document, expected) in [
        (&list, json!({"value": 1, "next": {"value": 2, "next": null}}), None),
        (&list, json!({"value": 1, "next": {"value": "x"}}), Some("/next/value: \"x\" is not of type integer")),
        (&list, json!({"value": 1, "next": 7}), Some("/next: 7 fits none of the 2 schemas of 'anyOf'")),
        (&list, json!({"next": null}), Some(": the property 'value' is missing")),
        (&list, json!({"value": 1, "extra": 2}), Some("/extra: nothing is allowed here")),
        (&json!({"enum": ["a", "b"]}), json!("c"), Some(": \"c\" is not one of a, b")),
        (&json!({"minimum": 5}), json!(4), Some(": 4 is less than the minimum (5)")),
        (&json!({"maxLength": 2}), json!("äöü"), Some(": \"äöü\" has more than 2 characters")),
        (&json!({"propertyNames": {"maxLength": 1}}), json!({"ab": 1}), Some(": \"ab\" has more than 1 characters")),
        (&json!({"maxItems": 1e308, "minItems": 0.0}), json!([1]), None),
        (
            &json!({"uniqueItems": true}),
            json!([{"a": 1, "b": 2}, {"b": 2.0, "a": 1}]),
            Some(": two of the items are the same"),
        ),
    ] {
        assert_eq!(misfit(schema, &document).as_deref(), expected, "{document}");
    }
    let long = misfit(&json!({"const": "y".repeat(9999)}), &json!("x".repeat(9999))).unwrap();
    assert!(long.len() < 500, "{}", long.len());
}

/// Twice the depth, about twice the steps.
#[test]
fn a_schema_that_refers_to_itself_twice_is_linear() {
    let items = json!({"type": "array", "items": {"$ref": "#"}});
    let schema = json!({"anyOf": [items, items, {"type": "integer"}]});
    let enough = |depth: usize| {
        (0..1000)
            .map(|steps| steps * 10)
            .find(|steps| verdict(&schema, &nested(depth, json!("x")), *steps) != Verdict::Spent)
    };
    let (once, twice) = (enough(26).unwrap(), enough(52).unwrap());
    assert!(once < 1000 && twice < once * 3, "{once} {twice}");
}

#[test]
fn what_is_too_much_is_not_decided() {
    let chain: serde_json::Map<String, Value> =
        (0..2000).map(|n| (format!("s{n}"), json!({"allOf": [{"$ref": format!("#/$defs/s{}", n + 1)}]}))).collect();
    let mut chain = json!({"$ref": "#/$defs/s0", "$defs": chain});
    chain["$defs"]["s2000"] = json!({});
    let wide: Vec<Value> = (0..200).map(|n| json!({"const": n.to_string()})).chain([json!(true)]).collect();
    let long: Vec<u32> = (0..10_000).collect();
    let huge: Vec<u32> = vec![0; MAX_NODES];
    let absent: serde_json::Map<String, Value> = (0..1000).map(|n| (n.to_string(), json!(true))).collect();
    let unknown = |why: &str| Verdict::Unknown(why.to_owned());
    for (schema, document, expected) in [
        (json!({"$ref": "#"}), json!(1), unknown("a reference in the schema leads to itself")),
        (json!({"anyOf": [{"$ref": "#"}, {}]}), json!(1), unknown("a reference in the schema leads to itself")),
        (chain, json!(1), unknown("the schema nests too deep")),
        (json!({"items": {"anyOf": wide}}), json!(long), Verdict::Spent),
        (json!({"items": {"pattern": "(a|b|ab)*c{50}"}}), json!(["ab".repeat(100_000)]), Verdict::Spent),
        (json!({"items": {"dependentSchemas": absent}}), json!(vec![json!({}); 2000]), Verdict::Spent),
        (json!({"items": {"dependencies": absent}}), json!(vec![json!({}); 2000]), Verdict::Spent),
        (json!({}), json!(huge), unknown("it is too large to be checked")),
    ] {
        assert_eq!(verdict(&schema, &document, 100_000), expected);
    }
}

/// As deep as it goes, on a thread like the runtime's.
#[test]
fn the_stack_is_deep_enough() {
    let schema = json!({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"oneOf": [{"patternProperties": {"x": {"anyOf": [{"not": {"not": {"$ref": "#/$defs/a"}}}, false]}}, "unevaluatedProperties": false}]}]}}});
    let document = (0..126).fold(json!({}), |value, _| json!({"x": value}));
    let small = std::thread::Builder::new().stack_size(3 << 19);
    let found = small.spawn(move || verdict(&schema, &document, u64::MAX)).unwrap().join().unwrap();
    assert_eq!(found, Verdict::Unknown("the schema nests too deep".to_owned()));
}

#[test]
fn patterns_that_cannot_run_are_not_guessed() {
    let ahead = json!({"pattern": "^(?=a)"});
    for (schema, document, decided) in [
        (ahead.clone(), json!("b"), false),
        (json!({"allOf": [ahead, {"type": "integer"}]}), json!("b"), true),
        (json!({"not": ahead}), json!("b"), false),
        (json!({"patternProperties": {"^(?!x)": {}}, "additionalProperties": false}), json!({"a": 1}), false),
        (json!({"patternProperties": {"^(?!x)": {}}, "unevaluatedProperties": false}), json!({"a": 1}), false),
    ] {
        let found = verdict(&schema, &document, 1000);
        assert_eq!(matches!(found, Verdict::Misfit { .. }), decided, "{schema} {found:?}");
        assert_eq!(matches!(found, Verdict::Unknown(_)), !decided, "{schema} {found:?}");
    }
}

#[test]
fn what_is_no_schema_is_refused() {
    for schema in [
        json!({"type": "nonsense"}),
        json!({"$ref": "https://example.com/schema"}),
        json!({"$ref": "#/$defs/missing"}),
        json!({"properties": {"a": 5}}),
        json!({"minLength": -1}),
        json!({"multipleOf": 0}),
        json!({"items": "x"}),
        json!(5),
    ] {
        let text = schema.to_string();
        assert!(Schema::compile(Raw::parse(&text).unwrap()).is_err(), "{text}");
    }
}
