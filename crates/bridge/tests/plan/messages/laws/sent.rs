//! What is sent for any requests, for another program that reads it with the types of Anthropic's own packages
//! (`tests/clients/types`): with `GODEX_STREAMS` in the environment, it is written to that folder, the same every time.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use bridge::Dialect;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use providers::{HeaderText, Library, resolve_named};
use serde_json::{Map, Value, json};
use testkit::messages::check_request;

use super::{blocks, plan_text, willing};
use crate::make::{Turn, conversation, items, request, text_of};
use crate::run::{MEND, TransparentSeal};

const REQUESTS: usize = 300;

/// What every such request must have been seen to say, in all of them together.
const SEEN: &[&str] = &[
    "text",
    "image",
    "document",
    "thinking",
    "redacted_thinking",
    "server_tool_use",
    "web_search_tool_result",
    "tool_use",
    "tool_result",
    "ephemeral",
    "adaptive",
    "enabled",
    "disabled",
    "between_tools",
    "json_schema",
    "auto",
    "any",
    "tool",
    "none",
    "base64",
    "url",
    "user",
    "assistant",
    "system",
];

/// What is said beside the items, each thing as clients say it.
fn options() -> impl Strategy<Value = Vec<(&'static str, Value)>> {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}, "required": ["a"], "additionalProperties": false});
    let function =
        json!({"type": "function", "name": "f", "description": "Does f.", "parameters": schema, "strict": true});
    let bare = json!({"type": "function", "name": "files.read"});
    let tools = json!([function, bare, {"type": "custom", "name": "c"}, {"type": "shell"}, {"type": "apply_patch"}]);
    let format = json!({"format": {"type": "json_schema", "name": "x", "schema": schema}});
    let all = vec![
        ("instructions", json!("Be brief.")),
        ("max_output_tokens", json!(9000)),
        ("max_output_tokens", json!(3)),
        ("temperature", json!(0.3)),
        ("temperature", json!(1.7)),
        ("top_p", json!(0.9)),
        ("stop", json!("END")),
        ("stop", json!(["END", "STOP"])),
        ("user", json!("u-1")),
        ("safety_identifier", json!("u-2")),
        ("service_tier", json!("default")),
        ("service_tier", json!("priority")),
        ("service_tier", json!("fast")),
        ("prompt_cache_retention", json!("24h")),
        ("reasoning", json!({"effort": "none"})),
        ("reasoning", json!({"effort": "none", "summary": "auto"})),
        ("reasoning", json!({"effort": "minimal", "summary": "auto"})),
        ("reasoning", json!({"effort": "high"})),
        ("reasoning", json!({"effort": "max", "summary": "detailed"})),
        ("text", format),
        ("text", json!({"format": {"type": "json_object"}, "verbosity": "low"})),
        ("tools", tools.clone()),
        ("tools", tools),
        ("tools", json!([function, {"type": "web_search"}])),
        ("tool_choice", json!("required")),
        ("tool_choice", json!("none")),
        ("tool_choice", json!({"type": "function", "name": "f"})),
        ("parallel_tool_calls", json!(false)),
        ("stream", json!(true)),
    ];
    prop::collection::vec(prop::sample::select(all), 0..12)
}

/// A lawful conversation, with everything that blocks can say.
pub(super) fn rich() -> impl Strategy<Value = Value> {
    let files = json!([
        {"type": "input_text", "text": "See."},
        {"type": "input_image", "image_url": "https://a.b/c.png"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0lJUVPRg=="},
        {"type": "input_file", "file_url": "https://a.b/c.pdf"},
    ]);
    let searched = json!([
        {"type": "thinking", "thinking": "", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "ZGF0YQ=="},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [
            {"type": "web_search_result", "url": "https://a.b/", "title": "T", "encrypted_content": "Eq4=", "page_age": null},
        ]},
    ]);
    let sealed = format!("glass:{}", json!({"v": 1, "family": "one", "text": "", "bag": searched}));
    let opening = [
        json!({"role": "user", "content": files}),
        json!({"type": "reasoning", "summary": [], "encrypted_content": sealed}),
        json!({"role": "assistant", "content": "Found."}),
        json!({"role": "user", "content": "Go on."}),
        json!({"role": "developer", "content": "Now be brief."}),
    ];
    (conversation("one"), options(), 0..=opening.len()).prop_map(move |(turns, options, known)| {
        let mut input = opening[..known].to_vec();
        for Turn { input: said, output } in &turns {
            input.extend(said.iter().cloned());
            input.extend(output.iter().map(blocks));
        }
        let mut request = json!({"model": "m", "input": input});
        for (name, value) in options {
            request[name] = value;
        }
        request
    })
}

/// The dialect's name, and the headers that say by which rules a body is to be read.
fn head(name: &str, dialect: &Dialect) -> String {
    let spec = name.split('/').next().filter(|spec| *spec != "bare");
    let headers = spec.map(|spec| resolve_named(Library::BUILTIN, spec, &|_| None).unwrap().headers);
    let fixed = headers.into_iter().flatten().filter_map(|(name, text)| match text {
        HeaderText::Fixed(text) => Some((name, Value::from(text))),
        HeaderText::From(_) => None,
    });
    let mut headers: Map<String, Value> = fixed.collect();
    let betas: Vec<&str> = dialect.request.blocks.all_betas().collect();
    if !betas.is_empty() {
        headers.insert("anthropic-beta".to_owned(), betas.join(",").into());
    }
    format!("\"case\":{},\"headers\":{}", json!(name), Value::from(headers))
}

fn words(value: &Value, seen: &mut BTreeSet<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| words(value, seen)),
        Value::Object(members) => {
            let named = ["type", "role"].iter().filter_map(|name| members.get(*name)).filter_map(Value::as_str);
            seen.extend(named.map(str::to_owned));
            members.values().for_each(|value| words(value, seen));
        }
        _ => {}
    }
}

#[test]
fn any_request_can_be_read_with_other_peoples_types() {
    let mut runner = TestRunner::deterministic();
    let kinds = [
        rich().boxed(),
        rich().boxed(),
        request().boxed(),
        items().prop_map(|items| json!({"model": "m", "input": items})).boxed(),
    ];
    let dialects = willing();
    let heads: Vec<String> = dialects.iter().map(|(name, dialect)| head(name, dialect)).collect();
    let (mut lines, mut seen) = (Vec::new(), BTreeSet::new());
    for number in 0..REQUESTS {
        let (name, dialect) = &dialects[number % dialects.len()];
        // Each kind meets each dialect.
        let kind = &kinds[number / dialects.len() % kinds.len()];
        let text = text_of(&kind.new_tree(&mut runner).unwrap().current());
        // What is refused is not sent.
        let Ok((planned, _)) = plan_text(&text, dialect, MEND, &TransparentSeal) else { continue };
        assert_eq!(check_request(&planned.body), Ok(()), "{name}\n{text}\n{}", planned.body);
        words(&planned.body, &mut seen);
        let body = str::from_utf8(&planned.bytes).unwrap();
        lines.push(format!("{{{},\"body\":{body}}}\n", heads[number % heads.len()]));
    }
    for word in SEEN {
        assert!(seen.contains(*word), "{word}: {seen:?}");
    }
    assert!(lines.len() > REQUESTS / 2, "{}", lines.len());
    if let Some(folder) = std::env::var_os("GODEX_STREAMS") {
        fs::write(Path::new(&folder).join("messages.jsonl"), lines.concat()).unwrap();
    }
}
