//! One thing is odd about each of these providers; the report says which, and nothing else.

mod media;
mod messages;
mod options;
mod responses;
mod thinking;
mod tools;

use providers::yaml::{Document, Problems, Reader};
use providers::{Library, Provider, resolve_inline};
use serde_json::{Value, json};
use testkit::Script;

use crate::model::{Quirk, Twist, no_quirk, no_twist, prompt, refuse};
use crate::rig::{Probed, probe};
use media::MEDIA;
use options::OPTIONS;
use thinking::THINKING;
use tools::TOOLS;

/// An odd provider, and what a probe must make of it.
struct Case {
    name: &'static str,
    spec: &'static str,
    quirk: Quirk,
    twist: Twist,
    /// All changes of the spec.
    changes: &'static [&'static str],
    /// Some observations.
    seen: &'static [(&'static str, &'static str)],
}

const PLAIN: Case =
    Case { name: "", spec: "openai-compatible", quirk: no_quirk, twist: no_twist, changes: &[], seen: &[] };

fn has(body: &Value, key: &str) -> bool {
    !body[key].is_null()
}

fn role(body: &Value, role: &str) -> bool {
    body["messages"].as_array().is_some_and(|messages| messages.iter().any(|message| message["role"] == role))
}

fn calling(body: &Value) -> Option<&Value> {
    body["messages"].as_array()?.iter().find(|message| message["tool_calls"].is_array())
}

const ROLES: &[Case] = &[
    Case {
        name: "nothing is odd",
        seen: &[
            ("plain answer", "yes"),
            ("limit field", "max_tokens"),
            ("end of stream", "finish reason, [DONE]"),
            ("usage in stream", "request"),
            ("developer role", "developer obeyed, system obeyed"),
            ("tools", "called"),
            ("tool_choice none", "yes"),
            ("parallel calls", "yes"),
            ("parallel_tool_calls: false", "yes"),
            ("calls in a stream", "whole calls"),
            ("json_schema", "native"),
            ("reasoning in answers", "none"),
            ("reasoning replay", "skipped"),
            ("stop", "yes"),
            ("images", "data"),
            ("error: broken JSON", "400, {error: {…}}"),
            ("error: unknown model", "404, {error: {…}}"),
            ("native /responses", "yes"),
            ("native /messages", "no"),
            ("context overflow", "unclear"),
            ("tool_choice required", "yes"),
            ("tool_choice named", "yes"),
            ("effort changes thinking", "skipped"),
            ("thinking switch", "skipped"),
            ("image kinds", "png, jpeg, webp"),
            ("image addresses", "skipped"),
            ("images in tool results", "unclear"),
            ("PDF files", "unclear"),
            ("cached prefix", "not reported"),
            ("prompt_cache_key", "taken or ignored"),
            ("cache_control marks", "taken or ignored"),
        ],
        ..PLAIN
    },
    Case {
        name: "refuses the developer role",
        spec: "openai",
        quirk: |body| role(body, "developer").then(|| refuse(400, "unknown role")),
        changes: &["developer_role: system"],
        seen: &[("developer role", "developer refused, system obeyed")],
        ..PLAIN
    },
    Case {
        name: "takes the developer role and does not follow it",
        spec: "openai",
        twist: |body, message| {
            if role(body, "developer") {
                message["content"] = json!("Good morning!");
            }
        },
        changes: &["developer_role: system"],
        ..PLAIN
    },
    Case {
        name: "follows no instructions at all",
        spec: "openai",
        twist: |_, message| {
            if message["content"] == "PELICAN" {
                message["content"] = json!("Good morning!");
            }
        },
        seen: &[("developer role", "developer taken, system taken")],
        ..PLAIN
    },
    Case {
        name: "wants one user after the other",
        quirk: |body| {
            let messages = body["messages"].as_array()?;
            let twice = messages.windows(2).any(|pair| pair[0]["role"] == "user" && pair[1]["role"] == "user");
            let late = messages.iter().skip(1).any(|message| message["role"] == "system");
            (twice || late).then(|| refuse(400, "roles must alternate"))
        },
        changes: &["request.messages.late_system: user", "request.messages.turns: merged"],
        ..PLAIN
    },
    Case {
        name: "is busy when it sees the developer role",
        spec: "openai",
        quirk: |body| {
            let busy = || Script::json(429, &json!({"error": {"message": "slow down"}})).header("retry-after", "0");
            role(body, "developer").then(busy)
        },
        seen: &[("developer role", "unclear")],
        ..PLAIN
    },
];

