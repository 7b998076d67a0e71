//! Recorded exchanges of real providers and real model servers keep their text, their calls and their usage.

use bridge::{AnswerDialect, End, Failure, FailureClass};
use providers::{Library, resolve_named};
use serde_json::{Value, json};
use testkit::Recorded;
use wire::sse::Decoder;

use crate::run::Run;
use crate::schemas::problems;

/// What a chat answer says, read as a client of that API would.
#[derive(Debug, Default, PartialEq)]
struct Said {
    text: String,
    reasoning: String,
    /// Name and arguments, in index order.
    calls: Vec<(String, String)>,
    finish: Option<String>,
    usage: Value,
}

impl Said {
    fn read(answers: &[Value]) -> Self {
        let mut said = Self::default();
        let mut calls: Vec<(Value, String, String)> = Vec::new();
        for answer in answers {
            if answer["usage"].is_object() {
                said.usage = answer["usage"].clone();
            }
            let Some(choice) = answer["choices"].as_array().and_then(|choices| choices.first()) else { continue };
            if choice["index"].as_u64().unwrap_or(0) != 0 {
                continue;
            }
            let delta = if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] };
            said.text += delta["content"].as_str().unwrap_or_default();
            let reasoning = delta["reasoning_content"].as_str().or(delta["reasoning"].as_str());
            said.reasoning += reasoning.unwrap_or_default();
            if let Some(reason) = choice["finish_reason"].as_str() {
                said.finish = Some(reason.to_owned());
            }
            for (position, call) in delta["tool_calls"].as_array().into_iter().flatten().enumerate() {
                let key = if call["index"].is_null() { json!(position) } else { call["index"].clone() };
                let arguments = match &call["function"]["arguments"] {
                    Value::String(text) => text.clone(),
                    Value::Null => String::new(),
                    other => other.to_string(),
                };
                let name = call["function"]["name"].as_str().unwrap_or_default().to_owned();
                match calls.iter_mut().find(|(known, ..)| *known == key) {
                    Some((_, _, so_far)) => so_far.push_str(&arguments),
                    None => calls.push((key, name, arguments)),
                }
            }
        }
        let whole = |text: String| if text.is_empty() { "{}".to_owned() } else { text };
        said.calls = calls.into_iter().map(|(_, name, arguments)| (name, whole(arguments))).collect();
        said
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.calls.is_empty()
    }
}

/// Both roads, both schemas, and what was said is what comes out.
fn check(name: &str, chunks: &[impl AsRef<[u8]>], end: End, said: &Said) {
    // All tools are functions here: the recordings do not say otherwise.
    let mut run = Run::default();
    run.context.tools.clear();
    let ran = run.run(chunks, end).unwrap_or_else(|problem| panic!("{name}: {problem}"));
    let response = &ran.stream.response;
    if let Some(schemas) = testkit::Schemas::if_present() {
        for (_, event) in &ran.stream.events {
            assert_eq!(problems(&schemas, event), Vec::<String>::new(), "{name}: {event}");
        }
    }
    let strict = ran.stream.events.iter().find_map(|(_, event)| crate::strict_types::problem(event));
    assert_eq!(strict, None, "{name}");
    assert_eq!(ran.stream.text, said.text, "{name}");
    let output = response["output"].as_array().unwrap();
    let of = |kind: &str| output.iter().filter(move |item| item["type"] == kind).collect::<Vec<_>>();
    let field = |item: &Value, name: &str| item[name].as_str().unwrap_or_default().to_owned();
    let reasoning: String = of("reasoning").iter().map(|item| field(&item["content"][0], "text")).collect();
    assert_eq!(reasoning, said.reasoning, "{name}");
    let calls: Vec<_> =
        of("function_call").iter().map(|call| (field(call, "name"), field(call, "arguments"))).collect();
    let expected: Vec<_> = said.calls.iter().filter(|(name, _)| !name.is_empty()).cloned().collect();
    assert_eq!(calls, expected, "{name}");
    let status = match said.finish.as_deref() {
        Some("length") => "incomplete",
        Some("stop" | "tool_calls") if !said.is_empty() => "completed",
        Some("stop" | "tool_calls") => "failed",
        _ => return,
    };
    assert_eq!(response["status"], status, "{name}");
    if said.usage["prompt_tokens"].as_u64().is_some_and(|tokens| tokens > 0) && status != "failed" {
        assert_eq!(response["usage"]["input_tokens"], said.usage["prompt_tokens"], "{name}");
        assert_eq!(response["usage"]["total_tokens"], said.usage["total_tokens"], "{name}");
    }
}

#[test]
fn recorded_exchanges_come_through() {
    let Some(recordings) = testkit::recordings() else { return };
    assert!(recordings.len() >= 290, "{} recordings", recordings.len());
    for (i, recording) in recordings.iter().enumerate() {
        let given = match &recording.answer {
            Recorded::Sync(completion) => vec![completion.clone()],
            Recorded::Chunks(list) => list.clone(),
        };
        let lines: Vec<String> = given.iter().map(Value::to_string).collect();
        check(&format!("recording {i} of {}", recording.provider), &lines, End::Done, &Said::read(&given));
    }
}

/// How the answers of a server read of which nothing is known.
pub(crate) fn generic() -> AnswerDialect {
    resolve_named(Library::BUILTIN, "openai-compatible", &|_| None).unwrap().dialect.answer
}

#[test]
fn answers_of_model_servers_come_through() {
    let Some(fixtures) = testkit::fixtures() else { return };
    let (mut answers, mut refusals) = (0, 0);
    let generic = generic();
    for fixture in &fixtures {
        let name = &fixture.name;
        if fixture.status >= 400 {
            refusals += 1;
            let failure = Failure::from_answer_in(&generic, fixture.status, &fixture.body);
            assert!(!failure.message.is_empty(), "{name}");
            if name.contains("context-overflow") && !name.contains("transformers") {
                assert_eq!(failure.class, FailureClass::ContextOverflow, "{name}: {}", failure.message);
            }
            continue;
        }
        answers += 1;
        if !fixture.streamed {
            let given: Value = serde_json::from_slice(&fixture.body).unwrap_or_else(|error| panic!("{name}: {error}"));
            check(name, &[&fixture.body], End::Done, &Said::read(&[given]));
            continue;
        }
        let mut decoder = Decoder::new(1 << 22);
        decoder.push(&fixture.body);
        let mut chunks = Vec::new();
        while let Some(event) = decoder.next_event().unwrap() {
            chunks.push(event.data.to_vec());
        }
        let given: Vec<Value> = chunks.iter().filter_map(|chunk| serde_json::from_slice(chunk).ok()).collect();
        check(name, &chunks, End::Eof, &Said::read(&given));
    }
    assert!(answers >= 330 && refusals >= 70, "{answers} answers, {refusals} refusals");
}
