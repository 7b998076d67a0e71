//! Ends and failures.

use bridge::{
    AnswerDialect, End, EofTolerance, ErrorMeaning, ErrorRule, Failure, FailureClass, FinishMeaning, RefusalForm,
};
use serde_json::json;

use super::{Quirk, done, quirk, stop, text, usage};
use crate::run::{Run, delta, finish};

fn call(arguments: &str) -> String {
    delta(&json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": arguments}}]}))
}

fn tolerant(eof: EofTolerance) -> Run {
    Run::dialect(AnswerDialect { eof, ..AnswerDialect::default() })
}

pub(super) fn quirks() -> Vec<Quirk> {
    [reasons(), breaks(), errors()].concat()
}

fn reasons() -> Vec<Quirk> {
    let own = |meaning| {
        let finish = vec![("tired".to_owned(), meaning)];
        Run::dialect(AnswerDialect { finish, ..AnswerDialect::default() })
    };
    vec![
        quirk("length", done(vec![text("a")], "length"), "incomplete(max_output_tokens): ~\"a\""),
        quirk(
            "the window is full",
            done(vec![text("a")], "model_context_window_exceeded"),
            "incomplete(max_output_tokens): ~\"a\"",
        ),
        quirk(
            "the window is full before a word",
            done(vec![], "model_context_window_exceeded"),
            "failed(context_length_exceeded): ",
        ),
        quirk(
            "length inside a call",
            done(vec![call("{\"x")], "length"),
            "incomplete(max_output_tokens): ~call f {\"x",
        ),
        quirk("length, nothing said", done(vec![], "length"), "incomplete(max_output_tokens): "),
        quirk("sensitive", done(vec![text("a")], "sensitive"), "incomplete(content_filter): ~\"a\""),
        quirk("the network broke upstream", done(vec![text("a")], "network_error"), "failed(server_error): ~\"a\""),
        quirk(
            "out of resources",
            done(vec![text("a")], "insufficient_system_resource"),
            "failed(server_error): ~\"a\"",
        ),
        quirk("an unknown reason", done(vec![text("a")], "tired"), "completed: \"a\"").noted(&["finish_reason"]),
        quirk("an unknown reason in mid-call", done(vec![call("{\"x")], "tired"), "failed(server_error): ~call f {\"x"),
        quirk("an unknown reason and no answer", done(vec![], "MALFORMED_FUNCTION_CALL"), "failed(server_error): ")
            .noted(&["finish_reason"]),
        quirk("the dialect knows: length", done(vec![text("a")], "tired"), "incomplete(max_output_tokens): ~\"a\"")
            .with(own(FinishMeaning::Length)),
        quirk("the dialect knows: overflow", done(vec![], "tired"), "failed(context_length_exceeded): ")
            .with(own(FinishMeaning::ContextOverflow)),
        quirk("refusals as text", done(vec![delta(&json!({"refusal": "no"}))], "stop"), "completed: \"no\"")
            .with(Run::dialect(AnswerDialect { refusal: RefusalForm::Text, ..AnswerDialect::default() })),
    ]
}

fn breaks() -> Vec<Quirk> {
    let cut = || End::Failed(Failure::new(FailureClass::Truncated, "cut"));
    vec![
        quirk("the body just ends", vec![text("a")], "failed(server_error): ~\"a\""),
        quirk("the connection breaks", vec![text("a")], "failed(server_error): ~\"a\"").ended(cut()),
        quirk("the connection breaks after the reason", vec![text("a"), stop(), usage()], "completed: \"a\"")
            .ended(cut())
            .noted(&["stream"]),
        quirk("an empty body", vec![], "failed(server_error): "),
        quirk("a whole call and the end, tolerated", vec![call("{}"), usage()], "completed: call f {}")
            .with(tolerant(EofTolerance::ToolCalls))
            .noted(&["finish_reason"]),
        quirk("a whole call and the end, not tolerated", vec![call("{}"), usage()], "failed(server_error): ~call f {}"),
        quirk("half a call and the end", vec![call("{\"x"), usage()], "failed(server_error): ~call f {\"x")
            .with(tolerant(EofTolerance::Any)),
        quirk("text and the end, where calls are tolerated", vec![text("a"), usage()], "failed(server_error): ~\"a\"")
            .with(tolerant(EofTolerance::ToolCalls)),
        quirk("text and the end, tolerated", vec![text("a"), usage()], "completed: \"a\"")
            .with(tolerant(EofTolerance::Any))
            .noted(&["finish_reason"]),
        quirk("[DONE] without a reason", vec![text("a"), usage(), "[DONE]".into()], "completed: \"a\"")
            .noted(&["finish_reason"]),
        quirk("[DONE] in mid-call", vec![call("{\"x"), usage(), "[DONE]".into()], "failed(server_error): ~call f {\"x"),
        quirk("an empty answer", done(vec![text("")], "stop"), "failed(server_error): "),
        quirk("HTML in the stream", vec![text("a"), "<html>busy</html>".into()], "failed(server_error): ~\"a\""),
    ]
}

/// A provider with errors of its own.
fn knows(rule: ErrorRule) -> Run {
    Run::dialect(AnswerDialect { errors: [rule].into_iter().collect(), ..AnswerDialect::default() })
}

fn errors() -> Vec<Quirk> {
    let then = |error: serde_json::Value| vec![text("a"), error.to_string()];
    let finally = |error: serde_json::Value| vec![text("a"), error.to_string(), "[DONE]".to_owned()];
    vec![
        quirk("an error in the stream", then(json!({"error": {"message": "no", "code": 500}})), "failed(server_error): ~\"a\""),
        quirk("an error that is a string", then(json!({"error": "no"})), "failed(server_error): ~\"a\""),
        quirk("an error after the reason", vec![text("a"), finish("stop"), json!({"error": {"message": "no"}}).to_string()], "failed(server_error): ~\"a\""),
        quirk("an error inside the choice", then(json!({"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error", "error": {"code": 429, "message": "slow"}}]})), "failed(rate_limit_exceeded): ~\"a\""),
        quirk("error: null and {} are none", done(vec![json!({"error": null, "choices": []}).to_string(), json!({"error": {}, "choices": []}).to_string(), text("a")], "stop"), "completed: \"a\""),
        quirk("base_resp with a status", then(json!({"choices": null, "base_resp": {"status_code": 1000, "status_msg": "no"}})), "failed(server_error): ~\"a\""),
        quirk("base_resp, slow down", then(json!({"base_resp": {"status_code": 1002, "status_msg": "rate limit"}})), "failed(rate_limit_exceeded): ~\"a\"")
            .with(knows(ErrorRule { code: vec!["1002".into()], ..ErrorRule::new(ErrorMeaning::RateLimit) })),
        quirk("base_resp, all well", done(vec![json!({"choices": [], "base_resp": {"status_code": 0, "status_msg": ""}}).to_string(), text("a")], "stop"), "completed: \"a\""),
        quirk("object: error", then(json!({"object": "error", "message": "no", "code": 40303})), "failed(server_error): ~\"a\""),
        quirk("detail", then(json!({"detail": "no"})), "failed(server_error): ~\"a\""),
        quirk("errors in an array", then(json!([{"error": {"code": 503, "message": "busy"}}])), "failed(server_is_overloaded): ~\"a\""),
        quirk("overflow inside a stream", vec![json!({"error": {"message": "Requested token count exceeds the model's maximum context length of 10", "code": 400}}).to_string()], "failed(context_length_exceeded): ")
            .with(knows(ErrorRule { words: vec!["maximum context length".into()], ..ErrorRule::new(ErrorMeaning::ContextOverflow) })),
        quirk("overflow in the dialect's words", vec![json!({"error": {"message": "The scroll is FULL."}}).to_string()], "failed(context_length_exceeded): ")
            .with(Run::dialect(AnswerDialect { overflow: vec!["scroll is full".into()], ..AnswerDialect::default() })),
        quirk("a code without choices", finally(json!({"code": "rate_limit_exceeded"})), "failed(rate_limit_exceeded): ~\"a\""),
        quirk("a code that is a number", finally(json!({"code": 503, "data": null})), "failed(server_is_overloaded): ~\"a\""),
        quirk("a code and msg", finally(json!({"code": 429, "msg": "slow down", "success": false})), "failed(rate_limit_exceeded): ~\"a\""),
        quirk("error_code and error_msg", finally(json!({"error_code": 336_503, "error_msg": "no"})), "failed(server_error): ~\"a\""),
        quirk("errors", finally(json!({"errors": [{"message": "no"}], "success": false})), "failed(server_error): ~\"a\""),
        quirk("a message without choices", finally(json!({"message": "Internal error"})), "failed(server_error): ~\"a\""),
        quirk("a message beside empty choices", finally(json!({"choices": [], "message": "Internal error"})), "failed(server_error): ~\"a\""),
        quirk("a status without choices", finally(json!({"status": 500, "path": "/v1"})), "failed(server_error): ~\"a\""),
        quirk("type: error", finally(json!({"type": "error", "request_id": "r"})), "failed(server_error): ~\"a\""),
        quirk("codes of success are none",
            done(vec![json!({"code": 0, "message": "success", "choices": []}).to_string(), json!({"code": "200", "msg": "ok"}).to_string(), json!({"status": "processing"}).to_string(), text("a")], "stop"),
            "completed: \"a\""),
        quirk("an invalid request inside a stream", vec![json!({"error": {"message": "no", "code": 400}}).to_string()], "failed(invalid_prompt): "),
    ]
}
