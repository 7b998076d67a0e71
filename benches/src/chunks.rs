//! What the fake upstream answers: a chat completion, or its chunks, each of the size that providers send.

use bytes::Bytes;
use serde_json::{Value, json};

/// The last word of every answer: who has seen it has seen all of it.
pub(crate) const LAST_WORD: &str = "finis.";

/// A whole answer of about 700 bytes.
pub(crate) fn completion() -> Bytes {
    let text = format!("{}{LAST_WORD}", "The quick brown fox jumps over the lazy dog. ".repeat(6));
    let mut body = envelope("chat.completion");
    body["choices"] = json!([{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]);
    body["usage"] = usage();
    body.to_string().into()
}

/// A whole answer that calls this function.
pub(crate) fn tool_call(function: &str) -> Bytes {
    let function = json!({"name": function, "arguments": "{\"city\":\"Paris\"}"});
    let calls = json!([{"id": "call_1", "type": "function", "function": function}]);
    let mut body = envelope("chat.completion");
    body["choices"] = json!([{"index": 0, "finish_reason": "tool_calls",
        "message": {"role": "assistant", "content": null, "tool_calls": calls}}]);
    body["usage"] = usage();
    body.to_string().into()
}

/// `words` content chunks of about 380 bytes, between the role and the usage; then `[DONE]`.
pub(crate) fn stream(words: usize) -> Vec<Bytes> {
    whole((1..words).map(|number| event(&json!({"content": format!(" word{number}")}), None)))
}

/// The same words as the events of a Messages API, each of the size that they have there.
pub(crate) fn messages(words: usize) -> Vec<Bytes> {
    let event = |name: &str, mut members: Value| {
        members["type"] = json!(name);
        Bytes::from(format!("event: {name}\ndata: {members}\n\n"))
    };
    let usage = json!({"input_tokens": 120, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0, "output_tokens": 1});
    let message = json!({"id": "msg_01XFDUDYJgAACzvnptvVoYEL", "type": "message", "role": "assistant", "content": [],
        "model": "bench-model-2026-11-01", "stop_reason": null, "stop_sequence": null, "usage": usage});
    let delta =
        |text: String| event("content_block_delta", json!({"index": 0, "delta": {"type": "text_delta", "text": text}}));
    let start = event("content_block_start", json!({"index": 0, "content_block": {"type": "text", "text": ""}}));
    let mut events = vec![event("message_start", json!({"message": message})), start, event("ping", json!({}))];
    events.extend((1..words).map(|number| delta(format!(" word{number}"))));
    events.push(delta(format!(" {LAST_WORD}")));
    events.push(event("content_block_stop", json!({"index": 0})));
    let end = json!({"delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": {"output_tokens": 200}});
    events.push(event("message_delta", end));
    events.push(event("message_stop", json!({})));
    events
}

/// The same with about this much text, a kilobyte in each chunk.
pub(crate) fn large(bytes: usize) -> Vec<Bytes> {
    let chunk = event(&json!({"content": format!(" {}", "0123456789abcdef".repeat(64))}), None);
    whole(std::iter::repeat_n(chunk, bytes / 1024))
}

fn whole(content: impl Iterator<Item = Bytes>) -> Vec<Bytes> {
    let mut events = vec![event(&json!({"role": "assistant", "content": ""}), None)];
    events.extend(content);
    events.push(event(&json!({"content": format!(" {LAST_WORD}")}), None));
    events.push(event(&json!({}), Some("stop")));
    let mut last = envelope("chat.completion.chunk");
    last["choices"] = json!([]);
    last["usage"] = usage();
    events.push(format!("data: {last}\n\n").into());
    events.push(Bytes::from_static(b"data: [DONE]\n\n"));
    events
}

fn event(delta: &Value, finish: Option<&str>) -> Bytes {
    let mut chunk = envelope("chat.completion.chunk");
    chunk["choices"] = json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]);
    chunk["usage"] = Value::Null;
    chunk["obfuscation"] = json!("kQ3vXw9ZpL0aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789abcdefghijklmnop");
    format!("data: {chunk}\n\n").into()
}

fn envelope(object: &str) -> Value {
    json!({"id": "chatcmpl-DEkq3sM8zPq2vV5wYtRrXo1uJhGfC", "object": object, "created": 1_794_700_000,
        "model": "bench-model-2026-11-01", "service_tier": "default", "system_fingerprint": "fp_402482718d"})
}

fn usage() -> Value {
    json!({"prompt_tokens": 120, "completion_tokens": 200, "total_tokens": 320,
        "prompt_tokens_details": {"cached_tokens": 0}, "completion_tokens_details": {"reasoning_tokens": 0}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_have_the_usual_size() {
        let events = stream(200);
        assert_eq!(events.len(), 1 + 200 + 3);
        assert!((340..420).contains(&events[50].len()), "{}", events[50].len());
    }
}
