//! The keys that a client's tools hold for other people's servers: they go to the provider, and nowhere else.

use std::path::Path;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use testkit::{Answer, Received, Script, Upstream};

use crate::chat;
use crate::rig::{Rig, Settings};

/// In every secret of a request, so that it can be looked for.
const CANARY: &str = "canary-7d1f";

fn mcp() -> Value {
    json!({
        "type": "mcp", "server_label": "crm", "server_url": format!("https://mcp.example/{CANARY}/sse"),
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

/// The server has no tools, so nobody asks it for them.
fn listed() -> Value {
    json!({"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "crm", "tools": []})
}

fn any_server(config: &mut server::config::Config) {
    config.tools.mcp.clients = server::config::McpClients::Open;
}

fn item() -> Value {
    json!({"type": "additional_tools", "role": "developer", "tools": [mcp()]})
}

fn body() -> Value {
    json!({
        "model": "m",
        "input": [{"role": "user", "content": "Hi"}, item(), listed()],
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
        let rig =
            Rig::before(upstream, Settings { session, spec, tweak: Some(any_server), ..Settings::default() }).await;
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

/// The status of a background response, when it has ended.
async fn ended(rig: &Rig, id: &str) -> Answer {
    loop {
        let answer = rig.get(&format!("/v1/responses/{id}")).await;
        if !["queued", "in_progress"].iter().any(|status| answer.json()["status"] == *status) {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// It waits in memory only: who starts again does not have the keys, and says so.
#[tokio::test]
async fn a_background_request_with_keys_is_written_nowhere_while_it_waits() {
    let folder = tempfile::tempdir().unwrap();
    let session = format!(
        "background: {{concurrency: 1, queue: 10}}, sqlite: {{path: '{}'}}",
        folder.path().join("sessions.db").display()
    );
    let settings = || Settings { session: session.clone(), tweak: Some(any_server), ..Settings::default() };
    let upstream = Upstream::start_with(|received| {
        let waits = received.json()["messages"].to_string().contains("wait");
        if waits { Script::json(200, &json!({})).delay(Duration::from_mins(10)) } else { provider(received) }
    });
    let rig = Rig::before(upstream.await.unwrap(), settings()).await;
    let ask = async |rig: &Rig, text: &str| {
        let tools = json!([mcp()]);
        let input = json!([listed(), {"role": "user", "content": text}]);
        let body = json!({"model": "m", "input": input, "background": true, "tools": tools});
        let answer = rig.post(&body).await;
        clean(text, &answer);
        answer.json()["id"].as_str().unwrap().to_owned()
    };
    let whole = ask(&rig, "Hi").await;
    let done = ended(&rig, &whole).await;
    clean("done", &done);
    assert_eq!(done.json()["status"], "completed");
    let runs = ask(&rig, "wait").await;
    let waits = ask(&rig, "Hi, later").await;
    assert_eq!(rig.get(&format!("/v1/responses/{waits}")).await.json()["status"], "queued");
    assert_eq!(holding(folder.path()), Vec::<String>::new(), "while one runs and one waits");
    rig.stop_at_once().await;
    assert_eq!(holding(folder.path()), Vec::<String>::new());
    let rig = Rig::before(Upstream::start_with(provider).await.unwrap(), settings()).await;
    for id in [&runs, &waits] {
        let lost = ended(&rig, id).await;
        clean("lost", &lost);
        assert_eq!(lost.json()["status"], "failed", "{}", lost.json());
    }
    assert!(rig.upstream.requests().is_empty(), "nobody can ask without the keys");
    rig.stop().await;
    assert_eq!(holding(folder.path()), Vec::<String>::new());
}
