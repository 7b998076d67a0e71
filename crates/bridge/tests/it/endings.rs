//! Every way a stream can end.

use bridge::{End, Events, Failure, FailureClass};
use serde_json::json;

use crate::run::{Run, chunks, delta, finish, whole};

fn cut() -> End {
    End::Failed(Failure::new(FailureClass::Truncated, "cut"))
}

#[test]
fn each_ending_has_its_status() {
    let text = delta(&json!({"content": "Hi"}));
    let role = delta(&json!({"role": "assistant", "content": ""}));
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}).to_string();
    let error = json!({"error": {"message": "broken", "code": 500}}).to_string();
    let done = "[DONE]".to_owned();
    let stop = finish("stop");
    for (name, given, end, status, detail) in [
        ("stop and done", vec![&text, &stop, &usage, &done], End::Eof, "completed", ""),
        ("stop, no done", vec![&text, &stop], End::Eof, "completed", ""),
        ("done, no stop", vec![&text, &done], End::Eof, "completed", ""),
        ("length", vec![&text, &finish("length"), &done], End::Eof, "incomplete", "max_output_tokens"),
        ("filter", vec![&text, &finish("content_filter"), &done], End::Eof, "incomplete", "content_filter"),
        ("unknown reason", vec![&text, &finish("whim"), &done], End::Eof, "completed", ""),
        ("failed reason", vec![&text, &finish("network_error"), &done], End::Eof, "failed", "server_error"),
        ("end of file in mid-answer", vec![&text], End::Eof, "failed", "server_error"),
        ("end of file at once", vec![], End::Eof, "failed", "server_error"),
        ("cut", vec![&text], cut(), "failed", "server_error"),
        ("cut after the finish reason", vec![&text, &stop], cut(), "completed", ""),
        ("error object", vec![&text, &error], End::Eof, "failed", "server_error"),
        ("error object after the finish reason", vec![&text, &stop, &error], End::Eof, "failed", "server_error"),
        ("not JSON", vec![&text, &"<html>".to_owned()], End::Eof, "failed", "server_error"),
        ("empty answer", vec![&role, &stop, &done], End::Eof, "failed", "server_error"),
        ("nothing but done", vec![&done], End::Eof, "failed", "server_error"),
        ("text after the finish reason", vec![&text, &stop, &text, &done], End::Eof, "completed", ""),
    ] {
        let given: Vec<&String> = given;
        let streamed =
            testkit::grammar::check(&chunks(&given, end.clone())).unwrap_or_else(|problem| panic!("{name}: {problem}"));
        let response = streamed.response;
        assert_eq!(response["status"], status, "{name}");
        let found = response["incomplete_details"]["reason"].as_str().or(response["error"]["code"].as_str());
        assert_eq!(found.unwrap_or_default(), detail, "{name}");
        assert_eq!(whole(&given, end), response, "{name}: not streamed");
    }
}

#[test]
fn text_around_the_finish_reason_is_one_text() {
    let text = delta(&json!({"content": "a"}));
    let out = chunks(&[text.clone(), finish("stop"), text, finish("length"), "[DONE]".to_owned()], End::Eof);
    let stream = testkit::grammar::check(&out).unwrap();
    assert_eq!((stream.text.as_str(), stream.response["status"].as_str()), ("aa", Some("incomplete")));
}

#[test]
fn a_heartbeat_in_mid_answer_keeps_the_grammar() {
    let mut turn = Run::plain().start(Events::sse());
    turn.response.heartbeat(&mut turn.out);
    for chunk in [delta(&json!({"content": "a"})), delta(&json!({"content": "b"}))] {
        assert_eq!(turn.chunk(chunk.as_bytes()), bridge::Flow::More);
        turn.response.heartbeat(&mut turn.out);
    }
    assert_eq!(turn.chunk(finish("stop").as_bytes()), bridge::Flow::More);
    turn.end(End::Done);
    turn.terminal();
    assert_eq!(testkit::grammar::check(turn.out.bytes()).unwrap().text, "ab");
}

#[test]
fn half_a_surrogate_pair_waits_for_the_other_half() {
    let half = |escape: &str| format!(r#"{{"choices":[{{"delta":{{"content":"{escape}"}}}}]}}"#);
    for (pieces, expected) in [
        (vec![r"a\ud83d", r"\ude00b"], "a😀b"),
        (vec![r"\ud83d", "x"], "\u{fffd}x"),
        (vec![r"\ud83d"], "\u{fffd}"),
        (vec![r"\ude00"], "\u{fffd}"),
    ] {
        let mut given: Vec<String> = pieces.iter().map(|piece| half(piece)).collect();
        given.push(finish("stop"));
        let stream = testkit::grammar::check(&chunks(&given, End::Done)).unwrap();
        assert_eq!(stream.text, expected, "{pieces:?}");
    }
}

#[test]
fn invalid_utf8_becomes_a_replacement_character() {
    let chunk = b"{\"choices\":[{\"delta\":{\"content\":\"a\xffb\"},\"finish_reason\":\"stop\"}]}".to_vec();
    let stream = testkit::grammar::check(&chunks(&[chunk], End::Done)).unwrap();
    assert_eq!(stream.text, "a\u{fffd}b");
}
