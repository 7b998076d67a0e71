//! A table of good streams, and mutations of them each of which must be rejected.

mod mutations;
mod streams;

use serde_json::Value;

use super::{check, check_response};
use streams::{GOOD, good, render};

#[test]
fn accepts_every_good_stream() {
    for (name, _) in GOOD {
        let stream = check(&render(&good(name))).unwrap_or_else(|problem| panic!("{name}: {problem}"));
        check_response(&stream.response).unwrap();
        assert_eq!(stream.types()[0], "response.created", "{name}");
    }
}

#[test]
fn gives_text_and_response() {
    let stream = check(&render(&good("text"))).unwrap();
    assert_eq!(stream.text, "Hello");
    assert_eq!(stream.response["status"], "completed");
    assert_eq!(stream.events.len(), good("text").len());
}

#[test]
fn tolerates_comments_and_heartbeats() {
    let mut events = good("text");
    let heartbeat = events[1].clone();
    events.insert(5, heartbeat);
    let mut sse = b": ping\n\n".to_vec();
    sse.extend(render(&events));
    let text = String::from_utf8(sse).unwrap().replacen(
        "event: response.output_text.done",
        ": x\n\nevent: response.output_text.done",
        1,
    );
    check(text.as_bytes()).unwrap();
}

#[test]
fn rejects_every_mutation() {
    let mut accepted = Vec::new();
    for (name, stream, mutate) in mutations::EVENTS {
        let mut events = good(stream);
        mutate(&mut events);
        if check(&render(&events)).is_ok() {
            accepted.push(*name);
        }
    }
    for (name, mutate) in mutations::BYTES {
        let text = String::from_utf8(render(&good("text"))).unwrap();
        let mutated = mutate(&text);
        assert_ne!(text, mutated, "{name} changes nothing");
        if check(mutated.as_bytes()).is_ok() {
            accepted.push(*name);
        }
    }
    assert_eq!(accepted, Vec::<&str>::new(), "accepted though broken");
    assert!(mutations::EVENTS.len() + mutations::BYTES.len() >= 25);
}

#[test]
fn names_the_event_and_the_rule() {
    let mut events = good("text");
    events[4]["item_id"] = Value::from("msg_other");
    let problem = check(&render(&events)).unwrap_err();
    assert!(problem.starts_with("event 4 (response.output_text.delta): `item_id`"), "{problem}");
}
