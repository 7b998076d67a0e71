//! Whole blocks as the events of a stream.

use serde_json::{Value, json};

use super::cache::CacheUse;

/// A message with these blocks, piece by piece. `dropped`: how many thoughts of the request were left out.
pub fn events(number: usize, blocks: &[Value], stop_reason: &str, used: CacheUse, dropped: usize) -> Vec<Value> {
    let uncached = used.blocks.saturating_sub(used.read + used.written);
    let usage = json!({
        "input_tokens": uncached * 10 + 1, "cache_read_input_tokens": used.read * 10,
        "cache_creation_input_tokens": used.written * 10, "output_tokens": 1,
    });
    let change = |at| json!({"type": "thinking_dropped", "path": format!("thought {at}"), "reason": "prefix_mismatch"});
    let message = json!({
        "id": format!("msg_{number:024}"), "type": "message", "role": "assistant", "model": "simulated", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage,
        "input_transformations": (0..dropped).map(change).collect::<Vec<_>>(),
    });
    let mut events = vec![json!({"type": "message_start", "message": message}), json!({"type": "ping"})];
    for (index, block) in blocks.iter().enumerate() {
        let (start, deltas) = taken_apart(block);
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        let delta = |delta| json!({"type": "content_block_delta", "index": index, "delta": delta});
        events.extend(deltas.into_iter().map(delta));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let delta = json!({"stop_reason": stop_reason, "stop_sequence": null});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7 + blocks.len()}}));
    events.push(json!({"type": "message_stop"}));
    events
}

/// How a block begins, and what follows.
fn taken_apart(block: &Value) -> (Value, Vec<Value>) {
    let mut start = block.clone();
    let mut deltas = Vec::new();
    let mut pieces = |kind: &str, member: &str, text: &str| {
        for piece in text.chars().collect::<Vec<_>>().chunks(7) {
            let mut delta = json!({"type": kind});
            delta[member] = json!(piece.iter().collect::<String>());
            deltas.push(delta);
        }
    };
    let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
    match block["type"].as_str() {
        Some("text") => {
            pieces("text_delta", "text", &text("text"));
            start["text"] = json!("");
        }
        Some("thinking") => {
            pieces("thinking_delta", "thinking", &text("thinking"));
            deltas.push(json!({"type": "signature_delta", "signature": block["signature"]}));
            (start["thinking"], start["signature"]) = (json!(""), json!(""));
        }
        Some("tool_use" | "server_tool_use") => {
            deltas.push(json!({"type": "input_json_delta", "partial_json": ""}));
            let input = block["input"].to_string();
            for piece in input.chars().collect::<Vec<_>>().chunks(9).filter(|_| input != "{}") {
                let piece: String = piece.iter().collect();
                deltas.push(json!({"type": "input_json_delta", "partial_json": piece}));
            }
            start["input"] = json!({});
        }
        _ => {}
    }
    (start, deltas)
}
