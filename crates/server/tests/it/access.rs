//! Who may ask: keys that the configuration declares, and that the store has.

mod oidc;
mod stored;
mod tools;

use http::Method;
use serde_json::{Value, json};
use server::StartError;
use server::config::{Config, KeyConfig, Secret};
use testkit::{Answer, Script, Upstream};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::chat;
use crate::rig::{self, Rig, error, object};
use crate::websocket::client::Client;

const A: &str = "key-of-the-tenant-a-0001";
const B: &str = "key-of-the-tenant-b-0002";

fn text(upstream: &Upstream, more: &str) -> String {
    format!(
        "session: {{backend: memory}}\nmodels: {{aliases: {{fast: up/m2}}}}\ntools: {{mcp: {{servers: {{clock: {{url: \
         'http://127.0.0.1:9/mcp'}}}}}}}}\nproviders:\n  up:\n    spec: openai-compatible\n    endpoint: {{base_url: \
         '{}/v1'}}\n    credentials: {{api_key: k}}\n    models: [m]\n{more}",
        upstream.url()
    )
}

const KEYS: &str = "keys:\n- {name: a, tenant: a, key: key-of-the-tenant-a-0001}\n\
                    - {name: b, tenant: b, key: key-of-the-tenant-b-0002, models: [fast, 'x/*'], tools: ['mcp:other']}\n";

async fn with(more: &str) -> Rig {
    let upstream = Upstream::start(Script::sse(&chat::chunks())).await.unwrap();
    let config = rig::parse(&text(&upstream, more));
    Rig::serving(upstream, config).await.unwrap()
}

async fn send(rig: &Rig, key: &str, method: Method, path: &str, body: &Value) -> Answer {
    let bearer = format!("Bearer {key}");
    let headers = [("content-type", "application/json"), ("authorization", bearer.as_str())];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    rig.client.request(method, &rig.url(path), &headers, body).await.unwrap()
}

async fn ask(rig: &Rig, key: &str, model: &str) -> Answer {
    send(rig, key, Method::POST, "/v1/responses", &json!({"model": model, "input": "Hi"})).await
}

async fn get(rig: &Rig, key: &str, path: &str) -> Answer {
    send(rig, key, Method::GET, path, &Value::Null).await
}

#[tokio::test]
async fn without_keys_everybody_may_ask_whatever_they_show() {
    let rig = with("").await;
    object(&rig.post(&json!({"model": "m", "input": "Hi"})).await);
    object(&ask(&rig, "anything", "m").await);
    let health = rig.get("/health").await.json();
    assert_eq!((&health["status"], &health["providers"]), (&json!("ok"), &json!(["up", "demo"])));
}

