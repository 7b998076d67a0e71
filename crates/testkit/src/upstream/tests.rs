use std::time::Duration;

use serde_json::json;

use super::{Fate, Upstream};
use crate::{Client, Script};

#[tokio::test]
async fn plays_scripts_and_records_requests() {
    let upstream = Upstream::start(Script::json(200, &json!({"n": 1}))).await.unwrap();
    upstream.queue(Script::json(429, &json!({"error": {}})).header("retry-after", "3"));
    let client = Client::new().unwrap();
    let url = format!("{}/v1/chat/completions?x=1", upstream.url());

    let first = client.post_json(&url, &json!({"model": "m"})).await.unwrap();
    assert_eq!((first.status, first.header("retry-after")), (429, Some("3")));
    let second = client.post_json(&url, &json!({"model": "n"})).await.unwrap();
    assert_eq!((second.status, second.json()), (200, json!({"n": 1})));

    let requests = upstream.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].method, "POST");
    assert_eq!(requests[0].path, "/v1/chat/completions?x=1");
    assert_eq!(requests[0].header("content-type"), Some("application/json"));
    assert_eq!(requests[1].json(), json!({"model": "n"}));
    assert_eq!(requests[0].connection, requests[1].connection, "keep-alive");
}

#[tokio::test]
async fn chooses_by_request() {
    let upstream = Upstream::start_with(|request| Script::json(200, &request.json())).await.unwrap();
    let answer = Client::new().unwrap().post_json(&upstream.url(), &json!(["echo"])).await.unwrap();
    assert_eq!(answer.json(), json!(["echo"]));
}

#[tokio::test]
async fn streams_as_cut() {
    let upstream = Upstream::start(Script::sse(&[json!({"a": 1})]).split_at(&[3, 9])).await.unwrap();
    let mut stream = Client::new().unwrap().post_stream(&upstream.url(), &json!({})).await.unwrap();
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    let mut chunks = Vec::new();
    while let Some(chunk) = stream.next().await.unwrap() {
        chunks.push(String::from_utf8(chunk.to_vec()).unwrap());
    }
    assert_eq!(chunks, ["dat", "a: {\"a", "\":1}\n\ndata: [DONE]\n\n"]);
}

#[tokio::test]
async fn fails_as_told() {
    let half = || Script::event_stream().send("data: {");
    let cases = [
        ("cut", half().cut()),
        ("reset", half().reset()),
        ("short", Script::body(200, "text/plain", "abc").cut().send("def")),
        ("garbage", Script::garbage("\0\0nonsense\r\n\r\n")),
        ("hang up", Script::hang_up()),
    ];
    let upstream = Upstream::start(Script::hang_up()).await.unwrap();
    for (name, script) in cases {
        upstream.queue(script);
        let client = Client::new().unwrap();
        let answer = client.post_json(&upstream.url(), &json!({})).await;
        assert!(answer.is_err(), "{name}: {answer:?}");
    }
    assert_eq!(upstream.fate(0), Some(Fate::WeClosed));
}

#[tokio::test]
async fn notices_that_the_client_is_gone() {
    for script in [Script::silent(), Script::event_stream().send("x").delay(Duration::from_mins(1)).done()] {
        let upstream = Upstream::start(script).await.unwrap();
        let (url, client) = (upstream.url(), Client::new().unwrap());
        let call = tokio::spawn(async move { client.post_json(&url, &json!({})).await });
        upstream.arrived(1).await;
        assert_eq!(upstream.fate(0), Some(Fate::Open));
        call.abort();
        assert!(upstream.closed_after(0).await < Duration::from_secs(1));
        assert_eq!(upstream.fate(0), Some(Fate::PeerClosed));
    }
}
