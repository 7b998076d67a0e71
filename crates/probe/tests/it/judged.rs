//! One thing is odd about each of these providers; the report says which, and nothing else.

use providers::yaml::{Document, Problems, Reader};
use providers::{Library, Provider, resolve_inline};
use serde_json::{Value, json};
use testkit::Script;

use crate::model::{Quirk, Twist, no_quirk, no_twist, prompt, refuse};
use crate::rig::{Probed, probe};

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
            ("context overflow", "unclear"),
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

const OPTIONS: &[Case] = &[
    Case {
        name: "knows the new limit only",
        quirk: |body| has(body, "max_tokens").then(|| refuse(400, "use max_completion_tokens")),
        changes: &["limit_field: max_completion_tokens"],
        ..PLAIN
    },
    Case {
        name: "knows no limit",
        quirk: |body| {
            let limited = has(body, "max_tokens") || has(body, "max_completion_tokens");
            limited.then(|| refuse(400, "no limits"))
        },
        seen: &[("limit field", "none"), ("json_schema", "native")],
        ..PLAIN
    },
    Case {
        name: "refuses stream options",
        quirk: |body| has(body, "stream_options").then(|| refuse(422, "extra fields")),
        changes: &["stream_usage: omit"],
        ..PLAIN
    },
    Case {
        name: "streams without usage",
        quirk: |body| {
            let text = json!({"content": "Hello there, how are you today?"});
            (body["stream"] == true && has(body, "stream_options"))
                .then(|| crate::model::streamed(&json!({}), &text, "stop"))
        },
        seen: &[("usage in stream", "none")],
        ..PLAIN
    },
    Case {
        name: "just ends",
        quirk: |body| {
            let chunk = json!({"choices": [{"delta": {"content": "Hello"}, "finish_reason": null}]});
            let just_text = body["stream"] == true && !has(body, "tools") && !has(body, "response_format");
            just_text.then(|| Script::event_stream().event(&chunk).event(&chunk))
        },
        changes: &["answer.eof: any"],
        ..PLAIN
    },
    Case {
        name: "refuses some parameters",
        quirk: |body| {
            let odd = ["temperature", "user", "stop"].into_iter().find(|key| has(body, key))?;
            Some(refuse(400, &format!("unsupported parameter: {odd}")))
        },
        changes: &[
            "drop: [verbosity, service_tier, safety_identifier, prompt_cache_key, temperature, user]",
            "drop: [verbosity, service_tier, safety_identifier, prompt_cache_key, stop]",
        ],
        ..PLAIN
    },
    Case {
        name: "is not asked to say much",
        quirk: |body| has(body, "response_format").then(|| refuse(403, "not in your plan")),
        twist: |body, message| {
            if body["messages"].to_string().contains("image_url") {
                message["content"] = json!("No picture was rendered, and none is required.");
            }
            if has(body, "stop") {
                message["content"] = json!("Hi!");
            }
        },
        seen: &[("images", "unclear"), ("stop", "unclear"), ("json_object", "unclear"), ("json_schema", "unclear")],
        ..PLAIN
    },
    Case {
        name: "does not stop",
        twist: |body, message| {
            if has(body, "stop") {
                message["content"] = json!("Hello there!");
            }
        },
        seen: &[("stop", "ignored")],
        ..PLAIN
    },
    Case {
        name: "stops behind the word",
        twist: |body, message| {
            if has(body, "stop") {
                message["content"] = json!("He");
            }
        },
        seen: &[("stop", "left in the text")],
        ..PLAIN
    },
    Case {
        name: "knows three efforts",
        quirk: |body| {
            let effort = body["reasoning_effort"].as_str()?;
            (!["low", "medium", "high"].contains(&effort)).then(|| refuse(400, "bad effort"))
        },
        changes: &["request.reasoning.ladder: {low: low, medium: medium, high: high}"],
        seen: &[("reasoning efforts", "low, medium, high")],
        ..PLAIN
    },
    Case {
        name: "knows no effort",
        quirk: |body| has(body, "reasoning_effort").then(|| refuse(400, "unknown field")),
        changes: &["drop: [verbosity, service_tier, safety_identifier, prompt_cache_key, reasoning_effort]"],
        ..PLAIN
    },
    Case {
        name: "has no /responses and sees nothing",
        quirk: |body| {
            let blind = body["messages"].to_string().contains("image_url");
            let native = has(body, "input");
            let refused = if blind { refuse(400, "no images") } else { refuse(404, "Not Found") };
            (blind || native).then_some(refused)
        },
        changes: &["request.content.images: none"],
        seen: &[("native /responses", "no")],
        ..PLAIN
    },
    Case {
        name: "has its own words for too long",
        quirk: |body| {
            let long = body["messages"].to_string().len() > 100_000;
            long.then(|| refuse(400, "Sorry: 480000 is more than your plan's token allowance of 4096"))
        },
        changes: &["answer.overflow: [\"is more than your plan's token allowance of\"]"],
        seen: &[("context overflow", "not recognised")],
        ..PLAIN
    },
    Case {
        name: "says too long as others do",
        quirk: |body| {
            let long = body["messages"].to_string().len() > 100_000;
            long.then(|| refuse(400, "This model's maximum context length is 4096 tokens."))
        },
        seen: &[("context overflow", "recognised")],
        ..PLAIN
    },
];

