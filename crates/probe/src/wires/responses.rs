//! A chat request as one of a Responses API, and its answer as a chat reply.

use serde_json::{Map, Value, json};

use super::object;
use crate::reply::{Call, ChatReply, Usage, cached};

pub(super) fn lower(mut body: Map<String, Value>) -> Map<String, Value> {
    let mut out = Map::from_iter([("store".to_owned(), json!(false))]);
    let mut reasoning = object(&mut body, "reasoning");
    for (name, value) in body {
        match name.as_str() {
            "max_tokens" | "max_completion_tokens" => drop(out.insert("max_output_tokens".to_owned(), value)),
            "messages" => drop(out.insert("input".to_owned(), items(value))),
            "tools" => drop(out.insert(name, tools(&value))),
            "tool_choice" if value.is_object() => {
                out.insert(name, json!({"type": "function", "name": value["function"]["name"]}));
            }
            "reasoning_effort" => drop(reasoning.insert("effort".to_owned(), value)),
            "stream_options" => {}
            _ => drop(out.insert(name, value)),
        }
    }
    if !reasoning.is_empty() {
        out.insert("reasoning".to_owned(), Value::Object(reasoning));
    }
    out
}

fn tools(tools: &Value) -> Value {
    let tool = |tool: &Value| {
        let mut out = tool["function"].clone();
        out["type"] = json!("function");
        out
    };
    tools.as_array().into_iter().flatten().map(tool).collect()
}

/// Messages with text, calls and results as items.
fn items(messages: Value) -> Value {
    let Value::Array(messages) = messages else { return messages };
    let mut items = Vec::new();
    for message in messages {
        if message["role"] == "tool" {
            let (id, output) = (&message["tool_call_id"], &message["content"]);
            items.push(json!({"type": "function_call_output", "call_id": id, "output": output}));
            continue;
        }
        if message["content"].as_str().is_some_and(|text| !text.is_empty()) {
            items.push(json!({"role": message["role"], "content": message["content"]}));
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let function = &call["function"];
            let (name, arguments) = (&function["name"], &function["arguments"]);
            items.push(json!({"type": "function_call", "call_id": call["id"], "name": name, "arguments": arguments}));
        }
    }
    Value::Array(items)
}

/// Reads the documents of an answer: one response, or the events of one, whose last has it whole.
pub(super) fn read(documents: &[Value], said: &mut ChatReply) {
    if let Some(shape) = &mut said.stream {
        let speaks = |event: &&Value| event["delta"].is_string();
        let is_end = |event: &Value| event["type"] == "response.completed" || event["type"] == "response.incomplete";
        shape.speaking = documents.iter().filter(speaks).count();
        shape.done = documents.last().is_some_and(is_end);
    }
    let whole = documents.iter().rev().find(|document| document["object"] == "response");
    let last = documents.iter().rev().map(|event| &event["response"]).find(|object| object["object"] == "response");
    let Some(response) = whole.or(last) else { return };
    for item in response["output"].as_array().into_iter().flatten() {
        let text = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
        match item["type"].as_str() {
            Some("message") => {
                let parts = item["content"].as_array().into_iter().flatten();
                said.text.extend(parts.filter_map(|part| part["text"].as_str()));
            }
            Some("function_call") => said.calls.push(Call {
                id: text("call_id"),
                name: text("name"),
                arguments: text("arguments"),
                deltas: 1,
                index: None,
            }),
            Some("reasoning") => said.add_reasoning("reasoning", "…"),
            _ => {}
        }
    }
    said.finish = match (response["status"].as_str(), response["incomplete_details"]["reason"].as_str()) {
        (Some("incomplete"), Some("max_output_tokens") | None) => Some("length".to_owned()),
        (Some("incomplete"), Some(reason)) => Some(reason.to_owned()),
        (Some("completed"), _) => Some("stop".to_owned()),
        _ => None,
    };
    said.usage = usage(&response["usage"]);
    said.message = response.clone();
}

fn usage(usage: &Value) -> Option<Usage> {
    Some(Usage {
        input: usage["input_tokens"].as_u64()?,
        output: usage["output_tokens"].as_u64().unwrap_or(0),
        reasoning: usage["output_tokens_details"]["reasoning_tokens"].as_u64(),
        cached: cached(usage),
    })
}
