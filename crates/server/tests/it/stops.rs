//! The end of the server: what runs may end; what cannot says why.

use std::time::Duration;

use serde_json::{Value, json};
use server::config::Config;
use testkit::Script;

use crate::chat;
use crate::rig::{Rig, Settings, error, spawn};

fn request(stream: bool) -> Value {
    json!({"model": "m", "input": "Hello", "stream": stream})
}

async fn rig(script: Script, tweak: fn(&mut Config)) -> Rig {
    Rig::with(script, Settings { tweak: Some(tweak), ..Settings::default() }).await
}

fn begun() -> Script {
    Script::event_stream().event(&chat::text("Hel"))
}

const PATIENT: fn(&mut Config) = |config| config.server.drain_timeout = Duration::from_hours(1);
const SHORT: fn(&mut Config) = |config| config.server.drain_timeout = Duration::from_millis(100);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_cut_says_so_first() {
    for at_once in [false, true] {
        let rig = rig(begun().stall(), if at_once { PATIENT } else { SHORT }).await;
        let mut streaming = rig.client.post_stream(&rig.url("/v1/responses"), &request(true)).await.unwrap();
        let mut read = streaming.read_until("\"delta\":\"Hel\"").await.unwrap();
        let stopped = spawn(async move { if at_once { rig.stop_at_once().await } else { rig.stop().await } });
        while let Ok(Some(bytes)) = streaming.next().await {
            read.extend_from_slice(&bytes);
        }
        let stream = testkit::grammar::check(&read).unwrap();
        assert_eq!(stream.response["status"], "failed", "{}", stream.response);
        assert_eq!(stream.response["error"]["code"], "server_shutdown");
        assert!(stream.response["error"]["message"].as_str().unwrap().contains("shutting down"));
        assert_eq!(stream.text, "Hel");
        stopped.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_answered_yet_is_a_503() {
    for (name, script, stream) in [
        ("silent, streamed", Script::silent(), true),
        ("silent, whole", Script::silent(), false),
        ("half an answer", begun().stall(), false),
    ] {
        let rig = rig(script, PATIENT).await;
        let (client, url) = (rig.client.clone(), rig.url("/v1/responses"));
        let asked = spawn(async move { client.post_json(&url, &request(stream)).await.unwrap() });
        rig.upstream.arrived(1).await;
        rig.stop_at_once().await;
        let answer = asked.await.unwrap();
        let found = error(&answer);
        assert_eq!((found.status, found.domain.as_str()), (503, "shutting_down"), "{name}");
        assert_eq!(answer.header("retry-after"), Some("1"), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_ends_in_time_ends_as_ever() {
    let slow = begun().delay(Duration::from_millis(400)).event(&chat::text("lo")).event(&chat::stop()).done();
    let rig = rig(slow, PATIENT).await;
    let mut streaming = rig.client.post_stream(&rig.url("/v1/responses"), &request(true)).await.unwrap();
    streaming.read_until("\"delta\":\"Hel\"").await.unwrap();
    let stopped = spawn(rig.stop());
    let rest = streaming.read_until("[DONE]").await.unwrap();
    assert!(String::from_utf8_lossy(&rest).contains("response.completed"));
    stopped.await.unwrap();
}