const TOOLS: &[Case] = &[
    Case {
        name: "knows no tools",
        quirk: |body| has(body, "tools").then(|| refuse(400, "this model does not support tools")),
        seen: &[("tools", "refused"), ("strict tools", "skipped"), ("json_schema with tools", "skipped")],
        ..PLAIN
    },
    Case {
        name: "never calls",
        twist: |_, message| {
            if message["tool_calls"].is_array() {
                *message = json!({"role": "assistant", "content": "I would rather talk."});
            }
        },
        seen: &[
            ("tools", "unclear"),
            ("tool_choice required", "unclear"),
            ("tool_choice named", "unclear"),
            ("tool_choice none", "unclear"),
            ("parallel calls", "unclear"),
            ("calls in a stream", "unclear"),
        ],
        ..PLAIN
    },
    Case {
        name: "cannot be forced",
        quirk: |body| (body["tool_choice"] == "required").then(|| refuse(400, "required is not supported")),
        twist: |body, message| {
            if body["tool_choice"].is_object() {
                *message = json!({"role": "assistant", "content": "Hello!"});
            }
        },
        // `any` is taken by this one.
        changes: &["request.tools.choices: [auto, none, required]", "request.tools.required_word: any"],
        seen: &[("tool_choice named", "ignored"), ("tool_choice required", "yes")],
        ..PLAIN
    },
    Case {
        name: "cannot be forced while it thinks",
        spec: "qwen",
        quirk: |body| {
            let forced = body["tool_choice"] == "required" || body["tool_choice"].is_object();
            let thinks = body["enable_thinking"] != false;
            (forced && thinks).then(|| refuse(400, "not in thinking mode"))
        },
        changes: &["json_schema: native", "request.content.images: data"],
        seen: &[("tool_choice required", "yes"), ("tool_choice named", "yes")],
        ..PLAIN
    },
    Case {
        name: "cannot be forced while it thinks, and nobody knew",
        spec: "llamacpp",
        quirk: |body| {
            let forced = ["required", "any"].iter().any(|word| body["tool_choice"] == *word);
            let thinks = body["chat_template_kwargs"]["enable_thinking"] != false;
            ((forced || body["tool_choice"].is_object()) && thinks).then(|| refuse(400, "it thinks"))
        },
        changes: &[
            "request.tools.forced_while_thinking: drop_thinking",
            "request.tools.choices: [auto, none, required, function]",
        ],
        ..PLAIN
    },
    Case {
        name: "calls in its text where it must not call",
        twist: |body, message| {
            if body["tool_choice"] == "none" {
                message["content"] = json!("<tool_call>\n{\"name\": \"get_weather\"}\n</tool_call>");
            }
        },
        changes: &["request.tools.choices: [auto, required, function]"],
        seen: &[("tool_choice none", "ignored")],
        ..PLAIN
    },
    Case {
        name: "one call at a time unless asked",
        twist: |body, message| {
            if let (false, Some(calls)) = (body["parallel_tool_calls"] == true, message["tool_calls"].as_array_mut()) {
                calls.truncate(1);
            }
        },
        changes: &["request.tools.parallel: always"],
        seen: &[("parallel calls", "always"), ("parallel_tool_calls: false", "unclear")],
        ..PLAIN
    },
    Case {
        name: "refuses strict and the parallel flag",
        quirk: |body| {
            let strict = body["tools"].to_string().contains("strict");
            (strict || has(body, "parallel_tool_calls")).then(|| refuse(400, "unknown member"))
        },
        changes: &[
            "drop: [verbosity, service_tier, safety_identifier, prompt_cache_key, parallel_tool_calls]",
            "request.tools.schema: [no_strict]",
        ],
        ..PLAIN
    },
    Case {
        name: "fails on null content and on odd ids",
        quirk: |body| {
            let call = calling(body)?;
            let id = call["tool_calls"][0]["id"].as_str()?;
            let odd = call.get("content").is_some_and(Value::is_null) || id.len() != 9;
            odd.then(|| refuse(500, "Internal Server Error"))
        },
        changes: &["request.messages.absent_content: empty", "request.messages.call_ids: alnum9"],
        ..PLAIN
    },
    Case {
        name: "wants its reasoning back",
        quirk: |body| {
            let call = calling(body)?;
            (!has(call, "reasoning_content")).then(|| refuse(400, "reasoning_content must be passed back"))
        },
        twist: |_, message| message["reasoning_content"] = json!("Let me think about that."),
        changes: &["request.reasoning.replay: tools", "request.reasoning.placeholder: true"],
        seen: &[
            ("reasoning in answers", "reasoning_content"),
            ("think tags", "off"),
            ("content beside calls", "unclear"),
            ("reasoning replay", "needed on calls"),
        ],
        ..PLAIN
    },
    Case {
        name: "wants its reasoning back, as declared",
        spec: "deepseek",
        quirk: |body| {
            let call = calling(body)?;
            (!has(call, "reasoning_content")).then(|| refuse(400, "reasoning_content must be passed back"))
        },
        twist: |_, message| message["reasoning_content"] = json!("Let me think about that."),
        changes: &["json_schema: native", "request.content.images: data"],
        seen: &[
            ("content beside calls", "null"),
            ("call ids", "any"),
            ("reasoning replay", "needed on calls"),
            ("thinking switch", "ignored"),
        ],
    },
    Case {
        name: "does not care about reasoning",
        twist: |_, message| message["reasoning_content"] = json!("Let me think about that."),
        seen: &[("reasoning replay", "optional")],
        ..PLAIN
    },
    Case {
        name: "thinks in its text",
        twist: |_, message| {
            if let Some(text) = message["content"].as_str() {
                message["content"] = json!(format!("<think>\nHm.\n</think>\n{text}"));
            }
        },
        changes: &["answer.think_tags: leading"],
        seen: &[("reasoning in answers", "<think>"), ("developer role", "developer obeyed, system obeyed")],
        ..PLAIN
    },
    Case {
        name: "begins inside of a thought",
        twist: |_, message| {
            if let Some(text) = message["content"].as_str() {
                message["content"] = json!(format!("Hm.\n</think>\n{text}"));
            }
        },
        changes: &["answer.think_tags: opened"],
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
