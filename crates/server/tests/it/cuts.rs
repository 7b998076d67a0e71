//! An answer that breaks off, at every byte of it. What is not finished is never completed.

use serde_json::json;
use testkit::Script;

use crate::chat;
use crate::rig::{Rig, Settings, error, object, stream};

/// Each script is played once.
const ONCE: &str = "retries: 0, breaker_failures: 0";

/// The body of a short answer, where its first content has arrived whole, and where its finish reason has.
fn recorded() -> (Vec<u8>, usize, usize) {
    let chunks = [chat::text("Hé"), chat::stop(), json!({"choices": [], "usage": chat::usage()})];
    let mut body = Vec::new();
    let mut ends = Vec::new();
    for chunk in &chunks {
        body.extend_from_slice(format!("data: {chunk}\n\n").as_bytes());
        ends.push(body.len());
    }
    body.extend_from_slice(b"data: [DONE]\n\n");
    (body, ends[0], ends[1])
}

#[tokio::test]
async fn a_connection_that_closes_at_any_byte() {
    let (body, begun, finished) = recorded();
    let rig = Rig::with(Script::hang_up(), Settings { resilience: ONCE, ..Settings::default() }).await;
    for end in 0..=body.len() {
        let script = Script::sse_bytes(body[..end].to_vec()).cut();
        rig.upstream.queue(script.clone());
        rig.upstream.queue(script);
        let (whole, streamed) = rig.both(&json!({"model": "m", "input": "Hello"})).await;
        if end < begun {
            // Nothing was said yet, so this is a refusal like any other.
            assert_eq!(error(&streamed).key(), error(&whole).key());
            assert_eq!((whole.status, error(&whole).code.as_str()), (502, "upstream_truncated"));
            continue;
        }
        let streamed = stream(&streamed);
        let status = streamed.response["status"].as_str().unwrap();
        let expected = if end >= finished { "completed" } else { "failed" };
        assert_eq!(status, expected, "byte {end}, streamed");
        if expected == "completed" {
            assert_eq!(object(&whole)["status"], "completed", "byte {end}");
        } else {
            assert_eq!((whole.status, error(&whole).code.as_str()), (502, "upstream_truncated"), "byte {end}");
        }
    }
}

/// The body ends in good order where it should not.
#[tokio::test]
async fn a_body_that_ends_at_any_byte() {
    let (body, begun, finished) = recorded();
    let rig = Rig::with(Script::hang_up(), Settings { resilience: ONCE, ..Settings::default() }).await;
    for end in 0..=body.len() {
        rig.upstream.queue(Script::sse_bytes(body[..end].to_vec()));
        let answer = rig.post(&json!({"model": "m", "input": "Hello", "stream": true})).await;
        // The last event may lack its blank line.
        if end + 2 < begun {
            let code = error(&answer).code;
            assert!(matches!(code.as_str(), "upstream_protocol" | "upstream_truncated"), "byte {end}: {code}");
            continue;
        }
        let status = stream(&answer).response["status"].as_str().unwrap().to_owned();
        let delivered = end + 2 >= finished;
        assert!(delivered || status == "failed", "byte {end}: {status}");
        assert!(end != finished || status == "completed", "byte {end}: {status}");
    }
}

/// A reset may overtake what was sent before it: nothing is promised but honesty.
#[tokio::test]
async fn a_connection_that_is_reset() {
    let (body, _, finished) = recorded();
    let rig = Rig::with(Script::hang_up(), Settings { resilience: ONCE, ..Settings::default() }).await;
    for end in (0..=body.len()).step_by(9) {
        rig.upstream.queue(Script::sse_bytes(body[..end].to_vec()).reset());
        let answer = rig.post(&json!({"model": "m", "input": "Hello", "stream": true})).await;
        if answer.status != 200 {
            let (status, code) = (answer.status, error(&answer).code);
            assert!(status == 502 && matches!(code.as_str(), "upstream_unreachable" | "upstream_truncated"), "{code}");
            continue;
        }
        let status = stream(&answer).response["status"].as_str().unwrap().to_owned();
        assert!(end >= finished || status == "failed", "byte {end}: {status}");
    }
}