const FORMATS: &[Case] = &[
    Case {
        name: "knows json_object only",
        quirk: |body| {
            let schema = body["response_format"]["type"] == "json_schema";
            schema.then(|| refuse(400, "This response_format type is unavailable now"))
        },
        changes: &["json_schema: json_object"],
        seen: &[("json_object", "yes"), ("json_schema with tools", "skipped")],
        ..PLAIN
    },
    Case {
        name: "knows no format",
        quirk: |body| has(body, "response_format").then(|| refuse(400, "unknown member")),
        changes: &["json_schema: prompt"],
        ..PLAIN
    },
    Case {
        name: "ignores the schema",
        twist: |body, message| {
            if body["response_format"]["type"] == "json_schema" {
                message["content"] = json!("{\"fruit\": \"apple\"}");
            }
        },
        changes: &["json_schema: json_object"],
        ..PLAIN
    },
    Case {
        name: "knows more than declared",
        spec: "deepseek",
        changes: &["json_schema: native", "request.content.images: data"],
        seen: &[("thinking switch", "unclear")],
        ..PLAIN
    },
    Case {
        name: "puts JSON into a fence",
        twist: |body, message| {
            if has(body, "response_format") {
                message["content"] =
                    json!(format!("```json\n{}\n```", message["content"].as_str().unwrap_or_default()));
            }
        },
        changes: &["answer.fenced_json: true"],
        seen: &[("json_schema", "native"), ("json_object", "in a code fence")],
        ..PLAIN
    },
    Case {
        name: "takes no schema beside tools and streams it as text",
        quirk: |body| {
            let schema = body["response_format"]["type"] == "json_schema";
            (schema && has(body, "tools")).then(|| refuse(400, "json mode cannot be combined with tools"))
        },
        twist: |body, message| {
            if has(body, "response_format") && body["stream"] == true {
                message["content"] = json!("An apple, perhaps.");
            }
        },
        changes: &["request.tools.format_excludes: [tools, stream]"],
        ..PLAIN
    },
];

async fn check(cases: &[Case]) {
    for case in cases {
        let probed = probe(case.spec, case.quirk, case.twist).await;
        assert_eq!(probed.changes(), case.changes, "{}\n{:#?}", case.name, probed.findings());
        for (feature, expected) in case.seen {
            assert_eq!(probed.observed(feature), *expected, "{}: {feature}\n{:#?}", case.name, probed.findings());
        }
        written(case, &probed);
    }
}

/// The written spec is one that godex reads, with the changes in it.
fn written(case: &Case, probed: &Probed) {
    let text = probed.written();
    let provider = read(&text);
    assert_eq!(provider.base_url.as_deref(), Some(probed.config.base_url.as_str()), "{}\n{text}", case.name);
    let before = &probed.config.provider.dialect;
    assert_eq!(provider.dialect == *before, case.changes.is_empty(), "{}\n{text}", case.name);
}

fn read(spec: &str) -> Provider {
    let text = format!("spec:\n  {}\n", spec.trim_end().replace('\n', "\n  "));
    let document = Document::parse("probe.yaml", &text).unwrap();
    let reader = Reader::new(&document, &|_| None);
    let mut root = reader.root();
    let provider = resolve_inline(Library::BUILTIN, &root.field("spec").unwrap(), &|_| None).unwrap();
    root.finish();
    assert_eq!(Problems(reader.finish()).to_string(), "", "{text}");
    provider
}

#[tokio::test]
async fn roles_and_order() {
    check(ROLES).await;
}

#[tokio::test]
async fn options_and_streams() {
    check(OPTIONS).await;
}

#[tokio::test]
async fn tools_and_reasoning() {
    check(TOOLS).await;
}

#[tokio::test]
async fn thinking_and_its_replay() {
    check(THINKING).await;
}

#[tokio::test]
async fn pictures_files_and_caches() {
    check(MEDIA).await;
}

#[tokio::test]
async fn formats() {
    check(FORMATS).await;
}

/// Two findings about one list do not overwrite each other.
#[tokio::test]
async fn a_written_spec_carries_all_of_it_with_its_evidence() {
    let case = OPTIONS.iter().find(|case| case.name == "refuses some parameters").unwrap();
    let text = probe(case.spec, case.quirk, case.twist).await.written();
    let all = "drop: [verbosity, service_tier, safety_identifier, prompt_cache_key, temperature, user, stop]";
    assert!(text.lines().any(|line| line == all), "{text}");
    assert!(text.contains("unsupported parameter: user") && text.starts_with("# What `godex probe`"), "{text}");
    assert!(prompt(&json!({})).is_empty());
}
