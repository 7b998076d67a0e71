//! What keys and tenants may use, and what the server can bear.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use testkit::{Answer, Postgres, Script, Upstream};

use crate::bodies::gzip;
use crate::chat;
use crate::rig::{self, Rig, error, object};
use crate::socket::Socket;
use crate::websocket::client::Client;

/// Nothing here takes as long.
const PATIENCE: Duration = Duration::from_secs(40);

const A: &str = "key-of-the-tenant-a-0001";
const B: &str = "key-of-the-tenant-b-0002";

/// Two keys, of which the first has these terms.
async fn with(terms: &str, more: &str) -> Rig {
    start(&format!("session: {{backend: memory}}\n{more}"), terms).await
}

async fn start(more: &str, terms: &str) -> Rig {
    // Whoever asks for a stream waits for its end; others are answered.
    let script = |request: &testkit::Received| {
        if request.json()["messages"].to_string().contains("wait") {
            return Script::event_stream().event(&chat::text("Hel")).stall();
        }
        chat::answer(request.json()["stream"] == true)
    };
    let upstream = Upstream::start_with(script).await.unwrap();
    let config = format!(
        "{more}\nproviders:\n  up:\n    spec: openai-compatible\n    endpoint: {{base_url: '{}/v1'}}\n    credentials: \
         {{api_key: k}}\n    models: [m]\nkeys:\n- {{name: a, tenant: a, key: {A}, {terms}}}\n- {{name: b, tenant: b, \
         key: {B}}}\n",
        upstream.url()
    );
    Rig::serving(upstream, rig::parse(&config)).await.unwrap()
}

async fn send(rig: &Rig, key: &str, path: &str, body: &Value, more: &[(&str, &str)]) -> Answer {
    let bearer = format!("Bearer {key}");
    let mut headers = vec![("content-type", "application/json"), ("authorization", bearer.as_str())];
    headers.extend_from_slice(more);
    let (method, body) = if body.is_null() { (Method::GET, String::new()) } else { (Method::POST, body.to_string()) };
    rig.client.request(method, &rig.url(path), &headers, body).await.unwrap()
}

async fn ask(rig: &Rig, key: &str) -> Answer {
    send(rig, key, "/v1/responses", &json!({"model": "m", "input": "Hi"}), &[]).await
}

/// A response that does not end.
async fn hold(rig: &Rig, key: &str) -> testkit::Streaming {
    let bearer = format!("Bearer {key}");
    let headers = [("content-type", "application/json"), ("authorization", bearer.as_str())];
    let body = json!({"model": "m", "input": "wait", "stream": true}).to_string();
    let mut streaming = rig.client.open(Method::POST, &rig.url("/v1/responses"), &headers, body).await.unwrap();
    streaming.read_until("\"delta\":\"Hel\"").await.unwrap();
    streaming
}

/// Asks until it is answered.
async fn until_answered(rig: &Rig, key: &str) {
    let answered = async {
        while ask(rig, key).await.status != 200 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, answered).await.unwrap();
}

fn requests_left(answer: &Answer) -> Option<&str> {
    answer.header("x-ratelimit-remaining-requests")
}

