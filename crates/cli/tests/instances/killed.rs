//! `kill -9` of the process that makes responses: what it had asked a provider for is failed by the other one, what it had
//! only queued is made there; each ends once, and soon.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::streams::rest;
use crate::world::{Chance, Instance, Kept, PATIENCE, World, ended, id_of, object, request, spawn};

/// What is promised for the ends of what a process has left, with another one alive.
pub(crate) const SOON: Duration = Duration::from_secs(45);
/// The same for a process that starts again on its own file.
const SOON_AFTER_START: Duration = Duration::from_secs(10);

/// A background response that somebody was told of.
pub(crate) struct Submitted {
    pub(crate) tag: String,
    pub(crate) id: String,
    pub(crate) streamed: bool,
    pub(crate) conversation: Option<Value>,
}

/// Submits it, and does not wait for more than its id.
pub(crate) async fn submit(instance: &Instance, tag: &str, wish: &str, converses: bool) -> Submitted {
    let streamed = !tag.ends_with('p');
    let mut more = json!({"background": true, "stream": streamed});
    let mut conversation = None;
    if converses {
        let made = instance.client.post_json(&instance.url("/v1/conversations"), &json!({})).await.unwrap();
        conversation = Some(object(&made)["id"].clone());
        more["conversation"] = json!(conversation);
    }
    let asked = request(tag, wish, more);
    let id = if streamed {
        let text = instance.stream(&asked).await.read_until("\n\n").await.unwrap();
        id_of(&crate::streams::data(str::from_utf8(&text).unwrap().split("\n\n").next().unwrap())["response"])
    } else {
        id_of(&object(&instance.post(&asked).await))
    };
    Submitted { tag: tag.to_owned(), id, streamed, conversation }
}

