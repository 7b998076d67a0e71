//! What every backend promises of idempotency keys.

use std::time::Duration;

use bytes::Bytes;
use store::{Error, KeyClaim, NewConversation, NewKey, NewTurn, Parent, Status, Store, Tenanted, Worker};
use tokio::task::JoinSet;

use crate::jobs::{MANY, background, by, claimed, foreground, worker};
use crate::make::{names, tenant, turn};
use crate::turns::{begun, ended};

const LEASE: Duration = Duration::from_mins(1);
const OVER: Duration = Duration::ZERO;
const DAY: Duration = Duration::from_hours(24);

/// A key of a request that is known by one byte.
pub(crate) fn key<'a>(key: &'a str, request: u8, response_id: &'a str, worker: &Worker) -> NewKey<'a> {
    NewKey { key, fingerprint: [request; 32], response_id, worker: *worker }
}

pub(crate) async fn a_key_is_one_requests(store: Store) {
    let (t, me, other) = (tenant(&store, "keys"), worker(), worker());
    let claim =
        async |request: u8, response: &str| t.claim_key(key("k", request, response, &other), LEASE, DAY).await.unwrap();
    assert_eq!(t.claim_key(key("k", 1, "r1", &me), LEASE, DAY).await.unwrap(), KeyClaim::New);
    assert_eq!(t.claim_key(key("k", 1, "r1", &me), LEASE, DAY).await.unwrap(), KeyClaim::New, "the same claim");
    assert_eq!(claim(1, "r2").await, KeyClaim::Running);
    assert_eq!(claim(2, "r2").await, KeyClaim::Different);
    let foreign = tenant(&store, "keys of another");
    assert_eq!(foreign.claim_key(key("k", 2, "r2", &other), LEASE, DAY).await.unwrap(), KeyClaim::New);
    // Nobody gives back what is not his.
    t.release_key("k", "r2").await.unwrap();
    assert_eq!(claim(1, "r2").await, KeyClaim::Running);
    t.release_key("k", "r1").await.unwrap();
    assert_eq!(claim(2, "r2").await, KeyClaim::New);
    // As soon as the response is there, in whatever status.
    t.begin(begun("r2", "u")).await.unwrap();
    assert_eq!(claim(2, "r3").await, KeyClaim::Known("r2".to_owned()));
    t.finish(ended("r2", "a")).await.unwrap();
    for _ in 0..2 {
        // Also when nobody looks after the key any more.
        store.heartbeat(&other, OVER).await.unwrap();
        assert_eq!(claim(2, "r3").await, KeyClaim::Known("r2".to_owned()));
        assert_eq!(claim(1, "r3").await, KeyClaim::Different);
    }
    t.delete_response("r2").await.unwrap();
    assert_eq!(claim(1, "r4").await, KeyClaim::New, "what it said is gone");
}

pub(crate) async fn a_key_is_free_when_its_worker_is_gone_or_its_time_is_over(store: Store) {
    let (t, gone, me) = (tenant(&store, "free keys"), worker(), worker());
    let claim = async |name: &str, response: &str| t.claim_key(key(name, 1, response, &me), LEASE, DAY).await.unwrap();
    assert_eq!(t.claim_key(key("dead", 7, "d1", &gone), OVER, DAY).await.unwrap(), KeyClaim::New);
    assert_eq!(claim("dead", "d2").await, KeyClaim::New);
    // A worker that lives keeps what it has.
    assert_eq!(t.claim_key(key("slow", 1, "s1", &gone), OVER, DAY).await.unwrap(), KeyClaim::New);
    store.heartbeat(&gone, LEASE).await.unwrap();
    assert_eq!(claim("slow", "s2").await, KeyClaim::Running);
    // The end of a key's time is no end of its request.
    assert_eq!(t.claim_key(key("short", 1, "k1", &gone), LEASE, Duration::ZERO).await.unwrap(), KeyClaim::New);
    assert_eq!(store.sweep_keys(1_000).await.unwrap(), 0);
    // But it is the end of its extending: what nobody gave back is free one day.
    assert_eq!(t.claim_key(key("leaked", 1, "l1", &gone), OVER, Duration::ZERO).await.unwrap(), KeyClaim::New);
    store.heartbeat(&gone, LEASE).await.unwrap();
    assert_eq!(claim("leaked", "l2").await, KeyClaim::New);
    assert_eq!(claim("short", "k2").await, KeyClaim::Running);
    t.put(turn("k1", "u", "a")).await.unwrap();
    assert_eq!(claim("short", "k2").await, KeyClaim::New);
    for n in 0..5 {
        let name = format!("old{n}");
        assert_eq!(t.claim_key(key(&name, 1, "o", &gone), OVER, Duration::ZERO).await.unwrap(), KeyClaim::New);
    }
    assert_eq!(store.sweep_keys(3).await.unwrap(), 3);
    assert_eq!(store.sweep_keys(3).await.unwrap(), 2);
    assert_eq!(store.sweep_keys(3).await.unwrap(), 0);
}

