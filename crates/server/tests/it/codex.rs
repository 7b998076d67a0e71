//! Every request that was recorded of Codex, three generations of it, through the whole server, with its own headers: a
//! strict provider takes it, calls every tool that it is offered, and each call comes back as the kind that was declared.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use http::Method;
use serde_json::{Value, json};
use testkit::transcript::{self, Ids, Strictness};
use testkit::{Answer, Script, Upstream};

use crate::chat;
use crate::rig::{Rig, Settings, stream};
use crate::websocket::client::Client as Socket;

/// Takes nothing that Chat Completions does not have.
const STRICT: Strictness = Strictness {
    developer: false,
    no_empty_text: false,
    system_first: false,
    alternate: false,
    assistant_after_tool: false,
    no_null_content: false,
    ids: Ids::NotEmpty,
    name_length: 64,
    custom: false,
};

/// The members of a chat request that a provider of no particular kind takes.
const MEMBERS: [&str; 11] = [
    "model",
    "messages",
    "stream",
    "stream_options",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning_effort",
    "response_format",
    "verbosity",
    "prompt_cache_key",
];

/// What a model writes into a custom tool: also a lawful patch.
const PATCH: &str = "*** Begin Patch\n*** Add File: a.txt\n+a\n*** End Patch\n";

/// A tool as the client declares it: its type, namespace, name.
type Declared = (String, Option<String>, String);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_recorded_request_is_served() {
    let wanted = |name: &str| name.starts_with("request-");
    let Some(paths) = testkit::shared_files("fixtures/codex", wanted) else { return };
    assert!(paths.len() > 40, "{}", paths.len());
    let rig = rig().await;
    let mut seen = BTreeSet::new();
    for path in &paths {
        let name = path.display().to_string();
        let request = read(path);
        let headers =
            headers(&path.with_file_name(path.file_name().unwrap().to_str().unwrap().replace("request", "headers")));
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
        let url = rig.url("/v1/responses");
        let answer = rig.client.request(Method::POST, &url, &headers, request.to_string()).await.unwrap();
        assert_eq!(answer.status, 200, "{name}: {}", String::from_utf8_lossy(&answer.body));
        accepted(&name, &rig);
        nothing_is_dropped(&name, &request, &answer);
        let response = stream(&answer).response;
        assert_eq!(response["status"], "completed", "{name}");
        if last_item(&request)["type"] != "compaction_trigger" {
            seen.extend(kinds_are_right(&name, &declared(&request), &response));
        }
    }
    // No kind went untried.
    let kinds: BTreeSet<&str> = seen.iter().map(String::as_str).collect();
    assert_eq!(kinds, ["custom", "function", "function in a namespace", "text", "tool_search"].into());
}

/// The recorded messages of a connection: warm-up, turn, outputs of its calls. Ids are of this connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_recorded_websocket_is_served() {
    let wanted = |name: &str| name.starts_with("ws-1-client-");
    let Some(paths) = testkit::shared_files("fixtures/codex/k-websocket", wanted) else { return };
    assert_eq!(paths.len(), 3);
    let rig = rig().await;
    let headers = headers(&paths[0].with_file_name("headers-1.json"));
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
    let (mut socket, shaken) = Socket::connect_as(&rig, &headers).await;
    assert!(shaken.contains_key("x-reasoning-included") && !shaken.contains_key("openai-model"), "{shaken:?}");
    let mut before: Option<Value> = None;
    for path in &paths {
        let name = path.display().to_string();
        let mut message = read(path);
        if let Some(before) = &before {
            message["previous_response_id"] = before["id"].clone();
            for item in message["input"].as_array_mut().unwrap().iter_mut().filter(|item| !item["call_id"].is_null()) {
                let calls = before["output"].as_array().unwrap();
                item["call_id"] = calls.iter().find(|call| call["name"] == "exec_command").unwrap()["call_id"].clone();
            }
        }
        let response = socket.respond(&message).await.response;
        assert_eq!(response["status"], "completed", "{name}");
        if message["generate"] == json!(false) {
            assert_eq!((&response["output"], rig.upstream.requests().len()), (&json!([]), 0), "{name}");
        } else {
            accepted(&name, &rig);
            kinds_are_right(&name, &declared(&message), &response);
        }
        before = Some(response);
    }
    let last = rig.upstream.requests().pop().unwrap().json();
    let roles: Vec<&str> = last["messages"].as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert!(roles.contains(&"tool") && roles.contains(&"assistant"), "{roles:?}");
}

async fn rig() -> Rig {
    let upstream = Upstream::start_with(|received| calls_everything(&received.json())).await.unwrap();
    Rig::before(upstream, Settings::default()).await
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// As they were recorded, but for those of the connection itself.
fn headers(path: &Path) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_lowercase();
    let own = |name: &str| {
        let prefixes = ["host", "connection", "upgrade", "sec-websocket", "content-length", "transfer-encoding"];
        prefixes.iter().any(|prefix| name.starts_with(prefix))
    };
    let recorded = read(path);
    let pairs = recorded["headers"].as_array().unwrap().iter();
    let pairs = pairs.map(|pair| (text(&pair[0]), pair[1].as_str().unwrap().to_owned()));
    pairs.filter(|(name, _)| !own(name)).collect()
}

fn last_item(request: &Value) -> &Value {
    request["input"].as_array().unwrap().last().unwrap()
}

// === the provider ===

