//! Marks of the prompt cache: how many, on what, in which order.

use serde_json::{Map, Value};

use super::{demand, object, only};

pub(super) fn check(body: &Map<String, Value>) -> Result<(), String> {
    let mut found = Vec::new();
    // As the prompt is rendered.
    for name in ["tools", "system", "messages"] {
        collect(body.get(name).unwrap_or(&Value::Null), name, &mut found)?;
    }
    collect_automatic(body, &mut found)?;
    demand(found.len() <= 4, || format!("a maximum of 4 blocks with cache_control may be provided: {}", found.len()))?;
    let long_after_short = found.windows(2).any(|pair| pair[0] == "5m" && pair[1] == "1h");
    demand(!long_after_short, || "a ttl of 1h must not come after one of 5m".to_owned())
}

fn collect_automatic<'v>(body: &'v Map<String, Value>, found: &mut Vec<&'v str>) -> Result<(), String> {
    body.get("cache_control").map_or(Ok(()), |mark| lifetime(mark, "body").map(|ttl| found.push(ttl)))
}

/// Every mark inside of a value; what a tool's schema or a call's input says is no mark.
fn collect<'v>(value: &'v Value, at: &str, found: &mut Vec<&'v str>) -> Result<(), String> {
    match value {
        Value::Array(values) => values.iter().try_for_each(|value| collect(value, at, found)),
        Value::Object(members) => {
            collect(members.get("content").unwrap_or(&Value::Null), at, found)?;
            let Some(mark) = members.get("cache_control") else { return Ok(()) };
            let kind = members.get("type").and_then(Value::as_str).unwrap_or_default();
            demand(!matches!(kind, "thinking" | "redacted_thinking"), || format!("{at}: a mark on a thought"))?;
            found.push(lifetime(mark, at)?);
            Ok(())
        }
        _ => Ok(()),
    }
}

fn lifetime<'v>(mark: &'v Value, at: &str) -> Result<&'v str, String> {
    only(object(mark, at)?, &["type", "ttl"], at)?;
    demand(mark["type"] == "ephemeral", || format!("{at}: {mark}"))?;
    let ttl = mark.get("ttl").map_or(Some("5m"), Value::as_str).unwrap_or_default();
    demand(matches!(ttl, "5m" | "1h"), || format!("{at}: the ttl {ttl:?}"))?;
    Ok(ttl)
}
