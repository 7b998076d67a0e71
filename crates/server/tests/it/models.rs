//! The catalogue of models: both of its forms, and what providers list themselves.

use http::Method;
use serde_json::{Value, json};
use testkit::{Script, Upstream};

use crate::chat;
use crate::rig::{Rig, parse};

/// What Codex insists on: an entry without one of these makes it forget all of them.
const REQUIRED: [&str; 12] = [
    "slug",
    "display_name",
    "supported_reasoning_levels",
    "shell_type",
    "visibility",
    "supported_in_api",
    "priority",
    "base_instructions",
    "support_verbosity",
    "truncation_policy",
    "experimental_supported_tools",
    "context_window",
];

fn entry<'l>(list: &'l Value, slug: &str) -> &'l Value {
    let found = list["models"].as_array().unwrap().iter().find(|entry| entry["slug"] == slug);
    found.unwrap_or_else(|| panic!("{slug}: {list}"))
}

fn ids(list: &Value) -> Vec<&str> {
    list["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect()
}

/// Answers lists of models so, and everything else as a chat.
async fn listing(list: Script) -> Upstream {
    Upstream::start_with(move |request| match request.path.as_str() {
        "/v1/models" if request.method == "GET" => list.clone(),
        "/props" => Script::respond(404),
        _ => chat::answer(false),
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn codex_is_told_what_the_specs_say() {
    let text = "session: {backend: memory}\nproviders:\n  deepseek: {credentials: {api_key: k}}\n  zhipu: \
                {credentials: {api_key: k}}\n  mine:\n    spec: {extends: openai-compatible, catalog: {apply_patch: \
                shell, tool_search: true, sub_agents: disabled}}\n    endpoint: {base_url: \
                'http://127.0.0.1:1/v1'}\n    models: [a, {match: b, context_window: 16384, catalog: {display_name: The \
                B}}]\nmodels: {discover: off, aliases: {mixed: [deepseek/deepseek-flash, mine/b]}}\n";
    let upstream = Upstream::start(chat::answer(false)).await.unwrap();
    let rig = Rig::serving(upstream, parse(text)).await.unwrap();
    let list = rig.get("/v1/models").await.json();
    assert_eq!(list["object"], "list");
    assert_eq!(list["models"].as_array().unwrap().len(), list["data"].as_array().unwrap().len());
    for entry in list["models"].as_array().unwrap() {
        for member in REQUIRED {
            assert!(!entry[member].is_null(), "{member}: {entry}");
        }
        let instructions = entry["base_instructions"].as_str().unwrap();
        assert!(instructions.contains("*** Begin Patch") && instructions.len() < 6000);
    }
    let pro = entry(&list, "deepseek-v4-pro");
    assert_eq!(pro["input_modalities"], json!(["text"]));
    assert_eq!(pro["default_reasoning_level"], "high");
    let efforts: Vec<&Value> =
        pro["supported_reasoning_levels"].as_array().unwrap().iter().map(|level| &level["effort"]).collect();
    assert_eq!(efforts, ["none", "low", "high", "max"]);
    assert_eq!((&pro["apply_patch_tool_type"], &pro["multi_agent_version"]), (&json!("freeform"), &json!("v1")));
    assert_eq!(entry(&list, "deepseek-flash")["input_modalities"], json!(["text", "image"]));
    // Nobody says how much it takes: little, as it is on this machine.
    let a = entry(&list, "mine/a");
    assert_eq!((&a["context_window"], &a["auto_compact_token_limit"]), (&json!(32_768), &json!(24_576)));
    assert_eq!((&a["apply_patch_tool_type"], &a["supports_search_tool"]), (&Value::Null, &json!(true)));
    assert_eq!(a["multi_agent_version"], "disabled");
    assert!(a["base_instructions"].as_str().unwrap().contains("apply_patch <<'EOF'"));
    let b = entry(&list, "mine/b");
    assert_eq!((&b["context_window"], &b["display_name"]), (&json!(16_384), &json!("The B")));
    assert_eq!(b["truncation_policy"], json!({"mode": "tokens", "limit": 2048}));
    // A name for several promises what all of them have.
    assert_eq!(entry(&list, "mixed")["context_window"], 16_384);
}

#[tokio::test]
async fn an_unchanged_list_is_not_sent_again() {
    let rig = Rig::start(chat::answer(false)).await;
    let first = rig.get("/v1/models?client_version=0.166.0").await;
    let tag = first.header("etag").unwrap().to_owned();
    for (known, status) in
        [(tag.clone(), 304), (format!("\"x\", W/{tag}"), 304), ("*".to_owned(), 304), ("\"x\"".to_owned(), 200)]
    {
        let headers = [("if-none-match", &*known)];
        let again = rig.client.request(Method::GET, &rig.url("/v1/models"), &headers, "").await.unwrap();
        assert_eq!((again.status, again.header("etag")), (status, Some(&*tag)), "{known}");
        assert_eq!(again.body.is_empty(), status == 304);
    }
}

#[tokio::test]
async fn local_servers_are_asked_for_their_models() {
    let list = json!({"data": [{"id": "served", "max_model_len": 40960}, {"id": "said", "max_model_len": 1}, {"id": "a/b", "max_model_len": 1}]});
    let up = listing(Script::json(200, &list)).await;
    let broken = listing(Script::respond(500)).await;
    let provider = |upstream: &Upstream, more: &str| {
        format!(
            "{{spec: vllm, endpoint: {{base_url: '{}/v1'}}, credentials: {{api_key: secret-key}}{more}}}",
            upstream.url()
        )
    };
    let models = ", models: [{match: said, context_window: 5000}]";
    let text = format!(
        "session: {{backend: memory}}\nmodels: {{discover: local}}\nproviders:\n  up: {}\n  broken: {}\n  away: {{spec: vllm, \
         endpoint: {{base_url: 'http://127.0.0.1:1/v1'}}}}\n",
        provider(&up, models),
        provider(&broken, ", models: [c]"),
    );
    let rig = Rig::serving(up, parse(&text)).await.unwrap();
    let list = rig.get("/v1/models").await.json();
    assert_eq!(ids(&list), ["said", "broken/c", "demo", "served", "a/b"]);
    assert_eq!(entry(&list, "served")["context_window"], 40_960);
    assert_eq!(entry(&list, "said")["context_window"], 5000, "the configuration has the last word");
    let odd = list["models"].as_array().unwrap().iter().find(|m| m["slug"].as_str().unwrap().ends_with("a/b"));
    assert_eq!(odd.unwrap()["context_window"], 32_768, "nobody has a window of one token");
    assert_eq!(rig.get("/v1/models/served").await.json()["owned_by"], "up");
    let asked = &rig.upstream.requests()[0];
    assert_eq!((asked.path.as_str(), asked.header("authorization")), ("/v1/models", Some("Bearer secret-key")));
    // It is asked now and then, not by each who asks us.
    assert_eq!(rig.upstream.requests().len(), 1);
    // What it lists can be asked for.
    let answer = rig.post(&json!({"model": "a/b", "input": "Hi"})).await;
    assert_eq!((answer.status, &rig.upstream.requests()[1].json()["model"]), (200, &json!("a/b")));
}

#[tokio::test]
async fn nobody_is_asked_who_may_not_be() {
    let up = listing(Script::json(200, &json!({"data": [{"id": "served"}]}))).await;
    let text = format!(
        "session: {{backend: memory}}\nmodels: {{discover: off}}\nproviders:\n  up: {{spec: vllm, endpoint: {{base_url: \
         '{}/v1'}}, models: [m]}}\n",
        up.url()
    );
    let rig = Rig::serving(up, parse(&text)).await.unwrap();
    assert_eq!(ids(&rig.get("/v1/models").await.json()), ["m", "demo"]);
    // Another configuration lets it be asked, and the next one does not show it any more.
    rig.reloader.reload(parse(&text.replace("off", "all"))).unwrap();
    rig.upstream.arrived(1).await;
    let shown = async {
        while !ids(&rig.get("/v1/models").await.json()).contains(&"served") {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), shown).await.unwrap();
    rig.reloader.reload(parse(&text)).unwrap();
    assert_eq!(ids(&rig.get("/v1/models").await.json()), ["m", "demo"]);
    assert_eq!(rig.upstream.requests().len(), 1);
}

#[tokio::test]
async fn a_list_without_end_is_left_alone() {
    let mut endless = Script::respond(200).header("content-type", "application/json").send("{\"data\":[");
    for _ in 0..6 {
        endless = endless.send(" ".repeat(1 << 20));
    }
    let up = listing(endless).await;
    let text = format!(
        "session: {{backend: memory}}\nmodels: {{discover: local}}\nproviders:\n  up: {{spec: vllm, endpoint: {{base_url: \
         '{}/v1'}}, models: [m]}}\n",
        up.url()
    );
    let rig = Rig::serving(up, parse(&text)).await.unwrap();
    assert_eq!(ids(&rig.get("/v1/models").await.json()), ["m", "demo"]);
}
