//! What was first documented of four providers, with the mistakes of then mended: low and medium keep
//! DeepSeek thinking, an unsaid effort leaves DeepSeek its own default, and a schema works while tools are offered.
//! Where a provider has changed since, it is as it is now: DeepSeek's xhigh, GLM's efforts, `MiMo`'s default.

use std::sync::Arc;

use bridge::{Events, PlanTarget, Policy, Setup, Unsealed};
use serde_json::{Value, json};
use wire::json::{FromRaw, Raw};
use wire::responses::{CreateResponse, Tail};

use crate::read::read;
use crate::specs::provider;

const FOUR: [&str; 4] = ["deepseek", "zhipu", "minimax", "xiaomi"];

fn planned<T>(spec: &str, extra: &Value, read: impl FnOnce(bridge::Plan) -> T) -> T {
    let provider = provider(spec);
    let model = provider.default_model.clone().unwrap();
    let mut request = json!({"model": model, "input": "Hi"});
    request.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    let text = request.to_string();
    let request = CreateResponse::from_raw(Raw::parse(&text).unwrap()).unwrap();
    let dialect = provider.for_model(&model).dialect;
    let target = PlanTarget {
        model: &model,
        dialect: &dialect,
        policy: Policy::default(),
        seal: &Unsealed,
        images: None,
        files: None,
        cache_key: None,
        hosting: bridge::Hosting::default(),
    };
    read(bridge::plan(&request, &[], target).unwrap_or_else(|invalid| panic!("{spec}: {invalid:?}")))
}

fn sent(spec: &str, extra: &Value) -> Value {
    planned(spec, extra, |plan| serde_json::from_slice(&plan.body).unwrap())
}

/// What the provider's answer becomes.
fn answered(spec: &str, answer: &Value) -> Value {
    planned(spec, &json!({}), |plan| {
        let setup = Setup { dialect: Arc::new(provider(spec).dialect.answer.clone()), ..Setup::default() };
        let out = read(plan.context, Tail::default(), setup, &[answer.to_string()], Events::silent());
        serde_json::from_slice(&out).unwrap()
    })
}

fn thought_before() -> Value {
    json!([
        {"role": "user", "content": "Oslo?"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "rain"},
    ])
}

#[test]
fn the_thinking_switch_by_effort() {
    let off = json!({"thinking": {"type": "disabled"}});
    let on = |effort: Option<&str>| match effort {
        Some(effort) => json!({"thinking": {"type": "enabled"}, "reasoning_effort": effort}),
        None => json!({"thinking": {"type": "enabled"}}),
    };
    let kept = json!({"thinking": {"type": "enabled", "clear_thinking": false}});
    let adaptive = json!({"thinking": {"type": "adaptive"}, "reasoning_split": true});
    let effort = |effort: &str| json!({"reasoning": {"effort": effort}});
    let history = |mut extra: Value| {
        extra["input"] = thought_before();
        extra
    };
    let with_effort = |thinking: &Value, effort: &str| {
        let mut members = thinking.clone();
        members["reasoning_effort"] = json!(effort);
        members
    };
    for (spec, extra, expected) in [
        ("deepseek", effort("high"), on(Some("high"))),
        ("deepseek", effort("xhigh"), on(Some("high"))),
        ("deepseek", effort("max"), on(Some("max"))),
        ("deepseek", effort("medium"), on(Some("high"))),
        ("deepseek", effort("low"), on(Some("low"))),
        ("deepseek", effort("minimal"), on(Some("low"))),
        ("deepseek", effort("none"), off.clone()),
        ("deepseek", json!({}), on(None)),
        ("deepseek", history(json!({})), on(None)),
        ("deepseek", history(effort("none")), on(Some("low"))),
        ("zhipu", effort("low"), with_effort(&kept, "high")),
        ("zhipu", effort("xhigh"), with_effort(&kept, "max")),
        ("zhipu", effort("none"), off.clone()),
        ("zhipu", json!({}), kept.clone()),
        ("zhipu", history(json!({})), kept),
        ("minimax", effort("medium"), adaptive),
        ("minimax", effort("none"), json!({"thinking": {"type": "disabled"}, "reasoning_split": true})),
        ("minimax", json!({}), json!({"reasoning_split": true})),
        ("xiaomi", effort("high"), on(Some("high"))),
        ("xiaomi", effort("none"), off),
        ("xiaomi", json!({}), on(None)),
        ("xiaomi", history(json!({})), on(None)),
    ] {
        let body = sent(spec, &extra);
        let keys = ["thinking", "reasoning_effort", "reasoning_split"];
        let said = keys.iter().filter_map(|key| Some(((*key).to_owned(), body.get(*key)?.clone())));
        assert_eq!(Value::Object(said.collect()), expected, "{spec} {extra}");
    }
}

