//! Compaction that a client asks for: the endpoint, and the trigger at the end of an input.

use http::Method;
use serde_json::{Value, json};
use testkit::{Answer, Schemas, Script};

use super::{PROMPT, Scribe, kinds, text_of, texts, user};
use crate::chat;
use crate::rig::{self, Rig, Settings, object};
use crate::websocket::client::Client;

async fn compact(rig: &Rig, body: &Value) -> Answer {
    rig.send(Method::POST, "/v1/responses/compact", body).await
}

/// The object of a compaction, checked.
fn compaction(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    let object = answer.json();
    let problems = Schemas::if_present().map(|schemas| schemas.openai("CompactResource", &object)).unwrap_or_default();
    assert_eq!(problems, Vec::<String>::new(), "{object}");
    assert_eq!(object["object"], "response.compaction");
    let output = object["output"].as_array().unwrap();
    let last = output.last().unwrap();
    assert_eq!(last["type"], "compaction");
    assert!(last["id"].as_str().unwrap().starts_with("cmp_"));
    assert!(output[..output.len() - 1].iter().all(|item| item["role"] == "user"), "{object}");
    object
}

#[tokio::test]
async fn a_conversation_is_compacted_and_goes_on_in_a_new_chain() {
    let (rig, _) = Scribe::start(Settings::default()).await;
    let input = json!([
        {"role": "developer", "content": "Be brief."}, user("FACT: port=58213"), {"role": "assistant", "content": "Noted."},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "FACT: host=example.org"},
        {"role": "user", "content": "Go on."}]);
    let object =
        compaction(&compact(&rig, &json!({"model": "m", "input": input, "instructions": "You are a clerk."})).await);
    assert_eq!(kinds(&object), ["message", "message", "compaction"]);
    assert_eq!(object["output"][1]["content"][0]["text"], "Go on.");
    assert!(object["usage"]["total_tokens"].as_u64().unwrap() > 0);
    let asked = rig.upstream.requests()[0].json();
    let said = texts(&asked);
    assert!(said.last().unwrap().contains(PROMPT));
    assert!(said[0].contains("clerk") && !asked.to_string().contains("hm\""), "{asked}");
    // As the input of a new chain, over HTTP and over a WebSocket.
    let mut next = object["output"].clone();
    next.as_array_mut().unwrap().push(user("What is host?"));
    let response = rig::object(&rig.post(&json!({"model": "m", "input": next})).await);
    assert_eq!(text_of(&response), "It is example.org.");
    let continued = json!({"model": "m", "input": "What is port?", "previous_response_id": response["id"]});
    assert_eq!(text_of(&rig::object(&rig.post(&continued).await)), "It is 58213.");
    let listed =
        rig.get(&format!("/v1/responses/{}/input_items?order=asc", response["id"].as_str().unwrap())).await.json();
    assert_eq!(listed["data"][2]["type"], "compaction");
    let mut client = Client::connect(&rig).await;
    let message = json!({"type": "response.create", "model": "m", "input": next, "store": false});
    assert_eq!(client.respond(&message).await.text, "It is example.org.");
    // It is not a response.
    let unknown = json!({"model": "m", "input": "x", "previous_response_id": object["id"]});
    assert_eq!(rig::error(&rig.post(&unknown).await).code, "previous_response_not_found");
}

#[tokio::test]
async fn what_is_stored_can_be_compacted() {
    let (rig, _) = Scribe::start(Settings::default()).await;
    let first = object(&rig.post(&json!({"model": "m", "input": "FACT: a=1"})).await);
    let by_chain = json!({"model": "m", "previous_response_id": first["id"]});
    let conversation = rig.send(Method::POST, "/v1/conversations", &json!({"items": [user("FACT: a=1")]})).await.json();
    let by_conversation = json!({"model": "m", "conversation": conversation["id"]});
    for request in [by_chain, by_conversation] {
        let mut next = compaction(&compact(&rig, &request).await)["output"].clone();
        next.as_array_mut().unwrap().push(user("What is a?"));
        assert_eq!(text_of(&object(&rig.post(&json!({"model": "m", "input": next})).await)), "It is 1.");
    }
    // Nobody holds the conversation.
    let request = json!({"model": "m", "input": "What is a?", "conversation": conversation["id"]});
    assert_eq!(text_of(&object(&rig.post(&request).await)), "It is 1.");
}