#[tokio::test]
async fn a_key_may_ask_so_often_and_is_told_how_often() {
    let rig = with("rpm: 3, tpm: 100000", "").await;
    let stream = json!({"model": "m", "input": "Hi", "stream": true});
    let compact =
        json!({"model": "m", "input": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}]});
    let mut left = Vec::new();
    for (path, body) in [
        ("/v1/responses", json!({"model": "m", "input": "Hi"})),
        ("/v1/responses", stream.clone()),
        // These ask nobody.
        ("/v1/responses/input_tokens", json!({"model": "m", "input": "Hi"})),
        ("/v1/models", Value::Null),
        ("/v1/responses/compact", compact),
    ] {
        let answer = send(&rig, A, path, &body, &[]).await;
        left.push((path, answer.status, requests_left(&answer).map(str::to_owned)));
    }
    let some = |left: &str| Some(left.to_owned());
    let [first, second, counted, listed, third] = &left[..] else { panic!("{left:?}") };
    assert_eq!([first, second].map(|(_, status, left)| (*status, left.clone())), [(200, some("2")), (200, some("1"))]);
    assert_eq!([counted, listed].map(|(_, status, left)| (*status, left.clone())), [(200, None), (200, None)]);
    assert_eq!(third.2, some("0"), "{left:?}");
    for body in [json!({"model": "m", "input": "Hi"}), stream] {
        let refused = send(&rig, A, "/v1/responses", &body, &[]).await;
        let found = error(&refused);
        assert_eq!((found.status, &*found.kind, &*found.code), (429, "requests", "rate_limit_exceeded"));
        assert!(found.message.starts_with("Rate limit reached for key 'a' on requests per min (RPM): Limit 3, Used 3"));
        assert!(refused.header("retry-after").unwrap().parse::<u32>().unwrap() >= 1);
        let names = ["limit-requests", "remaining-requests", "limit-tokens"];
        let found = names.map(|name| refused.header(&format!("x-ratelimit-{name}")).unwrap_or_default().to_owned());
        assert_eq!(found, ["3", "0", "100000"]);
        for name in ["reset-requests", "reset-tokens"] {
            assert!(refused.header(&format!("x-ratelimit-{name}")).unwrap().ends_with('s'), "{:?}", refused.headers);
        }
    }
    // Nobody else is concerned, and who has no limits is told of none.
    let other = ask(&rig, B).await;
    object(&other);
    assert!(other.headers.keys().all(|name| !name.as_str().starts_with("x-ratelimit")), "{:?}", other.headers);
}

/// Whatever is wrong with it: nobody was asked, and nothing is used.
#[tokio::test]
async fn a_bad_request_is_no_request() {
    let rig = with("rpm: 2, tpm: 100000", "").await;
    let bearer = format!("Bearer {A}");
    let headers = [("content-type", "application/json"), ("authorization", bearer.as_str())];
    let item = json!([{"type": "function_call_output", "call_id": "gone", "output": "x"}]);
    let (respond, compact) = ("/v1/responses", "/v1/responses/compact");
    // What is submitted takes its tokens when it runs.
    let (none, all, submitted) = ((None, None), (Some("2"), Some("100000")), (Some("2"), None));
    for (path, body, status, left) in [
        (respond, "{".to_owned(), 400, none),
        (respond, json!({"model": 7}).to_string(), 400, none),
        (respond, json!({"model": "m"}).to_string(), 400, all),
        (respond, json!({"model": "m", "input": []}).to_string(), 400, all),
        (respond, json!({"model": "m", "input": item}).to_string(), 400, all),
        (respond, json!({"model": "m", "input": [], "stream": true}).to_string(), 400, all),
        (respond, json!({"model": "m", "input": [], "background": true}).to_string(), 400, submitted),
        (respond, json!({"model": "m", "input": "x", "previous_response_id": "resp_x"}).to_string(), 400, all),
        (compact, "{".to_owned(), 400, none),
        (compact, json!({"model": "m", "input": []}).to_string(), 400, all),
        (compact, json!({"model": "m", "input": "x", "previous_response_id": "resp_x"}).to_string(), 400, all),
    ] {
        let answer = rig.client.request(Method::POST, &rig.url(path), &headers, body.clone()).await.unwrap();
        let found = (requests_left(&answer), answer.header("x-ratelimit-remaining-tokens"));
        assert_eq!((answer.status, found), (status, left), "{path} {body}");
    }
    let (mut client, _) = Client::connect_as(&rig, &[("authorization", &bearer)]).await;
    for _ in 0..3 {
        client.say(&json!({"type": "response.create", "model": "m", "input": []})).await;
        assert_eq!(client.next().await["status"], 400);
    }
    // Somebody was asked.
    assert_eq!(requests_left(&ask(&rig, A).await), Some("1"));
}

#[tokio::test]
async fn codex_goes_on_after_a_limit() {
    let rig = with("rpm: 1", "").await;
    ask(&rig, A).await;
    for (agent, status, wait) in [
        ("codex_cli_rs/0.170.0 (x)", 429, 1..=60),
        ("codex_cli_rs/0.120.0 (x)", 503, 1..=60),
        ("other/1", 429, 60..=120),
    ] {
        let body = json!({"model": "m", "input": "Hi", "stream": true});
        let refused = send(&rig, A, "/v1/responses", &body, &[("user-agent", agent)]).await;
        let seconds = refused.header("retry-after").unwrap().parse::<u32>().unwrap();
        assert_eq!(refused.status, status, "{agent}");
        assert!(wait.contains(&seconds), "{agent}: {seconds}");
        assert_eq!(refused.header("x-godex-error"), Some("requests_per_minute"));
    }
}

