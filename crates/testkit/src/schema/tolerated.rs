//! Where we knowingly differ from the Open Responses schema, because `OpenAI`'s clients need it so. Each entry
//! takes out of a copy what that schema cannot say; the rest is validated.

use serde_json::{Value, json};

/// Open Responses names raw reasoning `response.reasoning.*`; the Node SDK throws on that name. Custom and
/// hosted tools have no events there at all.
const EVENTS: &[&str] = &[
    "response.reasoning_text.",
    "response.custom_tool_call_input.",
    "response.web_search_call.",
    "response.file_search_call.",
    "response.code_interpreter_call",
    "response.image_generation_call.",
    "response.mcp_",
    "response.shell_call_",
];

/// The item types that Open Responses knows; others should be `vendor:`-prefixed there, which no client reads.
const ITEMS: &[&str] = &["message", "function_call", "function_call_output", "reasoning", "compaction"];

/// The event as it should be validated; `None` when Open Responses cannot say such an event.
pub(super) fn event(name: &str, event: &Value) -> Option<Value> {
    if EVENTS.iter().any(|prefix| name.starts_with(prefix)) {
        return None;
    }
    if event.get("item").is_some_and(|item| !known_item(item)) {
        return None;
    }
    let mut event = event.clone();
    if let Some(inner) = event.get_mut("response") {
        *inner = response(inner);
    }
    Some(event)
}

pub(super) fn response(response: &Value) -> Value {
    let mut response = response.clone();
    if let Some(items) = response.get_mut("output").and_then(Value::as_array_mut) {
        items.retain(known_item);
    }
    // Only function tools, and only the choice of one, exist there.
    if let Some(tools) = response.get_mut("tools").and_then(Value::as_array_mut) {
        tools.retain(|tool| tool["type"] == "function");
    }
    let choice = &response["tool_choice"]["type"];
    if choice.is_string() && choice != "function" && choice != "allowed_tools" {
        response["tool_choice"] = json!("auto");
    }
    // An echoed json_schema format must have `schema: null` there, against the point of the echo.
    if let Some(schema) = response.pointer_mut("/text/format/schema") {
        *schema = Value::Null;
    }
    response
}

fn known_item(item: &Value) -> bool {
    item["type"].as_str().is_some_and(|kind| ITEMS.contains(&kind))
}