#[tokio::test]
async fn what_is_wrong_is_said_as_on_create() {
    let (rig, _) = Scribe::start(Settings::default()).await;
    let trigger = json!({"type": "compaction_trigger"});
    for (body, expected) in [
        (json!({"input": "x"}), (400, "invalid_request_error", "missing_required_parameter", Some("model"))),
        (json!({"model": "m"}), (400, "invalid_request_error", "empty_array", Some("input"))),
        (json!({"model": "m", "input": []}), (400, "invalid_request_error", "empty_array", Some("input"))),
        (json!({"model": "up/", "input": "x"}), (404, "invalid_request_error", "model_not_found", Some("model"))),
        (
            json!({"model": "m", "input": "x", "previous_response_id": "resp_no"}),
            (400, "invalid_request_error", "previous_response_not_found", Some("previous_response_id")),
        ),
        (
            json!({"model": "m", "input": [trigger, user("x")]}),
            (400, "invalid_request_error", "invalid_value", Some("input[0]")),
        ),
    ] {
        assert_eq!(rig::error(&compact(&rig, &body).await).key(), expected, "{body}");
        if body["input"] != json!([]) && body.get("input").is_some() {
            assert_eq!(rig::error(&rig.post(&body).await).key(), expected, "{body}");
        }
    }
    assert!(rig.upstream.requests().is_empty());
    let noted = compact(&rig, &json!({"model": "m", "input": "FACT: a=1", "temperature": 1, "colour": "red"})).await;
    assert_eq!(noted.header("x-godex-compat"), Some("temperature=ignored, colour=ignored"));
    rig.upstream.queue(Script::json(400, &json!({"error": {"message": "no"}})));
    let refused = rig::error(&compact(&rig, &json!({"model": "m", "input": "x"})).await);
    assert_eq!((refused.status, refused.domain.as_str()), (400, "upstream_invalid_request"));
}

/// No summary is a failure, never an empty one.
#[tokio::test]
async fn an_answer_without_words_is_no_summary() {
    let (rig, _) = Scribe::start(Settings::default()).await;
    let silent = || {
        let mut completion = chat::completion();
        completion["choices"][0]["message"]["content"] = json!(" ");
        Script::json(200, &completion)
    };
    for _ in 0..8 {
        rig.upstream.queue(silent());
    }
    let refused = rig::error(&compact(&rig, &json!({"model": "m", "input": "x"})).await);
    assert!(refused.status >= 500 && refused.domain == "upstream_empty", "{refused:?}");
}

#[tokio::test]
async fn a_trigger_gives_one_compaction_item_and_nothing_else() {
    let (rig, scribe) = Scribe::start(Settings::default()).await;
    let tools = json!([{"type": "function", "name": "exec", "parameters": {"type": "object", "properties": {}}}]);
    let request = json!({"model": "m", "instructions": "Be brief.", "tools": tools, "store": false,
        "input": [user("FACT: a=1"), {"type": "compaction_trigger"}]});
    let (whole, streamed) = rig.both(&request).await;
    let stream = rig::stream(&streamed);
    assert_eq!(
        stream.types(),
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.output_item.done",
            "response.completed"
        ]
    );
    for response in [object(&whole), stream.response] {
        assert_eq!(kinds(&response), ["compaction"]);
        assert!(response["usage"]["input_tokens"].as_u64().unwrap() > 0, "{response}");
        let next = json!([user("x"), response["output"][0], user("What is a?")]);
        let next = object(&rig.post(&json!({"model": "m", "input": next})).await);
        assert_eq!(text_of(&next), "It is 1.");
    }
    // What is before such an item stays.
    let said = texts(&rig.upstream.requests().last().unwrap().json());
    assert_eq!((said[0].as_str(), said.len()), ("x", 3), "{said:?}");
    assert_eq!(scribe.summaries(), 2);
    // Of nothing there is no summary.
    let nothing = json!({"model": "m", "input": [{"type": "compaction_trigger"}]});
    let refused = rig::error(&rig.post(&nothing).await);
    assert_eq!(refused.key(), (400, "invalid_request_error", "empty_array", Some("input")));
}

