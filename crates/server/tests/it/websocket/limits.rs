//! What a connection may take: its place, memory, and time.

use std::time::Duration;

use futures_util::SinkExt;
use serde_json::json;
use server::config::Config;
use testkit::Script;
use tokio::io::AsyncWriteExt as _;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::client::{Client, handshake};
use super::{create, hello};
use crate::chat;
use crate::rig::{Rig, Settings};
use crate::socket::Socket;

async fn rig(script: Script, tweak: fn(&mut Config)) -> Rig {
    Rig::with(script, Settings { tweak: Some(tweak), ..Settings::default() }).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_is_too_large_ends_the_connection() {
    let rig = rig(hello(), |config| config.server.max_body_bytes = 10_000).await;
    let mut client = Client::connect(&rig).await;
    assert_eq!(client.respond(&create(&"x".repeat(9_000))).await.text, "Hello");
    // The client may notice while it still sends.
    let _ = client.socket.send(Message::text(create(&"x".repeat(300_000)).to_string())).await;
    let error = client.next().await;
    assert_eq!((&error["status"], &error["error"]["code"]), (&json!(413), &json!("request_too_large")));
    assert_eq!(client.closed().await.map(|(code, _)| code), Some(CloseCode::Size));
    assert_eq!(rig.upstream.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_count_as_bodies_do() {
    let tweak = |config: &mut Config| {
        config.server.max_body_bytes = 400_000;
        config.limits.body_bytes_in_flight = 500_000;
    };
    let rig = rig(hello(), tweak).await;
    // Half a message holds what has come of it, and not what is still to come.
    let (half, head) = super::client::raw(rig.address, &[]).await;
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    let mut half = half.into_inner();
    half.write_all(&[0x81, 0xff, 0, 0, 0, 0, 0, 5, 0x7e, 0x40, 1, 2, 3, 4, 5]).await.unwrap();
    let mut whole = Client::connect(&rig).await;
    assert_eq!(whole.respond(&create(&"x".repeat(200_000))).await.text, "Hello");
    half.write_all(&vec![b'x'; 350_000]).await.unwrap();
    let mut refused = false;
    for _ in 0..200 {
        let mut client = Client::connect(&rig).await;
        let _ = client.socket.send(Message::text(create(&"x".repeat(200_000)).to_string())).await;
        let first = client.next().await;
        if first["type"] == "error" {
            assert_eq!((&first["status"], &first["error"]["code"]), (&json!(503), &json!("too_many_bytes_in_flight")));
            assert_eq!(client.closed().await.map(|(code, _)| code), Some(CloseCode::Again));
            refused = true;
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(refused, "the half message is not counted");
    drop(half);
    let mut answered = false;
    for _ in 0..200 {
        let mut client = Client::connect(&rig).await;
        let _ = client.socket.send(Message::text(create(&"x".repeat(200_000)).to_string())).await;
        answered = client.next().await["type"] == "response.created";
        if answered {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(answered, "what a gone client held is not free again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_keeps_its_place_among_the_connections() {
    let rig = rig(hello(), |config| config.server.max_connections = 1).await;
    let mut client = Client::connect(&rig).await;
    client.respond(&create("Hi")).await;
    let waiting = handshake(&rig, &[]);
    let early = tokio::time::timeout(Duration::from_millis(300), waiting).await;
    assert!(early.is_err(), "a second connection was served");
    drop(client);
    let (status, _) = tokio::time::timeout(Duration::from_secs(20), handshake(&rig, &[])).await.unwrap();
    assert_eq!(status, 101);
}

/// Longer than any connection may be without a request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_socket_is_no_idle_connection() {
    let tweak = |config: &mut Config| {
        config.server.header_timeout = Duration::from_millis(100);
        config.server.idle_timeout = Some(Duration::from_millis(100));
    };
    let rig = rig(hello(), tweak).await;
    let mut client = Client::connect(&rig).await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(client.respond(&create("Hi")).await.text, "Hello");
}

/// A client that reads nothing is cut off, and its turns end; nobody else notices.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_is_cut_off() {
    let endless = (0..64).fold(Script::event_stream(), |script, _| script.event(&chat::text(&"x".repeat(256 << 10))));
    let rig = rig(endless.stall(), |config| config.limits.write_stall = Duration::from_millis(300)).await;
    let mut client = Client::connect(&rig).await;
    client.say(&create("Hi")).await;
    let closed = tokio::time::timeout(Duration::from_secs(30), rig.upstream.closed_after(0)).await;
    assert!(closed.is_ok(), "a client that does not read holds its upstream");
    rig.upstream.queue(hello());
    let mut other = Client::connect(&rig).await;
    assert_eq!(other.respond(&create("Hi")).await.text, "Hello");
}

/// A message of which nothing more comes, while the client answers every ping.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_is_silent_in_the_middle_of_a_message_is_gone() {
    let rig = rig(hello(), |config| config.server.websocket.ping = Duration::from_millis(100)).await;
    let (mut socket, _): (Socket, String) = super::client::raw(rig.address, &[]).await;
    socket.send("\u{1}").await;
    let rest = tokio::time::timeout(Duration::from_secs(20), socket.read_until("never")).await;
    assert!(rest.is_ok(), "half a frame holds its connection");
}

/// Large messages leave no memory behind: the buffers are made anew between two of them, and nothing is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_messages_one_after_the_other() {
    let large = Script::sse(&[chat::text(&"y".repeat(300_000)), chat::stop()]);
    let rig = Rig::start(hello()).await;
    let mut client = Client::connect(&rig).await;
    for size in [1, 100_000, 10, 70_000, 1_000_000, 3] {
        rig.upstream.queue(large.clone());
        let stream = client.respond(&create(&"x".repeat(size))).await;
        assert_eq!(stream.text.len(), 300_000, "{size}");
        client.send_message(Message::Ping("sign".into())).await;
        assert_eq!(client.respond(&create("small")).await.text, "Hello", "{size}");
    }
}
