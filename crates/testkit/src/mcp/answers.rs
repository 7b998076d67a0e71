//! What the server says to one request.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{McpEra, McpOptions, PIXEL, SESSION};
use crate::{Received, Script};

/// The tools beside `echo` and `write`, each named for what its call comes to.
pub(super) const NAMES: &[&str] = &[
    "fail",
    "rpc_error",
    "image",
    "audio",
    "link",
    "resource",
    "structured",
    "headers",
    "progress",
    "long",
    "huge",
    "input_required",
    "status_401",
    "status_500",
    "hang",
    "hang_in_stream",
    "cut",
    "cut_stream",
    "no_json",
    "wrong_id",
    "empty",
    "redirect",
    "redirect_away",
    "needs_header",
];

pub(super) fn answer(options: &McpOptions, received: &Received) -> Script {
    if let Some(fault) = &options.fault {
        return fault.clone();
    }
    let expected = options.authorization.as_deref();
    if expected.is_some() && received.header("authorization") != expected {
        // As some servers do: with what they were sent.
        let sent = received.header("authorization").unwrap_or_default();
        return Script::json(401, &json!({"error": format!("not authorized: {sent}")}));
    }
    let message = received.json();
    let legacy = options.era == McpEra::Legacy;
    match (received.method.as_str(), message["method"].as_str()) {
        ("DELETE", _) if legacy => Script::body(200, "text/plain", ""),
        ("POST", Some("server/discover" | "initialize")) => begin(options, &message),
        ("POST", _) if legacy && received.header("mcp-session-id") != Some(SESSION) => no_session(),
        ("POST", Some(method)) if method.starts_with("notifications/") => Script::body(202, "text/plain", ""),
        ("POST", Some("tools/list")) => match &options.list_fault {
            Some(fault) => fault.clone(),
            None => list(options, &message),
        },
        ("POST", Some("tools/call")) => call(options, &message, received),
        ("POST", _) => error(options, &message, -32601, "Method not found"),
        _ => Script::body(405, "text/plain", "Method Not Allowed"),
    }
}

fn no_session() -> Script {
    let error = json!({"code": -32000, "message": "Bad Request: No valid session ID provided"});
    Script::json(400, &json!({"jsonrpc": "2.0", "error": error, "id": null}))
}

fn begin(options: &McpOptions, message: &Value) -> Script {
    let info = json!({"name": "scripted", "version": "1.0.0"});
    match (options.era, message["method"].as_str()) {
        (McpEra::Modern, Some("server/discover")) => {
            let result = json!({
                "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private",
                "_meta": {"io.modelcontextprotocol/serverInfo": info},
            });
            answered(options, message, result)
        }
        (McpEra::Legacy, Some("initialize")) => {
            let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info});
            answered(options, message, result).header("mcp-session-id", SESSION)
        }
        (McpEra::Legacy, _) => no_session(),
        (McpEra::Modern, _) => error(options, message, -32601, "Method not found"),
    }
}

fn list(options: &McpOptions, message: &Value) -> Script {
    let page = if options.page == 0 { usize::MAX } else { options.page };
    let from = message["params"]["cursor"].as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let to = options.tools.len().min(page.saturating_add(from));
    let mut result = json!({"tools": options.tools.get(from..to).unwrap_or_default()});
    if to < options.tools.len() {
        result["nextCursor"] = json!(to.to_string());
    }
    if options.era == McpEra::Modern {
        result["ttlMs"] = json!(options.ttl_ms);
        result["cacheScope"] = json!("private");
    }
    answered(options, message, result)
}

/// As its era answers: JSON, or an event stream that begins with an empty event.
fn answered(options: &McpOptions, message: &Value, mut result: Value) -> Script {
    let id = &message["id"];
    match options.era {
        McpEra::Modern => {
            if let Some(result) = result.as_object_mut() {
                result.entry("resultType").or_insert_with(|| json!("complete"));
            }
            Script::json(200, &json!({"jsonrpc": "2.0", "id": id, "result": result}))
        }
        McpEra::Legacy => Script::event_stream()
            .send("id: 1_0\ndata: \n\n")
            .event(&json!({"jsonrpc": "2.0", "id": id, "result": result})),
    }
}

fn error(options: &McpOptions, message: &Value, code: i32, text: &str) -> Script {
    let error = json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": text}});
    match options.era {
        McpEra::Modern => Script::json(400, &error),
        McpEra::Legacy => Script::event_stream().event(&error),
    }
}

fn content(parts: &Value) -> Value {
    json!({"content": parts})
}

