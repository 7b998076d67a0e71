//! Tools as OpenAI's models are shown them: a namespace of TypeScript types. The form is published for the gpt-oss models,
//! and what other models of theirs report fits it.

use std::collections::HashSet;
use std::fmt::Write;

use wire::json::{Kind, Raw, Text};

/// Schemas are rendered this deep; below it every type is `any`.
const DEEPEST: usize = 16;

/// None without a tool to show.
pub(crate) fn tools(tools: Raw<'_>) -> Option<String> {
    let mut out = String::from("namespace functions {\n\n");
    let empty = out.len();
    for tool in tools.elements() {
        one(&mut out, tool);
        // A provider with a Responses API of its own is sent namespaces as they are.
        tool.get("tools").into_iter().flat_map(Raw::elements).for_each(|inner| one(&mut out, inner));
    }
    (out.len() > empty).then(|| out + "} // namespace functions")
}

fn one(out: &mut String, tool: Raw<'_>) {
    let function = tool.get("function").or_else(|| tool.get("custom")).unwrap_or(tool);
    let member = |name: &str| function.get(name).and_then(Raw::text).map(Text::decode);
    let Some(name) = member("name") else { return };
    comment(out, member("description").as_deref());
    match function.get("parameters").filter(|schema| has_properties(*schema)) {
        Some(schema) => {
            let _ = write!(out, "type {name} = (_: ");
            object(out, schema, 0);
            out.push_str(") => any;\n\n");
        }
        None => {
            let _ = write!(out, "type {name} = () => any;\n\n");
        }
    }
    if let Some(grammar) = function.get("format") {
        out.push_str(grammar.as_str());
    }
}

fn has_properties(schema: Raw<'_>) -> bool {
    schema.get("properties").is_some_and(|properties| properties.fields().next().is_some())
}

fn comment(out: &mut String, text: Option<&str>) {
    for line in text.into_iter().flat_map(str::lines) {
        let _ = writeln!(out, "// {}", line.trim_end());
    }
}

fn object(out: &mut String, schema: Raw<'_>, depth: usize) {
    out.push_str("{\n");
    // A set: there may be as many names as properties.
    let required = schema.get("required").into_iter().flat_map(Raw::elements);
    let required: HashSet<&str> = required.filter_map(Raw::text).map(Text::escaped).collect();
    for (key, property) in schema.get("properties").into_iter().flat_map(Raw::fields) {
        comment(out, property.get("description").and_then(Raw::text).map(Text::decode).as_deref());
        let mark = if required.contains(key.escaped()) { "" } else { "?" };
        let _ = write!(out, "{}{mark}: ", key.decode());
        kind(out, property, depth + 1);
        out.push(',');
        if let Some(default) = property.get("default") {
            let _ = write!(out, " // default: {}", default.as_str());
        }
        out.push('\n');
    }
    out.push('}');
}

fn kind(out: &mut String, schema: Raw<'_>, depth: usize) {
    if depth > DEEPEST {
        out.push_str("any");
        return;
    }
    let union = schema.get("anyOf").or_else(|| schema.get("oneOf")).or_else(|| schema.get("allOf"));
    if let Some(union) = union {
        return joined(out, union.elements(), |out, one| kind(out, one, depth + 1));
    }
    if let Some(words) = schema.get("enum") {
        return joined(out, words.elements(), |out, word| out.push_str(word.as_str()));
    }
    match schema.get("type") {
        Some(types) if types.kind() == Kind::Array => {
            joined(out, types.elements(), |out, one| out.push_str(one.text().map_or("any", Text::escaped)));
        }
        Some(one) => match one.text().map_or("any", Text::escaped) {
            "object" if has_properties(schema) => object(out, schema, depth),
            "array" => {
                match schema.get("items") {
                    Some(items) => kind(out, items, depth + 1),
                    None => out.push_str("any"),
                }
                out.push_str("[]");
            }
            "integer" => out.push_str("number"),
            name => out.push_str(name),
        },
        None if has_properties(schema) => object(out, schema, depth),
        None => out.push_str("any"),
    }
}

fn joined<'a>(out: &mut String, all: impl Iterator<Item = Raw<'a>>, write: impl Fn(&mut String, Raw<'a>)) {
    for (index, one) in all.enumerate() {
        if index > 0 {
            out.push_str(" | ");
        }
        write(out, one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_shown_as_types() {
        let json = r#"[
            {"type":"function","function":{"name":"now"}},
            {"type":"function","function":{"name":"weather","description":"Gets it.\nNow.","parameters":{"type":"object",
             "properties":{"location":{"type":"string","description":"A city"},
                           "unit":{"type":"string","enum":["c","f"],"default":"c"},
                           "days":{"type":"array","items":{"type":["integer","null"]}},
                           "at":{"anyOf":[{"type":"object","properties":{"x":{"type":"number"}}},{"type":"null"}]}},
             "required":["location"]}}},
            {"type":"web_search"}]"#;
        let expected = "namespace functions {\n\ntype now = () => any;\n\n// Gets it.\n// Now.\ntype weather = (_: {\n\
            // A city\nlocation: string,\nunit?: \"c\" | \"f\", // default: \"c\"\ndays?: integer | null[],\n\
            at?: {\nx?: number,\n} | null,\n}) => any;\n\n} // namespace functions";
        assert_eq!(tools(Raw::parse(json).unwrap()).as_deref(), Some(expected));
        assert_eq!(tools(Raw::ours("[]")), None);
        assert_eq!(tools(Raw::ours(r#"[{"type":"web_search"}]"#)), None);
    }

    /// With a walk over all names for each property this would take minutes.
    #[test]
    fn as_many_names_as_properties_are_no_burden() {
        let names: Vec<String> = (0..100_000).map(|i| format!("\"p{i}\"")).collect();
        let properties: Vec<String> = names.iter().map(|name| format!("{name}:{{}}")).collect();
        let (names, properties) = (names.join(","), properties.join(","));
        let json = format!(r#"[{{"name":"f","parameters":{{"properties":{{{properties}}},"required":[{names}]}}}}]"#);
        assert!(!tools(Raw::parse(&json).unwrap()).unwrap().contains('?'));
    }

    #[test]
    fn a_deep_schema_ends_somewhere() {
        let deep = r#"{"type":"array","items":"#.repeat(100) + "{}" + &"}".repeat(100);
        let json = format!(r#"[{{"name":"f","parameters":{{"properties":{{"a":{deep}}}}}}}]"#);
        assert!(tools(Raw::parse(&json).unwrap()).unwrap().len() < 200);
    }
}
