//! What exactly is on the wire, event by event, where the short form of the quirks does not show it.

use std::sync::Arc;

use bridge::{AnswerDialect, End, FinishMeaning, Setup};
use serde_json::{Value, json};

use crate::quirks::{done, text};
use crate::run::{Ran, Run, delta, finish};

fn run(run: &Run, chunks: Vec<String>) -> Ran {
    run.run(&done(chunks, "stop"), End::Eof).unwrap()
}

fn call(name: &str, arguments: &str) -> String {
    delta(&json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": name, "arguments": arguments}}]}))
}

/// The members of the events of one type.
fn all<'r>(ran: &'r Ran, kind: &str, member: &str) -> Vec<&'r Value> {
    ran.stream.events.iter().filter(|(name, _)| name == kind).map(|(_, event)| &event[member]).collect()
}

/// The types of the events of the items, without `response.`.
fn types(ran: &Ran) -> Vec<&str> {
    let names = ran.stream.types();
    names[2..names.len() - 1].iter().map(|name| name.trim_start_matches("response.")).collect()
}

#[test]
fn custom_input_streams_as_it_comes() {
    let pieces = ["{\"in", "put\":\"*** Be", "gin\\", "nPatch \\u00", "e9", "\"}"];
    let ran = run(&Run::default(), pieces.iter().map(|piece| call("patch", piece)).collect());
    assert_eq!(all(&ran, "response.custom_tool_call_input.delta", "delta"), ["*** Be", "gin", "\nPatch ", "é"]);
    let added = all(&ran, "response.output_item.added", "item")[0];
    assert_eq!(
        (&added["type"], &added["name"], &added["input"]),
        (&json!("custom_tool_call"), &json!("patch"), &json!(""))
    );
    assert_eq!(all(&ran, "response.custom_tool_call_input.done", "input"), ["*** Begin\nPatch é"]);
}

