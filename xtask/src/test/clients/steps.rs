//! A model that does what its user writes: a JSON array of rounds, each an array of steps. The round is the number of
//! answers that came since; after the last one it shows what it was sent. It calls no tool that it was not offered.
//!
//! | step | what it does |
//! |---|---|
//! | `{"say": TEXT}` | says it, in small pieces; `$results` in it is what the tools have answered since |
//! | `{"think": TEXT}` | thinks it |
//! | `{"call": NAME, "arguments": OBJECT or TEXT}` | calls a tool |
//! | `{"show": true}` | says the request that it was sent |

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::upstream::Step;

/// What is to be done, or why it cannot be.
pub(super) fn script(body: &str) -> Result<Vec<Step>, String> {
    let request: Value = serde_json::from_str(body).map_err(|error| format!("no JSON: {error}"))?;
    let messages = request["messages"].as_array().ok_or("no messages")?;
    let (at, rounds) = last_script(messages).ok_or("no message of the user is a script")?;
    let since = &messages[at + 1..];
    let round = since.iter().filter(|message| message["role"] == "assistant").count();
    let show = [json!({"show": true})];
    let steps = rounds.get(round).and_then(Value::as_array).map_or(show.as_slice(), Vec::as_slice);
    let results: Vec<String> = since.iter().filter(|message| message["role"] == "tool").map(text_of).collect();
    let calls = steps.iter().any(|step| step.get("call").is_some());
    let mut script = Vec::new();
    for step in steps.iter().filter(|step| step.get("call").is_none()) {
        script.extend(said(step, body, &results.join("\n"))?);
    }
    for (index, step) in steps.iter().filter(|step| step.get("call").is_some()).enumerate() {
        script.extend(called(index, step, &request)?);
    }
    script.push(Step::Stop(if calls { "tool_calls" } else { "stop" }));
    Ok(script)
}

/// A message may also be a picture that a tool has shown.
fn last_script(messages: &[Value]) -> Option<(usize, Vec<Value>)> {
    messages.iter().enumerate().rev().find_map(|(at, message)| {
        let text = (message["role"] == "user").then(|| text_of(message))?;
        let rounds: Vec<Value> = serde_json::from_str(&text).ok()?;
        rounds.iter().all(Value::is_array).then_some((at, rounds))
    })
}

fn text_of(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

fn said(step: &Value, body: &str, results: &str) -> Result<Vec<Step>, String> {
    let (member, text) = if let Some(text) = step["say"].as_str() {
        ("content", text.replace("$results", results))
    } else if let Some(text) = step["think"].as_str() {
        ("reasoning_content", text.to_owned())
    } else if step.get("show").is_some() {
        return Ok(vec![delta(&json!({"content": body}))]);
    } else {
        return Err(format!("no step: {step}"));
    };
    // Small pieces: links are cut wherever they can be.
    let characters: Vec<char> = text.chars().collect();
    Ok(characters.chunks(5).map(|piece| delta(&json!({member: piece.iter().collect::<String>()}))).collect())
}

/// In two pieces, as real ones come.
fn called(index: usize, step: &Value, request: &Value) -> Result<[Step; 2], String> {
    static MADE: AtomicU64 = AtomicU64::new(1);
    let name = step["call"].as_str().ok_or("no name")?;
    let tools = request["tools"].as_array().map_or(&[][..], Vec::as_slice);
    let offered: Vec<&str> = tools.iter().filter_map(|tool| tool["function"]["name"].as_str()).collect();
    if !offered.contains(&name) {
        return Err(format!("{name} is not offered, but {offered:?}"));
    }
    let arguments = match &step["arguments"] {
        Value::String(text) => text.clone(),
        object => object.to_string(),
    };
    let half = arguments.char_indices().nth(arguments.chars().count() / 2).map_or(0, |(at, _)| at);
    let id = format!("call_{}", MADE.fetch_add(1, Ordering::Relaxed));
    let first = json!({"index": index, "id": id, "type": "function",
        "function": {"name": name, "arguments": &arguments[..half]}});
    let second = json!({"index": index, "function": {"arguments": &arguments[half..]}});
    Ok([first, second].map(|call| delta(&json!({"tool_calls": [call]}))))
}

fn delta(delta: &Value) -> Step {
    Step::Delta(delta.to_string())
}
