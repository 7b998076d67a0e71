//! `context_management`: a context that has grown beyond the client's threshold is compacted before the answer.

use serde_json::{Value, json};

use super::{Scribe, kinds, text_of, texts, turn_text, user};
use crate::rig::{self, Settings, object};
use crate::websocket::client::Client;

fn managed(input: &Value) -> Value {
    json!({"model": "m", "input": input,
        "context_management": [{"type": "compaction", "compact_threshold": 2000}]})
}

/// A history of so many turns, and a question.
fn history(turns: usize, question: &str) -> Vec<Value> {
    let mut items = vec![json!({"role": "developer", "content": "Be brief."})];
    for turn in 1..=turns {
        items.extend([user(&turn_text(turn)), json!({"role": "assistant", "content": "Noted."})]);
    }
    items.push(user(question));
    items
}

#[tokio::test]
async fn the_item_comes_before_the_answer_and_what_is_before_it_may_be_dropped() {
    let (rig, scribe) = Scribe::start(Settings::default()).await;
    let input = history(12, "What is port?");
    let (whole, streamed) = rig.both(&managed(&json!(input))).await;
    let stream = rig::stream(&streamed);
    assert_eq!(stream.types()[2..4], ["response.output_item.added", "response.output_item.done"]);
    for response in [object(&whole), stream.response] {
        assert_eq!((kinds(&response), text_of(&response)), (vec!["compaction", "message"], "It is 58213.".to_owned()));
        let output = response["output"].as_array().unwrap().clone();
        let question = user("What is code word?");
        // Dropped, kept, or never sent.
        let dropped = [output.clone(), vec![question.clone()]].concat();
        let kept = [input.clone(), output, vec![question]].concat();
        let chained = json!({"model": "m", "input": "What is code word?", "previous_response_id": response["id"]});
        let mut bodies = Vec::new();
        for request in [json!({"model": "m", "input": dropped}), json!({"model": "m", "input": kept}), chained] {
            assert_eq!(text_of(&object(&rig.post(&request).await)), "It is Zwiebelkuchen-4711.", "{request}");
            bodies.push(rig.upstream.requests().last().unwrap().json()["messages"].clone());
        }
        // The same in all three ways: the summary, the question that it was made for, the answer, the next question.
        assert_eq!(bodies[0], bodies[1]);
        assert_eq!(bodies[1], bodies[2]);
        let said = texts(&json!({"messages": bodies[0]}));
        assert_eq!((said.len(), said[0].as_str(), said[2].as_str()), (5, "Be brief.", "What is port?"), "{said:?}");
    }
    assert_eq!(scribe.summaries(), 2);
}

/// The bytes of the next turn extend those of this one.
#[tokio::test]
async fn what_is_sent_after_a_compaction_only_grows() {
    let (rig, _) = Scribe::start(Settings::default()).await;
    let mut last = object(&rig.post(&managed(&json!(history(12, "Go.")))).await)["id"].clone();
    let mut before = rig.upstream.requests().last().unwrap().body.clone();
    for question in ["What is port?", "What is code word?"] {
        let request = json!({"model": "m", "input": question, "previous_response_id": last});
        last = object(&rig.post(&request).await)["id"].clone();
        let body = rig.upstream.requests().last().unwrap().body.clone();
        assert!(body.starts_with(before.strip_suffix(b"]}").unwrap()), "{body:?}\n{before:?}");
        before = body;
    }
}

#[tokio::test]
async fn a_small_context_is_left_alone_and_bad_thresholds_are_refused() {
    let (rig, scribe) = Scribe::start(Settings::default()).await;
    assert_eq!(kinds(&object(&rig.post(&managed(&json!("Hello"))).await)), ["message"]);
    assert_eq!(scribe.summaries(), 0);
    for (value, code, param) in [
        (
            json!([{"type": "compaction", "compact_threshold": 999}]),
            "integer_below_min_value",
            "context_management[0].compact_threshold",
        ),
        (
            json!([{"type": "compaction", "compact_threshold": "x"}]),
            "invalid_type",
            "context_management[0].compact_threshold",
        ),
        (json!([{"type": "magic"}]), "invalid_value", "context_management[0].type"),
        (json!([{}]), "missing_required_parameter", "context_management[0].type"),
        (json!({}), "invalid_type", "context_management"),
    ] {
        let refused = rig::error(&rig.post(&json!({"model": "m", "input": "x", "context_management": value})).await);
        assert_eq!(refused.key(), (400, "invalid_request_error", code, Some(param)), "{value}");
    }
    let empty = json!({"model": "m", "input": "x", "context_management": [{"type": "compaction"}]});
    object(&rig.post(&empty).await);
}

