//! Budgets of keys: what stops when they are spent, here and on another instance.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::Method;
use serde_json::{Value, json};
use testkit::{Answer, Postgres, Script, Upstream};

use crate::chat;
use crate::rig::{Rig, error, object, object_now, parse};

const POOR: &str = "key-with-a-small-budget-01";
const RICH: &str = "key-without-any-budget-0002";
const SINGLE: &str = "key-with-one-turn-at-a-time";
const FAIR: &str = "key-with-a-larger-budget-04";

/// An answer costs 9,000 nanodollars: three of them are more than 20,000.
const KEYS: &str = "keys:\n- {name: poor, key: key-with-a-small-budget-01, budget: 0.00002usd/total, rpm: 100000}\n\
                    - {name: rich, key: key-without-any-budget-0002}\n\
                    - {name: single, key: key-with-one-turn-at-a-time, budget: 0.0001usd/total, concurrency: 1}\n\
                    - {name: fair, key: key-with-a-larger-budget-04, budget: 0.0001usd/total}\n";

async fn upstream() -> Upstream {
    Upstream::start_with(|received| chat::answer(received.json()["stream"] == true)).await.unwrap()
}

async fn rig(session: &str) -> Rig {
    let (upstream, free) = (upstream().await, upstream().await);
    let text = format!(
        "session: {{{session}}}\nresilience: {{backoff_ms: 2, breaker_failures: 0}}\nproviders:\n  up:\n    spec: \
         openai-compatible\n    endpoint: {{base_url: '{}/v1'}}\n    credentials: {{api_key: k}}\n    models: [m]\n    \
         prices: {{m: {{input: 1, output: 2}}}}\n  unknown:\n    spec: openai-compatible\n    endpoint: {{base_url: \
         '{}/v1'}}\n    credentials: {{api_key: k}}\nmodels: {{aliases: {{both: [unknown/x, up/m]}}}}\n{KEYS}",
        upstream.url(),
        free.url()
    );
    // There until the test is over.
    std::mem::forget(free);
    Rig::serving(upstream, parse(&text)).await.unwrap()
}

async fn post(rig: &Rig, key: &str, path: &str, body: &Value) -> Answer {
    let bearer = format!("Bearer {key}");
    let headers = [("content-type", "application/json"), ("authorization", bearer.as_str())];
    rig.client.request(Method::POST, &rig.url(path), &headers, body.to_string()).await.unwrap()
}

async fn ask(rig: &Rig, key: &str, model: &str) -> Answer {
    post(rig, key, "/v1/responses", &json!({"model": model, "input": "Hi"})).await
}

fn is_spent(answer: &Answer) {
    assert_eq!(error(answer).key(), (429, "insufficient_quota", "insufficient_quota", None));
    assert_eq!((answer.header("x-should-retry"), answer.header("retry-after")), (Some("false"), None));
    assert_eq!(answer.header("x-godex-error"), Some("budget_spent"));
    assert_eq!(answer.header("x-ratelimit-limit-requests"), Some("100000"));
}

/// What is left is promised to what runs: whoever comes later may try again.
fn is_in_use(answer: &Answer) {
    assert_eq!(error(answer).key(), (429, "requests", "rate_limit_exceeded", None));
    assert_eq!((answer.header("x-should-retry"), answer.header("retry-after")), (None, Some("1")));
    assert_eq!(answer.header("x-godex-error"), Some("budget_in_use"));
}

#[tokio::test]
async fn a_budget_that_is_spent_stops_new_turns() {
    let folder = tempfile::tempdir().unwrap();
    let session = format!("sqlite: {{path: '{}'}}", folder.path().join("s.db").display());
    let rig_one = rig(&session).await;
    for _ in 0..3 {
        object(&ask(&rig_one, POOR, "m").await);
    }
    for body in [
        json!({"model": "m", "input": "Hi"}),
        json!({"model": "m", "input": "Hi", "stream": true}),
        json!({"model": "m", "input": "Hi", "store": false}),
        json!({"model": "m", "input": "Hi", "background": true}),
    ] {
        is_spent(&post(&rig_one, POOR, "/v1/responses", &body).await);
    }
    is_spent(&post(&rig_one, POOR, "/v1/responses/compact", &json!({"model": "m", "input": "Hi"})).await);
    assert_eq!(rig_one.upstream.requests().len(), 3);
    // Others, and what costs nothing, go on.
    object(&ask(&rig_one, RICH, "m").await);
    let counted = post(&rig_one, POOR, "/v1/responses/input_tokens", &json!({"model": "m", "input": "Hi"})).await;
    assert_eq!(counted.status, 200);
    rig_one.stop().await;
    // It is spent for good.
    let rig_two = rig(&session).await;
    is_spent(&ask(&rig_two, POOR, "m").await);
    object(&ask(&rig_two, RICH, "m").await);
}

