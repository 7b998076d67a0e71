//! Requests that are refused, each with its status, its error object and its domain code.

use http::Method;
use serde_json::{Value, json};
use testkit::Answer;

use crate::chat;
use crate::rig::{Rig, error, object};

const INVALID: &str = "invalid_request_error";

type Headers = &'static [(&'static str, &'static str)];

const UPGRADE: Headers = &[("connection", "upgrade"), ("upgrade", "websocket")];

/// A valid request with one member set.
fn with(name: &str, value: Value) -> Value {
    let mut body = json!({"model": "m", "input": "Hello"});
    body[name] = value;
    body
}

fn part(part: &Value) -> Value {
    with("input", json!([{"role": "user", "content": [{"type": "input_text", "text": "a"}, part]}]))
}

#[tokio::test]
async fn bodies_that_are_no_request() {
    let rig = Rig::start(chat::answer(false)).await;
    let deep = format!("{{\"model\":\"m\",\"input\":{}1{}}}", "[".repeat(200_000), "]".repeat(200_000));
    let cases: [(&str, &[u8], &str, Option<&str>); 12] = [
        ("empty", b"", "invalid_json", None),
        ("blank", b" \n ", "invalid_json", None),
        ("not JSON", b"hello", "invalid_json", None),
        ("broken JSON", b"{\"model\": \"m\"", "invalid_json", None),
        ("trailing text", b"{} {}", "invalid_json", None),
        (
            "a number out of range",
            b"{\"model\":\"m\",\"input\":\"x\",\"temperature\":1e999}",
            "decimal_above_max_value",
            Some("temperature"),
        ),
        (
            "an integer that no machine counts to",
            b"{\"model\":\"m\",\"input\":\"x\",\"max_output_tokens\":99999999999999999999}",
            "integer_above_max_value",
            Some("max_output_tokens"),
        ),
        ("an array", b"[]", "invalid_body", None),
        ("a string", b"\"x\"", "invalid_body", None),
        ("null", b"null", "invalid_body", None),
        ("not UTF-8", b"{\"model\":\"\xff\"}", "invalid_utf8", None),
        ("too deep", deep.as_bytes(), "invalid_json", None),
    ];
    for (name, body, code, param) in cases {
        let headers = [("content-type", "application/json")];
        let answer =
            rig.client.request(Method::POST, &rig.url("/v1/responses"), &headers, body.to_vec()).await.unwrap();
        let error = error(&answer);
        assert_eq!(error.key(), (400, INVALID, code, param), "{name}: {error:?}");
        assert_eq!(error.domain, code, "{name}");
    }
    assert_eq!(rig.upstream.requests().len(), 0);
}

