//! How an answer ends: what its reasons mean, and that nothing that broke off is ever completed.

use bridge::{AnswerWire, End, Events, Failure, FailureClass, Look, Opening, RoundEnd};
use serde_json::{Value, json};

use super::{begun, call, delta, ended, gist, messages, read, start, stream, text, thinking};
use crate::run::{OTHER_FORMS, Run};

fn status(blocks: &[Vec<Value>], reason: &str) -> (String, String) {
    let response = read(&stream(blocks, reason)).stream.response;
    let why = response["incomplete_details"]["reason"].as_str().or(response["error"]["code"].as_str());
    (response["status"].as_str().unwrap().to_owned(), why.unwrap_or_default().to_owned())
}

#[test]
fn reasons_mean_what_they_say() {
    let said = || vec![text("Hi")];
    for (blocks, reason, expected, why) in [
        (said(), "end_turn", "completed", ""),
        (said(), "stop_sequence", "completed", ""),
        (vec![call("a", "f", &["{}"])], "tool_use", "completed", ""),
        (said(), "max_tokens", "incomplete", "max_output_tokens"),
        (vec![thinking("Hm", "s")], "max_tokens", "incomplete", "max_output_tokens"),
        (vec![call("a", "f", &["{\"x\":"])], "max_tokens", "incomplete", "max_output_tokens"),
        (said(), "model_context_window_exceeded", "incomplete", "max_output_tokens"),
        (vec![], "model_context_window_exceeded", "failed", "context_length_exceeded"),
        (said(), "refusal", "incomplete", "content_filter"),
        (vec![], "refusal", "incomplete", "content_filter"),
        (said(), "error", "failed", "server_error"),
        (said(), "never heard of", "completed", ""),
        (vec![], "end_turn", "failed", "server_error"),
        (vec![thinking("Hm", "s")], "end_turn", "failed", "server_error"),
        // Arguments that are cut are never carried out.
        (vec![call("a", "f", &["{\"x\":"])], "tool_use", "failed", "server_error"),
        (vec![call("a", "f", &["{\"x\":"]), text("Hi")], "end_turn", "failed", "server_error"),
        (vec![call("a", "patch", &["{\"input\":\"rm"])], "end_turn", "failed", "server_error"),
    ] {
        assert_eq!(status(&blocks, reason), (expected.to_owned(), why.to_owned()), "{reason} {blocks:?}");
    }
}

/// Every cut of a good stream, wherever it is: never completed, and lawful.
#[test]
fn what_breaks_off_is_never_completed() {
    let blocks = [thinking("Hm. So.", "s"), text("Hi"), call("a", "f", &["{\"x\"", ":1}"])];
    let events: Vec<String> = stream(&blocks, "tool_use").iter().map(Value::to_string).collect();
    let broken = End::Failed(Failure::new(FailureClass::Truncated, "The connection broke."));
    for length in 0..events.len() {
        for end in [End::Eof, broken.clone()] {
            let ran = messages().run(&events[..length], end).unwrap();
            assert_eq!(ran.stream.response["status"], "failed", "{length}");
        }
    }
    assert_eq!(messages().run(&events, broken).unwrap().stream.response["status"], "completed");
    // The words of another API after a reason are an end, too.
    let mut other = events;
    other.pop();
    other.push("[DONE]".to_owned());
    assert_eq!(messages().run(&other, End::Eof).unwrap().stream.response["status"], "completed");
}

/// Blocks that overlap: a call whose input has not come yet is not completed with one that was made up.
#[test]
fn a_call_that_is_cut_in_on_is_not_completed() {
    let open = || start(&json!({"type": "tool_use", "id": "a", "name": "f", "input": {}}));
    let input = || delta(&json!({"type": "input_json_delta", "partial_json": "{\"x\":1}"}));
    for other in [
        call("b", "get_weather", &["{}"]),
        text("Hi"),
        thinking("Hm", "s"),
        vec![delta(&json!({"type": "text_delta", "text": "Hi"}))],
        vec![delta(&json!({"type": "thinking_delta", "thinking": "Hm"}))],
    ] {
        let response = read(&stream(&[vec![open()], other.clone(), vec![input()]], "tool_use")).stream.response;
        let statuses: Vec<&Value> = response["output"].as_array().unwrap().iter().map(|item| &item["status"]).collect();
        assert_eq!((&response["status"], statuses), (&json!("failed"), vec![&json!("incomplete")]), "{other:?}");
    }
    // One whose input is there has ended, whether that is said or not.
    assert_eq!(status(&[vec![open(), input()], text("Hi")], "end_turn"), ("completed".to_owned(), String::new()));
}

#[test]
fn a_refusal_says_why_where_nothing_else_was_said() {
    let refused = |blocks: &[Vec<Value>]| {
        let mut events = stream(blocks, "refusal");
        let at = events.len() - 2;
        events[at]["delta"]["stop_details"] = json!({"type": "refusal", "explanation": "Not this."});
        events
    };
    let ran = read(&refused(&[]));
    assert_eq!(
        (gist(&ran), &ran.stream.response["status"]),
        (vec!["message Not this.".to_owned()], &json!("completed"))
    );
    assert_eq!(ran.stream.response["output"][0]["content"][0]["type"], "refusal");
    let codex = Run { forms: OTHER_FORMS, ..messages() };
    let ran = super::read_as(&codex, &refused(&[]));
    assert_eq!(ran.stream.response["output"][0]["content"][0]["type"], "output_text");
    let ran = read(&refused(&[text("First")]));
    assert_eq!(ran.stream.response["incomplete_details"]["reason"], "content_filter");
    assert!(ran.notes.iter().any(|note| note.message.contains("Not this.")), "{:?}", ran.notes);
}

