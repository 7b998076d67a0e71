//! Any request, to each model: nothing goes that this one refuses, and trials go only with what needs them.

use bridge::Dialect;
use proptest::prelude::*;
use providers::{Library, resolve_named};
use serde_json::json;
use testkit::messages::{check_for_model, check_request};

use super::sent::rich;
use crate::make::text_of;
use crate::messages::plan_text;
use crate::run::{MEND, TransparentSeal};

const MODELS: &[&str] = &[
    "claude-fable-5-1",
    "claude-mythos-5-1",
    "claude-fable-5",
    "claude-opus-5-5",
    "claude-sonnet-5-5",
    "claude-haiku-5-5",
    "claude-opus-5",
    "claude-sonnet-5",
    "claude-sonnet-5-20260601",
    "claude-opus-4-8",
    "claude-opus-4-7",
    "claude-opus-4-6",
    "claude-sonnet-4-6",
    "claude-opus-4-5-20251101",
    "claude-sonnet-4-5",
    "claude-haiku-4-5-20251001",
    "claude-opus-4-1-20250805",
    "claude-sonnet-4-20250514",
    "claude-next-7",
];

fn dialects() -> Vec<(String, Dialect)> {
    let mut all = Vec::new();
    for spec in ["anthropic", "bedrock-anthropic", "vertex-anthropic"] {
        let provider = resolve_named(Library::BUILTIN, spec, &|_| None).unwrap();
        for model in MODELS {
            let name =
                if spec == "bedrock-anthropic" { format!("anthropic.{model}-v1:0") } else { (*model).to_owned() };
            all.push((name.clone(), Dialect { family: "one".to_owned(), ..provider.for_model(&name).dialect }));
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_model_is_asked_for_what_it_takes(request in rich()) {
        let text = text_of(&request);
        for (model, dialect) in dialects() {
            let Ok((planned, _)) = plan_text(&text, &dialect, MEND, &TransparentSeal) else { continue };
            let body = &planned.body;
            prop_assert_eq!(check_request(body), Ok(()), "{}: {}", model, body);
            prop_assert_eq!(check_for_model(&model, body), Ok(()), "{}", body);
            // The member is refused without its trial.
            let is_bound = body["thinking"].get("block_binding").is_some();
            prop_assert!(!is_bound || dialect.request.blocks.all_betas().any(|beta| beta.contains("binding")), "{}", model);
        }
    }
}

/// One tool among many must not have the whole request refused.
#[test]
fn no_schema_of_a_tool_is_refused() {
    for properties in [
        json!({"range": {"type": "array", "items": [{"type": "number"}, {"type": "number"}], "additionalItems": false}}),
        json!({"age": {"type": "number", "minimum": 0, "exclusiveMinimum": true, "exclusiveMaximum": false}}),
        json!({"value": {"type": "any"}, "file": {"type": ["file", "null"]}}),
        json!({"name": {"type": "string", "required": true}}),
        json!({"list": {"items": {"anyOf": [{"required": ["a", "a"]}, {"type": "object", "required": "a"}]}}}),
        json!({"none": null, "text": "string"}),
        json!({"filter[id]": {"type": "string"}, "$top": {"type": "any"}, "": true, "é": {"description": "x"}}),
    ] {
        let is_renamed = properties.get("$top").is_some();
        let parameters = json!({"type": "object", "properties": properties, "required": ["a", "a"]});
        let tool = json!({"type": "function", "name": "f", "parameters": parameters});
        let request = json!({"model": "m", "input": "Hi", "tools": [tool]}).to_string();
        for (model, dialect) in dialects() {
            let (planned, _) = plan_text(&request, &dialect, MEND, &TransparentSeal).unwrap();
            let body = &planned.body;
            assert_eq!(check_request(body), Ok(()), "{model}: {body}");
            assert_eq!(check_for_model(&model, body), Ok(()), "{body}");
            assert!(planned.has_note("bridge.tool.schema", "tools[0]"), "{model}: {:?}", planned.notes);
            assert_eq!(
                planned.has_note("bridge.tool.degraded", "tools[0]"),
                is_renamed,
                "{model}: {:?}",
                planned.notes
            );
        }
    }
}
