//! What requests become and became, for the operator: plans that nobody is sent, and requests that are sent again.

use std::time::Duration;

use serde_json::{Value, json};
use server::admin::AdminClient;
use server::config::{AdminConfig, AdminListen, Config};
use tempfile::TempDir;
use testkit::{Script, Upstream};

use crate::chat;
use crate::rig::{self, KEY, Rig, Settings, object};
use crate::websocket::Client;

/// Bodies are kept with traces.
const CAPTURE: &str = "trace: {capture_payload: true}\n";

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

    async fn delete(&self, list: &str, id: &Value) {
        let path = format!("/v1/{list}/{}", id.as_str().unwrap());
        assert_eq!(self.rig.send(http::Method::DELETE, &path, &Value::Null).await.status, 200, "{path}");
    }

    /// A request by this name, which is refused.
    async fn refused(&self, name: &str, mut body: Value) {
        body["model"] = json!("up/m");
        let headers = [("content-type", "application/json"), ("x-request-id", name)];
        let url = self.rig.url("/v1/responses");
        let answer = self.rig.client.request(http::Method::POST, &url, &headers, body.to_string()).await.unwrap();
        assert!((400..500).contains(&answer.status), "{name}: {}", answer.status);
    }

    /// It is not sent again, and of that there is no trace either.
    async fn is_not_sent_again(&self, id: &Value) {
        let asked = self.rig.upstream.requests().len();
        let (status, refused) = self.ask("POST", "/admin/replay", json!({"id": id})).await;
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(status == 400 && message.contains("cannot be sent again"), "{id}: {refused}");
        assert_eq!(self.rig.upstream.requests().len(), asked);
        let traces = self.good("GET", "/admin/traces?limit=100", Value::Null).await;
        assert!(traces["data"].as_array().unwrap().iter().all(|trace| trace["kind"] != "replay"), "{traces}");
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

/// What a connection remembers is stored with the first turn that is, and its bodies have only what came new.
#[tokio::test]
async fn what_a_connection_remembered_is_part_of_what_is_sent_again() {
    for more in [CAPTURE, ""] {
        let it = Explained::start(Script::sse(&[chat::text("Hello"), chat::stop()]), more).await;
        let mut client = Client::connect(&it.rig).await;
        let mut ask = async |fields: Value| {
            let mut message = json!({"type": "response.create", "model": "m"});
            message.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            client.respond(&message).await.events.last().unwrap().1["response"]["id"].clone()
        };
        let first = ask(json!({"input": "One", "store": false})).await;
        let second = ask(json!({"input": "Two", "previous_response_id": first})).await;
        let sent = it.rig.upstream.requests();
        let again = it.again(&second).await;
        assert_eq!(again["plan"]["chat_request"]["messages"], sent[1].json()["messages"], "{again}");
        assert_eq!(again["past_is_gone"], false, "{again}");
        it.rig.upstream.queue(says("Hello"));
        it.good("POST", "/admin/replay", json!({"id": second})).await;
        assert_eq!(it.rig.upstream.requests()[2].json()["messages"], sent[1].json()["messages"]);
    }
}

/// What a turn continued may be gone: then it is told without.
#[tokio::test]
async fn what_is_left_of_a_broken_chain_is_explained() {
    for (trace, source) in [(CAPTURE, "captured"), ("", "none")] {
        let it = Explained::start(says("Hello"), trace).await;
        let first = it.turn(json!({"input": "One"})).await;
        let second = it.turn(json!({"input": "Two", "previous_response_id": first["id"]})).await;
        it.delete("responses", &first["id"]).await;
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

/// The response itself may be gone as well: then there is what was captured of it, and all of its trace.
#[tokio::test]
async fn what_was_captured_of_a_chain_that_is_gone_is_explained() {
    let it = Explained::start(says("Hello"), CAPTURE).await;
    let first = it.turn(json!({"input": "One"})).await;
    let second = it.turn(json!({"input": "Two", "previous_response_id": first["id"]})).await;
    let conversation = it.rig.send(http::Method::POST, "/v1/conversations", &json!({})).await.json();
    let of_conversation = it.turn(json!({"input": "Two", "conversation": conversation["id"]})).await;
    for deleted in [&first, &second, &of_conversation] {
        it.delete("responses", &deleted["id"]).await;
    }
    it.delete("conversations", &conversation["id"]).await;
    for (response, named, past, sent) in [
        (&second, "previous_response_id", &first["id"], ["One", "Two"].as_slice()),
        (&of_conversation, "conversation", &conversation["id"], &["Two"]),
    ] {
        let again = it.again(&response["id"]).await;
        let found = (&again["source"], &again["past"], &again["past_is_gone"]);
        assert_eq!(found, (&json!("captured"), &Value::Null, &json!(true)), "{again}");
        assert_eq!((&again["request"][named], &again["request"]["input"]), (past, &json!("Two")), "{again}");
        assert_eq!(again["plan"]["chat_request"]["messages"], json!([{"role": "user", "content": "Two"}]), "{again}");
        assert_eq!((&again["response"], &again["trace"]["response_id"]), (response, &response["id"]));
        assert_eq!(again["trace"]["attempts"].as_array().unwrap().len(), 1, "{again}");
        let as_sent = again["trace"]["payloads"]["chat_request.1"]["text"].as_str().unwrap();
        assert!(sent.iter().all(|text| as_sent.contains(text)), "{as_sent}");
        it.is_not_sent_again(&response["id"]).await;
    }
}

/// An item that is gone is told of at its place; the others keep theirs.
#[tokio::test]
async fn what_refers_to_an_item_that_is_gone_is_explained() {
    let it = Explained::start(says("Hello"), CAPTURE).await;
    let first = it.turn(json!({"input": "One"})).await;
    let kept = it.turn(json!({"input": "Kept"})).await;
    let user = |text: &str| json!({"role": "user", "content": text});
    let file = json!({"role": "user", "content": [{"type": "input_file", "file_id": "file-none"}]});
    let input = json!([user("Two"), {"type": "item_reference", "id": first["output"][0]["id"]}, user("Three"),
        {"id": kept["output"][0]["id"]}, file]);
    let referring = it.turn(json!({"input": input})).await;
    let whole = it.again(&referring["id"]).await;
    assert_eq!((&whole["past_is_gone"], &whole["past"]), (&json!(false), &json!([])), "{whole}");
    it.delete("responses", &first["id"]).await;
    it.delete("responses", &referring["id"]).await;
    let again = it.again(&referring["id"]).await;
    assert_eq!((&again["past_is_gone"], &again["past"]), (&json!(true), &json!([])), "{again}");
    assert_eq!((&again["request"]["input"], &again["response"]), (&input, &referring));
    let links = again["plan"]["links"].as_array().unwrap();
    let links = links.iter().map(|link| (link["item"].as_str().unwrap(), link["to"][0].as_str().unwrap_or("-")));
    let mut links: Vec<_> = links.collect();
    links.sort_unstable();
    let expected = [
        ("input[0]", "messages[0]"),
        ("input[1]", "-"),
        ("input[2]", "messages[1]"),
        ("input[3]", "messages[2]"),
        ("input[4]", "messages[3]"),
    ];
    assert_eq!(links, expected, "{again}");
    let whys = again["plan"]["links"].as_array().unwrap().iter().filter_map(|link| link["left_out"].as_str());
    assert!(whys.clone().count() == 1 && whys.clone().all(|why| why.contains("is gone")), "{again}");
    let paths: Vec<_> = again["plan"]["notes"].as_array().unwrap().iter().map(|note| &note["path"]).collect();
    let before: Vec<_> = whole["plan"]["notes"].as_array().unwrap().iter().map(|note| &note["path"]).collect();
    assert!(!paths.is_empty() && paths == before, "{paths:?} {before:?}");
    it.is_not_sent_again(&referring["id"]).await;
}

/// Why a request was refused is what one looks for: it is not in the way of the rest.
#[tokio::test]
async fn what_was_refused_is_explained() {
    let it = Explained::start(says("Hello"), CAPTURE).await;
    let reference = json!([{"type": "item_reference", "id": "msg_nope"}, {"role": "user", "content": "Two"}]);
    let odd = json!([{"type": "item_reference", "id": "msg_nope"}, {"id": ""}, {"id": "a b"},
        {"id": "a b", "role": "user", "content": "Two"}]);
    for (name, body, gone) in [
        ("a-chain", json!({"input": "Two", "previous_response_id": "resp_nope"}), true),
        ("a-conversation", json!({"input": "Two", "conversation": "conv_nope"}), true),
        ("no-conversation", json!({"input": "Two", "conversation": {"id": "nope"}}), true),
        ("an-item", json!({"input": reference}), true),
        ("odd-items", json!({"input": odd}), true),
        ("chain-and-item", json!({"input": reference, "previous_response_id": "resp_nope"}), true),
        ("both", json!({"input": "Two", "conversation": "conv_nope", "previous_response_id": "resp_nope"}), false),
        ("a-model", json!({"input": "Two", "temperature": 9}), false),
    ] {
        it.refused(name, body.clone()).await;
        let again = it.again(&json!(name)).await;
        assert_eq!((&again["source"], &again["past_is_gone"]), (&json!("captured"), &json!(gone)), "{name}: {again}");
        let mut asked = body;
        asked["model"] = json!("up/m");
        assert_eq!(again["request"], asked, "{name}");
        assert!(again["trace"]["error"]["message"].is_string() && again["response"].is_null(), "{name}: {again}");
        if gone {
            let sent = &again["plan"]["chat_request"]["messages"];
            assert_eq!(*sent, json!([{"role": "user", "content": "Two"}]), "{name}: {again}");
            it.is_not_sent_again(&json!(name)).await;
        } else {
            assert_eq!(again["plan"]["error"]["message"], again["trace"]["error"]["message"], "{name}");
        }
    }
    assert_eq!(it.rig.upstream.requests().len(), 0);
}

/// What a provider said before it failed is as good as a refusal, however late that was.
#[tokio::test]
async fn what_came_before_a_late_failure_is_captured() {
    let busy = json!({"error": {"message": "busy", "code": 503}});
    let begun = chat::chunk(&json!({"role": "assistant", "content": ""}), None);
    let script = Script::event_stream().event(&begun).delay(Duration::from_millis(700)).event(&busy).done();
    let it = Explained::start(script, CAPTURE).await;
    let answer = it.rig.post(&json!({"model": "up/m", "input": "Hi"})).await;
    assert_eq!(answer.status, 503);
    let traces = it.good("GET", "/admin/traces", Value::Null).await;
    let trace = it.good("GET", &format!("/admin/traces/{}", traces["data"][0]["number"]), Value::Null).await;
    let said = trace["payloads"]["chat_response.1"]["text"].as_str().unwrap();
    assert!(said.contains("assistant") && said.contains("busy"), "{said}");
}

/// A compaction is stored nowhere: its bodies are kept where those of such requests are.
#[tokio::test]
async fn bodies_of_compactions_are_captured_where_unstored_ones_are() {
    for (more, expected) in
        [("", &[][..]), (", capture_unstored: true", &["chat_request.1", "chat_response.1", "request"])]
    {
        let it = Explained::start(says("Hello"), &format!("trace: {{capture_payload: true{more}}}\n")).await;
        let ask = json!({"model": "up/m", "input": "Hi"});
        assert_eq!(it.rig.send(http::Method::POST, "/v1/responses/compact", &ask).await.status, 200);
        let traces = it.good("GET", "/admin/traces", Value::Null).await;
        let trace = it.good("GET", &format!("/admin/traces/{}", traces["data"][0]["number"]), Value::Null).await;
        let mut names: Vec<&str> = trace["payloads"].as_object().unwrap().keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, expected, "{trace}");
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

/// Several tenants may choose the same id for their requests: each has its own, whoever came last.
#[tokio::test]
async fn a_request_is_looked_for_among_those_of_its_tenant() {
    let keys = "trace: {capture_payload: true}\nkeys:\n  - {name: a, tenant: ta, key: aaaaaaaaaaaaaaaaaaaaaa}\n  - {name: b, \
                tenant: tb, key: bbbbbbbbbbbbbbbbbbbbbb}\n";
    let it = Explained::start(says("Hello"), keys).await;
    for (key, text) in [("a", "Of a"), ("b", "Of b")] {
        let bearer = format!("Bearer {}", key.repeat(22));
        let headers =
            [("authorization", bearer.as_str()), ("content-type", "application/json"), ("x-request-id", "the-one")];
        let body = json!({"model": "up/m", "input": text}).to_string();
        let answer = it.rig.client.request(http::Method::POST, &it.rig.url("/v1/responses"), &headers, body).await;
        assert_eq!(answer.unwrap().status, 200);
    }
    for (tenant, text) in [("ta", "Of a"), ("tb", "Of b")] {
        let again = it.good("GET", &format!("/admin/traces/the-one/explain?tenant={tenant}"), Value::Null).await;
        assert_eq!((&again["request"]["input"], &again["trace"]["tenant"]), (&json!(text), &json!(tenant)));
        let shown = it.good("GET", &format!("/admin/traces/the-one?tenant={tenant}"), Value::Null).await;
        assert_eq!(shown["tenant"], tenant);
        let number = shown["number"].clone();
        let chain = it.good("GET", &format!("/admin/traces/the-one/chain?tenant={tenant}"), Value::Null).await;
        assert_eq!(chain["data"][0]["number"], number);
        let other = if tenant == "ta" { "tb" } else { "ta" };
        assert_eq!(it.ask("GET", &format!("/admin/traces/{number}?tenant={other}"), Value::Null).await.0, 404);
        assert_eq!(it.ask("GET", &format!("/admin/traces/{number}/explain?tenant={other}"), Value::Null).await.0, 404);
    }
    // Last, because what is sent again leaves traces.
    let replayed = it.good("POST", "/admin/replay", json!({"id": "the-one", "tenant": "ta"})).await;
    assert_eq!(replayed["request"]["input"], "Of a");
    assert_eq!(it.ask("GET", "/admin/traces/the-one/explain?tenant=tc", Value::Null).await.0, 404);
    // Without a tenant it is the newest.
    assert_eq!(it.again(&json!("the-one")).await["request"]["input"], "Of b");
}

/// What was refused the first time and is refused again is no difference.
#[tokio::test]
async fn a_refusal_is_compared_with_a_refusal() {
    let refusal = || Script::json(400, &json!({"error": {"message": "Too hot.", "type": "invalid_request_error"}}));
    let it = Explained::start(refusal(), CAPTURE).await;
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
