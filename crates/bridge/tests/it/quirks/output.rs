//! Structured output.

use std::sync::Arc;

use bridge::{Checks, OutputCheck, OutputContract, OutputProblem, Repair, Setup};
use serde_json::{Value, json};

use super::{Quirk, done, quirk, text};
use crate::run::{Run, delta};

/// Wants an object whose `a` is a number.
#[derive(Debug)]
struct WantsA;

impl OutputCheck for WantsA {
    fn check(&self, text: &str) -> Result<(), OutputProblem> {
        let value: Value = serde_json::from_str(text).unwrap();
        match &value["a"] {
            Value::Number(_) => Ok(()),
            _ => Err(OutputProblem::Invalid { pointer: "/a".to_owned(), message: "not a number".to_owned() }),
        }
    }
}

fn promised(repair: Repair) -> Run {
    let mut run = Run::default();
    run.context.output =
        OutputContract::JsonSchema { name: "n".into(), schema: "{}".into(), strict: true, native: false };
    Run { setup: Setup { check: Some(Arc::new(WantsA)), repair, ..run.setup }, ..run }
}

/// The same without the promise.
fn asked_for(checks: Checks) -> Run {
    let mut run = promised(Repair::Syntax);
    run.context.output =
        OutputContract::JsonSchema { name: "n".into(), schema: "{}".into(), strict: false, native: false };
    Run { setup: Setup { checks, ..run.setup }, ..run }
}

pub(super) fn quirks() -> Vec<Quirk> {
    let said = |pieces: &[&str]| done(pieces.iter().map(|piece| text(piece)).collect(), "stop");
    let syntax = || promised(Repair::Syntax);
    let mut object = Run::default();
    object.context.output = OutputContract::JsonObject;
    vec![
        quirk("valid", said(&["{\"a\"", ":1}"]), "completed: \"{\\\"a\\\":1}\"").with(syntax()),
        quirk("the wrong type", said(&["{\"a\":\"x\"}"]), "failed(invalid_output_format): \"{\\\"a\\\":\\\"x\\\"}\"")
            .with(syntax())
            .noted(&["text.format"]),
        quirk("no JSON", said(&["Sure!"]), "failed(invalid_output_format): \"Sure!\"")
            .with(syntax())
            .noted(&["text.format"]),
        quirk("a fence", said(&["``", "`json\n{\"a\"", ":1}\n``", "`\nBye"]), "completed: \"{\\\"a\\\":1}\"")
            .with(syntax())
            .noted(&["text.format"]),
        quirk(
            "a fence, no repair",
            said(&["```json\n{\"a\":1}\n```"]),
            "failed(invalid_output_format): \"```json\\n{\\\"a\\\":1}\\n```\"",
        )
        .with(promised(Repair::Off))
        .noted(&["text.format"]),
        quirk(
            "brackets left open",
            said(&["{\"b\":[1,{\"c\":\"d"]),
            "failed(invalid_output_format): \"{\\\"b\\\":[1,{\\\"c\\\":\\\"d\"",
        )
        .with(syntax())
        .noted(&["text.format"]),
        quirk(
            "brackets left open, mended",
            said(&["{\"b\":[1],\"a\":2"]),
            "completed: \"{\\\"b\\\":[1],\\\"a\\\":2}\"",
        )
        .with(syntax())
        .noted(&["text.format"]),
        quirk("not strict: a misfit is delivered", said(&["{\"a\":\"x\"}"]), "completed: \"{\\\"a\\\":\\\"x\\\"}\"")
            .with(asked_for(Checks::Strict))
            .noted(&["text.format"]),
        quirk("not strict: no JSON", said(&["Sure!"]), "completed: \"Sure!\"")
            .with(asked_for(Checks::Strict))
            .noted(&["text.format"]),
        quirk("not strict: a fence that never opens", said(&["``", "`json"]), "completed: \"```json\"")
            .with(asked_for(Checks::Strict))
            .noted(&["text.format"]),
        quirk("not strict: a misfit is closed", said(&["{\"a\":[1"]), "completed: \"{\\\"a\\\":[1]}\"")
            .with(asked_for(Checks::Strict))
            .noted(&["text.format", "text.format"]),
        quirk("not strict, always checked", said(&["Sure!"]), "failed(invalid_output_format): \"Sure!\"")
            .with(asked_for(Checks::Always))
            .noted(&["text.format"]),
        quirk("never checked", said(&["Sure!"]), "completed: \"Sure!\"").with(asked_for(Checks::Off)),
        quirk(
            "cut by the limit: never judged",
            done(vec![text("{\"a\":")], "length"),
            "incomplete(max_output_tokens): ~\"{\\\"a\\\":\"",
        )
        .with(syntax()),
        quirk(
            "a call: never judged",
            done(
                vec![
                    text("so"),
                    delta(&json!({"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]})),
                ],
                "stop",
            ),
            "completed: \"so\" | call f {}",
        )
        .with(syntax()),
        quirk(
            "a refusal: never judged",
            done(vec![delta(&json!({"refusal": "no"}))], "stop"),
            "completed: refusal \"no\"",
        )
        .with(syntax()),
        quirk("json_object: an array", said(&["[1]"]), "failed(invalid_output_format): \"[1]\"")
            .with(object.clone())
            .noted(&["text.format"]),
        quirk("json_object: a fence", said(&["```\n{}\n```"]), "completed: \"{}\"")
            .with(object)
            .noted(&["text.format"]),
    ]
}

#[test]
fn the_failure_says_where() {
    let run = promised(Repair::Syntax);
    let ran = run.run(&done(vec![text("{\"a\":null}")], "stop"), bridge::End::Eof).unwrap();
    let message = ran.stream.response["error"]["message"].as_str().unwrap();
    assert!(message.contains("at /a, not a number"), "{message}");
}
