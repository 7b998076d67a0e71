//! The way to a provider: proxies, certificates, HTTP/2, redirects, and what never goes anywhere else.

mod servers;

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Script, Upstream};

use crate::chat;
use crate::rig::{KEY, QUICK, Rig, error, object, parse, stream};
use crate::socket::Socket;
use servers::{Authority, Http2, Tunnels, secure};

fn asked(streamed: bool) -> Value {
    json!({"model": "m", "input": "Hello", "stream": streamed})
}

/// One provider with these lines.
async fn rig(upstream: Upstream, base_url: &str, more: &str) -> Rig {
    let text = format!(
        "session: {{backend: memory}}\nresilience: {{{QUICK}}}\nproviders:\n  up:\n    spec: openai-compatible\n    \
         endpoint: {{base_url: '{base_url}/v1'}}\n    credentials: {{api_key: {KEY}}}\n    {more}\n"
    );
    Rig::serving(upstream, parse(&text)).await.unwrap()
}

/// Both kinds of answers.
async fn works(rig: &Rig) {
    for streamed in [false, true] {
        let answer = rig.post(&asked(streamed)).await;
        if streamed {
            assert_eq!(stream(&answer).text, "Hello");
        } else {
            assert_eq!(object(&answer)["output"][0]["content"][0]["text"], "Hello");
        }
    }
}

async fn refused(rig: &Rig) -> String {
    let answer = rig.post(&asked(false)).await;
    assert_eq!(answer.status, 502);
    error(&answer).message
}

#[tokio::test]
async fn answers_are_asked_for_uncompressed() {
    let rig = Rig::start(chat::answer(false)).await;
    object(&rig.post(&asked(false)).await);
    assert_eq!(rig.upstream.requests()[0].header("accept-encoding"), Some("identity"));
}

/// T7: the key goes to the configured host and nowhere else.
#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Upstream::start(chat::answer(false)).await.unwrap();
    let away = Script::json(307, &json!({})).header("location", &format!("{}/v1/chat/completions", elsewhere.url()));
    let rig = Rig::start(away).await;
    assert!(refused(&rig).await.contains("redirect"));
    assert_eq!((rig.upstream.requests().len(), elsewhere.requests().len()), (1, 0));
}

// === proxies ===

#[tokio::test]
async fn a_proxy_forwards_plain_http() {
    let proxy = Upstream::start_with(|request| chat::answer(request.json()["stream"] == json!(true))).await.unwrap();
    let lines = format!("proxy: 'http://user:p%40ss@{}'", proxy.address());
    // Nobody listens there: only the proxy knows the way.
    let rig = rig(proxy, "http://model.internal:81", &lines).await;
    works(&rig).await;
    for request in rig.upstream.requests() {
        assert_eq!(request.path, "http://model.internal:81/v1/chat/completions");
        assert_eq!(request.header("host"), Some("model.internal:81"));
        assert_eq!(request.header("proxy-authorization"), Some("Basic dXNlcjpwQHNz"));
        assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    }
}

#[tokio::test]
async fn a_proxy_opens_a_tunnel_for_https() {
    let authority = Authority::new();
    let upstream = Upstream::start_with(|request| chat::answer(request.json()["stream"] == json!(true))).await.unwrap();
    let tls = secure(upstream.address(), &authority, &[]).await;
    let tunnels = Tunnels::start(tls, "Basic dXNlcjpwYXNz").await;
    let base = "https://model.example.com";
    let lines = format!("ca: '{}'\n    proxy: 'http://user:pass@{}'", authority.file(), tunnels.address);
    let open = rig(upstream, base, &lines).await;
    works(&open).await;
    assert_eq!(tunnels.asked(), ["CONNECT model.example.com:443 HTTP/1.1"], "one connection, used again");
    assert!(open.upstream.requests().iter().all(|request| request.header("proxy-authorization").is_none()));

    let stranger = format!("ca: '{}'\n    proxy: 'http://user:wrong-password@{}'", authority.file(), tunnels.address);
    let upstream = Upstream::start(Script::hang_up()).await.unwrap();
    let message = refused(&rig(upstream, base, &stranger).await).await;
    assert!(message.contains("proxy") && !message.contains("wrong-password"), "{message}");
}

