//! Several instances on one Postgres: jobs, keys and hints.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use store::{Begun, Error, EventLimits, JobLimits, KeyClaim, NewNotice, NewTurn, Status, Store, TurnEnd};
use testkit::Pooler;
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::jobs::{background, begin, by, claimed, worker};
use crate::keys::{key, one_of_many, taken_over_or_answered};
use crate::make::{history, tenant, turn};
use crate::outages::{address, options};
use crate::postgres::{client, postgres};
use crate::server::Opened;
use crate::turns::{begun, ended, events};

const LEASE: Duration = Duration::from_mins(1);
const OVER: Duration = Duration::ZERO;
/// How long something is waited for that comes soon.
const SOON: Duration = Duration::from_secs(30);

/// Both begin, claim and end jobs of two tenants, as fast as they can: never do more run than may, and each runs once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn caps_hold_over_instances_and_each_job_runs_once() {
    let server = postgres!();
    let (one, two) = (server.store().await, server.store().await);
    let limits = JobLimits { running: 3, queued: 8 };
    let running: Arc<[AtomicUsize; 2]> = Arc::default();
    let mut tasks = JoinSet::new();
    for n in 0..8 {
        let (store, running, me) = (if n % 2 == 0 { one.clone() } else { two.clone() }, Arc::clone(&running), worker());
        tasks.spawn(async move {
            let (mut ran, mut refused, mut waited) = (Vec::new(), 0, 0);
            let started = |tenant: usize| {
                let now = running[tenant].fetch_add(1, Ordering::SeqCst) + 1;
                assert!(now <= 3, "{now} of tenant {tenant} run");
            };
            for round in 0..30 {
                let (number, id) = (round % 2, format!("r{n}-{round}"));
                let t = tenant(&store, ["caps 0", "caps 1"][number]);
                let mut claims = Vec::new();
                match t.begin_job(begun(&id, "u"), background(), &me, limits, LEASE).await {
                    Ok(Begun::Claimed(claim)) => {
                        started(number);
                        claims.push((number, claim));
                    }
                    Ok(Begun::Queued) => waited += 1,
                    Err(Error::QueueFull) => refused += 1,
                    Err(error) => panic!("{error:?}"),
                }
                for job in store.claim(&me, limits, 2, LEASE).await.unwrap() {
                    let number = usize::from(job.tenant.name() == "caps 1");
                    started(number);
                    claims.push((number, job.claim));
                }
                for (number, claim) in claims {
                    let t = tenant(&store, ["caps 0", "caps 1"][number]);
                    t.dispatch(&claim).await.unwrap();
                    running[number].fetch_sub(1, Ordering::SeqCst);
                    t.finish(by(&claim)).await.unwrap();
                    ran.push(claim.response_id().to_owned());
                }
            }
            (ran, refused, waited)
        });
    }
    let outcomes = tasks.join_all().await;
    let mut ran: Vec<String> = outcomes.iter().flat_map(|(ran, ..)| ran.clone()).collect();
    let (refused, waited) = outcomes.iter().fold((0, 0), |sum, (_, refused, waited)| (sum.0 + refused, sum.1 + waited));
    assert!(waited > 0, "nobody ever waited");
    let left = one.claim(&worker(), JobLimits { running: 100, ..limits }, 1_000, LEASE).await.unwrap();
    ran.extend(left.iter().map(|job| job.claim.response_id().to_owned()));
    let distinct: HashSet<&String> = ran.iter().collect();
    assert_eq!((ran.len(), distinct.len()), (240 - refused, 240 - refused));
}

