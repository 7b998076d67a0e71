//! Reasoning.

use bridge::{AnswerDialect, ThinkTags};
use serde_json::json;

use super::{Quirk, done, quirk, text};
use crate::run::{Run, delta};

fn tags(think_tags: ThinkTags) -> Run {
    Run::dialect(AnswerDialect { think_tags, ..AnswerDialect::default() })
}

pub(super) fn quirks() -> Vec<Quirk> {
    let named = |name: &str| delta(&json!({ name: "hm" }));
    let answer = |first: String| done(vec![first, text("a")], "stop");
    let mut summary = Run::default();
    summary.context.reasoning_summary = true;
    vec![
        quirk("reasoning_content", answer(named("reasoning_content")), "completed: think reasoning \"hm\" | \"a\""),
        quirk("reasoning", answer(named("reasoning")), "completed: think reasoning \"hm\" | \"a\""),
        quirk("thinking", answer(named("thinking")), "completed: think reasoning \"hm\" | \"a\""),
        quirk(
            "both names with the same text",
            answer(delta(&json!({"reasoning": "hm", "reasoning_content": "hm"}))),
            "completed: think reasoning \"hm\" | \"a\"",
        ),
        quirk(
            "thinking parts",
            answer(delta(&json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}))),
            "completed: think reasoning \"hm\" | \"a\"",
        ),
        quirk(
            "blocks only",
            answer(delta(&json!({"reasoning_details": [{"type": "reasoning.text", "text": "hm", "index": 0}]}))),
            "completed: think reasoning \"hm\" | \"a\"",
        ),
        quirk(
            "an encrypted block without text has an item of its own",
            answer(delta(&json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]}))),
            "completed: think  | \"a\"",
        ),
        quirk("a summary was asked for", answer(named("reasoning")), "completed: think summary \"hm\" | \"a\"")
            .with(summary),
        quirk(
            "reasoning and text by turns",
            done(vec![named("reasoning"), text("a"), named("reasoning"), text("b")], "stop"),
            "completed: think reasoning \"hm\" | \"a\" | think reasoning \"hm\" | \"b\"",
        ),
        quirk(
            "tags in the text",
            done(vec![text("<thi"), text("nk>hm</th"), text("ink>\n\na")], "stop"),
            "completed: think reasoning \"hm\" | \"a\"",
        )
        .with(tags(ThinkTags::Leading)),
        quirk(
            "a closing tag only",
            done(vec![text("hm</think>a")], "stop"),
            "completed: think reasoning \"hm\" | \"a\"",
        )
        .with(tags(ThinkTags::Opened)),
        quirk(
            "a tag in the middle is text",
            done(vec![text("a <think>b</think>")], "stop"),
            "completed: \"a <think>b</think>\"",
        )
        .with(tags(ThinkTags::Leading)),
        quirk(
            "tags where nobody expects them are text",
            done(vec![text("<think>hm</think>a")], "stop"),
            "completed: \"<think>hm</think>a\"",
        ),
        quirk(
            "escaped tags",
            done(
                vec![r#"{"choices":[{"delta":{"content":"\u003cthink\u003ehm\u003c/think\u003ea"}}]}"#.to_owned()],
                "stop",
            ),
            "completed: think reasoning \"hm\" | \"a\"",
        )
        .with(tags(ThinkTags::Leading)),
        quirk(
            "a surrogate pair cut inside the tags",
            done(
                vec![
                    r#"{"choices":[{"delta":{"content":"<think>\ud83d"}}]}"#.to_owned(),
                    r#"{"choices":[{"delta":{"content":"\ude00</think>a"}}]}"#.to_owned(),
                ],
                "stop",
            ),
            "completed: think reasoning \"😀\" | \"a\"",
        )
        .with(tags(ThinkTags::Leading)),
        quirk(
            "reasoning and nothing else",
            done(vec![named("reasoning")], "stop"),
            "failed(server_error): ~think reasoning \"hm\"",
        ),
        quirk(
            "reasoning cut by the limit",
            done(vec![named("reasoning")], "length"),
            "incomplete(max_output_tokens): ~think reasoning \"hm\"",
        ),
        quirk(
            "a signature with the call",
            done(
                vec![delta(&json!({"tool_calls": [
            {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}, "extra_content": {"v": {"thought_signature": "s"}}}]}))],
                "stop",
            ),
            "completed: think  | call f {}",
        ),
        quirk(
            "a signature after the call",
            done(
                vec![
                    delta(&json!({"tool_calls": [
            {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}]})),
                    delta(&json!({"tool_calls": [{"extra_content": {"v": {"thought_signature": "s"}}}]})),
                ],
                "stop",
            ),
            "completed: call f {} | think ",
        ),
    ]
}

/// What the sealed items hold.
#[test]
fn what_must_return_is_sealed() {
    for (name, chunks, expected) in [
        (
            "plain reasoning",
            vec![delta(&json!({"reasoning": "h\"m"})), text("a")],
            vec![r#"{"v":1,"family":"fam","text":"h\"m"}"#],
        ),
        (
            "blocks",
            vec![
                delta(
                    &json!({"reasoning": "h", "reasoning_details": [{"type": "reasoning.text", "text": "h", "index": 0}]}),
                ),
                delta(&json!({"reasoning_details": [{"type": "reasoning.text", "signature": "s", "index": 0}]})),
                text("a"),
            ],
            vec![
                r#"{"v":1,"family":"fam","text":"h","bag":{"reasoning_details":[{"type":"reasoning.text","index":0,"signature":"s","text":"h"}]}}"#,
            ],
        ),
        (
            "a call's signature",
            vec![delta(
                &json!({"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}, "extra_content": {"g": {"s": "x"}}}]}),
            )],
            vec![r#"{"v":1,"family":"fam","text":"","bag":{"calls":{"a":{"g":{"s":"x"}}}}}"#],
        ),
        (
            "a call's signature after reasoning",
            vec![
                delta(&json!({"reasoning_content": "h"})),
                delta(
                    &json!({"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}, "extra_content": {"g": 1}}]}),
                ),
            ],
            vec![r#"{"v":1,"family":"fam","text":"h","bag":{"calls":{"a":{"g":1}}}}"#],
        ),
        ("nothing", vec![text("a")], vec![]),
    ] {
        let run = Run::dialect(AnswerDialect { family: "fam".to_owned(), ..AnswerDialect::default() });
        let ran = run.run(&done(chunks, "stop"), bridge::End::Eof).unwrap();
        let items = ran.stream.response["output"].as_array().unwrap().iter();
        let sealed: Vec<&str> =
            items.filter_map(|item| item["encrypted_content"].as_str()?.strip_prefix("glass:")).collect();
        assert_eq!(sealed, expected, "{name}");
    }
}
