//! Real exchanges, from the shared folder beside the clone, through the spec of who made them: the conversation
//! is asked for again in the Responses API, and the recorded answer read with the spec's dialect.

use std::sync::Arc;

use bridge::{AnswerDialect, Events, Failure, FailureClass, Plan, PlanTarget, Policy, Setup, Unsealed};
use providers::ModelSpec;
use serde_json::{Value, json};
use testkit::{Recorded, grammar};
use wire::json::{FromRaw, Raw};
use wire::responses::CreateResponse;
use wire::sse::Decoder;

use crate::read;
use crate::specs::provider;

/// The chat request's conversation as a Responses request.
fn lifted(chat: &Value) -> Value {
    let mut input = Vec::new();
    for message in chat["messages"].as_array().into_iter().flatten() {
        let text = match &message["content"] {
            Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
            content => content.as_str().unwrap_or_default().to_owned(),
        };
        if message["role"] == "tool" {
            let output = json!({"type": "function_call_output", "call_id": message["tool_call_id"], "output": text});
            input.push(output);
            continue;
        }
        if !text.is_empty() {
            input.push(json!({"role": message["role"], "content": text}));
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let (name, arguments) = (&call["function"]["name"], &call["function"]["arguments"]);
            input.push(json!({"type": "function_call", "call_id": call["id"], "name": name, "arguments": arguments}));
        }
    }
    let tools = chat["tools"].as_array().into_iter().flatten().map(|tool| {
        let mut lifted = tool["function"].clone();
        lifted["type"] = json!("function");
        lifted
    });
    let mut request = json!({"model": chat["model"], "input": input, "stream": chat["stream"] == true});
    let tools: Vec<Value> = tools.collect();
    if !tools.is_empty() {
        request["tools"] = json!(tools);
    }
    request
}

fn plan(spec: &ModelSpec, request: &str) -> Plan {
    let request = CreateResponse::from_raw(Raw::parse(request).unwrap()).unwrap();
    let model = request.model.unwrap().decode().into_owned();
    let policy = Policy { repair_history: true, ..Policy::default() };
    bridge::plan(
        &request,
        &[],
        PlanTarget {
            model: &model,
            dialect: &spec.dialect,
            policy,
            seal: &Unsealed,
            images: None,
            files: None,
            cache_key: None,
            hosting: bridge::Hosting::default(),
        },
    )
    .unwrap()
}

/// The response that these chunks make.
fn read(name: &str, spec: &ModelSpec, plan: &Plan, chunks: &[Vec<u8>]) -> Value {
    let dialect = AnswerDialect { family: spec.dialect.family().to_owned(), ..spec.dialect.answer.clone() };
    let setup = Setup { dialect: Arc::new(dialect), prompt_bytes: plan.body.len(), ..Setup::default() };
    let echo = b",\"model\":\"m\"".to_vec().into();
    let out = read::read(plan.context.clone(), echo, setup, chunks, Events::sse());
    grammar::check(&out).unwrap_or_else(|problem| panic!("{name}: {problem}")).response
}

/// All that was said, thoughts included: what a spec takes for a thought is not the question here.
fn words(response: &Value) -> String {
    let mut words = String::new();
    for item in response["output"].as_array().into_iter().flatten() {
        for part in item["content"].as_array().into_iter().flatten() {
            words += part["text"].as_str().or(part["refusal"].as_str()).unwrap_or_default();
        }
        words += item["arguments"].as_str().unwrap_or_default();
    }
    plain(&words)
}

fn said(chunks: &[Vec<u8>]) -> String {
    let mut words = String::new();
    let mut arguments = String::new();
    for chunk in chunks {
        let Ok(chunk) = serde_json::from_slice::<Value>(chunk) else { continue };
        let choice = &chunk["choices"][0];
        let delta = if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] };
        if choice["index"].as_u64().unwrap_or(0) != 0 {
            continue;
        }
        let text = |name: &str| delta[name].as_str().unwrap_or_default();
        words += if text("reasoning_content").is_empty() { text("reasoning") } else { text("reasoning_content") };
        words += text("content");
        words += text("refusal");
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            arguments += call["function"]["arguments"].as_str().unwrap_or_default();
        }
    }
    plain(&(words + &arguments))
}