fn round(events: &[Value]) -> RoundEnd {
    let run = messages();
    let mut turn = run.start(Events::sse());
    let over = events.iter().any(|event| turn.chunk(event.to_string().as_bytes()) == bridge::Flow::Over);
    turn.reader.end(if over { End::Done } else { End::Eof }, &mut turn.response, &mut turn.out)
}

#[test]
fn a_pause_is_no_end() {
    let search =
        vec![start(&json!({"type": "server_tool_use", "id": "u", "name": "web_search", "input": {"query": "q"}}))];
    assert_eq!(round(&stream(&[text("I search."), search.clone()], "pause_turn")), RoundEnd::Paused);
    assert_eq!(round(&stream(&[search], "pause_turn")), RoundEnd::Paused);
    // Whatever it was doing: also between two texts, or before it has said anything.
    for blocks in [vec![text("Still.")], vec![thinking("Hm", "s"), text("Still.")], vec![thinking("Hm", "s")], vec![]] {
        assert_eq!(round(&stream(&blocks, "pause_turn")), RoundEnd::Paused, "{blocks:?}");
    }
    // Where it is not gone on from, it is neither complete nor cut for a reason that the API has.
    assert_eq!(status(&[text("Still.")], "pause_turn"), ("failed".to_owned(), "server_error".to_owned()));
    // With a call for the client, the turn is the client's.
    assert_eq!(round(&stream(&[call("a", "f", &["{}"])], "pause_turn")), RoundEnd::Completed);
}

#[test]
fn errors_have_the_class_of_their_status() {
    use FailureClass as C;
    for (error, class) in [
        (json!({"type": "overloaded_error", "message": "Overloaded"}), C::Overloaded),
        (json!({"type": "rate_limit_error", "message": "slow"}), C::RateLimit),
        (json!({"type": "invalid_request_error", "message": "no"}), C::InvalidRequest),
        (json!({"type": "authentication_error", "message": "key"}), C::Auth),
        (json!({"type": "permission_error", "message": "key"}), C::Auth),
        (json!({"type": "billing_error", "message": "pay"}), C::Quota),
        (json!({"type": "not_found_error", "message": "model: x"}), C::ModelNotFound),
        (json!({"type": "timeout_error", "message": "late"}), C::Timeout),
        (json!({"type": "api_error", "message": "oops"}), C::Server),
        (json!({"message": "oops"}), C::Server),
    ] {
        let event = json!({"type": "error", "error": error, "request_id": "req_1"});
        let RoundEnd::Failed(failure) = round(&[begun(), start(&json!({"type": "text", "text": "Hi"})), event.clone()])
        else {
            panic!("{event}")
        };
        assert_eq!(failure.class, class, "{event}");
        // First of all it is as good as a status.
        for body in [format!("event: error\ndata: {event}\n\n"), format!("data: {}\n\ndata: {event}\n\n", begun())] {
            let mut opening = Opening::new(AnswerWire::Messages, std::sync::Arc::default());
            let Look::Failed(failure) = opening.push(body.as_bytes()) else { panic!("{body}") };
            assert_eq!(failure.class, class, "{body}");
        }
    }
}

#[test]
fn the_first_content_tells_an_answer() {
    let look = |events: &[Value]| {
        let mut opening = Opening::new(AnswerWire::Messages, std::sync::Arc::default());
        let body = events.iter().map(|event| format!("data: {event}\n\n")).collect::<Vec<_>>().concat();
        match opening.push(body.as_bytes()) {
            Look::Failed(failure) => Err(failure.class),
            look => Ok(look == Look::Answer),
        }
    };
    let empty = start(&json!({"type": "text", "text": ""}));
    let ping = json!({"type": "ping"});
    assert_eq!(look(&[begun(), ping, empty.clone()]), Ok(false));
    assert_eq!(look(&[begun(), empty, delta(&json!({"type": "text_delta", "text": "a"}))]), Ok(true));
    assert_eq!(look(&[begun(), start(&json!({"type": "tool_use", "id": "a", "name": "f"}))]), Ok(true));
    assert_eq!(look(&[begun(), start(&json!({"type": "redacted_thinking", "data": "x"}))]), Ok(true));
    let [delta, stop] = ended("refusal");
    assert_eq!(look(&[begun(), delta, stop]), Ok(true));
    let [delta, stop] = ended("end_turn");
    assert_eq!(look(&[begun(), delta, stop]), Err(FailureClass::Empty));
}

#[test]
fn a_message_that_begins_twice() {
    let other = json!({"type": "message_start", "message": {"id": "msg_2", "usage": {"input_tokens": 3}}});
    let hi = || text("Hi");
    assert_eq!(
        round(&[vec![begun(), begun()], hi(), vec![begun()], ended("end_turn").to_vec()].concat()),
        RoundEnd::Completed
    );
    assert_eq!(round(&[vec![begun(), other.clone()], hi(), ended("end_turn").to_vec()].concat()), RoundEnd::Completed);
    let spliced = round(&[vec![begun()], hi(), vec![other], hi(), ended("end_turn").to_vec()].concat());
    assert!(matches!(spliced, RoundEnd::Failed(failure) if failure.class == FailureClass::Truncated));
}
