//! How many schemas such a provider promises to keep to in one request: what it compiles of them has limits, over all of
//! them together, and a request that is above one is refused. The answer's schema has the first of it, then the tools in
//! their order.

use std::borrow::Cow;
use std::collections::BTreeSet;

use wire::chat::Json;
use wire::json::{Kind, Raw, Text};

use super::format;

/// So many tools may be strict.
const TOOLS: usize = 20;
/// So many places may be of several types, or one of several schemas.
const UNIONS: usize = 16;
/// So many properties need not be there.
const OPTIONAL: usize = 24;

/// What is promised so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Promises {
    tools: usize,
    unions: usize,
    optional: usize,
}

impl Promises {
    /// Whether a tool with this schema can be strict, too. If so, it is.
    pub(super) fn of_tool(&mut self, schema: &Json<'_>) -> bool {
        if self.tools >= TOOLS {
            return false;
        }
        let mut text = Vec::new();
        schema.write(&mut text);
        let Some(schema) = str::from_utf8(&text).ok().and_then(|text| Raw::parse(text).ok()) else { return false };
        let is_promised = format::is_within(schema) && self.have_room_for(schema);
        self.tools += usize::from(is_promised);
        is_promised
    }

    /// Whether this schema can be promised beside the others. If so, it is.
    pub(super) fn have_room_for(&mut self, schema: Raw<'_>) -> bool {
        let mut all = *self;
        all.add(schema);
        let fits = all.unions <= UNIONS && all.optional <= OPTIONAL;
        if fits {
            *self = all;
        }
        fits
    }

    fn add(&mut self, schema: Raw<'_>) {
        let is_list = |name: &str| schema.get(name).is_some_and(|value| value.kind() == Kind::Array);
        self.unions += usize::from(["type", "anyOf", "oneOf"].into_iter().any(is_list));
        let required = schema.get("required").into_iter().flat_map(Raw::elements).filter_map(Raw::text);
        let required: BTreeSet<Cow<'_, str>> = required.map(Text::decode).collect();
        for (key, value) in schema.fields() {
            match &*key.decode() {
                "properties" => value.fields().for_each(|(name, inner)| {
                    self.optional += usize::from(!required.contains(&name.decode()));
                    self.add(inner);
                }),
                "$defs" | "definitions" => value.fields().for_each(|(_, inner)| self.add(inner)),
                "anyOf" | "oneOf" | "allOf" | "prefixItems" => value.elements().for_each(|inner| self.add(inner)),
                "items" => self.add(value),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(properties: &[String], required: &str) -> String {
        let properties = properties.join(",");
        format!(
            r#"{{"type":"object","properties":{{{properties}}},"required":[{required}],"additionalProperties":false}}"#
        )
    }

    fn many(count: usize, inner: &str) -> Vec<String> {
        (0..count).map(|n| format!(r#""p{n}":{inner}"#)).collect()
    }

    #[test]
    fn what_is_compiled_has_limits() {
        let names = |count: usize| (0..count).map(|n| format!("\"p{n}\"")).collect::<Vec<_>>().join(",");
        let (nullable, either) = (r#"{"type":["string","null"]}"#, r#"{"anyOf":[{"type":"null"},{"type":"string"}]}"#);
        let deep = |count: usize| {
            let inner = object(&many(count, nullable), &names(count));
            let list = r##""a":{"type":"array","items":{"$ref":"#/$defs/B"}}"##.to_owned();
            object(&[list], "\"a\"").replacen('{', &format!(r#"{{"$defs":{{"B":{inner}}},"#), 1)
        };
        for (schema, fits) in [
            (object(&many(16, nullable), &names(16)), true),
            (object(&many(17, nullable), &names(17)), false),
            (object(&many(16, either), &names(16)), true),
            (object(&many(17, either), &names(17)), false),
            (deep(16), true),
            (deep(17), false),
            (object(&many(24, "{}"), ""), true),
            (object(&many(25, "{}"), ""), false),
            (object(&many(25, "{}"), "\"p3\""), true),
        ] {
            let schema = Raw::parse(&schema).unwrap();
            assert_eq!(Promises::default().have_room_for(schema), fits, "{schema:?}");
        }
    }

    /// What does not fit takes no room from those after it.
    #[test]
    fn all_schemas_share_them() {
        let unions = |count: usize| object(&many(count, r#"{"type":["string","null"]}"#), "");
        let mut promises = Promises::default();
        assert!(promises.have_room_for(Raw::parse(&unions(10)).unwrap()));
        let mut of_tool = |schema: String| promises.of_tool(&Json::Ours(schema.into_bytes()));
        assert!(!of_tool(unions(7)));
        assert!(of_tool(unions(6)));
        assert!(!of_tool(unions(1)));
        assert!((0..19).all(|_| of_tool(object(&[], ""))));
        assert!(!of_tool(object(&[], "")));
    }
}