#[tokio::test]
async fn what_is_too_much_for_a_minute_is_not_asked_again() {
    let rig = with("tpm: 1000, rpm: 9", "").await;
    let body = json!({"model": "m", "input": "x".repeat(8000)});
    let refused = send(&rig, A, "/v1/responses", &body, &[]).await;
    let left = ["limit-requests", "remaining-requests", "limit-tokens", "remaining-tokens"];
    let left = left.map(|name| refused.header(&format!("x-ratelimit-{name}")).unwrap_or_default().to_owned());
    assert_eq!(left, ["9", "9", "1000", "1000"]);
    let found = error(&refused);
    assert_eq!((found.status, &*found.kind, &*found.code), (429, "tokens", "rate_limit_exceeded"));
    assert!(
        found.message.starts_with("Request too large for key 'a' on tokens per min (TPM): Limit 1000, Requested 20")
    );
    assert_eq!((refused.header("x-should-retry"), refused.header("retry-after")), (Some("false"), None));
    // Held back as long as it runs.
    let body = json!({"model": "m", "input": "x".repeat(2000) + " wait", "stream": true});
    let bearer = format!("Bearer {A}");
    let headers = [("content-type", "application/json"), ("authorization", bearer.as_str())];
    let mut held = rig.client.open(Method::POST, &rig.url("/v1/responses"), &headers, body.to_string()).await.unwrap();
    held.read_until("\"delta\":\"Hel\"").await.unwrap();
    let body = json!({"model": "m", "input": "x".repeat(2000)});
    let refused = send(&rig, A, "/v1/responses", &body, &[]).await;
    assert_eq!(refused.header("x-godex-error"), Some("tokens_per_minute"));
}

#[tokio::test]
async fn what_a_request_continues_counts_for_its_tokens() {
    let rig = with("tpm: 2000, rpm: 9", "").await;
    let first = object(&send(&rig, A, "/v1/responses", &json!({"model": "m", "input": "x".repeat(4000)}), &[]).await);
    let body = json!({"model": "m", "input": "wait", "stream": true, "previous_response_id": first["id"]});
    let bearer = format!("Bearer {A}");
    let headers = [("content-type", "application/json"), ("authorization", bearer.as_str())];
    let mut held = rig.client.open(Method::POST, &rig.url("/v1/responses"), &headers, body.to_string()).await.unwrap();
    held.read_until("\"delta\":\"Hel\"").await.unwrap();
    let body = json!({"model": "m", "input": "Hi", "previous_response_id": first["id"]});
    let refused = send(&rig, A, "/v1/responses", &body, &[]).await;
    assert_eq!((refused.status, refused.header("x-godex-error")), (429, Some("tokens_per_minute")));
    assert_eq!(requests_left(&refused), Some("7"), "it was no request");
    object(&ask(&rig, A).await);
}

#[tokio::test]
async fn a_key_may_run_so_many_at_once() {
    let rig = with("concurrency: 1", "").await;
    let held = hold(&rig, A).await;
    let refused = ask(&rig, A).await;
    assert_eq!((refused.status, refused.header("x-godex-error")), (429, Some("turns_at_once")));
    assert_eq!(refused.header("retry-after"), Some("1"));
    object(&ask(&rig, B).await);
    drop(held);
    until_answered(&rig, A).await;
}

#[tokio::test]
async fn a_socket_is_told_in_its_own_words() {
    let rig = with("rpm: 1", "").await;
    let bearer = format!("Bearer {A}");
    let (mut client, _) = Client::connect_as(&rig, &[("authorization", &bearer)]).await;
    let create = json!({"type": "response.create", "model": "m", "input": "Hi"});
    client.respond(&create).await;
    client.say(&create).await;
    let told = client.next().await;
    assert_eq!((&told["type"], &told["status"]), (&json!("error"), &json!(429)), "{told}");
    assert_eq!((&told["error"]["code"], &told["error"]["type"]), (&json!("rate_limit_exceeded"), &json!("requests")));
    assert!(told["headers"]["retry-after"].is_string(), "{told}");
}

