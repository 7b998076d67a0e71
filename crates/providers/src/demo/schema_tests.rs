use super::*;

#[test]
fn values_satisfy_their_schemas() {
    let node = json!({"type": "object", "properties": {"name": {"type": "string"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}, "required": ["name", "next"], "additionalProperties": false});
    let schemas = [
        json!({}),
        json!(true),
        json!({"type": "string", "minLength": 300, "maxLength": 301}),
        json!({"type": "string", "maxLength": 3}),
        json!({"type": ["integer", "null"], "minimum": 5, "maximum": 7}),
        json!({"type": "integer", "exclusiveMinimum": 5, "multipleOf": 4}),
        json!({"type": "integer", "maximum": -3}),
        json!({"type": "number", "minimum": 0, "maximum": 0.5}),
        json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.1}),
        json!({"type": "boolean"}),
        json!({"enum": ["red", "green"]}),
        json!({"const": {"a": 1}}),
        json!({"type": "array", "items": {"type": "integer"}, "minItems": 3}),
        json!({"type": "array", "items": {"type": "string"}, "maxItems": 0}),
        json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": false}),
        json!({"oneOf": [{"type": "null"}, {"type": "string"}]}),
        json!({"allOf": [{"properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"properties": {"b": {"type": "boolean"}}, "required": ["b"]}]}),
        json!({"type": "object", "properties": {"a": {"type": "string", "format": "date"}}, "required": ["a", "b"]}),
        json!({"$ref": "#/$defs/node", "$defs": {"node": node}}),
        json!({"type": "object", "properties": {"tree": {"$ref": "#/$defs/tree"}}, "$defs": {"tree": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}, "required": ["children"]}}}),
    ];
    for schema in schemas {
        let value = instance(&schema, "a prompt");
        let error = jsonschema::validate(&schema, &value).err().map(|error| error.to_string());
        assert_eq!(error, None, "{schema} {value}");
    }
}

#[test]
fn ends_on_schemas_that_do_not() {
    let wide: Map<String, Value> = (0..20).map(|n| (format!("p{n}"), json!({"$ref": "#"}))).collect();
    for schema in
        [json!({"$ref": "#"}), json!({"type": "object", "properties": wide}), json!({"anyOf": [{"$ref": "#"}]})]
    {
        assert!(instance(&schema, "").to_string().len() < 1_000_000);
    }
    // What is small in the schema and large in the value.
    let many = |item: Value| json!({"type": "array", "minItems": 1_000_000_000_u64, "items": {"type": "array", "minItems": 1_000_000_000_u64, "items": item}});
    for item in [
        json!({"type": "string", "minLength": 1_000_000_000_u64}),
        json!({"const": "x".repeat(100_000)}),
        json!({"enum": [vec![0; 50_000]]}),
        json!({"properties": {"x".repeat(100_000): {"type": "integer"}}}),
        json!({"required": ["x".repeat(100_000)]}),
        json!({"properties": {"a": {"const": 1}}, "required": vec!["a"; 100_000]}),
        json!({"allOf": [{"title": "x".repeat(100_000)}]}),
        json!({"prefixItems": vec![true; 50_000]}),
    ] {
        let size = instance(&many(item.clone()), "").to_string().len();
        assert!(size < 4 * MAX_BYTES, "{size} {}", &item.to_string()[..40]);
    }
    assert_eq!(arguments(&json!({"type": "string"})), "{}");
    assert_eq!(arguments(&Value::Null), "{}");
}
