//! The scripted provider as a Messages API: a request of it becomes the chat request that scripts know, and what scripts
//! say becomes its events. It signs thoughts with all that was before them, and refuses them anywhere else.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;

use anyhow::Result;
use serde_json::{Value, json};

/// The request as chat, or what is wrong with it.
pub(super) fn to_chat(request: &Value) -> Result<Value, String> {
    let mut messages: Vec<Value> = Vec::new();
    let system = texts(&request["system"]);
    if !system.is_empty() {
        messages.push(json!({"role": "system", "content": system}));
    }
    let turns = request["messages"].as_array().ok_or("no messages")?;
    for (at, turn) in turns.iter().enumerate() {
        let role = turn["role"].as_str().unwrap_or_default();
        let blocks = turn["content"].as_array().ok_or_else(|| format!("messages.{at}: no blocks"))?;
        let of = |kind: &str| blocks.iter().filter(|block| block["type"] == kind).collect::<Vec<_>>();
        for (number, block) in blocks.iter().enumerate().filter(|(_, block)| block["type"] == "thinking") {
            if block["signature"] != signature(request, &turns[..at], &blocks[..number], &block["thinking"]) {
                return Err(format!("messages.{at}.content.{number}: Invalid signature in thinking block."));
            }
        }
        for result in of("tool_result") {
            let (id, content) = (&result["tool_use_id"], texts(&result["content"]));
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": content}));
        }
        let text = texts(&turn["content"]);
        if role == "assistant" {
            let mut message = json!({"role": role, "content": text});
            let calls: Vec<Value> = of("tool_use").into_iter().map(called).collect();
            if !calls.is_empty() {
                message["tool_calls"] = json!(calls);
            }
            messages.push(message);
        } else if !text.is_empty() {
            messages.push(json!({"role": role, "content": text}));
        }
    }
    let tools = request["tools"].as_array().map_or(&[][..], Vec::as_slice);
    let tools: Vec<Value> = tools.iter().map(|tool| json!({"function": {"name": tool["name"]}})).collect();
    Ok(json!({"model": request["model"], "messages": messages, "tools": tools}))
}

fn called(block: &Value) -> Value {
    let function = json!({"name": block["name"], "arguments": block["input"].to_string()});
    json!({"id": block["id"], "type": "function", "function": function})
}

/// The text of a string, or of blocks.
fn texts(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

fn signature(request: &Value, before: &[Value], blocks: &[Value], said: &Value) -> String {
    let mut all = json!([request["tools"], request["system"], before, blocks, said]);
    without_marks(&mut all);
    let mut hasher = DefaultHasher::new();
    all.to_string().hash(&mut hasher);
    format!("sig+{:016x}/==", hasher.finish())
}

/// Marks move from turn to turn.
fn without_marks(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.remove("cache_control");
            members.values_mut().for_each(without_marks);
        }
        Value::Array(elements) => elements.iter_mut().for_each(without_marks),
        _ => {}
    }
}

/// Writes the events of one answer.
pub(super) struct Events<W> {
    to: W,
    request: Value,
    /// The blocks so far; the last one is open.
    blocks: Vec<Value>,
}

impl<W: Write> Events<W> {
    pub(super) fn begin(to: W, request: Value) -> Result<Self> {
        let mut events = Self { to, request, blocks: Vec::new() };
        let usage = json!({"input_tokens": 5, "output_tokens": 1});
        let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": usage});
        events.send("message_start", json!({"message": message}))?;
        Ok(events)
    }

    /// A delta of a chat answer.
    pub(super) fn delta(&mut self, delta: &str) -> Result<()> {
        let delta: Value = serde_json::from_str(delta)?;
        if let Some(text) = delta["content"].as_str() {
            self.more("text", &json!({"type": "text", "text": ""}), "text", text, "text_delta")?;
        }
        if let Some(text) = delta["reasoning_content"].as_str() {
            let start = json!({"type": "thinking", "thinking": "", "signature": ""});
            self.more("thinking", &start, "thinking", text, "thinking_delta")?;
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            if let Some(id) = call["id"].as_str() {
                let start = json!({"type": "tool_use", "id": id, "name": call["function"]["name"], "input": {}});
                self.open(start)?;
            }
            let piece = call["function"]["arguments"].as_str().unwrap_or_default();
            let index = self.blocks.len() - 1;
            let delta = json!({"type": "input_json_delta", "partial_json": piece});
            self.send("content_block_delta", json!({"index": index, "delta": delta}))?;
        }
        Ok(())
    }

    pub(super) fn end(mut self, reason: &str) -> Result<()> {
        self.close()?;
        let reason = if reason == "tool_calls" { "tool_use" } else { "end_turn" };
        let delta = json!({"stop_reason": reason, "stop_sequence": null});
        self.send("message_delta", json!({"delta": delta, "usage": {"output_tokens": 7}}))?;
        self.send("message_stop", json!({}))
    }

    fn more(&mut self, kind: &str, start: &Value, member: &str, text: &str, delta: &str) -> Result<()> {
        if self.blocks.last().is_none_or(|block| block["type"] != kind) {
            self.open(start.clone())?;
        }
        let index = self.blocks.len() - 1;
        let so_far = self.blocks[index][member].as_str().unwrap_or_default().to_owned();
        self.blocks[index][member] = json!(so_far + text);
        let mut delta = json!({"type": delta});
        delta[member] = json!(text);
        self.send("content_block_delta", json!({"index": index, "delta": delta}))
    }

    fn open(&mut self, start: Value) -> Result<()> {
        self.close()?;
        self.send("content_block_start", json!({"index": self.blocks.len(), "content_block": start}))?;
        self.blocks.push(start);
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        let Some((block, before)) = self.blocks.split_last() else { return Ok(()) };
        let index = before.len();
        if block["type"] == "thinking" {
            let turns = self.request["messages"].as_array().map_or(&[][..], Vec::as_slice);
            let signature = signature(&self.request, turns, before, &block["thinking"]);
            let delta = json!({"type": "signature_delta", "signature": signature});
            self.blocks[index]["signature"] = delta["signature"].clone();
            self.send("content_block_delta", json!({"index": index, "delta": delta}))?;
        }
        self.send("content_block_stop", json!({"index": index}))
    }

    fn send(&mut self, name: &str, mut event: Value) -> Result<()> {
        event["type"] = json!(name);
        write!(self.to, "event: {name}\ndata: {event}\n\n")?;
        Ok(self.to.flush()?)
    }
}
