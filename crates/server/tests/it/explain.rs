//! What requests become and became, for the operator: plans that nobody is sent, and requests that are sent again.

use serde_json::{Value, json};
use server::admin::AdminClient;
use server::config::{AdminConfig, AdminListen, Config};
use tempfile::TempDir;
use testkit::{Script, Upstream};

use crate::chat;
use crate::rig::{self, KEY, Rig, Settings, object};

struct Explained {
    rig: Rig,
    admin: AdminClient,
    _folder: TempDir,
}

impl Explained {
    async fn start(script: Script, more: &str) -> Self {
        let upstream = Upstream::start(script).await.unwrap();
        let url = format!("{}/v1", upstream.url());
        let text = format!(
            "session: {{backend: memory}}\nresilience: {{{}}}\nproviders:\n  up: {{spec: openai-compatible, endpoint: \
             {{base_url: '{url}'}}, credentials: {{api_key: {KEY}}}, models: [m]}}\n  native: {{spec: {{extends: \
             openai-compatible, wire: responses}}, endpoint: {{base_url: '{url}'}}, credentials: {{api_key: {KEY}}}, \
             models: [n]}}\n{more}",
            rig::QUICK
        );
        Self::serving(upstream, rig::parse(&text)).await
    }

    async fn serving(upstream: Upstream, mut config: Config) -> Self {
        let folder = tempfile::tempdir().unwrap();
        config.admin = AdminConfig { listen: AdminListen::Unix(folder.path().join("own/admin.sock")), token: None };
        let rig = Rig::serving(upstream, config.clone()).await.unwrap();
        let admin = AdminClient::running(&config).await.unwrap();
        Self { rig, admin, _folder: folder }
    }

    async fn ask(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let body = (!body.is_null()).then_some(&body);
        let answer = self.admin.ask(method, path, body).await.unwrap();
        let text = String::from_utf8(answer.body).unwrap();
        assert!(!text.contains(KEY), "{text}");
        (answer.status, serde_json::from_str(&text).unwrap())
    }

    async fn good(&self, method: &str, path: &str, body: Value) -> Value {
        let (status, answer) = self.ask(method, path, body).await;
        assert_eq!(status, 200, "{method} {path}: {answer}");
        answer
    }

    /// What was planned again of that response.
    async fn again(&self, id: &Value) -> Value {
        self.good("GET", &format!("/admin/traces/{}/explain", id.as_str().unwrap()), Value::Null).await
    }

    async fn turn(&self, mut body: Value) -> Value {
        body["model"] = json!("up/m");
        object(&self.rig.post(&body).await)
    }
}

fn says(text: &str) -> Script {
    let mut completion = chat::completion();
    completion["choices"][0]["message"]["content"] = json!(text);
    Script::json(200, &completion)
}

