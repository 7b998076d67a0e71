//! A chat request as one of the Messages API. What is no word of a chat request, such as `thinking`, goes as it is.

use bridge::{RequestRules, ThoughtDisplay};
use serde_json::{Map, Value, json};

use super::{data_url, object};
use crate::bodies::media;

/// The member of an assistant's message that has its blocks as they came.
pub(super) const BLOCKS: &str = "blocks";

/// The room for an answer beside a budget for thoughts.
const BESIDE_BUDGET: u64 = 512;

pub(super) fn lower(rules: &RequestRules, mut body: Map<String, Value>) -> Map<String, Value> {
    let mut out = Map::new();
    let mut output = object(&mut body, "output_config");
    let choice = choice(body.remove("tool_choice"), body.remove("parallel_tool_calls").as_ref());
    for (name, value) in body {
        match name.as_str() {
            "model" if rules.blocks.model_in_path => {}
            "max_completion_tokens" => drop(out.insert("max_tokens".to_owned(), value)),
            "messages" => turns(value, &mut out),
            "tools" => drop(out.insert(name, tools(&value))),
            "response_format" => {
                let format = json!({"type": "json_schema", "schema": value["json_schema"]["schema"]});
                output.insert("format".to_owned(), format);
            }
            "reasoning_effort" => drop(output.insert("effort".to_owned(), value)),
            "reasoning" => drop(output.insert("effort".to_owned(), value["effort"].clone())),
            "stop" => drop(out.insert("stop_sequences".to_owned(), value)),
            "user" => drop(out.insert("metadata".to_owned(), json!({"user_id": value}))),
            "stream_options" => {}
            _ => drop(out.insert(name, value)),
        }
    }
    if let Some(choice) = choice.filter(|_| out.contains_key("tools")) {
        out.insert("tool_choice".to_owned(), choice);
    }
    if !output.is_empty() {
        out.insert("output_config".to_owned(), Value::Object(output));
    }
    thinking(rules, &mut out);
    out
}

/// A budget is part of the limit, a model that has one is sampled in its own way, and what is thought is to be seen.
fn thinking(rules: &RequestRules, out: &mut Map<String, Value>) {
    if out.get("thinking").is_some_and(|thinking| thinking["type"] == "enabled") {
        out.remove("temperature");
    }
    let limit = out.get("max_tokens").and_then(Value::as_u64).unwrap_or(BESIDE_BUDGET);
    let mut least = limit;
    if let Some(Value::Object(thinking)) = out.get_mut("thinking") {
        if let Some(budget) = thinking.get("budget_tokens").and_then(Value::as_u64) {
            least = limit.max(budget + BESIDE_BUDGET);
        }
        let thinks = thinking.get("type").is_some_and(|kind| kind == "adaptive" || kind == "enabled");
        if thinks && rules.blocks.display != ThoughtDisplay::Unsaid {
            thinking.insert("display".to_owned(), json!("summarized"));
        }
    }
    out.insert("max_tokens".to_owned(), json!(least));
}

fn choice(choice: Option<Value>, parallel: Option<&Value>) -> Option<Value> {
    let mut out = match choice {
        Some(Value::String(word)) if word == "required" => json!({"type": "any"}),
        Some(Value::String(word)) => json!({"type": word}),
        Some(Value::Object(named)) => json!({"type": "tool", "name": named["function"]["name"]}),
        _ if parallel.is_some() => json!({"type": "auto"}),
        _ => return None,
    };
    if let Some(Value::Bool(parallel)) = parallel {
        out["disable_parallel_tool_use"] = json!(!parallel);
    }
    Some(out)
}

fn tools(tools: &Value) -> Value {
    let tool = |tool: &Value| {
        let function = &tool["function"];
        let mut out = json!({
            "name": function["name"], "description": function["description"], "input_schema": function["parameters"],
        });
        if let Some(strict) = function.get("strict") {
            out["strict"] = strict.clone();
        }
        out
    };
    tools.as_array().into_iter().flatten().map(tool).collect()
}

/// Messages as turns of blocks; instructions before them are the system's.
fn turns(messages: Value, out: &mut Map<String, Value>) {
    let Value::Array(messages) = messages else {
        // A mistake is to arrive as one.
        out.insert("messages".to_owned(), messages);
        return;
    };
    let mut turns: Vec<Value> = Vec::new();
    for message in messages {
        let (role, content) = match message["role"].as_str() {
            Some("system") if turns.is_empty() => {
                out.insert("system".to_owned(), Value::Array(blocks(&message["content"])));
                continue;
            }
            Some("tool") => ("user", vec![result(&message)]),
            Some("assistant") => ("assistant", said(&message)),
            Some("system") => ("system", blocks(&message["content"])),
            _ => ("user", blocks(&message["content"])),
        };
        match turns.last_mut().filter(|last| last["role"] == role) {
            Some(Value::Object(last)) => {
                if let Some(Value::Array(known)) = last.get_mut("content") {
                    known.extend(content);
                }
            }
            _ => turns.push(json!({"role": role, "content": content})),
        }
    }
    out.insert("messages".to_owned(), Value::Array(turns));
}

