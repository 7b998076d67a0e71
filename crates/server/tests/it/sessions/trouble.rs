//! A store that fails: never 401 or 404, nothing lost that was promised, and well again by itself.

use std::time::Duration;

use serde_json::json;
use testkit::{Postgres, Script};

use super::*;
use crate::rig::error;

/// Three megabytes that do not compress to one.
fn noise() -> String {
    let mut state = 1_u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'0' + u8::try_from(state >> 58).unwrap())
    };
    std::iter::repeat_with(next).take(3 << 20).map(|c| if c == '\\' { '~' } else { c }).collect()
}

#[tokio::test]
async fn a_full_store_keeps_nobody_from_an_answer() {
    let big = noise();
    let body = json!({"model": "m", "input": big});
    let rig = rig("backend: memory, max_bytes: 1048576").await;
    let (whole, streamed) = rig.both(&body).await;
    let last = stream(&streamed).events.pop().unwrap().1["response"].clone();
    for response in [object(&whole), last] {
        assert_eq!((&response["status"], &response["store"]), (&json!("completed"), &json!(false)));
        assert_eq!(rig.get(&format!("/v1/responses/{}", id(&response))).await.status, 404);
    }
    let conversation = rig.send(Method::POST, "/v1/conversations", &json!({})).await.json();
    let items = json!({"items": [{"role": "user", "content": big}]});
    let path = format!("/v1/conversations/{}/items", id(&conversation));
    let full = rig.send(Method::POST, &path, &items).await;
    assert_eq!((error(&full).status, error(&full).code.as_str()), (503, "storage_full"));
    assert!(full.header("retry-after").is_some());
    // A conversation is a promise.
    let turn = json!({"model": "m", "input": big, "conversation": conversation["id"]});
    let (whole, streamed) = rig.both(&turn).await;
    assert_eq!((error(&whole).status, error(&whole).code.as_str()), (503, "storage_full"));
    assert_eq!(stream(&streamed).events.pop().unwrap().0, "response.failed");
    // And so is a key: who sends the request again would get another response.
    let headers = [("content-type", "application/json"), ("idempotency-key", "k")];
    let asked = rig.client.request(Method::POST, &rig.url("/v1/responses"), &headers, body.to_string()).await.unwrap();
    assert_eq!((error(&asked).status, error(&asked).code.as_str()), (503, "storage_full"));
    // It is free again, and small things still fit.
    let turn = json!({"model": "m", "input": "Hi", "conversation": conversation["id"]});
    assert_eq!(object(&rig.post(&turn).await)["store"], json!(true));
}

#[tokio::test]
async fn the_strict_fail_what_they_cannot_keep() {
    let rig = rig("backend: memory, max_bytes: 1048576, strict: true").await;
    let (whole, streamed) = rig.both(&json!({"model": "m", "input": noise()})).await;
    assert_eq!((error(&whole).status, error(&whole).code.as_str()), (503, "storage_full"));
    let (name, last) = stream(&streamed).events.pop().unwrap();
    assert_eq!((name.as_str(), &last["response"]["store"]), ("response.failed", &json!(false)));
    assert_eq!(last["response"]["error"]["message"], "The response could not be stored.");
}

#[tokio::test]
async fn a_database_that_goes_and_comes_back() {
    let Some(mut postgres) = Postgres::start() else { return };
    let options = "acquire_ms: 1500, statement_ms: 3000, retry_ms: 600";
    let rig = rig(&format!("backend: postgres, postgres: {{url: '{}', {options}}}", postgres.url())).await;
    let alice = say(&rig, "my name is Alice.", None).await;
    let conversation = rig.send(Method::POST, "/v1/conversations", &json!({})).await.json();

    // A turn that is under way when the database goes away.
    rig.upstream.queue(
        Script::event_stream().event(&chat::text("Hel")).delay(Duration::from_secs(1)).event(&chat::stop()).done(),
    );
    let body = json!({"model": "m", "input": "Hi", "stream": true});
    let mut running = rig.client.post_stream(&rig.url("/v1/responses"), &body).await.unwrap();
    let mut begun = running.read_until("Hel").await.unwrap();
    postgres.crash();
    begun.extend_from_slice(&running.collect().await.unwrap().body);
    let (name, last) = testkit::grammar::check(&begun).unwrap().events.pop().unwrap();
    assert_eq!((name.as_str(), &last["response"]["store"]), ("response.completed", &json!(false)));

    let unavailable = |answer: &Answer| {
        let error = error(answer);
        assert_eq!((error.status, error.code.as_str()), (503, "storage_unavailable"), "{error:?}");
        assert!(answer.header("retry-after").is_some());
    };
    for (method, path, body) in [
        (Method::GET, format!("/v1/responses/{}", id(&alice)), Value::Null),
        (Method::GET, "/v1/responses/resp_nosuch".to_owned(), Value::Null),
        (Method::GET, format!("/v1/responses/{}/input_items", id(&alice)), Value::Null),
        (Method::DELETE, format!("/v1/responses/{}", id(&alice)), Value::Null),
        (Method::POST, "/v1/conversations".to_owned(), json!({})),
        (Method::GET, format!("/v1/conversations/{}", id(&conversation)), Value::Null),
        (Method::POST, "/v1/responses".to_owned(), json!({"model": "m", "input": "Hi"})),
        (
            Method::POST,
            "/v1/responses".to_owned(),
            json!({"model": "m", "input": "Hi", "store": false, "previous_response_id": alice["id"]}),
        ),
    ] {
        unavailable(&rig.send(method, &path, &body).await);
    }
    unavailable(&rig.get("/ready").await);
    assert_eq!(rig.get("/health").await.status, 200);
    assert_eq!(text(&turn(&rig, json!({"input": "Hi", "store": false}), false).await), "nobody (1)");

    postgres.up();
    while rig.get("/ready").await.status != 200 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(rig.get(&format!("/v1/responses/{}", id(&alice))).await.json(), alice);
    assert_eq!(text(&say(&rig, "What's my name?", Some(&alice)).await), "Alice (3)");
}