/// A worker freezes, others look for it, and then it goes on as if nothing had been.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_frozen_worker_had_is_taken_by_one_and_it_writes_nothing_more() {
    let server = postgres!();
    let stores = [server.store().await, server.store().await];
    let (frozen, t) = (worker(), tenant(&stores[0], "frozen"));
    let mut held = BTreeMap::new();
    for n in 0..20 {
        let claim = begin(&t, &format!("r{n:02}"), &frozen, OVER).await;
        if n % 2 == 0 {
            t.dispatch(&claim).await.unwrap();
            t.append_events(claim.response_id(), &events(0, &["a"]), Some(&claim)).await.unwrap();
        }
        held.insert(claim.response_id().to_owned(), claim);
    }
    let mut tasks = JoinSet::new();
    for n in 0..8 {
        let store = stores[n % 2].clone();
        tasks.spawn(async move {
            let (me, mut found, mut requeued) = (worker(), Vec::new(), 0);
            for _ in 0..10 {
                let recovered = store.recover(&me, 3, LEASE).await.unwrap();
                requeued += recovered.requeued;
                found.extend(recovered.abandoned);
            }
            (found, requeued)
        });
    }
    // Meanwhile it comes back.
    let (zombie, claims) = (tenant(&stores[1], "frozen"), held.clone());
    tasks.spawn(async move {
        for (id, claim) in &claims {
            let _ = zombie.append_events(id, &events(1, &["late"]), Some(claim)).await;
        }
        (Vec::new(), 0)
    });
    let outcomes = tasks.join_all().await;
    assert_eq!(outcomes.iter().map(|(_, requeued)| requeued).sum::<usize>(), 10);
    let found: Vec<store::Abandoned> = outcomes.into_iter().flat_map(|(found, _)| found).collect();
    let ids: HashSet<&str> = found.iter().map(|job| job.claim.response_id()).collect();
    assert_eq!((found.len(), ids.len()), (10, 10), "each is one worker's");
    for job in &found {
        let id = job.claim.response_id();
        let last = events(job.next_event, &[&format!("failed {}", job.next_event)]);
        let end = TurnEnd { status: Status::Failed, events: Some(last), ..by(&job.claim) };
        let (ours, theirs) = tokio::join!(t.finish(end), t.finish(by(&held[id])));
        ours.unwrap();
        assert!(matches!(theirs, Err(Error::Lost | Error::Ended { .. })), "{theirs:?}");
        let page = t.events_after(id, None, EventLimits { events: 9, bytes: 999 }).await.unwrap();
        let end = page.events.last().unwrap();
        assert_eq!(end.json, format!("failed {}", end.sequence), "the last one, under its own number");
        assert_eq!(page.status, Status::Failed);
    }
    // What waits again is run by somebody else.
    let me = worker();
    let again = stores[1].claim(&me, JobLimits { running: 99, queued: 0 }, 99, LEASE).await.unwrap();
    assert_eq!(again.len(), 10);
    for job in &again {
        let id = job.claim.response_id();
        for zombie in [t.dispatch(&held[id]).await, t.finish(by(&held[id])).await] {
            assert!(matches!(zombie, Err(Error::Lost)), "{zombie:?}");
        }
        t.dispatch(&job.claim).await.unwrap();
        t.finish(by(&job.claim)).await.unwrap();
        assert_eq!(history(&t, id).await.unwrap(), "u a");
    }
    assert!(stores[0].heartbeat(&frozen, LEASE).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_instances_that_claim_a_key_one_gets_it() {
    let server = postgres!();
    let (one, two) = (server.store().await, server.store().await);
    one_of_many(&[tenant(&one, "t"), tenant(&two, "t")], "two").await;
}

/// Waits until so many wait for locks in the database.
async fn waiting(client: &tokio_postgres::Client, count: i64) {
    let waiting = async {
        while client.query_one("SELECT count(*) FROM pg_locks WHERE NOT granted", &[]).await.unwrap().get::<_, i64>(0)
            < count
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, waiting).await.unwrap_or_else(|_| panic!("fewer than {count} wait"));
}

/// Whoever comes second waits for the first one, and sees what that did, although it looked before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::disallowed_methods, reason = "the test waits for what it spawns")]
async fn a_key_is_taken_over_or_answered_on_two_instances() {
    let server = postgres!();
    let (one, two) = (server.store().await, server.store().await);
    let (a, b) = (tenant(&one, "t"), tenant(&two, "t"));
    let (db, _running) = client(&server).await;
    let late = |name: &str| {
        let (t, turn) = (a.clone(), NewTurn { key: Some(name.to_owned()), ..turn(name, "u", "a") });
        tokio::spawn(async move { t.put(turn).await })
    };
    let claim = |t: &store::Tenanted, name: &'static str, response: &'static str, lease| {
        let t = t.clone();
        tokio::spawn(async move { t.claim_key(key(name, 1, response, &worker()), lease, LEASE).await.unwrap() })
    };
    // The response is being stored, and its row is not there yet.
    assert_eq!(claim(&a, "stored", "stored", OVER).await.unwrap(), KeyClaim::New);
    db.batch_execute("BEGIN; LOCK TABLE godex.response IN SHARE MODE").await.unwrap();
    let put = late("stored");
    waiting(&db, 1).await;
    let taker = claim(&b, "stored", "other", LEASE);
    waiting(&db, 2).await;
    db.batch_execute("COMMIT").await.unwrap();
    put.await.unwrap().unwrap();
    assert_eq!(taker.await.unwrap(), KeyClaim::Known("stored".to_owned()));
    // The key is being taken over.
    assert_eq!(claim(&a, "taken", "taken", OVER).await.unwrap(), KeyClaim::New);
    db.batch_execute("BEGIN; UPDATE godex.idempotency SET response = 'other' WHERE key = 'taken'").await.unwrap();
    let put = late("taken");
    waiting(&db, 1).await;
    db.batch_execute("COMMIT").await.unwrap();
    let put = put.await.unwrap();
    assert!(matches!(put, Err(Error::KeyLost)), "{put:?}");
    taken_over_or_answered(&[a, b]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_is_one_instances_to_send() {
    let server = postgres!();
    let stores = [server.store().await, server.store().await];
    let t = tenant(&stores[0], "t");
    t.begin(begun("r", "u")).await.unwrap();
    let notice = |n| NewNotice { id: format!("n{n:02}"), endpoint: "e".into(), body: Bytes::from_static(b"{}") };
    t.finish(TurnEnd { notices: (0..40).map(notice).collect(), ..ended("r", "a") }).await.unwrap();
    let mut tasks = JoinSet::new();
    for n in 0..8 {
        let store = stores[n % 2].clone();
        tasks.spawn(async move {
            let mut found = Vec::new();
            for _ in 0..10 {
                found.extend(store.due_notices(3, LEASE).await.unwrap());
            }
            found
        });
    }
    let found = tasks.join_all().await.concat();
    let ids: HashSet<&str> = found.iter().map(|notice| notice.id.as_str()).collect();
    assert_eq!((found.len(), ids.len()), (40, 40));
}

/// Tells, again and again, until it was heard.
async fn heard(teller: &Store, hints: &mut Receiver<String>, id: &str) {
    let told = async {
        loop {
            teller.tell(id);
            if let Ok(Some(hint)) = timeout(Duration::from_millis(200), hints.recv()).await
                && hint == id
            {
                return;
            }
        }
    };
    timeout(SOON, told).await.unwrap_or_else(|_| panic!("{id} was never heard"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_hear_of_each_other_also_after_an_outage() {
    let mut server = postgres!();
    let (one, two) = (server.store().await, server.store().await);
    let (mut first, mut second) = (one.hints().unwrap(), two.hints().unwrap());
    assert!(one.hints().is_none(), "once");
    heard(&one, &mut second, "resp_1").await;
    heard(&two, &mut first, "resp_2").await;
    while let Ok(Some(hint)) = timeout(Duration::from_millis(300), first.recv()).await {
        assert_eq!(hint, "resp_2", "our own is no news");
    }
    // Many at once come together, and none of them is lost on a good day.
    let expected: HashSet<String> = (0..300).map(|n| format!("resp_many_{n:040}")).collect();
    for id in &expected {
        one.tell(id);
    }
    let mut found = HashSet::new();
    while found.len() < expected.len() {
        let hint = timeout(SOON, second.recv()).await.unwrap().unwrap();
        found.extend(Some(hint).filter(|hint| expected.contains(hint)));
    }
    server.crash();
    server.up();
    heard(&one, &mut second, "resp_3").await;
    // Whoever closes ends what it listened with.
    one.close().await;
    assert!(timeout(SOON, async { while first.recv().await.is_some() {} }).await.is_ok());
    drop(two);
    assert!(timeout(SOON, async { while second.recv().await.is_some() {} }).await.is_ok());
}

/// There, listening hears nothing, and everything else goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_transaction_pooler_hints_are_lost_and_nothing_else() {
    let server = postgres!();
    drop(server.store().await);
    let Some(pooler) = Pooler::start(address(&server).port()) else { return };
    let (one, two) = tokio::join!(async { Store::postgres(&pooler.url(), &options()).await.unwrap() }, async {
        Store::postgres(&pooler.url(), &options()).await.unwrap()
    });
    let (_first, _second) = (one.hints().unwrap(), two.hints().unwrap());
    let (me, limits) = (worker(), JobLimits { running: 1, queued: 9 });
    let (a, b) = (tenant(&one, "t"), tenant(&two, "t"));
    for n in 0..20 {
        let id = format!("r{n}");
        let claim = claimed(a.begin_job(begun(&id, "u"), background(), &me, limits, LEASE).await.unwrap());
        one.tell(&id);
        b.dispatch(&claim).await.unwrap();
        assert_eq!(two.heartbeat(&me, LEASE).await.unwrap().len(), 1);
        b.finish(by(&claim)).await.unwrap();
        two.tell(&id);
        assert_eq!(history(&a, &id).await.unwrap(), "u a");
    }
    one.close().await;
    two.close().await;
}
