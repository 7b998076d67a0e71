//! Streams that are broken off anywhere and gone on with anywhere else: all pieces together are the one stream, byte for byte.

use std::sync::Arc;

use serde_json::json;

use crate::load::repeat;
use crate::streams::{Reader, Seen, data, rest};
use crate::world::{Chance, Kept, World, id_of, object, request, size, spawn};

/// Readers of a response at once, while it is made.
const READERS: usize = 3;
/// Looks at each response after its end.
const AFTERWARDS: usize = 8;

/// How responses end, and what is asked of the provider for that.
const KINDS: &[(&str, &str)] = &[
    ("completed", "end=ok"),
    ("failed", "end=cut"),
    ("cancelled", "end=stall"),
    ("incomplete", "end=length"),
    ("completed", "end=ok"),
];

/// One response, read by several who lose their connections all the time. Counts the resumes.
async fn one(world: Arc<World>, number: usize) -> (usize, ()) {
    let mut chance = Chance::new(number);
    let (status, end) = KINDS[number % KINDS.len()];
    let wish = format!("n={} pause={} {end}", 2 + chance.below(50), chance.below(12));
    // What is made for a waiting client goes on without it as well.
    let background = status == "cancelled" || chance.below(4) > 0;
    let asked = request(&format!("r{number}"), &wish, json!({"background": background, "stream": true}));
    // Made by one of them, and cancelled by any.
    let mut maker = Reader::new(world.any(chance.below(2)).stream(&asked).await);
    let created = maker.next().await.unwrap();
    let id = id_of(&data(&created)["response"]);
    let readers: Vec<_> = (0..READERS)
        .map(|reader| spawn(pieces(Arc::clone(&world), id.clone(), Chance::new(number * READERS + reader + 7))))
        .collect();
    if status == "cancelled" {
        chance.pause(300).await;
        object(&world.any(chance.below(2)).cancel(&id).await);
    }
    let mut whole = maker.read(usize::MAX).await;
    whole.events.insert(0, created);
    let response = whole.response();
    assert_eq!(response["status"], status, "{response}");
    let mut resumes = 0;
    for reader in readers {
        let (pieces, count) = reader.await.unwrap();
        assert_eq!(pieces, whole, "{id}");
        resumes += count;
    }
    let last = whole.last_number().unwrap();
    for look in 0..AFTERWARDS {
        let instance = world.any(chance.below(2));
        // Also from its end on, and from beyond.
        let after = chance.below(usize::try_from(last).unwrap() + 4) as u64;
        let after = if look == 0 { None } else { Some(after) };
        let expected = after.map_or_else(|| whole.clone(), |after| whole.after(after));
        assert_eq!(rest(instance, &id, after).await, expected, "{id} after {after:?} of {last}");
        assert_eq!(object(&instance.get(&format!("/v1/responses/{id}")).await), response);
    }
    (resumes + AFTERWARDS, ())
}

/// Reads a stream in pieces, each somewhere: all of it, and in how many.
async fn pieces(world: Arc<World>, id: String, mut chance: Chance) -> (Seen, usize) {
    let (mut all, mut count) = (Seen::default(), 0);
    while !all.done {
        let stream = world.any(chance.below(2)).resume(&id, all.last_number()).await;
        let most = if chance.below(8) == 0 { usize::MAX } else { chance.below(10) };
        let piece = Reader::new(stream).read(most).await;
        all.events.extend(piece.events);
        all.done = piece.done;
        count += 1;
    }
    (all, count)
}

async fn resumed(name: &str, kept: Kept, wanted: usize) {
    let Some(world) = World::new(name, kept, ", resume_foreground: true").await.map(Arc::new) else { return };
    let (resumes, responses) = repeat(&world, wanted, 12, one).await;
    println!("{name}: {resumes} resumes of {} responses, each byte-equal to the whole stream", responses.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_resumed_anywhere_on_either_instance() {
    resumed("resumes", Kept::Postgres, size(500, 10_000)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_resumed_through_a_pooler() {
    resumed("resumes-pooled", Kept::Pooled, size(120, 1_000)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_resumed_on_a_file() {
    resumed("resumes-sqlite", Kept::Sqlite, size(200, 5_000)).await;
}