/// Calls each function once, all in one answer, after some reasoning; says something where there is none.
fn calls_everything(body: &Value) -> Script {
    let mut chunks = vec![chat::chunk(&json!({"role": "assistant", "reasoning_content": "hm"}), None)];
    let tools: Vec<&Value> = body["tools"].as_array().into_iter().flatten().collect();
    for (index, tool) in tools.iter().enumerate() {
        let function = &tool["function"];
        let arguments = example("", &function["parameters"]).to_string();
        let call = json!({"index": index, "id": format!("call_{index}"), "type": "function",
                          "function": {"name": function["name"], "arguments": arguments}});
        chunks.push(chat::chunk(&json!({"tool_calls": [call]}), None));
    }
    if tools.is_empty() {
        chunks.push(chat::text("Hello"));
    }
    let finish_reason = if tools.is_empty() { "stop" } else { "tool_calls" };
    chunks.push(chat::chunk(&json!({}), Some(finish_reason)));
    chunks.push(json!({"choices": [], "usage": chat::usage()}));
    Script::sse(&chunks)
}

/// The least that a schema takes.
fn example(name: &str, schema: &Value) -> Value {
    if let Some(value) = schema["enum"].get(0) {
        return value.clone();
    }
    if let Some(schema) = schema["anyOf"].get(0) {
        return example(name, schema);
    }
    match schema["type"].as_str().or_else(|| schema["type"][0].as_str()) {
        Some("object") => {
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            required.map(|name| (name.to_owned(), example(name, &schema["properties"][name]))).collect()
        }
        Some("array") => json!([]),
        Some("boolean") => json!(true),
        Some("number" | "integer") => json!(1),
        _ if name == "input" => json!(PATCH),
        _ => json!("x"),
    }
}

/// What the provider was sent last is a request that a strict one takes.
fn accepted(name: &str, rig: &Rig) {
    let body = rig.upstream.requests().pop().unwrap().json();
    assert_eq!(transcript::check(&body, STRICT), Vec::<String>::new(), "{name}");
    for member in body.as_object().unwrap().keys() {
        assert!(MEMBERS.contains(&&**member), "{name}: {member}");
    }
    assert!(body["tools"].as_array().is_none_or(|tools| !tools.is_empty()), "{name}");
    assert!(body.get("tools").is_some() || body.get("tool_choice").is_none(), "{name}");
}

// === the answer ===

/// Nothing of the tools is missing but hosted search, and the answer's head is one for Codex.
fn nothing_is_dropped(name: &str, request: &Value, answer: &Answer) {
    let notes = answer.header("x-godex-compat").unwrap_or_default();
    for note in notes.split(", ").filter(|note| note.contains("tool")) {
        let index = note.strip_prefix("tools[").and_then(|rest| rest.split_once(']')?.0.parse::<usize>().ok());
        let tool = index.map(|index| request["tools"][index]["type"].clone());
        let said = note.ends_with("=ignored");
        assert!(!said || tool == Some(json!("web_search")), "{name}: {notes}");
    }
    assert!(!notes.contains(" more"), "{name}: {notes}");
    assert_eq!((answer.header("x-reasoning-included"), answer.header("openai-model")), (Some("true"), None), "{name}");
}

/// Every tool that a model may call, wherever it is declared.
fn declared(request: &Value) -> BTreeSet<Declared> {
    let mut all: Vec<&Value> = request["tools"].as_array().into_iter().flatten().collect();
    for item in request["input"].as_array().unwrap() {
        all.extend(item["tools"].as_array().into_iter().flatten());
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut declared = BTreeSet::new();
    for tool in all {
        match tool["type"].as_str().unwrap() {
            "web_search" => {}
            "namespace" => {
                for inner in tool["tools"].as_array().unwrap() {
                    declared.insert((
                        text(&inner["type"]).unwrap(),
                        text(&tool["name"]),
                        text(&inner["name"]).unwrap(),
                    ));
                }
            }
            kind => _ = declared.insert((kind.to_owned(), None, text(&tool["name"]).unwrap_or_default())),
        }
    }
    declared
}

/// Every tool was called once, as Codex wants to be told of it. Gives the kinds that there were.
fn kinds_are_right(name: &str, declared: &BTreeSet<Declared>, response: &Value) -> Vec<String> {
    let mut called = BTreeSet::new();
    let mut kinds = Vec::new();
    for item in response["output"].as_array().unwrap() {
        let text = |member: &str| item[member].as_str().map(str::to_owned);
        let kind = match item["type"].as_str().unwrap() {
            "reasoning" => {
                assert_eq!(item["summary"][0]["text"], "hm", "{name}");
                assert!(item["encrypted_content"].is_string(), "{name}");
                continue;
            }
            "message" => {
                assert_eq!(item["content"][0]["type"], "output_text", "{name}");
                kinds.push("text".to_owned());
                continue;
            }
            "function_call" => {
                let arguments: Value = serde_json::from_str(item["arguments"].as_str().unwrap()).unwrap();
                assert!(arguments.is_object(), "{name}: {item}");
                "function"
            }
            "custom_tool_call" => {
                assert_eq!(item["input"], PATCH, "{name}");
                "custom"
            }
            "tool_search_call" => {
                assert_eq!(
                    (&item["execution"], &item["arguments"]),
                    (&json!("client"), &json!({"query": "x"})),
                    "{name}"
                );
                "tool_search"
            }
            other => panic!("{name}: {other}"),
        };
        assert!(item["call_id"].as_str().is_some_and(|id| !id.is_empty()), "{name}: {item}");
        assert_eq!(item["status"], "completed", "{name}: {item}");
        let namespace = text("namespace");
        kinds.push(if namespace.is_some() && kind == "function" { "function in a namespace" } else { kind }.to_owned());
        assert!(called.insert((kind.to_owned(), namespace, text("name").unwrap_or_default())), "{name}: {item} twice");
    }
    assert_eq!(&called, declared, "{name}");
    assert!(response.get("end_turn").is_none(), "{name}");
    kinds
}