/// In the middle of a tool's loop: the call and its output stay together, after the summary.
#[tokio::test]
async fn the_newest_exchange_stays_as_it_is() {
    let (rig, _) = Scribe::start(Settings::default()).await;
    let mut input = history(12, "Look it up.");
    input.push(json!({"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{\"at\":1}"}));
    input.push(json!({"type": "function_call_output", "call_id": "c1", "output": "What is port?"}));
    let response = object(&rig.post(&managed(&json!(input))).await);
    assert_eq!(kinds(&response), ["compaction", "message"]);
    let messages = rig.upstream.requests().last().unwrap().json()["messages"].clone();
    let roles: Vec<&str> =
        messages.as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "user", "assistant", "tool"], "{messages}");
    assert_eq!(text_of(&response), "It is 58213.");
}

#[tokio::test]
async fn a_foreign_item_is_noted_and_nothing_else() {
    let (rig, _) = Scribe::start(Settings::default()).await;
    let input = json!([{"type": "compaction", "encrypted_content": "gAAAAABfernet"}, user("FACT: a=1\nWhat is a?")]);
    let answer = rig.post(&json!({"model": "m", "input": input})).await;
    assert_eq!(answer.header("x-godex-compat"), Some("input[0]=ignored"));
    assert_eq!(text_of(&object(&answer)), "It is 1.");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_websocket_gets_the_same() {
    let (rig, _) = Scribe::start(Settings::default()).await;
    let mut client = Client::connect(&rig).await;
    let mut message = managed(&json!(history(12, "What is port?")));
    message["type"] = json!("response.create");
    message["store"] = json!(false);
    let stream = client.respond(&message).await;
    assert_eq!((kinds(&stream.response), stream.text.as_str()), (vec!["compaction", "message"], "It is 58213."));
    let next = json!({"type": "response.create", "model": "m", "input": "What is code word?", "store": false,
        "previous_response_id": stream.response["id"]});
    assert_eq!(client.respond(&next).await.text, "It is Zwiebelkuchen-4711.");
    assert_eq!(texts(&rig.upstream.requests().last().unwrap().json()).len(), 5);
}

/// The question and the newest output are sent, whatever they weigh: in part, if there is no room for all of them.
#[tokio::test]
async fn what_is_asked_is_shortened_and_never_gone() {
    let (rig, _) = Scribe::start(Settings::default()).await;
    let long = "There is much to be said. ".repeat(400);
    let asked = user(&format!("FACT: early=1\n{long}\nWhat is port?"));
    let call = json!({"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"});
    let output = json!({"type": "function_call_output", "call_id": "c1", "output": format!("{long}\nWhat is port?")});
    for (items, roles) in [
        (vec![asked.clone()], "system, user, user"),
        (vec![user("Look."), call.clone(), output.clone()], "system, user, user, assistant, tool"),
        (vec![asked, call, output], "system, user, user, assistant, tool"),
    ] {
        let mut input = history(12, "Go.");
        input.pop();
        input.extend(items);
        let answer = rig.post(&managed(&json!(input))).await;
        assert_eq!(answer.header("x-godex-compat"), Some("input=degraded"));
        let response = object(&answer);
        assert_eq!((kinds(&response), text_of(&response)), (vec!["compaction", "message"], "It is 58213.".to_owned()));
        let body = rig.upstream.requests().last().unwrap().json();
        let sent: Vec<&str> =
            body["messages"].as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
        assert_eq!(sent.join(", "), roles);
        assert!(body.to_string().len() / 4 < 2000, "{body}");
        assert!(body.to_string().contains("bytes left out"), "{body}");
    }
}
