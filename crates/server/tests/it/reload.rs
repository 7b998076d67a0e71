//! Another configuration for a running server: requests that come get it, requests under way keep theirs.

use serde_json::json;
use testkit::{Script, Upstream};

use crate::chat;
use crate::rig::{Rig, object, parse, stream};
use crate::websocket::client::Client;

fn text(upstream: &Upstream, more: &str) -> String {
    format!(
        "session: {{backend: memory}}\nproviders:\n  up:\n    spec: openai-compatible\n    endpoint: {{base_url: \
         '{}/v1'}}\n    credentials: {{api_key: k}}\n{more}",
        upstream.url()
    )
}

#[tokio::test]
async fn what_comes_later_gets_it_and_connections_stay() {
    let upstream = Upstream::start(chat::answer(false)).await.unwrap();
    let (before, after) = (text(&upstream, ""), text(&upstream, "models: {aliases: {fast: up/m2}}\n"));
    let other = Upstream::start(chat::answer(false)).await.unwrap();
    let rig = Rig::serving(upstream, parse(&before)).await.unwrap();
    let models = |answer: &testkit::Answer| answer.json()["data"].to_string();
    let held = json!({"model": "up/m", "input": "Hi", "stream": true});
    rig.upstream.queue(
        Script::event_stream()
            .event(&chat::text("a"))
            .delay(std::time::Duration::from_millis(150))
            .event(&chat::stop())
            .done(),
    );
    let mut running = rig.client.post_stream(&rig.url("/v1/responses"), &held).await.unwrap();
    let mut read = running.read_until("delta").await.unwrap();

    object(&rig.post(&json!({"model": "up/m", "input": "Hi"})).await);
    assert!(!models(&rig.get("/v1/models").await).contains("fast"));
    rig.reloader.reload(parse(&after)).unwrap();
    assert!(models(&rig.get("/v1/models").await).contains("fast"));
    object(&rig.post(&json!({"model": "fast", "input": "Hi"})).await);
    let asked = rig.upstream.requests();
    assert_eq!((&asked[2].json()["model"], asked[2].connection), (&json!("m2"), asked[1].connection));

    // A provider with another address is another provider.
    rig.reloader.reload(parse(&text(&other, ""))).unwrap();
    object(&rig.post(&json!({"model": "up/m", "input": "Hi"})).await);
    assert_eq!((rig.upstream.requests().len(), other.requests().len()), (3, 1));

    let rest = running.collect().await.unwrap();
    read.extend_from_slice(&rest.body);
    let ended = testkit::grammar::check(&read).unwrap();
    assert_eq!(ended.response["status"], "completed", "what was under way went on");
}

#[tokio::test]
async fn what_only_a_start_reads_is_refused_and_changes_nothing() {
    let upstream = Upstream::start(chat::answer(true)).await.unwrap();
    let before = text(&upstream, "");
    let cases = [
        ("server", before.clone() + "server: {max_connections: 7}\n"),
        ("session", before.replace("{backend: memory}", "{backend: memory, strict: true}")),
        ("limits", before.clone() + "limits: {write_stall: 7s}\n"),
        ("logging", before.clone() + "logging: {level: debug}\n"),
    ];
    let rig = Rig::serving(upstream, parse(&before)).await.unwrap();
    for (section, changed) in cases {
        let changed = changed + "models: {aliases: {fast: up/m2}}\n";
        let error = rig.reloader.reload(parse(&changed)).unwrap_err().to_string();
        assert!(error.contains(&format!("`{section}`")), "{error}");
        assert!(!rig.get("/v1/models").await.json().to_string().contains("fast"));
    }
    stream(&rig.post(&json!({"model": "up/m", "input": "Hi", "stream": true})).await);
}

/// One that is taken out serves nobody who comes later; a configuration that cannot be used leaves all as it was, also
/// the connections of providers that it had changed.
#[tokio::test]
async fn a_provider_that_is_gone_is_gone_and_one_that_cannot_be_used_changes_nothing() {
    let upstream = Upstream::start(chat::answer(false)).await.unwrap();
    let before = text(&upstream, "");
    let body = json!({"model": "up/m", "input": "Hi"});
    let rig = Rig::serving(upstream, parse(&before)).await.unwrap();
    object(&rig.post(&body).await);
    let mut unusable = parse(&before.replace("api_key: k", "api_key: other"));
    let mut broken = unusable.providers[0].clone();
    broken.name = "broken".to_owned();
    broken.base_url = "no host".to_owned();
    unusable.providers.push(broken);
    let error = rig.reloader.reload(unusable).unwrap_err().to_string();
    assert!(error.contains("broken"), "{error}");
    rig.reloader.reload(parse(&before)).unwrap();
    object(&rig.post(&body).await);
    let asked = rig.upstream.requests();
    assert_eq!(asked[0].connection, asked[1].connection, "as if nothing had been tried");

    rig.reloader.reload(parse("session: {backend: memory}\n")).unwrap();
    // What is left takes the name for one of its own models.
    object(&rig.post(&body).await);
    assert_eq!(rig.upstream.requests().len(), 2);
}

/// A page that may not ask any more does not, on a socket that it has open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_is_no_longer_named_asks_no_more() {
    let upstream = Upstream::start(chat::answer(true)).await.unwrap();
    let (before, after) = (text(&upstream, "server: {cors: {origins: ['https://a.example']}}\n"), text(&upstream, ""));
    let rig = Rig::serving(upstream, parse(&before)).await.unwrap();
    let mut page = Client::connect_from(&rig, "https://a.example").await;
    let create = json!({"type": "response.create", "model": "up/m", "input": "Hi"});
    assert_eq!(page.respond(&create).await.text, "Hello");
    rig.reloader.reload(parse(&after)).unwrap();
    page.say(&create).await;
    let refused = page.next().await;
    assert_eq!((&refused["status"], &refused["error"]["code"]), (&json!(403), &json!("origin_not_allowed")));
    assert_eq!(rig.upstream.requests().len(), 1);
}
