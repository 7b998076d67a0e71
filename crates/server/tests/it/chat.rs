//! What providers say, in their usual shapes.

use serde_json::{Value, json};
use testkit::Script;

pub(crate) fn chunk(delta: &Value, finish_reason: Option<&str>) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
    })
}

pub(crate) fn text(text: &str) -> Value {
    chunk(&json!({"content": text}), None)
}

pub(crate) fn stop() -> Value {
    chunk(&json!({}), Some("stop"))
}

pub(crate) fn usage() -> Value {
    json!({"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7})
}

/// `Hello` in two deltas, the end, the usage.
pub(crate) fn chunks() -> Vec<Value> {
    let last = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": usage()});
    vec![chunk(&json!({"role": "assistant", "content": ""}), None), text("Hel"), text("lo"), stop(), last]
}

/// The same as a body.
pub(crate) fn bytes() -> String {
    let events: Vec<String> = chunks().iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    events.concat() + "data: [DONE]\n\n"
}

/// The same answer in one piece.
pub(crate) fn completion() -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1_700_000_000, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}],
        "usage": usage(),
    })
}

/// Answers as it is asked: streamed or not.
pub(crate) fn answer(stream: bool) -> Script {
    if stream { Script::sse(&chunks()) } else { Script::json(200, &completion()) }
}