#[test]
fn parameters_and_their_names() {
    let all = json!({"stream": true, "temperature": 0.5, "top_p": 0.9, "max_output_tokens": 64, "user": "u",
        "safety_identifier": "s", "text": {"format": {"type": "json_object"}}});
    for (spec, limit, user) in [
        ("deepseek", "max_tokens", "s"),
        ("zhipu", "max_tokens", "s"),
        ("minimax", "max_completion_tokens", "u"),
        ("xiaomi", "max_completion_tokens", "u"),
    ] {
        let body = sent(spec, &all);
        assert_eq!(body[limit], 64, "{spec}");
        assert_eq!(body["user_id"], user, "{spec}");
        assert_eq!((&body["temperature"], &body["top_p"]), (&json!(0.5), &json!(0.9)), "{spec}");
        assert_eq!(body["stream_options"], json!({"include_usage": true}), "{spec}");
        assert_eq!(body["response_format"], json!({"type": "json_object"}), "{spec}");
        for refused in ["user", "safety_identifier", "store", "max_output_tokens", "metadata"] {
            assert_eq!(body.get(refused), None, "{spec} {refused}");
        }
    }
}

#[test]
fn tools_and_choices() {
    let tools = json!([
        {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": true},
        {"type": "custom", "name": "c"}, {"type": "shell"}, {"type": "local_shell"}, {"type": "apply_patch"},
        {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "g"}]},
    ]);
    let named = json!({"type": "function", "name": "f"});
    let function = json!({"type": "function", "function": {"name": "f"}});
    let (auto, none) = (json!(null), json!("none"));
    for (spec, required, by_name, forbidden) in [
        ("deepseek", json!("required"), function.clone(), none.clone()),
        ("zhipu", auto.clone(), auto.clone(), none.clone()),
        ("minimax", json!("required"), function, none),
        ("xiaomi", auto.clone(), auto, json!("no tools")),
    ] {
        for (choice, expected) in [(json!("required"), required), (named.clone(), by_name), (json!("none"), forbidden)]
        {
            let body = sent(spec, &json!({"tools": tools, "tool_choice": choice}));
            let found = if body.get("tools").is_none() { json!("no tools") } else { body["tool_choice"].clone() };
            assert_eq!(found, expected, "{spec} {choice}");
        }
        let body = sent(spec, &json!({"tools": tools}));
        let tools = body["tools"].as_array().unwrap();
        assert!(tools.iter().all(|tool| tool["type"] == "function"), "{spec}: all are functions");
        let names: Vec<&str> = tools.iter().filter_map(|tool| tool["function"]["name"].as_str()).collect();
        assert_eq!(names, ["f", "c", "shell", "local_shell", "apply_patch", "n__g"], "{spec}");
        let many: Vec<Value> = (0..128).map(|i| json!({"type": "function", "name": format!("f{i}")})).collect();
        assert_eq!(sent(spec, &json!({"tools": many}))["tools"].as_array().unwrap().len(), 128, "{spec}");
        assert_eq!(provider(spec).dialect.request.tools.max, Some(128), "{spec}");
    }
}

#[test]
fn native_search() {
    let search = |size: &str| json!({"tools": [{"type": "web_search_preview", "search_context_size": size}]});
    let zhipu = &sent("zhipu", &search("high"))["tools"][0];
    assert_eq!(zhipu["web_search"]["search_result"], true);
    assert_eq!(zhipu["web_search"]["content_size"], "high");
    let xiaomi = |size| sent("xiaomi", &search(size))["tools"][0].clone();
    assert_eq!(xiaomi("high"), json!({"type": "web_search", "max_keyword": 3, "limit": 5}));
    assert_eq!(xiaomi("low"), json!({"type": "web_search", "max_keyword": 3, "limit": 3}));
    for spec in ["deepseek", "minimax"] {
        assert_eq!(sent(spec, &search("high")).get("tools"), None, "{spec}");
    }
    let files = json!({"tools": [{"type": "file_search", "vector_store_ids": ["kb"]}]});
    assert_eq!(sent("zhipu", &files)["tools"][0], json!({"type": "retrieval", "retrieval": {"knowledge_id": "kb"}}));
}

