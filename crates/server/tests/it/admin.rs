//! The operator's own listener.

use std::path::PathBuf;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use server::admin::{ADMIN_ROUTES, AdminClient, Unreachable};
use server::config::{AdminConfig, AdminListen, Config, Secret};
use tempfile::TempDir;
use testkit::{Answer, Script, Upstream};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::chat;
use crate::rig::{self, Rig, Settings, object};
use crate::websocket::Client as Socket;

const TOKEN: &str = "the-token-of-the-operator";

/// A server with a socket of its own, and whoever asks there.
struct Administered {
    rig: Rig,
    admin: AdminClient,
    path: PathBuf,
    config: Config,
    _folder: TempDir,
}

impl Administered {
    async fn start(script: Script, more: &str) -> Self {
        let upstream = Upstream::start(script).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut config = rig::config(&upstream, &Settings { session: more.to_owned(), ..Settings::default() });
        let path = folder.path().join("own/admin.sock");
        config.admin = AdminConfig { listen: AdminListen::Unix(path.clone()), token: None };
        let rig = Rig::serving(upstream, config.clone()).await.unwrap();
        let admin = AdminClient::running(&config).await.unwrap();
        Self { rig, admin, path, config, _folder: folder }
    }

    async fn ask(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let body = (!body.is_null()).then_some(&body);
        let answer = self.admin.ask(method, path, body).await.unwrap();
        (answer.status, serde_json::from_slice(&answer.body).unwrap())
    }

    async fn good(&self, method: &str, path: &str, body: Value) -> Value {
        let (status, answer) = self.ask(method, path, body).await;
        assert_eq!(status, 200, "{method} {path}: {answer}");
        answer
    }

    async fn as_client(&self, key: &str, method: Method, path: &str, body: &Value) -> Answer {
        let bearer = format!("Bearer {key}");
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.rig.client.request(method, &self.rig.url(path), &headers, body).await.unwrap()
    }
}

fn hello() -> Script {
    Script::sse(&[chat::text("Hello"), chat::stop()])
}

#[tokio::test]
async fn it_says_what_runs_and_its_socket_goes_with_it() {
    let it = Administered::start(hello(), "").await;
    let status = it.good("GET", "/admin/status", Value::Null).await;
    assert_eq!(
        (&status["name"], &status["draining"], &status["store"]),
        (&json!("godex"), &json!(false), &json!("memory"))
    );
    assert_eq!((&status["pid"], &status["version"]), (&json!(std::process::id()), &json!(env!("CARGO_PKG_VERSION"))));
    assert_eq!(status["address"], format!("http://{}", it.rig.address));
    assert_eq!(it.rig.admin, Some(format!("unix:{}", it.path.display())));
    // Another one on the same machine runs without.
    let upstream = Upstream::start(hello()).await.unwrap();
    let other = Rig::serving(upstream, it.config.clone()).await.unwrap();
    assert_eq!(other.admin, None);
    other.stop().await;
    assert!(it.path.exists());
    let Administered { rig, path, config, .. } = it;
    rig.stop().await;
    assert!(!path.exists());
    assert!(matches!(AdminClient::running(&config).await, Err(Unreachable::Nobody(_))));
    assert!(matches!(AdminClient::direct(&config).await, Err(Unreachable::Memory)));
}

#[tokio::test]
async fn a_server_with_another_store_is_not_taken_for_ones_own() {
    let it = Administered::start(hello(), "").await;
    let folder = tempfile::tempdir().unwrap();
    let mut config = it.config.clone();
    config.session.backend = server::config::Backend::Sqlite { path: folder.path().join("other.db") };
    let Err(Unreachable::Another(_, store)) = AdminClient::running(&config).await else { panic!("taken") };
    assert!(store.starts_with("memory, of "), "{store}");
}

