//! What ends a turn ends the summary that is made for it: a client that leaves, a cancellation, a deadline.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use testkit::{Received, Script, Upstream};

use super::{PROMPT, kinds, text_of, turn_text, user};
use crate::chat;
use crate::rig::{self, Rig, Settings, object, object_now};

/// A provider whose summaries begin, and do not end.
async fn stuck(settings: Settings) -> Rig {
    let choose = |received: &Received| {
        let stream = received.json()["stream"] == true;
        if !String::from_utf8_lossy(&received.body).contains(PROMPT) {
            return chat::answer(stream);
        }
        chat::chunks()[..2].iter().fold(Script::event_stream(), Script::event).stall()
    };
    Rig::before(Upstream::start_with(choose).await.unwrap(), settings).await
}

fn request() -> Value {
    let mut input: Vec<Value> = (1..20).map(|turn| user(&turn_text(turn))).collect();
    input.push(user("Go on."));
    json!({"model": "m", "input": input, "context_management": [{"type": "compaction", "compact_threshold": 2000}]})
}

fn with(mut request: Value, more: &Value) -> Value {
    request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    request
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_waits_gets_signs_of_life_and_one_that_leaves_ends_it() {
    let rig = stuck(Settings { server: "heartbeat: 1s", ..Settings::default() }).await;
    let body = with(request(), &json!({"stream": true}));
    let mut stream = rig.client.post_stream(&rig.url("/v1/responses"), &body).await.unwrap();
    let mut seen = String::new();
    while seen.matches("event: response.in_progress").count() < 2 {
        seen.push_str(&String::from_utf8_lossy(&stream.next().await.unwrap().unwrap()));
    }
    drop(stream);
    rig.upstream.closed_after(0).await;
    assert_eq!(rig.upstream.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_background_turn_is_cancelled_while_its_summary_is_made() {
    let rig = stuck(Settings::default()).await;
    let response = object_now(&rig.post(&with(request(), &json!({"background": true}))).await);
    let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    rig.upstream.arrived(1).await;
    let cancelled = rig.send(Method::POST, &format!("{path}/cancel"), &Value::Null).await;
    assert_eq!(object(&cancelled)["status"], "cancelled");
    rig.upstream.closed_after(0).await;
    assert_eq!(object(&rig.get(&path).await)["output"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_summary_that_takes_too_long_is_a_deadline_missed() {
    let rig = stuck(Settings { timeouts: "idle_ms: 300", ..Settings::default() }).await;
    let late = rig::error(&rig.post(&request()).await);
    assert_eq!(late.domain, "upstream_timeout");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_background_turn_is_compacted_like_any_other() {
    let (rig, _) = super::Scribe::start(Settings::default()).await;
    let mut request = with(request(), &json!({"background": true}));
    request["input"].as_array_mut().unwrap().push(user("What is port?"));
    let response = object_now(&rig.post(&request).await);
    let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    for _ in 0..3000 {
        let response = object_now(&rig.get(&path).await);
        if response["status"] == "completed" {
            assert_eq!(
                (kinds(&response), text_of(&response)),
                (vec!["compaction", "message"], "It is 58213.".to_owned())
            );
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never ended");
}

/// A provider that cannot be asked for a summary answers all the same, if the context still fits.
#[tokio::test]
async fn without_a_summary_the_answer_comes_from_the_whole_context() {
    let choose = |received: &Received| {
        let stream = received.json()["stream"] == true;
        if String::from_utf8_lossy(&received.body).contains(PROMPT) {
            return Script::json(400, &json!({"error": {"message": "no"}}));
        }
        chat::answer(stream)
    };
    let rig = Rig::before(Upstream::start_with(choose).await.unwrap(), Settings::default()).await;
    let (whole, streamed) = rig.both(&request()).await;
    assert!(whole.header("x-godex-compat").is_some_and(|notes| notes.contains("context_management=ignored")));
    for response in [object(&whole), rig::stream(&streamed).response] {
        assert_eq!(kinds(&response), ["message"]);
    }
}

/// A provider whose summaries are these, one after the other; the last one for ever.
async fn writing(summaries: Vec<(String, &'static str)>, settings: Settings) -> Rig {
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let choose = move |received: &Received| {
        let body = received.json();
        if !String::from_utf8_lossy(&received.body).contains(PROMPT) {
            return chat::answer(body["stream"] == true);
        }
        let at = asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed).min(summaries.len() - 1);
        let (text, reason) = &summaries[at];
        let chunk = |delta: Value, reason: Option<&str>| {
            json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
                "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
        };
        Script::sse(&[chunk(json!({"role": "assistant", "content": text}), None), chunk(json!({}), Some(reason))])
    };
    Rig::before(Upstream::start_with(choose).await.unwrap(), settings).await
}

/// What breaks off is asked for once more, shorter, and is no summary then.
#[tokio::test]
async fn a_summary_that_breaks_off_is_none() {
    let half = || ("Half a".to_owned(), "length");
    let rig = writing(vec![half(), ("They met.".to_owned(), "stop")], Settings::default()).await;
    assert_eq!(kinds(&object(&rig.post(&request()).await)), ["compaction", "message"]);
    assert_eq!(rig.upstream.requests().len(), 3);
    let first = rig.upstream.requests()[0].json();
    assert_eq!(first["max_tokens"], 4096, "{first}");
    let rig = writing(vec![half()], Settings::default()).await;
    let answer = rig.post(&request()).await;
    assert_eq!(answer.header("x-godex-compat"), Some("context_management=ignored"));
    assert_eq!(kinds(&object(&answer)), ["message"]);
    let trigger = json!({"model": "m", "input": [user("x"), {"type": "compaction_trigger"}]});
    assert_eq!(rig::error(&rig.post(&trigger).await).domain, "upstream_truncated");
    let compacted = rig.send(Method::POST, "/v1/responses/compact", &json!({"model": "m", "input": "x"})).await;
    assert_eq!(rig::error(&compacted).domain, "upstream_truncated");
    // Where nothing may be left out without a word, the wish that cannot be met is refused.
    let strict = Settings { tweak: Some(|config| config.compat.strict = true), ..Settings::default() };
    let rig = writing(vec![half()], strict).await;
    let refused = rig::error(&rig.post(&request()).await);
    assert_eq!((refused.status, rig.upstream.requests().len()), (400, 2), "{refused:?}");
}

/// A summary never takes more room than it makes.
#[tokio::test]
async fn a_summary_that_is_too_long_loses_its_middle() {
    let long = format!("BEGIN {} END", "lorem ipsum ".repeat(20_000));
    let rig = writing(vec![(long, "stop")], Settings::default()).await;
    let answer = rig.post(&request()).await;
    assert_eq!(answer.header("x-godex-compat"), Some("input=degraded"));
    assert_eq!(kinds(&object(&answer)), ["compaction", "message"]);
    let body = rig.upstream.requests().last().unwrap().json().to_string();
    assert!(body.contains("BEGIN ") && body.contains(" END") && body.len() / 4 < 1200, "{}", body.len());
    let few = json!({"model": "m", "input": "x"});
    let compacted = rig.send(Method::POST, "/v1/responses/compact", &few).await;
    assert_eq!(compacted.header("x-godex-compat"), Some("input=degraded"));
    assert!(compacted.body.len() < 8000, "{}", compacted.body.len());
}
