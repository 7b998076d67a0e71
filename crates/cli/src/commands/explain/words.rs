//! Items, messages, tools and parameters in a few words. All of it is others' text: it is cut and made visible by whoever
//! shows it.

use std::collections::HashMap;
use std::fmt::Write;

use serde_json::Value;

/// Parameters that godex itself answers for: no provider gets them.
const OWN: &[&str] = &[
    "store",
    "stream",
    "stream_options",
    "background",
    "previous_response_id",
    "conversation",
    "metadata",
    "client_metadata",
    "include",
    "context_management",
    "truncation",
];

/// What a request says beside its items, tools and model.
pub(super) fn parameters(request: &Value) -> Vec<(String, &Value)> {
    const APART: &[&str] = &["model", "input", "tools", "instructions"];
    let mut found = Vec::new();
    for (name, value) in request.as_object().into_iter().flatten() {
        if APART.contains(&name.as_str()) || value.is_null() {
            continue;
        }
        match value.as_object() {
            // These are made of parameters of their own.
            Some(members) if name == "reasoning" || name == "text" => {
                let inner = members.iter().filter(|(_, value)| !value.is_null());
                found.extend(inner.map(|(member, value)| (format!("{name}.{member}"), value)));
            }
            _ => found.push((name.clone(), value)),
        }
    }
    found
}

pub(super) fn is_own(parameter: &str) -> bool {
    OWN.contains(&parameter)
}

pub(super) fn value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(members) if members.contains_key("type") => {
            let name = members.get("name").and_then(Value::as_str).map(|name| format!(" {name}")).unwrap_or_default();
            format!("{}{name}", members.get("type").and_then(Value::as_str).unwrap_or_default())
        }
        other => other.to_string(),
    }
}

/// An item of the Responses API.
pub(super) fn item(item: &Value) -> String {
    let text = |name: &str| item[name].as_str().unwrap_or_default();
    match item["type"].as_str().unwrap_or("message") {
        "message" => format!("{} \"{}\"", text("role"), content(&item["content"])),
        "function_call" => format!("call {} {}", text("name"), text("arguments")),
        "custom_tool_call" => format!("call {} {}", text("name"), text("input")),
        "mcp_call" => format!("call {}.{} {}", text("server_label"), text("name"), text("arguments")),
        "reasoning" => {
            let said = [content(&item["summary"]), content(&item["content"])].concat();
            if said.is_empty() { "reasoning".to_owned() } else { format!("reasoning \"{said}\"") }
        }
        kind if kind.ends_with("_output") => format!("{} \"{}\"", kind.replace('_', " "), content(&item["output"])),
        kind => kind.replace('_', " "),
    }
}

/// The text of content of either API; what is no text by its kind.
pub(super) fn content(content: &Value) -> String {
    let part = |part: &Value| match part["text"].as_str().or(part["refusal"].as_str()) {
        Some(text) => text.to_owned(),
        None => format!("[{}]", part["type"].as_str().unwrap_or("…")),
    };
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(part).collect::<Vec<_>>().join(" "),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// What is at a place of the request that is sent: `messages[2]`, `tools[0]`, `input[1]`, `instructions`.
pub(super) fn sent(request: &Value, place: &str) -> String {
    let (list, index) = match place.split_once('[') {
        Some((list, rest)) => (list, rest.trim_end_matches(']').parse::<usize>().ok()),
        None => (place, None),
    };
    let found = match index {
        Some(index) => &request[list][index],
        None => &request[list],
    };
    match list {
        "messages" => message(found),
        "tools" => tool(found),
        "input" => item(found),
        _ => value(found),
    }
}

fn message(message: &Value) -> String {
    let mut out = message["role"].as_str().unwrap_or_default().to_owned();
    let said = content(&message["content"]);
    // Writing to a String cannot fail.
    if !said.is_empty() {
        let _ = write!(out, " \"{said}\"");
    }
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let called = if call["custom"].is_object() { &call["custom"] } else { &call["function"] };
        let with = called["arguments"].as_str().or(called["input"].as_str()).unwrap_or_default();
        let _ = write!(out, " call {} {with}", called["name"].as_str().unwrap_or_default());
    }
    for thought in ["reasoning_content", "reasoning", "reasoning_details"] {
        if message.get(thought).is_some_and(|value| !value.is_null()) {
            out.push_str(" + reasoning");
            break;
        }
    }
    out
}