#[tokio::test]
async fn with_a_budget_only_what_has_a_price_may_be_asked() {
    let rig = rig("backend: memory").await;
    let refused = ask(&rig, POOR, "unknown/x").await;
    assert_eq!(error(&refused).key(), (403, "invalid_request_error", "model_not_priced", Some("model")));
    // Of several targets, those that have one.
    object(&ask(&rig, POOR, "both").await);
    assert_eq!(rig.upstream.requests().len(), 1);
    object(&ask(&rig, RICH, "unknown/x").await);
    object(&ask(&rig, RICH, "both").await);
    assert_eq!(rig.upstream.requests().len(), 1);
}

#[tokio::test]
async fn turns_that_run_at_once_do_not_outrun_a_budget_for_long() {
    let rig = rig("backend: memory").await;
    // More than the budget, all at once: what is estimated of each is set aside.
    rig.upstream.queue(Script::silent());
    let body = json!({"model": "m", "input": "x".repeat(120_000)});
    let running = post(&rig, POOR, "/v1/responses", &body);
    let refused = async {
        rig.upstream.arrived(1).await;
        is_in_use(&ask(&rig, POOR, "m").await);
    };
    tokio::select! {
        answer = running => panic!("{answer:?}"),
        () = refused => {}
    }
}

/// What is asked costs next to nothing, and its answer more than all: of a hundred at once few are let in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_answers_may_cost_is_set_aside() {
    let rig = rig("backend: memory").await;
    for _ in 0..100 {
        rig.upstream.queue(Script::silent());
    }
    let body = json!({"model": "m", "input": "Hi", "max_output_tokens": 16});
    let mut asked: FuturesUnordered<_> = (0..100).map(|_| post(&rig, POOR, "/v1/responses", &body)).collect();
    for _ in 0..96 {
        let answer = tokio::time::timeout(Duration::from_secs(30), asked.next()).await.expect("more were let in");
        is_in_use(&answer.unwrap());
    }
    assert!((1..=4).contains(&rig.upstream.requests().len()));
}

/// What a turn continues is sent as well, and costs as much, though it is not in the request.
#[tokio::test]
async fn what_is_continued_is_set_aside_too() {
    let rig = rig("backend: memory").await;
    let long = json!({"model": "m", "input": "x".repeat(120_000)});
    let first = object(&post(&rig, RICH, "/v1/responses", &long).await);
    let next = json!({"model": "m", "input": "Hi", "previous_response_id": first["id"]});
    rig.upstream.queue(Script::silent());
    let running = post(&rig, POOR, "/v1/responses", &next);
    let refused = async {
        rig.upstream.arrived(2).await;
        is_in_use(&ask(&rig, POOR, "m").await);
    };
    tokio::select! {
        answer = running => panic!("{answer:?}"),
        () = refused => {}
    }
}

/// What waits for its place has nothing set aside meanwhile: it would be in the way of others, and of itself.
#[tokio::test]
async fn what_waits_in_the_background_sets_nothing_aside() {
    let rig = rig("backend: memory").await;
    rig.upstream.queue(Script::event_stream().event(&chat::text("Hel")).stall());
    let body = |tokens: u64| json!({"model": "m", "input": "Hi", "background": true, "max_output_tokens": tokens});
    let path = |answer: &Answer| format!("/v1/responses/{}", object_now(answer)["id"].as_str().unwrap());
    let running = path(&post(&rig, SINGLE, "/v1/responses", &body(16)).await);
    rig.upstream.arrived(1).await;
    // May cost more than all that is left, so nothing else could begin beside it.
    let waiting = path(&post(&rig, SINGLE, "/v1/responses", &body(1000)).await);
    tokio::time::sleep(Duration::from_millis(500)).await;
    post(&rig, SINGLE, &format!("{running}/cancel"), &Value::Null).await;
    let answered = tokio::time::timeout(Duration::from_secs(30), rig.upstream.arrived(2)).await;
    assert!(answered.is_ok(), "{waiting} waits for itself");
}