/// What the assistant said: as it came, where that is known.
fn said(message: &Value) -> Vec<Value> {
    if let Some(Value::Array(blocks)) = message.get(BLOCKS) {
        return blocks.clone();
    }
    let mut out = blocks(&message["content"]);
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    out.extend(calls.map(|call| {
        let function = &call["function"];
        let arguments = function["arguments"].as_str().unwrap_or_default();
        let input: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
        json!({"type": "tool_use", "id": call["id"], "name": function["name"], "input": input})
    }));
    out
}

fn result(message: &Value) -> Value {
    json!({"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": blocks(&message["content"])})
}

fn blocks(content: &Value) -> Vec<Value> {
    match content {
        Value::String(text) if !text.is_empty() => vec![json!({"type": "text", "text": text})],
        Value::Array(parts) => parts.iter().map(block).collect(),
        _ => Vec::new(),
    }
}

fn block(part: &Value) -> Value {
    match part["type"].as_str() {
        Some("image_url") => {
            let url = part["image_url"]["url"].as_str().unwrap_or_default();
            let source = match data_url(url) {
                Some((kind, data)) => json!({"type": "base64", "media_type": kind, "data": data}),
                None => json!({"type": "url", "url": url}),
            };
            json!({"type": "image", "source": source})
        }
        Some("file") => {
            let data = part["file"]["file_data"].as_str().and_then(data_url);
            let source = match data {
                Some(("text/plain", _)) => json!({"type": "text", "media_type": "text/plain", "data": media::LINE}),
                Some((kind, data)) => json!({"type": "base64", "media_type": kind, "data": data}),
                None => Value::Null,
            };
            json!({"type": "document", "source": source})
        }
        _ => part.clone(),
    }
}

#[cfg(test)]
mod tests {
    use bridge::BlockRules;

    use super::*;
    use crate::bodies::{self, Absent};

    fn lowered(body: Value) -> Value {
        let Value::Object(body) = body else { return Value::Null };
        let blocks = BlockRules { display: ThoughtDisplay::Asked, ..BlockRules::default() };
        Value::Object(lower(&RequestRules { blocks, ..RequestRules::default() }, body))
    }

    #[test]
    fn a_chat_request_is_a_messages_request() {
        let mut messages = vec![json!({"role": "system", "content": "Be brief."})];
        messages.extend(bodies::history(bodies::called(Absent::Null, "c1"), "c1"));
        messages.push(json!({"role": "user", "content": "And now?"}));
        let body = lowered(json!({
            "model": "m", "max_completion_tokens": 9, "messages": messages, "tools": bodies::tools(false),
            "tool_choice": "required", "parallel_tool_calls": false, "response_format": bodies::json_schema(),
            "reasoning_effort": "low", "stop": ["e"], "stream": true, "stream_options": {},
        }));
        assert_eq!(testkit::messages::check_request(&body), Ok(()), "{body:#}");
        assert_eq!(body["messages"].as_array().map(Vec::len), Some(3));
        assert_eq!(body["tool_choice"], json!({"type": "any", "disable_parallel_tool_use": true}));
        assert_eq!(
            (&body["output_config"]["effort"], &body["output_config"]["format"]["type"]),
            (&json!("low"), &json!("json_schema"))
        );
    }

    #[test]
    fn budgets_fit_and_thoughts_are_shown() {
        let body = lowered(json!({
            "model": "m", "max_tokens": 80, "messages": bodies::user("Hi."), "temperature": 0,
            "thinking": {"type": "enabled", "budget_tokens": 4096},
        }));
        assert_eq!(testkit::messages::check_request(&body), Ok(()), "{body:#}");
        assert_eq!((&body["max_tokens"], &body["thinking"]["display"]), (&json!(4608), &json!("summarized")));
        for messages in
            [media::picture(media::PNG), media::pdf(), media::text_file(), media::picture("https://e.com/a")]
        {
            let body = lowered(json!({"model": "m", "max_tokens": 80, "messages": messages}));
            assert_eq!(testkit::messages::check_request(&body), Ok(()), "{body:#}");
        }
        assert_eq!(lowered(json!({"messages": "not a list"}))["messages"], "not a list");
    }
}
