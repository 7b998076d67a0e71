//! Providers that are odd about parameters and streams.

use super::*;

pub(super) const OPTIONS: &[Case] = &[
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
        name: "stops after the word",
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