/// Nor does the request that asked for it, though its client listens all the while; and while others use what is left, it
/// waits in the queue.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_listens_to_the_background_sets_nothing_aside() {
    let rig = rig("backend: memory").await;
    // May cost more than all that is left.
    let body = json!({"model": "m", "input": "Hi", "background": true, "stream": true});
    let asked = tokio::time::timeout(Duration::from_secs(30), post(&rig, SINGLE, "/v1/responses", &body)).await;
    let events = asked.expect("it waits for itself");
    assert!(String::from_utf8_lossy(&events.body).contains("response.completed"), "{events:?}");
    // One turn has all of it: the next one is told to wait, and in the background it does so by itself.
    rig.upstream.queue(Script::silent());
    let running = json!({"model": "m", "input": "Hi", "max_output_tokens": 1000});
    let waits = async {
        rig.upstream.arrived(2).await;
        let queued =
            post(&rig, SINGLE, "/v1/responses", &json!({"model": "m", "input": "Hi", "background": true})).await;
        assert_eq!((queued.status, &queued.json()["status"]), (200, &json!("queued")));
    };
    tokio::select! {
        answer = post(&rig, SINGLE, "/v1/responses", &running) => panic!("{answer:?}"),
        () = waits => {}
    }
}

/// What waits while the budget is spent by others fails as whoever asks then is refused.
#[tokio::test]
async fn what_waits_in_the_background_fails_when_the_budget_is_spent() {
    let rig = rig("backend: memory, background: {concurrency: 1}").await;
    rig.upstream.queue(Script::event_stream().event(&chat::text("Hel")).stall());
    let body = json!({"model": "m", "input": "Hi", "background": true});
    let path = |answer: &Answer| format!("/v1/responses/{}", object_now(answer)["id"].as_str().unwrap());
    let running = path(&post(&rig, RICH, "/v1/responses", &body).await);
    rig.upstream.arrived(1).await;
    let waiting = path(&post(&rig, POOR, "/v1/responses", &body).await);
    for _ in 0..3 {
        object(&ask(&rig, POOR, "m").await);
    }
    is_spent(&ask(&rig, POOR, "m").await);
    post(&rig, RICH, &format!("{running}/cancel"), &Value::Null).await;
    let bearer = format!("Bearer {RICH}");
    for _ in 0..600 {
        let headers = [("authorization", bearer.as_str())];
        let ended = rig.client.request(Method::GET, &rig.url(&waiting), &headers, String::new()).await.unwrap().json();
        if ended["status"] == "failed" {
            assert_eq!(ended["error"]["code"], "insufficient_quota", "{ended}");
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it never failed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_instances_share_a_budget() {
    let Some(postgres) = Postgres::start() else { return };
    let session = format!("backend: postgres, postgres: {{url: '{}'}}", postgres.url());
    let (one, two) = (rig(&session).await, rig(&session).await);
    object(&ask(&two, POOR, "m").await);
    let mut answered = 1;
    while ask(&one, POOR, "m").await.status == 200 {
        answered += 1;
        assert!(answered <= 4, "it does not stop");
    }
    // What was spent there is known here within a second or two; until then, this one has its own word.
    let mut tries = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let answer = ask(&two, POOR, "m").await;
        if answer.status == 429 {
            is_spent(&answer);
            break;
        }
        (answered, tries) = (answered + 1, tries + 1);
        assert!(tries < 20, "the other one never learns of it");
    }
    let asked = one.upstream.requests().len() + two.upstream.requests().len();
    assert_eq!(asked, answered);
    // A third one knows it from the start.
    one.stop().await;
    two.stop().await;
    is_spent(&ask(&rig(&session).await, POOR, "m").await);
}

/// What is set aside on one instance is not there on the other, for as long as the turn runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_instances_share_what_is_set_aside() {
    let Some(postgres) = Postgres::start() else { return };
    let session = format!("backend: postgres, postgres: {{url: '{}'}}", postgres.url());
    let (one, two) = (rig(&session).await, rig(&session).await);
    one.upstream.queue(Script::silent());
    let body = json!({"model": "m", "input": "Hi", "max_output_tokens": 100});
    let running = post(&one, FAIR, "/v1/responses", &body);
    let refused = async {
        one.upstream.arrived(1).await;
        for _ in 0..4 {
            is_in_use(&ask(&two, FAIR, "m").await);
            is_in_use(&ask(&one, FAIR, "m").await);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::select! {
        answer = running => panic!("{answer:?}"),
        () = refused => {}
    }
    assert_eq!((one.upstream.requests().len(), two.upstream.requests().len()), (1, 0));
    // Its client has left, and it has cost little: what was set aside is there again.
    for tries in 0.. {
        let answer = ask(&two, FAIR, "m").await;
        if answer.status == 200 {
            break;
        }
        is_in_use(&answer);
        assert!(tries < 40, "it stays set aside");
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}
