use testkit::Postgres;
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

use super::*;

async fn post(rig: &Rig, key: &str, body: &Value) -> Answer {
    let headers = [("content-type", "application/json"), ("idempotency-key", key)];
    rig.client.request(Method::POST, &rig.url("/v1/responses"), &headers, body.to_string()).await.unwrap()
}

#[tokio::test]
async fn the_same_request_is_made_once() {
    for background in [false, true] {
        for stream in [false, true] {
            let rig = Rig::start(if stream { slow(Duration::ZERO) } else { chat::answer(false) }).await;
            let body = json!({"model": "m", "input": "Hello", "background": background, "stream": stream});
            let first = post(&rig, "a", &body).await;
            let id = id_in(&first.body);
            let done = until(&rig, &format!("/v1/responses/{id}"), &["completed"]).await;
            let second = post(&rig, "a", &body).await;
            if stream {
                assert_eq!(rig::stream(&second).response, done, "background: {background}");
            } else {
                assert_eq!(rig::object(&second), done, "background: {background}");
            }
            assert_eq!(rig.upstream.requests().len(), 1);
            let other = json!({"model": "m", "input": "Another", "background": background, "stream": stream});
            let error = rig::error(&post(&rig, "a", &other).await);
            assert_eq!((error.status, &*error.code), (400, "idempotency_key_reused"));
            assert_eq!(post(&rig, "b", &other).await.status, 200);
            rig.upstream.arrived(2).await;
        }
    }
}

#[tokio::test]
async fn while_it_runs_it_is_in_use() {
    for store in [true, false] {
        let rig = Rig::start(slow(Duration::from_millis(300))).await;
        let body = json!({"model": "m", "input": "Hello", "stream": true, "store": store});
        let headers = [("content-type", "application/json"), ("idempotency-key", "k")];
        let url = rig.url("/v1/responses");
        let mut first = rig.client.open(Method::POST, &url, &headers, body.to_string()).await.unwrap();
        first.read_until("response.created").await.unwrap();
        let refused = post(&rig, "k", &body).await;
        let error = rig::error(&refused);
        assert_eq!((error.status, &*error.code), (409, "idempotency_key_in_use"));
        assert_eq!(refused.header("retry-after"), Some("1"));
        first.collect().await.unwrap();
        let calls = if store { 1 } else { 2 };
        assert_eq!(post(&rig, "k", &body).await.status, 200, "store: {store}");
        assert_eq!(rig.upstream.requests().len(), calls, "nothing is remembered of what is not stored");
    }
}

#[tokio::test]
async fn a_request_that_failed_may_be_sent_again() {
    let rig = Rig::with(chat::answer(false), Settings { resilience: "retries: 0", ..Settings::default() }).await;
    rig.upstream.queue(Script::json(500, &json!({"error": {"message": "oops"}})));
    let body = json!({"model": "m", "input": "Hello"});
    assert_eq!(post(&rig, "k", &body).await.status, 502);
    let mut status = 409;
    for _ in 0..100 {
        status = post(&rig, "k", &body).await.status;
        if status != 409 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(status, 200);
    assert_eq!(rig.upstream.requests().len(), 2);
    for key in ["", "a b", &"x".repeat(256), "\u{e9}"] {
        let error = rig::error(&post(&rig, key, &body).await);
        assert_eq!((error.status, &*error.code), (400, "invalid_idempotency_key"), "{key:?}");
    }
}

/// Many at once: one call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_at_once_one_is_made() {
    let rig = Rig::start(chat::answer(false)).await;
    for round in 0..10 {
        let key = format!("key-{round}");
        let body = json!({"model": "m", "input": format!("Hello {round}")});
        let answers = futures_util::future::join_all((0..16).map(|_| post(&rig, &key, &body))).await;
        assert!(answers.iter().all(|answer| matches!(answer.status, 200 | 409)));
        let mut ids: Vec<String> =
            answers.iter().filter(|answer| answer.status == 200).map(|answer| id_in(&answer.body)).collect();
        ids.dedup();
        assert_eq!(ids.len(), 1);
    }
    assert_eq!(rig.upstream.requests().len(), 10);
}