/// A way in which a turn is first stored.
#[derive(Debug, Clone, Copy)]
enum Way {
    Put,
    InConversation,
    Begun,
    Background,
    Foreground,
}

const WAYS: [Way; 5] = [Way::Put, Way::InConversation, Way::Begun, Way::Background, Way::Foreground];

/// Stores the response of this key, and ends it.
async fn answered(t: &Tenanted, way: Way, name: &str, id: &str) -> Result<(), Error> {
    let (key, me) = (Some(name.to_owned()), worker());
    let status = Status::InProgress;
    match way {
        Way::Put => t.put(NewTurn { key, ..turn(id, "u", "a") }).await,
        Way::InConversation => {
            let lease = t.begin_turn("c", LEASE).await?;
            let parent = Parent::Conversation(lease.clone());
            let put = t.put(NewTurn { key, parent, ..turn(id, "u", "a") }).await;
            t.end_turn(&lease).await?;
            put
        }
        Way::Begun => {
            t.begin(NewTurn { key, ..begun(id, "u") }).await?;
            t.finish(ended(id, "a")).await
        }
        Way::Background => {
            let begun = t.begin_job(NewTurn { key, ..begun(id, "u") }, background(), &me, MANY, LEASE).await?;
            t.finish(by(&claimed(begun))).await
        }
        Way::Foreground => {
            let begun = t.begin_job(NewTurn { key, status, ..begun(id, "u") }, foreground(), &me, MANY, LEASE).await?;
            t.finish(by(&claimed(begun))).await
        }
    }
}

pub(crate) async fn a_response_is_stored_under_a_key_that_is_its_own(store: Store) {
    for way in WAYS {
        let (t, gone, me) = (tenant(&store, &format!("answered {way:?}")), worker(), worker());
        let metadata = Bytes::from_static(b"{}");
        let new = NewConversation { id: "c".into(), created_at: 1, metadata, items: Vec::new() };
        t.create_conversation(new).await.unwrap();
        let claim = async |name: &str, response: &str, worker: &Worker, lease| {
            t.claim_key(key(name, 1, response, worker), lease, DAY).await.unwrap()
        };
        let refused = async |name: &str, id: &str, why: &str| {
            let outcome = answered(&t, way, name, id).await;
            assert!(matches!(outcome, Err(Error::KeyLost)), "{way:?}, {why}: {outcome:?}");
            assert!(matches!(t.response(id).await, Err(Error::NotFound)), "{way:?}, {why}");
            assert_eq!(names(&t.conversation_history("c").await.unwrap()), "", "{way:?}, {why}");
        };
        refused("never", "n1", "never claimed").await;
        // Its worker stopped for longer than its claim lasts, and another one was quicker.
        assert_eq!(claim("taken", "t1", &gone, OVER).await, KeyClaim::New);
        assert_eq!(claim("taken", "t2", &me, LEASE).await, KeyClaim::New);
        refused("taken", "t1", "another's").await;
        assert_eq!(claim("taken", "t3", &gone, LEASE).await, KeyClaim::Running);
        answered(&t, way, "taken", "t2").await.unwrap();
        let known = KeyClaim::Known("t2".to_owned());
        assert_eq!(claim("taken", "t3", &gone, LEASE).await, known, "{way:?}");
        let outcome = answered(&t, way, "taken", "t1").await;
        assert!(matches!(outcome, Err(Error::KeyLost)), "{way:?}, answered by another: {outcome:?}");
        assert_eq!(claim("taken", "t3", &gone, LEASE).await, known, "{way:?}");
        // Late, but nobody else came.
        assert_eq!(claim("late", "l1", &gone, OVER).await, KeyClaim::New);
        answered(&t, way, "late", "l1").await.unwrap();
        assert_eq!(claim("late", "l2", &me, LEASE).await, KeyClaim::Known("l1".to_owned()), "{way:?}");
        // The other one gave it back: who has the key now gets a response that nobody was told of.
        assert_eq!(claim("returned", "r1", &gone, OVER).await, KeyClaim::New);
        assert_eq!(claim("returned", "r2", &me, LEASE).await, KeyClaim::New);
        t.release_key("returned", "r2").await.unwrap();
        let outcome = answered(&t, way, "returned", "r1").await;
        assert!(matches!(outcome, Err(Error::KeyLost)), "{way:?}, given back: {outcome:?}");
        assert_eq!(claim("returned", "r3", &me, LEASE).await, KeyClaim::New, "{way:?}");
    }
}

