//! Shares and places, by windows and leases as long as a test wants them.

use std::time::Duration;

use testkit::Postgres;
use tokio::task::JoinSet;
use tokio_postgres::Client;

use super::Database;
use crate::{PostgresOptions, Share, ShareWish, Worker};

/// A window that does not end while a test runs: there is one before it, and this one.
const LONG: i64 = 1_000_000_000_000;

async fn open(server: &Postgres) -> Database {
    Database::connect(&server.url(), &PostgresOptions::default()).await.unwrap().0
}

async fn client(server: &Postgres) -> (Client, JoinSet<Result<(), tokio_postgres::Error>>) {
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    let mut running = JoinSet::new();
    running.spawn(connection);
    (client, running)
}

fn wish(subject: &str, limit: u64, wanted: i64, overdrawn: u64) -> ShareWish {
    ShareWish { subject: subject.to_owned(), limit, wanted, overdrawn }
}

async fn take(database: &Database, wish: ShareWish, window_ms: i64) -> Share {
    database.take_shares(&[wish], window_ms).await.unwrap().remove(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_share_is_what_is_left() {
    let Some(server) = Postgres::start() else { return };
    let database = open(&server).await;
    // What is wanted, what was overdrawn, what is given, what is left. The limit is 10.
    for (wanted, overdrawn, granted, left) in [
        (4, 0, 4, 6),
        (0, 0, 0, 6),
        (100, 0, 6, 0),
        (1, 0, 0, 0),
        (-3, 0, 0, 3),
        (2, 1, 2, 0),
        (5, 20, 0, 0),
        (-20, 0, 0, 0),
        (-100, 0, 0, 10),
        (i64::MIN, u64::MAX, 0, 10),
        (i64::MAX, 0, 10, 0),
    ] {
        let share = take(&database, wish("a", 10, wanted, overdrawn), LONG).await;
        assert_eq!((share.granted, share.left), (granted, left), "{wanted} {overdrawn}");
        let enough = u64::try_from(wanted.max(1)).unwrap() <= granted.max(left);
        assert_eq!(share.wait == 0, enough, "{wanted} {overdrawn}: {share:?}");
        assert!(share.wait <= 2 * LONG.unsigned_abs(), "{share:?}");
    }
    assert_eq!(take(&database, wish("none", 0, 1, 0), LONG).await.granted, 0);
    assert!(take(&database, wish("none", 0, 1, 0), LONG).await.wait > 0);
    assert_eq!(take(&database, wish("all", u64::MAX, i64::MAX, 0), LONG).await.granted, 1 << 53);
    // Many at once, in the order asked for; one subject may be there twice.
    let wishes = [wish("z", 3, 2, 0), wish("b", 7, 9, 0), wish("z", 3, 2, 0), wish("odd\0", 1, 1, 0)];
    let granted: Vec<u64> =
        database.take_shares(&wishes, LONG).await.unwrap().iter().map(|share| share.granted).collect();
    assert_eq!(granted, [2, 7, 1, 1]);
    assert_eq!(database.take_shares(&[], LONG).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_window_before_counts_with_what_of_it_is_near() {
    let Some(server) = Postgres::start() else { return };
    let database = open(&server).await;
    let (client, _running) = client(&server).await;
    let row = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    let now: i64 = client.query_one(row, &[]).await.unwrap().get(0);
    let (begins, left) = (now - now % LONG, LONG - now % LONG);
    let weight = |before: i64| u64::try_from(before * (left / 1_000) / (LONG / 1_000) + 1).unwrap();
    // When the newest window of the row began, what was taken in it, what then still counts.
    for (start, taken, counts) in [
        (begins - LONG, 1_000_i64, weight(1_000)),
        (begins, 400, 400),
        (begins - 2 * LONG, 1_000, 0),
        // The clock was set back.
        (begins + LONG, 400, 400),
        (begins + 7 * LONG, 400, 400),
    ] {
        client.batch_execute("DELETE FROM godex.share").await.unwrap();
        let insert = "INSERT INTO godex.share VALUES ('s', $1, $2, 0, now())";
        client.execute(insert, &[&start, &taken]).await.unwrap();
        let share = take(&database, wish("s", 1_000, 2_000, 0), LONG).await;
        assert_eq!(share.granted, 1_000 - counts, "{start} {taken}");
        // All that was wanted is never there at once: it is as long as until all is free again.
        assert!(share.wait > left.unsigned_abs(), "{share:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_refused_is_there_after_the_wait() {
    let Some(server) = Postgres::start() else { return };
    let database = open(&server).await;
    for (number, (first, then, overdrawn)) in [(10, 1, 0), (10, 10, 0), (7, 5, 0), (10, 3, 25)].into_iter().enumerate()
    {
        let subject = format!("s{number}");
        take(&database, wish(&subject, 10, first, overdrawn), 400).await;
        let refused = take(&database, wish(&subject, 10, 0, 0), 400).await;
        // Nobody takes a part of it: what is asked for first is how long it takes.
        let mut rounds = 0;
        let mut wait = refused.wait;
        loop {
            tokio::time::sleep(Duration::from_millis(wait)).await;
            let share = take(&database, wish(&subject, 10, then, 0), 400).await;
            if share.granted == u64::try_from(then).unwrap() {
                assert_eq!(share.wait, 0);
                break;
            }
            // A part was given, and goes back.
            assert!(share.wait > 0 && rounds < 3, "{number}: {share:?}");
            take(&database, wish(&subject, 10, -i64::try_from(share.granted).unwrap(), 0), 400).await;
            wait = share.wait;
            rounds += 1;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_instances_never_take_more_than_there_is() {
    let Some(server) = Postgres::start() else { return };
    let databases = [open(&server).await, open(&server).await];
    let mut tasks = JoinSet::new();
    for n in 0..16_usize {
        let database = databases[n % 2].clone();
        tasks.spawn(async move {
            let mut sums = [0_u64; 3];
            for round in 0..30 {
                let mut order = [0, 1, 2];
                order.rotate_left((n + round) % 3);
                let wishes = order.map(|subject| wish(&format!("s{subject}"), 1_000, 7, 0));
                for (subject, share) in order.into_iter().zip(database.take_shares(&wishes, LONG).await.unwrap()) {
                    sums[subject] += share.granted;
                }
            }
            sums
        });
    }
    let sums = tasks.join_all().await.into_iter().fold([0; 3], |a, b| [a[0] + b[0], a[1] + b[1], a[2] + b[2]]);
    assert_eq!(sums, [1_000; 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn places_are_held_as_long_as_somebody_says_so() {
    const MINUTE: i64 = 60_000;
    let Some(server) = Postgres::start() else { return };
    let (one, two) = (open(&server).await, open(&server).await);
    let (a, b, c) = (Worker::random().unwrap(), Worker::random().unwrap(), Worker::random().unwrap());
    let hold = async |database: &Database, worker: Worker, wanted: u64, limit: u64, lease: i64| {
        database.hold_places(worker, "s", wanted, limit, lease).await.unwrap()
    };
    assert_eq!(hold(&one, a, 3, 5, MINUTE).await, 3);
    assert_eq!(hold(&two, b, 4, 5, MINUTE).await, 2);
    assert_eq!(hold(&two, b, 4, 5, MINUTE).await, 2);
    // A smaller limit takes nothing away, and gives nothing.
    assert_eq!(hold(&one, a, 4, 1, MINUTE).await, 3);
    assert_eq!(hold(&one, a, 1, 1, MINUTE).await, 1);
    assert_eq!(hold(&two, b, 4, 5, MINUTE).await, 4);
    assert_eq!(hold(&one, c, 1, 5, MINUTE).await, 0);
    assert_eq!(hold(&one, a, 0, 5, MINUTE).await, 0);
    assert_eq!(hold(&one, c, u64::MAX, 5, MINUTE).await, 1);
    assert_eq!(one.hold_places(c, "another", 9, 5, MINUTE).await.unwrap(), 5);
    // One who is gone holds nothing; one who says so in time does, however late the others ask.
    assert_eq!(hold(&two, b, 4, 5, 0).await, 4);
    assert_eq!(hold(&one, c, 9, 5, 0).await, 5);
    one.keep_places(c, MINUTE).await.unwrap();
    assert_eq!(hold(&two, b, 9, 5, MINUTE).await, 0);
    assert_eq!(hold(&one, c, 0, 5, MINUTE).await, 0);
    assert_eq!(hold(&two, b, 9, 5, MINUTE).await, 5);
    // All at once, and nobody beyond the limit.
    let mut tasks = JoinSet::new();
    for n in 0..24 {
        let (database, me) = (if n % 2 == 0 { one.clone() } else { two.clone() }, Worker::random().unwrap());
        tasks.spawn(async move {
            let held = database.hold_places(me, "many", 3, 20, MINUTE).await.unwrap();
            database.hold_places(me, "more", 3, 20, MINUTE).await.unwrap();
            database.keep_places(me, MINUTE).await.unwrap();
            held
        });
    }
    assert_eq!(tasks.join_all().await.into_iter().sum::<u64>(), 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_uses_is_forgotten() {
    let Some(server) = Postgres::start() else { return };
    let database = open(&server).await;
    let (client, _running) = client(&server).await;
    let (a, b) = (Worker::random().unwrap(), Worker::random().unwrap());
    for subject in ["old", "new"] {
        take(&database, wish(subject, 5, 1, 0), LONG).await;
        assert_eq!(database.hold_places(a, subject, 1, 5, 60_000).await.unwrap(), 1);
    }
    let later = "UPDATE godex.share SET used = used - interval '61 minutes' WHERE subject = 'old';
        UPDATE godex.place SET until = until - interval '62 minutes' WHERE subject = 'old'";
    client.batch_execute(later).await.unwrap();
    database.keep_places(b, 60_000).await.unwrap();
    let left = "SELECT (SELECT string_agg(encode(subject, 'escape'), ' ') FROM godex.share) || ', ' ||
        (SELECT string_agg(encode(subject, 'escape'), ' ') FROM godex.place)";
    assert_eq!(client.query_one(left, &[]).await.unwrap().get::<_, String>(0), "new, new");
    // The numbers of batches as well, once their worker is long gone.
    let batch = |worker, number| crate::UsageBatch { worker, number, rows: Vec::new() };
    database.add_usage(&crate::usage::PreparedUsage::new(batch(a, 1))).await.unwrap();
    client.batch_execute("UPDATE godex.usage_batch SET at = at - interval '49 hours'").await.unwrap();
    database.add_usage(&crate::usage::PreparedUsage::new(batch(b, 1))).await.unwrap();
    let workers = "SELECT count(*) FROM godex.usage_batch";
    assert_eq!(client.query_one(workers, &[]).await.unwrap().get::<_, i64>(0), 1);
}