#[test]
fn items_have_their_own_type_from_the_start() {
    for (name, arguments, kind, prefix, events) in [
        ("f", "{}", "function_call", "fc_", vec!["function_call_arguments.delta", "function_call_arguments.done"]),
        (
            "shell",
            r#"{"commands":["ls"]}"#,
            "shell_call",
            "sh_",
            vec!["shell_call_command.added", "shell_call_command.delta", "shell_call_command.done"],
        ),
        ("local_shell", r#"{"command":["ls"]}"#, "local_shell_call", "lsh_", vec![]),
        ("apply_patch", r#"{"type":"delete_file","path":"a"}"#, "apply_patch_call", "apc_", vec![]),
        ("tool_search", r#"{"query":"q"}"#, "tool_search_call", "tsc_", vec![]),
    ] {
        let ran = run(&Run::default(), vec![call(name, arguments)]);
        let added = all(&ran, "response.output_item.added", "item")[0];
        assert_eq!(
            (&added["type"], &added["status"], &added["call_id"]),
            (&json!(kind), &json!("in_progress"), &json!("c"))
        );
        assert!(added["id"].as_str().unwrap().starts_with(prefix), "{added}");
        let events = [vec!["output_item.added"], events, vec!["output_item.done"]].concat();
        assert_eq!(types(&ran), events, "{name}");
    }
}

#[test]
fn a_summary_has_its_own_events_and_both_lists_are_there() {
    let mut asked = Run::default();
    asked.context.reasoning_summary = true;
    for (setting, events, summary, content) in [
        (
            &Run::default(),
            ["content_part.added", "reasoning_text.delta", "reasoning_text.done", "content_part.done"],
            0,
            1,
        ),
        (
            &asked,
            [
                "reasoning_summary_part.added",
                "reasoning_summary_text.delta",
                "reasoning_summary_text.done",
                "reasoning_summary_part.done",
            ],
            1,
            0,
        ),
    ] {
        let ran = run(setting, vec![delta(&json!({"reasoning": "hm"})), text("a")]);
        assert_eq!(types(&ran)[1..5], events);
        let item = &ran.stream.response["output"][0];
        let length = |member: &str| item[member].as_array().unwrap().len();
        assert_eq!((length("summary"), length("content")), (summary, content));
        assert!(item["encrypted_content"].is_string());
        assert!(all(&ran, "response.output_item.added", "item")[0].get("encrypted_content").is_none());
    }
}

#[test]
fn probabilities_come_when_they_were_asked_for() {
    let token = json!({"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []});
    let chunk =
        json!({"choices": [{"index": 0, "delta": {"content": "a"}, "logprobs": {"content": [token]}}]}).to_string();
    let mut asked = Run::default();
    asked.context.logprobs = true;
    for (setting, expected) in [(&asked, json!([token])), (&Run::default(), json!([]))] {
        let ran = run(setting, vec![chunk.clone()]);
        assert_eq!(all(&ran, "response.output_text.delta", "logprobs"), [&expected]);
        assert_eq!(all(&ran, "response.output_text.done", "logprobs"), [&expected]);
        assert_eq!(ran.stream.response["output"][0]["content"][0]["logprobs"], expected);
        if let Some(schemas) = testkit::Schemas::if_present() {
            let problems: Vec<String> = ran.stream.events.iter().flat_map(|(_, event)| schemas.event(event)).collect();
            assert_eq!(problems, Vec::<String>::new());
        }
        let strict: Vec<String> =
            ran.stream.events.iter().filter_map(|(_, event)| crate::strict_types::problem(event)).collect();
        assert_eq!(strict, Vec::<String>::new());
    }
}

#[test]
fn a_citation_is_announced_inside_its_text() {
    let citation = json!({"annotations": [{"type": "url_citation", "url": "https://a.b/", "title": "T", "start_index": 0, "end_index": 1}]});
    let ran = run(&Run::default(), vec![text("a"), delta(&citation), text("b")]);
    let expected = ["output_text.delta", "output_text.annotation.added", "output_text.delta", "output_text.done"];
    assert_eq!(types(&ran)[2..6], expected);
}

#[test]
fn calls_without_a_good_id_get_one_of_ours() {
    let long = "x".repeat(65);
    for id in ["", " ", long.as_str()] {
        let chunk = json!({"tool_calls": [{"id": id, "function": {"name": "f", "arguments": "{}"}}]});
        let ran = run(&Run::default(), vec![delta(&chunk)]);
        let call_id = ran.stream.response["output"][0]["call_id"].as_str().unwrap();
        assert!(call_id.starts_with("call_") && call_id.len() <= 64, "{id:?} became {call_id}");
    }
}

#[test]
fn usage_is_estimated_from_sizes_where_there_is_none() {
    let ran = Run::default().run(&[text("12345678"), finish("stop")], End::Eof).unwrap();
    let usage = &ran.stream.response["usage"];
    assert_eq!(
        (&usage["input_tokens"], &usage["output_tokens"], &usage["total_tokens"]),
        (&json!(10), &json!(2), &json!(12))
    );
    // A turn that failed claims nothing.
    let ran = Run::default().run(&[text("12345678")], End::Eof).unwrap();
    assert_eq!(ran.stream.response["usage"], Value::Null);
}

/// Failures come as `error`, then `response.failed`, then nothing; and the dialect's words are understood.
#[test]
fn overflow_in_the_dialects_words() {
    let dialect = AnswerDialect {
        finish: vec![("full".to_owned(), FinishMeaning::ContextOverflow)],
        overflow: vec!["scroll is full".to_owned()],
        ..AnswerDialect::default()
    };
    let failure = bridge::Failure::from_answer_in(&dialect, 400, br#"{"error":"The scroll is full."}"#);
    assert_eq!(failure.class, bridge::FailureClass::ContextOverflow);
    let setup = Setup { dialect: Arc::new(dialect), ..Setup::default() };
    let ran = Run { setup, ..Run::default() }.run(&[finish("full")], End::Eof).unwrap();
    let names = ran.stream.types();
    assert_eq!(names[names.len() - 2..], ["error", "response.failed"]);
    assert_eq!(ran.stream.response["error"]["code"], "context_length_exceeded");
}

/// What no usage came for is estimated from what was said, not from how it was framed.
#[test]
fn an_estimate_does_not_depend_on_the_pieces() {
    let call = |name: Option<&str>, arguments: &str| {
        delta(&json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": name, "arguments": arguments}}]}))
    };
    let tokens = |pieces: usize| {
        let mut chunks = vec![call(Some("f"), "{\"a\":\"")];
        chunks.extend((0..pieces).map(|_| call(None, &"x".repeat(4000 / pieces))));
        chunks.extend([call(None, "\"}"), finish("tool_calls")]);
        let ran = Run::default().run(&chunks, End::Done).unwrap();
        ran.stream.response["usage"]["output_tokens"].as_u64().unwrap()
    };
    assert_eq!(tokens(1), tokens(1000));
    assert!(tokens(1) < 2000, "{}", tokens(1));
}

/// What the provider says of the tier is what the response says; `default` where it says nothing, or a word that the
/// API does not have.
#[test]
fn the_tier_is_the_providers() {
    let chat = |tier: &Value| -> Vec<String> {
        let chunk = |delta: Value, reason: Value| {
            json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}], "service_tier": tier})
                .to_string()
        };
        vec![chunk(json!({"content": "a"}), Value::Null), chunk(json!({}), json!("stop")), crate::quirks::usage()]
    };
    let whole = |tier: &Value| {
        let choice = json!({"index": 0, "message": {"content": "a"}, "finish_reason": "stop"});
        vec![
            json!({"choices": [choice], "service_tier": tier, "usage": {"prompt_tokens": 1, "completion_tokens": 1}})
                .to_string(),
        ]
    };
    let native = |tier: &Value| {
        let message = json!({"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "a", "annotations": []}]});
        let response = json!({"status": "completed", "output": [message], "service_tier": tier, "usage": {"input_tokens": 1, "output_tokens": 1}});
        vec![json!({"type": "response.completed", "response": response}).to_string()]
    };
    for (said, expected, notes) in [
        (json!("flex"), "flex", &[][..]),
        (json!("priority"), "priority", &[]),
        (json!("scale"), "scale", &[]),
        (json!("default"), "default", &[]),
        (Value::Null, "default", &[]),
        (json!(""), "default", &[]),
        (json!(7), "default", &[]),
        (json!("on_demand"), "default", &["service_tier"]),
    ] {
        let check = |run: &Run, chunks: Vec<String>| {
            let ran = run.run(&chunks, End::Eof).unwrap();
            assert_eq!(ran.stream.response["service_tier"], expected, "{said} {chunks:?}");
            let found: Vec<&str> = ran.notes.iter().map(|note| &*note.path).collect();
            assert_eq!(found, notes, "{said} {chunks:?}");
        };
        check(&Run::default(), chat(&said));
        check(&Run::default(), whole(&said));
        check(&crate::native::native(), native(&said));
    }
}
