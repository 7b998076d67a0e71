//! The keys that a client's tools hold for other people's servers: they go to the provider, and nowhere else.

use std::path::Path;

use http::Method;
use serde_json::{Value, json};
use testkit::{Answer, Received, Script, Upstream};

use crate::chat;
use crate::rig::{Rig, Settings};

/// In every secret of a request, so that it can be looked for.
const CANARY: &str = "canary-7d1f";

fn mcp() -> Value {
    json!({
        "type": "mcp", "server_label": "crm", "server_url": format!("https://u:{CANARY}@mcp.example/{CANARY}/sse"),
        "authorization": CANARY, "headers": {"x-api-key": CANARY}, "require_approval": "never",
    })
}

fn shown_mcp() -> Value {
    json!({
        "type": "mcp", "server_label": "crm", "server_url": "https://mcp.example/<redacted>",
        "require_approval": "never",
    })
}

fn container() -> Value {
    let secret = json!({"domain": "a.example", "name": "T", "value": CANARY});
    let policy = json!({"type": "allowlist", "allowed_domains": ["a.example"], "domain_secrets": [secret]});
    json!({"type": "code_interpreter", "container": {"type": "auto", "network_policy": policy}})
}

fn item() -> Value {
    json!({"type": "additional_tools", "role": "developer", "tools": [mcp()]})
}

fn body() -> Value {
    json!({
        "model": "m",
        "input": [{"role": "user", "content": "Hi"}, item()],
        "tools": [{"type": "function", "name": "f"}, mcp(), container()],
        "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}, mcp()]},
    })
}

/// A provider of either kind; one that speaks the Responses API repeats everything that it was sent.
fn provider(received: &Received) -> Script {
    let request = received.json();
    if !received.path.ends_with("/responses") {
        return chat::answer(request["stream"] == json!(true));
    }
    let loaded = json!({
        "type": "tool_search_output", "id": "tso_1", "call_id": null, "execution": "server", "status": "completed",
        "tools": request["tools"],
    });
    let content = json!([{"type": "output_text", "text": "Hello", "annotations": []}]);
    let message =
        json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content});
    let mut whole = request.clone();
    whole["object"] = json!("response");
    whole["status"] = json!("completed");
    whole["output"] = json!([loaded, message]);
    if request["stream"] != json!(true) {
        return Script::json(200, &whole);
    }
    let created = json!({"type": "response.created", "response": whole});
    let completed = json!({"type": "response.completed", "response": whole});
    [created, completed].iter().fold(Script::event_stream(), Script::event)
}

fn clean(what: &str, answer: &Answer) {
    assert!(answer.status < 300, "{what}: {}", String::from_utf8_lossy(&answer.body));
    let text = format!("{:?} {}", answer.headers, String::from_utf8_lossy(&answer.body));
    assert!(!text.contains(CANARY), "{what}: {text}");
}

/// The files of a folder that hold the canary.
fn holding(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let holds = |path: &Path| std::fs::read(path).unwrap().windows(CANARY.len()).any(|at| at == CANARY.as_bytes());
    files.filter(|path| holds(path)).map(|path| path.display().to_string()).collect()
}

#[tokio::test]
async fn keys_in_tools_are_neither_repeated_nor_kept() {
    for spec in ["openai-compatible", "responses-compatible"] {
        let folder = tempfile::tempdir().unwrap();
        let session = format!("sqlite: {{path: '{}'}}", folder.path().join("sessions.db").display());
        let upstream = Upstream::start_with(provider).await.unwrap();
        let rig = Rig::before(upstream, Settings { session, spec, ..Settings::default() }).await;
        let (whole, streamed) = rig.both(&body()).await;
        let from_stream = testkit::grammar::check(&streamed.body).unwrap().response;
        for (answer, response) in [(&whole, whole.json()), (&streamed, from_stream)] {
            clean(spec, answer);
            assert_eq!(response["tools"][1], shown_mcp(), "{spec}");
            let policy = &response["tools"][2]["container"]["network_policy"];
            assert_eq!(*policy, json!({"type": "allowlist", "allowed_domains": ["a.example"]}), "{spec}");
            assert_eq!(response["tool_choice"]["tools"][1], shown_mcp(), "{spec}");
            let id = response["id"].as_str().unwrap();
            let stored = rig.get(&format!("/v1/responses/{id}")).await;
            clean(spec, &stored);
            assert_eq!(stored.json(), response, "{spec}");
            let items = rig.get(&format!("/v1/responses/{id}/input_items?order=asc")).await;
            clean(spec, &items);
            assert_eq!(items.json()["data"][1]["tools"], json!([shown_mcp()]), "{spec}");
        }
        let made = rig.send(Method::POST, "/v1/conversations", &json!({"items": [item()]})).await;
        clean(spec, &made);
        let path = format!("/v1/conversations/{}/items", made.json()["id"].as_str().unwrap());
        clean(spec, &rig.send(Method::POST, &path, &json!({"items": [item()]})).await);
        clean(spec, &rig.get(&path).await);
        if spec == "responses-compatible" {
            assert_eq!(rig.upstream.requests()[0].json()["tools"], body()["tools"]);
            assert_eq!(rig.upstream.requests()[0].json()["input"][1], item());
        }
        rig.stop().await;
        assert_eq!(holding(folder.path()), Vec::<String>::new(), "{spec}");
    }
}
