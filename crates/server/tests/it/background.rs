//! Turns that outlive their request: polled, streamed again, cancelled, queued, repeated under a key.

mod cancelled;
mod instances;
mod keys;
mod lost;
mod queued;
mod resumed;

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use testkit::{Answer, Script};

use crate::chat;
use crate::rig::{self, Rig, Settings};

/// An answer that takes its time: the first delta, a pause, the rest.
fn slow(pause: Duration) -> Script {
    let chunks = chat::chunks();
    let begun = chunks[..2].iter().fold(Script::event_stream(), Script::event);
    chunks[2..].iter().fold(begun.delay(pause), Script::event).done()
}

/// The first delta, and then nothing.
fn stuck() -> Script {
    chat::chunks()[..2].iter().fold(Script::event_stream(), Script::event).stall()
}

fn request(stream: bool) -> Value {
    json!({"model": "m", "input": "Hello", "background": true, "stream": stream})
}

async fn submit(rig: &Rig) -> Value {
    rig::object_now(&rig.post(&request(false)).await)
}

fn path(response: &Value) -> String {
    format!("/v1/responses/{}", response["id"].as_str().unwrap())
}

/// Polls until the response has one of these statuses.
async fn until(rig: &Rig, path: &str, statuses: &[&str]) -> Value {
    for _ in 0..3000 {
        let response = rig::object_now(&rig.get(path).await);
        if statuses.iter().any(|status| response["status"] == *status) {
            return response;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{path} never became {statuses:?}: {:?}", rig.get(path).await.json());
}

async fn cancel(rig: &Rig, path: &str) -> Answer {
    rig.send(Method::POST, &format!("{path}/cancel"), &Value::Null).await
}

/// The events of a stream, and the id of its response.
fn id_in(sse: &[u8]) -> String {
    let text = String::from_utf8_lossy(sse);
    let at = text.find("resp_").unwrap();
    text[at..at + 53].to_owned()
}