#[tokio::test]
async fn a_request_is_planned_for_every_provider_and_nobody_is_asked() {
    let it = Explained::start(says("Hello"), "").await;
    let request = json!({"model": "m", "instructions": "Be.", "input": [{"role": "user", "content": "Hi"}], "store": true, "stream": true,
        "tools": [{"type": "function", "name": "f"}, {"type": "file_search"}]});
    let planned = it.good("POST", "/admin/explain", json!({"request": request})).await;
    let [up, native, demo] = planned["data"].as_array().unwrap().as_slice() else { panic!("{planned}") };
    let whom = |plan: &Value| format!("{} {} {}", plan["provider"], plan["model"], plan["wire"]);
    assert_eq!(
        [whom(up), whom(native), whom(demo)],
        [r#""up" "m" "chat""#, r#""native" "n" "responses""#, r#""demo" "demo" "demo""#]
    );
    assert_eq!(up["chat_request"]["messages"][1], json!({"role": "user", "content": "Hi"}));
    assert_eq!(up["links"][0], json!({"item": "instructions", "to": ["messages[0]"]}));
    assert_eq!(up["links"][1], json!({"item": "input[0]", "to": ["messages[1]"]}));
    assert_eq!(up["links"][2], json!({"item": "tools[0]", "to": ["tools[0]"]}));
    assert!(up["links"][3]["left_out"].is_string(), "{up}");
    assert_eq!(native["links"][1], json!({"item": "input[0]", "to": ["input[0]"]}));
    assert_eq!(native["chat_request"]["store"], false);
    let secret = json!({"input": "Hi", "tools": [{"type": "mcp", "server_label": "s", "server_url": "https://mcp.example/", "authorization": "SECRET"}]});
    let planned = it.good("POST", "/admin/explain", json!({"request": secret, "models": ["native/n"]})).await;
    assert_eq!(planned["data"][0]["chat_request"]["tools"][0]["server_label"], "s", "{planned}");
    assert!(!planned.to_string().contains("SECRET"), "{planned}");

    // For these models only, each with what is wrong for it.
    let body =
        json!({"request": {"input": "Hi", "temperature": 9}, "models": ["up/other", "up/", "demo"], "tenant": "a"});
    let planned = it.good("POST", "/admin/explain", body).await;
    let errors: Vec<&Value> = planned["data"].as_array().unwrap().iter().map(|plan| &plan["error"]["code"]).collect();
    assert_eq!(errors, ["decimal_above_max_value", "model_not_found", "decimal_above_max_value"]);
    assert_eq!(planned["data"][0]["provider"], "up");
    assert_eq!(it.rig.upstream.requests().len(), 0);
}

#[tokio::test]
async fn what_is_wrong_is_said() {
    let it = Explained::start(says("Hello"), "").await;
    for (method, path, body, status, expected) in [
        ("POST", "/admin/explain", Value::Null, 400, "JSON"),
        ("POST", "/admin/explain", json!({}), 400, "'request' is the request"),
        ("POST", "/admin/explain", json!({"request": "Hi"}), 400, "'request' is the request"),
        ("POST", "/admin/explain", json!({"request": {}, "model": "m"}), 400, "There is no 'model' here"),
        ("POST", "/admin/explain", json!({"request": {}, "models": "m"}), 400, "'models' is a list"),
        ("POST", "/admin/explain", json!({"request": {}, "models": [1]}), 400, "'models' is a list"),
        ("POST", "/admin/explain", json!({"request": {}, "tenant": "a/b"}), 400, "a tenant's name is"),
        ("POST", "/admin/explain", json!({"request": {"input": 5}}), 400, "input"),
        ("POST", "/admin/explain", json!({"request": {"previous_response_id": "resp_no"}}), 400, "resp_no"),
        ("GET", "/admin/traces/resp_no/explain", Value::Null, 404, "resp_no"),
        ("GET", "/admin/traces/7/explain", Value::Null, 404, "7"),
        ("GET", "/admin/traces/resp_no/explain?tenant=a%20b", Value::Null, 400, "a tenant's name is"),
        ("POST", "/admin/replay", json!({"id": "resp_no"}), 404, "resp_no"),
        ("POST", "/admin/replay", json!({}), 400, "missing field `id`"),
        ("POST", "/admin/replay", json!({"id": "a", "to": "b"}), 400, "unknown field `to`"),
    ] {
        let (found, answer) = it.ask(method, path, body.clone()).await;
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert_eq!(found, status, "{path} {body}: {answer}");
        assert!(message.contains(expected), "{path} {body}: {message}");
    }
}

/// The very request that was sent comes out of the stored items again.
#[tokio::test]
async fn a_stored_response_is_planned_again() {
    let it = Explained::start(says("Hello"), "").await;
    let first = it.turn(json!({"input": "One", "instructions": "Be brief."})).await;
    let tools =
        json!([{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": false}]);
    let asked = json!({"input": [{"role": "user", "content": "Two"}], "previous_response_id": first["id"], "temperature": 0.5,
        "max_output_tokens": 50, "tools": tools});
    let second = it.turn(asked).await;
    it.turn(json!({"input": "Three", "previous_response_id": second["id"]})).await;
    let sent = it.rig.upstream.requests();
    for (response, sent) in [(&first, sent[0].json()), (&second, sent[1].json())] {
        let again = it.again(&response["id"]).await;
        assert_eq!((&again["source"], &again["trace"]["response_id"]), (&json!("stored"), &response["id"]));
        assert_eq!(again["plan"]["chat_request"], sent);
        assert_eq!(&again["response"], response);
    }
    let again = it.again(&second["id"]).await;
    assert_eq!(again["past"].as_array().unwrap().len(), 2);
    assert_eq!(again["request"]["input"].as_array().unwrap().len(), 1);
    assert_eq!(again["request"].get("previous_response_id"), None);
    let links: Vec<String> = again["plan"]["links"]
        .as_array()
        .unwrap()
        .iter()
        .map(|link| format!("{} {}", link["item"], link["to"][0]))
        .collect();
    assert_eq!(
        links,
        [
            r#""past[0]" "messages[0]""#,
            r#""past[1]" "messages[1]""#,
            r#""input[0]" "messages[2]""#,
            r#""tools[0]" "tools[0]""#
        ]
    );
    let other = it
        .good("GET", &format!("/admin/traces/{}/explain?model=native%2Fx", second["id"].as_str().unwrap()), Value::Null)
        .await;
    assert_eq!((&other["plan"]["provider"], &other["plan"]["model"]), (&json!("native"), &json!("x")));
}

/// Nothing but what was asked is in the request that is made of a stored one.
#[tokio::test]
async fn what_nobody_asked_for_is_not_in_it() {
    let it = Explained::start(says("Hello"), "").await;
    let response = it.turn(json!({"input": "Hi"})).await;
    let request = it.again(&response["id"]).await["request"].take();
    let mut members: Vec<&String> = request.as_object().unwrap().keys().collect();
    members.sort();
    assert_eq!(members, ["input", "model"], "{request}");
}

#[tokio::test]
async fn a_conversation_is_as_it_was_then() {
    let it = Explained::start(says("Hello"), "").await;
    let conversation = it.rig.send(http::Method::POST, "/v1/conversations", &json!({})).await.json()["id"].clone();
    let mut turns = Vec::new();
    for text in ["One", "Two", "Three"] {
        turns.push(it.turn(json!({"input": text, "conversation": conversation})).await);
    }
    let sent = it.rig.upstream.requests();
    for (turn, sent) in turns.iter().zip(&sent) {
        assert_eq!(it.again(&turn["id"]).await["plan"]["chat_request"]["messages"], sent.json()["messages"]);
    }
}

#[tokio::test]
async fn a_request_is_sent_again_and_compared() {
    let it = Explained::start(says("Hello"), "").await;
    let first = it.turn(json!({"input": "One"})).await;
    let second = it.turn(json!({"input": "Two", "previous_response_id": first["id"]})).await;
    let same = it.good("POST", "/admin/replay", json!({"id": second["id"]})).await;
    assert_eq!((&same["source"], &same["differences"]), (&json!("stored"), &json!([])), "{same}");
    let sent = it.rig.upstream.requests();
    assert_eq!(sent[1].json(), sent[2].json());

    it.rig.upstream.queue(says("Bye"));
    let other = it.good("POST", "/admin/replay", json!({"id": second["id"], "model": "up/other"})).await;
    let whats: Vec<&Value> = other["differences"].as_array().unwrap().iter().map(|it| &it["what"]).collect();
    assert_eq!(whats, ["model", "text"], "{other}");
    assert_eq!(other["differences"][1], json!({"what": "text", "before": "Hello", "after": "Bye"}));
    assert_eq!(it.rig.upstream.requests()[3].json()["model"], "other");
    // It is no turn of anything.
    let id = other["after"]["response"]["id"].as_str().unwrap();
    assert_eq!(it.rig.get(&format!("/v1/responses/{id}")).await.status, 404);

    it.rig
        .upstream
        .queue(Script::json(400, &json!({"error": {"message": "Too hot.", "type": "invalid_request_error"}})));
    let failed = it.good("POST", "/admin/replay", json!({"id": second["id"]})).await;
    assert_eq!(failed["differences"][0], json!({"what": "status", "before": "completed", "after": "failed"}));
    assert!(failed["after"]["error"]["message"].as_str().unwrap().contains("Too hot."), "{failed}");
}

/// What a turn continued may be gone: then it is told without.
#[tokio::test]
async fn what_is_left_of_a_broken_chain_is_explained() {
    for (trace, source) in [("trace: {capture_payload: true}\n", "captured"), ("", "none")] {
        let it = Explained::start(says("Hello"), trace).await;
        let first = it.turn(json!({"input": "One"})).await;
        let second = it.turn(json!({"input": "Two", "previous_response_id": first["id"]})).await;
        let gone = format!("/v1/responses/{}", first["id"].as_str().unwrap());
        assert_eq!(
            it.rig.client.request(http::Method::DELETE, &it.rig.url(&gone), &[], String::new()).await.unwrap().status,
            200
        );
        let again = it.again(&second["id"]).await;
        assert_eq!(again["source"], source, "{again}");
        assert_eq!(again["trace"]["response_id"], second["id"]);
        if source == "captured" {
            assert_eq!(
                again["plan"]["chat_request"]["messages"],
                json!([{"role": "user", "content": "Two"}]),
                "{again}"
            );
            // It says so, and what that was.
            assert_eq!((&again["past"], &again["past_is_gone"]), (&Value::Null, &json!(true)), "{again}");
            assert_eq!(again["request"]["previous_response_id"], first["id"]);
        }
        // A shorter history is another request: it is not sent.
        let (status, refused) = it.ask("POST", "/admin/replay", json!({"id": second["id"]})).await;
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(status == 400 && message.contains("cannot be sent again"), "{refused}");
        assert_eq!(message.contains(first["id"].as_str().unwrap()), source == "captured", "{message}");
        assert_eq!(it.rig.upstream.requests().len(), 2);
    }
}

/// Clients choose the ids of their requests: a response's id means that response, whatever others call themselves.
#[tokio::test]
async fn nobody_takes_the_place_of_anothers_response() {
    let keys = "trace: {capture_payload: true}\nkeys:\n  - {name: a, tenant: a, key: aaaaaaaaaaaaaaaaaaaaaa}\n  - {name: b, \
                tenant: b, key: bbbbbbbbbbbbbbbbbbbbbb}\n";
    let it = Explained::start(says("Hello"), keys).await;
    let ask = async |key: &str, request_id: &str, text: &str, store: bool| {
        let bearer = format!("Bearer {}", key.repeat(22));
        let headers =
            [("authorization", bearer.as_str()), ("content-type", "application/json"), ("x-request-id", request_id)];
        let body = json!({"model": "up/m", "input": text, "store": store}).to_string();
        let url = it.rig.url("/v1/responses");
        it.rig.client.request(http::Method::POST, &url, &headers, body).await.unwrap().json()
    };
    let mine = ask("a", "one", "Mine", true).await;
    let id = mine["id"].as_str().unwrap();
    ask("b", id, "Shadow", true).await;
    let shown = it.good("GET", &format!("/admin/traces/{id}"), Value::Null).await;
    assert_eq!((&shown["tenant"], &shown["response_id"]), (&json!("a"), &mine["id"]));
    assert_eq!(it.again(&mine["id"]).await["request"]["input"], "Mine");
    let replayed = it.good("POST", "/admin/replay", json!({"id": id})).await;
    assert_eq!(replayed["request"]["input"], "Mine");
    // By the id of its request it is found where that is nobody's response.
    assert_eq!(it.good("GET", "/admin/traces/one", Value::Null).await["response_id"], mine["id"]);
    // What was sent again has a trace as any turn.
    let traces = it.good("GET", "/admin/traces?limit=1", Value::Null).await;
    let (last, after) = (&traces["data"][0], &replayed["after"]["response"]["id"]);
    assert_eq!((&last["kind"], &last["tenant"], &last["response_id"]), (&json!("replay"), &json!("a"), after));
}

/// What was refused the first time and is refused again is no difference.
#[tokio::test]
async fn a_refusal_is_compared_with_a_refusal() {
    let refusal = || Script::json(400, &json!({"error": {"message": "Too hot.", "type": "invalid_request_error"}}));
    let it = Explained::start(refusal(), "trace: {capture_payload: true}\n").await;
    let body = json!({"model": "up/m", "input": "Hi \u{fffd}"}).to_string().replace('\u{fffd}', "\\ud800");
    let headers = [("content-type", "application/json"), ("x-request-id", "the-one")];
    let answer = it.rig.client.request(http::Method::POST, &it.rig.url("/v1/responses"), &headers, body).await.unwrap();
    assert_eq!(answer.status, 400);
    let again = it.good("POST", "/admin/replay", json!({"id": "the-one"})).await;
    assert_eq!((&again["source"], &again["differences"]), (&json!("captured"), &json!([])), "{again}");
    assert!(again["before"]["error"]["message"].as_str().unwrap().contains("Too hot."), "{again}");
}

/// A response of whatever tenant is found; the plan has only what that tenant has.
#[tokio::test]
async fn every_tenant_has_its_own() {
    let it = Explained::start(says("Hello"), "keys: [{name: k, tenant: a, key: 0123456789abcdefghijkl}]\n").await;
    let headers = [("authorization", "Bearer 0123456789abcdefghijkl"), ("content-type", "application/json")];
    let body = json!({"model": "up/m", "input": "Hi"}).to_string();
    let answer = it.rig.client.request(http::Method::POST, &it.rig.url("/v1/responses"), &headers, body).await.unwrap();
    let id = object(&answer)["id"].clone();
    assert_eq!(it.again(&id).await["request"]["input"][0]["content"][0]["text"], "Hi");
    let path = |tenant: &str| format!("/admin/traces/{}/explain?tenant={tenant}", id.as_str().unwrap());
    assert_eq!(it.ask("GET", &path("a"), Value::Null).await.0, 200);
    assert_eq!(it.ask("GET", &path("default"), Value::Null).await.0, 404);
    let continues = |tenant: &str| json!({"request": {"previous_response_id": id, "input": "And?"}, "models": ["up/m"], "tenant": tenant});
    let planned = it.good("POST", "/admin/explain", continues("a")).await;
    assert_eq!(planned["past"].as_array().unwrap().len(), 2);
    assert_eq!(it.ask("POST", "/admin/explain", continues("b")).await.0, 400);
    // No client gets any of it.
    for path in ["/admin/explain", "/admin/replay"] {
        let answer =
            it.rig.client.request(http::Method::POST, &it.rig.url(path), &headers, "{}".to_owned()).await.unwrap();
        assert_eq!(answer.status, 404);
    }
}

/// Without a server the store is looked at itself; nothing can be sent then.
#[tokio::test]
async fn it_is_explained_without_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let upstream = Upstream::start(says("Hello")).await.unwrap();
    let path = folder.path().join("sessions.db");
    let session = format!("sqlite: {{path: '{}'}}", path.display());
    let mut config = rig::config(&upstream, &Settings { session, ..Settings::default() });
    config.admin = AdminConfig { listen: AdminListen::Off, token: None };
    let rig = Rig::serving(upstream, config.clone()).await.unwrap();
    let response = object(&rig.post(&json!({"model": "m", "input": "Hi"})).await);
    let sent = rig.upstream.requests()[0].json();
    rig.stop().await;
    let admin = AdminClient::direct(&config).await.unwrap();
    let path = format!("/admin/traces/{}/explain", response["id"].as_str().unwrap());
    let answer = admin.ask("GET", &path, None).await.unwrap();
    let again: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!((answer.status, &again["plan"]["chat_request"]), (200, &sent), "{again}");
    let refused = admin.ask("POST", "/admin/replay", Some(&json!({"id": response["id"]}))).await.unwrap();
    assert_eq!(refused.status, 400);
    admin.store().unwrap().clone().close().await;
}
