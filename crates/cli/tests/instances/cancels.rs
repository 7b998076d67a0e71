//! Cancels that race with the end of what they cancel, here and elsewhere: whoever wins, it stays so.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Value, json};
use testkit::Answer;

use crate::load::{repeat, spread};
use crate::streams::rest;
use crate::upstream::End;
use crate::world::{Chance, Kept, PATIENCE, World, ended, id_of, object, request, size};

/// What came of a race.
struct Raced {
    id: String,
    body: Bytes,
    cancelled: bool,
    /// How long after it was asked for the provider's connection was closed.
    closed: Option<Duration>,
}

async fn race(world: Arc<World>, number: usize) -> (usize, Raced) {
    let mut chance = Chance::new(number);
    let tag = format!("c{number}");
    let (stream, end) = (chance.below(2) == 0, if chance.below(4) == 0 { "stall" } else { "ok" });
    let wish = format!("n={} pause={} end={end}", 1 + chance.below(30), chance.below(10));
    let asked = request(&tag, &wish, json!({"background": true, "stream": stream}));
    let maker = world.any(chance.below(2));
    let id = if stream {
        let mut started = maker.stream(&asked).await;
        let text = started.read_until("\n\n").await.unwrap();
        id_of(&crate::streams::data(str::from_utf8(&text).unwrap().split("\n\n").next().unwrap())["response"])
    } else {
        id_of(&object(&maker.post(&asked).await))
    };
    chance.pause(200).await;
    let (one, other) = (world.any(chance.below(2)), world.any(chance.below(2)));
    let began = Instant::now();
    let answers = if chance.below(3) == 0 {
        let (first, second) = tokio::join!(one.cancel(&id), other.cancel(&id));
        vec![first, second]
    } else {
        vec![one.cancel(&id).await]
    };
    let response = ended(other, &id, PATIENCE).await;
    let cancelled = response["status"] == "cancelled";
    for answer in answers.iter().chain([&other.cancel(&id).await]) {
        expected(answer, &response);
    }
    if stream {
        assert_eq!(rest(one, &id, None).await.response(), response);
    }
    let closed = if cancelled { closed(&world, &tag, began).await } else { None };
    let body = other.get(&format!("/v1/responses/{id}")).await.body;
    (1, Raced { id, body, cancelled, closed })
}

/// What a cancel must say, given how the response ended.
fn expected(answer: &Answer, response: &Value) {
    match response["status"].as_str() {
        Some("cancelled") => assert_eq!(&object(answer), response),
        Some("completed") => {
            let error = &answer.json()["error"];
            assert_eq!((answer.status, &error["message"]), (400, &json!("Cannot cancel a completed response.")));
        }
        _ => panic!("{response}"),
    }
}

/// When the provider's connection was closed, if it was called and had not said everything.
async fn closed(world: &World, tag: &str, began: Instant) -> Option<Duration> {
    let calls = world.upstream.calls(tag);
    assert!(calls.len() <= 1, "{calls:?}");
    calls.first()?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match world.upstream.calls(tag)[0].ended {
            Some((End::HungUp, at)) => return Some(at.saturating_duration_since(began)),
            Some((End::Whole, _)) => return None,
            None => tokio::time::sleep(Duration::from_millis(10)).await,
        }
        assert!(Instant::now() < deadline, "{tag} was cancelled, and its provider is still listened to");
    }
}

async fn races(name: &str, kept: Kept, wanted: usize) {
    // Fewer places than races at once: some are cancelled in the queue.
    let Some(world) = World::new(name, kept, ", background: {concurrency: 8}").await.map(Arc::new) else { return };
    let (races, raced) = repeat(&world, wanted, 12, race).await;
    for Raced { id, body, .. } in &raced {
        for instance in &world.instances {
            assert_eq!(instance.get(&format!("/v1/responses/{id}")).await.body, body, "{id} has changed");
        }
    }
    let cancelled = raced.iter().filter(|race| race.cancelled).count();
    let (text, longest) = spread(raced.iter().filter_map(|race| race.closed).collect());
    println!(
        "{name}: {races} races, {cancelled} cancelled, 0 changed afterwards; provider's connections closed: {text}"
    );
    assert!(cancelled > races / 5 && races > cancelled, "no races at all");
    assert!(longest < Duration::from_secs(5), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_response_stays_what_it_was_at_its_end() {
    races("cancels", Kept::Postgres, size(100, 1_000)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_response_stays_what_it_was_on_a_file() {
    races("cancels-sqlite", Kept::Sqlite, size(50, 500)).await;
}
