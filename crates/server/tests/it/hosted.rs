//! Hosted tools over HTTP: scripted models that call the tools of scripted MCP servers.

mod approvals;
mod ends;
mod limits;
mod replay;
mod rounds;

use serde_json::{Value, json};
use testkit::{McpServer, Script, Upstream};

use crate::chat;
use crate::rig::{Rig, anonymous, object, parse, stream};

/// A model that says these messages, one after the other: the next one follows as many of its own as are in the request.
pub(crate) async fn model(messages: Vec<Value>) -> Upstream {
    Upstream::start_with(move |received| {
        let body = received.json();
        let said = body["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "assistant").count();
        answer(&messages[said.min(messages.len() - 1)], body["stream"] == true)
    })
    .await
    .unwrap()
}

/// A message of a model, in the way that was asked for.
pub(crate) fn answer(message: &Value, streamed: bool) -> Script {
    let calls = message["tool_calls"].is_array();
    let reason = message["finish_reason"].as_str().unwrap_or(if calls { "tool_calls" } else { "stop" });
    let mut message = message.clone();
    message.as_object_mut().unwrap().remove("finish_reason");
    let usage = message.as_object_mut().unwrap().remove("usage").unwrap_or_else(chat::usage);
    if !streamed {
        let mut whole = chat::completion();
        whole["usage"] = usage;
        whole["choices"][0] = json!({"index": 0, "message": message, "finish_reason": reason});
        return Script::json(200, &whole);
    }
    for (index, call) in message["tool_calls"].as_array_mut().into_iter().flatten().enumerate() {
        call["index"] = json!(index);
    }
    let last = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": usage});
    Script::sse(&[chat::chunk(&message, None), chat::chunk(&json!({}), Some(reason)), last])
}

pub(crate) fn says(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

pub(crate) fn calls(list: &[(&str, &str, Value)]) -> Value {
    let call = |(id, name, arguments): &(&str, &str, Value)| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}});
    json!({"role": "assistant", "content": null, "tool_calls": list.iter().map(call).collect::<Vec<_>>()})
}

/// godex before that model, with these servers: their labels, addresses, and what else is said of them.
pub(crate) async fn rig(upstream: Upstream, servers: &[(&str, &McpServer, &str)]) -> Rig {
    let servers: Vec<String> =
        servers.iter().map(|(label, server, more)| format!("{label}: {{url: '{}'{more}}}", server.url())).collect();
    serve(upstream, &format!("mcp: {{servers: {{{}}}}}", servers.join(", "))).await
}

/// The same, with the inside of `tools`.
pub(crate) async fn serve(upstream: Upstream, tools: &str) -> Rig {
    let config = format!(
        "session: {{backend: memory}}\nresilience: {{backoff_ms: 2, breaker_failures: 0}}\ntools: {{{tools}}}\nproviders:\n  up:\n    \
         spec: openai-compatible\n    endpoint: {{base_url: '{}/v1'}}\n    credentials: {{api_key: k}}\n    models: [m]\n",
        upstream.url()
    );
    Rig::serving(upstream, parse(&config)).await.unwrap()
}

pub(crate) const NEVER: &str = ", require_approval: never";

pub(crate) fn mcp(label: &str) -> Value {
    json!({"type": "mcp", "server_label": label})
}

pub(crate) fn request(tools: &Value) -> Value {
    json!({"model": "up/m", "input": "Go.", "tools": tools})
}

pub(crate) fn kinds(response: &Value) -> Vec<&str> {
    response["output"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect()
}

/// The response to the same request, streamed and not: lawful, and the same but for ids and times.
pub(crate) async fn both(rig: &Rig, request: &Value) -> Value {
    let (whole, streamed) = rig.both(request).await;
    let (whole, streamed) = (object(&whole), stream(&streamed).response);
    let plain = |response: &Value| {
        let mut response = anonymous(response.clone());
        // Made for this response.
        for item in response["output"].as_array_mut().unwrap() {
            if let Some(call) = item.get_mut("call_id") {
                *call = json!(null);
            }
        }
        response
    };
    assert_eq!(plain(&whole), plain(&streamed));
    whole
}

/// What the provider was asked, request by request.
pub(crate) fn asked(rig: &Rig) -> Vec<Value> {
    rig.upstream.requests().iter().map(testkit::Received::json).collect()
}

/// The messages of each request begin with all of those before, and the tools stay the same.
pub(crate) fn each_extends_the_last(requests: &[Value]) {
    for pair in requests.windows(2) {
        let [before, after] = [0, 1].map(|at| pair[at]["messages"].as_array().unwrap());
        assert!(after.len() > before.len(), "{after:?}");
        assert_eq!(after[..before.len()], before[..], "{after:?}");
        assert_eq!(pair[0]["tools"], pair[1]["tools"]);
    }
}
