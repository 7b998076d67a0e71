//! What is kept of requests, and what the operator is shown of it.

mod sizes;

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use server::admin::AdminClient;
use server::config::{AdminConfig, AdminListen, Config, KeyConfig, Secret};
use tempfile::TempDir;
use testkit::mcp::{McpEra, McpOptions};
use testkit::{McpServer, Script, Upstream};

use crate::chat;
use crate::hosted::{calls, model, says};
use crate::rig::{self, KEY, Rig, parse};
use crate::socket::Socket as Slow;
use crate::websocket::Client as Socket;

/// A server with an admin listener.
struct Traced {
    rig: Rig,
    admin: AdminClient,
    config: Config,
    folder: TempDir,
}

impl Traced {
    /// `more`: further sections of the configuration.
    async fn before(upstream: Upstream, more: &str) -> Self {
        let text = format!(
            "session: {{backend: memory}}\nresilience: {{backoff_ms: 2, breaker_failures: 0, retries: 1}}\nproviders:\n  up:\n    \
             spec: openai-compatible\n    endpoint: {{base_url: '{}/v1'}}\n    credentials: {{api_key: {KEY}}}\n    models: [m]\n    \
             prices: {{'*': {{input: 1, output: 2}}}}\n  down:\n    spec: openai-compatible\n    \
             endpoint: {{base_url: 'http://127.0.0.1:9/v1'}}\n    credentials: {{api_key: {KEY}}}\n\
             models: {{discover: off, aliases: {{both: [down/m, up/m]}}}}\n{more}\n",
            upstream.url()
        );
        Self::serving(upstream, parse(&text)).await
    }