fn call(options: &McpOptions, message: &Value, received: &Received) -> Script {
    let params = &message["params"];
    let name = params["name"].as_str().unwrap_or_default();
    let says = |text: &str| answered(options, message, content(&json!([{"type": "text", "text": text}])));
    match name {
        "echo" | "write" => says(params["arguments"]["text"].as_str().unwrap_or("nothing")),
        "fail" => {
            let mut result = content(&json!([{"type": "text", "text": "it did not work"}]));
            result["isError"] = json!(true);
            answered(options, message, result)
        }
        "rpc_error" => error(options, message, -32602, "Unknown tool"),
        "headers" => {
            let headers = received
                .headers
                .iter()
                .map(|(name, value)| (name.as_str().to_owned(), json!(String::from_utf8_lossy(value.as_bytes()))));
            says(&Value::Object(headers.collect::<Map<_, _>>()).to_string())
        }
        "long" => says(&"long ".repeat(20_000)),
        "huge" => says(&"x".repeat(50_000_000)),
        "needs_header" if received.header("mcp-param-text").is_none() => {
            error(options, message, -32020, "Header mismatch: Mcp-Param-Text is missing")
        }
        "needs_header" => says(received.header("mcp-param-text").unwrap_or_default()),
        _ => kinds(options, message, name).unwrap_or_else(|| fault(options, message, name, received)),
    }
}

/// Results that are not only text.
fn kinds(options: &McpOptions, message: &Value, name: &str) -> Option<Script> {
    let parts = match name {
        "image" => {
            json!([{"type": "text", "text": "a pixel"}, {"type": "image", "data": PIXEL, "mimeType": "image/png"}])
        }
        "audio" => json!([{"type": "audio", "data": PIXEL, "mimeType": "audio/wav"}]),
        "link" => json!([{"type": "resource_link", "uri": "file:///notes.txt", "name": "notes"}]),
        "resource" => json!([{"type": "resource", "resource": {"uri": "file:///a.txt", "text": "in the file"}}]),
        "structured" => {
            return Some(answered(options, message, json!({"content": [], "structuredContent": {"sum": 3}})));
        }
        "input_required" => {
            let request = json!({"method": "elicitation/create", "params": {"message": "Your name?", "mode": "form",
                "requestedSchema": {"type": "object", "properties": {}}}});
            let result =
                json!({"resultType": "input_required", "inputRequests": {"name": request}, "requestState": "s"});
            return Some(answered(options, message, result));
        }
        "progress" => {
            let token = &message["params"]["_meta"]["progressToken"];
            let note = |progress: u32| {
                let params = json!({"progressToken": token, "progress": progress});
                json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
            };
            let done = json!({"resultType": "complete", "content": [{"type": "text", "text": "done"}]});
            let done = json!({"jsonrpc": "2.0", "id": message["id"], "result": done});
            let wait = Duration::from_millis(20);
            return Some(
                (1..4).fold(Script::event_stream(), |script, n| script.event(&note(n)).delay(wait)).event(&done),
            );
        }
        _ => return None,
    };
    Some(answered(options, message, content(&parts)))
}

/// Everything that can go wrong.
fn fault(options: &McpOptions, message: &Value, name: &str, received: &Received) -> Script {
    let half = r#"{"jsonrpc":"2.0","id":"#;
    match name {
        "status_401" => Script::json(401, &json!({"error": received.header("authorization")})),
        "status_500" => Script::body(500, "text/plain", "it fell over"),
        "hang" => Script::silent(),
        "hang_in_stream" => Script::event_stream().send(": still here\n\n").stall(),
        "cut" => Script::respond(200).header("content-type", "application/json").send(half).cut(),
        "cut_stream" => Script::event_stream().send(format!("data: {half}")).cut(),
        "no_json" => Script::body(200, "application/json", "this is no JSON"),
        "wrong_id" => {
            let result = json!({"content": [{"type": "text", "text": "for somebody else"}]});
            Script::json(200, &json!({"jsonrpc": "2.0", "id": 987_654, "result": result}))
        }
        "empty" => Script::body(200, "application/json", ""),
        "redirect" if received.path == "/mcp" => Script::respond(307).header("location", "/mcp?moved"),
        "redirect" => answered(options, message, content(&json!([{"type": "text", "text": "moved"}]))),
        "redirect_away" => Script::respond(307).header("location", "http://127.0.0.1:9/mcp"),
        _ => error(options, message, -32602, "Unknown tool"),
    }
}
