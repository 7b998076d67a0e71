//! Items, messages, tools and parameters in a few words. All of it is others' text: it is cut and made visible by whoever
//! shows it.

use std::collections::HashMap;
use std::fmt::Write;

use serde_json::Value;

use crate::screen::Tone;

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
    "max_tool_calls",
    "reasoning.summary",
    "reasoning.generate_summary",
];

/// Parameters that have other names, or several, in what is sent, or that are asked for by saying nothing: without a note
/// they are done as asked.
const OTHERWISE: &[&str] = &[
    "max_output_tokens",
    "reasoning.effort",
    "text.format",
    "tool_choice",
    "parallel_tool_calls",
    "top_logprobs",
    "prompt_cache_key",
    "safety_identifier",
    "user",
    "stop",
];

/// These are no parameters.
const APART: &[&str] = &["model", "input", "tools", "instructions"];

pub(super) fn is_parameter(part: &str) -> bool {
    !part.contains('[') && !APART.contains(&part)
}

/// What a request says beside its items, tools and model.
pub(super) fn parameters(request: &Value) -> Vec<(String, &Value)> {
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

/// What became of a parameter of which nothing was noted.
pub(super) fn unnoted(plan: &Value, parameter: &str) -> (&'static str, Tone) {
    let is_own = OWN.contains(&parameter);
    let sent = plan["chat_request"].as_object();
    let is_native = plan["wire"] == "responses";
    let is_there = sent.is_some_and(|sent| {
        let (outer, inner) = parameter.split_once('.').unwrap_or((parameter, ""));
        let whole = sent.get(outer).filter(|_| is_native || inner.is_empty());
        let nested = whole.filter(|_| !inner.is_empty()).and_then(|whole| whole.get(inner));
        nested.is_some() || inner.is_empty() && whole.is_some() || !is_native && sent.contains_key(inner)
    });
    // godex says to each provider itself whether it is to stream or to store.
    let is_said = is_there && (!is_own || is_native && parameter.contains('.'));
    match sent {
        _ if is_said => ("sent", Tone::Good),
        _ if is_own => ("by godex", Tone::Faint),
        Some(_) if !OTHERWISE.contains(&parameter) => ("left out", Tone::Bad),
        _ => ("sent", Tone::Good),
    }
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
        "item_reference" => format!("item reference {}", text("id")),
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

    /// What was noted of a part, by the names that links have. Of a parameter in another, notes may have its own name alone.
    pub(super) fn notes(&self, part: &str) -> &[&'p Value] {
        let past = part.strip_prefix("past[").map(|rest| format!("history[{rest}"));
        let inner = || part.rsplit_once('.').and_then(|(_, inner)| self.notes.get(inner));
        self.notes.get(past.as_deref().unwrap_or(part)).or_else(inner).map_or(&[], Vec::as_slice)
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
            (item(&json!({"type": "item_reference", "id": "msg_1"})), "item reference msg_1"),
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
    fn a_parameter_is_only_said_to_be_sent_if_it_was() {
        let chat = json!({"wire": "chat", "chat_request": {"messages": [], "stream": true, "temperature": 0.5, "verbosity": "low"}});
        let native = json!({"wire": "responses", "chat_request": {"input": [], "store": false, "text": {"verbosity": "low"},
            "reasoning": {"summary": "auto"}}});
        let unplanned = json!({"wire": null, "chat_request": null});
        for (parameter, expected) in [
            ("temperature", ["sent", "left out", "sent"]),
            ("text.verbosity", ["sent", "sent", "sent"]),
            ("reasoning.summary", ["by godex", "sent", "by godex"]),
            ("reasoning.effort", ["sent", "sent", "sent"]),
            ("max_output_tokens", ["sent", "sent", "sent"]),
            ("service_tier", ["left out", "left out", "sent"]),
            ("text.strange", ["left out", "left out", "sent"]),
            ("stream", ["by godex", "by godex", "by godex"]),
            ("store", ["by godex", "by godex", "by godex"]),
        ] {
            let found = [&chat, &native, &unplanned].map(|plan| unnoted(plan, parameter).0);
            assert_eq!(found, expected, "{parameter}");
        }
        let plan = json!({"notes": [{"path": "verbosity", "action": "ignored"}]});
        assert_eq!(Outcomes::of(&plan).notes("text.verbosity").len(), 1);
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
