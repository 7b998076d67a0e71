//! What the memory backend evicts, and what it must not do then.

use bytes::Bytes;
use store::{Error, Item, MemoryLimits, NewTurn, Store};

use crate::make::{DEEP, after, history, tenant, turn};
use crate::model::random_trees;
use crate::turns::{begun, ended};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_keeps_the_contract() {
    crate::run_all(&Store::memory(MemoryLimits::default()).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_trees_in_memory() {
    let store = Store::memory(MemoryLimits::default()).unwrap();
    for seed in 0..4 {
        random_trees(&store, seed, 1_000).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_jobs_in_memory() {
    let store = Store::memory(MemoryLimits::default()).unwrap();
    for seed in 0..8 {
        crate::random_jobs::random_jobs(&store, seed, 1_000).await;
    }
}

#[tokio::test]
async fn the_least_recently_used_goes_first() {
    let store = Store::memory(MemoryLimits { responses: 3, ..MemoryLimits::default() }).unwrap();
    let t = tenant(&store, "t");
    for id in ["r1", "r2", "r3"] {
        t.put(turn(id, id, "a")).await.unwrap();
    }
    history(&t, "r1").await.unwrap();
    t.response("r2").await.unwrap();
    t.put(turn("r4", "r4", "a")).await.unwrap();
    assert!(matches!(t.response("r3").await, Err(Error::NotFound)));
    t.put(turn("r5", "r5", "a")).await.unwrap();
    assert!(matches!(t.response("r1").await, Err(Error::NotFound)));
    assert!(t.response("r2").await.is_ok());
}

#[tokio::test]
async fn a_turn_that_runs_is_not_evicted() {
    let store = Store::memory(MemoryLimits { responses: 3, ..MemoryLimits::default() }).unwrap();
    let t = tenant(&store, "t");
    t.begin(begun("running", "u")).await.unwrap();
    for n in 0..6 {
        t.put(turn(&format!("r{n}"), &format!("u{n}"), "a")).await.unwrap();
    }
    assert!(matches!(t.response("r3").await, Err(Error::NotFound)));
    t.finish(ended("running", "b")).await.unwrap();
    assert_eq!(history(&t, "running").await.unwrap(), "u b");
    // Then it is like the others.
    for n in 6..12 {
        t.put(turn(&format!("r{n}"), &format!("u{n}"), "a")).await.unwrap();
    }
    assert!(matches!(t.response("running").await, Err(Error::NotFound)));
}

#[tokio::test]
async fn an_evicted_ancestor_never_shortens_a_history() {
    let store = Store::memory(MemoryLimits { responses: 5, ..MemoryLimits::default() }).unwrap();
    let t = tenant(&store, "t");
    t.put(turn("r0", "u0", "a0")).await.unwrap();
    let mut expected = "u0 a0".to_owned();
    for n in 1..40 {
        t.put(after(&format!("r{}", n - 1), turn(&format!("r{n}"), &format!("u{n}"), &format!("a{n}")))).await.unwrap();
        expected = format!("{expected} u{n} a{n}");
        assert_eq!(history(&t, &format!("r{n}")).await.unwrap(), expected);
    }
    assert!(matches!(t.response("r30").await, Err(Error::NotFound)));
    assert_eq!(t.history("r39", DEEP).await.unwrap().turns.len(), 40);
}

#[tokio::test]
async fn bytes_are_bounded_and_one_too_large_is_refused() {
    let limit = 2 << 20;
    let store = Store::memory(MemoryLimits { bytes: limit, ..MemoryLimits::default() }).unwrap();
    let t = tenant(&store, "t");
    let noise = |seed: u64, length: usize| {
        let mut chance = crate::chance::Chance::new(seed);
        Bytes::from((0..length).map(|_| u8::try_from(chance.below(256)).unwrap()).collect::<Vec<u8>>())
    };
    for n in 0..400 {
        let item = Item { id: format!("i{n}"), body: noise(n, 20_000) };
        t.put(NewTurn { input: vec![item], ..turn(&format!("r{n}"), "", "a") }).await.unwrap();
    }
    let mut left = 0;
    for n in 0..400 {
        left += usize::from(t.response(&format!("r{n}")).await.is_ok());
    }
    assert!((40..105).contains(&left), "{left}");
    assert!(t.response("r399").await.is_ok());
    let huge = Item { id: "huge".into(), body: noise(1, 4 << 20) };
    assert!(matches!(t.put(NewTurn { input: vec![huge], ..turn("huge", "", "") }).await, Err(Error::Full)));
    assert!(matches!(t.response("huge").await, Err(Error::NotFound)));
    assert!(t.response("r399").await.is_ok(), "what is refused costs nobody else anything");
}

#[tokio::test]
async fn a_long_lookup_in_memory_lets_others_in() {
    crate::contract::a_long_lookup_lets_others_in(Store::memory(MemoryLimits::default()).unwrap()).await;
}
