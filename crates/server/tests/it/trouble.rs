//! Providers in trouble, each asked without and with `stream`.
//!
//! Before a provider accepted, both get the same HTTP error; so they do for an error with which an answer begins.
//! Afterwards a stream ends with `error` and
//! `response.failed`; it is never completed.

use std::io::Write;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Answer, Script};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::chat;
use crate::rig::{KEY, Rig, Settings, error, stream};

const SERVER: &str = "server_error";
const INVALID: &str = "invalid_request_error";

/// What a client that did not ask for a stream gets: status, type, code, domain code.
type Refusal = (u16, &'static str, &'static str, &'static str);

enum Streamed {
    /// The same HTTP error.
    Refused,
    /// 200, and `response.failed` with this code.
    Failed(&'static str),
}

use Streamed::{Failed, Refused};

fn request() -> Value {
    json!({"model": "m", "input": "Hello"})
}

/// A stream that ended badly, as it should: its code.
fn failed(answer: &Answer) -> String {
    assert!(!String::from_utf8_lossy(&answer.body).contains(KEY));
    let stream = stream(answer);
    assert_eq!(stream.types()[stream.events.len() - 2..], ["error", "response.failed"]);
    assert_eq!(stream.response["status"], "failed");
    stream.response["error"]["code"].as_str().unwrap().to_owned()
}

async fn check(name: &str, rig: &Rig, refusal: Refusal, streamed: Streamed) {
    let (whole, stream) = rig.both(&request()).await;
    let found = error(&whole);
    let found_refusal = (found.status, found.kind.as_str(), found.code.as_str(), found.domain.as_str());
    assert_eq!(found_refusal, refusal, "{name}: {}", found.message);
    match streamed {
        Refused => {
            let streamed = error(&stream);
            assert_eq!((streamed.key(), &streamed.domain), (found.key(), &found.domain), "{name}, streamed");
        }
        Failed(code) => assert_eq!(failed(&stream), code, "{name}, streamed"),
    }
}

fn said(status: u16, message: &str) -> Script {
    Script::json(status, &json!({"error": {"message": message, "type": "x", "code": null}}))
}

fn packed(body: &Value) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(body.to_string().as_bytes()).unwrap();
    gzip.finish().unwrap()
}

#[tokio::test]
async fn statuses_keep_their_class() {
    let no = |status| said(status, "no");
    let quota = json!({"error": {"message": "pay", "code": "insufficient_quota"}});
    let coded = json!({"error": {"message": "bad", "code": "bad_thing"}});
    for (name, script, refusal) in [
        ("400", no(400), (400, INVALID, "upstream_invalid_request", "upstream_invalid_request")),
        ("400 with a code", Script::json(400, &coded), (400, INVALID, "bad_thing", "upstream_invalid_request")),
        ("401", no(401), (502, SERVER, "provider_auth", "provider_auth")),
        ("403", no(403), (502, SERVER, "provider_auth", "provider_auth")),
        ("402", no(402), (429, "insufficient_quota", "insufficient_quota", "provider_quota")),
        ("404", said(404, "The model `m` does not exist"), (404, INVALID, "model_not_found", "model_not_found")),
        (
            "404, a page",
            Script::body(404, "text/html", "<html>"),
            (502, SERVER, "upstream_protocol", "upstream_protocol"),
        ),
        ("422", no(422), (400, INVALID, "upstream_invalid_request", "upstream_invalid_request")),
        ("429", no(429), (429, "rate_limit_error", "rate_limit_exceeded", "upstream_rate_limit")),
        ("429, quota", Script::json(429, &quota), (429, "insufficient_quota", "insufficient_quota", "provider_quota")),
        ("500", no(500), (502, SERVER, "upstream_error", "upstream_error")),
        ("500, a page", Script::body(500, "text/html", "<html>"), (502, SERVER, "upstream_error", "upstream_error")),
        ("500, empty", Script::body(500, "text/plain", ""), (502, SERVER, "upstream_error", "upstream_error")),
        ("502", no(502), (502, SERVER, "upstream_error", "upstream_error")),
        ("503", no(503), (503, SERVER, "upstream_overloaded", "upstream_overloaded")),
        ("504", no(504), (504, SERVER, "upstream_timeout", "upstream_timeout")),
        ("529", no(529), (503, SERVER, "upstream_overloaded", "upstream_overloaded")),
        ("redirect", no(307).header("location", "/elsewhere"), (502, SERVER, "upstream_protocol", "upstream_protocol")),
        (
            "400, packed though nobody asked for that",
            Script::body(400, "application/json", packed(&coded)).header("content-encoding", "gzip"),
            (400, INVALID, "bad_thing", "upstream_invalid_request"),
        ),
        (
            "cut in the error's body",
            Script::respond(500).send("{\"err").cut(),
            (502, SERVER, "upstream_error", "upstream_error"),
        ),
    ] {
        let rig = Rig::start(script).await;
        check(name, &rig, refusal, Refused).await;
        let received = rig.upstream.requests();
        let passing =
            matches!(refusal.3, "upstream_error" | "upstream_overloaded" | "upstream_timeout" | "upstream_rate_limit");
        assert_eq!(received.len(), if passing { 6 } else { 2 }, "{name}: twice again if it may pass, else not at all");
        assert!(received.iter().all(|request| request.path == "/v1/chat/completions"), "{name}: nothing is followed");
    }
}

#[tokio::test]
async fn a_limited_client_is_told_when_to_come_back() {
    let settings = Settings { resilience: "retries: 0, breaker_failures: 0", ..Settings::default() };
    let rig = Rig::with(said(429, "slow down"), settings).await;
    for (status, header, expected) in [
        (429, Some("7"), Some("7")),
        (429, Some("0.2"), Some("1")),
        (429, Some("Thu, 31 Dec 2099 23:59:59 GMT"), Some("120")),
        (429, Some("Thu, 01 Jan 1970 00:00:00 GMT"), Some("1")),
        (429, Some("99999999999999999999"), Some("120")),
        (429, Some("-5"), Some("1")),
        (429, Some("soon"), Some("1")),
        (429, None, Some("1")),
        (503, Some("9"), Some("9")),
        (503, None, None),
        (500, None, None),
    ] {
        for stream in [false, true] {
            let script = said(status, "slow down");
            rig.upstream.queue(match header {
                Some(value) => script.header("retry-after", value),
                None => script,
            });
            let answer = rig.post(&json!({"model": "m", "input": "Hello", "stream": stream})).await;
            assert_eq!(answer.header("retry-after"), expected, "{status} {header:?}");
            assert_eq!(error(&answer).message, "slow down");
        }
    }
}

#[tokio::test]
async fn connections_that_fail_before_an_answer() {
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let settings = Settings { base_url: Some(format!("http://{closed}/v1")), ..Settings::default() };
    let rig = Rig::with(Script::hang_up(), settings).await;
    check("refused", &rig, (502, SERVER, "upstream_unreachable", "upstream_unreachable"), Refused).await;
    for (name, script, code) in [
        ("hang up", Script::hang_up(), "upstream_unreachable"),
        ("reset", Script::raw().reset(), "upstream_unreachable"),
        ("half a head", Script::raw().send("HTTP/1.1 200 OK\r\ncontent-").cut(), "upstream_unreachable"),
        ("garbage", Script::garbage("\0\0nonsense\r\n\r\n"), "upstream_protocol"),
        ("another protocol", Script::garbage("SSH-2.0-OpenSSH_9.6\r\n\r\n"), "upstream_protocol"),
        ("an absurd status", Script::garbage("HTTP/1.1 9999 What\r\n\r\n"), "upstream_protocol"),
    ] {
        check(name, &Rig::start(script).await, (502, SERVER, code, code), Refused).await;
    }
}

#[tokio::test]
async fn answers_that_are_none() {
    let begun = || Script::event_stream().event(&chat::text("Hel"));
    let json_error = |error: Value| Script::json(200, &json!({"error": error}));
    let busy = json!({"message": "busy", "code": 503});
    let slow = json!({"message": "slow down", "code": 429});
    let long = json!({"message": "This model's maximum context length is 10 tokens"});
    let protocol: Refusal = (502, SERVER, "upstream_protocol", "upstream_protocol");
    let truncated: Refusal = (502, SERVER, "upstream_truncated", "upstream_truncated");
    let overloaded: Refusal = (503, SERVER, "upstream_overloaded", "upstream_overloaded");
    let limited: Refusal = (429, "rate_limit_error", "rate_limit_exceeded", "upstream_rate_limit");
    let overflow: Refusal = (400, INVALID, "context_length_exceeded", "context_length_exceeded");
    let empty: Refusal = (502, SERVER, "upstream_empty", "upstream_empty");
    let nothing = json!({"choices": [{"index": 0, "message": {"content": ""}, "finish_reason": "stop"}]});
    for (name, script, refusal, streamed) in [
        ("a page", Script::body(200, "text/html", "<html>login</html>"), protocol, Refused),
        ("a page as JSON", Script::body(200, "application/json", "<html>"), protocol, Refused),
        ("a page without a type", Script::respond(200).send("<html>"), protocol, Refused),
        ("empty JSON body", Script::body(200, "application/json", ""), protocol, Refused),
        ("empty stream", Script::event_stream(), protocol, Refused),
        ("empty without a type", Script::respond(200), protocol, Refused),
        ("half a JSON", Script::body(200, "application/json", "{\"choices\": ["), protocol, Refused),
        ("JSON of something else", Script::body(200, "application/json", "[1, 2]"), protocol, Refused),
        ("an empty answer", Script::json(200, &nothing), empty, Failed(SERVER)),
        ("a broken chunk", begun().send("data: {oops\n\n").done(), protocol, Failed(SERVER)),
        ("cut (FIN)", begun().cut(), truncated, Failed(SERVER)),
        ("cut (RST)", begun().delay(Duration::from_millis(50)).reset(), truncated, Failed(SERVER)),
        ("end without a finish", begun(), truncated, Failed(SERVER)),
        ("cut JSON", Script::body(200, "application/json", "{\"choi").cut().send("ces\": []}"), truncated, Refused),
        ("error in the stream", begun().event(&json!({"error": busy})), overloaded, Failed("server_is_overloaded")),
        ("limit in the stream", begun().event(&json!({"error": slow})), limited, Failed("rate_limit_exceeded")),
        ("an error as a stream", Script::event_stream().send(json!({"error": slow}).to_string()), limited, Refused),
        ("error in JSON", json_error(busy.clone()), overloaded, Refused),
        ("limit in JSON", json_error(slow.clone()), limited, Refused),
        ("overflow in JSON", json_error(long), overflow, Failed("context_length_exceeded")),
    ] {
        check(name, &Rig::start(script).await, refusal, streamed).await;
    }
}

/// Codex compacts when it reads this in a stream; an HTTP error would be the end of its turn.
#[tokio::test]
async fn a_context_overflow_fails_inside_the_stream() {
    let rig = Rig::start(said(400, "This model's maximum context length is 8192 tokens. However, ...")).await;
    let (whole, streamed) = rig.both(&request()).await;
    assert_eq!(error(&whole).key(), (400, INVALID, "context_length_exceeded", Some("input")));
    assert_eq!(failed(&streamed), "context_length_exceeded");
}

/// Nothing would be won by compacting a short input.
#[tokio::test]
async fn an_output_that_cannot_fit_is_no_overflow_of_the_input() {
    let words = "'max_tokens' or 'max_completion_tokens' is too large: 9000. This model's maximum context length is 8000 \
                 tokens and your request has 5 input tokens (9000 > 8000 - 5).";
    let rig = Rig::start(said(400, words)).await;
    let mut request = request();
    request["max_output_tokens"] = json!(9000);
    let (whole, streamed) = rig.both(&request).await;
    for answer in [whole, streamed] {
        let error = error(&answer);
        assert_eq!((error.status, &*error.domain), (400, "upstream_invalid_request"));
        assert!(error.message.contains("'max_output_tokens'") && error.message.contains(words), "{}", error.message);
    }
}

/// A refusal may be about a key, or about anything else.
#[tokio::test]
async fn a_403_blames_the_key_only_if_the_provider_does() {
    let country = json!({"error": {"message": "Country not supported", "code": "unsupported_country"}});
    let key = json!({"error": {"message": "Not this one", "code": "invalid_api_key"}});
    for (status, body, expected) in [
        (403, &country, "The provider refused the request (403): Country not supported"),
        (403, &key, "The provider refused the configured credentials: Not this one"),
        (401, &country, "The provider refused the configured credentials: Country not supported"),
    ] {
        let answer = Rig::start(Script::json(status, body)).await.post(&request()).await;
        let error = error(&answer);
        assert_eq!((error.message.as_str(), &*error.domain), (expected, "provider_auth"), "{status} {body}");
    }
}

#[tokio::test]
async fn the_providers_key_is_never_repeated() {
    let message = format!("Incorrect API key provided: {KEY}. You can find it in your account.");
    let in_stream = json!({"error": {"message": message, "code": 401}});
    for (name, script) in [
        ("status", said(401, &message)),
        ("JSON", Script::json(200, &in_stream)),
        ("stream", Script::event_stream().event(&chat::text("x")).event(&in_stream)),
    ] {
        let rig = Rig::start(script).await;
        let (whole, streamed) = rig.both(&request()).await;
        assert!(error(&whole).message.contains("[redacted]"), "{name}");
        let text = String::from_utf8_lossy(&streamed.body);
        assert!(!text.contains(KEY) && text.contains("[redacted]"), "{name}: {text}");
    }
}

/// A message that is cut is cut after the key was taken out: whole or in part, it does not come back.
#[tokio::test]
async fn a_key_at_the_edge_of_what_is_shown_is_taken_out_first() {
    // The edge lies inside the key, one character before its end, and right after its beginning.
    for before in [2048 - KEY.len() + 1, 2048 - KEY.len() / 2, 2048 - 4] {
        let message = format!("{}{KEY}{}", "x".repeat(before), "y".repeat(100));
        let in_stream = json!({"error": {"message": message, "code": 401}});
        for (name, script) in [
            ("status", said(401, &message)),
            ("JSON", Script::json(200, &in_stream)),
            ("stream", Script::event_stream().event(&chat::text("x")).event(&in_stream)),
        ] {
            let rig = Rig::start(script).await;
            let (whole, streamed) = rig.both(&request()).await;
            for answer in [whole, streamed] {
                let text = String::from_utf8_lossy(&answer.body).into_owned();
                assert!(text.contains('…') && !text.contains(&KEY[..4]), "{name} {before}: {text}");
            }
        }
    }
}

// === time ===

const LATE: Refusal = (504, SERVER, "upstream_timeout", "upstream_timeout");

#[tokio::test]
async fn each_phase_has_its_deadline() {
    let begun = || Script::event_stream().event(&chat::text("Hel"));
    let drip = (0..200).fold(begun(), |script, _| script.delay(Duration::from_millis(20)).event(&chat::text(".")));
    for (name, timeouts, script, streamed) in [
        ("no answer", "first_byte_ms: 200", Script::silent(), Refused),
        ("no answer within the whole time", "total_ms: 200", Script::silent(), Refused),
        ("half a head", "first_byte_ms: 200", Script::raw().send("HTTP/1.1 200 OK\r\n").stall(), Refused),
        ("no first event", "first_byte_ms: 200", Script::event_stream().stall(), Failed(SERVER)),
        (
            "no first byte of JSON",
            "first_byte_ms: 200",
            Script::body(200, "application/json", "").stall().send("{}"),
            Failed(SERVER),
        ),
        ("silence", "first_byte_ms: 20000, idle_ms: 200", begun().stall(), Failed(SERVER)),
        ("silence within an event", "idle_ms: 200", begun().send("data: {").stall(), Failed(SERVER)),
        (
            "late silence",
            "first_byte_ms: 20000, idle_ms: 200",
            Script::event_stream().delay(Duration::from_millis(400)).event(&chat::text("x")).stall(),
            Failed(SERVER),
        ),
        ("drip", "total_ms: 500, idle_ms: 10000", drip, Failed(SERVER)),
    ] {
        let settings = Settings { timeouts, ..Settings::default() };
        let rig = Rig::with(script, settings).await;
        let both = check(name, &rig, LATE, streamed);
        // Far above the deadlines, far below the heartbeat and the other phases' deadlines.
        tokio::time::timeout(Duration::from_secs(8), both).await.unwrap_or_else(|_| panic!("{name}: too late"));
        rig.upstream.closed_after(1).await;
    }
}

/// An error whose body never ends is reported all the same.
#[tokio::test]
async fn an_error_that_never_ends_is_reported() {
    let script = Script::respond(500).send("{").stall();
    let rig = Rig::with(script, Settings { timeouts: "idle_ms: 200", ..Settings::default() }).await;
    check("stalled error", &rig, (502, SERVER, "upstream_error", "upstream_error"), Refused).await;
    let endless = (0..64).fold(Script::respond(400), |script, _| script.send(vec![b'x'; 8192])).stall();
    let rig = Rig::start(endless).await;
    check("endless error", &rig, (400, INVALID, "upstream_invalid_request", "upstream_invalid_request"), Refused).await;
}

/// A key that the provider repeats as a code, or a secret header that it repeats anywhere.
#[tokio::test]
async fn secrets_do_not_come_back_in_other_places() {
    const HEADER: &str = "header-secret-0123456789";
    let settings = Settings {
        tweak: Some(|config| {
            let secret = server::config::Secret::new(HEADER.to_owned());
            config.providers[0].headers.push(("x-team-token".to_owned(), secret));
        }),
        ..Settings::default()
    };
    let rig = Rig::with(chat::answer(false), settings).await;
    for said in
        [json!({"message": "bad [redacted]", "code": KEY}), json!({"message": format!("no {HEADER}"), "code": "x"})]
    {
        rig.upstream.queue(Script::json(400, &json!({"error": said})));
        let answer = rig.post(&json!({"model": "m", "input": "Hello"})).await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(!text.contains(KEY) && !text.contains(HEADER) && text.contains("[redacted]"), "{text}");
    }
}

/// A server that closes its idle connections at the moment when we take one up again.
#[tokio::test]
async fn a_connection_that_went_stale_is_replaced() {
    let completion = chat::completion().to_string();
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{completion}",
        completion.len()
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = Some(format!("http://{}/v1", listener.local_addr().unwrap()));
    let served = crate::rig::spawn(async move {
        let mut connections = 0;
        // Each connection answers once and is closed when its second request arrives.
        while connections < 5 {
            let (mut socket, _) = listener.accept().await.unwrap();
            connections += 1;
            let mut buffer = vec![0; 64 * 1024];
            assert!(socket.read(&mut buffer).await.unwrap() > 0);
            socket.write_all(answer.as_bytes()).await.unwrap();
            if connections < 5 {
                let _ = socket.read(&mut buffer).await;
            }
        }
    });
    let rig = Rig::with(chat::answer(false), Settings { base_url, ..Settings::default() }).await;
    for request in 0..5 {
        let answer = rig.post(&json!({"model": "m", "input": "Hello"})).await;
        assert_eq!(answer.status, 200, "request {request}: {}", String::from_utf8_lossy(&answer.body));
    }
    served.await.unwrap();
}

/// A finish reason, then neither `[DONE]` nor the end: the answer is whole, and the client need not wait for more.
#[tokio::test]
async fn a_finished_answer_ends_though_the_connection_does_not() {
    let rig = Rig::start(Script::event_stream().event(&chat::text("Hello")).event(&chat::stop()).stall()).await;
    let answer = rig.post(&json!({"model": "m", "input": "Hello", "stream": true})).await;
    let stream = stream(&answer);
    assert_eq!((stream.text.as_str(), stream.response["status"].as_str()), ("Hello", Some("completed")));
}
