//! One `chat.completion` out of the steps of a stream: both forms come from the same steps, so they agree.

use serde_json::{Map, Value, json};

use super::Step;

pub(super) fn fold(steps: &[Step]) -> Step {
    let mut whole = Whole::default();
    for step in steps {
        match step {
            Step::Status { .. } | Step::Cut => return step.clone(),
            Step::Chunk(bytes) => {
                // The steps are ours, so this is always JSON; null would fold into nothing.
                let chunk: Value = serde_json::from_slice(bytes).unwrap_or_default();
                if !chunk["error"].is_null() {
                    return Step::Status { status: 500, headers: Vec::new(), body: bytes.clone() };
                }
                whole.add(chunk);
            }
            Step::Pause(_) | Step::Done => {}
        }
    }
    Step::Status { status: 200, headers: Vec::new(), body: whole.completion().to_string().into_bytes() }
}

#[derive(Default)]
struct Whole {
    head: Value,
    /// `content`, `reasoning_content`, `refusal`: what has been said under each name.
    text: Map<String, Value>,
    calls: Vec<Value>,
    finish_reason: Value,
    usage: Value,
}

impl Whole {
    fn add(&mut self, chunk: Value) {
        if !chunk["usage"].is_null() {
            self.usage = chunk["usage"].clone();
        }
        let choice = &chunk["choices"][0];
        if !choice["finish_reason"].is_null() {
            self.finish_reason = choice["finish_reason"].clone();
        }
        let delta = &choice["delta"];
        for field in ["content", "reasoning_content", "refusal"] {
            if let Some(piece) = delta[field].as_str() {
                append(self.text.entry(field).or_insert_with(|| json!("")), piece);
            }
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            self.call(call);
        }
        self.head = chunk;
    }

    fn call(&mut self, delta: &Value) {
        if delta["id"].is_string() {
            let name = &delta["function"]["name"];
            let function = json!({"name": name, "arguments": ""});
            self.calls.push(json!({"id": delta["id"], "type": "function", "function": function}));
        }
        if let (Some(call), Some(piece)) = (self.calls.last_mut(), delta["function"]["arguments"].as_str()) {
            append(&mut call["function"]["arguments"], piece);
        }
    }

    fn completion(self) -> Value {
        let mut message = json!({"role": "assistant", "content": null, "refusal": null});
        for (field, text) in self.text {
            // A turn of tool calls or a refusal has no content rather than an empty one.
            message[field] = if text == "" { Value::Null } else { text };
        }
        if !self.calls.is_empty() {
            message["tool_calls"] = Value::Array(self.calls);
        }
        json!({
            "id": self.head["id"],
            "object": "chat.completion",
            "created": self.head["created"],
            "model": self.head["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": self.finish_reason}],
            "usage": self.usage,
        })
    }
}

fn append(text: &mut Value, piece: &str) {
    if let Value::String(text) = text {
        text.push_str(piece);
    }
}
