//! Tools, and the choice among them.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::parameters::subset;
use super::{demand, is_name, object, only};

const FUNCTION: &[&str] =
    &["type", "name", "description", "input_schema", "strict", "eager_input_streaming", "cache_control"];

pub(super) fn check(body: &Map<String, Value>) -> Result<(), String> {
    let Some(tools) = body.get("tools") else {
        return demand(!body.contains_key("tool_choice"), || "tool_choice: may only be given with tools".to_owned());
    };
    let tools = tools.as_array().filter(|tools| !tools.is_empty()).ok_or_else(|| format!("tools: {tools}"))?;
    let mut names = BTreeSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let at = format!("tools[{index}]");
        let members = object(tool, &at)?;
        let name = tool["name"].as_str().unwrap_or_default();
        demand(is_name(name), || format!("{at}.name: {name:?}"))?;
        demand(names.insert(name), || format!("{at}.name: {name:?} is not unique"))?;
        if members.get("type").is_none_or(|kind| kind == "custom") {
            function(members, &at)?;
        }
    }
    match body.get("tool_choice") {
        Some(choice) => chosen(choice, &names),
        None => Ok(()),
    }
}

fn function(tool: &Map<String, Value>, at: &str) -> Result<(), String> {
    only(tool, FUNCTION, at)?;
    let description = tool.get("description");
    demand(description.is_none_or(Value::is_string), || format!("{at}.description: {description:?}"))?;
    let schema = tool.get("input_schema").ok_or_else(|| format!("{at}.input_schema: required"))?;
    let members = object(schema, &format!("{at}.input_schema"))?;
    demand(schema["type"] == "object", || format!("{at}.input_schema.type: {}", schema["type"]))?;
    let union = ["oneOf", "anyOf", "allOf"].iter().find(|key| members.contains_key(**key));
    demand(union.is_none(), || format!("{at}.input_schema: no {union:?} at the root"))?;
    match tool.get("strict") {
        None | Some(Value::Bool(false)) => Ok(()),
        Some(Value::Bool(true)) => subset(schema, &format!("{at}.input_schema")),
        Some(other) => Err(format!("{at}.strict: {other}")),
    }
}

/// What only Claude insists on: each schema is one by draft 2020-12, and names of properties are usual ones.
pub(super) fn check_schemas(body: &Value) -> Result<(), String> {
    for (index, tool) in body["tools"].as_array().into_iter().flatten().enumerate() {
        let Some(schema) = tool.get("input_schema") else { continue };
        let at = format!("tools.{index}.custom.input_schema");
        let names = schema["properties"].as_object().into_iter().flat_map(Map::keys);
        let is_taken = |name: &str| {
            let usual = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
            (1..=64).contains(&name.len()) && name.chars().all(usual)
        };
        let odd = names.map(String::as_str).find(|name| !is_taken(name));
        demand(odd.is_none(), || format!("{at}.properties: Property keys should match pattern: {odd:?}"))?;
        jsonschema::draft202012::meta::validate(schema).map_err(|error| {
            format!("{at}: JSON schema is invalid. It must match JSON Schema draft 2020-12: {error}")
        })?;
    }
    Ok(())
}

fn chosen(choice: &Value, names: &BTreeSet<&str>) -> Result<(), String> {
    only(object(choice, "tool_choice")?, &["type", "name", "disable_parallel_tool_use"], "tool_choice")?;
    let name = choice.get("name").and_then(Value::as_str);
    let kind = choice["type"].as_str().unwrap_or_default();
    let good = match kind {
        "auto" | "any" | "none" => name.is_none(),
        "tool" => name.is_some_and(|name| names.contains(name)),
        _ => false,
    };
    demand(good, || format!("tool_choice: {choice}"))?;
    match choice.get("disable_parallel_tool_use") {
        None => Ok(()),
        Some(value) => demand(value.is_boolean() && kind != "none", || format!("tool_choice: {choice}")),
    }
}
