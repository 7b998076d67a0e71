//! What ends a turn ends the summary that is made for it: a client that leaves, a cancellation, a deadline.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use testkit::{Received, Script, Upstream};

use super::{PROMPT, kinds, text_of, turn_text, user};
use crate::chat;
use crate::rig::{self, Rig, Settings, object, object_now};

/// A provider whose summaries begin, and do not end.
async fn stuck(settings: Settings) -> Rig {
    let choose = |received: &Received| {
        let stream = received.json()["stream"] == true;
        if !String::from_utf8_lossy(&received.body).contains(PROMPT) {
            return chat::answer(stream);
        }
        chat::chunks()[..2].iter().fold(Script::event_stream(), Script::event).stall()
    };
    Rig::before(Upstream::start_with(choose).await.unwrap(), settings).await
}

fn request() -> Value {
    let mut input: Vec<Value> = (1..20).map(|turn| user(&turn_text(turn))).collect();
    input.push(user("Go on."));
    json!({"model": "m", "input": input, "context_management": [{"type": "compaction", "compact_threshold": 2000}]})
}

fn with(mut request: Value, more: &Value) -> Value {
    request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    request
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_waits_gets_signs_of_life_and_one_that_leaves_ends_it() {
    let rig = stuck(Settings { server: "heartbeat: 1s", ..Settings::default() }).await;
    let body = with(request(), &json!({"stream": true}));
    let mut stream = rig.client.post_stream(&rig.url("/v1/responses"), &body).await.unwrap();
    let mut seen = String::new();
    while seen.matches("event: response.in_progress").count() < 2 {
        seen.push_str(&String::from_utf8_lossy(&stream.next().await.unwrap().unwrap()));
    }
    drop(stream);
    rig.upstream.closed_after(0).await;
    assert_eq!(rig.upstream.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_background_turn_is_cancelled_while_its_summary_is_made() {
    let rig = stuck(Settings::default()).await;
    let response = object_now(&rig.post(&with(request(), &json!({"background": true}))).await);
    let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    rig.upstream.arrived(1).await;
    let cancelled = rig.send(Method::POST, &format!("{path}/cancel"), &Value::Null).await;
    assert_eq!(object(&cancelled)["status"], "cancelled");
    rig.upstream.closed_after(0).await;
    assert_eq!(object(&rig.get(&path).await)["output"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_summary_that_takes_too_long_is_a_deadline_missed() {
    let rig = stuck(Settings { timeouts: "idle_ms: 300", ..Settings::default() }).await;
    let late = rig::error(&rig.post(&request()).await);
    assert_eq!(late.domain, "upstream_timeout");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_background_turn_is_compacted_like_any_other() {
    let (rig, _) = super::Scribe::start(Settings::default()).await;
    let mut request = with(request(), &json!({"background": true}));
    request["input"].as_array_mut().unwrap().push(user("What is port?"));
    let response = object_now(&rig.post(&request).await);
    let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    for _ in 0..3000 {
        let response = object_now(&rig.get(&path).await);
        if response["status"] == "completed" {
            assert_eq!(
                (kinds(&response), text_of(&response)),
                (vec!["compaction", "message"], "It is 58213.".to_owned())
            );
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never ended");
}

/// A provider that cannot be asked for a summary answers all the same, if the context still fits.
#[tokio::test]
async fn without_a_summary_the_answer_comes_from_the_whole_context() {
    let choose = |received: &Received| {
        let stream = received.json()["stream"] == true;
        if String::from_utf8_lossy(&received.body).contains(PROMPT) {
            return Script::json(400, &json!({"error": {"message": "no"}}));
        }
        chat::answer(stream)
    };
    let rig = Rig::before(Upstream::start_with(choose).await.unwrap(), Settings::default()).await;
    let (whole, streamed) = rig.both(&request()).await;
    assert!(whole.header("x-godex-compat").is_some_and(|notes| notes.contains("context_management=ignored")));
    for response in [object(&whole), rig::stream(&streamed).response] {
        assert_eq!(kinds(&response), ["message"]);
    }
}
