//! A response that is queued by one writer and made by another, and what is cancelled.

use bridge::{End, Events, Failure, FailureClass, ResponseWriter};
use serde_json::{Value, json};
use wire::id::{Id, Ids};
use wire::json::{FromRaw, Raw};
use wire::responses::{CreateResponse, Status, Tail};

use crate::run::{Run, delta, finish, object};

/// How the second writer ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Completed,
    CancelledInQueue,
    CancelledInText,
    FailedInQueue,
}

fn echo() -> Tail {
    let request = Raw::parse(r#"{"model":"m","input":"Hello","background":true}"#).unwrap();
    bridge::echo(&CreateResponse::from_raw(request).unwrap()).unwrap()
}

/// All events, and the object at the end.
fn told(ending: Ending) -> (Vec<u8>, Value) {
    let (run, mut out, mut stored) = (Run::plain(), Events::sse(), Vec::new());
    let mut first = ResponseWriter::new(Ids::new([7; 24]), 1_700_000_000, echo(), true);
    first.open_queued(&mut out);
    first.queued_object(&mut stored);
    assert_eq!(object(&stored)["status"], "queued");

    let id = Id::given(object(&stored)["id"].as_str().unwrap()).unwrap();
    let ids = Ids::of(id.as_str(), 0).unwrap();
    let mut response = ResponseWriter::with_id(id, ids, 1_700_000_000, echo(), true);
    response.resume(2);
    if matches!(ending, Ending::Completed | Ending::CancelledInText) {
        response.start(&mut out);
        let mut reader = run.reader();
        let mut end = End::Eof;
        let _ = reader.chunk(delta(&json!({"content": "Hi"})).as_bytes(), &mut response, &mut out);
        if ending == Ending::Completed {
            let _ = reader.chunk(finish("stop").as_bytes(), &mut response, &mut out);
        } else {
            end = End::Failed(Failure::new(FailureClass::Server, "nobody wants it"));
        }
        let end = reader.end(end, &mut response, &mut out);
        response.finish(end);
    }
    match ending {
        Ending::Completed => {}
        Ending::CancelledInQueue | Ending::CancelledInText => response.cancel(),
        Ending::FailedInQueue => response.fail(Failure::new(FailureClass::Server, "too late")),
    }
    let mut end = Vec::new();
    response.object(1_700_000_001, true, &mut end);
    response.terminal(&end, &mut out);
    (out.take(), object(&end))
}

#[test]
fn another_writer_goes_on_where_the_first_stopped() {
    let schemas = testkit::Schemas::load();
    for (ending, status, types) in [
        (Ending::Completed, "completed", ["response.in_progress", "response.completed"]),
        (Ending::CancelledInText, "cancelled", ["response.in_progress", "response.failed"]),
        (Ending::CancelledInQueue, "cancelled", ["response.failed", "response.failed"]),
        (Ending::FailedInQueue, "failed", ["error", "response.failed"]),
    ] {
        let (sse, end) = told(ending);
        let stream = testkit::grammar::check(&sse).unwrap_or_else(|problem| panic!("{ending:?}: {problem}"));
        assert_eq!(stream.response, end);
        assert_eq!((&end["status"], &end["background"]), (&json!(status), &json!(true)), "{ending:?}");
        let seen = stream.types();
        assert_eq!(seen[..2], ["response.created", "response.queued"]);
        assert_eq!([seen[2], seen[seen.len() - 1]], types, "{ending:?}");
        for (name, event) in schemas.iter().flat_map(|_| &stream.events) {
            let problems = crate::schemas::problems(schemas.as_ref().unwrap(), event);
            assert_eq!(problems, Vec::<String>::new(), "{name}: {event}");
        }
    }
}

#[test]
fn what_is_cancelled_keeps_what_was_said() {
    let (_, end) = told(Ending::CancelledInText);
    assert_eq!(end["output"][0]["content"][0]["text"], "Hi");
    assert_eq!(end["output"][0]["status"], "incomplete");
    assert_eq!((&end["error"], &end["completed_at"]), (&Value::Null, &Value::Null));
}

#[test]
fn what_is_cancelled_after_its_failure_is_cancelled() {
    let mut response = Run::plain().response();
    response.fail(Failure::new(FailureClass::Server, "cut"));
    response.cancel();
    assert_eq!((response.status(), response.failure()), (Some(Status::Cancelled), None));
}

#[test]
fn the_object_before_its_end_is_what_the_events_say() {
    let (mut response, mut out) = (Run::plain().response(), Events::frames());
    response.open_queued(&mut out);
    response.start(&mut out);
    let [mut queued, mut running] = [Vec::new(), Vec::new()];
    response.queued_object(&mut queued);
    response.running_object(&mut running);
    let shown: Vec<Value> = out.iter().map(|(_, json)| object(json)["response"].clone()).collect();
    assert_eq!(shown, [object(&queued), object(&queued), object(&running)]);
}