#[tokio::test]
async fn a_background_response_waits_for_its_place() {
    let rig = with("concurrency: 1, rpm: 3", "").await;
    let held = hold(&rig, A).await;
    let body = json!({"model": "m", "input": "Hi", "background": true});
    let submitted = send(&rig, A, "/v1/responses", &body, &[]).await;
    assert_eq!((submitted.status, requests_left(&submitted)), (200, Some("1")));
    let path = format!("/v1/responses/{}", submitted.json()["id"].as_str().unwrap());
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(send(&rig, A, &path, &Value::Null, &[]).await.json()["status"], "queued");
    drop(held);
    let ended = async {
        while send(&rig, A, &path, &Value::Null, &[]).await.json()["status"] != "completed" {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.unwrap();
    // It was one request, and not one more when it ran.
    assert_eq!(requests_left(&ask(&rig, A).await), Some("0"));
}

#[tokio::test]
async fn so_many_background_responses_wait() {
    let background = "session: {backend: memory, background: {concurrency: 1}}";
    let rig = start(background, "queue: 1, rpm: 9").await;
    let body = json!({"model": "m", "input": "wait", "background": true});
    let mut found = Vec::new();
    for _ in 0..3 {
        let answer = send(&rig, A, "/v1/responses", &body, &[]).await;
        found.push((answer.status, requests_left(&answer).map(str::to_owned)));
        rig.upstream.arrived(1).await;
    }
    // The last one was no request.
    assert_eq!(found, [(200, "8"), (200, "7"), (429, "7")].map(|(status, left)| (status, Some(left.to_owned()))));
    // Of another tenant as many as usual.
    for _ in 0..3 {
        assert_eq!(send(&rig, B, "/v1/responses", &body, &[]).await.status, 200);
    }
}

/// How many were taken of those that came at once, how many of them run, and how many wait.
async fn burst(rig: &Rig, key: &str, count: usize) -> (usize, usize, usize) {
    let body = json!({"model": "m", "input": "wait", "background": true});
    let answers = futures_util::future::join_all((0..count).map(|_| send(rig, key, "/v1/responses", &body, &[]))).await;
    let taken: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 200).collect();
    assert!(answers.iter().all(|answer| [200, 429].contains(&answer.status)));
    let (mut running, mut waiting) = (0, 0);
    tokio::time::sleep(Duration::from_millis(500)).await;
    for answer in &taken {
        let path = format!("/v1/responses/{}", answer.json()["id"].as_str().unwrap());
        let now = send(rig, key, &path, &Value::Null, &[]).await.json();
        running += usize::from(now["status"] == "in_progress");
        waiting += usize::from(now["status"] == "queued");
    }
    (taken.len(), running, waiting)
}

/// However many come at once, and whatever they wait for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_background_responses_wait_than_may() {
    for (terms, running, waiting) in [
        ("concurrency: 2, queue: 3", 2, 3),
        ("concurrency: 1, queue: 1", 1, 1),
        ("concurrency: 1, queue: 0", 1, 0),
        // One is taken for more than 600 of them.
        ("tpm: 2500, queue: 2", 3, 2),
    ] {
        let rig = with(terms, "").await;
        assert_eq!(burst(&rig, A, 40).await, (running + waiting, running, waiting), "{terms}");
        // And so it stays.
        assert_eq!(burst(&rig, A, 10).await, (0, 0, 0), "{terms}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_background_responses_wait_than_may_on_postgres() {
    let Some(postgres) = Postgres::start() else { return };
    let session = format!("session: {{backend: postgres, postgres: {{url: '{}'}}}}", postgres.url());
    let [one, two] =
        [start(&session, "concurrency: 2, queue: 3").await, start(&session, "concurrency: 2, queue: 3").await];
    let (first, second) = tokio::join!(burst(&one, A, 20), burst(&two, A, 20));
    let both = (first.0 + second.0, first.1 + second.1, first.2 + second.2);
    assert_eq!(both, (5, 2, 3), "{first:?} {second:?}");
}

#[tokio::test]
async fn background_responses_of_a_key_run_the_oldest_first() {
    let rig = with("concurrency: 1", "").await;
    let held = hold(&rig, A).await;
    for number in 0..12 {
        let body = json!({"model": "m", "input": format!("number {number:02}"), "background": true});
        assert_eq!(send(&rig, A, "/v1/responses", &body, &[]).await.status, 200);
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    drop(held);
    tokio::time::timeout(PATIENCE, rig.upstream.arrived(13)).await.unwrap();
    let asked = rig.upstream.requests().into_iter().skip(1).map(|request| request.json()["messages"].to_string());
    let expected: Vec<String> = (0..12).map(|number| format!("number {number:02}")).collect();
    for (asked, expected) in asked.zip(expected) {
        assert!(asked.contains(&expected), "{asked} in place of {expected}");
    }
}

#[tokio::test]
async fn the_bodies_of_a_key_hold_so_much() {
    let rig = with("body_bytes: 1000", "").await;
    let body = json!({"model": "m", "input": "x".repeat(2000)});
    let refused = send(&rig, A, "/v1/responses", &body, &[]).await;
    assert_eq!((refused.status, refused.header("x-godex-error")), (429, Some("request_beyond_limit")));
    object(&ask(&rig, A).await);
    object(&send(&rig, B, "/v1/responses", &body, &[]).await);
}

/// A body comes in pieces, none of which is too large.
#[tokio::test]
async fn a_body_that_no_wait_helps_is_refused_for_good() {
    let rig = with("body_bytes: 200000", "").await;
    let body = json!({"model": "m", "input": "x".repeat(250_000)});
    let refused = send(&rig, A, "/v1/responses", &body, &[]).await;
    assert_eq!((refused.status, refused.header("x-godex-error")), (429, Some("request_beyond_limit")));
    assert_eq!((refused.header("x-should-retry"), refused.header("retry-after")), (Some("false"), None));
    // Nobody says how long it will be.
    let text = json!({"model": "m", "input": "x".repeat(200_000)}).to_string();
    let pieces = text.as_bytes().chunks(10_000).map(|piece| (piece.len(), String::from_utf8_lossy(piece)));
    let pieces: Vec<String> = pieces.map(|(length, piece)| format!("{length:x}\r\n{piece}\r\n")).collect();
    let mut socket = Socket::connect(rig.address).await;
    let head = "POST /v1/responses HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let head = format!("{head}authorization: Bearer {A}\r\ntransfer-encoding: chunked\r\n\r\n");
    socket.send(&format!("{head}{}0\r\n\r\n", pieces.concat())).await;
    let said = socket.read_until("rate_limit_exceeded").await.to_ascii_lowercase();
    assert!(said.starts_with("http/1.1 429") && said.contains("x-godex-error: request_beyond_limit"), "{said}");
    // What is not too large fits, also if it was made smaller on its way.
    let body = json!({"model": "m", "input": "x".repeat(190_000)});
    object(&send(&rig, A, "/v1/responses", &body, &[]).await);
    let bearer = format!("Bearer {A}");
    let headers = [("content-type", "application/json"), ("authorization", &*bearer), ("content-encoding", "gzip")];
    for (length, status) in [(190_000, 200), (250_000, 429)] {
        let body = gzip(json!({"model": "m", "input": "x".repeat(length)}).to_string().as_bytes());
        let answer = rig.client.request(Method::POST, &rig.url("/v1/responses"), &headers, body).await.unwrap();
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("x-godex-error"), (status == 429).then_some("request_beyond_limit"));
    }
}

/// Nobody is asked for a warm-up, but it is stored, and a request as any other.
#[tokio::test]
async fn a_warm_up_is_a_request() {
    let rig = with("rpm: 3, tpm: 1000, concurrency: 1", "").await;
    let bearer = format!("Bearer {A}");
    let (mut client, _) = Client::connect_as(&rig, &[("authorization", &bearer)]).await;
    // It takes no tokens, and no turn's place.
    let held = hold(&rig, A).await;
    let warm_up = json!({"type": "response.create", "model": "m", "input": "x".repeat(3000), "generate": false});
    for _ in 0..2 {
        assert_eq!(client.respond(&warm_up).await.response["status"], "completed");
    }
    client.say(&warm_up).await;
    let refused = client.next().await;
    assert_eq!((&refused["type"], &refused["status"]), (&json!("error"), &json!(429)));
    assert_eq!(refused["error"]["code"], "rate_limit_exceeded");
    assert!(refused["headers"]["retry-after"].is_string(), "{refused}");
    drop(held);
}

#[tokio::test]
async fn the_same_request_again_is_no_request() {
    let rig = with("rpm: 2", "").await;
    let body = json!({"model": "m", "input": "Hi"});
    for _ in 0..3 {
        let answer = send(&rig, A, "/v1/responses", &body, &[("idempotency-key", "once")]).await;
        object(&answer);
    }
    assert_eq!(requests_left(&ask(&rig, A).await), Some("0"));
}

#[tokio::test]
async fn a_server_that_is_full_says_so_at_once() {
    let rig = with("rpm: 100", "limits: {turns: 1}").await;
    let held = hold(&rig, B).await;
    for key in [A, B] {
        let refused = ask(&rig, key).await;
        let found = error(&refused);
        assert_eq!((found.status, &*found.kind, &*found.code), (503, "server_error", "overloaded"));
        assert_eq!(refused.header("retry-after"), Some("1"));
    }
    assert_eq!(send(&rig, A, "/v1/models", &Value::Null, &[]).await.status, 200);
    drop(held);
    until_answered(&rig, A).await;
}

#[tokio::test]
async fn whoever_finds_no_connection_is_sent_away() {
    let rig = with("rpm: 100", "server: {max_connections: 1}").await;
    let held = hold(&rig, B).await;
    // It waits for a while, and then is told; so is the next, at once.
    for _ in 0..3 {
        let mut socket = Socket::connect(rig.address).await;
        socket.send("GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
        let told = tokio::time::timeout(PATIENCE, socket.read_to_end()).await.unwrap();
        assert!(told.starts_with("HTTP/1.1 503 "), "{told}");
        assert!(told.contains("retry-after: 1\r\n") && told.contains("\"code\":\"overloaded\""), "{told}");
    }
    drop(held);
    let back = async {
        loop {
            let mut socket = Socket::connect(rig.address).await;
            socket.send("GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await;
            if socket.read_to_end().await.starts_with("HTTP/1.1 200 ") {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, back).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_instances_keep_the_limits_together() {
    let Some(postgres) = Postgres::start() else { return };
    let session = format!("session: {{backend: postgres, postgres: {{url: '{}'}}}}", postgres.url());
    let (one, two) =
        (start(&session, "rpm: 60, concurrency: 3").await, start(&session, "rpm: 60, concurrency: 3").await);
    // Turns at once: of both together.
    let mut held = Vec::new();
    for rig in [&one, &two, &one] {
        held.push(hold(rig, A).await);
    }
    for rig in [&one, &two] {
        let refused = ask(rig, A).await;
        assert_eq!((refused.status, refused.header("x-godex-error")), (429, Some("turns_at_once")));
    }
    held.clear();
    // Three of the sixty are used.
    let mut served = 3;
    until_answered(&one, A).await;
    served += 1;
    for _ in 0..45 {
        for rig in [&one, &two] {
            let mut answer = ask(rig, A).await;
            // The turns that were left have places until both know that they are over.
            while answer.header("x-godex-error") == Some("turns_at_once") {
                tokio::time::sleep(Duration::from_millis(20)).await;
                answer = ask(rig, A).await;
            }
            served += usize::from(answer.status == 200);
        }
    }
    assert!((54..=60).contains(&served), "{served} of 60");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_places_of_an_instance_that_is_gone_come_back() {
    let Some(postgres) = Postgres::start() else { return };
    let session = format!("session: {{backend: postgres, postgres: {{url: '{}'}}}}", postgres.url());
    let (one, two) = (start(&session, "concurrency: 1").await, start(&session, "concurrency: 1").await);
    let held = hold(&one, A).await;
    assert_eq!(ask(&two, A).await.status, 429);
    // Without a word.
    drop(one);
    until_answered(&two, A).await;
    drop(held);
}
