//! Providers that are asked by their Messages API alone: strict ones, as that API is.

use std::collections::BTreeSet;
use std::sync::Mutex;

use serde_json::{Value, json};
use testkit::messages_api::{CacheUse, events};
use testkit::{Received, Script};

use crate::rig::{Probed, limits, probe_with};

type Quirk = fn(&Value) -> Option<&'static str>;

fn refuse(status: u16, kind: &str, message: &str) -> Script {
    Script::json(status, &json!({"type": "error", "error": {"type": kind, "message": message}}))
}

/// The prompts that were marked, and so are cached.
type Cache = Mutex<BTreeSet<String>>;

fn answer(received: &Received, quirk: Quirk, cache: &Cache) -> Script {
    if received.path.ends_with("/v1/models") {
        return Script::json(200, &json!({"data": [{"type": "model", "id": "m"}], "has_more": false}));
    }
    if !received.path.ends_with("/v1/messages") {
        return refuse(404, "not_found_error", "Not found");
    }
    if received.header("x-api-key").is_none() || received.header("anthropic-version").is_none() {
        return refuse(401, "authentication_error", "x-api-key header is required");
    }
    let body = received.json();
    if body["model"].is_string() && body["model"] != "m" {
        return refuse(404, "not_found_error", "model: no such model");
    }
    let fault = testkit::messages::check_request(&body).err();
    if let Some(fault) = fault.or_else(|| quirk(&body).map(str::to_owned)) {
        return refuse(400, "invalid_request_error", &fault);
    }
    let mut used = CacheUse { blocks: 100, ..CacheUse::default() };
    if !body["system"][0]["cache_control"].is_null() {
        let is_new = cache.lock().unwrap().insert(body["system"].to_string());
        (used.read, used.written) = if is_new { (0, 90) } else { (90, 0) };
    }
    let (blocks, reason) = said(&body);
    let events = events(1, &blocks, reason, used, 0);
    if body["stream"] == true {
        let event = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
        return Script::sse_bytes(events.iter().map(event).collect::<String>());
    }
    let mut message = events[0]["message"].clone();
    (message["content"], message["stop_reason"]) = (json!(blocks), json!(reason));
    Script::json(200, &message)
}

fn said(body: &Value) -> (Vec<Value>, &'static str) {
    let mut blocks = Vec::new();
    if ["enabled", "adaptive"].iter().any(|kind| body["thinking"]["type"] == *kind) {
        blocks.push(json!({"type": "thinking", "thinking": "I think about it.", "signature": "s"}));
    }
    let last = body["messages"].as_array().unwrap().iter().rfind(|message| message["role"] == "user").unwrap();
    let asked = last["content"].as_array().unwrap().iter().rev().find_map(|block| block["text"].as_str());
    let asked = asked.unwrap_or_default().to_owned();
    let choice = body["tool_choice"]["type"].as_str().unwrap_or("auto");
    let wants = asked.contains("get_weather") && choice == "auto" || matches!(choice, "any" | "tool");
    if wants && body["tools"].is_array() && body["output_config"]["format"].is_null() {
        let both = asked.contains("London") && body["tool_choice"]["disable_parallel_tool_use"] != true;
        let cities: &[&str] = if both { &["Paris", "London"] } else { &["Paris"] };
        blocks.extend(cities.iter().map(
            |city| json!({"type": "tool_use", "id": format!("toolu_{city}"), "name": "get_weather", "input": {"city": city}}),
        ));
        return (blocks, "tool_use");
    }
    let text = text(body, &asked);
    let words: Vec<&str> = text.split_inclusive(' ').collect();
    let most = usize::try_from(body["max_tokens"].as_u64().unwrap()).unwrap();
    let reason = if words.len() > most { "max_tokens" } else { "end_turn" };
    blocks.push(json!({"type": "text", "text": words.into_iter().take(most).collect::<String>()}));
    (blocks, reason)
}

fn text(body: &Value, asked: &str) -> String {
    let has = |kind: &str| body["messages"].to_string().contains(&format!("\"type\":\"{kind}\""));
    if body["output_config"]["format"].is_object() {
        return "{\"fruit\":\"zebra-47\"}".to_owned();
    }
    if asked.starts_with("Count") {
        return (1..=60).map(|number| number.to_string()).collect::<Vec<_>>().join(" ");
    }
    match &body["stop_sequences"][0] {
        Value::String(stop) => "Hello there".split(stop.as_str()).next().unwrap_or_default().to_owned(),
        _ if has("image") => "Red.".to_owned(),
        _ if has("document") => "OSPREY-52".to_owned(),
        _ => "Hello there, how are you?".to_owned(),
    }
}

async fn probe(spec: &str, quirk: Quirk) -> Probed {
    let cache = Cache::default();
    let probed = probe_with(spec, limits(), move |received| answer(received, quirk, &cache)).await;
    assert!(probed.upstream.requests().iter().all(|request| !request.path.contains("chat")));
    super::read(&probed.written());
    probed
}