    async fn serving(upstream: Upstream, mut config: Config) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listen = AdminListen::Unix(folder.path().join("admin.sock"));
        config.admin = AdminConfig { listen, token: None };
        let rig = Rig::serving(upstream, config.clone()).await.unwrap();
        let admin = AdminClient::running(&config).await.unwrap();
        Self { rig, admin, config, folder }
    }

    async fn start(more: &str) -> Self {
        let answer = |received: &testkit::Received| chat::answer(received.json()["stream"] == true);
        Self::before(Upstream::start_with(answer).await.unwrap(), more).await
    }

    async fn ask(&self, path: &str) -> (u16, Value) {
        let answer = self.admin.ask("GET", path, None).await.unwrap();
        (answer.status, serde_json::from_slice(&answer.body).unwrap())
    }

    async fn good(&self, path: &str) -> Value {
        let (status, answer) = self.ask(path).await;
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// The list, as soon as it has so many: an account closes a moment after its answer is read.
    async fn list(&self, query: &str, count: usize) -> Vec<Value> {
        for _ in 0..1000 {
            let list = self.good(&format!("/admin/traces?{query}")).await;
            assert_eq!((&list["object"], &list["dropped"]), (&json!("list"), &json!(0)));
            let data = list["data"].as_array().unwrap();
            if data.len() >= count {
                assert_eq!(data.len(), count, "{list:#}");
                return data.clone();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{query}: there are never {count}: {:#}", self.good("/admin/traces").await);
    }

    /// The only one, with all that belongs to it.
    async fn only(&self) -> Value {
        let list = self.list("", 1).await;
        self.good(&format!("/admin/traces/{}", list[0]["number"])).await
    }
}

fn ask(input: &str) -> Value {
    json!({"model": "m", "input": input})
}

/// A provider may say back what it was sent, in a word that a note quotes.
#[tokio::test]
async fn notes_have_no_keys_in_them() {
    let mut answer = chat::completion();
    answer["service_tier"] = KEY.into();
    let it = Traced::before(Upstream::start(Script::json(200, &answer)).await.unwrap(), "").await;
    rig::object(&it.rig.post(&ask("Hi")).await);
    let trace = it.only().await;
    assert!(trace["notes"].as_array().is_some_and(|notes| !notes.is_empty()), "{trace:#}");
    assert!(!trace.to_string().contains(KEY), "{trace:#}");
}

/// What a client that left was waiting for was the provider.
#[tokio::test]
async fn a_wait_for_a_provider_is_not_ours() {
    let it = Traced::before(Upstream::start(Script::silent()).await.unwrap(), "").await;
    let left = tokio::time::timeout(Duration::from_millis(500), it.rig.post(&ask("Hi"))).await;
    assert!(left.is_err());
    let trace = it.only().await;
    let ms = |name: &str| trace[name].as_f64().unwrap();
    assert_eq!((&trace["outcome"], &trace["attempts"][0]["outcome"]), (&json!("client_left"), &json!("waiting")));
    assert!(ms("upstream_ms") > ms("overhead_ms"), "{trace:#}");
}

/// A client that sends its request slowly is waited for, and no part of that is ours.
#[tokio::test]
async fn a_wait_for_the_client_is_not_ours() {
    let it = Traced::start("").await;
    let body = ask("Hi").to_string();
    let (head, tail) = body.split_at(9);
    let mut client = Slow::connect(it.rig.address).await;
    let http =
        "POST /v1/responses HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n";
    client.send(&format!("{http}content-length: {}\r\n\r\n{head}", body.len())).await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    client.send(tail).await;
    assert!(client.read_to_end().await.starts_with("HTTP/1.1 200"));
    let trace = it.only().await;
    let [took, upstream, own] = ["took_ms", "upstream_ms", "overhead_ms"].map(|name| trace[name].as_f64().unwrap());
    let client = trace["times"]["client_ms"].as_f64().unwrap();
    assert!(client > 500.0 && took > 500.0 && own < took - 500.0, "{trace:#}");
    assert!((took - upstream - client - own).abs() < 0.01, "{trace:#}");
    assert_eq!(it.list("", 1).await[0].get("overhead_ms"), None);
}

/// A client that leaves in mid-stream had the events that were sent until then.
#[tokio::test]
async fn what_a_client_had_when_it_left_is_counted() {
    let script = Script::event_stream().event(&chat::text("one ")).event(&chat::text("two")).stall();
    let it = Traced::before(Upstream::start(script).await.unwrap(), "").await;
    let body = json!({"model": "m", "input": "Hi", "stream": true});
    let left = tokio::time::timeout(Duration::from_millis(500), it.rig.post(&body)).await;
    assert!(left.is_err());
    let trace = it.only().await;
    assert_eq!(trace["outcome"], "client_left");
    assert!(trace["events"]["sent"].as_u64() > Some(2), "{trace:#}");
}

/// Words of a request that is not to be kept are not, also if it cannot be read.
#[tokio::test]
async fn of_what_is_not_stored_no_words_are_kept() {
    let it = Traced::start("").await;
    let counting = "/v1/responses/input_tokens";
    let asked = [
        ("/v1/responses", false, false),
        ("/v1/responses", true, true),
        (counting, false, false),
        (counting, true, false),
    ];
    for (count, (path, store, keeps)) in (1..).zip(asked) {
        let body = json!({"model": "m", "input": "Hi", "store": store, "tool_choice": "private-word"});
        assert_eq!(it.rig.send(Method::POST, path, &body).await.status, 400);
        let last = it.list("", count).await;
        let trace = it.good(&format!("/admin/traces/{}", last[0]["number"])).await;
        assert_eq!(trace.to_string().contains("private-word"), keeps, "{trace:#}");
    }
}

/// Words of the model, in what is said of an answer that does not fit; and names of the client's.
#[tokio::test]
async fn notes_of_what_is_not_stored_quote_nobody() {
    let answer = r#"{"PRIVATE-1":"PRIVATE-2"}"#;
    let mut completion = chat::completion();
    completion["choices"][0]["message"]["content"] = answer.into();
    let it = Traced::before(Upstream::start(Script::json(200, &completion)).await.unwrap(), "").await;
    let schema = json!({"type": "object", "properties": {"PRIVATE-1": {"enum": ["PRIVATE-3"]}}});
    for (store, keeps) in [(false, false), (true, true)] {
        let body = json!({
            "model": "m", "input": "Hi", "store": store, "PRIVATE_4": 1,
            "text": {"format": {"type": "json_schema", "name": "a", "schema": schema, "strict": false}},
            "tools": [{"type": "custom", "name": "PRIVATE_5"}],
        });
        rig::object(&it.rig.post(&body).await);
        let last = it.list("", 1 + usize::from(store)).await;
        let trace = it.good(&format!("/admin/traces/{}", last[0]["number"])).await;
        let codes: Vec<&str> =
            trace["notes"].as_array().unwrap().iter().filter_map(|note| note["code"].as_str()).collect();
        assert!(["bridge.degraded", "bridge.param.unknown"].iter().all(|code| codes.contains(code)), "{trace:#}");
        assert_eq!(trace.to_string().contains("PRIVATE"), keeps, "{trace:#}");
    }
}

/// Who asks without a key can ask without end, wherever.
#[tokio::test]
async fn of_strangers_few_traces_are_kept() {
    let it = Traced::start("keys: [{name: a, key: key-of-the-tenant-a-0001}]").await;
    for _ in 0..15 {
        for path in ["/v1/responses", "/v1/responses/resp_1", "/v1/models"] {
            let method = if path == "/v1/responses" { Method::POST } else { Method::GET };
            assert_eq!(it.rig.send(method, path, &ask("Hi")).await.status, 401);
        }
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    let list = it.good("/admin/traces?limit=100").await;
    let count = list["data"].as_array().unwrap().len();
    // Within two or three seconds.
    assert!((1..=15).contains(&count), "{count}");
}

/// What a client says that it continues may be any text: only what may be an id is kept of it.
#[tokio::test]
async fn what_is_no_id_is_not_kept_as_one() {
    let it = Traced::start("").await;
    let long = format!("resp_{}", "x".repeat(124));
    let said = [
        ("previous_response_id", "any text SENTINEL", false),
        ("previous_response_id", "resp_SENTINEL and more", false),
        ("previous_response_id", "resp_\u{e4}SENTINEL", false),
        ("previous_response_id", "conv_SENTINEL", false),
        ("previous_response_id", "resp_", false),
        ("previous_response_id", &long, false),
        ("previous_response_id", &long[..128], true),
        ("previous_response_id", "resp_0-9_a.Z", true),
        ("conversation", "any text SENTINEL", false),
        ("conversation", "resp_SENTINEL", false),
        ("conversation", "conv_0", true),
    ];
    for store in [false, true] {
        for (count, (member, id, is_kept)) in (1 + said.len() * usize::from(store)..).zip(said) {
            let body = json!({"model": "m", "input": "Hi", "store": store, member: id});
            assert!(it.rig.post(&body).await.status >= 400, "{id}");
            let last = it.list("", count).await;
            let trace = it.good(&format!("/admin/traces/{}", last[0]["number"])).await;
            let kept =
                if member == "conversation" { &trace["conversation_id"] } else { &trace["previous_response_id"] };
            assert_eq!(*kept, if is_kept { json!(id) } else { Value::Null }, "{id}: {trace:#}");
            assert!(store || !trace.to_string().contains("SENTINEL"), "{trace:#}");
        }
    }
}

#[tokio::test]
async fn a_turn_leaves_a_trace_with_all_that_is_known() {
    let it = Traced::start("").await;
    let body = json!({"model": "m", "input": "Hi", "tools": [{"type": "function", "name": "f"}], "top_logprobs": 3, "seed_x": 1});
    let first = rig::object(&it.rig.post(&body).await);
    let trace = it.only().await;
    for (name, expected) in [
        ("kind", json!("sync")),
        ("tenant", json!("default")),
        ("key", Value::Null),
        ("model", json!("m")),
        ("provider", json!("up")),
        ("upstream_model", json!("m")),
        ("status", json!(200)),
        ("outcome", json!("completed")),
        ("response_id", first["id"].clone()),
        ("input_tokens", json!(5)),
        ("output_tokens", json!(2)),
        ("cost_usd", json!("0.000009")),
        ("error", Value::Null),
        ("payloads", json!({})),
        ("events", json!({"upstream": 1, "sent": 0})),
    ] {
        assert_eq!(trace[name], expected, "{name}: {trace:#}");
    }
    let request = &trace["request"];
    assert_eq!(
        (&request["items"], &request["tools"], &request["stream"], &request["store"]),
        (&json!(1), &json!(1), &json!(false), &json!(true))
    );
    assert_eq!(request["bytes"], body.to_string().len());
    let attempt = &trace["attempts"][0];
    assert_eq!(
        (&attempt["target"], &attempt["wire"], &attempt["outcome"], &attempt["status"]),
        (&json!("up/m"), &json!("chat"), &json!("accepted"), &json!(200))
    );
    assert_eq!(attempt["bytes"], it.rig.upstream.requests()[0].body.len());
    assert_eq!((&trace["rounds"][0]["end"], &trace["rounds"][0]["attempt"]), (&json!("completed"), &json!(1)));
    assert!(
        trace["notes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|note| note["code"] == "bridge.param.unknown" && note["path"] == "seed_x"),
        "{trace:#}"
    );
    let ms = |name: &str| trace[name].as_f64().unwrap();
    let client = trace["times"]["client_ms"].as_f64().unwrap_or_default();
    assert!(
        (ms("took_ms") - ms("upstream_ms") - client - ms("overhead_ms")).abs() < 0.01 && ms("overhead_ms") > 0.0,
        "{trace:#}"
    );
    for step in ["opened_ms", "planning_ms", "connecting_ms", "first_byte_ms", "last_byte_ms", "committing_ms"] {
        assert!(trace["times"][step].as_f64().is_some(), "{step}: {trace:#}");
    }
    assert!(trace["began_at"].as_str().unwrap().ends_with('Z'));
    // It is found by every name that it has.
    for id in [&trace["response_id"], &trace["request_id"]] {
        assert_eq!(it.good(&format!("/admin/traces/{}", id.as_str().unwrap())).await["number"], trace["number"]);
    }
}

#[tokio::test]
async fn every_way_of_driving_a_turn_is_told() {
    let it = Traced::start("").await;
    let mut streamed = ask("Hi");
    streamed["stream"] = json!(true);
    let stream = rig::stream(&it.rig.post(&streamed).await);
    let found = it.list("", 1).await;
    assert_eq!((&found[0]["kind"], &found[0]["outcome"]), (&json!("stream"), &json!("completed")));
    let shown = it.good(&format!("/admin/traces/{}", found[0]["number"])).await;
    assert_eq!(shown["events"], json!({"upstream": 6, "sent": stream.events.len()}));
    assert!(shown["first_token_ms"].as_f64().is_some());
    // A WebSocket: its handshake is none.
    let mut socket = Socket::connect(&it.rig).await;
    let previous = stream.response["id"].as_str().unwrap();
    socket
        .say(&json!({"type": "response.create", "model": "m", "input": "More", "previous_response_id": previous}))
        .await;
    let second = socket.stream().await;
    let found = it.list("", 2).await;
    assert_eq!(
        (&found[0]["kind"], &found[0]["previous_response_id"], &found[0]["response_id"]),
        (&json!("websocket"), &json!(previous), &second.response["id"])
    );
    // The background: asking for it is no turn of its own.
    let queued = it.rig.post(&json!({"model": "m", "input": "Hi", "background": true})).await.json();
    let found = it.list("", 3).await;
    assert_eq!((&found[0]["kind"], &found[0]["response_id"]), (&json!("background"), &queued["id"]));
    let compacted = it.rig.send(Method::POST, "/v1/responses/compact", &ask("Hi")).await;
    assert_eq!(compacted.status, 200);
    let compacted = it.list("", 4).await[0].clone();
    assert_eq!((&compacted["outcome"], &compacted["input_tokens"]), (&json!("completed"), &json!(5)), "{compacted:#}");
    // The tree of the turns, oldest first, wherever one begins.
    for id in [previous, second.response["id"].as_str().unwrap()] {
        let chain = it.good(&format!("/admin/traces/{id}/chain")).await;
        let ids: Vec<&Value> = chain["data"].as_array().unwrap().iter().map(|turn| &turn["response_id"]).collect();
        assert_eq!(ids, [&json!(previous), &second.response["id"]]);
    }
}

#[tokio::test]
async fn what_hosted_tools_did_is_told_round_by_round() {
    let server = McpServer::start(McpOptions::new(McpEra::Modern)).await.unwrap();
    let upstream = model(vec![calls(&[("c1", "a__echo", json!({"text": "hi"}))]), says("Done.")]).await;
    let tools = format!("tools: {{mcp: {{servers: {{a: {{url: '{}', require_approval: never}}}}}}}}", server.url());
    let it = Traced::before(upstream, &tools).await;
    let body = json!({"model": "up/m", "input": "Go.", "tools": [{"type": "mcp", "server_label": "a"}]});
    rig::object(&it.rig.post(&body).await);
    let trace = it.only().await;
    let of = |list: &str, name: &str| -> Vec<Value> {
        trace[list].as_array().unwrap().iter().map(|entry| entry[name].clone()).collect()
    };
    assert_eq!(of("rounds", "end"), ["hosted_tools", "completed"]);
    assert_eq!(of("rounds", "attempt"), [1, 2]);
    assert_eq!(of("tool_calls", "kind"), ["mcp_list_tools", "mcp"]);
    assert_eq!(of("tool_calls", "name"), ["a", "a/echo"]);
    assert_eq!(of("tool_calls", "outcome"), ["completed", "completed"]);
    assert_eq!((&trace["attempts"].as_array().unwrap().len(), &trace["input_tokens"]), (&2, &json!(10)));
}

#[tokio::test]
async fn what_went_wrong_is_told_without_the_providers_key() {
    let refusal = |_: &testkit::Received| {
        Script::json(400, &json!({"error": {"message": format!("no, {KEY}"), "code": "bad_thing"}}))
    };
    let it = Traced::before(Upstream::start_with(refusal).await.unwrap(), "trace: {capture_payload: true}").await;
    let refused = it.rig.post(&json!({"model": "both", "input": "Hi"})).await;
    assert_eq!(refused.status, 400);
    let trace = it.only().await;
    let outcomes: Vec<&Value> =
        trace["attempts"].as_array().unwrap().iter().map(|attempt| &attempt["outcome"]).collect();
    assert_eq!(outcomes, [&json!("upstream_unreachable"), &json!("upstream_invalid_request")], "{trace:#}");
    assert_eq!(
        (&trace["attempts"][1]["status"], &trace["status"], &trace["outcome"]),
        (&json!(400), &json!(400), &json!("failed"))
    );
    assert_eq!(trace["error"]["message"], refused.json()["error"]["message"]);
    assert!(trace["error"]["message"].as_str().unwrap().contains("[redacted]"));
    assert_eq!(
        trace["payloads"]["chat_response.2"]["text"].as_str().map(|text| text.contains("[redacted]")),
        Some(true)
    );
    assert!(!trace.to_string().contains(KEY), "{trace:#}");
    // Refused before anybody was asked.
    let refused = it.rig.post(&json!({"model": "m", "input": 5})).await;
    assert_eq!(refused.status, 400);
    assert_eq!(it.rig.get("/v1/responses/resp_none").await.status, 404);
    assert_eq!(it.rig.get("/v1/nothing").await.status, 404);
    assert_eq!(it.rig.get("/health").await.status, 200);
    let found = it.list("errors=true", 3).await;
    assert_eq!((&found[0]["kind"], &found[0]["error"]), (&json!("/v1/responses/{id}"), &json!("response_not_found")));
    assert_eq!((&found[1]["kind"], &found[1]["status"]), (&json!("/v1/responses"), &json!(400)));
}

#[tokio::test]
async fn lists_are_filtered_and_come_in_pages() {
    let it = Traced::start("").await;
    for number in 0..5 {
        let model = if number % 2 == 0 { "m" } else { "up/other" };
        rig::object(&it.rig.post(&json!({"model": model, "input": "Hi", "seed_x": number})).await);
    }
    let all = it.list("", 5).await;
    for (query, count) in [
        ("model=m", 3),
        ("model=other", 2),
        ("model=up/other", 2),
        ("model=up/m", 3),
        ("model=down/m", 0),
        ("model=up/m&provider=down", 0),
        ("provider=up", 5),
        ("provider=down", 0),
        ("tenant=default", 5),
        ("tenant=another", 0),
        ("outcome=completed", 5),
        ("errors=true", 0),
        ("note=bridge.param.unknown", 5),
        ("note=bridge.tool.ignored", 0),
        ("since=1h", 5),
        ("until=1h", 0),
        ("slower_ms=3600000", 0),
    ] {
        assert_eq!(
            it.good(&format!("/admin/traces?{query}")).await["data"].as_array().unwrap().len(),
            count,
            "{query}"
        );
    }
    let page = it.good("/admin/traces?limit=2").await;
    assert_eq!((&page["data"].as_array().unwrap()[..], &page["has_more"]), (&all[..2], &json!(true)));
    let rest = it.good(&format!("/admin/traces?before={}", all[1]["number"])).await;
    assert_eq!((&rest["data"].as_array().unwrap()[..], &rest["has_more"]), (&all[2..], &json!(false)));
    let newer = it.good(&format!("/admin/traces?after={}", all[2]["number"])).await;
    assert_eq!(newer["data"].as_array().unwrap()[..], [all[1].clone(), all[0].clone()]);
    let series = it.good("/admin/series?since=1h").await;
    let sum =
        |name: &str| series["data"].as_array().unwrap().iter().map(|point| point[name].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("requests"), sum("errors"), sum("input_tokens"), &series["step_ms"]), (5, 0, 25, &json!(60_000)));
    for (path, expected) in [
        ("/admin/traces?limit=0", "`limit` is a number"),
        ("/admin/traces?before=x", "`before` is the number"),
        ("/admin/traces?errors=perhaps", "`errors` is true or false"),
        ("/admin/traces?since=soon", "`since` is Unix seconds"),
        ("/admin/traces?slower_ms=-1", "`slower_ms` is"),
        ("/admin/traces?outcome=zzz", "`outcome` is one of answered, completed, "),
        ("/admin/traces?limit=1&modle=m", "There is no `modle` here: "),
        ("/admin/traces?step=1m", "There is no `step` here: "),
        ("/admin/series?outcome=zzz", "`outcome` is one of"),
        ("/admin/series?limit=1", "There is no `limit` here: "),
        ("/admin/traces/1?model=m", "There is no `model` here: tenant."),
        ("/admin/traces/1/chain?a=b", "There is no `a` here: tenant."),
        ("/admin/traces/1/explain?limit=1", "There is no `limit` here: model, tenant."),
        ("/admin/series?since=1d&step=1", "`step` is a time"),
    ] {
        let (status, answer) = it.ask(path).await;
        assert!(status == 400 && answer["error"]["message"].as_str().unwrap().contains(expected), "{path}: {answer}");
    }
    for path in ["/admin/traces/99", "/admin/traces/resp_x", "/admin/traces/x%2Fy/chain"] {
        assert_eq!((it.ask(path).await.0, &it.ask(path).await.1["error"]["code"]), (404, &json!("trace_not_found")));
    }
}

/// Bodies are kept where that is wanted: cut, without keys, and not of what is not to be stored.
#[tokio::test]
async fn bodies_are_kept_only_where_that_is_wanted() {
    let secret = "sk-of-the-clients-mcp-server";
    let mcp = json!({"type": "mcp", "server_label": "x", "server_url": "https://mcp.invalid/", "authorization": secret, "headers": {"a": secret}});
    let it =
        Traced::start("trace: {capture_payload: true, payload_max_bytes: 300}\ntools: {mcp: {clients: open}}").await;
    let mut body = json!({"model": "m", "input": format!("{} the end", "x".repeat(400)), "stream": true});
    rig::stream(&it.rig.post(&body).await);
    let trace = it.only().await;
    let payloads = trace["payloads"].as_object().unwrap();
    let names: Vec<&str> = payloads.keys().map(String::as_str).collect();
    assert_eq!(names, ["request", "chat_request.1", "chat_response.1", "response", "events"], "{trace:#}");
    for (name, payload) in payloads {
        let (length, cut) = (payload["text"].as_str().unwrap().len(), payload["cut_from"].as_u64());
        assert!(length == 300 && cut.is_some_and(|whole| whole > 300), "{name}: {payload}");
    }
    assert_eq!(payloads["request"]["cut_from"], body.to_string().len());
    assert!(payloads["events"]["text"].as_str().unwrap().starts_with("event: response.created\n"));
    // Whatever comes of it, the keys of the client's tools are not kept.
    body = json!({"tools": [mcp], "model": "m", "input": "Hi"});
    it.rig.post(&body).await;
    let found = it.list("", 2).await;
    let trace = it.good(&format!("/admin/traces/{}", found[0]["number"])).await;
    assert!(trace["payloads"]["request"]["text"].as_str().unwrap().contains("mcp.invalid"), "{trace:#}");
    assert!(!trace.to_string().contains(secret), "{trace:#}");
    // Nothing of what is not to be stored; also not of what is said of an error.
    let refused = it.rig.post(&json!({"model": "", "input": "Hi", "store": false})).await;
    assert!(refused.status >= 400);
    rig::object(&it.rig.post(&json!({"model": "m", "input": "Hi", "store": false})).await);
    for trace in it.list("", 4).await.iter().take(2) {
        let trace = it.good(&format!("/admin/traces/{}", trace["number"])).await;
        assert_eq!((&trace["payloads"], &trace["error"]["message"]), (&json!({}), &Value::Null), "{trace:#}");
    }
    // Unless that is wanted, too.
    let it = Traced::start("trace: {capture_payload: true, capture_unstored: true}").await;
    let whole = it.rig.post(&json!({"model": "m", "input": "Hi", "store": false})).await;
    let trace = it.only().await;
    let response: Value = serde_json::from_str(trace["payloads"]["response"]["text"].as_str().unwrap()).unwrap();
    assert_eq!((response, &trace["payloads"]["response"]["cut_from"]), (whole.json(), &Value::Null));
}

#[tokio::test]
async fn a_tenants_traces_are_the_operators_and_go_with_it() {
    let it = Traced::start("").await;
    let mut config = it.config.clone();
    let key = |name: &str| format!("sk-godex-of-{name}-0123456789012345678901234567890");
    config.keys = ["a", "b"]
        .map(|name| KeyConfig { tenant: name.to_owned(), ..KeyConfig::new(name, &Secret::new(key(name))) })
        .into();
    it.rig.reloader.reload(config).unwrap();
    for name in ["a", "b"] {
        let bearer = format!("Bearer {}", key(name));
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        let answer =
            it.rig.client.request(Method::POST, &it.rig.url("/v1/responses"), &headers, ask("Hi").to_string()).await;
        assert_eq!(answer.unwrap().status, 200);
    }
    // A stranger's refusal is nobody's.
    assert_eq!(it.rig.post(&ask("Hi")).await.status, 401);
    let found = it.list("", 3).await;
    assert_eq!(
        (&found[0]["tenant"], &found[0]["error"], &found[0]["kind"]),
        (&json!(""), &json!("missing_api_key"), &json!("/v1/responses"))
    );
    assert_eq!(it.list("tenant=a", 1).await[0]["key"], "a");
    let erased = it.admin.ask("DELETE", "/admin/tenants/a", None).await.unwrap();
    let erased: Value = serde_json::from_slice(&erased.body).unwrap();
    assert_eq!(erased["erased"]["traces"], 1);
    it.list("", 2).await;
    assert_eq!(it.good("/admin/traces?tenant=a").await["data"], json!([]));
}

#[tokio::test]
async fn without_traces_everything_else_works() {
    let it = Traced::start("trace: {enabled: false}").await;
    rig::object(&it.rig.post(&ask("Hi")).await);
    let (status, answer) = it.ask("/admin/traces").await;
    assert_eq!((status, &answer["error"]["code"]), (404, &json!("traces_off")));
    // A file that cannot be opened is no reason not to serve.
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "no folder").unwrap();
    let path = folder.path().join("file/trace.db");
    let it = Traced::start(&format!("trace: {{path: '{}'}}", path.display())).await;
    rig::object(&it.rig.post(&ask("Hi")).await);
    assert_eq!(it.ask("/admin/traces").await.0, 404);
    drop(it.folder);
}

#[tokio::test]
async fn providers_are_shown_with_how_they_fare() {
    let it = Traced::start("").await;
    rig::object(&it.rig.post(&json!({"model": "both", "input": "Hi"})).await);
    let providers = it.good("/admin/providers").await;
    let of = |name: &str| {
        providers["data"].as_array().unwrap().iter().find(|provider| provider["name"] == name).unwrap().clone()
    };
    let up = of("up");
    assert_eq!((&up["spec"], &up["wire"], &up["key"]), (&json!("openai-compatible"), &json!("chat"), &json!("set")));
    assert_eq!(up["base_url"], format!("{}/v1", it.rig.upstream.url()));
    assert_eq!(
        (&up["models"][0]["model"], &up["models"][0]["state"], &up["models"][0]["accepted"]),
        (&json!("m"), &json!("closed"), &json!(1))
    );
    let down = of("down");
    assert_eq!((&down["models"][0]["sent"], &down["models"][0]["accepted"]), (&json!(1), &json!(0)));
    assert!(!providers.to_string().contains(KEY));
}
