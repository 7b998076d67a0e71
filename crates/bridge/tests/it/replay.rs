//! The stream that is written out of an object is lawful, and comes to that object again: for every response that the
//! kernel can make. And the end of what was lost.

use bridge::{End, EventReplay, Events, Failure, FailureClass, Frame, LoggedItems, Lost, replay_terminal};
use serde_json::{Value, json};
use wire::id::IdKind;
use wire::responses::EventKind;

use crate::laws::for_all;
use crate::run::{Run, delta, finish, object};

/// All that a replay says of this object, in one go and in pieces.
fn replayed(object: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = Events::sse();
    bridge::replay(object, &mut out).ok_or("no finished response")?;
    let mut pieces = EventReplay::new(object).ok_or("no finished response")?;
    let (mut piece, mut joined) = (Events::sse(), Vec::new());
    while pieces.advance(&mut piece) {
        joined.extend(piece.take());
    }
    if joined == out.bytes() { Ok(joined) } else { Err("pieces are not the whole".to_owned()) }
}

/// `text`: what the response said when it was made.
fn check(whole: &[u8], text: Option<&str>) -> Result<(), String> {
    let sse = replayed(whole)?;
    let stream = testkit::grammar::check(&sse)?;
    if stream.response != object(whole) {
        return Err(format!("{}\nis not {}", stream.response, object(whole)));
    }
    if text.is_some_and(|text| text != stream.text) {
        return Err(format!("{:?} is not {text:?}", stream.text));
    }
    let end = [br#""response":"#, whole, b"}\n\ndata: [DONE]\n\n"].concat();
    if sse.ends_with(&end) { Ok(()) } else { Err("the terminal event is not around the same bytes".to_owned()) }
}

/// An answer, and what is replayed of its object.
fn check_answer<T: AsRef<[u8]>>(run: &Run, chunks: &[T], end: &End) -> Result<(), String> {
    let (out, whole, _) = run.play(Events::sse(), chunks, end.clone());
    let text = testkit::grammar::check(out.bytes())?.text;
    check(&whole, Some(&text))
}

#[test]
fn what_is_replayed_is_lawful_and_the_same_response() {
    for_all(4_000, |number| {
        let chat = crate::laws::answer(number);
        check_answer(&chat.run, &chat.chunks, &chat.end).map_err(|problem| format!("answer {number}: {problem}"))?;
        let native = crate::native::laws::answer(number);
        check_answer(&native.run, &native.chunks, &native.end).map_err(|problem| format!("native {number}: {problem}"))
    });
}

#[test]
fn responses_of_several_answers_and_cancelled_ones_are_replayed() {
    for_all(1_000, |number| {
        let (response, whole) = crate::rounds::told(number);
        check(&whole, None).map_err(|problem| format!("conversation {number}: {problem}"))?;
        let mut cancelled = response;
        cancelled.cancel();
        let mut whole = Vec::new();
        cancelled.object(1_700_000_001, true, &mut whole);
        check(&whole, None).map_err(|problem| format!("cancelled conversation {number}: {problem}"))
    });
}

#[test]
fn a_replay_is_short_and_has_everything() {
    let logprobs = json!([{"token": "Hi", "logprob": -0.1, "bytes": [72, 105], "top_logprobs": []}]);
    let content = json!([
        {"type": "output_text", "text": "Hi \"you\"", "annotations": [{"type": "url_citation", "url": "u"}], "logprobs": logprobs},
        {"type": "refusal", "refusal": "No."},
    ]);
    let thought = json!([{"type": "reasoning_text", "text": "hm"}]);
    let output = json!([
        {"id": "rs_1", "type": "reasoning", "status": "completed", "summary": [], "encrypted_content": "x", "content": thought},
        {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": content},
        {"id": "fc_1", "type": "function_call", "status": "completed", "call_id": "c", "name": "f", "arguments": "{}"},
        {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q"}},
    ]);
    let whole = json!({"id": "resp_1", "object": "response", "created_at": 7, "status": "completed", "completed_at": 8,
        "error": null, "incomplete_details": null, "output": output, "usage": {"input_tokens": 1}, "model": "m"});
    let sse = replayed(whole.to_string().as_bytes()).unwrap();
    let stream = testkit::grammar::check(&sse).unwrap();
    let of = |kind: &str| stream.events.iter().find(|(name, _)| name == kind).unwrap().1.clone();
    let types: Vec<&str> = stream.types().iter().map(|name| name.strip_prefix("response.").unwrap()).collect();
    #[rustfmt::skip]
    let expected = [
        "created", "in_progress",
        "output_item.added", "content_part.added", "reasoning_text.delta", "reasoning_text.done", "content_part.done",
        "output_item.done",
        "output_item.added", "content_part.added", "output_text.delta", "output_text.annotation.added",
        "output_text.done", "content_part.done", "content_part.added", "refusal.delta", "refusal.done",
        "content_part.done", "output_item.done",
        "output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done",
        "output_item.added", "web_search_call.in_progress", "web_search_call.searching", "web_search_call.completed",
        "output_item.done",
        "completed",
    ];
    assert_eq!(types, expected);
    assert_eq!(of("response.output_item.added")["item"].get("encrypted_content"), None, "known at the end");
    assert_eq!(of("response.created")["response"]["model"], "m");
    for kind in ["response.output_text.delta", "response.output_text.done"] {
        assert_eq!(of(kind)["logprobs"], logprobs, "{kind}");
    }
    assert_eq!(of("response.output_text.annotation.added")["annotation"]["url"], "u");
    assert_eq!(of("response.output_text.delta")["delta"], "Hi \"you\"");
}

#[test]
fn only_what_has_ended_is_replayed() {
    let unfinished =
        |status: &str| json!({"id": "r", "object": "response", "status": status, "output": []}).to_string();
    for object in
        [unfinished("queued"), unfinished("in_progress"), "{}".to_owned(), "[".to_owned(), "\u{e9}".to_owned()]
    {
        let mut out = Events::sse();
        assert_eq!(bridge::replay(object.as_bytes(), &mut out), None, "{object}");
        assert_eq!(replay_terminal(object.as_bytes(), 3, &mut out), None, "{object}");
        assert!(out.is_empty());
    }
}

/// Whoever has seen all but the end gets the end under its own number. What comes again is valid as it was.
#[test]
fn the_terminal_event_alone_is_the_last_of_the_stream() {
    let schemas = testkit::Schemas::load();
    for (chunks, end) in [
        (vec![delta(&json!({"content": "Hi"})), finish("stop")], End::Eof),
        (vec![delta(&json!({"content": "Hi"})), finish("length")], End::Eof),
        (vec![delta(&json!({"content": "Hi"}))], End::Eof),
    ] {
        let (sse, whole, _) = Run::plain().play(Events::frames(), &chunks, end);
        let (last, json) = sse.iter().last().unwrap();
        let mut out = Events::frames();
        replay_terminal(&whole, last.sequence, &mut out).unwrap();
        assert_eq!(out.iter().collect::<Vec<_>>(), [(last, json)]);
        out.clear();
        bridge::replay(&whole, &mut out).unwrap();
        for (schemas, (_, event)) in schemas.iter().flat_map(|schemas| out.iter().map(move |event| (schemas, event))) {
            assert_eq!(crate::schemas::problems(schemas, &object(event)), Vec::<String>::new());
        }
    }
}

/// Server-sent events of these frames, without an end.
fn as_sse<'f>(frames: impl Iterator<Item = (Frame, &'f [u8])>) -> Vec<u8> {
    let event = |(frame, json): (Frame, &[u8])| {
        format!("event: {}\ndata: {}\n\n", frame.kind.name(), str::from_utf8(json).unwrap())
    };
    frames.map(event).collect::<String>().into_bytes()
}

/// What was written until the writer was gone: the object that was stored meanwhile, the finished items, the next number
/// and the events.
fn begun(queued: bool) -> (Vec<u8>, Vec<String>, u64, Events) {
    let (mut response, mut out, mut stored) = (Run::plain().response(), Events::frames(), Vec::new());
    response.open_queued(&mut out);
    let mut items = Vec::new();
    if queued {
        response.queued_object(&mut stored);
    } else {
        response.start(&mut out);
        response.running_object(&mut stored);
        for _ in 0..2 {
            let id = response.make_id(IdKind::Item);
            let [added, done] = ["in_progress", "completed"].map(|status| {
                json!({"id": id.as_str(), "type": "image_generation_call", "status": status}).to_string()
            });
            response.item(added.as_bytes(), done.as_bytes(), &mut out);
            items.push(done);
        }
    }
    let next = out.iter().last().unwrap().0.sequence + 1;
    (stored, items, next, out)
}

#[test]
fn what_was_lost_ends_with_what_was_finished() {
    let failure = Failure::new(FailureClass::Server, "The server \"died\".");
    for (queued, lost, status) in [
        (false, Lost::Failed(&failure), "failed"),
        (false, Lost::Cancelled, "cancelled"),
        (true, Lost::Failed(&failure), "failed"),
        (true, Lost::Cancelled, "cancelled"),
    ] {
        let (stored, finished, next, log) = begun(queued);
        let (mut out, mut logged) = (Events::sse(), LoggedItems::default());
        log.iter().for_each(|(_, event)| logged.event(event));
        let whole = logged.end(&stored, lost, next, &mut out).unwrap();
        assert_eq!(
            object(&whole)["output"].to_string(),
            object(format!("[{}]", finished.join(",")).as_bytes()).to_string()
        );
        let sse = [as_sse(log.iter()), out.take()].concat();
        let stream = testkit::grammar::check(&sse).unwrap_or_else(|problem| panic!("{lost:?} of {queued}: {problem}"));
        assert_eq!((&stream.response, &object(&whole)["status"]), (&object(&whole), &json!(status)));
        let mut expected = object(&stored);
        for changed in ["status", "error", "output"] {
            expected[changed] = stream.response[changed].clone();
        }
        assert_eq!(stream.response, expected, "nothing else changes");
        let message = stream.response["error"].get("message").and_then(Value::as_str);
        assert_eq!(message, matches!(lost, Lost::Failed(_)).then_some("The server \"died\"."));
        check(&whole, None).unwrap();
        assert_eq!(logged.end(&whole, lost, next, &mut out), None, "it has ended");
        assert!(out.is_empty());
    }
    assert_eq!(LoggedItems::default().end(b"[]", Lost::Cancelled, 0, &mut Events::sse()), None);
}

/// The writer is gone after any event: what is closed for it and its end make the stream whole, with all that was said.
fn check_cut(frames: &[(Frame, Vec<u8>)], cut: usize) -> Result<(), String> {
    let before = || frames.iter().take(cut).map(|(frame, event)| (*frame, event.as_slice()));
    let in_progress = before().nth(1).ok_or("too short")?.1;
    let stored = object(in_progress)["response"].to_string();
    let (mut logged, mut out) = (LoggedItems::default(), Events::sse());
    before().for_each(|(_, event)| logged.event(event));
    let whole = logged.end(stored.as_bytes(), Lost::Cancelled, cut as u64, &mut out).ok_or("not under way")?;
    let stream = testkit::grammar::check(&[as_sse(before()), out.take()].concat())?;
    let said = before().filter(|(frame, _)| frame.kind == EventKind::OutputTextDelta);
    let said: String = said.map(|(_, event)| object(event)["delta"].as_str().unwrap().to_owned()).collect();
    if stream.text != said || stream.response != object(&whole) {
        return Err(format!("{}\nis not {}, {said}", stream.response, object(&whole)));
    }
    check(&whole, Some(&said))
}

#[test]
fn a_writer_may_be_lost_at_any_event() {
    let last = |frames: &[(Frame, Vec<u8>)]| {
        frames.iter().position(|(frame, _)| {
            matches!(frame.kind, EventKind::Error | EventKind::Completed | EventKind::Incomplete)
        })
    };
    let kept = |events: Events| -> Vec<_> { events.iter().map(|(frame, event)| (frame, event.to_vec())).collect() };
    for_all(2_500, |number| {
        let chat = crate::laws::answer(number);
        let native = crate::native::laws::answer(number);
        for frames in [
            kept(chat.run.play(Events::frames(), &chat.chunks, chat.end.clone()).0),
            kept(native.run.play(Events::frames(), &native.chunks, native.end.clone()).0),
            crate::rounds::frames(number),
        ] {
            let room = last(&frames).ok_or("no end")? - 1;
            let cut = 2 + usize::try_from(number).unwrap() / 7 % room;
            check_cut(&frames, cut).map_err(|problem| format!("answer {number} cut at {cut}: {problem}"))?;
        }
        Ok(())
    });
}