/// Whoever gives it back may not know that its response was stored.
pub(crate) async fn a_key_is_not_given_back_while_its_response_is_there(store: Store) {
    let (t, gone, me) = (tenant(&store, "stored keys"), worker(), worker());
    let claim = async |name: &str, response: &str| t.claim_key(key(name, 1, response, &me), LEASE, DAY).await.unwrap();
    for (name, way) in ["put", "conversation", "begun", "background", "foreground"].into_iter().zip(WAYS) {
        let metadata = Bytes::from_static(b"{}");
        let new = NewConversation { id: "c".into(), created_at: 1, metadata, items: Vec::new() };
        t.create_conversation(new).await.unwrap();
        assert_eq!(t.claim_key(key(name, 1, name, &gone), OVER, DAY).await.unwrap(), KeyClaim::New);
        answered(&t, way, name, name).await.unwrap();
        t.release_key(name, name).await.unwrap();
        assert_eq!(claim(name, "other").await, KeyClaim::Known(name.to_owned()), "{way:?}");
        t.delete_response(name).await.unwrap();
        assert_eq!(claim(name, &format!("{name} again")).await, KeyClaim::New, "{way:?}: what it said is gone");
        t.delete_conversation("c").await.unwrap();
    }
    // When nothing is left of its response, not even that there was one.
    assert_eq!(t.claim_key(key("swept", 1, "s1", &gone), OVER, DAY).await.unwrap(), KeyClaim::New);
    let expires_at = Some(1_000);
    t.put(NewTurn { key: Some("swept".to_owned()), expires_at, ..turn("s1", "only here", "a") }).await.unwrap();
    assert_eq!(claim("swept", "s2").await, KeyClaim::Known("s1".to_owned()));
    while store.sweep(1_000, 100).await.unwrap() > 0 {}
    assert_eq!(claim("swept", "s2").await, KeyClaim::New);
    assert_eq!(claim("swept", "s3").await, KeyClaim::Running);
}

pub(crate) async fn a_key_is_taken_over_or_answered(store: Store) {
    let t = tenant(&store, "taken over or answered");
    taken_over_or_answered(&[t.clone(), t]).await;
}

