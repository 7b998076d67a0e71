//! What the server keeps and learns, tenant by tenant: what one carries opens for nobody else, what one has done is not done
//! for another, and what one has taught it changes nothing for others.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::*;
use crate::rig::{anonymous, object};

/// Sealed reasoning and summaries of another tenant are what noise of that length is.
#[tokio::test]
async fn what_another_tenant_carries_does_not_open() {
    let world = World::new("backend: memory").await;
    for item in &world.sealed {
        let mut noise = item.clone();
        let sealed = item["encrypted_content"].as_str().unwrap();
        let changed: String =
            sealed.chars().enumerate().map(|(at, c)| if at > 8 && c == 'A' { 'B' } else { c }).collect();
        let changed = changed[..changed.len() - 2].to_owned() + "AA";
        noise["encrypted_content"] = json!(changed);
        let ask = async |key: &str, item: &Value| {
            let input = json!([{"role": "user", "content": "x"}, item, {"role": "user", "content": "y"}]);
            let body = json!({"model": "m", "input": input, "store": false});
            let answer = post(&world.rig, key, "/v1/responses", &body).await;
            let sent = world.rig.upstream.requests().pop().unwrap().json()["messages"].clone();
            let shown = if answer.status == 200 { anonymous(answer.json()) } else { answer.json() };
            (answer.status, shown, sent)
        };
        let kind = item["type"].as_str().unwrap();
        let (status, _, sent) = ask(OWNER, item).await;
        assert_eq!(status, 200, "{kind}");
        // The owner's provider gets a summary's text back; reasoning only where the provider wants it.
        assert!(kind == "reasoning" || sent.to_string().contains("Hello."), "{kind}: {sent}");
        let (foreign, never) = (ask(OTHER, item).await, ask(OTHER, &noise).await);
        assert!(!foreign.2.to_string().contains(SECRET) && !foreign.1.to_string().contains(SECRET), "{foreign:?}");
        assert!(kind == "reasoning" || !foreign.2.to_string().contains("Hello."), "{foreign:?}");
        assert_eq!(foreign, never, "{kind}");
    }
}

/// Not even with everything that was asked for, word by word; and it is not used up.
#[tokio::test]
async fn a_call_is_approved_by_the_tenant_that_was_asked() {
    let world = World::new("backend: memory").await;
    let output = world.approval["output"].as_array().unwrap();
    let request = output.iter().find(|item| item["type"] == "mcp_approval_request").unwrap();
    let approve = json!({"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": true});
    let mut input = vec![json!({"role": "user", "content": "Go."})];
    input.extend(output.iter().cloned());
    input.push(approve);
    let body = json!({"model": "m", "store": false, "tools": [{"type": "mcp", "server_label": "a"}], "input": input});
    let before = world.mcp.calls().len();
    let refused = post(&world.rig, OTHER, "/v1/responses", &body).await;
    assert_eq!((refused.status, world.mcp.calls().len()), (400, before), "{}", refused.json());
    let mut forged = body.clone();
    let never = unknown(request["id"].as_str().unwrap(), &mut Chance(3));
    forged["input"] =
        serde_json::from_str(&json!(input).to_string().replace(request["id"].as_str().unwrap(), &never)).unwrap();
    let unknown = post(&world.rig, OTHER, "/v1/responses", &forged).await.json().to_string();
    assert_eq!(refused.json().to_string().replace(request["id"].as_str().unwrap(), &never), unknown);
    let done = object(&post(&world.rig, OWNER, "/v1/responses", &body).await);
    assert_eq!((done["output"][0]["type"].as_str(), world.mcp.calls().len()), (Some("mcp_call"), before + 1));
}

/// The same key of another tenant is another key: neither its response nor the news that it exists.
#[tokio::test]
async fn an_idempotency_key_is_one_tenants() {
    for store in [true, false] {
        let rig = rig(Upstream::start_with(provider).await.unwrap(), "backend: memory", "").await;
        let ask = async |key: &str, input: &str| {
            let bearer = format!("Bearer {key}");
            let headers =
                [("authorization", bearer.as_str()), ("content-type", "application/json"), ("idempotency-key", "k1")];
            let body = json!({"model": "m", "input": input, "store": store}).to_string();
            rig.client.request(Method::POST, &rig.url("/v1/responses"), &headers, body).await.unwrap()
        };
        let first = object(&ask(OWNER, "hello").await);
        let same = object(&ask(OTHER, "hello").await);
        assert_ne!(first["id"], same["id"]);
        assert_eq!(rig.upstream.requests().len(), 2);
        if store {
            assert_eq!(object(&ask(OWNER, "hello").await)["id"], first["id"]);
            assert_eq!(object(&ask(OTHER, "hello").await)["id"], same["id"]);
            object(&ask(DEFAULT, "something else").await);
        }
    }
}

