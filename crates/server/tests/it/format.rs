//! Structured output that never lies: what is not in the format that was asked for is mended, asked for again, or
//! failed, and never passed on as if it were.

use bridge::{Checks, Repair};
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
async fn what_is_checked_can_be_said() {
    for (strict, check, passes) in [
        (true, Checks::Strict, false),
        (true, Checks::Off, true),
        (false, Checks::Strict, true),
        (false, Checks::Always, false),
    ] {
        let tweak: fn(&mut server::config::Config) = match check {
            Checks::Strict => |config| config.output.check = Checks::Strict,
            Checks::Always => |config| config.output.check = Checks::Always,
            Checks::Off => |config| config.output.check = Checks::Off,
        };
        let rig = rig(completion("{\"n\": \"seven\"}"), tweak).await;
        let mut body = request();
        body["text"]["format"]["strict"] = json!(strict);
        assert_eq!(rig.post(&body).await.status == 200, passes, "{strict} {check:?}");
    }
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

/// Every level fits two branches, so a validator that follows each by itself does 2^26 times the work, and one that
/// tells of every branch needs the memory as well.
#[tokio::test]
async fn a_schema_that_refers_to_itself_twice_costs_little() {
    let items = json!({"type": "array", "items": {"$ref": "#"}});
    let schema = json!({"anyOf": [items, items, {"type": "integer"}]});
    let mut body = request();
    body["text"]["format"]["schema"] = schema;
    let nested = |leaf: &str| "[".repeat(26) + leaf + &"]".repeat(26);
    let rig = Rig::start(completion(&nested("1"))).await;
    assert_eq!(object(&rig.post(&body).await)["output"][0]["content"][0]["text"], nested("1"));
    let rig = Rig::start(completion(&nested("\"x\""))).await;
    let (whole, streamed) = rig.both(&body).await;
    let error = error(&whole);
    assert_eq!(error.key(), (502, "server_error", "invalid_output_format", None));
    assert!(error.message.contains(&"/0".repeat(26)) && error.message.len() < 600, "{}", error.message);
    assert_eq!(stream(&streamed).response["error"]["code"], "invalid_output_format");
}

/// A tree as a data class describes it, with one wrong leaf.
#[tokio::test]
async fn one_wrong_leaf_of_a_tree_is_named() {
    let side = json!({"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]});
    let node = json!({"type": "object", "properties": {"value": {"type": "integer"}, "left": side, "right": side},
        "required": ["value", "left", "right"], "additionalProperties": false});
    let mut body = request();
    body["text"]["format"]["schema"] = json!({"$ref": "#/$defs/Node", "$defs": {"Node": node}});
    let mut tree = json!({"value": "wrong", "left": null, "right": null});
    for depth in 0..20 {
        tree = json!({"value": depth, "left": tree, "right": null});
    }
    let rig = Rig::start(completion(&tree.to_string())).await;
    let error = error(&rig.post(&body).await);
    assert!(error.message.contains(&("/left".repeat(20) + "/value")) && error.message.len() < 600, "{}", error.message);
}

/// Only `strict: true` promises a fit.
#[tokio::test]
async fn without_strict_a_misfit_is_delivered_with_a_note() {
    for strict in [json!(false), Value::Null] {
        for answer in ["{\"n\": \"seven\"}", "seven"] {
            let mut body = request();
            body["text"]["format"]["strict"] = strict.clone();
            let rig = Rig::start(Script::sse(&[chat::text(answer), chat::stop()])).await;
            rig.upstream.queue(completion(answer));
            let (whole, streamed) = rig.both(&body).await;
            assert_eq!(object(&whole)["output"][0]["content"][0]["text"], answer);
            assert!(whole.header("x-godex-compat").unwrap().contains("text.format=degraded"));
            assert_eq!(stream(&streamed).response["status"], "completed", "{answer}");
        }
    }
}