/// Where the store has what was before, the item takes its place.
#[tokio::test]
async fn a_trigger_at_the_end_of_a_chain_takes_the_place_of_what_was_stored() {
    let (rig, _) = Scribe::start(Settings::default()).await;
    let first = object(
        &rig.post(&json!({"model": "m", "input": [{"role": "system", "content": "Be brief."}, user("FACT: a=1")]}))
            .await,
    );
    let trigger = json!([{"type": "compaction_trigger"}]);
    let compacted =
        object(&rig.post(&json!({"model": "m", "input": trigger, "previous_response_id": first["id"]})).await);
    assert_eq!(kinds(&compacted), ["compaction"]);
    let last = json!({"model": "m", "input": "What is a?", "previous_response_id": compacted["id"]});
    assert_eq!(text_of(&object(&rig.post(&last).await)), "It is 1.");
    let said = texts(&rig.upstream.requests().last().unwrap().json());
    assert!(said.iter().all(|text| !text.contains("Noted.")), "{said:?}");
    assert_eq!(said[0], "Be brief.");
}

/// The same on a connection that remembers what was before, and where a client goes on from a history of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trigger_on_a_websocket_takes_the_place_of_what_it_remembers() {
    let (rig, _) = Scribe::start(Settings::default()).await;
    for store in [false, true] {
        let mut client = Client::connect(&rig).await;
        let create = |input: Value, previous: &Value| {
            json!({"type": "response.create", "model": "m", "store": store, "input": input,
                "previous_response_id": previous})
        };
        let first = client.respond(&create(json!([user("FACT: a=1")]), &Value::Null)).await.response;
        let trigger = json!([{"type": "compaction_trigger"}]);
        let compacted = client.respond(&create(trigger, &first["id"])).await.response;
        assert_eq!(kinds(&compacted), ["compaction"]);
        let last = client.respond(&create(json!([user("What is a?")]), &compacted["id"])).await;
        assert_eq!(last.text, "It is 1.");
        let said = texts(&rig.upstream.requests().last().unwrap().json());
        assert_eq!(said.len(), 2, "{store}: {said:?}");
        // What a client keeps in front of the item stays, on this turn and on the next one.
        if !store {
            let own = json!([user("kept"), compacted["output"][0], user("What is a?")]);
            let own = client.respond(&create(own, &Value::Null)).await;
            let next = client.respond(&create(json!([user("What is a?")]), &own.response["id"])).await;
            assert_eq!((own.text.as_str(), next.text.as_str()), ("It is 1.", "It is 1."));
            let said = texts(&rig.upstream.requests().last().unwrap().json());
            assert_eq!((said.len(), said[0].as_str()), (5, "kept"), "{said:?}");
        }
    }
}

/// What was compacted before goes into the next summary, and is nothing that the user said.
#[tokio::test]
async fn compacting_again_leaves_one_summary_and_the_words_of_the_user() {
    let (rig, _) = Scribe::start(Settings::default()).await;
    let first = compaction(&compact(&rig, &json!({"model": "m", "input": "FACT: a=1"})).await);
    let lone = json!({"model": "m", "input": [first["output"][1]]});
    assert_eq!(kinds(&compaction(&compact(&rig, &lone).await)), ["compaction"]);
    let mut output = first["output"].as_array().unwrap().clone();
    for turn in 0..4 {
        output.push(user(&format!("more {turn}")));
        output = compaction(&compact(&rig, &json!({"model": "m", "input": output})).await)["output"]
            .as_array()
            .unwrap()
            .clone();
    }
    let words: Vec<&str> = output.iter().filter_map(|item| item["content"][0]["text"].as_str()).collect();
    assert_eq!(words, ["FACT: a=1", "more 0", "more 1", "more 2", "more 3"]);
    assert_eq!(output.len(), 6);
    // The summary alone still knows what the first one knew; also by way of a chain.
    let alone = json!([output[5], user("What is a?")]);
    let answer = object(&rig.post(&json!({"model": "m", "input": alone})).await);
    assert_eq!(text_of(&answer), "It is 1.");
    let chained = compaction(&compact(&rig, &json!({"model": "m", "previous_response_id": answer["id"]})).await);
    assert_eq!(kinds(&chained), ["message", "compaction"]);
}