#[tokio::test]
async fn a_port_wants_the_token_and_no_web_page_but_its_own() {
    let upstream = Upstream::start(hello()).await.unwrap();
    let mut config = rig::config(&upstream, &Settings { server: "cors: {origins: ['*']}", ..Settings::default() });
    config.admin =
        AdminConfig { listen: AdminListen::Tcp("127.0.0.1:0".to_owned()), token: Some(Secret::new(TOKEN.to_owned())) };
    let rig = Rig::serving(upstream, config).await.unwrap();
    let url = format!("http://{}/admin/status", rig.admin.clone().unwrap());
    let (good, own) = (format!("Bearer {TOKEN}"), format!("http://{}", rig.admin.clone().unwrap()));
    for (headers, status, code) in [
        (&[("authorization", good.as_str())][..], 200, ""),
        (&[("authorization", "bearer the-token-of-the-operator")], 200, ""),
        (&[], 401, "invalid_admin_token"),
        (&[("authorization", "Bearer the-token-of-the-operato")], 401, "invalid_admin_token"),
        (&[("authorization", "Bearer ")], 401, "invalid_admin_token"),
        (&[("authorization", TOKEN)], 401, "invalid_admin_token"),
        (&[("authorization", &good), ("authorization", &good)], 401, "invalid_admin_token"),
        (&[("authorization", &good), ("origin", "http://localhost")], 403, "origin_not_allowed"),
        (&[("authorization", &good), ("origin", own.as_str())], 200, ""),
        (&[("authorization", &good), ("origin", &own), ("sec-fetch-site", "same-origin")], 200, ""),
        (&[("origin", &own), ("sec-fetch-site", "same-origin")], 401, "invalid_admin_token"),
        (&[("authorization", &good), ("origin", "null")], 403, "origin_not_allowed"),
        (&[("authorization", &good), ("sec-fetch-site", "cross-site")], 403, "origin_not_allowed"),
        (&[("authorization", &good), ("sec-fetch-site", "same-site")], 403, "origin_not_allowed"),
        (&[("authorization", &good), ("host", "evil.example")], 403, "host_not_allowed"),
    ] {
        let answer = rig.client.request(Method::GET, &url, headers, String::new()).await.unwrap();
        let body = answer.json();
        assert_eq!((answer.status, body["error"]["code"].as_str().unwrap_or_default()), (status, code), "{headers:?}");
        assert!(answer.header("access-control-allow-origin").is_none() && !body.to_string().contains(TOKEN));
    }
    // Clients are not answered there, nor is anything of this answered where clients are.
    let elsewhere =
        rig.client.request(Method::GET, &rig.url("/admin/status"), &[("authorization", &good)], String::new()).await;
    assert_eq!(elsewhere.unwrap().status, 404);
    let clients = url.replace("/admin/status", "/v1/models");
    assert_eq!(
        rig.client.request(Method::GET, &clients, &[("authorization", &good)], String::new()).await.unwrap().status,
        404
    );
}

#[tokio::test]
async fn what_is_wrong_is_said() {
    let it = Administered::start(hello(), "").await;
    for (method, path, body, status, expected) in [
        ("GET", "/admin/nothing", Value::Null, 404, "Invalid URL"),
        ("PATCH", "/admin/keys", Value::Null, 405, "Allowed: GET, POST."),
        ("POST", "/admin/keys", Value::Null, 400, "The body is not what is wanted here"),
        ("POST", "/admin/keys", json!({"name": "a", "nmae": 1}), 400, "unknown field `nmae`"),
        ("POST", "/admin/keys", json!({"name": "a b"}), 400, "a name is"),
        ("POST", "/admin/keys", json!({"name": "a", "expires_in": "soon"}), 400, "`expires_in` is a duration"),
        ("POST", "/admin/keys", json!({"name": "a", "terms": {"rph": 1}}), 400, "unknown field `rph`"),
        ("POST", "/admin/keys", json!({"name": "a", "terms": []}), 400, "invalid type: sequence, expected an object"),
        ("POST", "/admin/keys", json!({"name": "x".repeat(70_000)}), 413, "larger than"),
        ("GET", "/admin/keys/none", Value::Null, 404, "there is no key none"),
        ("DELETE", "/admin/keys/none", Value::Null, 404, "there is no key none"),
        ("POST", "/admin/keys/none/rotate", json!({"grace": "long"}), 400, "`grace` is a duration"),
        ("PUT", "/admin/tenants/t/terms", json!({"budget": "5"}), 400, "expected a budget such as"),
        ("GET", "/admin/tenants/a%20b/terms", Value::Null, 400, "a tenant's name is"),
        ("GET", "/admin/tenants/t/sessions?limit=0", Value::Null, 400, "`limit` is a number"),
        ("GET", "/admin/tenants/t/sessions?after=x", Value::Null, 400, "`after` is what"),
        ("DELETE", "/admin/tenants/t?now=maybe", Value::Null, 400, "`now` is true or false"),
        ("POST", "/admin/reload", Value::Null, 400, "godex.yaml:1: no\ngodex.yaml:2: neither"),
    ] {
        let (found, answer) = it.ask(method, path, body).await;
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(found == status && message.contains(expected), "{method} {path}: {found} {answer}");
    }
    assert!(ADMIN_ROUTES.len() >= 15);
}

