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