#[tokio::test]
async fn fields_that_do_not_fit() {
    let rig = Rig::start(chat::answer(false)).await;
    let pairs: Value = (0..17).map(|n| (format!("k{n}"), json!("v"))).collect::<serde_json::Map<_, _>>().into();
    let long_value = json!({"k": "v".repeat(513)});
    for (body, code, param) in [
        (json!({"input": "x"}), "missing_required_parameter", "model"),
        (with("model", json!(null)), "missing_required_parameter", "model"),
        (with("model", json!("")), "missing_required_parameter", "model"),
        (with("model", json!("  ")), "missing_required_parameter", "model"),
        (with("model", json!(7)), "invalid_type", "model"),
        (with("model", json!("m".repeat(513))), "string_above_max_length", "model"),
        (with("model", json!(format!("test/{}", "ö".repeat(300)))), "string_above_max_length", "model"),
        (json!({"model": "m"}), "missing_required_parameter", "input"),
        (with("input", json!(7)), "invalid_type", "input"),
        (with("input", json!({})), "invalid_type", "input"),
        (with("input", json!([])), "empty_array", "input"),
        (with("input", json!(["x"])), "invalid_type", "input[0]"),
        (with("input", json!([{"role": "user", "content": 5}])), "invalid_type", "input[0].content"),
        (with("input", json!([{"role": 5, "content": "x"}])), "invalid_type", "input[0].role"),
        (with("input", json!([{"role": "robot", "content": "x"}])), "invalid_value", "input[0].role"),
        (with("input", json!([{"role": "user"}])), "missing_required_parameter", "input[0].content"),
        (part(&json!({"type": 5})), "invalid_type", "input[0].content[1].type"),
        (part(&json!({"type": "input_text", "text": [1]})), "invalid_type", "input[0].content[1].text"),
        (part(&json!("x")), "invalid_type", "input[0].content[1]"),
        (with("tools", json!({})), "invalid_type", "tools"),
        (with("tools", json!([{"type": "function", "name": 1}])), "invalid_type", "tools[0].name"),
        (with("tools", json!([{"type": "function"}])), "missing_required_parameter", "tools[0].name"),
        (with("tool_choice", json!("maybe")), "invalid_value", "tool_choice"),
        (with("text", json!({"format": {"type": "xml"}})), "invalid_value", "text.format.type"),
        (with("text", json!({"format": {"type": "json_schema"}})), "missing_required_parameter", "text.format.name"),
        (with("reasoning", json!({"effort": 5})), "invalid_type", "reasoning.effort"),
        (with("reasoning", json!("high")), "invalid_type", "reasoning"),
        (with("stream", json!("yes")), "invalid_type", "stream"),
        (with("store", json!(0)), "invalid_type", "store"),
        (with("include", json!("x")), "invalid_type", "include"),
        (with("temperature", json!(3)), "decimal_above_max_value", "temperature"),
        (with("temperature", json!(-0.1)), "decimal_below_min_value", "temperature"),
        (with("temperature", json!("warm")), "invalid_type", "temperature"),
        (with("top_p", json!(1.5)), "decimal_above_max_value", "top_p"),
        (with("presence_penalty", json!(-3)), "decimal_below_min_value", "presence_penalty"),
        (with("frequency_penalty", json!(2.1)), "decimal_above_max_value", "frequency_penalty"),
        (with("max_output_tokens", json!(5)), "integer_below_min_value", "max_output_tokens"),
        (with("max_output_tokens", json!(16.5)), "invalid_type", "max_output_tokens"),
        (with("max_tool_calls", json!(0)), "integer_below_min_value", "max_tool_calls"),
        (with("top_logprobs", json!(21)), "integer_above_max_value", "top_logprobs"),
        (with("top_logprobs", json!(-1)), "integer_below_min_value", "top_logprobs"),
        (with("truncation", json!("some")), "invalid_value", "truncation"),
        (with("metadata", json!([])), "invalid_type", "metadata"),
        (with("metadata", json!({"k": 1})), "invalid_type", "metadata.k"),
        (with("metadata", pairs), "object_above_max_properties", "metadata"),
        (with("metadata", long_value), "string_above_max_length", "metadata.k"),
        (with("previous_response_id", json!(5)), "invalid_type", "previous_response_id"),
        (with("conversation", json!(5)), "invalid_type", "conversation"),
        (with("conversation", json!({})), "missing_required_parameter", "conversation.id"),
        (
            with("input", json!([{"type": "function_call_output", "call_id": "call_x", "output": "1"}])),
            "bridge.history.unknown_call",
            "input",
        ),
    ] {
        for stream in [false, true] {
            let mut body = body.clone();
            if body["stream"].is_null() {
                body["stream"] = json!(stream);
            }
            let error = error(&rig.post(&body).await);
            assert_eq!(error.key(), (400, INVALID, code, Some(param)), "{body}: {error:?}");
            assert_eq!(error.domain, code, "{body}");
        }
    }
    assert_eq!(rig.upstream.requests().len(), 0);
}

