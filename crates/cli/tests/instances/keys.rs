//! The same request many times at once, under one key, on both instances: one call of the provider, one response.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Method;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::load::repeat;
use crate::world::{Chance, Instance, Kept, PATIENCE, World, request, size, spawn};

/// How long an instance is stopped: longer than its claims last.
const FROZEN: Duration = Duration::from_secs(36);

/// Every way in which a response is made: whether it is streamed, and whether in the background.
const KINDS: &[(bool, bool)] = &[(false, false), (true, false), (false, true), (true, true)];

/// What a stream ends with that nobody can get again: as a 503 to those who do not stream, it asks for another try.
const NOT_KEPT: [&str; 2] = ["took the place of this one", "The response could not be stored."];

/// The answer to one of the duplicates.
struct Answered {
    id: String,
    at: Instant,
    /// How it ends.
    last: String,
}

/// Sends one of the duplicates until it is answered, by instances in turn or always by the same one.
async fn ask(world: &World, key: &str, body: &Value, first: usize, in_turn: bool) -> Answered {
    let (deadline, mut chance) = (Instant::now() + PATIENCE, Chance::new(first));
    let mut instance = first;
    loop {
        if let Some(answered) = answer(world.any(instance), key, body).await {
            return answered;
        }
        assert!(Instant::now() < deadline, "{key} is not answered");
        chance.pause(200).await;
        instance += usize::from(in_turn);
    }
}

/// None where it runs already, and where the process was killed.
async fn answer(instance: &Instance, key: &str, body: &Value) -> Option<Answered> {
    let headers = [("content-type", "application/json"), ("idempotency-key", key)];
    let url = instance.url("/v1/responses");
    let answer = instance.client.request(Method::POST, &url, &headers, body.to_string()).await.ok()?;
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    match answer.status {
        200 if body["stream"] == true && !text.contains("data: [DONE]") => None,
        // It was held up for too long: for its key, or for what it had asked the store when it was stopped.
        200 if NOT_KEPT.iter().any(|told| text.contains(told)) => None,
        200 => {
            let at = text.find("\"resp_").unwrap() + 1;
            let id = text[at..].split('"').next().unwrap().to_owned();
            let last = text[text.floor_char_boundary(text.len().saturating_sub(400))..].to_owned();
            Some(Answered { id, at: Instant::now(), last })
        }
        // It runs already, or there is too much to do at once.
        409 | 503 => {
            assert!(answer.headers.contains_key("retry-after"), "{text}");
            None
        }
        _ => panic!("{}: {text}", answer.status),
    }
}

/// One key, and so many who use it.
async fn key(world: Arc<World>, number: usize, duplicates: usize, wish: &'static str, in_turn: bool) -> Vec<Answered> {
    let (stream, background) = KINDS[number % KINDS.len()];
    let (key, tag) = (format!("key-{number}"), format!("k{number}"));
    let body = request(&tag, wish, json!({"stream": stream, "background": background}));
    let asks: Vec<_> = (0..duplicates)
        .map(|duplicate| {
            let (world, key, body) = (Arc::clone(&world), key.clone(), body.clone());
            spawn(async move { ask(&world, &key, &body, number + duplicate, in_turn).await })
        })
        .collect();
    let mut answers = Vec::new();
    for ask in asks {
        answers.push(ask.await.unwrap());
    }
    let told: Vec<_> = answers.iter().map(|answer| (&answer.id, &answer.last)).collect();
    assert!(answers.iter().all(|answer| answer.id == answers[0].id), "{key} has several responses: {told:#?}");
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_one_response_and_one_call() {
    let Some(world) = World::new("keys", Kept::Postgres, "").await.map(Arc::new) else { return };
    let duplicates = size(8, 32);
    let (keys, _) = repeat(&world, size(50, 1_000), 8, move |world, number| async move {
        key(Arc::clone(&world), number, duplicates, "n=4 pause=20", true).await;
        let calls = world.upstream.calls(&format!("k{number}"));
        assert_eq!(calls.len(), 1, "key {number}: {calls:?}");
        (1, ())
    })
    .await;
    println!("keys: {keys} keys, each sent {duplicates} times at once: 1 response and 1 call of the provider each");
}

/// One instance is killed in the middle. A request that it had not answered may be made once more, by the other one; one
/// that anybody was told of may not.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_one_response_when_an_instance_is_killed() {
    let Some(world) = World::new("keys-killed", Kept::Postgres, "").await.map(Arc::new) else { return };
    let (count, duplicates) = (size(40, 200), size(8, 16));
    let keys: Vec<_> = (0..count)
        .map(|number| {
            let world = Arc::clone(&world);
            spawn(async move {
                Chance::new(number).pause(600).await;
                key(world, number, duplicates, "n=6 pause=50", true).await
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let killed = Instant::now();
    world.instances[0].kill();
    world.instances[0].start();
    let started = Instant::now();
    let (mut again, mut longest) = (0, Duration::ZERO);
    for (number, answers) in keys.into_iter().enumerate() {
        let answers = answers.await.unwrap();
        let background = KINDS[number % KINDS.len()].1;
        let known = answers.iter().any(|answer| answer.at < killed);
        let last = answers.iter().map(|answer| answer.at).max().unwrap();
        longest = longest.max(last.saturating_duration_since(killed));
        let calls = world.upstream.calls(&format!("k{number}"));
        match &calls[..] {
            [_] => {}
            // It was to be dispatched when its process died.
            [] if background => {}
            [first, _] => {
                // By the process that was killed: a provider may hear of it, or say its last word, a little later.
                let cut_off = first.instance == "one" && first.began < started;
                assert!(cut_off && !known && !background, "key {number}: {calls:?}");
                again += 1;
            }
            _ => panic!("key {number}: {calls:?}"),
        }
    }
    println!(
        "keys-killed: {count} keys, each sent {duplicates} times, and a kill -9: 1 response each, {again} asked again that \
         nobody was told of, all answered after {:.1} s",
        longest.as_secs_f64()
    );
}

/// One instance is stopped in the middle, and goes on when its keys are the other's: what it has made under them is nobody's
/// answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_one_response_when_an_instance_is_frozen() {
    let Some(world) = World::new("keys-frozen", Kept::Postgres, "").await.map(Arc::new) else { return };
    let (count, duplicates) = (size(24, 100), size(4, 8));
    let keys: Vec<_> = (0..count)
        .map(|number| {
            let world = Arc::clone(&world);
            spawn(async move {
                Chance::new(number).pause(600).await;
                key(world, number, duplicates, "n=12 pause=50", false).await
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(700)).await;
    world.instances[0].signal(Signal::STOP);
    let frozen = Instant::now();
    tokio::time::sleep(FROZEN).await;
    world.instances[0].signal(Signal::CONT);
    let mut again = 0;
    for (number, answers) in keys.into_iter().enumerate() {
        let answers = answers.await.unwrap();
        let background = KINDS[number % KINDS.len()].1;
        let known = answers.iter().any(|answer| answer.at < frozen);
        let calls = world.upstream.calls(&format!("k{number}"));
        match calls.len() {
            1 => {}
            // It was to be dispatched when its process stopped.
            0 if background => {}
            // Made anew: then nobody was told of what was made before.
            _ => {
                assert!(!known && !background, "key {number}: {calls:?}, answered before {frozen:?}");
                again += 1;
            }
        }
    }
    assert!(again > 0, "nothing was held up");
    println!(
        "keys-frozen: {count} keys, each sent {duplicates} times, and a process that stood still for {} s: 1 response each, \
         {again} made by the other one instead",
        FROZEN.as_secs()
    );
}
