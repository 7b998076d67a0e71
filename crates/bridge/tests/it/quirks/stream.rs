//! The shape of chunks.

use serde_json::json;

use super::{Quirk, done, quirk, stop, text, usage};
use crate::run::delta;

pub(super) fn quirks() -> Vec<Quirk> {
    let role = delta(&json!({"role": "assistant", "content": ""}));
    vec![
        quirk("the first chunk has a role only", done(vec![role.clone(), text("a")], "stop"), "completed: \"a\""),
        quirk(
            "the role is in every delta",
            done(vec![delta(&json!({"role": "assistant", "content": "a"})), delta(&json!({"role": "assistant", "content": "b"}))], "stop"),
            "completed: \"ab\"",
        ),
        quirk(
            "choices empty, with a filter's findings",
            done(vec![json!({"choices": [], "prompt_filter_results": []}).to_string(), text("a")], "stop"),
            "completed: \"a\"",
        ),
        quirk(
            "choices null",
            done(vec![json!({"choices": null}).to_string(), text("a")], "stop"),
            "completed: \"a\"",
        ),
        quirk(
            "delta null",
            done(vec![json!({"choices": [{"index": 0, "delta": null}]}).to_string(), text("a")], "stop"),
            "completed: \"a\"",
        ),
        quirk(
            "a whole message after nothing",
            vec![json!({"choices": [{"index": 0, "message": {"content": "a"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}).to_string()],
            "completed: \"a\"",
        ),
        quirk(
            "a whole message after its own deltas",
            done(vec![text("a"), json!({"choices": [{"index": 0, "message": {"content": "a"}}]}).to_string()], "stop"),
            "completed: \"a\"",
        ),
        quirk(
            "a second choice that nobody asked for",
            done(vec![text("a"), json!({"choices": [{"index": 1, "delta": {"content": "x"}}]}).to_string()], "stop"),
            "completed: \"a\"",
        ),
        quirk(
            "content in parts",
            done(vec![delta(&json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, 7]}))], "stop"),
            "completed: \"ab\"",
        ),
        quirk("finish and usage in one chunk, no [DONE]",
            vec![text("a"), json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}).to_string()],
            "completed: \"a\""),
        quirk("no usage: estimated", vec![text("a"), stop()], "completed: \"a\"").noted(&["usage"]),
        quirk("usage of zeros: estimated",
            vec![text("a"), stop(), json!({"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 0}}).to_string()],
            "completed: \"a\"").noted(&["usage"]),
        quirk("usage inside the choice",
            vec![text("a"), json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 1, "completion_tokens": 1}}]}).to_string()],
            "completed: \"a\""),
        quirk("text after the finish reason",
            vec![text("a"), stop(), text("b"), usage(), "[DONE]".to_owned()],
            "completed: \"ab\"").noted(&["finish_reason"]),
        quirk("a refusal after text", done(vec![text("a"), delta(&json!({"refusal": "no"}))], "stop"),
            "completed: \"a\" + refusal \"no\""),
        quirk("what was said aloud", done(vec![delta(&json!({"content": null, "audio": {"transcript": "a"}}))], "stop"),
            "completed: \"a\""),
        quirk("a citation",
            done(vec![text("a"), delta(&json!({"annotations": [{"type": "url_citation", "url_citation": {"url": "https://a.b/", "title": "T", "start_index": 0, "end_index": 1}}]}))], "stop"),
            "completed: \"a\" [1 cited]"),
        quirk("a citation before the text",
            done(vec![delta(&json!({"annotations": [{"type": "url_citation", "url": "https://a.b/"}]})), text("a")], "stop"),
            "completed: \"a\" [1 cited]"),
        quirk("half a surrogate pair in each of two chunks",
            done(vec![r#"{"choices":[{"delta":{"content":"\ud83d"}}]}"#.to_owned(), r#"{"choices":[{"delta":{"content":"\ude00"}}]}"#.to_owned()], "stop"),
            "completed: \"😀\""),
    ]
}
