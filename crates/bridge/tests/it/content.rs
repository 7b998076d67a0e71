//! How much a response has in it is counted as it is, however finely it came, over all of its answers.

use bridge::{End, Events, Failure, FailureClass, ResponseWriter};
use serde_json::{Value, json};
use wire::responses::Status;

use crate::laws::for_all;
use crate::native::native;
use crate::run::{Run, delta, finish, object};

/// Makes a chunk with this text.
type Make<'m> = Box<dyn Fn(&str) -> String + 'm>;
/// What happens to a response.
type Change<'c> = &'c dyn Fn(&mut ResponseWriter);

/// What the response has in it after these chunks, and when it has ended.
fn content(run: &Run, chunks: &[String]) -> (usize, usize) {
    let mut turn = run.start(Events::sse());
    for chunk in chunks {
        let _ = turn.chunk(chunk.as_bytes());
    }
    let held = turn.reader.content(&turn.response);
    turn.end(End::Failed(Failure::new(FailureClass::Server, "cut")));
    (held, turn.reader.content(&turn.response))
}

fn call(arguments: &str) -> Value {
    json!({"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]})
}

#[test]
fn what_comes_letter_by_letter_counts_like_the_whole() {
    let named = |name: &str| delta(&json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": name}}]}));
    let waiting = delta(&json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{"}}]}));
    let native_delta = |text: &str| json!({"type": "response.output_text.delta", "item_id": "m", "delta": text});
    let cases: [(&str, Run, Vec<String>, Make<'_>); 8] = [
        ("text", Run::default(), vec![], Box::new(|text| delta(&json!({"content": text})))),
        ("reasoning", Run::default(), vec![], Box::new(|text| delta(&json!({"reasoning_content": text})))),
        ("refusal", Run::default(), vec![], Box::new(|text| delta(&json!({"refusal": text})))),
        ("arguments", Run::default(), vec![named("f")], Box::new(|text| delta(&call(text)))),
        ("input", Run::default(), vec![named("patch")], Box::new(|text| delta(&call(text)))),
        ("a hosted call", hosted(), vec![named("clock")], Box::new(|text| delta(&call(text)))),
        (
            "text that waits for a call",
            Run::default(),
            vec![waiting],
            Box::new(|text| delta(&json!({"content": text}))),
        ),
        ("native text", native(), vec![], Box::new(|text| native_delta(text).to_string())),
    ];
    for (name, run, before, make) in cases {
        // Of arguments that begin with the same letter twice nobody can tell how they come.
        let text: String = "{\"a".chars().chain(('b'..='z').cycle().take(500)).collect();
        let letters: Vec<String> = text.chars().map(|letter| make(&letter.to_string())).collect();
        let (fine, fine_end) = content(&run, &[before.clone(), letters].concat());
        let (whole, whole_end) = content(&run, &[before, vec![make(&text)]].concat());
        assert_eq!((fine, fine_end), (whole, whole_end), "{name}");
        assert!((text.len()..text.len() + 100).contains(&whole), "{name}: {whole}");
    }
}

fn hosted() -> Run {
    let mut run = Run::default();
    let name = || "clock".to_owned();
    let kind = bridge::ToolKind::Mcp;
    run.context.tools.push(bridge::OfferedTool { provider_name: name(), kind, name: name(), namespace: None });
    run
}

#[test]
fn probabilities_citations_and_what_goes_back_count() {
    let token = |token: &str| json!({"token": token, "logprob": -0.1, "bytes": [97], "top_logprobs": []});
    let with_logprobs =
        json!({"choices": [{"index": 0, "delta": {"content": "a"}, "logprobs": {"content": [token("a")]}}]});
    let citation = json!({"type": "url_citation", "url_citation": {"url": "https://example.com/", "title": "t", "start_index": 0, "end_index": 1}});
    let details = json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x".repeat(100)}]});
    let mut run = Run::default();
    run.context.logprobs = true;
    let plain = content(&run, &[delta(&json!({"content": "a"}))]).0;
    for (name, chunk, least) in [
        ("logprobs", with_logprobs.to_string(), 50),
        ("annotations", delta(&json!({"content": "a", "annotations": [citation]})), 50),
        ("details", delta(&json!({"content": "a", "reasoning_details": details["reasoning_details"]})), 100),
    ] {
        let found = content(&run, &[chunk]).0;
        assert!(found >= plain + least, "{name}: {found} after {plain}");
    }
}

/// Whatever comes, in the end the content is the items; it is never less than what is shown of it.
#[test]
fn in_the_end_the_items_are_all_there_is() {
    let law = |number: u64, run: &Run, chunks: &[String]| {
        let mut turn = run.start(Events::silent());
        for chunk in chunks {
            let _ = turn.chunk(chunk.as_bytes());
        }
        turn.end(End::Eof);
        let (shown, counted) = (turn.response.content(), turn.reader.content(&turn.response));
        let whole = turn.terminal();
        let output = serde_json::from_slice::<Output<'_>>(&whole).unwrap().output.get().len() - "[]".len();
        if shown == output && counted >= shown {
            Ok(())
        } else {
            Err(format!("{number}: {counted}, {shown}, {output}"))
        }
    };
    for_all(5_000, |number| {
        let answer = crate::laws::answer(number);
        law(number, &answer.run, &answer.chunks)?;
        let answer = crate::native::laws::answer(number);
        law(number, &answer.run, &answer.chunks)
    });
}

#[derive(serde::Deserialize)]
struct Output<'a> {
    #[serde(borrow)]
    output: &'a serde_json::value::RawValue,
}

#[test]
fn all_answers_count() {
    let (run, mut out) = (Run::plain(), Events::silent());
    let mut response = run.response();
    response.open(&mut out);
    let mut before = 0;
    for _ in 0..3 {
        let mut reader = run.reader();
        assert_eq!(reader.content(&response), before);
        let _ = reader.chunk(delta(&json!({"content": "a".repeat(1000)})).as_bytes(), &mut response, &mut out);
        assert_eq!(reader.content(&response), before + 1000);
        let _ = reader.chunk(finish("stop").as_bytes(), &mut response, &mut out);
        let _ = reader.end(End::Eof, &mut response, &mut out);
        assert!(response.content() > before + 1000);
        before = response.content();
    }
}

fn answered() -> ResponseWriter {
    let mut turn = Run::plain().start(Events::silent());
    let _ = turn.chunk(delta(&json!({"content": "Hi"})).as_bytes());
    let _ = turn.chunk(finish("stop").as_bytes());
    turn.end(End::Eof);
    turn.response
}

/// What is too large to be sent is dropped, and a good end is none then; another end stays what it was.
#[test]
fn a_response_without_its_output_has_failed_unless_it_ended_otherwise() {
    let too_large = || Failure::new(FailureClass::Protocol, "too large");
    let other = Failure::new(FailureClass::Timeout, "late");
    let cases: [(Change<'_>, Status, Option<&str>); 3] = [
        (&|_| {}, Status::Failed, Some("too large")),
        (&|response| response.fail(other.clone()), Status::Failed, Some("late")),
        (&|response| response.cancel(), Status::Cancelled, None),
    ];
    for (change, status, message) in cases {
        let mut response = answered();
        change(&mut response);
        response.drop_output(too_large());
        let mut whole = Vec::new();
        response.object(1, true, &mut whole);
        assert_eq!(response.status(), Some(status));
        assert_eq!(response.failure().map(|failure| &*failure.message), message);
        assert_eq!((&object(&whole)["output"], response.content()), (&json!([]), 0));
    }
}

/// A turn may be cancelled while what follows an answer is under way.
#[test]
fn an_answer_ends_once() {
    let mut turn = Run::plain().start(Events::sse());
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}).to_string();
    for chunk in [delta(&json!({"content": "Hi"})), finish("stop"), usage] {
        let _ = turn.chunk(chunk.as_bytes());
    }
    turn.end(End::Eof);
    let written = turn.out.len();
    turn.end(End::Failed(Failure::new(FailureClass::Server, "cancelled")));
    assert_eq!(turn.out.len(), written);
    assert_eq!(turn.response.usage().map(|usage| usage.total_tokens), Some(3));
}
