//! A scripted chat server that does everything right; tests change one thing of it.

use serde_json::{Value, json};
use testkit::{Received, Script};

/// What is done about a request before the model sees it.
pub(crate) type Quirk = fn(&Value) -> Option<Script>;
/// What is done to a good answer's message.
pub(crate) type Twist = fn(&Value, &mut Value);

pub(crate) fn no_quirk(_: &Value) -> Option<Script> {
    None
}

pub(crate) fn no_twist(_: &Value, _: &mut Value) {}

pub(crate) fn refuse(status: u16, message: &str) -> Script {
    Script::json(status, &json!({"error": {"message": message, "type": "invalid_request_error"}}))
}

pub(crate) fn answer(received: &Received, quirk: Quirk, twist: Twist) -> Script {
    let body = received.json();
    if let Some(script) = quirk(&body) {
        return script;
    }
    if received.path.ends_with("/models") {
        return Script::json(200, &json!({"object": "list", "data": [{"id": "m", "owned_by": "me"}]}));
    }
    if received.path.ends_with("/responses") {
        return crate::native::responses(&body);
    }
    if received.path.ends_with("/messages") {
        return refuse(404, "There is nothing here.");
    }
    if body["messages"].as_array().is_none_or(Vec::is_empty) {
        return refuse(400, "messages must be a list");
    }
    if body["model"] != "m" {
        return refuse(404, "The model does not exist");
    }
    let (mut message, finish) = said(&body);
    twist(&body, &mut message);
    if body["stream"] == true { streamed(&body, &message, finish) } else { whole(&message, finish) }
}

/// The message, and why it ended.
fn said(body: &Value) -> (Value, &'static str) {
    let prompt = prompt(body);
    let calls = calls(body, &prompt);
    if !calls.is_empty() {
        return (json!({"role": "assistant", "content": null, "tool_calls": calls}), "tool_calls");
    }
    let text = text(body, &prompt);
    let limit = ["max_tokens", "max_completion_tokens"].iter().find_map(|key| body[*key].as_u64());
    let words: Vec<&str> = text.split_inclusive(' ').collect();
    let most = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap());
    let finish = if words.len() > most { "length" } else { "stop" };
    let text: String = words.into_iter().take(most).collect();
    (json!({"role": "assistant", "content": text}), finish)
}

fn text(body: &Value, prompt: &str) -> String {
    let instructed = body["messages"][0]["content"].as_str().is_some_and(|text| text.contains("PELICAN"));
    match body["response_format"]["type"].as_str() {
        Some("json_schema") => return "{\"fruit\":\"zebra-47\"}".to_owned(),
        Some("json_object") => return "{\"fruit\":\"apple\"}".to_owned(),
        _ => {}
    }
    if instructed {
        return "PELICAN".to_owned();
    }
    if prompt.starts_with("Count") {
        return (1..=60).map(|number| number.to_string()).collect::<Vec<_>>().join(" ");
    }
    if prompt.starts_with("Which colour") {
        return "Red.".to_owned();
    }
    let text = "Hello there, how are you today?";
    let stop = body["stop"][0].as_str();
    stop.and_then(|stop| text.split(stop).next()).unwrap_or(text).to_owned()
}

/// The calls that the prompt or the choice asks for.
fn calls(body: &Value, prompt: &str) -> Vec<Value> {
    let choice = &body["tool_choice"];
    let forced = ["required", "any"].iter().any(|word| choice == word) || choice.is_object();
    let last_is_tool = body["messages"].as_array().unwrap().last().unwrap()["role"] == "tool";
    let wanted = prompt.contains("get_weather") && !last_is_tool;
    if body["tools"].is_null() || choice == "none" || body["response_format"].is_object() || !(forced || wanted) {
        return Vec::new();
    }
    let both = prompt.contains("London") && body["parallel_tool_calls"] != false;
    let cities: &[&str] = if both { &["Paris", "London"] } else { &["Paris"] };
    let call = |(index, city): (usize, &&str)| {
        let arguments = json!({"city": city}).to_string();
        json!({"index": index, "id": format!("call_{index}"), "type": "function", "function": {"name": "get_weather", "arguments": arguments}})
    };
    cities.iter().enumerate().map(call).collect()
}

/// The text of the last user message.
pub(crate) fn prompt(body: &Value) -> String {
    let users = body["messages"].as_array().into_iter().flatten().rev();
    let last = users.filter(|message| message["role"] == "user").map(|message| &message["content"]).next();
    match last {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts[0]["text"].as_str().unwrap_or_default().to_owned(),
        _ => String::new(),
    }
}

/// An answer with these words, whatever was asked.
pub(crate) fn say(text: &str) -> Script {
    whole(&json!({"role": "assistant", "content": text}), "stop")
}

fn usage() -> Value {
    json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15})
}

fn whole(message: &Value, finish: &str) -> Script {
    let choice = json!({"index": 0, "message": message, "finish_reason": finish});
    Script::json(200, &json!({"object": "chat.completion", "choices": [choice], "usage": usage()}))
}

fn chunk(delta: &Value, finish: &Value) -> Value {
    json!({"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

pub(crate) fn streamed(body: &Value, message: &Value, finish: &str) -> Script {
    let mut script = Script::event_stream().event(&chunk(&json!({"role": "assistant"}), &Value::Null));
    for field in ["reasoning_content", "content"] {
        for word in message[field].as_str().unwrap_or_default().split_inclusive(' ') {
            script = script.event(&chunk(&json!({field: word}), &Value::Null));
        }
    }
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        script = script.event(&chunk(&json!({"tool_calls": [call]}), &Value::Null));
    }
    script = script.event(&chunk(&json!({}), &json!(finish)));
    if body["stream_options"]["include_usage"] == true {
        script = script.event(&json!({"choices": [], "usage": usage()}));
    }
    script.done()
}
