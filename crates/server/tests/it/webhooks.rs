//! Who wants to be told of the ends of background responses is told: signed, at least once, and nobody else.

use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};
use testkit::{Received, Script, Upstream};

use crate::chat;
use crate::rig::{self, Rig, Settings, parse};

const KEY: &[u8] = b"0123456789abcdef0123456789abcdef";

/// A webhook's entry, as the configuration has it.
fn entry(receiver: &Upstream, more: &str) -> String {
    let (url, secret) = (receiver.url(), STANDARD.encode(KEY));
    format!("{{url: '{url}/hook?team=a', secret: 'whsec_{secret}', allow_private: true{more}}}")
}

async fn receiver() -> Upstream {
    Upstream::start(Script::respond(204)).await.unwrap()
}

/// Waits for so many requests; the limit is for tests that fail.
async fn arrived(receiver: &Upstream, count: usize) -> Vec<Received> {
    let arrived = tokio::time::timeout(Duration::from_secs(40), receiver.arrived(count)).await;
    arrived.unwrap_or_else(|_| panic!("{} of {count}", receiver.requests().len()));
    receiver.requests()
}

/// HMAC-SHA256 by its definition.
fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let padded = |with: u8| (0..64).map(|at| key.get(at).copied().unwrap_or(0) ^ with).collect::<Vec<u8>>();
    let inner = digest(&SHA256, &[&padded(0x36), message].concat());
    digest(&SHA256, &[&padded(0x5c), inner.as_ref()].concat()).as_ref().to_vec()
}

/// What it says, if it is signed with the key and as it should be: the event's type and the response's id.
fn event(received: &Received) -> (String, String) {
    let header = |name: &str| received.header(name).unwrap_or_else(|| panic!("no {name}: {:?}", received.headers));
    assert_eq!((received.method.as_str(), received.path.as_str()), ("POST", "/hook?team=a"));
    assert_eq!((header("content-type"), header("user-agent")), ("application/json", "godex/0.1.0"));
    let (id, timestamp) = (header("webhook-id"), header("webhook-timestamp"));
    let signed = [id.as_bytes(), timestamp.as_bytes(), &received.body].join(&b'.');
    assert_eq!(header("webhook-signature"), format!("v1,{}", STANDARD.encode(hmac(KEY, &signed))));
    let event = received.json();
    assert!(id.starts_with("evt_") && event["created_at"].as_u64() <= timestamp.parse().ok(), "{event}");
    let [kind, response] = [&event["type"], &event["data"]["id"]].map(|text| text.as_str().unwrap().to_owned());
    let expected = json!({
        "id": id, "object": "event", "created_at": event["created_at"], "type": kind, "data": {"id": response},
    });
    assert_eq!(event, expected);
    (kind, response)
}

async fn submit(rig: &Rig) -> String {
    let response = rig::object_now(&rig.post(&json!({"model": "m", "input": "Hello", "background": true})).await);
    response["id"].as_str().unwrap().to_owned()
}

async fn cancel(rig: &Rig, response: &str) {
    let answer = rig.send(Method::POST, &format!("/v1/responses/{response}/cancel"), &Value::Null).await;
    assert_eq!(answer.status, 200, "{:?}", answer.json());
}