// === certificates ===

#[tokio::test]
async fn only_known_authorities_are_trusted() {
    let authority = Authority::new();
    let upstream = Upstream::start_with(|request| chat::answer(request.json()["stream"] == json!(true))).await.unwrap();
    let tls = secure(upstream.address(), &authority, &[]).await;
    let base = format!("https://localhost:{}", tls.port());
    let trusting = rig(upstream, &base, &format!("ca: '{}'", authority.file())).await;
    works(&trusting).await;
    let stranger = Authority::new();
    for lines in [String::new(), format!("ca: '{}'", stranger.file())] {
        let rig = rig(Upstream::start(Script::hang_up()).await.unwrap(), &base, &lines).await;
        let message = refused(&rig).await;
        assert!(message.contains("certificate"), "{message}");
    }
    // A certificate for another name.
    let base = format!("https://127.0.0.1:{}", tls.port());
    let upstream = Upstream::start(Script::hang_up()).await.unwrap();
    let rig = rig(upstream, &base, &format!("ca: '{}'", authority.file())).await;
    assert!(refused(&rig).await.contains("certificate"));
}

// === HTTP/2 ===

#[tokio::test]
async fn http2_by_prior_knowledge_and_by_agreement() {
    let authority = Authority::new();
    let http2 = Http2::start(Duration::ZERO).await;
    let base = format!("http://{}", http2.address);
    let plain = rig(Upstream::start(Script::hang_up()).await.unwrap(), &base, "http2: true").await;
    works(&plain).await;
    let tls = secure(http2.address, &authority, &[b"h2"]).await;
    let lines = format!("http2: true\n    ca: '{}'", authority.file());
    let base = format!("https://localhost:{}", tls.port());
    let agreed = rig(Upstream::start(Script::hang_up()).await.unwrap(), &base, &lines).await;
    works(&agreed).await;
    let seen = http2.seen();
    assert_eq!(seen.len(), 4);
    assert!(seen.iter().all(|key| *key == format!("Bearer {KEY}")), "{seen:?}");
    // One that speaks only HTTP/1.1.
    let old = secure(http2.address, &authority, &[b"http/1.1"]).await;
    let base = format!("https://localhost:{}", old.port());
    let rig = rig(Upstream::start(Script::hang_up()).await.unwrap(), &base, &lines).await;
    refused(&rig).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_http2_streams_spread_over_a_few_connections() {
    let http2 = Http2::start(Duration::from_millis(500)).await;
    let base = format!("http://{}", http2.address);
    let rig = rig(Upstream::start(Script::hang_up()).await.unwrap(), &base, "http2: true").await;
    let body = asked(true);
    let answers = futures_util::future::join_all((0..300).map(|_| rig.post(&body))).await;
    assert!(answers.iter().all(|answer| stream(answer).text == "Hello"));
    let connections = http2.connections();
    assert!((2..=8).contains(&connections), "{connections} connections for 300 streams");
}

#[tokio::test]
async fn a_client_that_leaves_cancels_its_http2_stream() {
    let http2 = Http2::start(Duration::from_hours(1)).await;
    let base = format!("http://{}", http2.address);
    let rig = rig(Upstream::start(Script::hang_up()).await.unwrap(), &base, "http2: true").await;
    for (streamed, seen) in [(true, "response.in_progress"), (false, "")] {
        let before = http2.cancelled();
        let mut socket = Socket::post(rig.address, &asked(streamed)).await;
        http2.busy().await;
        socket.read_until(seen).await;
        drop(socket);
        let cancelled = async {
            while http2.cancelled() == before {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), cancelled).await.expect("the stream goes on");
    }
}
