//! Postgres across a wire that breaks: commits of which nobody knows, migrations cut off, a pooler in between.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use store::{
    Begun, Error, JobLimits, KeyClaim, NewConversation, NewNotice, NewTurn, OpenError, Parent, PostgresOptions, Status,
    Store, TurnEnd,
};
use testkit::Pooler;
use tokio::task::JoinSet;

use crate::jobs::{MANY, background, by, worker};
use crate::keys::key;
use crate::make::{after, history, items, names, tenant, turn};
use crate::postgres::{postgres, sql};
use crate::proxy::{Cut, Proxy};
use crate::server::{Opened, Postgres};
use crate::turns::{begun, ended, events};

const LEASE: Duration = Duration::from_secs(30);

/// Tries again soon, and not for long.
pub(crate) fn options() -> PostgresOptions {
    PostgresOptions { retry: Duration::from_secs(5), ..PostgresOptions::default() }
}

pub(crate) fn address(server: &Postgres) -> SocketAddr {
    let config: tokio_postgres::Config = server.url().parse().unwrap();
    SocketAddr::from(([127, 0, 0, 1], config.get_ports()[0]))
}

async fn through(proxy: &Proxy) -> Store {
    Store::postgres(&proxy.url("postgres"), &options()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_of_which_nobody_knows_is_found_out() {
    let server = postgres!();
    let proxy = Proxy::before(address(&server)).await;
    let store = through(&proxy).await;
    let t = tenant(&store, "t");
    let new = NewConversation { id: "c".into(), created_at: 1, metadata: Bytes::from_static(b"{}"), items: items("s") };
    t.create_conversation(new).await.unwrap();
    t.put(turn("r0", "u0", "a0")).await.unwrap();
    let mut said = "s".to_owned();
    for (n, cuts) in [
        &[Cut::AfterCommit][..],
        &[Cut::BeforeCommit],
        &[Cut::AfterCommit, Cut::AfterCommit],
        &[Cut::BeforeCommit, Cut::AfterCommit],
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("k{n}");
        let claim = t.claim_key(key(&name, 1, &format!("r{n}x"), &worker()), LEASE, LEASE).await;
        assert_eq!(claim.unwrap(), KeyClaim::New);
        proxy.plan(cuts);
        let put = turn(&format!("r{n}x"), &format!("u{n}"), &format!("a{n}"));
        t.put(after("r0", NewTurn { key: Some(name), ..put })).await.unwrap();
        assert_eq!(history(&t, &format!("r{n}x")).await.unwrap(), format!("u0 a0 u{n} a{n}"), "{cuts:?}");
        let lease = t.begin_turn("c", Duration::from_secs(30)).await.unwrap();
        proxy.plan(cuts);
        let put = turn(&format!("s{n}"), &format!("v{n}"), &format!("b{n}"));
        t.put(NewTurn { parent: Parent::Conversation(lease), ..put }).await.unwrap();
        said = format!("{said} v{n} b{n}");
        assert_eq!(names(&t.conversation_history("c").await.unwrap()), said, "{cuts:?}");
        assert_eq!(history(&t, &format!("s{n}")).await.unwrap(), said, "{cuts:?}");
        // And one that is begun and finished, in the conversation.
        let (id, lease) = (format!("b{n}"), t.begin_turn("c", Duration::from_secs(30)).await.unwrap());
        let parent = Parent::Conversation(lease.clone());
        proxy.plan(cuts);
        t.begin(NewTurn { parent, ..begun(&id, &format!("w{n}")) }).await.unwrap();
        proxy.plan(cuts);
        let end = TurnEnd { lease: Some(lease), events: Some(events(0, &["last"])), ..ended(&id, &format!("d{n}")) };
        t.finish(end.clone()).await.unwrap();
        said = format!("{said} w{n} d{n}");
        assert_eq!(names(&t.conversation_history("c").await.unwrap()), said, "{cuts:?}");
        assert_eq!(history(&t, &id).await.unwrap(), said, "{cuts:?}");
        // Another end than the one that is stored is refused, also when an answer was lost.
        proxy.plan(&[Cut::BeforeCommit]);
        let other = TurnEnd { status: Status::Failed, ..end };
        assert!(matches!(t.finish(other).await, Err(Error::Ended { status: Status::Completed })), "{cuts:?}");
        proxy.plan(&[]);
        // And one that is a job, which runs or waits.
        let me = worker();
        for (running, state) in [(9, "runs"), (0, "waits")] {
            let (id, limits) = (format!("j{n}{state}"), JobLimits { running, queued: 9 });
            proxy.plan(cuts);
            let begin = t.begin_job(begun(&id, "u"), background(), &me, limits, Duration::from_secs(30)).await.unwrap();
            proxy.plan(&[]);
            assert_eq!(begin == Begun::Queued, running == 0, "{cuts:?}");
            let claim = match begin {
                Begun::Claimed(claim) => claim,
                Begun::Queued => store.claim(&me, MANY, 1, Duration::from_secs(30)).await.unwrap().remove(0).claim,
            };
            t.dispatch(&claim).await.unwrap();
            proxy.plan(cuts);
            let notices = vec![NewNotice { id: id.clone(), endpoint: "e".into(), body: Bytes::from_static(b"{}") }];
            t.finish(TurnEnd { notices, events: Some(events(0, &["last"])), ..by(&claim) }).await.unwrap();
            proxy.plan(&[]);
            assert_eq!(history(&t, &id).await.unwrap(), "u a", "{cuts:?}");
            assert!(store.heartbeat(&me, Duration::from_secs(30)).await.unwrap().is_empty(), "{cuts:?}");
            assert_eq!(store.due_notices(9, Duration::from_secs(30)).await.unwrap().len(), 1, "{cuts:?}");
        }
    }
    // A deletion says that it does not know; asked again, it was done.
    proxy.plan(&[Cut::AfterCommit]);
    assert!(matches!(t.delete_response("r0").await, Err(Error::Unavailable(_))));
    assert!(matches!(t.delete_response("r0").await, Err(Error::NotFound)));
    // Somebody else's id is still a conflict.
    proxy.plan(&[Cut::BeforeCommit]);
    assert!(matches!(t.put(turn("s0", "other", "x")).await, Err(Error::Conflict)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_stored_is_stored_though_its_parent_went_before_that_was_known() {
    let server = postgres!();
    let proxy = Proxy::before(address(&server)).await;
    let (store, beside) = (through(&proxy).await, server.store().await);
    let t = tenant(&store, "t");
    t.put(turn("parent", "u", "a")).await.unwrap();
    proxy.set_open(false);
    proxy.plan(&[Cut::AfterCommit]);
    let put = async { t.put(after("parent", turn("child", "v", "b"))).await };
    let meanwhile = async {
        while proxy.left() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tenant(&beside, "t").delete_response("parent").await.unwrap();
        proxy.set_open(true);
    };
    tokio::join!(put, meanwhile).0.unwrap();
    assert_eq!(names(&t.response("child").await.unwrap().output), "b");
}

/// It waits in the queue as far as whoever stored it may know: who claimed it runs it, also in the same process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_was_claimed_before_it_was_known_to_be_stored_runs_once() {
    let server = postgres!();
    let proxy = Proxy::before(address(&server)).await;
    let (store, beside, me) = (through(&proxy).await, server.store().await, worker());
    let (t, other) = (tenant(&store, "t"), tenant(&beside, "t"));
    for (id, ends) in [("claimed", false), ("ended", true)] {
        proxy.set_open(false);
        proxy.plan(&[Cut::AfterCommit]);
        let none = JobLimits { running: 0, queued: 9 };
        let begin = async { t.begin_job(begun(id, "u"), background(), &me, none, LEASE).await };
        let meanwhile = async {
            while proxy.left() > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let claim = beside.claim(&me, MANY, 1, LEASE).await.unwrap().remove(0).claim;
            if ends {
                other.finish(by(&claim)).await.unwrap();
            }
            proxy.set_open(true);
        };
        assert_eq!(tokio::join!(begin, meanwhile).0.unwrap(), Begun::Queued, "{id}");
    }
}

/// The one who stored it knows of an error only, and gives the key back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_stays_with_a_response_of_which_nobody_knows_that_it_is_stored() {
    let server = postgres!();
    let proxy = Proxy::before(address(&server)).await;
    let impatient = PostgresOptions { retry: Duration::ZERO, ..PostgresOptions::default() };
    let store = Store::postgres(&proxy.url("postgres"), &impatient).await.unwrap();
    let t = tenant(&store, "t");
    for (name, cut, expected) in [
        ("stored", Cut::AfterCommit, KeyClaim::Known("stored".to_owned())),
        ("not stored", Cut::BeforeCommit, KeyClaim::New),
    ] {
        assert_eq!(t.claim_key(key(name, 1, name, &worker()), LEASE, LEASE).await.unwrap(), KeyClaim::New);
        proxy.plan(&[cut]);
        let put = t.put(NewTurn { key: Some(name.to_owned()), ..turn(name, "u", "a") }).await;
        assert!(matches!(put, Err(Error::Unavailable(_))), "{name}: {put:?}");
        t.release_key(name, name).await.unwrap();
        assert_eq!(t.claim_key(key(name, 1, "other", &worker()), LEASE, LEASE).await.unwrap(), expected, "{name}");
    }
}

/// A later try finds that its key is another's: its response was deleted since.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_stored_was_stored_though_its_key_went_before_that_was_known() {
    let server = postgres!();
    let proxy = Proxy::before(address(&server)).await;
    let (store, beside) = (through(&proxy).await, server.store().await);
    let (t, other) = (tenant(&store, "t"), tenant(&beside, "t"));
    assert_eq!(t.claim_key(key("k", 1, "r", &worker()), LEASE, LEASE).await.unwrap(), KeyClaim::New);
    proxy.set_open(false);
    proxy.plan(&[Cut::AfterCommit]);
    let put = async { t.put(NewTurn { key: Some("k".to_owned()), ..turn("r", "u", "a") }).await };
    let meanwhile = async {
        while proxy.left() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        other.delete_response("r").await.unwrap();
        assert_eq!(other.claim_key(key("k", 1, "next", &worker()), LEASE, LEASE).await.unwrap(), KeyClaim::New);
        proxy.set_open(true);
    };
    tokio::join!(put, meanwhile).0.unwrap();
    assert_eq!(other.claim_key(key("k", 1, "last", &worker()), LEASE, LEASE).await.unwrap(), KeyClaim::Running);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_may_be_cut_off_at_any_message() {
    let server = postgres!();
    drop(server.store().await);
    let proxy = Proxy::before(address(&server)).await;
    sql(&server, "CREATE DATABASE again").await;
    for count in 1.. {
        let fresh = format!("fresh{count}");
        sql(&server, &format!("CREATE DATABASE {fresh}")).await;
        let mut opened = false;
        for database in [fresh.as_str(), "again"] {
            proxy.plan(&[Cut::AfterMessages(count)]);
            let cut = Store::postgres(&proxy.url(database), &options()).await;
            opened = cut.is_ok();
            assert!(matches!(cut, Ok(_) | Err(OpenError::Postgres { .. })), "{cut:?}");
        }
        proxy.plan(&[]);
        let store = Store::postgres(&proxy.url(&fresh), &options()).await.unwrap();
        let t = tenant(&store, "t");
        t.put(turn("r", "u", "a")).await.unwrap();
        assert_eq!(history(&t, "r").await.unwrap(), "u a");
        if opened {
            assert!(count > 8, "only {count} messages");
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_start_at_once_on_an_empty_database_all_come_up() {
    let server = postgres!();
    let mut tasks = JoinSet::new();
    for n in 0..8 {
        let url = server.url();
        tasks.spawn(async move {
            // The server itself may still be starting.
            loop {
                match Store::postgres(&url, &PostgresOptions::default()).await {
                    Err(OpenError::Postgres { reason }) if reason.contains("starting up") => {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                    opened => break (n, opened),
                }
            }
        });
    }
    for (n, opened) in tasks.join_all().await {
        tenant(&opened.unwrap(), "t").put(turn(&format!("r{n}"), "same", &format!("a{n}"))).await.unwrap();
    }
}

/// A transaction pooler gives each transaction another connection: nothing may be left on one for later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_on_a_connection() {
    let server = postgres!();
    drop(server.store().await);
    let proxy = Proxy::before(address(&server)).await;
    let store = through(&proxy).await;
    crate::run_all(&store).await;
    let (statements, prepared) = proxy.statements();
    assert!(prepared.len() > 100 && prepared.iter().all(String::is_empty), "statements are prepared under names");
    let sticky = ["SET ", "LISTEN", "PREPARE", "DECLARE", "CREATE TEMP"];
    for statement in &statements {
        assert!(!sticky.iter().any(|sticky| statement.trim_start().starts_with(sticky)), "{statement}");
        // Locks and settings only until the end of the transaction.
        assert!(!statement.contains("pg_advisory_lock"), "{statement}");
        assert!(!statement.contains("set_config(") || statement.contains(", true)"), "{statement}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_pooler_may_stand_in_between() {
    let server = postgres!();
    drop(server.store().await);
    let Some(pooler) = Pooler::start(address(&server).port()) else { return };
    // A busy machine syncs slowly, and many wait for few connections here.
    let patient = PostgresOptions { acquire: Duration::from_secs(30), ..options() };
    let store = Store::postgres(&pooler.url(), &patient).await.unwrap();
    crate::run_all(&store).await;
}
