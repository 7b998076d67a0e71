//! Order within a lane, and between lanes.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use testkit::{Script, Upstream};

use super::client::{Client, check, is_terminal};
use super::{create, hello, with};
use crate::chat;
use crate::rig::{Rig, Settings};

fn on(lane: &str, input: &str) -> Value {
    with(create(input), &json!({"stream_id": lane}))
}

/// A provider that answers with what it was asked last, and holds what is asked to be held.
async fn echoing() -> Rig {
    let answer = |request: &testkit::Received| {
        let messages = request.json()["messages"].clone();
        let text = messages.as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
        let begun = Script::event_stream().event(&chat::text(&text));
        if text.starts_with("hold") { begun.stall() } else { begun.event(&chat::stop()).done() }
    };
    let upstream = Upstream::start_with(answer).await.unwrap();
    Rig::before(upstream, Settings::default()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lane_does_one_thing_after_the_other() {
    let rig = echoing().await;
    let mut client = Client::connect(&rig).await;
    for lane in [None, Some("a")] {
        for number in 0..10 {
            let mut message = create(&number.to_string());
            if let Some(lane) = lane {
                message["stream_id"] = json!(lane);
            }
            client.say(&message).await;
        }
        for number in 0..10 {
            // Events of two responses that overlap would not keep the grammar.
            assert_eq!(client.stream().await.text, number.to_string(), "{lane:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lanes_run_side_by_side_and_their_events_are_their_own() {
    let rig = echoing().await;
    let mut client = Client::connect(&rig).await;
    client.say(&create("hold the default lane")).await;
    client.say(&on("held", "hold this one")).await;
    client.say(&on("held", "waits for ever")).await;
    rig.upstream.arrived(2).await;
    for lane in ["a", "b", "c"] {
        for turn in 0..3 {
            client.say(&on(lane, &format!("{lane}{turn}"))).await;
        }
    }
    let mut lanes: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut ended = 0;
    while ended < 9 {
        let event = client.next().await;
        ended += usize::from(is_terminal(&event));
        lanes.entry(event["stream_id"].as_str().unwrap_or_default().to_owned()).or_default().push(event);
    }
    for lane in ["a", "b", "c"] {
        let mut events = &lanes[lane][..];
        for turn in 0..3 {
            let end = events.iter().position(is_terminal).unwrap() + 1;
            assert_eq!(check(&events[..end]).text, format!("{lane}{turn}"));
            events = &events[end..];
        }
        assert!(events.is_empty());
    }
    assert!(!lanes["held"].iter().chain(&lanes[""]).any(is_terminal));
    assert_eq!(rig.upstream.requests().len(), 11, "what waits behind a held response was not begun");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_responses_run_at_once_and_more_wait() {
    let rig = echoing().await;
    let mut client = Client::connect(&rig).await;
    for number in 0..15 {
        client.say(&on(&format!("held{number}"), "hold")).await;
    }
    rig.upstream.arrived(15).await;
    for number in 0..8 {
        client.say(&on(&format!("free{number}"), "quick")).await;
    }
    let mut ended = Vec::new();
    while ended.len() < 8 {
        let event = client.next().await;
        if is_terminal(&event) {
            ended.push(event["stream_id"].as_str().unwrap().to_owned());
        }
    }
    // The one place that was left was taken by one after the other, as they came.
    assert_eq!(ended, (0..8).map(|number| format!("free{number}")).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_has_thirty_two_names() {
    let rig = Rig::start(hello()).await;
    let mut client = Client::connect(&rig).await;
    for number in 0..32 {
        client.respond(&on(&format!("lane.{number}"), "Hi")).await;
    }
    client.say(&on("lane.32", "Hi")).await;
    let error = client.next().await;
    assert_eq!((&error["status"], &error["stream_id"]), (&json!(400), &json!("lane.32")));
    assert_eq!(error["error"]["code"], "websocket_stream_limit_reached");
    assert_eq!(error["error"]["param"], "stream_id");
    for message in [on("lane.0", "Hi"), create("Hi")] {
        assert_eq!(client.respond(&message).await.text, "Hello");
    }
    let mut other = Client::connect(&rig).await;
    assert_eq!(other.respond(&on("lane.32", "Hi")).await.text, "Hello");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_is_bounded() {
    let rig = echoing().await;
    let mut client = Client::connect(&rig).await;
    client.say(&create("hold")).await;
    rig.upstream.arrived(1).await;
    for _ in 0..64 {
        client.say(&create("waits")).await;
    }
    client.say(&on("a", "runs")).await;
    let mut events = Vec::new();
    loop {
        let event = client.next().await;
        match event["stream_id"].as_str() {
            Some(_) => events.push(event),
            None if event.get("status").is_some() => panic!("{event}"),
            None => {}
        }
        if events.last().is_some_and(is_terminal) {
            break;
        }
    }
    client.say(&create("too many")).await;
    // What is held may say its first words only now.
    let mut error = client.next().await;
    while error.get("status").is_none() {
        error = client.next().await;
    }
    assert_eq!((&error["status"], &error["error"]["code"]), (&json!(429), &json!("websocket_queue_full")), "{error}");
    assert_eq!(error["headers"]["retry-after"], "1");
}
