//! Answers without end: caps hold, and the connection is closed.

use bytes::Bytes;
use serde_json::json;
use testkit::Script;

use crate::chat;
use crate::rig::{Rig, error, stream};

/// `count` MiB of the same letter, then silence.
fn endless(begin: Script, count: usize) -> Script {
    let mebibyte = Bytes::from(vec![b'a'; 1 << 20]);
    (0..count).fold(begin, |script, _| script.send(mebibyte.clone())).stall()
}

#[tokio::test]
async fn answers_without_end_are_given_up() {
    let json = || Script::respond(200).header("content-type", "application/json").send("{\"choices\":[{\"x\":\"");
    let line = || Script::event_stream().event(&chat::text("Hel")).send("data: {\"x\":\"");
    for (name, script) in [
        ("one line", endless(line(), 10)),
        ("one comment", endless(Script::event_stream().send(": "), 10)),
        ("one JSON", endless(json(), 66)),
        ("no type", endless(Script::respond(200).send("{\"choices\":[{\"x\":\""), 66)),
    ] {
        for streamed in [false, true] {
            let rig = Rig::start(script.clone()).await;
            let answer = rig.post(&json!({"model": "m", "input": "Hello", "stream": streamed})).await;
            if streamed {
                assert_eq!(stream(&answer).response["error"]["code"], "server_error", "{name}");
            } else {
                assert_eq!(error(&answer).key(), (502, "server_error", "upstream_protocol", None), "{name}");
            }
            rig.upstream.closed_after(0).await;
        }
    }
}
