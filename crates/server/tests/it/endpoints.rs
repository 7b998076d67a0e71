//! The small endpoints.

use http::Method;
use serde_json::{Value, json};

use crate::chat;
use crate::rig::{Rig, error};

#[tokio::test]
async fn health_and_readiness() {
    let rig = Rig::start(chat::answer(false)).await;
    let health = rig.client.get(&rig.url("/health")).await.unwrap();
    let mut body = health.json();
    assert!(body["timestamp"].take().as_u64().is_some_and(|millis| millis > 1_700_000_000_000));
    let expected = json!({"status": "ok", "timestamp": null, "name": "godex", "version": env!("CARGO_PKG_VERSION"),
        "providers": ["up", "demo"], "unsupported_providers": []});
    assert_eq!((health.status, body), (200, expected));
    let ready = rig.client.get(&rig.url("/ready")).await.unwrap();
    assert_eq!((ready.status, ready.json()), (200, json!({"status": "ready"})));
    for path in ["/health", "/ready", "/health?x=1"] {
        let head = rig.client.request(Method::HEAD, &rig.url(path), &[], "").await.unwrap();
        assert_eq!((head.status, head.body.len()), (200, 0), "{path}");
        assert!(head.header("x-request-id").is_some(), "{path}");
    }
}

#[tokio::test]
async fn models_are_listed_and_found() {
    let rig = Rig::start(chat::answer(false)).await;
    let list = rig.client.get(&rig.url("/v1/models")).await.unwrap();
    assert_eq!((list.status, list.header("content-type")), (200, Some("application/json")));
    let list = list.json();
    assert_eq!(list["object"], "list");
    let entry = |model: &Value| json!([model["id"], model["object"], model["owned_by"]]);
    let found: Vec<Value> = list["data"].as_array().unwrap().iter().map(entry).collect();
    assert_eq!(found, [json!(["m", "model", "up"]), json!(["demo", "model", "demo"])]);
    assert!(list["data"][0]["created"].as_u64().is_some_and(|seconds| seconds > 1_700_000_000));

    for (path, id, owner) in [
        ("m", "m", "up"),
        ("demo", "demo", "demo"),
        ("up%2Fm", "up/m", "up"),
        ("up%2fother", "up/other", "up"),
        ("up/a/b", "up/a/b", "up"),
        ("demo%2Fdemo", "demo/demo", "demo"),
        ("Qwen%2FQwen3-8B", "Qwen/Qwen3-8B", "up"),
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B", "up"),
        ("a%2Fb%20c%25", "a/b c%", "up"),
    ] {
        let model = rig.client.get(&rig.url(&format!("/v1/models/{path}"))).await.unwrap();
        assert_eq!(entry(&model.json()), json!([id, "model", owner]), "{path}");
    }
    for path in ["nosuch", "%2F", "%", "%ff", "%+5", "up%2F"] {
        let answer = rig.client.get(&rig.url(&format!("/v1/models/{path}"))).await.unwrap();
        assert_eq!(error(&answer).key(), (404, "invalid_request_error", "model_not_found", Some("model")), "{path}");
    }
}

#[tokio::test]
async fn every_answer_has_its_own_id() {
    let rig = Rig::start(chat::answer(false)).await;
    let mut seen = Vec::new();
    for path in ["/health", "/health", "/nowhere", "/v1/models", "/v1/responses"] {
        let answer = rig.client.get(&rig.url(path)).await.unwrap();
        seen.push(answer.header("x-request-id").unwrap().to_owned());
    }
    let count = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), count);
}