fn truncated() -> Script {
    let choice = json!({"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "length"});
    Script::json(200, &json!({"choices": [choice]}))
}

fn refused() -> Script {
    Script::json(400, &json!({"error": {"message": "no"}}))
}

/// Every kind of end, of what ran and of what waited; and no end of what was not in the background.
#[tokio::test]
async fn each_end_of_a_background_response_is_told_and_signed() {
    let (receiver, upstream) = (receiver().await, Upstream::start(chat::answer(false)).await.unwrap());
    let session = "backend: memory, resume_foreground: true, background: {concurrency: 1, queue: 5}".to_owned();
    let webhooks = format!("[{}]", entry(&receiver, ""));
    let rig = Rig::before(upstream, Settings { session, webhooks, ..Settings::default() }).await;
    rig.upstream.queue(chat::answer(true));
    for stream in [true, false] {
        let foreground = rig.post(&json!({"model": "m", "input": "Hello", "stream": stream})).await;
        assert_eq!(foreground.status, 200);
    }
    let mut told = 0;
    for (script, expected) in [
        (chat::answer(false), "response.completed"),
        (truncated(), "response.incomplete"),
        (refused(), "response.failed"),
        (Script::silent(), "response.cancelled"),
    ] {
        let asked = rig.upstream.requests().len();
        rig.upstream.queue(script);
        let response = submit(&rig).await;
        if expected == "response.cancelled" {
            rig.upstream.arrived(asked + 1).await;
            let waiting = submit(&rig).await;
            cancel(&rig, &waiting).await;
            told += 1;
            assert_eq!(event(&arrived(&receiver, told).await[told - 1]), (expected.to_owned(), waiting));
            cancel(&rig, &response).await;
        }
        told += 1;
        let received = arrived(&receiver, told).await;
        assert_eq!(event(&received[told - 1]), (expected.to_owned(), response));
    }
    assert_eq!(receiver.requests().len(), told, "what was not in the background is told to nobody");
}

#[tokio::test]
async fn each_is_told_of_the_events_that_it_wants_and_a_reload_changes_who() {
    let (all, failures, later) = (receiver().await, receiver().await, receiver().await);
    let upstream = Upstream::start(chat::answer(false)).await.unwrap();
    let text = |webhooks: &str| {
        let up = format!("{{spec: openai-compatible, endpoint: {{base_url: '{}/v1'}}, models: [m]}}", upstream.url());
        format!("session: {{backend: memory}}\nproviders: {{up: {up}}}\nwebhooks: [{webhooks}]\n")
    };
    let (before, after) = (
        text(&format!("{}, {}", entry(&all, ""), entry(&failures, ", events: [response.failed, response.cancelled]"))),
        text(&entry(&later, "")),
    );
    let rig = Rig::serving(upstream, parse(&before)).await.unwrap();
    let mut expected = Vec::new();
    for (script, kind) in [(chat::answer(false), "completed"), (refused(), "failed"), (truncated(), "incomplete")] {
        rig.upstream.queue(script);
        expected.push((format!("response.{kind}"), submit(&rig).await));
        arrived(&all, expected.len()).await;
    }
    assert_eq!(all.requests().iter().map(event).collect::<Vec<_>>(), expected);
    assert_eq!(arrived(&failures, 1).await.iter().map(event).collect::<Vec<_>>(), expected[1..2]);
    let ids = |receiver: &Upstream| receiver.requests().iter().map(|it| it.json()["id"].clone()).collect::<Vec<_>>();
    assert_ne!(ids(&all)[1], ids(&failures)[0], "each is told under an id of its own");

    rig.reloader.reload(parse(&after)).unwrap();
    let response = submit(&rig).await;
    assert_eq!(event(&arrived(&later, 1).await[0]), ("response.completed".to_owned(), response));
    assert_eq!((all.requests().len(), failures.requests().len()), (3, 1));
}

/// A receiver that fails, one that points elsewhere, one that hangs up: each is told again, at its own address.
#[tokio::test]
async fn who_does_not_take_it_is_told_again() {
    let receivers = [receiver().await, receiver().await, receiver().await];
    let elsewhere = receiver().await;
    receivers[0].queue(Script::respond(500));
    receivers[1].queue(Script::respond(302).header("location", &format!("{}/hook?team=a", elsewhere.url())));
    receivers[2].queue(Script::hang_up());
    let gone = receiver().await;
    gone.queue(Script::respond(410));
    let entries: Vec<String> = receivers.iter().chain([&gone]).map(|receiver| entry(receiver, "")).collect();
    let webhooks = format!("[{}]", entries.join(", "));
    let rig = Rig::with(chat::answer(false), Settings { webhooks, ..Settings::default() }).await;
    let response = submit(&rig).await;
    for receiver in &receivers {
        let received = arrived(receiver, 2).await;
        assert_eq!(event(&received[0]), ("response.completed".to_owned(), response.clone()));
        assert_eq!(event(&received[1]), event(&received[0]));
        assert_eq!(received[0].header("webhook-id"), received[1].header("webhook-id"), "the same once more");
    }
    assert_eq!((elsewhere.requests().len(), gone.requests().len()), (0, 1), "no redirect is followed, 410 is the end");
}

/// The server stops while the receiver keeps it waiting, and at once; the next one tells it.
#[tokio::test]
async fn what_was_not_told_is_told_after_a_restart() {
    let (folder, receiver) = (tempfile::tempdir().unwrap(), receiver().await);
    let path = folder.path().join("sessions.db");
    let settings = || Settings {
        session: format!("sqlite: {{path: '{}'}}", path.display()),
        webhooks: format!("[{}]", entry(&receiver, "")),
        ..Settings::default()
    };
    receiver.queue(Script::silent());
    let rig = Rig::with(chat::answer(false), settings()).await;
    let response = submit(&rig).await;
    arrived(&receiver, 1).await;
    tokio::time::timeout(Duration::from_secs(10), rig.stop()).await.expect("nobody waits for a receiver");
    {
        let database = rusqlite::Connection::open(&path).unwrap();
        let whole: String =
            database.query_row("SELECT hex(body) || endpoint FROM notice", [], |row| row.get(0)).unwrap();
        assert!(whole.ends_with(&format!("{}/hook?team=a", receiver.url())), "{whole}");
        // Or it would be waited until its time is over.
        assert_eq!(database.execute("UPDATE notice SET due = 0", []).unwrap(), 1);
    }
    let stored = std::fs::read(&path).unwrap();
    assert!(!stored.windows(KEY.len()).any(|at| at == KEY), "the secret is stored nowhere");
    let rig = Rig::with(chat::answer(false), settings()).await;
    let received = arrived(&receiver, 2).await;
    assert_eq!(event(&received[1]), ("response.completed".to_owned(), response));
    assert_eq!(received[0].header("webhook-id"), received[1].header("webhook-id"));
    rig.stop().await;
    let left = rusqlite::Connection::open(&path).unwrap();
    assert_eq!(left.query_row("SELECT count(*) FROM notice", [], |row| row.get(0)), Ok(0), "what is told is forgotten");
}

/// Addresses inside, written as such or behind a name, are not connected to, whatever the scheme: nobody hears anything.
#[tokio::test]
async fn a_private_address_is_not_connected_to_unless_it_may_be() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, allowed) = (listener.local_addr().unwrap().port(), receiver().await);
    let entry_of = |url: String| format!("{{url: '{url}', secret: '{}', allow_private: true}}", "s".repeat(24));
    let entries = [
        entry_of(format!("https://127.0.0.1:{port}/")),
        entry_of(format!("https://localhost:{port}/")),
        entry_of(format!("https://[::ffff:127.0.0.1]:{port}/")),
        entry_of(format!("http://localhost:{port}/")),
        entry(&allowed, ""),
    ];
    let forbid = |config: &mut server::config::Config| {
        for webhook in config.webhooks.iter_mut().take(4) {
            webhook.allow_private = false;
        }
    };
    let (folder, webhooks) = (tempfile::tempdir().unwrap(), format!("[{}]", entries.join(", ")));
    let path = folder.path().join("sessions.db");
    let session = format!("sqlite: {{path: '{}'}}", path.display());
    let settings = Settings { session, webhooks, tweak: Some(forbid), ..Settings::default() };
    let rig = Rig::with(chat::answer(false), settings).await;
    submit(&rig).await;
    arrived(&allowed, 1).await;
    // A second one comes after the tries of the first: all of them were begun before it was there.
    submit(&rig).await;
    arrived(&allowed, 2).await;
    rig.stop().await;
    let database = rusqlite::Connection::open(&path).unwrap();
    let tried: Vec<u32> = {
        let inside = format!("SELECT tries FROM notice WHERE endpoint LIKE '%:{port}/'");
        let mut notices = database.prepare(&inside).unwrap();
        notices.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    assert!(tried.len() == 8 && tried.iter().filter(|tries| **tries > 0).count() >= 4, "{tried:?}");
    let connected = tokio::time::timeout(Duration::from_millis(50), listener.accept()).await;
    assert!(connected.is_err(), "somebody connected: {connected:?}");
}
