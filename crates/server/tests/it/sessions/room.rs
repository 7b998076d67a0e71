//! A short request may ask for much of the store: what is read for it counts like what is sent.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use server::config::Config;
use testkit::{Answer, Script};

use super::id;
use crate::chat;
use crate::rig::{Rig, Settings, error, object, spawn};
use crate::socket::Socket;

async fn rig(script: Script, tweak: fn(&mut Config)) -> Rig {
    Rig::with(script, Settings { tweak: Some(tweak), ..Settings::default() }).await
}

async fn conversation(rig: &Rig, texts: &[String]) -> Value {
    let items: Vec<Value> =
        texts.iter().map(|text| json!({"type": "message", "role": "user", "content": text})).collect();
    let answer = rig.send(Method::POST, "/v1/conversations", &json!({"items": items})).await;
    assert_eq!(answer.status, 200);
    answer.json()
}

fn assert_refused(answer: &Answer, name: &str) {
    assert_eq!(answer.header("retry-after"), Some("1"), "{name}");
    let found = error(answer);
    assert_eq!((found.status, found.domain.as_str()), (503, "too_many_bytes_in_flight"), "{name}");
}

/// Asks until there is room again, as clients do.
async fn until_served(rig: &Rig, method: Method, path: &str, body: &Value) -> Answer {
    loop {
        let answer = rig.send(method.clone(), path, body).await;
        if answer.status != 503 {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// One waits for a silent provider, and holds what it continues; others are told to come back, and then served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_request_continues_counts_while_it_waits() {
    let rig = rig(Script::silent(), |config| config.limits.body_bytes_in_flight = 1 << 20).await;
    rig.upstream.queue(chat::answer(false));
    let first = object(&rig.post(&json!({"model": "m", "input": "x".repeat(300_000)})).await);
    let said = conversation(&rig, &["y".repeat(300_000)]).await;
    let items = rig.get(&format!("/v1/conversations/{}/items", id(&said))).await.json();
    let reference = json!({"type": "item_reference", "id": items["data"][0]["id"]});
    let mut held_before = 1;
    for (name, mut body) in [
        ("a chain", json!({"previous_response_id": first["id"], "input": "on"})),
        ("a conversation", json!({"conversation": said["id"], "input": "on", "store": false})),
        ("a reference", json!({"input": [reference, {"role": "user", "content": "on"}]})),
    ] {
        body["model"] = json!("m");
        let held = {
            let (client, url, body) = (rig.client.clone(), rig.url("/v1/responses"), body.clone());
            spawn(async move { client.post_json(&url, &body).await })
        };
        rig.upstream.arrived(held_before + 1).await;
        for _ in 0..4 {
            assert_refused(&rig.post(&body).await, name);
        }
        assert_eq!(rig.upstream.requests().len(), held_before + 1, "{name}");
        held.abort();
        rig.upstream.closed_after(held_before).await;
        rig.upstream.queue(chat::answer(false));
        object(&until_served(&rig, Method::POST, "/v1/responses", &body).await);
        held_before += 2;
    }
}

/// More is asked for than there is room for altogether: it is refused, and nothing stays taken.
#[tokio::test]
async fn more_than_there_is_room_for_is_refused_and_given_back() {
    let rig = rig(chat::answer(false), |config| config.limits.body_bytes_in_flight = 1 << 20).await;
    let mut references = Vec::new();
    for _ in 0..4 {
        let said = conversation(&rig, &["y".repeat(300_000)]).await;
        let items = rig.get(&format!("/v1/conversations/{}/items", id(&said))).await.json();
        references.push(json!({"type": "item_reference", "id": items["data"][0]["id"]}));
    }
    for _ in 0..8 {
        assert_refused(&rig.post(&json!({"model": "m", "input": references})).await, "four");
    }
    assert!(rig.upstream.requests().is_empty());
    object(&rig.post(&json!({"model": "m", "input": references[..1]})).await);
}

/// Lists whose clients do not read them are held, counted, and given back with the connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_nobody_reads_counts() {
    let rig = rig(chat::answer(false), |config| config.limits.body_bytes_in_flight = 40 << 20).await;
    let said = conversation(&rig, &["y".repeat(8_000_000)]).await;
    let response = json!({"model": "m", "input": [{"role": "user", "content": "z".repeat(8_000_000)}]});
    let response = object(&rig.post(&response).await);
    let conversation_items = format!("/v1/conversations/{}/items", id(&said));
    let item = rig.get(&conversation_items).await.json()["data"][0]["id"].as_str().unwrap().to_owned();
    for path in [
        conversation_items.clone(),
        format!("{conversation_items}/{item}"),
        format!("/v1/responses/{}/input_items", id(&response)),
    ] {
        let mut sockets = Vec::new();
        let refused = loop {
            let mut socket = Socket::connect(rig.address).await;
            socket.send(&format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")).await;
            let head = socket.read_until("\r\n\r\n").await;
            if !head.starts_with("HTTP/1.1 200 ") || sockets.len() == 8 {
                break head;
            }
            sockets.push(socket);
        };
        assert!(refused.starts_with("HTTP/1.1 503 "), "{path}: {}", &refused[..refused.len().min(200)]);
        assert!(refused.contains("too_many_bytes_in_flight") && !sockets.is_empty(), "{path}");
        drop(sockets);
        assert_eq!(until_served(&rig, Method::GET, &path, &Value::Null).await.status, 200, "{path}");
    }
}

/// Items whose list does not fit into an answer are not stored: a client that comes back would store them twice.
#[tokio::test]
async fn items_that_are_refused_are_not_stored() {
    let rig = rig(chat::answer(false), |config| config.limits.body_bytes_in_flight = 1 << 20).await;
    let said = conversation(&rig, &[]).await;
    let path = format!("/v1/conversations/{}/items", id(&said));
    let item = json!({"type": "message", "role": "user", "content": "x".repeat(600_000)});
    assert_refused(&rig.send(Method::POST, &path, &json!({"items": [item]})).await, "items");
    assert_eq!(rig.get(&path).await.json()["data"], json!([]));
}

/// A page of large items ends before it is larger than its part of the room; the rest is on the next ones.
#[tokio::test]
async fn a_page_of_large_items_ends_early() {
    let rig = rig(chat::answer(false), |config| config.limits.body_bytes_in_flight = 4 << 20).await;
    let texts: Vec<String> = (0..7).map(|n| n.to_string().repeat(if n == 3 { 700_000 } else { 200_000 })).collect();
    let said = conversation(&rig, &texts[..4]).await;
    let path = format!("/v1/conversations/{}/items", id(&said));
    for text in &texts[4..] {
        let items = json!({"items": [{"type": "message", "role": "user", "content": text}]});
        assert_eq!(rig.send(Method::POST, &path, &items).await.status, 200);
    }
    for order in ["asc", "desc"] {
        let (mut seen, mut pages, mut after) = (Vec::new(), 0, String::new());
        loop {
            let page = rig.get(&format!("{path}?limit=100&order={order}&after={after}")).await;
            assert!(page.body.len() < 1 << 20, "{order}");
            let page = page.json();
            let texts = page["data"].as_array().unwrap().iter();
            seen.extend(texts.map(|item| item["content"][0]["text"].as_str().unwrap().to_owned()));
            pages += 1;
            if page["has_more"] == false {
                break;
            }
            page["last_id"].as_str().unwrap().clone_into(&mut after);
        }
        if order == "desc" {
            seen.reverse();
        }
        assert!(seen == texts, "{order}");
        assert!((2..7).contains(&pages), "{order}: {pages}");
    }
}
