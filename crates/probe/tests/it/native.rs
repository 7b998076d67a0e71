//! Providers with APIs of their own beside the chat: a turn with a tool on each.

use serde_json::{Value, json};
use testkit::{Received, Script};

use crate::model::{self, no_quirk, no_twist, refuse};
use crate::rig::{limits, probe_with};

/// A Responses API that does everything right.
pub(crate) fn responses(body: &Value) -> Script {
    let answered = body["input"].to_string().contains("function_call_output");
    let call = json!({"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": "{\"city\":\"Paris\"}"});
    let text =
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "18 degrees."}]});
    let object = json!({
        "object": "response", "status": "completed", "output": [if answered { text } else { call }], "usage": {},
        "tools": [], "tool_choice": "auto", "instructions": null, "incomplete_details": null,
    });
    if body["stream"] != true {
        return Script::json(200, &object);
    }
    let created = json!({"type": "response.created", "response": {"object": "response"}});
    Script::event_stream().event(&created).event(&json!({"type": "response.completed", "response": object}))
}

/// A Messages API that does everything right.
fn messages(body: &Value) -> Script {
    let answered = body["messages"].to_string().contains("tool_result");
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Paris"}});
    let content = if answered { json!({"type": "text", "text": "18 degrees."}) } else { call };
    let message = json!({"type": "message", "role": "assistant", "content": [content], "stop_reason": "tool_use"});
    if body["stream"] != true {
        return Script::json(200, &message);
    }
    let start = json!({"type": "message_start", "message": message});
    Script::event_stream().event(&start).event(&json!({"type": "message_stop"}))
}

type Native = fn(&Received) -> Script;

/// What is observed of a provider whose endpoint of this name answers so, and the evidence.
async fn seen(path: &'static str, answer: Native) -> (String, String) {
    let probed = probe_with("openai-compatible", limits(), move |received| {
        if received.path.ends_with(path) { answer(received) } else { model::answer(received, no_quirk, no_twist) }
    })
    .await;
    let feature = if path == "/responses" { "native /responses" } else { "native /messages" };
    let finding = probed.finding(feature);
    assert_eq!(probed.changes(), [""; 0]);
    (finding.observed.text().to_owned(), finding.evidence.clone())
}

#[tokio::test]
async fn a_responses_api_is_judged_by_a_turn_with_a_tool() {
    let cases: [(Native, &str, &str); 6] = [
        (|received| responses(&received.json()), "yes", ""),
        (
            |_| Script::json(200, &json!({"object": "response", "status": "completed", "output": [], "usage": {}})),
            "yes, without calls, streams",
            "objects without tools, tool_choice, instructions, incomplete_details; no stream that ends as it should came",
        ),
        (
            |received| {
                let body = received.json();
                if body["stream"] == true { refuse(400, "streams are not supported") } else { responses(&body) }
            },
            "yes, without results of calls, streams",
            "the result of the call: 400: streams are not supported",
        ),
        (|_| Script::json(200, &json!({"choices": []})), "no", "no response object came"),
        (|_| refuse(404, "Not Found"), "no", "404: Not Found"),
        (|_| refuse(400, "this model has no responses"), "unclear", "400: this model has no responses"),
    ];
    for (answer, expected, evidence) in cases {
        assert_eq!(seen("/responses", answer).await, (expected.to_owned(), evidence.to_owned()));
    }
}

#[tokio::test]
async fn a_messages_api_is_judged_by_a_turn_with_a_tool_and_either_header() {
    fn strict(received: &Received) -> Script {
        let version = received.header("anthropic-version") == Some("2023-06-01");
        let tool = received.json()["tools"][0]["input_schema"].is_object();
        if version && tool { messages(&received.json()) } else { refuse(400, "no version, or no tool") }
    }
    let cases: [(Native, &str, &str); 7] = [
        (strict, "yes", "with the key as for chat"),
        (
            |received| match received.header("x-api-key") {
                Some("sk-very-secret-key") if received.header("authorization").is_none() => strict(received),
                _ => refuse(401, "x-api-key header is required"),
            },
            "yes",
            "with x-api-key",
        ),
        (|_| refuse(401, "not for you"), "unclear", "401: not for you"),
        (
            |received| {
                let forced = !received.json()["tool_choice"].is_null();
                let refusal = || refuse(400, "tool_choice: type any is not supported for this model");
                if forced { refusal() } else { strict(received) }
            },
            "yes",
            "with the key as for chat; tool_choice any: 400: tool_choice: type any is not supported for this model",
        ),
        (
            |received| {
                let empty = || Script::json(200, &json!({"type": "message", "content": []}));
                if received.json()["stream"] == true { empty() } else { strict(received) }
            },
            "yes, without streams",
            "with the key as for chat; no stream that ends with message_stop came",
        ),
        (|_| Script::json(200, &json!({"type": "message", "content": "?"})), "no", "no message came"),
        (|_| Script::body(404, "text/plain", "404"), "no", "404: "),
    ];
    for (answer, expected, evidence) in cases {
        let (seen, why) = seen("/messages", answer).await;
        assert_eq!(seen, expected, "{why}");
        assert!(why.starts_with(evidence), "{why}");
    }
}