/// The number of the lock that whoever stores something takes.
const STORES: &str = "('x' || encode(substring(sha256('default') FROM 1 FOR 8), 'hex'))::bit(64)::bigint";

/// Waits until so many are about to store something.
async fn about_to_store(database: &Client, count: i64) {
    let waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
    for _ in 0..3000 {
        if database.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{count} never wait");
}

/// A request is held up until its key is another's, on another instance, and both are stored at the same moment.
async fn overtaken(database: &Client, url: &str, stream: bool, background: bool, resumes: bool) {
    let session = format!("backend: postgres, postgres: {{url: '{url}'}}, resume_foreground: {resumes}");
    let settings = || Settings { session: session.clone(), ..Settings::default() };
    let rigs = [Rig::with(chat::answer(stream), settings()).await, Rig::with(chat::answer(stream), settings()).await];
    let body = json!({"model": "m", "input": "Hello", "background": background, "stream": stream});
    let key = format!("stream={stream},background={background},resumes={resumes}");
    database.batch_execute(&format!("SELECT pg_advisory_lock({STORES})")).await.unwrap();
    let [late, quick] = rigs.each_ref().map(|rig| post(rig, &key, &body));
    let meanwhile = async {
        about_to_store(database, 2).await;
        database.batch_execute(&format!("SELECT pg_advisory_unlock({STORES})")).await.unwrap();
    };
    let then = async {
        about_to_store(database, 1).await;
        let stands_still = "UPDATE godex.idempotency SET leased_until = now() WHERE key = $1";
        assert_eq!(database.execute(stands_still, &[&key.as_bytes()]).await.unwrap(), 1);
        tokio::join!(quick, meanwhile).0
    };
    let (late, quick) = tokio::join!(late, then);
    assert_eq!(quick.status, 200, "{key}: {}", String::from_utf8_lossy(&quick.body));
    let path = format!("/v1/responses/{}", id_in(&quick.body));
    let done = until(&rigs[0], &path, &["completed"]).await;
    if stream && !background && !resumes {
        let (name, event) = rig::stream(&late).events.pop().unwrap();
        assert_eq!((&*name, &event["response"]["store"]), ("response.failed", &json!(false)), "{key}");
        let message = event["response"]["error"]["message"].as_str().unwrap();
        assert!(message.contains("Idempotency-Key"), "{key}: {message}");
        assert_eq!(rigs[0].get(&format!("/v1/responses/{}", id_in(&late.body))).await.status, 404, "{key}");
    } else {
        let error = rig::error(&late);
        assert_eq!((error.status, &*error.code), (409, "idempotency_key_in_use"), "{key}");
        assert_eq!(late.header("retry-after"), Some("1"), "{key}");
    }
    let asked = rigs.each_ref().map(|rig| rig.upstream.requests().len());
    assert_eq!(asked, [usize::from(!background), 1], "{key}");
    for rig in &rigs {
        let again = post(rig, &key, &body).await;
        let again = if stream { rig::stream(&again).response } else { rig::object(&again) };
        assert_eq!(again, done, "{key}");
    }
    assert_eq!(rigs.each_ref().map(|rig| rig.upstream.requests().len()), asked, "{key}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_lost_its_key_gives_way_to_the_one_that_has_it() {
    let Some(postgres) = Postgres::start() else { return };
    let (database, connection) = tokio_postgres::connect(&postgres.url(), NoTls).await.unwrap();
    let mut running = JoinSet::new();
    running.spawn(connection);
    for (stream, background, resumes) in
        [(false, false, false), (true, false, false), (true, false, true), (false, true, false), (true, true, false)]
    {
        overtaken(&database, &postgres.url(), stream, background, resumes).await;
    }
}
