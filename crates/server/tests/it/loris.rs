//! Clients that take their time with the request itself.

use std::time::Duration;

use serde_json::json;

use crate::chat;
use crate::rig::{Rig, Settings};
use crate::socket::Socket;

async fn rig() -> Rig {
    let tweak: fn(&mut server::config::Config) = |config| config.server.header_timeout = Duration::from_millis(300);
    Rig::with(chat::answer(false), Settings { tweak: Some(tweak), ..Settings::default() }).await
}

#[tokio::test]
async fn a_head_that_does_not_come_is_not_waited_for() {
    let rig = rig().await;
    for (name, text) in [
        ("nothing", ""),
        ("one letter", "P"),
        ("half a line", "POST /v1/resp"),
        ("half a head", "POST /v1/responses HTTP/1.1\r\nhost: localhost\r\ncontent-"),
        ("half of another protocol's greeting", "PRI * HT"),
        ("another protocol's greeting and no more", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ] {
        let mut socket = Socket::connect(rig.address).await;
        socket.send(text).await;
        let cut = tokio::time::timeout(Duration::from_secs(5), socket.read_to_end()).await;
        assert!(cut.is_ok(), "{name}: still connected");
    }
}

#[tokio::test]
async fn one_connection_carries_many_requests() {
    let rig = rig().await;
    let mut socket = Socket::connect(rig.address).await;
    for _ in 0..3 {
        socket.send_post(&json!({"model": "m", "input": "Hello"})).await;
        assert!(socket.read_until("\"user\":null}").await.starts_with("HTTP/1.1 200 "));
        // A pause is no slow head: how long one may last is `server.idle_timeout`.
        tokio::time::sleep(Duration::from_millis(600)).await;
    }
    socket.send("POST /v1/resp").await;
    let cut = tokio::time::timeout(Duration::from_secs(5), socket.read_to_end()).await;
    assert!(cut.is_ok(), "a later head may not take longer than the first");
}

#[tokio::test]
async fn a_slow_answer_is_no_slow_head() {
    let rig = rig().await;
    rig.upstream.queue(
        testkit::Script::event_stream()
            .delay(Duration::from_millis(900))
            .event(&chat::text("x"))
            .event(&chat::stop())
            .done(),
    );
    let answer = rig.post(&json!({"model": "m", "input": "Hello", "stream": true})).await;
    assert_eq!(crate::rig::stream(&answer).text, "x");
}
