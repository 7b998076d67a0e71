use super::*;

/// The text of a stream from the event after this number on.
fn after(sse: &[u8], number: u64) -> String {
    let text = String::from_utf8_lossy(sse);
    let frames: Vec<&str> = text.split_inclusive("\n\n").collect();
    let events = frames.iter().filter(|frame| frame.starts_with("event:")).count();
    frames[usize::try_from(number + 1).unwrap().min(events)..].concat()
}

async fn resumed(rig: &Rig, id: &str, query: &str) -> Answer {
    rig.get(&format!("/v1/responses/{id}?stream=true{query}")).await
}

#[tokio::test]
async fn a_stream_is_the_same_from_any_event_on() {
    for session in ["backend: memory".to_owned(), "backend: memory, resume_foreground: true".to_owned()] {
        let background = !session.contains("resume");
        let rig = Rig::with(slow(Duration::from_millis(20)), Settings { session, ..Settings::default() }).await;
        let mut body = request(true);
        body["background"] = json!(background);
        let whole = rig.post(&body).await;
        let stream = rig::stream(&whole);
        let id = id_in(&whole.body);
        assert_eq!(rig.get(&format!("/v1/responses/{id}")).await.json(), stream.response);
        assert_eq!(resumed(&rig, &id, "").await.body, whole.body);
        let last = stream.events.len() as u64 - 1;
        for number in 0..last {
            let rest = resumed(&rig, &id, &format!("&starting_after={number}")).await;
            assert_eq!(String::from_utf8_lossy(&rest.body), after(&whole.body, number), "{number}");
        }
        for number in [last, last + 1, u64::MAX] {
            let nothing = resumed(&rig, &id, &format!("&starting_after={number}")).await;
            assert_eq!((nothing.status, &*nothing.body), (200, &b"data: [DONE]\n\n"[..]), "{number}");
        }
    }
}

#[tokio::test]
async fn several_readers_follow_what_is_being_made() {
    let rig = Rig::start(slow(Duration::from_millis(200))).await;
    let mut first = rig.client.post_stream(&rig.url("/v1/responses"), &request(true)).await.unwrap();
    let read = first.read_until("\"delta\":\"Hel\"").await.unwrap();
    let id = id_in(&read);
    // The first one is gone; the others find all of it.
    drop(first);
    let (all, some, late) = tokio::join!(resumed(&rig, &id, ""), resumed(&rig, &id, "&starting_after=3"), async {
        until(&rig, &format!("/v1/responses/{id}"), &["completed"]).await;
        resumed(&rig, &id, "").await
    });
    rig::stream(&all);
    assert!(all.body.starts_with(&read));
    assert_eq!(String::from_utf8_lossy(&some.body), after(&all.body, 3));
    assert_eq!(all.body, late.body);
    assert_eq!(rig.upstream.requests().len(), 1);
}

#[tokio::test]
async fn what_was_not_made_to_be_streamed_again_is_not() {
    let rig = Rig::start(chat::answer(false)).await;
    let background = submit(&rig).await;
    until(&rig, &path(&background), &["completed"]).await;
    let foreground = rig.post(&json!({"model": "m", "input": "Hello"})).await.json();
    for (response, wanted) in [(&background, "background=true and stream=true"), (&foreground, "background=true")] {
        let error = rig::error(&rig.get(&format!("{}?stream=true", path(response))).await);
        let message = format!("This response cannot be streamed because it was not created with {wanted}.");
        assert_eq!((error.status, error.param.as_deref(), error.message), (400, Some("stream"), message));
    }
    assert_eq!(resumed(&rig, "resp_none", "").await.status, 404);
    for (value, code) in [("-1", "integer_below_min_value"), ("x", "invalid_type"), ("1.5", "invalid_type")] {
        let error = rig::error(&resumed(&rig, "resp_none", &format!("&starting_after={value}")).await);
        assert_eq!((error.status, &*error.code, error.param.as_deref()), (400, code, Some("starting_after")));
    }
}

/// When the log is gone, the stored response tells the same story.
#[tokio::test]
async fn after_its_time_a_stream_is_made_from_the_response() {
    let session = "backend: memory, event_ttl: 1s, ttl: 10s".to_owned();
    let rig = Rig::with(slow(Duration::ZERO), Settings { session, ..Settings::default() }).await;
    let whole = rig.post(&request(true)).await;
    let (id, stream) = (id_in(&whole.body), rig::stream(&whole));
    let mut made = whole.clone();
    for _ in 0..500 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        made = resumed(&rig, &id, "").await;
        if made.body != whole.body {
            break;
        }
    }
    let canonical = rig::stream(&made);
    assert_ne!(canonical.events.len(), stream.events.len(), "the log is gone");
    assert_eq!(canonical.response, stream.response);
    let last = stream.events.len() as u64 - 1;
    let terminal = resumed(&rig, &id, "&starting_after=2").await;
    assert_eq!(String::from_utf8_lossy(&terminal.body), after(&whole.body, last - 1), "under its own number");
    assert_eq!(resumed(&rig, &id, &format!("&starting_after={last}")).await.body, "data: [DONE]\n\n");
}