#[tokio::test]
async fn a_key_closes_the_door_for_whoever_has_none() {
    let rig = with(KEYS).await;
    let body = json!({"model": "m", "input": "Hi"}).to_string();
    let bearer = format!("Bearer {A}");
    let (typo, secret) = ("Bearer gdx_000000000000000000000000000000000", "Bearer sk-proj-of-somebody-else-0000wxyz");
    let missing = (401, "missing_api_key", "You didn't provide an API key.");
    for (headers, expected) in [
        (&[][..], missing),
        (&[("authorization", "Basic a2V5")], missing),
        (&[("x-api-key", A)], missing),
        (&[("cookie", A)], missing),
        (&[("authorization", A)], missing),
        (
            &[("authorization", typo)],
            (401, "invalid_api_key", "Incorrect API key provided: gdx_****0000. It is mistyped"),
        ),
        (&[("authorization", secret)], (401, "invalid_api_key", "Incorrect API key provided: ****wxyz. You can")),
        (&[("authorization", "Bearer k")], (401, "invalid_api_key", "Incorrect API key provided: ****. You can")),
        (
            &[("authorization", &bearer), ("authorization", &bearer)],
            (400, "invalid_header", "The request has more than"),
        ),
    ] {
        let headers: Vec<_> = headers.iter().copied().chain([("content-type", "application/json")]).collect();
        let refused =
            rig.client.request(Method::POST, &rig.url("/v1/responses"), &headers, body.clone()).await.unwrap();
        let found = error(&refused);
        assert_eq!(
            (found.status, found.code.as_str(), found.kind.as_str()),
            (expected.0, expected.1, "invalid_request_error")
        );
        assert!(found.message.starts_with(expected.2), "{found:?}");
        assert_eq!(refused.header("www-authenticate"), (expected.0 == 401).then_some("Bearer"));
        assert!(!String::from_utf8_lossy(&refused.body).contains("somebody-else"), "{found:?}");
    }
    // Also where nothing is, and never in the address.
    for path in ["/v1/models", "/v1/nothing", "/v1/responses/resp_1", &format!("/v1/models?api_key={A}&key={A}")] {
        assert_eq!(
            error(&rig.get(path).await).key(),
            (401, "invalid_request_error", "missing_api_key", None),
            "{path}"
        );
    }
    assert_eq!(rig.upstream.requests().len(), 0);
    for headers in [
        [("authorization", bearer.as_str())],
        [("authorization", &bearer.replace("Bearer", "bearer"))],
        [("api-key", A)],
    ] {
        let headers: Vec<_> = headers.into_iter().chain([("content-type", "application/json")]).collect();
        object(&rig.client.request(Method::POST, &rig.url("/v1/responses"), &headers, body.clone()).await.unwrap());
    }
}

#[tokio::test]
async fn strangers_learn_only_that_a_godex_is_there() {
    let rig = with(KEYS).await;
    let names = |answer: &Answer| answer.json().as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    for stranger in [rig.get("/health").await, get(&rig, "a key that nobody has", "/health").await] {
        assert_eq!(
            (stranger.status, names(&stranger)),
            (200, ["status", "timestamp", "name"].map(str::to_owned).to_vec())
        );
    }
    assert_eq!(get(&rig, A, "/health").await.json()["providers"], json!(["up", "demo"]));
    assert_eq!(rig.get("/ready").await.status, 200);
}

#[tokio::test]
async fn what_a_tenant_stores_is_not_there_for_another() {
    let rig = with(KEYS).await;
    let made = object(&ask(&rig, A, "m").await);
    let path = format!("/v1/responses/{}", made["id"].as_str().unwrap());
    object(&get(&rig, A, &path).await);
    let (foreign, unknown) = (get(&rig, B, &path).await, get(&rig, B, "/v1/responses/resp_0").await);
    assert_eq!((foreign.status, unknown.status), (404, 404));
    assert_eq!(error(&foreign).key(), error(&unknown).key());
}

