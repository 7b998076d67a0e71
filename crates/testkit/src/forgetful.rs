//! A provider that knows only what it is sent: what it answers shows whether a history arrived.

use serde_json::{Value, json};

use crate::{Received, Script};

/// Names the user if the messages say "my name is …", and says how many messages there were: `Alice (3)`.
pub fn forgetful(received: &Received) -> Script {
    let request = received.json();
    let text = request["messages"].to_string();
    let name = text.split("my name is ").nth(1).and_then(|rest| rest.split(['.', '"', '\\']).next());
    let count = request["messages"].as_array().map_or(0, Vec::len);
    let said = format!("{} ({count})", name.unwrap_or("nobody"));
    if request["stream"] == json!(true) {
        let said = json!({"delta": {"content": said}, "finish_reason": null});
        let stop = json!({"delta": {}, "finish_reason": "stop"});
        return Script::sse(&[said, stop].map(|choice| answer("chat.completion.chunk", choice)));
    }
    let message = json!({"role": "assistant", "content": said});
    Script::json(200, &answer("chat.completion", json!({"message": message, "finish_reason": "stop"})))
}

fn answer(object: &str, mut choice: Value) -> Value {
    choice["index"] = json!(0);
    json!({"id": "chat-1", "object": object, "created": 1_700_000_000, "model": "m", "choices": [choice]})
}
