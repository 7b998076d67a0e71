//! An answer of the Messages API, whole or as a stream, as a chat reply.

use serde_json::{Value, json};

use super::messages::BLOCKS;
use crate::reply::{Call, ChatReply, Usage, cached};

/// Stands for a thought that is not shown.
const HIDDEN: &str = "…";

/// Reads the documents of an answer: one message, or the events of one.
pub(super) fn read(documents: &[Value], said: &mut ChatReply) {
    match documents {
        [message] if message["type"] == "message" => whole(message, &[], said),
        events => {
            let mut message = Stream::default();
            for event in events {
                message.event(event, said);
            }
            let Stream { message, pieces } = message;
            whole(&message, &pieces, said);
        }
    }
}

/// A message that comes in events.
#[derive(Default)]
struct Stream {
    message: Value,
    /// In how many deltas each block came.
    pieces: Vec<usize>,
}

impl Stream {
    fn event(&mut self, event: &Value, said: &mut ChatReply) {
        match event["type"].as_str() {
            Some("message_start") => {
                self.message = event["message"].clone();
                self.message["content"] = json!([]);
            }
            Some("content_block_start") => {
                if let Some(Value::Array(blocks)) = self.message.get_mut("content") {
                    blocks.push(event["content_block"].clone());
                    self.pieces.push(0);
                }
            }
            Some("content_block_delta") => {
                if let Some(shape) = &mut said.stream {
                    shape.speaking += 1;
                }
                self.delta(&event["delta"]);
            }
            Some("message_delta") => {
                self.message["stop_reason"] = event["delta"]["stop_reason"].clone();
                for (name, count) in event["usage"].as_object().into_iter().flatten() {
                    if count.as_u64() != Some(0) && !count.is_null() {
                        self.message["usage"][name] = count.clone();
                    }
                }
            }
            Some("message_stop") => {
                if let Some(shape) = &mut said.stream {
                    shape.done = true;
                }
            }
            _ => {}
        }
    }

    /// Blocks come one after the other: a delta is of the last.
    fn delta(&mut self, delta: &Value) {
        let Some(Value::Array(blocks)) = self.message.get_mut("content") else { return };
        let (Some(block), Some(pieces)) = (blocks.last_mut(), self.pieces.last_mut()) else { return };
        let (name, piece) = match delta["type"].as_str() {
            Some("text_delta") => ("text", &delta["text"]),
            Some("thinking_delta") => ("thinking", &delta["thinking"]),
            Some("signature_delta") => ("signature", &delta["signature"]),
            // What was put together so far is a text until it is read as a whole.
            Some("input_json_delta") => ("input", &delta["partial_json"]),
            _ => return,
        };
        let piece = piece.as_str().unwrap_or_default();
        *pieces += usize::from(!piece.is_empty());
        let so_far = block[name].as_str().unwrap_or_default();
        if !(piece.is_empty() && name == "input") {
            block[name] = json!(format!("{so_far}{piece}"));
        }
    }
}

/// A whole message, whose blocks came in so many deltas.
fn whole(message: &Value, pieces: &[usize], said: &mut ChatReply) {
    let mut blocks: Vec<Value> = message["content"].as_array().cloned().unwrap_or_default();
    let mut calls = Vec::new();
    for (index, block) in blocks.iter_mut().enumerate() {
        match block["type"].as_str() {
            Some("text") => said.text.push_str(block["text"].as_str().unwrap_or_default()),
            Some("thinking" | "redacted_thinking") => {
                let shown = block["thinking"].as_str().filter(|text| !text.is_empty()).unwrap_or(HIDDEN);
                said.add_reasoning("thinking", shown);
            }
            Some("tool_use") => {
                if let Some(text) = block["input"].as_str() {
                    block["input"] = serde_json::from_str(text).unwrap_or_else(|_| json!({}));
                }
                let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
                let (id, name, arguments) = (text("id"), text("name"), block["input"].to_string());
                let function = json!({"name": name, "arguments": arguments});
                calls.push(json!({"id": id, "type": "function", "function": function}));
                let deltas = pieces.get(index).copied().unwrap_or(1).max(1);
                said.calls.push(Call { id, name, arguments, deltas, index: Some(index as u64) });
            }
            _ => {}
        }
    }
    said.finish = message["stop_reason"].as_str().map(|reason| {
        let chat = match reason {
            "max_tokens" => "length",
            "end_turn" | "stop_sequence" => "stop",
            "tool_use" => "tool_calls",
            other => other,
        };
        chat.to_owned()
    });
    said.usage = usage(&message["usage"]);
    said.message = json!({"role": "assistant", "content": said.text, "tool_calls": calls});
    said.message[BLOCKS] = Value::Array(blocks);
}

/// What was read from a cache, or written into it, is no part of `input_tokens` there.
fn usage(usage: &Value) -> Option<Usage> {
    let count = |name: &str| usage[name].as_u64();
    let stored = count("cache_read_input_tokens").unwrap_or(0) + count("cache_creation_input_tokens").unwrap_or(0);
    Some(Usage {
        input: count("input_tokens")? + stored,
        output: count("output_tokens").unwrap_or(0),
        reasoning: usage["output_tokens_details"]["thinking_tokens"].as_u64(),
        cached: cached(usage),
    })
}