#[tokio::test]
async fn a_drain_ends_the_server_after_what_runs() {
    let it = Administered::start(hello(), "").await;
    assert_eq!(it.good("POST", "/admin/drain", Value::Null).await, json!({"draining": true}));
    tokio::time::timeout(Duration::from_secs(20), it.rig.ended()).await.expect("it ends");
    assert!(!it.path.exists());
}

#[tokio::test]
async fn a_key_is_in_force_and_dead_at_once() {
    let it = Administered::start(hello(), "").await;
    let ask = json!({"model": "m", "input": "Hi"});
    object(&it.rig.post(&ask).await);
    let made = it.good("POST", "/admin/keys", json!({"name": "one", "tenant": "a", "terms": {"rpm": 100}})).await;
    assert_eq!(
        (&made["closes_the_door"], &made["state"], &made["terms"]),
        (&json!(true), &json!("active"), &json!({"rpm": 100}))
    );
    let key = made["key"].as_str().unwrap().to_owned();
    assert_eq!(it.rig.post(&ask).await.status, 401);
    object(&it.as_client(&key, Method::POST, "/v1/responses", &ask).await);
    let second = it.good("POST", "/admin/keys", json!({"name": "two", "expires_in": "1h"})).await;
    assert_eq!((&second["closes_the_door"], &second["tenant"]), (&json!(false), &json!("default")));
    assert!(second["expires_at"].as_u64().unwrap() > second["created_at"].as_u64().unwrap() + 3500);
    assert_eq!(it.ask("POST", "/admin/keys", json!({"name": "one"})).await.0, 409);

    let rotated = it.good("POST", "/admin/keys/one/rotate", json!({"grace": "1h"})).await;
    let newer = rotated["key"].as_str().unwrap().to_owned();
    for key in [&key, &newer] {
        object(&it.as_client(key, Method::POST, "/v1/responses", &ask).await);
    }
    assert_eq!(it.ask("POST", "/admin/keys/two/delete", Value::Null).await.0, 409);
    let revoked = it.good("DELETE", "/admin/keys/one", Value::Null).await;
    assert_eq!(revoked["state"], "revoked");
    assert_eq!(revoked["revoked"].as_array().map(Vec::len), Some(2), "{revoked}");
    assert_eq!(it.as_client(&newer, Method::POST, "/v1/responses", &ask).await.status, 401);
    let listed = it.good("GET", "/admin/keys", Value::Null).await.to_string();
    for key in [&key, &newer] {
        assert!(!listed.contains(key.as_str()), "{listed}");
    }
}

#[tokio::test]
async fn what_tenants_may_use_is_kept() {
    let it = Administered::start(hello(), "").await;
    assert_eq!(it.good("GET", "/admin/tenants/t/terms", Value::Null).await, json!({}));
    let terms = json!({"rpm": 60, "budget": "50usd/month"});
    assert_eq!(it.good("PUT", "/admin/tenants/t/terms", terms.clone()).await, terms);
    assert_eq!(it.good("GET", "/admin/tenants/t/terms", Value::Null).await, terms);
    assert_eq!(it.good("PUT", "/admin/tenants/t/terms", json!({})).await, json!({}));
    assert_eq!(it.good("GET", "/admin/tenants/t/terms", Value::Null).await, json!({}));
}

