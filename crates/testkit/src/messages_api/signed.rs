//! Signatures: a thought is valid where it was made, and nowhere else.

use serde_json::{Value, json};

/// Gives each thought its signature.
pub(super) fn sign(request: &Value, blocks: &[Value]) -> Vec<Value> {
    let mut signed: Vec<Value> = Vec::new();
    for block in blocks {
        let mut block = block.clone();
        match block["type"].as_str() {
            Some("thinking") => {
                let signature = signature(request, messages(request), &signed, &block["thinking"]);
                block["signature"] = json!(signature);
            }
            Some("redacted_thinking") => {
                let data = signature(request, messages(request), &signed, &json!("withheld"));
                block["data"] = json!(data);
            }
            _ => {}
        }
        signed.push(block);
    }
    signed
}

/// The thoughts in a request.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) fitting: usize,
    /// Where those are that fit nowhere, or not there.
    pub(super) strange: Vec<String>,
}

pub(super) fn check(request: &Value) -> Found {
    let mut found = Found::default();
    let messages = messages(request);
    for (at, message) in messages.iter().enumerate() {
        let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
        for (number, block) in blocks.iter().enumerate() {
            let (given, said) = match block["type"].as_str() {
                Some("thinking") => (&block["signature"], &block["thinking"]),
                Some("redacted_thinking") => (&block["data"], &json!("withheld")),
                _ => continue,
            };
            if *given == signature(request, &messages[..at], &blocks[..number], said) {
                found.fitting += 1;
            } else {
                found.strange.push(format!("messages.{at}.content.{number}"));
            }
        }
    }
    found
}

fn messages(request: &Value) -> &[Value] {
    request["messages"].as_array().map_or(&[], Vec::as_slice)
}

/// Of everything before the block, and of what it says.
fn signature(request: &Value, before: &[Value], blocks: &[Value], said: &Value) -> String {
    let mut all = json!([request["tools"], request["system"], before, blocks, said]);
    without_marks(&mut all);
    format!("sig+{:016x}/==", hash(&all.to_string()))
}

/// Marks move from turn to turn, and change nothing.
pub(super) fn without_marks(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.remove("cache_control");
            members.values_mut().for_each(without_marks);
        }
        Value::Array(elements) => elements.iter_mut().for_each(without_marks),
        _ => {}
    }
}

/// FNV-1a.
pub(super) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