#[tokio::test]
async fn things_that_are_not_there() {
    let rig = Rig::start(chat::answer(false)).await;
    let reference = with("input", json!([{"type": "item_reference", "id": "rs_x"}]));
    let mut both = with("previous_response_id", json!("resp_x"));
    both["conversation"] = json!("conv_x");
    for (body, status, code, param, message) in [
        (
            with("model", json!("up/")),
            404,
            "model_not_found",
            Some("model"),
            "The requested model 'up/' does not exist.",
        ),
        (
            with("conversation", json!("conv_x")),
            404,
            "conversation_not_found",
            Some("conversation"),
            "Conversation with id 'conv_x' not found.",
        ),
        (
            with("conversation", json!({"id": "conv_y"})),
            404,
            "conversation_not_found",
            Some("conversation"),
            "Conversation with id 'conv_y' not found.",
        ),
        (both, 400, "mutually_exclusive_parameters", None, "Mutually exclusive parameters"),
        (reference, 404, "item_not_found", Some("input"), "Item with id 'rs_x' not found."),
        (
            with("input", json!([{"id": "msg_x"}])),
            404,
            "item_not_found",
            Some("input"),
            "Item with id 'msg_x' not found.",
        ),
    ] {
        let error = error(&rig.post(&body).await);
        assert_eq!(error.key(), (status, INVALID, code, param), "{body}");
        assert_eq!(error.domain, code, "{body}");
        assert!(error.message.starts_with(message), "{body}: {}", error.message);
    }
    assert_eq!(rig.upstream.requests().len(), 0);
}

/// `null` is the same as absent.
#[tokio::test]
async fn null_is_accepted_everywhere() {
    let rig = Rig::start(chat::answer(false)).await;
    let names = [
        "instructions",
        "previous_response_id",
        "conversation",
        "store",
        "background",
        "stream",
        "stream_options",
        "include",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "max_tool_calls",
        "max_output_tokens",
        "temperature",
        "top_p",
        "top_logprobs",
        "presence_penalty",
        "frequency_penalty",
        "text",
        "reasoning",
        "truncation",
        "metadata",
        "service_tier",
        "safety_identifier",
        "prompt_cache_key",
        "prompt_cache_retention",
        "prompt_cache_options",
        "user",
        "prompt",
        "context_management",
        "moderation",
        "client_metadata",
        "image",
    ];
    let mut all = json!({"model": "m", "input": "Hello"});
    for name in names {
        all[name] = json!(null);
        let answer = rig.post(&with(name, json!(null))).await;
        assert_eq!(answer.header("x-godex-compat"), None, "{name}");
        object(&answer);
    }
    object(&rig.post(&all).await);
    for (outer, inner) in [("text", "format"), ("text", "verbosity"), ("reasoning", "effort"), ("reasoning", "summary")]
    {
        object(&rig.post(&with(outer, json!({inner: null}))).await);
    }
}

#[tokio::test]
async fn methods_and_paths() {
    let rig = Rig::start(chat::answer(false)).await;
    for (method, path, headers, status, code, allow) in [
        (Method::GET, "/v1/responses", &[] as Headers, 405, "method_not_supported", Some("POST")),
        (Method::PUT, "/v1/responses", &[], 405, "method_not_supported", Some("POST")),
        (Method::DELETE, "/v1/models", &[], 405, "method_not_supported", Some("GET, HEAD")),
        (Method::POST, "/v1/models/m", &[], 405, "method_not_supported", Some("GET, HEAD")),
        (Method::POST, "/health", &[], 405, "method_not_supported", Some("GET, HEAD")),
        (Method::POST, "/ready", &[], 405, "method_not_supported", Some("GET, HEAD")),
        (Method::GET, "/v1/responses", UPGRADE, 426, "websocket_not_supported", None),
        (Method::GET, "/", &[], 404, "not_found", None),
        (Method::POST, "/v1/chat/completions", &[], 404, "not_found", None),
        (Method::POST, "/v1/responses/", &[], 404, "not_found", None),
        (Method::GET, "/v1/models/", &[], 404, "not_found", None),
    ] {
        let label = format!("{method} {path}");
        let answer: Answer = rig.client.request(method, &rig.url(path), headers, "").await.unwrap();
        let error = error(&answer);
        assert_eq!(error.key(), (status, INVALID, code, None), "{label}");
        assert_eq!((error.domain.as_str(), answer.header("allow")), (code, allow), "{label}");
    }
}
