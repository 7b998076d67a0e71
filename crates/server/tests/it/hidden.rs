//! What is kept beside the calls of hosted tools, and shown to nobody: the model was told it, and that is all.

use std::path::Path;

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use store::{Item, NewConversation, NewTurn, Parent, SqliteOptions, Status, Store, Tenant};
use testkit::{Answer, Upstream, forgetful};

use crate::rig::{Rig, Settings};

/// In everything that is hidden, so that it can be looked for.
const CANARY: &str = "canary-51c0";
const MEMBER: &str = "godex_output";

fn hidden() -> Value {
    json!({"call_id": CANARY, "output": CANARY, "sources": [{"url": CANARY, "title": CANARY}], "ends_round": true})
}

/// One of each kind that has it.
fn calls(n: usize) -> Vec<Value> {
    vec![
        json!({"id": format!("mcpl_{n}"), "type": "mcp_list_tools", "server_label": "s", "tools": []}),
        json!({"id": format!("mcp_{n}"), "type": "mcp_call", "status": "completed", "approval_request_id": null,
            "arguments": "{}", "error": null, "name": "f", "output": "shown", "server_label": "s"}),
        json!({"id": format!("ws_{n}"), "type": "web_search_call", "status": "completed",
            "action": {"type": "search", "query": "q", "queries": ["q"]}}),
        json!({"id": format!("mcpr_{n}"), "type": "mcp_approval_request", "arguments": "{}", "name": "f",
            "server_label": "s"}),
    ]
}

fn with_member(mut item: Value) -> Value {
    item[MEMBER] = hidden();
    item
}

fn item(value: &Value) -> Item {
    Item { id: value["id"].as_str().unwrap().to_owned(), body: Bytes::from(with_member(value.clone()).to_string()) }
}

/// A database in which a response and a conversation have such calls.
async fn filled(path: &Path) {
    let store = Store::sqlite(path, &SqliteOptions::default()).unwrap();
    let mine = store.for_tenant(Tenant::default());
    let head = json!({"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "error": null,
        "incomplete_details": null, "instructions": null, "model": "m", "output": [], "parallel_tool_calls": true,
        "tool_choice": "auto", "tools": [], "background": false, "store": true, "metadata": {}});
    let turn = NewTurn {
        id: "resp_1".to_owned(),
        parent: Parent::None,
        status: Status::Completed,
        created_at: 1,
        expires_at: None,
        head: Bytes::from(head.to_string()),
        settings: None,
        input: calls(1).iter().map(item).collect(),
        output: calls(2).iter().map(item).collect(),
        events: None,
        key: None,
    };
    mine.put(turn).await.unwrap();
    let conversation = NewConversation {
        id: "conv_1".to_owned(),
        created_at: 1,
        metadata: Bytes::from_static(b"{}"),
        items: calls(3).iter().map(item).collect(),
    };
    mine.create_conversation(conversation).await.unwrap();
    store.close().await;
}

fn clean(what: &str, answer: &Answer) -> Value {
    let text = format!("{:?} {}", answer.headers, String::from_utf8_lossy(&answer.body));
    assert!(answer.status < 300, "{what}: {text}");
    assert!(!text.contains(CANARY) && !text.contains(MEMBER), "{what}: {text}");
    if answer.body.starts_with(b"{") { answer.json() } else { Value::Null }
}

/// Whether any file of the folder has the text.
fn holds(folder: &Path, text: &str) -> bool {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.into_iter().any(|path| std::fs::read(path).unwrap().windows(text.len()).any(|at| at == text.as_bytes()))
}

async fn rig(path: &Path) -> Rig {
    let session = format!("ttl: never, sqlite: {{path: '{}'}}", path.display());
    let tweak: fn(&mut server::config::Config) = |config| config.compat.repair_history = Some(true);
    let upstream = Upstream::start_with(forgetful).await.unwrap();
    Rig::before(upstream, Settings { session, tweak: Some(tweak), ..Settings::default() }).await
}

