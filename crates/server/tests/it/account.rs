//! One line in the log for each request, whatever becomes of it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use testkit::{Script, Upstream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::chat;
use crate::rig::{Rig, Settings, parse, spawn};
use crate::websocket::Client;

/// A line, field by field.
type Line = BTreeMap<String, String>;

static LINES: Mutex<Vec<Line>> = Mutex::new(Vec::new());

struct Lines;

impl<S: tracing::Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == "server::request" && *event.metadata().level() == tracing::Level::INFO {
            let mut fields = Fields::default();
            event.record(&mut fields);
            LINES.lock().unwrap_or_else(PoisonError::into_inner).push(fields.0);
        }
    }
}

#[derive(Default)]
struct Fields(Line);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

/// Listens to what all servers of this process log.
fn listen() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(Lines));
    });
}

/// The line of the request with this id, once it is there; and that it stays the only one.
async fn line(id: &str) -> Line {
    line_of("request_id", id).await
}

/// The same by another id.
async fn line_of(field: &str, id: &str) -> Line {
    let with_id = || -> Vec<Line> {
        let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().filter(|line| line.get(field).is_some_and(|found| found == id)).cloned().collect()
    };
    while with_id().is_empty() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
    let mut lines = with_id();
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines.remove(0)
}

async fn send(rig: &Rig, id: &str, body: &Value) -> testkit::Answer {
    let headers = [("content-type", "application/json"), ("x-request-id", id)];
    rig.client.request(Method::POST, &rig.url("/v1/responses"), &headers, body.to_string()).await.unwrap()
}

fn check(line: &Line, expected: &[(&str, &str)]) {
    for (name, value) in expected {
        let found = line.get(*name).map_or("", String::as_str);
        let fits = if *value == "*" { !found.is_empty() } else { found == *value };
        assert!(fits, "{name}: {found:?}, not {value:?} in {line:?}");
    }
}

const COMPLETED: &[(&str, &str)] = &[
    ("method", "POST"),
    ("path", "/v1/responses"),
    ("status", "200"),
    ("outcome", "completed"),
    ("model", "m"),
    ("provider", "up"),
    ("upstream_model", "m"),
    ("attempts", "1"),
    ("tried", ""),
    ("input_tokens", "5"),
    ("output_tokens", "2"),
    ("error", ""),
    ("duration_ms", "*"),
    ("queue_ms", "*"),
    ("plan_ms", "*"),
    ("connect_ms", "*"),
    ("first_byte_ms", "*"),
    ("first_token_ms", "*"),
    ("last_byte_ms", "*"),
    ("commit_ms", "*"),
    ("bytes_in", "*"),
    ("bytes_out", "*"),
    ("response_id", "*"),
];

