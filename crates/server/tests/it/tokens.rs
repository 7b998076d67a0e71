//! `POST /v1/responses/input_tokens`: the input is planned and counted, nobody is asked; and what providers report makes
//! later estimates better.

use http::Method;
use serde_json::{Value, json};
use testkit::{Answer, Script, Upstream};

use crate::chat;
use crate::rig::{Rig, Settings, error};

async fn count(rig: &Rig, body: &Value) -> Answer {
    rig.send(Method::POST, "/v1/responses/input_tokens", body).await
}

fn tokens(answer: &Answer) -> u64 {
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    let body = answer.json();
    assert_eq!(body["object"], "response.input_tokens", "{body}");
    assert_eq!(body.as_object().map(serde_json::Map::len), Some(2), "{body}");
    body["input_tokens"].as_u64().unwrap()
}

#[tokio::test]
async fn nothing_is_required_and_everything_counts() {
    let rig = Rig::start(chat::answer(false)).await;
    assert!((1..20).contains(&tokens(&count(&rig, &json!({})).await)));
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let tool = json!({"type": "function", "name": "get_weather", "description": "The weather.", "parameters": schema});
    let long = "A sentence that goes on. ".repeat(40);
    let mut before = 1;
    for more in [
        json!({"input": "Hi"}),
        json!({"input": "Hi there, how are you today?"}),
        json!({"input": long}),
        json!({"input": long, "instructions": "Be brief."}),
        json!({"input": long, "instructions": "Be brief.", "tools": [tool.clone()]}),
        json!({"model": "m", "input": [{"role": "user", "content": long}], "instructions": "Be brief.", "tools": [tool], "reasoning": {"effort": "low"},
            "tool_choice": "auto", "parallel_tool_calls": true, "truncation": "auto", "personality": "friendly",
            "text": {"verbosity": "low"}, "conversation": null}),
    ] {
        let answer = count(&rig, &more).await;
        let now = tokens(&answer);
        assert!(now >= before, "{more}: {now} after {before}");
        assert!(answer.header("x-godex-compat").is_some_and(|notes| notes.contains("input_tokens=degraded")));
        before = now;
    }
    assert!((200..500).contains(&before), "{before}");
    assert_eq!(rig.upstream.requests().len(), 0);
}

#[cfg(feature = "tokenizer")]
#[tokio::test]
async fn with_the_models_tokenizer_nothing_is_estimated() {
    let rig = Rig::with(chat::answer(false), Settings { spec: "openai", ..Settings::default() }).await;
    for (body, expected) in [
        (json!({"model": "gpt-4o", "input": "Say hello"}), 9),
        (json!({"model": "gpt-4-0613", "input": "Say hello"}), 9),
        (json!({"model": "gpt-5", "input": [{"role": "user", "content": "What is the capital of France?"}]}), 14),
    ] {
        let answer = count(&rig, &body).await;
        assert_eq!((tokens(&answer), answer.header("x-godex-compat")), (expected, None), "{body}");
    }
    let image = json!({"model": "gpt-4o", "input": [{"role": "user", "content": [
        {"type": "input_text", "text": "What is it?"}, {"type": "input_image", "image_url": "https://x/y.png"}]}]});
    let answer = count(&rig, &image).await;
    assert!(tokens(&answer) > 700);
    assert_eq!(answer.header("x-godex-compat"), Some("input_tokens=degraded"));
}

#[tokio::test]
async fn what_a_request_continues_counts_with_it() {
    let rig = Rig::start(chat::answer(false)).await;
    let long = "The facts of the matter, in many words. ".repeat(30);
    let stored = rig.post(&json!({"model": "m", "input": long})).await.json();
    let alone = tokens(&count(&rig, &json!({"input": "And now?"})).await);
    let chained = json!({"input": "And now?", "previous_response_id": stored["id"]});
    assert!(tokens(&count(&rig, &chained).await) > alone + 200);
    let items = json!([{"type": "message", "role": "user", "content": long}]);
    let conversation = rig.send(Method::POST, "/v1/conversations", &json!({"items": items})).await.json();
    let inside = json!({"input": "And now?", "conversation": conversation["id"]});
    let counted = tokens(&count(&rig, &inside).await);
    assert!(counted > alone + 200);
    // It is no turn of the conversation, and holds nobody up.
    assert_eq!(tokens(&count(&rig, &inside).await), counted);
    assert_eq!(rig.post(&json!({"model": "m", "input": "Hi", "conversation": conversation["id"]})).await.status, 200);
}

#[tokio::test]
async fn what_is_wrong_is_refused_as_elsewhere() {
    let rig = Rig::start(chat::answer(false)).await;
    let unknown = format!("resp_{}", "0".repeat(48));
    for (body, expected) in [
        (json!({"model": 5}), (400, "invalid_request_error", "invalid_type", Some("model"))),
        (
            json!({"input": [{"role": "critic", "content": "x"}]}),
            (400, "invalid_request_error", "invalid_value", Some("input[0].role")),
        ),
        (
            json!({"input": "x", "tools": [{"type": "function"}]}),
            (400, "invalid_request_error", "missing_required_parameter", Some("tools[0].name")),
        ),
        (
            json!({"previous_response_id": unknown}),
            (400, "invalid_request_error", "previous_response_not_found", Some("previous_response_id")),
        ),
        (
            json!({"conversation": "conv_1", "previous_response_id": "resp_1"}),
            (400, "invalid_request_error", "mutually_exclusive_parameters", None),
        ),
    ] {
        let answer = count(&rig, &body).await;
        let error = error(&answer);
        assert_eq!((error.status, &*error.kind), (expected.0, expected.1), "{body}: {error:?}");
        assert_eq!((&*error.code, error.param.as_deref()), (expected.2, expected.3), "{body}: {error:?}");
    }
    let plain = rig.client.request(Method::POST, &rig.url("/v1/responses/input_tokens"), &[], "{").await.unwrap();
    assert!((400..=415).contains(&plain.status));
}

#[tokio::test]
async fn estimates_follow_what_the_provider_reports() {
    let upstream = Upstream::start_with(|request| {
        // Its chat form adds fifty tokens to everything.
        let words = request.json()["messages"].to_string().split_whitespace().count();
        let mut completion = chat::completion();
        completion["usage"] =
            json!({"prompt_tokens": 50 + words * 2, "completion_tokens": 1, "total_tokens": 51 + words * 2});
        Script::json(200, &completion)
    });
    let rig = Rig::before(upstream.await.unwrap(), Settings::default()).await;
    let text = |words: usize| json!({"model": "m", "input": "word ".repeat(words), "store": false});
    let before = tokens(&count(&rig, &text(100)).await);
    for words in [10, 200, 40, 400, 80, 20, 300, 150] {
        assert_eq!(rig.post(&text(words)).await.status, 200);
    }
    let after = tokens(&count(&rig, &text(100)).await);
    assert!(before < 130 && (225..275).contains(&after), "{before} {after}");
    let of_another = json!({"model": "other", "input": "word ".repeat(100)});
    assert_eq!(tokens(&count(&rig, &of_another).await), before);
}
