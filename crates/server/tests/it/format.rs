//! Structured output that never lies: what is not in the format that was asked for is mended, asked for again, or
//! failed, and never passed on as if it were.

use bridge::Repair;
use serde_json::{Value, json};
use testkit::Script;

use crate::chat;
use crate::rig::{Rig, Settings, error, object, stream};

fn completion(text: &str) -> Script {
    let mut completion = chat::completion();
    completion["choices"][0]["message"]["content"] = json!(text);
    Script::json(200, &completion)
}

fn request() -> Value {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let format = json!({"type": "json_schema", "name": "number", "schema": schema, "strict": true});
    json!({"model": "m", "input": "A number?", "text": {"format": format}})
}

async fn rig(answer: Script, tweak: fn(&mut server::config::Config)) -> Rig {
    Rig::with(answer, Settings { tweak: Some(tweak), ..Settings::default() }).await
}

#[tokio::test]
async fn answers_are_checked_and_mended() {
    for (answer, expected) in [
        ("{\"n\": 7}", Some("{\"n\": 7}")),
        ("```json\n{\"n\": 7}\n```", Some("{\"n\": 7}")),
        ("{\"n\": \"seven\"}", None),
        ("seven", None),
    ] {
        let rig = Rig::start(completion(answer)).await;
        let got = rig.post(&request()).await;
        match expected {
            Some(text) => assert_eq!(object(&got)["output"][0]["content"][0]["text"], text, "{answer}"),
            None => assert_eq!(error(&got).key(), (502, "server_error", "invalid_output_format", None), "{answer}"),
        }
    }
}

#[tokio::test]
async fn a_streamed_answer_in_the_wrong_format_fails() {
    let rig = Rig::start(Script::sse(&[chat::text("{\"n\": "), chat::text("\"x\"}"), chat::stop()])).await;
    let mut body = request();
    body["stream"] = json!(true);
    let stream = stream(&rig.post(&body).await);
    assert_eq!(stream.response["status"], "failed");
    assert_eq!(stream.response["error"]["code"], "invalid_output_format");
    assert!(stream.response["error"]["message"].as_str().unwrap().contains("/n"), "{}", stream.response["error"]);
}

#[tokio::test]
async fn off_mends_nothing() {
    let rig = rig(completion("```json\n{\"n\": 7}\n```"), |config| config.output.repair = Repair::Off).await;
    assert_eq!(error(&rig.post(&request()).await).code, "invalid_output_format");
}

#[tokio::test]
async fn reask_asks_once_more_and_adds_the_usage_up() {
    let rig = rig(completion("still no number"), |config| config.output.repair = Repair::Reask).await;
    rig.upstream.queue(completion("seven"));
    rig.upstream.queue(completion("{\"n\": 7}"));
    let answer = rig.post(&request()).await;
    let response = object(&answer);
    assert_eq!(response["output"][0]["content"][0]["text"], "{\"n\": 7}");
    assert_eq!(response["usage"]["total_tokens"], 14);
    assert!(answer.header("x-godex-compat").unwrap().contains("text.format"));
    let asked = rig.upstream.requests();
    assert_eq!(asked.len(), 2);
    let messages = asked[1].json()["messages"].clone();
    assert!(messages.to_string().contains("seven"), "{messages}");

    // And no more than once.
    assert_eq!(error(&rig.post(&request()).await).code, "invalid_output_format");
    assert_eq!(rig.upstream.requests().len(), 4);
}