/// A key each for two tenants.
async fn two_keys(it: &Administered) -> [String; 2] {
    let mut keys = Vec::new();
    for tenant in ["a", "b"] {
        let made = it.good("POST", "/admin/keys", json!({"name": tenant, "tenant": tenant})).await;
        keys.push(made["key"].as_str().unwrap().to_owned());
    }
    keys.try_into().unwrap()
}

#[tokio::test]
async fn what_a_tenant_has_is_listed_exported_and_erased() {
    let it = Administered::start(hello(), "").await;
    let [a, b] = two_keys(&it).await;
    let mut ids = Vec::new();
    for (key, input) in [(&a, "one"), (&a, "two"), (&b, "three")] {
        let made = it.as_client(key, Method::POST, "/v1/responses", &json!({"model": "m", "input": input})).await;
        ids.push(object(&made)["id"].as_str().unwrap().to_owned());
    }
    it.as_client(&a, Method::POST, "/v1/conversations", &json!({"metadata": {"x": "y"}})).await;
    let tenants = it.good("GET", "/admin/tenants", Value::Null).await;
    let counts = |tenants: &Value, at: usize| {
        let tenant = &tenants["data"][at];
        json!([tenant["name"], tenant["responses"], tenant["conversations"]])
    };
    assert_eq!((counts(&tenants, 0), counts(&tenants, 1)), (json!(["a", 2, 1]), json!(["b", 1, 0])));

    let (mut listed, mut next) = (Vec::new(), String::new());
    loop {
        let page = it.good("GET", &format!("/admin/tenants/a/sessions?limit=1{next}"), Value::Null).await;
        listed.push(page["data"][0]["id"].as_str().unwrap().to_owned());
        let Some(cursor) = page["next"].as_str() else { break };
        next = format!("&after={cursor}");
    }
    assert_eq!(listed.len(), 3, "{listed:?}");
    assert!(ids[..2].iter().all(|id| listed.contains(id)) && !listed.contains(&ids[2]));

    let mut lines = Vec::new();
    let mut sink = |chunk: &[u8]| {
        lines.extend_from_slice(chunk);
        Ok(())
    };
    assert_eq!(it.admin.read("GET", "/admin/tenants/a/export", None, &mut sink).await.unwrap(), 200);
    let lines = String::from_utf8(lines).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.last().unwrap(), &json!({"object": "end", "count": 3, "damaged": 0}));
    let first = lines.iter().find(|line| line["response"]["id"] == ids[0]).unwrap();
    assert_eq!(first["input"][0]["content"][0]["text"], "one");
    assert_eq!(
        first["response"],
        it.as_client(&a, Method::GET, &format!("/v1/responses/{}", ids[0]), &Value::Null).await.json()
    );
    assert!(lines.iter().any(|line| line["conversation"]["metadata"] == json!({"x": "y"})));

    let erased = it.good("DELETE", "/admin/tenants/a", Value::Null).await;
    assert_eq!((&erased["erased"]["responses"], &erased["erased"]["conversations"]), (&json!(2), &json!(1)));
    for (key, id, status) in [(&a, &ids[0], 404), (&b, &ids[2], 200)] {
        assert_eq!(it.as_client(key, Method::GET, &format!("/v1/responses/{id}"), &Value::Null).await.status, status);
    }
    // The key still works, and the tenant can begin anew.
    object(&it.as_client(&a, Method::POST, "/v1/responses", &json!({"model": "m", "input": "again"})).await);
}

