//! Everything beside tools and messages.

use serde_json::{Map, Value};

use super::{demand, object, only, words};

const KNOWN: &[&str] = &[
    "model",
    "max_tokens",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "stream",
    "metadata",
    "service_tier",
    "speed",
    "cache_control",
    "context_management",
    "container",
    "mcp_servers",
    "fallbacks",
    // Where the model is in the path.
    "anthropic_version",
    "anthropic_beta",
];

const EFFORTS: &[&str] = &["low", "medium", "high", "xhigh", "max"];

pub(super) fn check(body: &Map<String, Value>) -> Result<(), String> {
    only(body, KNOWN, "body")?;
    let named = body.get("model").and_then(Value::as_str).is_some_and(|model| !model.is_empty());
    demand(named || body.contains_key("anthropic_version"), || "model: required".to_owned())?;
    let limit = body.get("max_tokens").and_then(Value::as_u64).filter(|limit| *limit > 0);
    let limit = limit.ok_or_else(|| "max_tokens: required, at least 1".to_owned())?;
    sampling(body)?;
    let tier = body.get("service_tier");
    demand(tier.is_none_or(|tier| tier == "auto" || tier == "standard_only"), || format!("service_tier: {tier:?}"))?;
    if let Some(metadata) = body.get("metadata") {
        only(object(metadata, "metadata")?, &["user_id"], "metadata")?;
        words(metadata.get("user_id"), "metadata.user_id")?;
    }
    if let Some(stream) = body.get("stream") {
        demand(stream.is_boolean(), || format!("stream: {stream}"))?;
    }
    thinking(body, limit)?;
    output(body)
}

fn sampling(body: &Map<String, Value>) -> Result<(), String> {
    for name in ["temperature", "top_p"] {
        let value = body.get(name);
        let good = value.is_none_or(|value| value.as_f64().is_some_and(|value| (0.0..=1.0).contains(&value)));
        demand(good, || format!("{name}: {value:?} is not from 0 to 1"))?;
    }
    let both = body.contains_key("temperature") && body.contains_key("top_p");
    demand(!both, || "temperature and top_p cannot both be specified".to_owned())
}

fn thinking(body: &Map<String, Value>, limit: u64) -> Result<(), String> {
    let Some(thinking) = body.get("thinking") else { return Ok(()) };
    let members = object(thinking, "thinking")?;
    only(members, &["type", "budget_tokens", "display", "block_binding"], "thinking")?;
    let kind = thinking["type"].as_str().unwrap_or_default();
    demand(["enabled", "adaptive", "disabled", "between_tools"].contains(&kind), || {
        format!("thinking.type: {kind:?}")
    })?;
    let budget = members.get("budget_tokens");
    if kind == "enabled" {
        let budget = budget.and_then(Value::as_u64).unwrap_or_default();
        demand((1024..limit).contains(&budget), || {
            format!("thinking.budget_tokens: {budget} is not from 1024 to less than max_tokens {limit}")
        })?;
        let forced = body.get("tool_choice").is_some_and(|choice| choice["type"] == "any" || choice["type"] == "tool");
        demand(!forced, || "thinking may not be enabled when tool_choice forces tool use".to_owned())?;
    } else {
        demand(budget.is_none(), || "thinking.budget_tokens: extra inputs are not permitted".to_owned())?;
    }
    if matches!(kind, "enabled" | "adaptive") {
        let cool = body.get("temperature").is_some_and(|value| value.as_f64() != Some(1.0));
        demand(!cool, || "temperature may only be 1 when thinking is enabled or adaptive".to_owned())?;
    }
    let display = members.get("display");
    let shown = display.is_none_or(|display| kind != "disabled" && (display == "summarized" || display == "omitted"));
    demand(shown, || format!("thinking.display: {display:?} with {kind}"))
}

fn output(body: &Map<String, Value>) -> Result<(), String> {
    let Some(config) = body.get("output_config") else { return Ok(()) };
    only(object(config, "output_config")?, &["effort", "format"], "output_config")?;
    if let Some(effort) = config.get("effort") {
        let known = effort.as_str().is_some_and(|effort| EFFORTS.contains(&effort));
        demand(known, || format!("output_config.effort: {effort}"))?;
    }
    if let Some(format) = config.get("format") {
        only(object(format, "output_config.format")?, &["type", "schema"], "output_config.format")?;
        demand(format["type"] == "json_schema", || format!("output_config.format: {format}"))?;
        subset(&format["schema"], "output_config.format.schema")?;
    }
    Ok(())
}

/// The part of JSON Schema that a promised answer, or a strict tool, may use.
pub(super) fn subset(schema: &Value, at: &str) -> Result<(), String> {
    const REFUSED: &[&str] = &[
        "oneOf",
        "not",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "minItems",
        "maxItems",
        "uniqueItems",
        "minProperties",
        "maxProperties",
        "patternProperties",
        "if",
        "then",
        "else",
    ];
    let Some(members) = schema.as_object() else {
        return demand(schema.is_boolean(), || format!("{at}: no schema: {schema}"));
    };
    if let Some(refused) = members.keys().find(|key| REFUSED.contains(&key.as_str())) {
        return Err(format!("{at}: `{refused}` is not supported"));
    }
    if members.get("type").is_some_and(|kind| kind == "object") {
        let closed = members.get("additionalProperties") == Some(&Value::Bool(false));
        demand(closed, || format!("{at}: for an object, additionalProperties must be false"))?;
    }
    for (key, value) in members {
        match (key.as_str(), value) {
            ("properties" | "$defs" | "definitions", Value::Object(named)) => {
                named.iter().try_for_each(|(name, inner)| subset(inner, &format!("{at}.{name}")))?;
            }
            ("anyOf" | "allOf" | "prefixItems", Value::Array(inner)) => {
                inner.iter().try_for_each(|inner| subset(inner, &format!("{at}.{key}")))?;
            }
            ("items", inner) => subset(inner, &format!("{at}.items"))?,
            _ => {}
        }
    }
    Ok(())
}
