use testkit::Fate;

use super::*;

#[tokio::test]
async fn what_runs_ends_as_cancelled_and_its_provider_is_left() {
    for stream in [false, true] {
        let rig = Rig::start(stuck()).await;
        let (id, reader) = if stream {
            let mut reader = rig.client.post_stream(&rig.url("/v1/responses"), &request(true)).await.unwrap();
            let read = reader.read_until("\"delta\":\"Hel\"").await.unwrap();
            (id_in(&read), Some((reader, read)))
        } else {
            (submit(&rig).await["id"].as_str().unwrap().to_owned(), None)
        };
        rig.upstream.arrived(1).await;
        let path = format!("/v1/responses/{id}");
        let answer = cancel(&rig, &path).await;
        let cancelled = rig::object(&answer);
        assert_eq!((&cancelled["status"], &cancelled["error"]), (&json!("cancelled"), &json!(null)));
        assert_eq!(cancel(&rig, &path).await.body, answer.body, "the same again");
        assert_eq!(rig.get(&path).await.body, answer.body);
        rig.upstream.closed_after(0).await;
        assert!(matches!(rig.upstream.fate(0), Some(fate) if fate != Fate::Open));
        if let Some((mut reader, mut read)) = reader {
            while let Some(more) = reader.next().await.unwrap() {
                read.extend_from_slice(&more);
            }
            let stream = testkit::grammar::check(&read).unwrap();
            assert_eq!(stream.types().last(), Some(&"response.failed"));
            assert_eq!(stream.response, cancelled);
            assert_eq!(cancelled["output"][0]["content"][0]["text"], "Hel", "the output as it was streamed");
            assert_eq!(cancelled["output"][0]["status"], "incomplete");
        }
    }
}

#[tokio::test]
async fn what_has_ended_stays_as_it_is() {
    for (script, status, words) in [
        (chat::answer(false), "completed", "Cannot cancel a completed response."),
        (Script::json(400, &json!({"error": {"message": "no"}})), "failed", "Cannot cancel a failed response."),
        (
            Script::json(
                200,
                &json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "length"}]}),
            ),
            "incomplete",
            "Cannot cancel an incomplete response.",
        ),
    ] {
        let rig = Rig::start(script).await;
        let response = submit(&rig).await;
        let ended = until(&rig, &path(&response), &[status]).await;
        let error = rig::error(&cancel(&rig, &path(&response)).await);
        assert_eq!((error.status, &*error.message), (400, words));
        assert_eq!(rig.get(&path(&response)).await.json(), ended);
    }
    let rig = Rig::start(chat::answer(false)).await;
    let foreground = rig.post(&json!({"model": "m", "input": "Hello"})).await.json();
    let error = rig::error(&cancel(&rig, &path(&foreground)).await);
    assert_eq!((error.status, &*error.message), (400, "Cannot cancel a synchronous response."));
    assert_eq!(cancel(&rig, "/v1/responses/resp_none").await.status, 404);
}

#[tokio::test]
async fn what_waits_never_runs() {
    let session = "backend: memory, background: {concurrency: 1, queue: 5}".to_owned();
    let rig = Rig::with(stuck(), Settings { session, ..Settings::default() }).await;
    let first = submit(&rig).await;
    let mut second = rig.client.post_stream(&rig.url("/v1/responses"), &request(true)).await.unwrap();
    let mut read = second.read_until("response.queued").await.unwrap();
    let waiting = format!("/v1/responses/{}", id_in(&read));
    let cancelled = rig::object(&cancel(&rig, &waiting).await);
    assert_eq!((&cancelled["status"], &cancelled["output"]), (&json!("cancelled"), &json!([])));
    while let Some(more) = second.next().await.unwrap() {
        read.extend_from_slice(&more);
    }
    let stream = testkit::grammar::check(&read).unwrap();
    assert_eq!(stream.types(), ["response.created", "response.queued", "response.failed"]);
    assert_eq!(stream.response, cancelled);
    assert_eq!(cancel(&rig, &path(&first)).await.status, 200);
    assert_eq!(rig.upstream.requests().len(), 1);
}

/// Whatever comes first, the response ends once and stays so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_race_with_the_end_has_one_winner() {
    for round in 0..100_u64 {
        let rig = race().await;
        let response = submit(rig).await;
        tokio::time::sleep(Duration::from_micros(round * 197 % 12_000)).await;
        let answer = cancel(rig, &path(&response)).await;
        let ended = rig.get(&path(&response)).await;
        match &*ended.json()["status"].as_str().unwrap().to_owned() {
            "cancelled" => assert_eq!((answer.status, &answer.body), (200, &ended.body)),
            "completed" => {
                assert_eq!(rig::error(&answer).message, "Cannot cancel a completed response.");
            }
            other => panic!("{other}"),
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
        assert_eq!(rig.get(&path(&response)).await.body, ended.body);
    }
}

async fn race() -> &'static Rig {
    static RIG: tokio::sync::OnceCell<Rig> = tokio::sync::OnceCell::const_new();
    RIG.get_or_init(|| async { Rig::start(slow(Duration::from_millis(5))).await }).await
}