/// Nothing that began before an erasure is stored after it: it is cut off, over HTTP, in the background, over a WebSocket.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erasure_ends_what_runs() {
    let endless = Script::event_stream().event(&chat::text("Hel")).stall();
    let it = Administered::start(endless, "").await;
    let [a, _] = two_keys(&it).await;
    let streamed = json!({"model": "m", "input": "x", "stream": true});
    let bearer = format!("Bearer {a}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let mut stream =
        it.rig.client.open(Method::POST, &it.rig.url("/v1/responses"), &headers, streamed.to_string()).await.unwrap();
    stream.read_until("Hel").await.unwrap();
    let queued =
        it.as_client(&a, Method::POST, "/v1/responses", &json!({"model": "m", "input": "y", "background": true})).await;
    assert_eq!(queued.status, 200);
    let (mut socket, _) = Socket::connect_as(&it.rig, &[("authorization", &bearer)]).await;
    socket.say(&json!({"type": "response.create", "model": "m", "input": "z"})).await;
    while socket.next().await["type"] != "response.output_text.delta" {}

    let erased =
        tokio::time::timeout(Duration::from_secs(30), it.good("DELETE", "/admin/tenants/a?now=true", Value::Null));
    erased.await.expect("it does not wait for what never ends");
    let rest = stream.collect().await.unwrap();
    assert!(String::from_utf8_lossy(&rest.body).contains("response.failed"));
    let tenants = it.good("GET", "/admin/tenants", Value::Null).await;
    assert_eq!(tenants["data"], json!([]), "nothing is stored after it");
    it.rig.stop_at_once().await;
}

/// A background response whose provider has not said anything yet is cut off as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erasure_ends_what_waits_for_a_silent_provider() {
    let it = Administered::start(Script::silent(), "").await;
    let [a, _] = two_keys(&it).await;
    let queued =
        it.as_client(&a, Method::POST, "/v1/responses", &json!({"model": "m", "input": "y", "background": true})).await;
    assert_eq!(queued.status, 200);
    it.rig.upstream.arrived(1).await;
    it.good("DELETE", "/admin/tenants/a?now=true", Value::Null).await;
    let tenants = it.good("GET", "/admin/tenants", Value::Null).await;
    assert_eq!(tenants["data"], json!([]), "nothing is stored after it");
    it.rig.stop_at_once().await;
}

/// What a connection remembers of responses that are not stored is erased as well.
#[tokio::test]
async fn a_websocket_forgets_what_was_erased() {
    let it = Administered::start(hello(), "").await;
    let [a, b] = two_keys(&it).await;
    for (erased, status) in [("b", "response.completed"), ("a", "error")] {
        let bearer = format!("Bearer {a}");
        let (mut socket, _) = Socket::connect_as(&it.rig, &[("authorization", &bearer)]).await;
        let create = json!({"type": "response.create", "model": "m", "store": false, "input": "Hi"});
        socket.say(&create).await;
        let id = loop {
            let event = socket.next().await;
            if event["type"] == "response.completed" {
                break event["response"]["id"].clone();
            }
        };
        it.good("DELETE", &format!("/admin/tenants/{erased}"), Value::Null).await;
        let mut next = create.clone();
        next["previous_response_id"] = id;
        socket.say(&next).await;
        let end = loop {
            let event = socket.next().await;
            let kind = event["type"].as_str().unwrap_or_default().to_owned();
            if ["error", "response.completed", "response.failed"].contains(&kind.as_str()) {
                break kind;
            }
        };
        assert_eq!(end, status, "after {erased} was erased");
    }
    drop(b);
}

/// However many come and say nothing, or not the token, or do not read what they were given: a key can be revoked.
#[tokio::test]
async fn strangers_who_stay_keep_no_operator_out() {
    const STRANGERS: usize = 400;
    let upstream = Upstream::start(hello()).await.unwrap();
    let mut config = rig::config(&upstream, &Settings::default());
    config.admin =
        AdminConfig { listen: AdminListen::Tcp("127.0.0.1:0".to_owned()), token: Some(Secret::new(TOKEN.to_owned())) };
    let rig = Rig::serving(upstream, config).await.unwrap();
    let address = rig.admin.clone().unwrap();
    let mut strangers = Vec::new();
    for number in 0..STRANGERS {
        let mut stranger = TcpStream::connect(&address).await.unwrap();
        let said =
            [&b""[..], b"GET /admin/status HTTP/1.1\r\n", b"GET /page/app.js HTTP/1.1\r\nhost: localhost\r\n\r\n"];
        stranger.write_all(said[number % said.len()]).await.unwrap();
        strangers.push(stranger);
    }
    let bearer = format!("Bearer {TOKEN}");
    let url = format!("http://{address}/admin/status");
    let answer = rig.client.request(Method::GET, &url, &[("authorization", &bearer)], String::new()).await.unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    drop(strangers);
}
