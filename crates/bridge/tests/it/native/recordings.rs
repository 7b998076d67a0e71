//! Every recorded answer of a server's own `/v1/responses`.

use bridge::{End, Failure, FailureClass};
use serde_json::Value;
use wire::sse::Decoder;

use super::{check, native};

/// What an object says: texts and calls, in order.
fn said(output: &Value) -> Vec<String> {
    let mut said = Vec::new();
    for item in output.as_array().into_iter().flatten() {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match item["type"].as_str() {
            Some("message") => {
                let parts = item["content"].as_array().into_iter().flatten();
                said.push(parts.map(|part| text(&part["text"])).collect());
            }
            Some("function_call") => {
                let arguments = Some(text(&item["arguments"])).filter(|text| !text.is_empty());
                said.push(format!("{} {}", text(&item["name"]), arguments.unwrap_or_else(|| "{}".to_owned())));
                said.push(text(&item["call_id"]));
            }
            _ => said.push(item["type"].to_string()),
        }
    }
    said.retain(|text| !text.is_empty());
    said
}

#[test]
fn recorded_answers_come_through() {
    let Some(fixtures) = testkit::native_fixtures() else { return };
    let (mut streamed, mut whole, mut refused) = (0, 0, 0);
    let generic = crate::recordings::generic();
    for fixture in &fixtures {
        let name = &fixture.name;
        if fixture.status >= 400 {
            refused += 1;
            let failure = Failure::from_answer_in(&generic, fixture.status, &fixture.body);
            assert!(!failure.message.is_empty(), "{name}");
            if name.contains("context-overflow") {
                assert_eq!(failure.class, FailureClass::ContextOverflow, "{name}: {}", failure.message);
            }
            continue;
        }
        let mut chunks = Vec::new();
        if fixture.streamed {
            streamed += 1;
            let mut decoder = Decoder::new(1 << 22);
            decoder.push(&fixture.body);
            while let Some(event) = decoder.next_event().unwrap() {
                chunks.push(event.data.to_vec());
            }
        } else {
            whole += 1;
            chunks.push(fixture.body.clone());
        }
        let mut run = native();
        run.context.logprobs = name.contains("logprobs");
        let ran = check(&run, &chunks, End::Eof);
        let given = chunks.iter().rev().find_map(|chunk| serde_json::from_slice::<Value>(chunk).ok()).unwrap();
        let given = given.get("response").unwrap_or(&given);
        let response = &ran.stream.response;
        assert_eq!(said(&response["output"]), said(&given["output"]), "{name}");
        let empty = said(&given["output"]).is_empty();
        assert_eq!(response["status"], if empty { "failed" } else { given["status"].as_str().unwrap() }, "{name}");
        for member in ["input_tokens", "output_tokens", "total_tokens"] {
            assert_eq!(response["usage"][member], given["usage"][member], "{name}");
        }
        if name.contains("logprobs") {
            assert!(response["output"][0]["content"][0]["logprobs"][0]["logprob"].is_number(), "{name}: {response}");
        }
    }
    assert!(streamed >= 20 && whole >= 60 && refused >= 15, "{streamed} {whole} {refused}");
}
