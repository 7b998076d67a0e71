//! The fake MCP server: one tool, which answers at once. It speaks the protocol without sessions, and says that its list
//! of tools stays as it is.

use serde_json::{Value, json};

/// By what label godex knows it.
pub(crate) const LABEL: &str = "bench";
/// The tool as godex offers it to the model.
pub(crate) const FUNCTION: &str = "bench__weather";
const VERSION: &str = "2026-07-28";
const HOUR_MS: u64 = 3_600_000;

/// The status and the body for one message.
pub(crate) fn answer(message: &[u8]) -> (u16, String) {
    let message: Value = serde_json::from_slice(message).unwrap_or_default();
    let Some(id) = message.get("id") else { return (202, String::new()) };
    let result = match message["method"].as_str().unwrap_or_default() {
        "server/discover" => json!({"resultType": "complete", "supportedVersions": [VERSION],
            "capabilities": {"tools": {}}, "ttlMs": HOUR_MS, "cacheScope": "public"}),
        "tools/list" => json!({"resultType": "complete", "tools": [tool()], "ttlMs": HOUR_MS, "cacheScope": "public"}),
        "tools/call" => {
            json!({"resultType": "complete", "content": [{"type": "text", "text": "18 degrees, and rain"}]})
        }
        _ => {
            let error = json!({"code": -32601, "message": "no such method"});
            return (200, json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string());
        }
    };
    (200, json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string())
}

fn tool() -> Value {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    json!({"name": "weather", "description": "The weather in a city.", "inputSchema": schema})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_answered() {
        let cases = [
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#, 200, "18 degrees"),
            (r#"{"jsonrpc":"2.0","id":2,"method":"initialize"}"#, 200, "-32601"),
            (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, 202, ""),
        ];
        for (message, status, expected) in cases {
            let (found, body) = answer(message.as_bytes());
            assert!(found == status && body.contains(expected), "{message}: {found} {body}");
        }
        assert_eq!(FUNCTION, format!("{LABEL}__{}", tool()["name"].as_str().unwrap_or_default()));
    }
}
