//! How a connection ends: by the client, by the server, by its age.

use std::time::Duration;

use serde_json::json;
use server::config::Config;
use testkit::Script;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::client::Client;
use super::{create, hello, with};
use crate::chat;
use crate::rig::{Rig, Settings, spawn};

fn begun() -> Script {
    Script::event_stream().event(&chat::text("Hel"))
}

async fn rig(script: Script, tweak: fn(&mut Config)) -> Rig {
    Rig::with(script, Settings { tweak: Some(tweak), ..Settings::default() }).await
}

const PATIENT: fn(&mut Config) = |config| config.server.drain_timeout = Duration::from_hours(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_leaves_takes_its_turns_along() {
    for manners in [true, false] {
        let rig = Rig::start(begun().stall()).await;
        let mut client = Client::connect(&rig).await;
        client.say(&create("Hi")).await;
        client.say(&with(create("Hi"), &json!({"stream_id": "a"}))).await;
        rig.upstream.arrived(2).await;
        if manners {
            client.send_message(Message::Close(None)).await;
            while client.closed().await.is_some() {}
        }
        drop(client);
        for request in 0..2 {
            let closed = tokio::time::timeout(Duration::from_secs(20), rig.upstream.closed_after(request)).await;
            assert!(closed.is_ok(), "the upstream of a client that is gone stays open, manners: {manners}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_drains_closes_idle_connections_at_once() {
    let rig = rig(hello(), PATIENT).await;
    let mut client = Client::connect(&rig).await;
    client.respond(&create("Hi")).await;
    let stopped = spawn(rig.stop());
    assert_eq!(client.closed().await.map(|(code, _)| code), Some(CloseCode::Restart));
    drop(client);
    stopped.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_runs_ends_before_the_server_does() {
    let slow = begun().delay(Duration::from_millis(600)).event(&chat::text("lo")).event(&chat::stop()).done();
    let rig = rig(slow, PATIENT).await;
    let mut client = Client::connect(&rig).await;
    client.say(&create("Hi")).await;
    client.say(&create("waits")).await;
    let first = client.next().await;
    let stopped = spawn(rig.stop());
    // What waits is not begun any more, and nothing new is.
    let mut events = vec![first];
    let mut refused = 0;
    while !events.last().is_some_and(|event| event["type"] == "response.completed") {
        let event = client.next().await;
        if event.get("status").is_some() {
            assert_eq!((&event["status"], &event["error"]["code"]), (&json!(503), &json!("shutting_down")));
            if refused == 0 {
                client.say(&create("new")).await;
            }
            refused += 1;
        } else {
            events.push(event);
        }
    }
    assert_eq!(refused, 2);
    assert_eq!(super::client::check(&events).text, "Hello");
    assert_eq!(client.closed().await.map(|(code, _)| code), Some(CloseCode::Restart));
    drop(client);
    stopped.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_now_says_why_the_turn_failed() {
    let rig = rig(begun().stall(), PATIENT).await;
    let mut client = Client::connect(&rig).await;
    client.say(&create("Hi")).await;
    let first = client.next().await;
    let stopped = spawn(rig.stop_at_once());
    let failed = client.stream_after(first).await.response;
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!("server_shutdown")));
    assert_eq!(client.closed().await.map(|(code, _)| code), Some(CloseCode::Restart));
    drop(client);
    stopped.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_provider_has_answered_when_the_server_stops_is_an_error() {
    let rig = rig(Script::silent(), PATIENT).await;
    let mut client = Client::connect(&rig).await;
    client.say(&create("Hi")).await;
    rig.upstream.arrived(1).await;
    let stopped = spawn(rig.stop_at_once());
    let error = client.next().await;
    assert_eq!((&error["status"], &error["error"]["code"]), (&json!(503), &json!("shutting_down")));
    assert_eq!(client.closed().await.map(|(code, _)| code), Some(CloseCode::Restart));
    stopped.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_is_old_says_so_and_closes() {
    let short: fn(&mut Config) = |config| config.server.websocket.lifetime = Duration::from_millis(400);
    let rig = rig(hello(), short).await;
    let mut client = Client::connect(&rig).await;
    let error = client.next().await;
    assert_eq!((&error["type"], &error["status"]), (&json!("error"), &json!(400)));
    assert_eq!(error["error"]["code"], "websocket_connection_limit_reached");
    assert_eq!(client.closed().await.map(|(code, _)| code), Some(CloseCode::Normal));
    // What runs ends first, and what comes meanwhile is refused.
    let slow = begun().delay(Duration::from_millis(1200)).event(&chat::text("lo")).event(&chat::stop()).done();
    rig.upstream.queue(slow);
    let mut client = Client::connect(&rig).await;
    client.say(&create("Hi")).await;
    let first = client.next().await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    client.say(&with(create("late"), &json!({"stream_id": "late"}))).await;
    let mut events = vec![first];
    let mut refused = Vec::new();
    while !events.last().is_some_and(|event| event["type"] == "response.completed") {
        let event = client.next().await;
        if event.get("status").is_some() { refused.push(event) } else { events.push(event) }
    }
    assert_eq!(super::client::check(&events).text, "Hello");
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0]["error"]["code"], "websocket_connection_limit_reached");
    assert_eq!(refused[0]["stream_id"], "late");
    let last = client.next().await;
    assert_eq!(last["error"]["code"], "websocket_connection_limit_reached");
    assert_eq!(client.closed().await.map(|(code, _)| code), Some(CloseCode::Normal));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_gives_no_sign_of_life_is_gone() {
    let quick: fn(&mut Config) = |config| config.server.websocket.ping = Duration::from_millis(100);
    let rig = rig(begun().stall(), quick).await;
    // This one answers pings, because it reads.
    let mut alive = Client::connect(&rig).await;
    alive.say(&create("Hi")).await;
    let reading = spawn(async move { alive.closed().await });
    let mut silent = Client::connect(&rig).await;
    silent.say(&create("Hi")).await;
    rig.upstream.arrived(2).await;
    // One of the two upstreams is closed, and that is not the one whose client answers.
    let closed = async {
        tokio::select! {
            _ = rig.upstream.closed_after(0) => {}
            _ = rig.upstream.closed_after(1) => {}
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(20), closed).await.is_ok(), "a dead client keeps its turn");
    assert!(!reading.is_finished(), "a client that answers was taken for dead");
    drop(silent);
}