/// A provider's cache has one name for each tenant, the same after a restart; the tenant `default` has its own words.
#[tokio::test]
async fn the_cache_of_a_provider_is_named_for_each_tenant() {
    let folder = tempfile::tempdir().unwrap();
    let session = format!("sqlite: {{path: '{}'}}", folder.path().join("sessions.db").display());
    let mut runs = Vec::new();
    for _ in 0..2 {
        let rig = rig(Upstream::start_with(provider).await.unwrap(), &session, "").await;
        for (key, cache) in [(OWNER, "mine"), (OTHER, "mine"), (DEFAULT, "mine"), (OWNER, "mine too")] {
            let response = made(&rig, key, json!({"input": "hello", "prompt_cache_key": cache})).await;
            assert_eq!(response["prompt_cache_key"], cache, "clients see their own words");
        }
        made(&rig, OWNER, json!({"input": "hello"})).await;
        let sent =
            rig.upstream.requests().iter().map(|sent| sent.json()["prompt_cache_key"].clone()).collect::<Vec<_>>();
        runs.push(sent);
        rig.stop().await;
    }
    assert_eq!(runs[0], runs[1]);
    let [owner, other, default, too, none] = &runs[0][..] else { panic!("{runs:?}") };
    assert_eq!((default, none), (&json!("mine"), &Value::Null));
    for name in [owner, other, too] {
        let name = name.as_str().unwrap();
        assert!(name.len() <= 64 && !name.contains("mine"), "{name}");
    }
    assert!(owner != other && owner != too);
}

/// A refusal that one tenant provokes, with all the fields of a real one, costs no other tenant a parameter.
#[tokio::test]
async fn what_one_tenant_teaches_changes_nothing_for_others() {
    let upstream = Upstream::start_with(|received| {
        let body = received.json();
        let provoked = body["messages"].to_string().contains("provoke") && body.get("temperature").is_some();
        if provoked {
            let error =
                json!({"message": "Unsupported parameter.", "param": "temperature", "code": "unsupported_parameter"});
            return Script::json(400, &json!({"error": error}));
        }
        provider(received)
    });
    let rig = rig(upstream.await.unwrap(), "backend: memory", "").await;
    let ask = async |key: &str, input: &str| {
        made(&rig, key, json!({"input": input, "temperature": 0.5})).await;
        rig.upstream.requests().pop().unwrap().json().get("temperature").cloned()
    };
    assert_eq!(ask(OWNER, "provoke").await, None);
    assert_eq!(ask(OWNER, "hello").await, None, "it has learned");
    for key in [OTHER, DEFAULT] {
        assert_eq!(ask(key, "hello").await, Some(json!(0.5)));
    }
}

/// How many tokens a model takes, as it said to one tenant, shortens no other's history.
#[tokio::test]
async fn a_window_that_one_tenant_has_found_is_not_anothers() {
    let refusals = AtomicUsize::new(0);
    let upstream = Upstream::start_with(move |received| {
        let provoked = received.json()["messages"].to_string().contains("provoke");
        if provoked && refusals.fetch_add(1, Ordering::Relaxed) == 0 {
            let message =
                "This model's maximum context length is 4096 tokens. However, your messages resulted in 8000 tokens.";
            let error = json!({"message": message, "code": "context_length_exceeded", "type": "invalid_request_error"});
            return Script::json(400, &json!({"error": error}));
        }
        provider(received)
    });
    let rig = rig(upstream.await.unwrap(), "backend: memory", "").await;
    let window = async |key: &str| get(&rig, key, "/v1/models").await.json()["models"][0]["context_window"].clone();
    let usual = window(OTHER).await;
    let refused = post(&rig, OWNER, "/v1/responses", &json!({"model": "m", "input": "provoke"})).await;
    assert_eq!(refused.status, 400, "{}", refused.json());
    assert_ne!(window(OWNER).await, usual, "it has learned");
    assert_eq!(window(OTHER).await, usual);
}

/// A webhook with `tenants` is told of theirs only.
#[tokio::test]
async fn a_webhook_is_told_of_its_tenants_responses() {
    let [all, some] =
        [Upstream::start(Script::respond(204)).await.unwrap(), Upstream::start(Script::respond(204)).await.unwrap()];
    let entry = |receiver: &Upstream, more: &str| {
        format!("- {{url: '{}', secret: a-secret-of-24-characters, allow_private: true{more}}}\n", receiver.url())
    };
    let webhooks = format!("webhooks:\n{}{}", entry(&all, ""), entry(&some, ", tenants: [other, third]"));
    let rig = rig(Upstream::start_with(provider).await.unwrap(), "backend: memory", &webhooks).await;
    let mut ids = Vec::new();
    for key in [OWNER, OTHER, DEFAULT] {
        ids.push(id(&made(&rig, key, json!({"input": "hello", "background": true})).await));
    }
    let waited = tokio::time::timeout(Duration::from_secs(40), async {
        all.arrived(3).await;
        some.arrived(1).await;
    });
    waited.await.unwrap();
    let told = |receiver: &Upstream| {
        let mut told: Vec<String> = receiver.requests().iter().map(|told| id(&told.json()["data"])).collect();
        told.sort();
        told
    };
    assert_eq!(told(&some), [ids[1].clone()]);
    ids.sort();
    assert_eq!(told(&all), ids);
}
