//! A process that is stopped for longer than its claims last, and goes on as if nothing had happened: what it writes then
//! counts for nothing, and it notices.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::killed::{SOON, Submitted, dispatched, submit};
use crate::streams::{Reader, Seen, rest};
use crate::world::{Kept, PATIENCE, World, object, request, spawn};

/// How long after the thaw it may take to see that it has lost everything.
const NOTICE: Duration = Duration::from_secs(20);
/// After that, so long is waited for writes that must not come.
const QUIET: Duration = Duration::from_secs(3);

/// A response as it is shown.
#[derive(Debug, PartialEq)]
struct Shown {
    body: Vec<u8>,
    stream: Option<Seen>,
}

async fn shown(world: &World, instance: usize, response: &Submitted) -> Shown {
    let instance = &world.instances[instance];
    let body = instance.get(&format!("/v1/responses/{}", response.id)).await.body.to_vec();
    let stream = if response.streamed { Some(rest(instance, &response.id, None).await) } else { None };
    Shown { body, stream }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_frozen_instance_writes_afterwards_counts_for_nothing() {
    let Some(world) = World::new("frozen", Kept::Postgres, ", background: {concurrency: 7}").await else { return };
    let [one, two] = &world.instances[..] else { panic!("two instances") };
    let (mut running, mut waiting) = (Vec::new(), Vec::new());
    for (tag, wish, converses) in [
        // Cancelled while it cannot hear of it.
        ("a", "n=400 pause=20", false),
        // Ends while nobody reads it, or goes on until after the thaw, or never ends.
        ("b", "n=40 pause=250", false),
        ("cp", "n=40 pause=250", true),
        ("d", "n=5000 pause=20", false),
        ("ep", "n=5000 pause=20", false),
        ("f", "n=5 end=stall", true),
        ("gp", "n=5 end=stall", false),
    ] {
        running.push(submit(one, tag, wish, converses).await);
        dispatched(&world, tag).await;
    }
    for (tag, converses) in [("h", false), ("ip", true)] {
        waiting.push(submit(one, tag, "n=4", converses).await);
    }
    // Readers there, who hear nothing for long.
    let mut readers = Vec::new();
    for response in running.iter().filter(|response| response.streamed) {
        readers.push((&response.id, spawn(Reader::new(one.resume(&response.id, None).await).into_whole())));
    }
    one.signal(Signal::STOP);
    let frozen = Instant::now();
    let left = || SOON.saturating_sub(frozen.elapsed());
    assert_eq!(object(&two.cancel(&running[0].id).await)["status"], "cancelled");
    let cancelled = frozen.elapsed();
    running[0].ends(&world, two, left(), "cancelled").await;
    for lost in &running[1..] {
        lost.ends(&world, two, left(), "failed").await;
    }
    for queued in &waiting {
        queued.ends(&world, two, left(), "completed").await;
    }
    let ended = frozen.elapsed();
    let all: Vec<&Submitted> = running.iter().chain(&waiting).collect();
    let mut before = Vec::new();
    for response in &all {
        before.push(shown(&world, 1, response).await);
    }
    one.signal(Signal::CONT);
    let thawed = Instant::now();
    for lost in &running {
        while world.upstream.calls(&lost.tag)[0].ended.is_none() {
            assert!(thawed.elapsed() < NOTICE, "{} is still listened to", lost.tag);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let noticed = thawed.elapsed();
    tokio::time::sleep(QUIET).await;
    for (response, before) in all.iter().zip(&before) {
        assert_eq!(world.upstream.calls(&response.tag).len(), 1, "{}", response.tag);
        for instance in [0, 1] {
            assert_eq!(&shown(&world, instance, response).await, before, "{} on {instance}", response.tag);
        }
    }
    for (id, reader) in readers {
        let seen = tokio::time::timeout(PATIENCE, reader).await.unwrap().unwrap();
        assert_eq!(seen, rest(two, id, None).await, "{id}");
    }
    // It goes on serving.
    let answer = object(&one.post(&request("on", "n=2", json!({}))).await);
    assert_eq!(answer["status"], "completed");
    submit(one, "on-s", "n=4", true).await.ends(&world, one, PATIENCE, "completed").await;
    println!(
        "frozen: cancelled after {:.1} s, all ended after {:.1} s; thawed, it hung up {:.1} s later, and wrote nothing",
        cancelled.as_secs_f64(),
        ended.as_secs_f64(),
        noticed.as_secs_f64()
    );
}
