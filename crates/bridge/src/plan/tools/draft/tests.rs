//! What becomes of schemas, one by one.

use super::*;

#[test]
fn what_is_no_schema_of_that_draft_becomes_one() {
    for (schema, expected) in [
        // A list of places, with what comes after them.
        (r#"{"items":[{"type":"string"},{}]}"#, r#"{"prefixItems":[{"type":"string"},{}]}"#),
        (
            r#"{"a":1,"items":[{"type":"any"}, true],"additionalItems":false,"z":{"b" : 1}}"#,
            r#"{"a":1,"prefixItems":[{},true],"items":false,"z":{"b" : 1}}"#,
        ),
        (r#"{"additionalItems":{"type":"x"},"items":[{}]}"#, r#"{"items":{},"prefixItems":[{}]}"#),
        (r#"{"items":[{}],"additionalItems":null,"prefixItems":[]}"#, r#"{"prefixItems":[{}]}"#),
        (r#"{"items":[true,{}],"additionalItems":false,"prefixItems":[{}]}"#, r#"{"prefixItems":[{}]}"#),
        (r#"{"items":[],"additionalItems":{"type":"null"}}"#, r#"{"items":{"type":"null"}}"#),
        (r#"{"items":["string"]}"#, r#"{"prefixItems":[{}]}"#),
        // Limits that are excluded, in the older way.
        (r#"{"minimum":1.50,"exclusiveMinimum":true}"#, r#"{"exclusiveMinimum":1.50}"#),
        (r#"{"exclusiveMaximum":true,"maximum":9,"minimum":1}"#, r#"{"exclusiveMaximum":9,"minimum":1}"#),
        (r#"{"minimum":1,"exclusiveMinimum":false}"#, r#"{"minimum":1}"#),
        (r#"{"exclusiveMaximum":true}"#, "{}"),
        // Types that there are not.
        (r#"{"type":"any","description":"d"}"#, r#"{"description":"d"}"#),
        (r#"{"type":["string","string", "null"]}"#, r#"{"type":["string","null"]}"#),
        // It may have meant any.
        (r#"{"type":["string","float"]}"#, "{}"),
        (r#"{"type":["string",null]}"#, "{}"),
        (r#"{"type":["file"]}"#, "{}"),
        (r#"{"type":{"type":"string"}}"#, "{}"),
        // Names that are required are a list of names.
        (r#"{"properties":{"a":{"type":"string","required":true}}}"#, r#"{"properties":{"a":{"type":"string"}}}"#),
        (r#"{"required":["a","b","\u0061",1]}"#, r#"{"required":["a","b"]}"#),
        (r#"{"required":[1]}"#, r#"{"required":[]}"#),
        // Wherever schemas are.
        (r#"{"$defs":{"A":{"anyOf":[{"type":"x"},{}]}}}"#, r#"{"$defs":{"A":{"anyOf":[{},{}]}}}"#),
        (
            r#"{"additionalProperties":{"contains":{"then":{"propertyNames":{"type":"x"}}}}}"#,
            r#"{"additionalProperties":{"contains":{"then":{"propertyNames":{}}}}}"#,
        ),
        (r#"{"not":{"type":"x"},"if":{"type":"string"}}"#, r#"{"if":{"type":"string"}}"#),
        (r#"{"items":{"patternProperties":{"^a":null}}}"#, r#"{"items":{"patternProperties":{"^a":{}}}}"#),
        // Values that a keyword cannot have.
        (r#"{"description":null, "type": "string"}"#, r#"{"type":"string"}"#),
        (r#"{"title":1,"format":[],"$comment":{},"contentEncoding":true,"$ref":null}"#, "{}"),
        (
            r#"{"$id":"a#b","$anchor":"1","$dynamicAnchor":"a b","$vocabulary":{"a":1,"b":true}}"#,
            r#"{"$vocabulary":{"b":true}}"#,
        ),
        (r#"{"uniqueItems":null,"deprecated":"yes","readOnly":1,"writeOnly":[]}"#, "{}"),
        (r#"{"minimum":"1","maximum":null,"exclusiveMaximum":{},"multipleOf":0,"minItems":-1}"#, "{}"),
        (r#"{"minLength":null,"maxLength":1.5,"maxProperties":"2","minContains":1e400}"#, "{}"),
        (r#"{"enum":null,"examples":"x","required":null,"type":null}"#, "{}"),
        (r#"{"items":null,"if":null,"contains":1,"not":"x","additionalProperties":[]}"#, "{}"),
        (r#"{"anyOf":null,"allOf":[],"oneOf":{},"prefixItems":""}"#, "{}"),
        (r#"{"anyOf":[null,{"title":null}]}"#, r#"{"anyOf":[{},{}]}"#),
        (r#"{"properties":null,"$defs":[],"patternProperties":1,"dependentSchemas":true}"#, "{}"),
        (r#"{"dependentRequired":{"a":["b","b"],"c":null}}"#, r#"{"dependentRequired":{"a":["b"]}}"#),
        (r#"{"dependencies":{"a":[1],"b":{"title":0},"c":"d"}}"#, r#"{"dependencies":{"a":[],"b":{}}}"#),
        (r#"{"prefixItems":[],"items":[{"type":"null"}]}"#, r#"{"prefixItems":[{"type":"null"}]}"#),
        // Patterns of other languages; what they would have allowed is not forbidden.
        (r#"{"pattern":"^(?i)x\\Z","items":{"pattern":"*"}}"#, r#"{"items":{}}"#),
        (
            r#"{"patternProperties":{"\\Aa":{},"^b":{"title":null}},"additionalProperties":false}"#,
            r#"{"patternProperties":{"^b":{}}}"#,
        ),
        // What is mended is of the newer draft.
        (r#"{"$schema":"http://json-schema.org/draft-07/schema#","items":[{}]}"#, r#"{"prefixItems":[{}]}"#),
        (
            r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","title":null}"#,
            r#"{"$schema":"https://json-schema.org/draft/2020-12/schema"}"#,
        ),
    ] {
        let mended_once = mended(Raw::parse(schema).unwrap());
        assert_eq!(mended_once.as_deref(), Some(expected), "{schema}");
        assert_eq!(mended(Raw::parse(expected).unwrap()), None, "{expected}");
    }
}

#[test]
fn what_is_one_stays_as_it_is() {
    for schema in [
        "{}",
        "true",
        r#"{ "type" : ["string", "null"], "required":[], "exclusiveMinimum": 1, "minimum": 0 }"#,
        r#"{"items":{"type":"string"},"prefixItems":[{"type":"integer"}],"additionalItems":false}"#,
        // Properties with the names of keywords, and values that are no schemas.
        r#"{"properties":{"type":{},"required":{"type":"boolean"},"items":{"const":[1]},"exclusiveMinimum":true}}"#,
        r#"{"default":{"type":"any","required":true},"enum":[{"items":[]}],"const":{"type":"x"},"examples":[{"type":"x"}]}"#,
        r#"{"type":"\u0073tring"}"#,
        r#"{"minLength":2.0,"maxLength":0,"minItems":-0,"multipleOf":1e-3,"enum":[],"const":null,"default":null}"#,
        r##"{"$id":"https://a.b/c#","$anchor":"_a-1.b","$ref":"#/$defs/A B","$schema":"http://json-schema.org/draft-07/schema#"}"##,
        r#"{"properties":{"description":{"type":"null"},"pattern":true},"required":["enum"],"pattern":"^[^\\p{Cc}]+$"}"#,
        r#"{"if":{"pattern":"^a"},"then":false,"else":{ },"oneOf":[{},{"not":{}}],"unevaluatedProperties":false}"#,
        r#"{"contains":{},"minContains":0,"maxContains":1,"prefixItems":[{}],"items":false,"unevaluatedItems":false}"#,
        // Keywords of others.
        r#"{"nullable":null,"example":null,"id":5,"x-order":-1,"additionalItems":null}"#,
    ] {
        assert_eq!(mended(Raw::parse(schema).unwrap()), None, "{schema}");
    }
}

#[test]
fn a_name_counts_once_as_its_last_says() {
    for (schema, expected) in [
        (r#"{"type":"x","type":"string"}"#, r#"{"type":"string"}"#),
        (r#"{"type":"string","title":"t","\u0074ype":"x"}"#, r#"{"title":"t"}"#),
        (r#"{"a":1,"a":2,"b":{"c":1,"c":2}}"#, r#"{"a":2,"b":{"c":1,"c":2}}"#),
        (r#"{"properties":{"a":{"title":1},"b":true,"a":false}}"#, r#"{"properties":{"b":true,"a":false}}"#),
        (r#"{"items":[{}],"items":{},"additionalItems":false}"#, r#"{"items":{},"additionalItems":false}"#),
        (
            r#"{"items":{},"items":[{}],"additionalItems":1,"additionalItems":false}"#,
            r#"{"prefixItems":[{}],"items":false}"#,
        ),
        (r#"{"exclusiveMinimum":true,"exclusiveMinimum":1,"minimum":0}"#, r#"{"exclusiveMinimum":1,"minimum":0}"#),
        (r#"{"minimum":3,"exclusiveMinimum":true,"minimum":2}"#, r#"{"exclusiveMinimum":2}"#),
        // What does not count is no loss.
        (r#"{"oneOf":[{"pattern":"*","pattern":"a"},{}]}"#, r#"{"oneOf":[{"pattern":"a"},{}]}"#),
        (r#"{"dependentRequired":{"a":["x"],"a":["b","b"]}}"#, r#"{"dependentRequired":{"a":["b"]}}"#),
    ] {
        assert_eq!(mended(Raw::parse(schema).unwrap()).as_deref(), Some(expected), "{schema}");
    }
}

#[test]
fn what_is_left_out_forbids_nothing() {
    for (schema, expected) in [
        // A condition that fits more often.
        (
            r#"{"if":{"properties":{"a":{"pattern":"(?i)x"}}},"then":{"required":["b"]},"else":false,"title":"t"}"#,
            r#"{"title":"t"}"#,
        ),
        (r#"{"if":5,"then":false}"#, "{}"),
        (r#"{"if":{"properties":{"a":{}},"required":[1]},"then":{},"unevaluatedProperties":false}"#, "{}"),
        // The same in other words.
        (r#"{"if":{"title":null,"items":[{}]},"then":{"title":1}}"#, r#"{"if":{"prefixItems":[{}]},"then":{}}"#),
        (r#"{"not":{"minimum":1,"exclusiveMinimum":true,"enum":null}}"#, r#"{"not":{"exclusiveMinimum":1}}"#),
        (r#"{"oneOf":[{"enum":null,"type":"null"},{"description":1}]}"#, r#"{"oneOf":[{"type":"null"},{}]}"#),
        (r#"{"not":{"type":null}}"#, "{}"),
        // One of several.
        (r#"{"oneOf":[{"type":"file"},{"type":"string"}]}"#, r#"{"anyOf":[{},{"type":"string"}]}"#),
        (r#"{"oneOf":[null,{"type":"string"}],"anyOf":null}"#, r#"{"anyOf":[{},{"type":"string"}]}"#),
        (r#"{"anyOf":[true],"oneOf":[{"minimum":"1"},{}],"unevaluatedItems":false}"#, r#"{"anyOf":[true]}"#),
        (r#"{"oneOf":[{"items":{"pattern":"\\A"}},{}]}"#, r#"{"anyOf":[{"items":{}},{}]}"#),
        (r#"{"oneOf":5,"type":"null"}"#, r#"{"type":"null"}"#),
        // What a pattern allowed, at the same place.
        (
            r#"{"allOf":[{"patternProperties":{"\\Aa":{}}}],"unevaluatedProperties":false}"#,
            r#"{"allOf":[{"patternProperties":{}}]}"#,
        ),
        (
            r#"{"anyOf":[{"oneOf":[{"then":{"patternProperties":{"\\Aa":{}}}}]}],"unevaluatedProperties":{"type":"null"}}"#,
            r#"{"anyOf":[{"anyOf":[{"then":{"patternProperties":{}}}]}]}"#,
        ),
        (
            r#"{"dependentSchemas":{"a":{"patternProperties":{"\\Aa":{}},"additionalProperties":{}}},"unevaluatedProperties":false}"#,
            r#"{"dependentSchemas":{"a":{"patternProperties":{}}}}"#,
        ),
        (
            r#"{"patternProperties":{"\\Aa":{},"^b":{"patternProperties":{"\\Aa":{}}}},"unevaluatedProperties":false}"#,
            r#"{"patternProperties":{"^b":{"patternProperties":{}}}}"#,
        ),
        (r#"{"allOf":[{"contains":5}],"unevaluatedItems":false}"#, r#"{"allOf":[{}]}"#),
        (r#"{"properties":5,"additionalProperties":false}"#, "{}"),
        (r#"{"prefixItems":5,"items":false}"#, "{}"),
        // At another one.
        (
            r#"{"properties":{"a":{"patternProperties":{"\\Aa":{}}}},"unevaluatedProperties":false,"additionalProperties":false}"#,
            r#"{"properties":{"a":{"patternProperties":{}}},"unevaluatedProperties":false,"additionalProperties":false}"#,
        ),
        (
            r#"{"patternProperties":{"^a":{"patternProperties":{"\\Aa":{}}}},"additionalProperties":false}"#,
            r#"{"patternProperties":{"^a":{"patternProperties":{}}},"additionalProperties":false}"#,
        ),
        (
            r#"{"allOf":[{"pattern":"*"}],"unevaluatedProperties":false}"#,
            r#"{"allOf":[{}],"unevaluatedProperties":false}"#,
        ),
        (r#"{"properties":[],"additionalProperties":false}"#, r#"{"additionalProperties":false}"#),
        // So many that fit.
        (r#"{"contains":{"pattern":"*"},"minContains":2,"maxContains":3}"#, r#"{"contains":{},"minContains":2}"#),
        (r#"{"contains":{"type":"null"},"minContains":"0"}"#, "{}"),
        (r#"{"contains":{"title":1},"minContains":null,"maxContains":1}"#, r#"{"contains":{},"maxContains":1}"#),
        (r#"{"propertyNames":{"pattern":"\\Aa"},"minProperties":1}"#, r#"{"propertyNames":{},"minProperties":1}"#),
    ] {
        assert_eq!(mended(Raw::parse(schema).unwrap()).as_deref(), Some(expected), "{schema}");
        assert_eq!(mended(Raw::parse(expected).unwrap()), None, "{expected}");
    }
}

/// Neither names that are repeated nor depth multiply anything; what is read again for each level takes minutes here.
#[test]
fn no_schema_becomes_long_or_takes_long() {
    let nested = |levels: usize, begin: &str, inner: &str, end: &str| {
        format!("{}{inner}{}", begin.repeat(levels), end.repeat(levels))
    };
    let long = format!(r#"{{"description":"{}"}}"#, "x".repeat(20_000));
    let list = format!(r#"{{"title":null,"enum":[{}1]}}"#, "1,".repeat(1_000_000));
    for schema in [
        nested(60, r#"{"items":[],"items":[],"additionalItems":"#, "{}", "}"),
        nested(60, r#"{"properties":{"a":{},"a":"#, "{}", "}}"),
        format!(r#"{{{}"additionalItems":{long}}}"#, r#""items":[],"#.repeat(2000)),
        format!(r#"{{{}"minimum":{}}}"#, r#""exclusiveMinimum":true,"#.repeat(2000), "1".repeat(20_000)),
        nested(120, r#"{"items":"#, &list, "}"),
        nested(60, r#"{"anyOf":["#, &list, "]}"),
        nested(60, r#"{"properties":{"a":"#, &list, "}}"),
        format!(r#"{{"anyOf":[{}0]}}"#, "0,".repeat(1000)),
    ] {
        let mended = mended(Raw::parse(&schema).unwrap()).unwrap();
        assert!(mended.len() < 2 * schema.len(), "{} {}", schema.len(), &schema[..100]);
    }
}