/// Waits until the provider was asked for it.
pub(crate) async fn dispatched(world: &World, tag: &str) {
    let deadline = Instant::now() + PATIENCE;
    while world.upstream.calls(tag).is_empty() {
        assert!(Instant::now() < deadline, "nobody asked for {tag}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

impl Submitted {
    /// Waits for its end, which must be this one, the only one, and lawful; and the provider was asked once.
    pub(crate) async fn ends(&self, world: &World, instance: &Instance, patience: Duration, status: &str) -> Value {
        let response = ended(instance, &self.id, patience).await;
        assert_eq!(response["status"], status, "{}: {response}", self.tag);
        if status == "failed" {
            assert_eq!(response["error"]["code"], "server_restarted", "{response}");
        }
        if self.streamed {
            assert_eq!(rest(instance, &self.id, None).await.response(), response, "{}", self.tag);
        }
        assert_eq!(world.upstream.calls(&self.tag).len(), 1, "{}", self.tag);
        if let Some(conversation) = &self.conversation {
            let asked = request(&format!("{}+", self.tag), "n=2", json!({"conversation": conversation}));
            assert_eq!(object(&instance.post(&asked).await)["status"], "completed", "{}", self.tag);
        }
        response
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_instance_made_has_an_end() {
    let Some(world) = World::new("killed", Kept::Postgres, ", background: {concurrency: 6}").await else { return };
    let [one, two] = &world.instances[..] else { panic!("two instances") };
    let (mut running, mut waiting) = (Vec::new(), Vec::new());
    for (tag, wish, converses) in [
        ("a", "n=5 end=stall", false),
        ("b", "n=500 pause=40", false),
        ("cp", "n=5 end=stall", false),
        ("dp", "n=500 pause=40", true),
        ("e", "n=5 end=stall", true),
        ("f", "n=0 end=stall", false),
    ] {
        running.push(submit(one, tag, wish, converses).await);
        dispatched(&world, tag).await;
    }
    for (tag, converses) in [("g", false), ("hp", false), ("i", true), ("jp", true)] {
        waiting.push(submit(one, tag, "n=4", converses).await);
    }
    // Somebody follows one of them elsewhere.
    let follower = spawn(crate::streams::Reader::new(two.resume(&running[0].id, None).await).into_whole());
    one.kill();
    let killed = Instant::now();
    let left = || SOON.saturating_sub(killed.elapsed());
    for lost in &running {
        lost.ends(&world, two, left(), "failed").await;
    }
    let failed = killed.elapsed();
    for queued in &waiting {
        queued.ends(&world, two, left(), "completed").await;
        assert_eq!(world.upstream.calls(&queued.tag)[0].instance, "two");
    }
    assert_eq!(follower.await.unwrap(), rest(two, &running[0].id, None).await);
    println!(
        "killed: {} running ones failed after {:.1} s, {} waiting ones completed after {:.1} s, one end each",
        running.len(),
        failed.as_secs_f64(),
        waiting.len(),
        killed.elapsed().as_secs_f64()
    );
}

/// Killed while it takes requests: some are queued, some claimed, some dispatched, some half said.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_instance_was_told_is_done_once() {
    let Some(world) = World::new("killed-taking", Kept::Postgres, "").await.map(Arc::new) else { return };
    let told = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..60)
        .map(|number| {
            let (world, told) = (Arc::clone(&world), Arc::clone(&told));
            spawn(async move {
                Chance::new(number).pause(800).await;
                let (one, tag) = (&world.instances[0], format!("q{number}p"));
                let asked = request(&tag, "n=4 pause=30", json!({"background": true}));
                let answer = one.client.post_json(&one.url("/v1/responses"), &asked).await.ok()?;
                told.fetch_add(1, Ordering::Relaxed);
                Some((tag, id_of(&object(&answer))))
            })
        })
        .collect();
    while told.load(Ordering::Relaxed) < 20 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    world.instances[0].kill();
    let killed = Instant::now();
    let (mut told, mut failed, mut elsewhere) = (0, 0, 0);
    for task in tasks {
        let Some((tag, id)) = task.await.unwrap() else { continue };
        let response = ended(&world.instances[1], &id, SOON.saturating_sub(killed.elapsed())).await;
        let calls = world.upstream.calls(&tag);
        let completed = response["status"] == "completed";
        // One that was about to be dispatched may have been asked for by nobody.
        assert!(calls.len() == 1 || (calls.is_empty() && !completed), "{tag}: {response} {calls:?}");
        told += 1;
        failed += usize::from(!completed);
        elsewhere += usize::from(calls.iter().any(|call| call.instance == "two"));
    }
    println!(
        "killed-taking: {told} were told of, {failed} failed, {elsewhere} made by the other instance, the last after {:.1} s",
        killed.elapsed().as_secs_f64()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_process_left_in_its_file_has_an_end_soon_after_its_start() {
    let world = World::new("killed-sqlite", Kept::Sqlite, ", background: {concurrency: 4}").await.unwrap();
    let one = &world.instances[0];
    for round in 0..3 {
        let (mut running, mut waiting) = (Vec::new(), Vec::new());
        for (kind, converses) in [("a", false), ("b", true), ("cp", false), ("dp", true)] {
            running.push(submit(one, &format!("{round}{kind}"), "n=9 end=stall", converses).await);
            dispatched(&world, &running.last().unwrap().tag).await;
        }
        for (kind, converses) in [("e", false), ("f", true), ("gp", false)] {
            waiting.push(submit(one, &format!("{round}{kind}"), "n=4", converses).await);
        }
        one.kill();
        one.start();
        let started = Instant::now();
        let left = || SOON_AFTER_START.saturating_sub(started.elapsed());
        for lost in &running {
            lost.ends(&world, one, left(), "failed").await;
        }
        for queued in &waiting {
            queued.ends(&world, one, left(), "completed").await;
        }
        println!("killed-sqlite: everything has its end {:.1} s after the start", started.elapsed().as_secs_f64());
    }
}
