//! The forms that events can have agree: what is parsed out of server-sent events is what the frames are, the two at
//! once are both, and the object is the same where nothing is written at all.

use bridge::{Events, Frame};
use serde_json::Value;

use crate::laws::{answer, for_all};
use crate::run::Run;

/// The JSON of each event, as a client of server-sent events reads it, with the event's name.
fn parsed(sse: &[u8]) -> Vec<(String, String)> {
    let blocks = str::from_utf8(sse).unwrap().split("\n\n").filter(|block| block.starts_with("event: "));
    let pairs = blocks.map(|block| block.strip_prefix("event: ").unwrap().split_once("\ndata: ").unwrap());
    pairs.map(|(name, data)| (name.to_owned(), data.to_owned())).collect()
}

fn framed(events: &Events) -> Vec<(String, String)> {
    let text = |(frame, json): (Frame, &[u8])| {
        let json = str::from_utf8(json).unwrap().to_owned();
        let event: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(
            (event["type"].as_str(), event["sequence_number"].as_u64()),
            (Some(frame.kind.name()), Some(frame.sequence))
        );
        (frame.kind.name().to_owned(), json)
    };
    events.iter().map(text).collect()
}

#[test]
fn all_forms_of_events_say_the_same() {
    for_all(10_000, |number| {
        let answer = answer(number);
        let play = |out| answer.run.play(out, &answer.chunks, answer.end.clone());
        let (sse, object, _) = play(Events::sse());
        let (frames, framed_object, _) = play(Events::frames());
        let (both, both_object, _) = play(Events::both());
        let (silent, silent_object, _) = play(Events::silent());
        let expected = parsed(sse.bytes());
        let agree = sse.iter().next().is_none()
            && framed(&frames) == expected
            && framed(&both) == expected
            && both.bytes() == sse.bytes()
            && silent.is_empty()
            && silent.iter().next().is_none()
            && [framed_object, both_object, silent_object].iter().all(|other| *other == object);
        if agree { Ok(()) } else { Err(format!("answer {number}: {:?}", answer.chunks)) }
    });
}

/// The JSON of a frame has nothing around it, and all frames together are all of the bytes.
#[test]
fn frames_are_all_that_is_written() {
    let (frames, ..) = Run::plain().play(Events::frames(), &[crate::quirks::text("a\nb")], bridge::End::Done);
    let joined: Vec<u8> = frames.iter().flat_map(|(_, json)| json.to_vec()).collect();
    assert_eq!(joined, frames.bytes());
    assert!(!joined.contains(&b'\n'));
}

#[test]
fn a_heartbeat_is_an_event_and_a_comment_only_where_there_are_lines() {
    for (mut out, count, commented) in [
        (Events::sse(), 0, true),
        (Events::frames(), 3, false),
        (Events::both(), 3, true),
        (Events::silent(), 0, false),
    ] {
        let mut response = Run::plain().response();
        response.open(&mut out);
        response.heartbeat(&mut out);
        assert_eq!(out.iter().count(), count, "{out:?}");
        assert_eq!(out.bytes().windows(12).any(|bytes| bytes == b": heartbeat\n"), commented);
        assert_eq!(out.is_empty(), out.is_silent());
        let bytes = out.len();
        assert_eq!(out.take().len(), bytes);
        assert!(out.is_empty() && out.iter().next().is_none());
    }
}