const COMPATIBLE: &str = "messages-compatible";
/// What the simulated provider does beyond what nearly all of them do.
const MORE: [&str; 3] = ["json_schema: native", "request.content.files: true", "request.blocks.cache: marks"];

#[tokio::test]
async fn a_messages_api_is_asked_by_its_own_wire() {
    let probed = probe(COMPATIBLE, |_| None).await;
    assert_eq!(probed.changes(), MORE, "{:#?}", probed.findings());
    for (feature, expected) in [
        ("plain answer", "yes"),
        ("limit field", "max_tokens"),
        ("stream", "yes"),
        ("end of stream", "as the API says"),
        ("usage in stream", "yes"),
        ("reasoning in answers", "thinking"),
        ("late system message", "taken"),
        ("tools", "called"),
        ("tool_choice auto", "yes"),
        ("tool_choice none", "yes"),
        ("tool_choice required", "yes"),
        ("tool_choice named", "yes"),
        ("parallel calls", "yes"),
        ("parallel_tool_calls: false", "yes"),
        ("calls in a stream", "in pieces"),
        ("strict tools", "taken"),
        ("history with a call", "taken"),
        ("call ids", "safe"),
        ("json_schema", "native"),
        ("json_schema with tools", "yes"),
        ("reasoning efforts", "all taken"),
        ("thinking switch", "works"),
        ("stop", "yes"),
        ("images", "data"),
        ("image kinds", "png, jpeg, webp"),
        ("images in tool results", "native"),
        ("PDF files", "read"),
        ("cached prefix", "marks"),
        ("error: unknown model", "404, {error: {…}}"),
        ("native /messages", "yes"),
        ("list of models", "names the model"),
    ] {
        assert_eq!(probed.observed(feature), expected, "{feature}: {:#?}", probed.finding(feature));
    }
    let report = probe::Report::new("t", "m", COMPATIBLE, probed.result.clone().unwrap());
    let sentence = "not asked, for they are for chat servers only: texts, replay, responses";
    assert!(report.table().contains(sentence), "{}", report.table());
    assert!(report.diff(|_| None).yaml().contains(sentence));
}

/// What the simulated API refuses of the newest models is what the spec says of them.
#[tokio::test]
async fn the_spec_of_the_newest_models_is_right() {
    let probed = probe("anthropic", |body| {
        let fault = testkit::messages::check_for_model("claude-opus-5-5", body).err()?;
        Some(Box::leak(fault.into_boxed_str()))
    })
    .await;
    assert_eq!(probed.changes(), [""; 0], "{:#?}", probed.findings());
    for (feature, expected) in [
        ("tool_choice required", "refused"),
        ("reasoning efforts", "low, medium, high, xhigh, max"),
        ("thinking switch", "taken; it thinks as little as it can"),
        ("cached prefix", "reported"),
        ("native /messages", "yes"),
    ] {
        assert_eq!(probed.observed(feature), expected, "{feature}: {:#?}", probed.finding(feature));
    }
}

#[tokio::test]
async fn what_is_odd_about_a_messages_api_is_said() {
    let forced: Quirk = |body| {
        let choice = body["tool_choice"]["type"].as_str()?;
        matches!(choice, "any" | "tool").then_some("tool_choice: not supported")
    };
    let blind: Quirk = |body| body["messages"].to_string().contains("\"image\"").then_some("no images");
    let thoughtless: Quirk = |body| (body["thinking"]["type"] == "enabled").then_some("no thinking");
    let plain: Quirk = |body| (!body["output_config"].is_null()).then_some("output_config: no such member");
    let without = |at: &str| MORE.into_iter().filter(|more| !more.starts_with(at)).collect::<Vec<_>>();
    for (quirk, changes, (feature, expected)) in [
        (forced, vec!["request.tools.choices: [auto, none]"], ("tool_choice required", "refused")),
        (blind, vec!["request.content.images: none"], ("images", "none")),
        (thoughtless, vec![], ("reasoning efforts", "refused: low, medium, high, xhigh")),
        (plain, vec![], ("json_schema", "prompt")),
    ] {
        let probed = probe(COMPATIBLE, quirk).await;
        let mut all: Vec<&str> = changes;
        all.extend(if feature == "json_schema" { without("json_schema") } else { MORE.to_vec() });
        let mut found = probed.changes();
        found.sort();
        all.sort_unstable();
        assert_eq!(found, all, "{feature}: {:#?}", probed.findings());
        assert_eq!(probed.observed(feature), expected, "{:#?}", probed.finding(feature));
    }
}

/// One that is none says so, and not that it is no chat server.
#[tokio::test]
async fn what_is_no_messages_api_is_said_to_be_none() {
    let probed = probe_with(COMPATIBLE, limits(), |_| refuse(400, "invalid_request_error", "no")).await;
    let message = probed.result.unwrap_err().to_string();
    assert_eq!(message, "even a plain request was refused (400: no); is this the base URL of a Messages API?");
}
