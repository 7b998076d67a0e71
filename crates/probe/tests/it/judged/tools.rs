//! Providers that are odd about tools and reasoning.

use super::*;

pub(super) const TOOLS: &[Case] = &[
    Case {
        name: "knows no tools",
        quirk: |body| has(body, "tools").then(|| refuse(400, "this model does not support tools")),
        seen: &[
            ("tools", "refused"),
            ("calls", "skipped"),
            ("choices", "skipped"),
            ("json_schema with tools", "skipped"),
            ("images in tool results", "skipped"),
        ],
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
        name: "obeys a forced choice now and then",
        twist: |body, message| {
            let forced = body["tool_choice"] == "required" || body["tool_choice"].is_object();
            if forced && prompt(body).starts_with("Name one colour") {
                *message = json!({"role": "assistant", "content": "Blue."});
            }
        },
        seen: &[("tool_choice required", "not always"), ("tool_choice named", "not always")],
        ..PLAIN
    },
    Case {
        name: "cannot keep calls apart",
        twist: |body, message| {
            if let (Some(false), Some(calls)) =
                (body["parallel_tool_calls"].as_bool(), message["tool_calls"].as_array_mut())
            {
                let more = calls[0].clone();
                calls.push(more);
                calls[1]["id"] = json!("call_9");
            }
        },
        seen: &[("parallel calls", "yes"), ("parallel_tool_calls: false", "ignored")],
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
