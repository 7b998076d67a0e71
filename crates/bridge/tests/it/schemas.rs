//! Every object and every event that a response writes is valid against both published schemas.

use bridge::End;
use serde_json::json;

use crate::run::{chunks, delta, finish};

/// What is wrong with an event by either schema. The codes that clients act on are more than OpenAI's schema
/// lists; its own service sends them, too.
pub(crate) fn problems(schemas: &testkit::Schemas, event: &serde_json::Value) -> Vec<String> {
    const UNLISTED: &[&str] = &[
        "context_length_exceeded",
        "insufficient_quota",
        "invalid_output_format",
        "model_not_found",
        "server_is_overloaded",
    ];
    let mut event = event.clone();
    if let Some(code) = event.pointer_mut("/response/error/code")
        && code.as_str().is_some_and(|code| UNLISTED.contains(&code))
    {
        *code = json!("server_error");
    }
    schemas.event(&event)
}

#[test]
fn every_event_is_valid() {
    let Some(schemas) = testkit::Schemas::load() else { return };
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}).to_string();
    let call = json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]});
    for given in [
        vec![delta(&json!({"content": "a"})), delta(&json!({"content": "b"})), finish("stop"), usage.clone()],
        vec![
            delta(&json!({"reasoning_content": "hm"})),
            delta(&json!({"content": "b"})),
            finish("length"),
            usage.clone(),
        ],
        vec![delta(&json!({"content": "a"})), delta(&json!({"refusal": "no"})), finish("stop")],
        vec![delta(&call), finish("tool_calls"), usage],
        vec![delta(&json!({"content": "a"}))],
        vec![],
    ] {
        let stream = testkit::grammar::check(&chunks(&given, End::Eof)).unwrap();
        for (name, event) in &stream.events {
            assert_eq!(problems(&schemas, event), Vec::<String>::new(), "{name}: {event}");
        }
        assert_eq!(schemas.response(&stream.response), Vec::<String>::new());
    }
}