#[tokio::test]
async fn a_key_may_be_for_some_models() {
    let rig = with(&format!("{KEYS}- {{name: c, tenant: c, key: key-of-the-tenant-c-0003, models: ['up/*']}}\n")).await;
    object(&ask(&rig, B, "fast").await);
    for model in ["m", "up/m2", "fas", "fast ", "FAST"] {
        let body = json!({"model": model, "input": "Hi"});
        for path in ["/v1/responses", "/v1/responses/compact", "/v1/responses/input_tokens"] {
            let refused = error(&send(&rig, B, Method::POST, path, &body).await);
            assert_eq!(refused.key(), (403, "invalid_request_error", "model_not_found", None), "{path} {model}");
            assert_eq!(refused.domain, "model_not_allowed");
        }
    }
    // What is counted for no model in particular asks none.
    let counted = send(&rig, B, Method::POST, "/v1/responses/input_tokens", &json!({"input": "Hi"})).await;
    assert_eq!(counted.status, 200, "{}", String::from_utf8_lossy(&counted.body));
    let ids = |answer: &Answer| {
        let of = |list: &str, id: &str| {
            let models = answer.json()[list].as_array().unwrap().clone();
            models.iter().map(|model| model[id].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        (of("data", "id"), of("models", "slug"))
    };
    assert_eq!(ids(&get(&rig, B, "/v1/models").await), (vec!["fast".to_owned()], vec!["fast".to_owned()]));
    assert!(ids(&get(&rig, A, "/v1/models").await).0.contains(&"m".to_owned()));
    // Listed is what it may ask for, by the name that is good for it: of an alias, what that stands for.
    assert_eq!(ids(&get(&rig, "key-of-the-tenant-c-0003", "/v1/models").await).0, ["up/m2", "up/m"]);
    object(&ask(&rig, "key-of-the-tenant-c-0003", "up/m").await);
    assert_eq!(get(&rig, B, "/v1/models/fast").await.status, 200);
    let (forbidden, unknown) = (get(&rig, B, "/v1/models/m").await, get(&rig, B, "/v1/models/n").await);
    assert_eq!(error(&forbidden).message.replace("'m'", "'n'"), error(&unknown).message);
    assert_eq!((error(&forbidden).key(), forbidden.status), (error(&unknown).key(), 404));
    assert_eq!(get(&rig, A, "/v1/models/m").await.status, 200);
}

#[tokio::test]
async fn a_key_may_be_for_some_hosted_tools() {
    let rig = with(KEYS).await;
    for (tool, named) in [
        (json!({"type": "web_search"}), "web_search"),
        (json!({"type": "mcp", "server_label": "clock"}), "mcp:clock"),
        (json!({"type": "mcp", "server_label": "other", "server_url": "https://mcp.example.com/"}), "mcp"),
        (json!({"type": "code_interpreter", "container": {"type": "auto"}}), "code_interpreter"),
    ] {
        let body = json!({"model": "fast", "input": "Hi", "tools": [tool]});
        for path in ["/v1/responses", "/v1/responses/input_tokens"] {
            let refused = error(&send(&rig, B, Method::POST, path, &body).await);
            assert_eq!(
                refused.key(),
                (403, "invalid_request_error", "tool_not_allowed", Some("tools")),
                "{path} {tool}"
            );
            assert!(refused.message.ends_with(&format!("the tool `{named}`")), "{refused:?}");
        }
    }
    let searched = send(&rig, B, Method::POST, "/v1/alpha/search", &json!({"commands": {}})).await;
    assert_eq!(error(&searched).code, "tool_not_allowed");
    let function =
        json!({"model": "fast", "input": "Hi", "tools": [{"type": "function", "name": "f", "parameters": {}}]});
    object(&send(&rig, B, Method::POST, "/v1/responses", &function).await);
    let searched = send(&rig, A, Method::POST, "/v1/alpha/search", &json!({"commands": {}})).await;
    assert_eq!(error(&searched).code, "not_found");
}

#[tokio::test]
async fn a_key_that_is_taken_out_is_dead_at_once_also_on_open_connections() {
    let rig = with(KEYS).await;
    let without_b = KEYS.lines().take(2).fold(String::new(), |text, line| text + line + "\n");
    let bearer = format!("Bearer {B}");
    let (mut socket, _) = Client::connect_as(&rig, &[("authorization", &bearer)]).await;
    let create = json!({"type": "response.create", "model": "fast", "store": false, "input": "Hi"});
    assert_eq!(socket.respond(&create).await.response["status"], "completed");
    rig.reloader.reload(rig::parse(&text(&rig.upstream, &without_b))).unwrap();
    assert_eq!(error(&ask(&rig, B, "fast").await).code, "invalid_api_key");
    socket.say(&create).await;
    let refused = socket.next().await;
    assert_eq!((&refused["type"], &refused["status"]), (&json!("error"), &json!(401)));
    assert_eq!(refused["error"]["code"], "invalid_api_key");
    assert_eq!(socket.closed().await.map(|(code, _)| code), Some(CloseCode::Policy));
    object(&ask(&rig, A, "m").await);
    assert_eq!(rig.upstream.requests().len(), 2);
}

#[tokio::test]
async fn a_page_shows_its_key_as_a_protocol() {
    let rig = with(KEYS).await;
    let protocols = format!("responses, openai-insecure-api-key.{A}");
    let (mut socket, headers) = Client::connect_as(&rig, &[("sec-websocket-protocol", &protocols)]).await;
    assert_eq!(headers["sec-websocket-protocol"], "responses");
    let create = json!({"type": "response.create", "model": "m", "store": false, "input": "Hi"});
    assert_eq!(socket.respond(&create).await.response["status"], "completed");
}

#[tokio::test]
async fn an_address_that_others_reach_needs_a_key() {
    let upstream = Upstream::start(Script::sse(&chat::chunks())).await.unwrap();
    let open = rig::parse(&text(&upstream, "server: {host: 0.0.0.0}\n"));
    let refused = Rig::serving(Upstream::start(Script::sse(&[])).await.unwrap(), open).await.err().unwrap();
    assert!(matches!(&refused, StartError::Unguarded { host } if host == "0.0.0.0"), "{refused}");
    assert!(refused.to_string().contains("godex keys create"), "{refused}");
    let said = rig::parse(&text(&upstream, "server: {host: 0.0.0.0, allow_unauthenticated: true}\n"));
    drop(Rig::serving(Upstream::start(Script::sse(&[])).await.unwrap(), said).await.unwrap());
    let guarded = rig::parse(&text(&upstream, &format!("server: {{host: 0.0.0.0}}\n{KEYS}")));
    let without_keys = Config { keys: Vec::new(), ..guarded.clone() };
    let rig = Rig::serving(upstream, guarded.clone()).await.unwrap();
    // Nor does the door open while it runs.
    assert!(matches!(rig.reloader.reload(without_keys), Err(StartError::Unguarded { .. })));
    let key = Secret::new("another key of twenty characters".to_owned());
    rig.reloader.reload(Config { keys: vec![KeyConfig::new("c", &key)], ..guarded }).unwrap();
    object(&ask(&rig, key.expose(), "m").await);
    assert_eq!(error(&ask(&rig, A, "m").await).code, "invalid_api_key");
}

#[tokio::test]
async fn a_key_has_its_last_day() {
    let dated = |day: &str| format!("keys: [{{name: a, key: {A}, expires: {day}}}]\n");
    let rig = with(&dated("2020-02-29")).await;
    let refused = error(&ask(&rig, A, "m").await);
    assert_eq!(
        (refused.key(), refused.domain.as_str()),
        ((401, "invalid_request_error", "invalid_api_key", None), "expired_api_key")
    );
    assert!(refused.message.contains("has expired"), "{refused:?}");
    rig.reloader.reload(rig::parse(&text(&rig.upstream, &dated("2970-01-01")))).unwrap();
    object(&ask(&rig, A, "m").await);
}

/// What waits behind a response of a key that is gone does not wait for anybody else to come.
#[tokio::test]
async fn a_key_that_is_gone_holds_up_nobody_behind_it() {
    let gone = "- {name: gone, tenant: a, key: key-that-will-be-gone-03}\n";
    let upstream = Upstream::start(Script::sse(&chat::chunks())).await.unwrap();
    let text = |more: &str| {
        let memory = "session: {backend: memory, background: {concurrency: 1, queue: 10}}";
        text(&upstream, &format!("{KEYS}{more}")).replace("session: {backend: memory}", memory)
    };
    let (before, after) = (rig::parse(&text(gone)), rig::parse(&text("")));
    upstream.queue(Script::event_stream().event(&chat::text("Hel")).stall());
    let rig = Rig::serving(upstream, before).await.unwrap();
    let body = json!({"model": "m", "input": "Hi", "background": true});
    let mut responses = Vec::new();
    for key in [A, "key-that-will-be-gone-03", A, A] {
        let made = rig::object_now(&send(&rig, key, Method::POST, "/v1/responses", &body).await);
        responses.push(format!("/v1/responses/{}", made["id"].as_str().unwrap()));
        rig.upstream.arrived(1).await;
    }
    rig.reloader.reload(after).unwrap();
    send(&rig, A, Method::POST, &format!("{}/cancel", responses[0]), &Value::Null).await;
    let mut ends = Vec::new();
    for _ in 0..600 {
        ends.clear();
        for path in &responses {
            ends.push(get(&rig, A, path).await.json()["status"].as_str().unwrap().to_owned());
        }
        if ends.iter().all(|status| !matches!(status.as_str(), "queued" | "in_progress")) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(ends, ["cancelled", "failed", "completed", "completed"]);
}

/// What waits and was asked for without a key is as that of a key that is gone, once the door is closed.
#[tokio::test]
async fn what_was_asked_for_at_the_open_door_fails_behind_the_closed_one() {
    let upstream = Upstream::start(Script::sse(&chat::chunks())).await.unwrap();
    let with = |keys: &str| {
        let memory = "session: {backend: memory, background: {concurrency: 1, queue: 10}}";
        rig::parse(&text(&upstream, keys).replace("session: {backend: memory}", memory))
    };
    let (open, same, closed) = (with(""), with(""), with(&format!("keys:\n- {{name: d, key: {A}}}\n")));
    upstream.queue(Script::event_stream().event(&chat::text("Hel")).stall());
    upstream.queue(Script::event_stream().event(&chat::text("Hel")).stall());
    let rig = Rig::serving(upstream, open).await.unwrap();
    let mut responses = Vec::new();
    for _ in 0..3 {
        let made = rig::object_now(&rig.post(&json!({"model": "m", "input": "Hi", "background": true})).await);
        responses.push(format!("/v1/responses/{}", made["id"].as_str().unwrap()));
        rig.upstream.arrived(1).await;
    }
    // As long as it is open, the next one runs.
    rig.reloader.reload(same).unwrap();
    send(&rig, A, Method::POST, &format!("{}/cancel", responses[0]), &Value::Null).await;
    rig.upstream.arrived(2).await;
    rig.reloader.reload(closed).unwrap();
    send(&rig, A, Method::POST, &format!("{}/cancel", responses[1]), &Value::Null).await;
    stored::fails_for_its_key(&rig, A, &responses[2], "without an API key").await;
    assert_eq!(rig.upstream.requests().len(), 2, "nobody was asked for it");
}

/// What waits was asked for with a secret, and not with the name that it had.
#[tokio::test]
async fn a_secret_that_is_replaced_asks_for_nothing_any_more() {
    let upstream = Upstream::start(Script::sse(&chat::chunks())).await.unwrap();
    let with = |secret: &str| {
        let keys = format!("keys:\n- {{name: a, tenant: a, key: {secret}}}\n- {{name: b, tenant: a, key: {B}}}\n");
        let memory = "session: {backend: memory, background: {concurrency: 1, queue: 10}}";
        rig::parse(&text(&upstream, &keys).replace("session: {backend: memory}", memory))
    };
    let (before, same, after) = (with(A), with(A), with("another-key-of-a-0003"));
    upstream.queue(Script::event_stream().event(&chat::text("Hel")).stall());
    upstream.queue(Script::event_stream().event(&chat::text("Hel")).stall());
    let rig = Rig::serving(upstream, before).await.unwrap();
    let body = json!({"model": "m", "input": "Hi", "background": true});
    let mut responses = Vec::new();
    for key in [B, A, A] {
        let made = rig::object_now(&send(&rig, key, Method::POST, "/v1/responses", &body).await);
        responses.push(format!("/v1/responses/{}", made["id"].as_str().unwrap()));
        rig.upstream.arrived(1).await;
    }
    // What is read again and is the same changes nothing.
    rig.reloader.reload(same).unwrap();
    send(&rig, B, Method::POST, &format!("{}/cancel", responses[0]), &Value::Null).await;
    rig.upstream.arrived(2).await;
    rig.reloader.reload(after).unwrap();
    assert_eq!(error(&ask(&rig, A, "m").await).code, "invalid_api_key");
    send(&rig, B, Method::POST, &format!("{}/cancel", responses[1]), &Value::Null).await;
    stored::fails_as_revoked(&rig, B, &responses[2]).await;
}