/// Letters and digits, sorted: tags, fences, blanks and the order of thoughts and words are the spec's business.
fn plain(text: &str) -> String {
    let text = ["<think>", "</think>", "```json"].iter().fold(text.to_owned(), |text, tag| text.replace(tag, ""));
    let mut letters: Vec<char> = text.chars().filter(|c| c.is_alphanumeric()).collect();
    letters.sort_unstable();
    letters.into_iter().collect()
}

#[test]
fn recordings_of_providers() {
    let Some(recordings) = testkit::recordings() else { return };
    let mut counts = [("openai", 0), ("azure", 0), ("ollama", 0), ("vllm", 0)];
    for (index, recording) in recordings.iter().enumerate() {
        let Some((spec, count)) = counts.iter_mut().find(|(spec, _)| *spec == recording.provider) else { continue };
        *count += 1;
        let name = format!("recording {index} of {spec}");
        let model = recording.request["model"].as_str().unwrap_or_default();
        let spec = provider(spec).for_model(model);
        let plan = plan(&spec, &lifted(&recording.request).to_string());
        let body: Value = serde_json::from_slice(&plan.body).unwrap();
        let users = |body: &Value| body["messages"].as_array().unwrap().iter().filter(|m| m["role"] == "user").count();
        assert!(users(&body) >= users(&recording.request), "{name}: {body}");
        let tools = |body: &Value| body["tools"].as_array().map_or(0, Vec::len);
        assert_eq!(tools(&body), tools(&recording.request), "{name}");
        let chunks: Vec<Vec<u8>> = match &recording.answer {
            Recorded::Sync(answer) => vec![answer.to_string().into_bytes()],
            Recorded::Chunks(chunks) => chunks.iter().map(|chunk| chunk.to_string().into_bytes()).collect(),
        };
        let response = read(&name, &spec, &plan, &chunks);
        assert_eq!(words(&response), said(&chunks), "{name}");
    }
    assert!(counts.iter().all(|(_, count)| *count > 10), "{counts:?}");
}

#[test]
fn recordings_of_model_servers() {
    let Some(fixtures) = testkit::fixtures() else { return };
    let mut counts = [("llama-server", "llamacpp", 0, 0), ("vllm", "vllm", 0, 0)];
    for fixture in &fixtures {
        let name = &fixture.name;
        let Some((_, spec, answers, refusals)) = counts.iter_mut().find(|(start, ..)| name.starts_with(start)) else {
            continue;
        };
        let spec = provider(spec).for_model("m");
        if fixture.status >= 400 {
            *refusals += 1;
            let failure = Failure::from_answer_in(&spec.dialect.answer, fixture.status, &fixture.body);
            let overflow = failure.class == FailureClass::ContextOverflow;
            assert_eq!(overflow, name.contains("context-overflow"), "{name}: {failure:?}");
            continue;
        }
        *answers += 1;
        let mut chunks = Vec::new();
        if fixture.streamed {
            let mut decoder = Decoder::new(1 << 22);
            decoder.push(&fixture.body);
            while let Some(event) = decoder.next_event().unwrap() {
                chunks.push(event.data.to_vec());
            }
        } else {
            chunks.push(fixture.body.clone());
        }
        let request = json!({"model": "m", "input": "?", "stream": fixture.streamed});
        let plan = plan(&spec, &request.to_string());
        assert_eq!(words(&read(name, &spec, &plan, &chunks)), said(&chunks), "{name}");
    }
    assert!(counts.iter().all(|(_, _, answers, refusals)| *answers > 50 && *refusals > 5), "{counts:?}");
}
