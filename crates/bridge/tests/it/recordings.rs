//! Recorded exchanges of real providers keep their text, their calls and their usage.

use bridge::{End, Framing};
use serde_json::Value;
use testkit::Recorded;

use crate::run::{chunks, object};

#[test]
fn recorded_exchanges_come_through() {
    let Some(recordings) = testkit::recordings() else { return };
    let schemas = testkit::Schemas::load();
    assert!(recordings.len() >= 290, "{} recordings", recordings.len());
    let mut seen = 0;
    for (i, recording) in recordings.iter().enumerate() {
        let (given, text, usage): (Vec<Value>, String, &Value) = match &recording.answer {
            Recorded::Sync(completion) => {
                let text = completion["choices"][0]["message"]["content"].as_str().unwrap_or_default();
                (vec![completion.clone()], text.to_owned(), &completion["usage"])
            }
            Recorded::Chunks(list) => {
                let text = list.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
                let usage = list.iter().map(|chunk| &chunk["usage"]).rfind(|usage| !usage.is_null());
                (list.clone(), text, usage.unwrap_or(&Value::Null))
            }
        };
        if given.iter().all(|answer| answer["choices"].as_array().is_none_or(Vec::is_empty)) {
            continue;
        }
        seen += 1;
        let lines: Vec<String> = given.iter().map(Value::to_string).collect();
        let name = format!("recording {i} of {}", recording.provider);
        let stream = testkit::grammar::check(&chunks(Framing::Sse, &lines, End::Done))
            .unwrap_or_else(|problem| panic!("{name}: {problem}"));
        if stream.response["status"] != "failed" || !text.is_empty() {
            assert_eq!(stream.text, text, "{name}");
        }
        if let Some(input) = usage["prompt_tokens"].as_u64() {
            assert_eq!(stream.response["usage"]["input_tokens"], input, "{name}");
            assert_eq!(stream.response["usage"]["output_tokens"], usage["completion_tokens"], "{name}");
            assert_eq!(stream.response["usage"]["total_tokens"], usage["total_tokens"], "{name}");
        }
        assert_eq!(object(&chunks(Framing::Silent, &lines, End::Done)), stream.response, "{name}");
        if let Some(schemas) = &schemas {
            assert_eq!(schemas.response(&stream.response), Vec::<String>::new(), "{name}");
        }
    }
    assert!(seen >= 280, "only {seen} recordings had an answer");
}
