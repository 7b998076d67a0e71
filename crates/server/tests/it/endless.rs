//! Answers without end: caps hold, and the connection is closed.

use bytes::Bytes;
use serde_json::{Value, json};
use testkit::Script;

use crate::chat;
use crate::rig::{Rig, error, object, stream};

/// `count` MiB of the same letter, then silence.
fn endless(begin: Script, count: usize) -> Script {
    let mebibyte = Bytes::from(vec![b'a'; 1 << 20]);
    (0..count).fold(begin, |script, _| script.send(mebibyte.clone())).stall()
}

/// `count` MiB of lines that say nothing, then silence.
fn noise(begin: Script, count: usize) -> Script {
    let mebibyte = Bytes::from(": nothing\n\n".repeat((1 << 20) / 11));
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
        ("nothing but comments", noise(Script::event_stream().event(&chat::text("Hel")), 66)),
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

/// A response is as large as what is in it: more than 64 MiB on the wire are fine, if it is letter by letter.
#[tokio::test]
async fn an_answer_is_measured_by_its_content() {
    const LETTERS: usize = 120_000;
    let mut letter = chat::text("a");
    letter["system_fingerprint"] = json!("x".repeat(600));
    let body = format!("data: {letter}\n\n");
    assert!(body.len() * LETTERS > 64 << 20);
    let thousand = Bytes::from(body.repeat(1000));
    let script = (0..LETTERS / 1000).fold(Script::event_stream(), |script, _| script.send(thousand.clone()));
    let rig = Rig::start(script.event(&chat::stop()).done()).await;
    let answer = object(&rig.post(&json!({"model": "m", "input": "Hello"})).await);
    assert_eq!(answer["status"], "completed");
    assert_eq!(answer["output"][0]["content"][0]["text"].as_str().map(str::len), Some(LETTERS));
}

/// Nobody is sent, and nothing is stored, that is larger than what can be sent: the end says so, without the items.
#[tokio::test]
async fn a_response_with_too_much_in_it_fails_before_it_is_stored() {
    let mebibyte = Bytes::from(format!("data: {}\n\n", chat::text(&"a".repeat(1 << 20))));
    let script = (0..65).fold(Script::event_stream(), |script, _| script.send(mebibyte.clone())).event(&chat::stop());
    let rig = Rig::start(script.done()).await;
    let request = json!({"model": "m", "input": "Hello", "stream": true});
    let answer = rig.post(&request).await;
    let last = last_response(&answer.body);
    assert_eq!((&last["status"], &last["output"]), (&json!("failed"), &json!([])));
    assert!(last["error"]["message"].as_str().is_some_and(|message| message.contains("larger than 67108864 bytes")));
    let stored = rig.get(&format!("/v1/responses/{}", last["id"].as_str().unwrap())).await;
    assert_eq!(object(&stored), last);
    let answer = rig.post(&json!({"model": "m", "input": "Hello"})).await;
    assert_eq!(error(&answer).key(), (502, "server_error", "upstream_protocol", None));
}

/// The object in the last event. The rules for streams are not asked: what was shown is not in it.
fn last_response(stream: &[u8]) -> Value {
    let tail = str::from_utf8(&stream[stream.len().saturating_sub(1 << 20)..]).unwrap();
    let (_, data) = tail.rsplit_once("event: response.failed\ndata: ").unwrap();
    let event: Value = serde_json::from_str(data.lines().next().unwrap()).unwrap();
    event["response"].clone()
}
