//! What several instances on one Postgres must endure.

use std::time::Duration;

use bytes::Bytes;
use store::{Error, NewConversation, NewTurn, OpenError, Parent, PostgresOptions, Store};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::make::{after, history, items, names, tenant, turn};
use crate::model::random_trees;
use crate::server::{Opened, Postgres};

/// The server, or a return where there is none.
macro_rules! postgres {
    () => {
        match crate::server::Postgres::start() {
            Some(server) => server,
            None => return,
        }
    };
}
pub(crate) use postgres;

/// A connection of our own, beside the store's. It ends with the set of tasks.
pub(crate) async fn client(server: &Postgres) -> (tokio_postgres::Client, JoinSet<Result<(), tokio_postgres::Error>>) {
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    let mut running = JoinSet::new();
    running.spawn(connection);
    (client, running)
}

pub(crate) async fn sql(server: &Postgres, text: &str) {
    let (client, _running) = client(server).await;
    client.batch_execute(text).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_keeps_the_contract() {
    let server = postgres!();
    crate::run_all(&server.store().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_trees_in_postgres() {
    let server = postgres!();
    random_trees(&server.store().await, 200, 1_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_jobs_in_postgres() {
    let server = postgres!();
    crate::random_jobs::random_jobs(&server.store().await, 300, 800).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_instances_are_one_store() {
    let server = postgres!();
    // Started together on an empty database: one migrates, the other waits.
    let (one, two) = tokio::join!(server.store(), server.store());
    let (a, b) = (tenant(&one, "t"), tenant(&two, "t"));
    a.put(turn("r0", "u0", "a0")).await.unwrap();
    let mut expected = "u0 a0".to_owned();
    for n in 1..50 {
        let here = if n % 2 == 0 { &a } else { &b };
        here.put(after(&format!("r{}", n - 1), turn(&format!("r{n}"), &format!("u{n}"), &format!("a{n}"))))
            .await
            .unwrap();
        expected = format!("{expected} u{n} a{n}");
        let there = if n % 2 == 0 { &b } else { &a };
        assert_eq!(history(there, &format!("r{n}")).await.unwrap(), expected);
    }
    // What one stored, the other shares, so both have the same secret.
    b.put(turn("again", &format!("{expected} more"), "x")).await.unwrap();
    assert_eq!(history(&a, "again").await.unwrap(), format!("{expected} more x"));
    // Many continuations of one parent at once, from both sides: all of them forks, none of them mixed.
    let mut tasks = JoinSet::new();
    for n in 0..40 {
        let here = if n % 2 == 0 { a.clone() } else { b.clone() };
        tasks.spawn(async move {
            here.put(after("r0", turn(&format!("f{n}"), &format!("x{n} y{n}"), &format!("z{n}")))).await.unwrap();
        });
    }
    tasks.join_all().await;
    for n in 0..40 {
        assert_eq!(history(&a, &format!("f{n}")).await.unwrap(), format!("u0 a0 x{n} y{n} z{n}"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_and_usage_of_two_instances_are_one() {
    let server = postgres!();
    // Many at once on a machine that may be slow: what is tested is not how long they wait.
    let patient = Duration::from_mins(1);
    let options = PostgresOptions { acquire: patient, statement: patient, ..PostgresOptions::default() };
    let stores = [server.store_with(&options).await, server.store_with(&options).await];
    crate::access::one_version_for_all(&stores).await;
    crate::usage::of_many(&stores, "two instances").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turns_of_two_instances_on_one_conversation_take_turns() {
    let server = postgres!();
    let (one, two) = (server.store().await, server.store().await);
    let new = NewConversation { id: "c".into(), created_at: 1, metadata: Bytes::from_static(b"{}"), items: items("s") };
    tenant(&one, "t").create_conversation(new).await.unwrap();
    let mut tasks = JoinSet::new();
    for n in 0..24 {
        let t = tenant(if n % 2 == 0 { &one } else { &two }, "t");
        tasks.spawn(async move {
            let mut refused = 0;
            loop {
                match t.begin_turn("c", Duration::from_secs(30)).await {
                    Ok(lease) => {
                        let before = t.conversation_history("c").await.unwrap().len();
                        let put = turn(&format!("r{n}"), &format!("u{n}"), &format!("a{n}"));
                        t.put(NewTurn { parent: Parent::Conversation(lease), ..put }).await.unwrap();
                        return (refused, before);
                    }
                    Err(Error::Locked) => refused += 1,
                    Err(error) => panic!("{error}"),
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
    }
    let mut seen: Vec<(i32, usize)> = tasks.join_all().await;
    assert!(seen.iter().any(|(refused, _)| *refused > 0), "nobody ever met");
    seen.sort_by_key(|(_, before)| *before);
    // Each saw all turns before it, whole.
    assert_eq!(
        seen.iter().map(|(_, before)| *before).collect::<Vec<_>>(),
        (0..24).map(|n| 1 + 2 * n).collect::<Vec<_>>()
    );
    assert_eq!(tenant(&two, "t").conversation_history("c").await.unwrap().len(), 49);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_of_the_server_loses_nothing_and_needs_no_restart_of_ours() {
    let mut server = postgres!();
    let options = PostgresOptions { retry: Duration::from_secs(10), ..PostgresOptions::default() };
    let store = server.store_with(&options).await;
    let mut tasks = JoinSet::new();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    for writer in 0..8 {
        let (t, stop) = (tenant(&store, "t"), stop.clone());
        tasks.spawn(async move {
            let mut chain: Vec<String> = Vec::new();
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let (id, n) = (format!("w{writer}-{}", chain.len()), chain.len());
                let new = turn(&id, &format!("u{writer}_{n}"), &format!("a{writer}_{n}"));
                let new = chain.last().map_or(new.clone(), |last| after(last, new));
                match t.put(new).await {
                    Ok(()) => chain.push(id),
                    Err(Error::Unavailable(_)) => tokio::time::sleep(Duration::from_millis(20)).await,
                    Err(error) => panic!("{error:?}"),
                }
            }
            (writer, chain)
        });
    }
    let t = tenant(&store, "t");
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(300)).await;
        server.crash();
        let asked = Instant::now();
        assert!(store.ping().await.is_err());
        assert!(matches!(t.response("w0-0").await, Err(Error::Unavailable(_))));
        assert!(asked.elapsed() < Duration::from_secs(5));
        server.up();
        let up = Instant::now();
        while store.ping().await.is_err() {
            assert!(up.elapsed() < Duration::from_secs(20), "no recovery");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let mut total = 0;
    for (writer, chain) in tasks.join_all().await {
        total += chain.len();
        let expected: Vec<String> = (0..chain.len()).map(|n| format!("u{writer}_{n} a{writer}_{n}")).collect();
        assert_eq!(history(&t, chain.last().unwrap()).await.unwrap(), expected.join(" "));
    }
    println!("{total} turns over three crashes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemas_of_others_are_refused() {
    let server = postgres!();
    let store = server.store().await;
    tenant(&store, "t").put(turn("r", "u", "a")).await.unwrap();
    // What a newer version only added does not matter; an addition that is not ours does.
    sql(&server, "INSERT INTO godex.addition (number, checksum) VALUES (99, '')").await;
    let beside = Store::postgres(&server.url(), &PostgresOptions::default()).await.unwrap();
    assert_eq!(history(&tenant(&beside, "t"), "r").await.unwrap(), "u a");
    sql(&server, "UPDATE godex.addition SET checksum = 'x' WHERE number = 1").await;
    let refused = Store::postgres(&server.url(), &PostgresOptions::default()).await;
    assert!(
        matches!(&refused, Err(OpenError::Altered { number: 1, name }) if name.contains("addition")),
        "{refused:?}"
    );
    sql(&server, "INSERT INTO godex.migration (number, checksum) VALUES (99, '')").await;
    let refused = Store::postgres(&server.url(), &PostgresOptions::default()).await;
    assert!(matches!(refused, Err(OpenError::Newer { found: 99, .. })), "{refused:?}");
    sql(&server, "DELETE FROM godex.migration WHERE number = 99; UPDATE godex.migration SET checksum = 'x'").await;
    let refused = Store::postgres(&server.url(), &PostgresOptions::default()).await;
    assert!(matches!(refused, Err(OpenError::Altered { number: 1, .. })), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_server_is_unavailable_for_writing_until_it_is_not() {
    let server = postgres!();
    let options = PostgresOptions { retry: Duration::ZERO, ..PostgresOptions::default() };
    let store = server.store_with(&options).await;
    let t = tenant(&store, "t");
    t.put(turn("r1", "u1", "a1")).await.unwrap();
    sql(&server, "ALTER SYSTEM SET default_transaction_read_only = on").await;
    sql(&server, "SELECT pg_reload_conf()").await;
    while store.ping().await.is_ok() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let refused = t.put(after("r1", turn("r2", "u2", "a2"))).await;
    assert!(matches!(&refused, Err(Error::Unavailable(why)) if why.reason().contains("read-only")), "{refused:?}");
    assert_eq!(names(&t.response("r1").await.unwrap().output), "a1");
    sql(&server, "ALTER SYSTEM RESET default_transaction_read_only").await;
    sql(&server, "SELECT pg_reload_conf()").await;
    while store.ping().await.is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    t.put(after("r1", turn("r2", "u2", "a2"))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exhausted_pool_and_a_hanging_statement_are_unavailable_in_bounded_time() {
    let server = postgres!();
    let (acquire, statement) = (Duration::from_millis(200), Duration::from_millis(600));
    let options = PostgresOptions { connections: 2, acquire, statement, retry: Duration::ZERO };
    let store = server.store_with(&options).await;
    let t = tenant(&store, "t");
    t.put(turn("r", "u", "a")).await.unwrap();
    let (client, _running) = client(&server).await;
    client.batch_execute("BEGIN; LOCK TABLE godex.response IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let began = Instant::now();
    let answers = tokio::join!(t.response("r"), t.response("r"), t.response("r"), t.response("r"));
    for answer in [answers.0, answers.1, answers.2, answers.3] {
        assert!(matches!(answer, Err(Error::Unavailable(_))), "{answer:?}");
    }
    assert!(began.elapsed() < Duration::from_secs(3));
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(history(&t, "r").await.unwrap(), "u a");
}