/// A tool of either API.
pub(super) fn tool(tool: &Value) -> String {
    let kind = tool["type"].as_str().unwrap_or_default();
    let inner = &tool[kind];
    let name = [tool, inner].iter().find_map(|it| it["name"].as_str().or(it["server_label"].as_str()));
    name.map_or_else(|| kind.to_owned(), |name| format!("{kind} {name}"))
}

/// What became of each part of a request, found by its name: there may be many.
#[derive(Debug)]
pub(super) struct Outcomes<'p> {
    links: HashMap<&'p str, &'p Value>,
    /// By each beginning of the place that a note is about.
    notes: HashMap<&'p str, Vec<&'p Value>>,
}

impl<'p> Outcomes<'p> {
    pub(super) fn of(plan: &'p Value) -> Self {
        let mut links = HashMap::new();
        for link in plan["links"].as_array().into_iter().flatten() {
            links.entry(link["item"].as_str().unwrap_or_default()).or_insert(link);
        }
        let mut notes: HashMap<&str, Vec<&Value>> = HashMap::new();
        for note in plan["notes"].as_array().into_iter().flatten() {
            let path = note["path"].as_str().unwrap_or_default();
            let ends = path.char_indices().filter(|(_, c)| matches!(c, '.' | '[')).map(|(at, _)| at);
            for end in ends.chain([path.len()]) {
                notes.entry(path.get(..end).unwrap_or_default()).or_default().push(note);
            }
        }
        Self { links, notes }
    }

    /// What was noted of a part, by the names that links have.
    pub(super) fn notes(&self, part: &str) -> &[&'p Value] {
        let past = part.strip_prefix("past[").map(|rest| format!("history[{rest}"));
        self.notes.get(past.as_deref().unwrap_or(part)).map_or(&[], Vec::as_slice)
    }

    /// The link of a part.
    pub(super) fn link(&self, part: &str) -> Option<&'p Value> {
        self.links.get(part).copied()
    }
}

/// All parts that have links, each with what it is: the past, the input, the tools.
pub(super) fn parts(request: &Value, past: &Value) -> Vec<(String, String)> {
    let mut parts = Vec::new();
    if let Some(text) = request["instructions"].as_str() {
        parts.push(("instructions".to_owned(), format!("\"{text}\"")));
    }
    let list = |value: &Value, name: &str, say: fn(&Value) -> String| -> Vec<(String, String)> {
        let items = value.as_array().into_iter().flatten().enumerate();
        items.map(|(index, it)| (format!("{name}[{index}]"), say(it))).collect()
    };
    parts.extend(list(past, "past", item));
    match &request["input"] {
        Value::String(text) => parts.push(("input".to_owned(), format!("\"{text}\""))),
        items => parts.extend(list(items, "input", item)),
    }
    parts.extend(list(&request["tools"], "tools", tool));
    parts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn things_are_said_in_a_few_words() {
        for (found, expected) in [
            (item(&json!({"role": "user", "content": "Hi"})), "user \"Hi\""),
            (
                item(
                    &json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_image"}]}),
                ),
                "user \"a [input_image]\"",
            ),
            (item(&json!({"type": "function_call", "name": "f", "arguments": "{}"})), "call f {}"),
            (item(&json!({"type": "function_call_output", "output": "ok"})), "function call output \"ok\""),
            (item(&json!({"type": "web_search_call"})), "web search call"),
            (item(&json!(5)), " \"\""),
            (tool(&json!({"type": "function", "function": {"name": "f"}})), "function f"),
            (tool(&json!({"type": "function", "name": "g"})), "function g"),
            (tool(&json!({"type": "mcp", "server_label": "s"})), "mcp s"),
            (tool(&json!({"type": "web_search"})), "web_search"),
            (
                sent(
                    &json!({"messages": [{"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}]}),
                    "messages[0]",
                ),
                "assistant call f {}",
            ),
            (sent(&json!({"messages": []}), "messages[9]"), ""),
            (sent(&json!({"instructions": "Be."}), "instructions"), "Be."),
        ] {
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn notes_are_found_by_the_part_that_they_are_about() {
        let plan = json!({"notes": [{"path": "history[1].content[0]"}, {"path": "input[1]"}, {"path": "input[10]"}, {"path": "reasoning.effort"}]});
        for (part, expected) in
            [("past[1]", 1), ("input[1]", 1), ("input[0]", 0), ("reasoning.effort", 1), ("reasoning", 1)]
        {
            assert_eq!(Outcomes::of(&plan).notes(part).len(), expected, "{part}");
        }
    }
}