#[test]
fn a_schema_works_while_tools_are_offered() {
    let extra = json!({
        "tools": [{"type": "function", "name": "f"}],
        "text": {"format": {"type": "json_schema", "name": "x", "strict": true, "schema": {"type": "object"}}},
    });
    for spec in FOUR {
        let body = sent(spec, &extra);
        assert_eq!(body["response_format"], json!({"type": "json_object"}), "{spec}");
        assert!(body["messages"].to_string().contains("JSON Schema"), "{spec}");
        planned(spec, &extra, |plan| {
            // A turn that only calls a tool has no text, and is no failure for that.
            let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}});
            let answer = json!({"choices": [{"message": {"content": null, "tool_calls": [call]}, "finish_reason": "tool_calls"}]});
            let answer = [answer.to_string()];
            let out = read(plan.context, Tail::default(), Setup::default(), &answer, Events::silent());
            let response: Value = serde_json::from_slice(&out).unwrap();
            assert_eq!(
                (&response["status"], &response["output"][0]["type"]),
                (&json!("completed"), &json!("function_call"))
            );
        });
    }
}

#[test]
fn finish_reasons() {
    for (spec, reason, status, detail) in [
        ("deepseek", "stop", "completed", None),
        ("deepseek", "length", "incomplete", Some("max_output_tokens")),
        ("deepseek", "content_filter", "incomplete", Some("content_filter")),
        ("deepseek", "insufficient_system_resource", "failed", None),
        ("zhipu", "stop", "completed", None),
        ("zhipu", "length", "incomplete", Some("max_output_tokens")),
        ("zhipu", "sensitive", "incomplete", Some("content_filter")),
        ("zhipu", "network_error", "failed", None),
        ("zhipu", "model_context_window_exceeded", "incomplete", Some("max_output_tokens")),
        ("minimax", "stop", "completed", None),
        ("minimax", "length", "incomplete", Some("max_output_tokens")),
        ("minimax", "content_filter", "incomplete", Some("content_filter")),
        ("xiaomi", "stop", "completed", None),
        ("xiaomi", "length", "incomplete", Some("max_output_tokens")),
        ("xiaomi", "repetition_truncation", "incomplete", Some("max_output_tokens")),
    ] {
        let answer = json!({"choices": [{"message": {"content": "x"}, "finish_reason": reason}]});
        let response = answered(spec, &answer);
        assert_eq!(response["status"], status, "{spec} {reason}");
        assert_eq!(response["incomplete_details"]["reason"], json!(detail), "{spec} {reason}");
    }
}

#[test]
fn usage_and_reasoning() {
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 7, "total_tokens": 17});
    let details =
        json!({"prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 5}});
    let hit = json!({"prompt_cache_hit_tokens": 4, "completion_tokens_details": {"reasoning_tokens": 5}});
    for (spec, more) in [("deepseek", &hit), ("zhipu", &details), ("minimax", &details), ("xiaomi", &details)] {
        let mut usage = usage.clone();
        usage.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let message = json!({"content": "4", "reasoning_content": "2+2"});
        let answer = json!({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage});
        let response = answered(spec, &answer);
        assert_eq!(response["usage"]["input_tokens"], 10, "{spec}");
        assert_eq!(response["usage"]["input_tokens_details"]["cached_tokens"], 4, "{spec}");
        assert_eq!(response["usage"]["output_tokens_details"]["reasoning_tokens"], 5, "{spec}");
        assert_eq!(response["output"][0]["content"][0]["text"], "2+2", "{spec}");
        assert_eq!(response["output"][1]["content"][0]["text"], "4", "{spec}");
    }
}

#[test]
fn inputs_beyond_text() {
    let part =
        |part: Value| json!({"input": [{"role": "user", "content": [{"type": "input_text", "text": "?"}, part]}]});
    let image = part(json!({"type": "input_image", "image_url": "https://example.com/a.png"}));
    for (spec, sees) in [("deepseek", false), ("zhipu", false), ("minimax", true), ("xiaomi", false)] {
        assert_eq!(sent(spec, &image)["messages"].to_string().contains("image_url"), sees, "{spec}");
    }
    let video = part(json!({"type": "input_file", "file_url": "https://example.com/a.mp4"}));
    assert!(sent("minimax", &video)["messages"].to_string().contains("video_url"));
}