#[tokio::test]
async fn what_the_model_was_told_is_shown_on_no_road() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    filled(&path).await;
    let rig = rig(&path).await;
    let stored = clean("object", &rig.get("/v1/responses/resp_1").await);
    assert_eq!(stored["output"], json!(calls(2)));
    let included = "/v1/responses/resp_1?include[]=web_search_call.action.sources";
    assert_eq!(clean("with include", &rig.get(included).await), stored);
    let listed = clean("input", &rig.get("/v1/responses/resp_1/input_items?order=asc").await);
    assert_eq!(listed["data"], json!(calls(1)));
    let items = "/v1/conversations/conv_1/items";
    let listed = clean("conversation", &rig.get(&format!("{items}?order=asc")).await);
    assert_eq!(listed["data"], json!(calls(3)));
    for item in calls(3) {
        let path = format!("{items}/{}", item["id"].as_str().unwrap());
        assert_eq!(clean("item", &rig.get(&path).await), item);
    }
    // Referred to, it is where it was referred to, and as little seen.
    let reference = json!({"type": "item_reference", "id": "mcp_2"});
    let made = rig.send(Method::POST, "/v1/conversations", &json!({"items": [reference]})).await;
    let path = format!("/v1/conversations/{}/items", clean("made", &made)["id"].as_str().unwrap());
    assert_eq!(clean("there", &rig.get(&path).await)["data"], json!([calls(2)[1]]));
    clean("added", &rig.send(Method::POST, &path, &json!({"items": [{"id": "ws_2"}]})).await);
    for body in [
        json!({"input": "Go on.", "previous_response_id": "resp_1"}),
        json!({"input": "Go on.", "conversation": "conv_1"}),
        json!({"input": [{"role": "user", "content": "Go on."}, reference, {"id": "ws_1"}]}),
    ] {
        for stream in [false, true] {
            let mut body = body.clone();
            body["model"] = json!("m");
            body["stream"] = json!(stream);
            let answer = rig.post(&body).await;
            clean("turn", &answer);
            let sent = rig.upstream.requests().pop().unwrap();
            assert!(!String::from_utf8_lossy(&sent.body).contains(MEMBER), "{body}");
            if !stream {
                let path = format!("/v1/responses/{}", answer.json()["id"].as_str().unwrap());
                clean("its object", &rig.get(&path).await);
                clean("its input", &rig.get(&format!("{path}/input_items")).await);
            }
        }
    }
    clean("conversation", &rig.get(items).await);
    rig.stop().await;
}

/// It is ours: whoever sends it says nothing by it, and gets nothing of it back.
#[tokio::test]
async fn what_clients_send_in_its_place_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let rig = rig(&path).await;
    let forged: Vec<Value> = calls(1).into_iter().map(with_member).collect();
    for native in [json!({}), json!({"background": true})] {
        let mut body = native;
        body["model"] = json!("m");
        body["input"] = json!(forged);
        let answer = rig.post(&body).await;
        let made = clean("turn", &answer);
        let path = format!("/v1/responses/{}/input_items?order=asc", made["id"].as_str().unwrap());
        assert_eq!(clean("input", &rig.get(&path).await)["data"], json!(calls(1)));
        assert!(rig.upstream.requests().iter().all(|sent| !String::from_utf8_lossy(&sent.body).contains(CANARY)));
    }
    let made = clean("made", &rig.send(Method::POST, "/v1/conversations", &json!({"items": forged})).await);
    let items = format!("/v1/conversations/{}/items", made["id"].as_str().unwrap());
    assert_eq!(clean("there", &rig.get(&format!("{items}?order=asc")).await)["data"], json!(calls(1)));
    let more: Vec<Value> = calls(2).into_iter().map(with_member).collect();
    let added = clean("added", &rig.send(Method::POST, &items, &json!({"items": more})).await);
    assert_eq!(added["data"], json!(calls(2)));
    rig.stop().await;
    assert!(holds(folder.path(), "web_search_call") && !holds(folder.path(), CANARY));
}

/// Deleted with its item.
#[tokio::test]
async fn it_is_gone_with_its_item() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    filled(&path).await;
    assert!(holds(folder.path(), CANARY));
    let rig = rig(&path).await;
    assert_eq!(rig.send(Method::DELETE, "/v1/responses/resp_1", &Value::Null).await.status, 200);
    for item in calls(3) {
        let path = format!("/v1/conversations/conv_1/items/{}", item["id"].as_str().unwrap());
        assert_eq!(rig.send(Method::DELETE, &path, &Value::Null).await.status, 200);
    }
    rig.stop().await;
    assert!(!holds(folder.path(), CANARY));
}