/// One stores the response of a key, late, while another takes it over: only one of them does, and both know which.
#[expect(clippy::disallowed_methods, reason = "the test waits for what it spawns")]
pub(crate) async fn taken_over_or_answered([late, quick]: &[Tenanted; 2]) {
    let (mut answered, mut taken) = (0, 0);
    for round in 0..60 {
        let (name, ours) = (format!("k{round}"), format!("late{round}"));
        assert_eq!(late.claim_key(key(&name, 1, &ours, &worker()), OVER, DAY).await.unwrap(), KeyClaim::New);
        let put = {
            let (t, turn) =
                (late.clone(), NewTurn { key: Some(name.clone()), ..turn(&ours, &format!("u{round}"), "a") });
            tokio::spawn(async move { t.put(turn).await })
        };
        tokio::time::sleep(Duration::from_micros(100 * (round % 30))).await;
        let claim = quick.claim_key(key(&name, 1, &format!("quick{round}"), &worker()), LEASE, DAY).await.unwrap();
        match (put.await.unwrap(), claim) {
            (Ok(()), KeyClaim::Known(known)) if known == ours => answered += 1,
            (Err(Error::KeyLost), KeyClaim::New) => taken += 1,
            other => panic!("round {round}: {other:?}"),
        }
    }
    println!("{answered} answered, {taken} taken over");
}

pub(crate) async fn of_many_who_claim_a_key_one_gets_it(store: Store) {
    let handles = vec![tenant(&store, "many keys"); 4];
    one_of_many(&handles, "many").await;
}

pub(crate) async fn a_key_that_is_used_up_stays_so(store: Store) {
    let (t, foreign) = (tenant(&store, "used keys"), tenant(&store, "used keys of another"));
    while store.sweep_keys(1_000).await.unwrap() > 0 {}
    let used = async |response: &str| t.use_key("once", response, DAY).await.unwrap();
    assert_eq!(t.key_user("once").await.unwrap(), None);
    assert_eq!(used("r1").await, None);
    assert_eq!(used("r1").await, None, "the same use");
    assert_eq!(foreign.use_key("once", "r2", DAY).await.unwrap(), None, "another tenant's");
    t.put(turn("r1", "u", "a")).await.unwrap();
    store.heartbeat(&worker(), OVER).await.unwrap();
    assert_eq!(used("r2").await.as_deref(), Some("r1"));
    // What it was used for may go, it stays used.
    t.delete_response("r1").await.unwrap();
    assert_eq!(store.sweep_keys(1_000).await.unwrap(), 0);
    assert_eq!(used("r2").await.as_deref(), Some("r1"));
    assert_eq!(t.key_user("once").await.unwrap().as_deref(), Some("r1"));
    t.release_key("once", "r2").await.unwrap();
    assert_eq!(used("r2").await.as_deref(), Some("r1"), "nobody gives back what is not his");
    t.release_key("once", "r1").await.unwrap();
    assert_eq!(used("r2").await, None, "given back");
    // Its time is over.
    assert_eq!(t.use_key("short", "r1", OVER).await.unwrap(), None);
    assert_eq!(t.key_user("short").await.unwrap(), None);
    assert_eq!(t.use_key("short", "r2", DAY).await.unwrap(), None);
    assert_eq!(t.use_key("old", "r1", OVER).await.unwrap(), None);
    assert_eq!(store.sweep_keys(1_000).await.unwrap(), 1);
    let mut tasks = JoinSet::new();
    for n in 0..16 {
        let t = t.clone();
        tasks.spawn(async move { t.use_key("many", &format!("m{n}"), DAY).await.unwrap() });
    }
    let users = tasks.join_all().await;
    assert_eq!(users.iter().filter(|user| user.is_none()).count(), 1, "{users:?}");
}

/// From all of these at once.
pub(crate) async fn one_of_many(handles: &[Tenanted], name: &str) {
    for round in 0..10 {
        let name = format!("{name}{round}");
        let mut tasks = JoinSet::new();
        for n in 0..16 {
            let (t, name) = (handles[n % handles.len()].clone(), name.clone());
            tasks.spawn(async move {
                t.claim_key(key(&name, 1, &format!("{name}-{n}"), &worker()), LEASE, DAY).await.unwrap()
            });
        }
        let outcomes = tasks.join_all().await;
        assert_eq!(outcomes.iter().filter(|outcome| **outcome == KeyClaim::New).count(), 1, "{outcomes:?}");
        assert_eq!(outcomes.iter().filter(|outcome| **outcome == KeyClaim::Running).count(), 15, "{outcomes:?}");
    }
}