#[tokio::test]
async fn an_answered_request_leaves_one_line_with_all_that_is_known() {
    listen();
    let upstream = Upstream::start_with(|request| chat::answer(request.json()["stream"] == true)).await.unwrap();
    let rig = Rig::before(upstream, Settings::default()).await;
    for (id, stream) in [("whole-1", false), ("stream-1", true)] {
        let answer = send(&rig, id, &json!({"model": "m", "input": "Hi", "stream": stream, "made_up": 1})).await;
        assert_eq!(answer.header("x-request-id"), Some(id));
        let line = line(id).await;
        check(&line, COMPLETED);
        assert!(line["notes"].contains("made_up=ignored"), "{line:?}");
        assert_eq!(line["bytes_out"].parse::<usize>().unwrap(), answer.body.len());
    }
    let cached = json!({"prompt_tokens": 8, "completion_tokens": 2, "total_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 6}});
    let mut completion = chat::completion();
    completion["usage"] = cached;
    rig.upstream.queue(Script::json(200, &completion));
    send(&rig, "cached-1", &json!({"model": "m", "input": "Hi", "store": false})).await;
    check(&line("cached-1").await, &[("cached_tokens", "6"), ("cache_ratio", "0.75"), ("commit_ms", "")]);
}

/// What was sent before in the session is compared with what is sent now: by its key, its conversation, or its chain.
#[tokio::test]
async fn the_line_says_how_much_the_provider_has_seen_before() {
    listen();
    let rig = Rig::start(chat::answer(false)).await;
    let history: Vec<Value> =
        (0..100).map(|n| json!({"role": "user", "content": format!("Line {n} of many.")})).collect();
    let changed: Vec<Value> = history.iter().skip(50).cloned().collect();
    let keyed = |input: &[Value]| json!({"model": "m", "input": input, "store": false, "prompt_cache_key": "k"});
    let none = [("prefix_shared", ""), ("prefix_bytes", ""), ("prefix_ratio", "")];
    for (id, body, expected) in [
        ("prefix-1", keyed(&history[..60]), none),
        ("prefix-2", keyed(&history), [("prefix_shared", "*"), ("prefix_bytes", "*"), ("prefix_ratio", "1.0")]),
        ("prefix-3", keyed(&changed), [("prefix_shared", "0"), ("prefix_bytes", "*"), ("prefix_ratio", "0.0")]),
        ("prefix-4", json!({"model": "m", "input": history, "store": false}), none),
    ] {
        send(&rig, id, &body).await;
        check(&line(id).await, &expected);
    }
    let first = send(&rig, "prefix-5", &json!({"model": "m", "input": history})).await.json();
    check(&line("prefix-5").await, &none);
    let next = json!({"model": "m", "input": "And now?", "previous_response_id": first["id"]});
    send(&rig, "prefix-6", &next).await;
    check(&line("prefix-6").await, &[("prefix_ratio", "1.0")]);
}

/// Requests of a WebSocket have no head of their own; each is one all the same.
#[tokio::test]
async fn each_request_of_a_socket_leaves_its_line() {
    listen();
    let rig = Rig::start(chat::answer(true)).await;
    let mut client = Client::connect(&rig).await;
    let create = json!({"type": "response.create", "model": "m", "input": "Hi", "made_up": 1});
    let mut ids = Vec::new();
    for _ in 0..2 {
        let response = client.respond(&create).await.response;
        ids.push(line_of("response_id", response["id"].as_str().unwrap()).await);
    }
    for line in &ids {
        check(line, COMPLETED.iter().filter(|(name, _)| *name != "method").copied().collect::<Vec<_>>().as_slice());
        check(line, &[("method", "GET")]);
        assert!(line["notes"].contains("made_up=ignored"), "{line:?}");
    }
    assert_ne!(ids[0]["request_id"], ids[1]["request_id"]);
    for (message, code) in
        [("{", "invalid_json"), (r#"{"type":"response.create","input":"x"}"#, "missing_required_parameter")]
    {
        client.send(message).await;
        let error = client.next().await;
        let line = line(error["headers"]["x-request-id"].as_str().unwrap()).await;
        check(&line, &[("method", "GET"), ("status", "400"), ("outcome", "answered"), ("error", code)]);
    }
    // A client that leaves in the middle.
    rig.upstream.queue(Script::event_stream().event(&chat::text("Hel")).stall());
    client.say(&create).await;
    let id = client.next().await["response"]["id"].as_str().unwrap().to_owned();
    drop(client);
    check(&line_of("response_id", &id).await, &[("status", "200"), ("outcome", "client_left")]);
}

#[tokio::test]
async fn refusals_and_failures_say_what_they_are() {
    listen();
    let rig = Rig::start(chat::answer(false)).await;
    send(&rig, "bad-json", &json!("x")).await;
    check(
        &line("bad-json").await,
        &[("status", "400"), ("outcome", "answered"), ("error", "invalid_body"), ("model", "")],
    );
    send(&rig, "no-model", &json!({"model": "nobody/m", "input": "Hi", "previous_response_id": "resp_x"})).await;
    check(&line("no-model").await, &[("outcome", "answered"), ("error", "*")]);

    rig.upstream.queue(Script::json(500, &json!({"error": {"message": "oops"}})));
    send(&rig, "second-try", &json!({"model": "m", "input": "Hi"})).await;
    let second = line("second-try").await;
    check(&second, &[("outcome", "completed"), ("attempts", "2"), ("status", "200")]);
    assert!(
        second["tried"].starts_with("up/m:upstream_error:") && second["tried"].contains("up/m:accepted:"),
        "{second:?}"
    );

    rig.upstream.queue(Script::json(400, &json!({"error": {"message": "no"}})));
    send(&rig, "refused-1", &json!({"model": "m", "input": "Hi"})).await;
    let expected = [("status", "400"), ("outcome", "failed"), ("error", "upstream_invalid_request"), ("attempts", "1")];
    check(&line("refused-1").await, &expected);

    rig.upstream.queue(Script::event_stream().event(&chat::text("a")).cut());
    send(&rig, "cut-1", &json!({"model": "m", "input": "Hi", "stream": true})).await;
    check(&line("cut-1").await, &[("status", "200"), ("outcome", "failed"), ("error", "upstream_truncated")]);
}

#[tokio::test]
async fn a_missed_deadline_is_named() {
    listen();
    let settings = || Settings { timeouts: "first_byte_ms: 60, idle_ms: 60, total_ms: 10000", ..Settings::default() };
    let rig = Rig::with(Script::silent(), settings()).await;
    send(&rig, "late-1", &json!({"model": "m", "input": "Hi", "stream": true})).await;
    check(&line("late-1").await, &[("outcome", "late"), ("deadline", "first_byte"), ("status", "504")]);
    let rig = Rig::with(Script::event_stream().event(&chat::text("a")).stall(), settings()).await;
    send(&rig, "late-2", &json!({"model": "m", "input": "Hi", "stream": true})).await;
    check(&line("late-2").await, &[("outcome", "late"), ("deadline", "idle"), ("status", "200")]);
    let settings = Settings { timeouts: "first_byte_ms: 5000, idle_ms: 5000, total_ms: 200", ..Settings::default() };
    let rig = Rig::with(Script::event_stream().event(&chat::text("a")).stall(), settings).await;
    send(&rig, "late-3", &json!({"model": "m", "input": "Hi", "stream": true})).await;
    check(&line("late-3").await, &[("outcome", "late"), ("deadline", "total"), ("status", "200")]);
}

#[tokio::test]
async fn a_client_that_leaves_and_a_server_that_stops_leave_a_line_too() {
    listen();
    let rig = Rig::start(Script::event_stream().event(&chat::text("a")).stall()).await;
    let headers = |id| [("content-type", "application/json"), ("x-request-id", id)];
    let body = json!({"model": "m", "input": "Hi", "stream": true}).to_string();
    let url = rig.url("/v1/responses");
    let mut streaming = rig.client.open(Method::POST, &url, &headers("left-1"), body.clone()).await.unwrap();
    streaming.read_until("delta").await.unwrap();
    drop(streaming);
    check(&line("left-1").await, &[("outcome", "client_left"), ("status", "200"), ("response_id", "*")]);

    // Before the upstream has said anything.
    rig.upstream.queue(Script::silent());
    let left = headers("left-2");
    let asked = rig.client.open(Method::POST, &url, &left, body.clone());
    let _ = tokio::time::timeout(Duration::from_millis(80), asked).await;
    let expected = [("outcome", "client_left"), ("status", ""), ("model", "m"), ("provider", "up"), ("attempts", "1")];
    check(&line("left-2").await, &expected);

    let mut streaming = rig.client.open(Method::POST, &url, &headers("stop-1"), body).await.unwrap();
    streaming.read_until("delta").await.unwrap();
    rig.stop_at_once().await;
    drop(streaming);
    check(&line("stop-1").await, &[("outcome", "stopped"), ("status", "200")]);
}

#[tokio::test]
async fn a_clients_request_id_is_taken_if_it_is_plain() {
    listen();
    let rig = Rig::start(chat::answer(false)).await;
    let longest = "x".repeat(128);
    for id in ["a", "018f3c5e-7d2a-4b1c-9f00-5a6b7c8d9e0f", "trace/span:1=~{}", &longest] {
        let answer =
            rig.client.request(Method::GET, &rig.url("/v1/models"), &[("x-request-id", id)], "").await.unwrap();
        assert_eq!(answer.header("x-request-id"), Some(id));
        check(&line(id).await, &[("status", "200"), ("outcome", "answered"), ("path", "/v1/models")]);
    }
    for id in ["", "two words", "tab\there", "x\u{e9}", &"x".repeat(129)] {
        let answer =
            rig.client.request(Method::GET, &rig.url("/v1/models"), &[("x-request-id", id)], "").await.unwrap();
        let ours = answer.header("x-request-id").unwrap().to_owned();
        assert!(ours.starts_with("req_"), "{id}: {ours}");
        line(&ours).await;
    }
}

/// Serves one request on each connection, and closes it when the next one comes: a balancer that has long forgotten it.
async fn forgetful() -> (std::net::SocketAddr, tokio::task::JoinHandle<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serve = |mut stream: tokio::net::TcpStream| async move {
        let mut read = vec![0; 64 << 10];
        let Ok(1..) = stream.read(&mut read).await else { return };
        let body = chat::completion().to_string();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length:";
        let _ = stream.write_all(format!("{head} {}\r\n\r\n{body}", body.len()).as_bytes()).await;
        let _ = stream.read(&mut read).await;
    };
    let accepting = spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            drop(spawn(serve(stream)));
        }
    });
    (address, accepting)
}

#[tokio::test]
async fn a_connection_that_had_ended_is_no_trouble_of_its_provider_and_is_counted() {
    listen();
    let (address, accepting) = forgetful().await;
    let base_url = Some(format!("http://{address}/v1"));
    let settings = Settings { base_url, resilience: "retries: 0, breaker_failures: 2", ..Settings::default() };
    let rig = Rig::with(Script::hang_up(), settings).await;
    for number in 0..12 {
        let id = format!("stale-{number}");
        let answer = send(&rig, &id, &json!({"model": "m", "input": "Hi", "store": false})).await;
        assert_eq!(answer.status, 200, "{number}");
        let line = line(&id).await;
        check(&line, &[("outcome", "completed"), ("attempts", if number == 0 { "1" } else { "*" })]);
        assert_eq!(line.get("tried").is_some_and(|tried| tried.contains("connection_ended")), number > 0, "{line:?}");
    }
    accepting.abort();
}

#[tokio::test]
async fn a_long_path_fills_no_log() {
    listen();
    let rig = Rig::start(chat::answer(false)).await;
    let path = format!("/{}", "p".repeat(50_000));
    let headers = [("x-request-id", "long-path")];
    let answer = rig.client.request(Method::GET, &rig.url(&path), &headers, "").await.unwrap();
    assert_eq!(answer.status, 404);
    assert_eq!(line("long-path").await["path"].len(), 256);
}

/// Another round begins where the last one was answered, not with whoever failed before that.
#[tokio::test]
async fn a_second_question_goes_to_whoever_answered_the_first() {
    listen();
    let failing = Upstream::start(Script::json(500, &json!({"error": {"message": "oops"}}))).await.unwrap();
    let good = Upstream::start(chat::answer(false)).await.unwrap();
    let provider = |name: &str, url: String| {
        format!(
            "  {name}: {{spec: openai-compatible, endpoint: {{base_url: '{url}/v1'}}, credentials: {{api_key: k}}}}\n"
        )
    };
    let text = format!(
        "session: {{backend: memory}}\noutput: {{repair: reask}}\nresilience: {{backoff_ms: 2}}\nmodels: {{aliases: {{x: \
         [bad/m, good/m]}}}}\nproviders:\n{}{}",
        provider("bad", failing.url()),
        provider("good", good.url())
    );
    let rig = Rig::serving(good, parse(&text)).await.unwrap();
    let schema = json!({"type": "object", "properties": {}, "required": ["n"], "additionalProperties": true});
    let format = json!({"format": {"type": "json_schema", "name": "n", "strict": true, "schema": schema}});
    send(&rig, "twice", &json!({"model": "x", "input": "Hi", "text": format})).await;
    let line = line("twice").await;
    assert_eq!((failing.requests().len(), rig.upstream.requests().len()), (1, 2), "{line:?}");
    check(&line, &[("attempts", "3"), ("input_tokens", "10")]);
}
