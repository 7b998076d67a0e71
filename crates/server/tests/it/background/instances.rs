//! Two instances on one database.

use testkit::{Fate, Postgres};

use super::*;

async fn pair(postgres: &Postgres, script: Script) -> [Rig; 2] {
    let settings = || Settings {
        session: format!(
            "backend: postgres, postgres: {{url: '{}'}}, background: {{concurrency: 2, queue: 10}}",
            postgres.url()
        ),
        ..Settings::default()
    };
    [Rig::with(script.clone(), settings()).await, Rig::with(script, settings()).await]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_is_followed_where_it_is_not_made() {
    let Some(postgres) = Postgres::start() else { return };
    let [one, two] = pair(&postgres, slow(Duration::from_millis(300))).await;
    let mut made = one.client.post_stream(&one.url("/v1/responses"), &request(true)).await.unwrap();
    let read = made.read_until("\"delta\":\"Hel\"").await.unwrap();
    let path = format!("/v1/responses/{}", id_in(&read));
    let followed = two.get(&format!("{path}?stream=true")).await;
    rig::stream(&followed);
    let mut whole = read;
    while let Some(more) = made.next().await.unwrap() {
        whole.extend_from_slice(&more);
    }
    assert_eq!(String::from_utf8_lossy(&followed.body), String::from_utf8_lossy(&whole));
    assert_eq!(one.get(&path).await.body, two.get(&path).await.body);
    assert!(two.upstream.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_is_cancelled_where_it_does_not_run() {
    let Some(postgres) = Postgres::start() else { return };
    let [one, two] = pair(&postgres, stuck()).await;
    let mut made = one.client.post_stream(&one.url("/v1/responses"), &request(true)).await.unwrap();
    let mut read = made.read_until("\"delta\":\"Hel\"").await.unwrap();
    let path = format!("/v1/responses/{}", id_in(&read));
    let answer = cancel(&two, &path).await;
    let cancelled = rig::object(&answer);
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(cancelled["output"][0]["content"][0]["text"], "Hel");
    assert_eq!(cancel(&one, &path).await.body, answer.body);
    one.upstream.closed_after(0).await;
    assert!(matches!(one.upstream.fate(0), Some(fate) if fate != Fate::Open));
    while let Some(more) = made.next().await.unwrap() {
        read.extend_from_slice(&more);
    }
    assert_eq!(testkit::grammar::check(&read).unwrap().response, cancelled);
}

/// The caps are those of all instances together, and whoever has a place takes what waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_is_run_by_whoever_can() {
    let Some(postgres) = Postgres::start() else { return };
    let [one, two] = pair(&postgres, slow(Duration::from_millis(100))).await;
    let mut responses = Vec::new();
    for round in 0..10 {
        let rig = if round % 2 == 0 { &one } else { &two };
        responses.push(submit(rig).await);
    }
    for response in &responses {
        until(&two, &path(response), &["completed"]).await;
    }
    assert_eq!(one.upstream.requests().len() + two.upstream.requests().len(), 10, "each was made once");
    let waiting = submit(&one).await;
    one.stop().await;
    until(&two, &path(&waiting), &["completed", "failed"]).await;
}
