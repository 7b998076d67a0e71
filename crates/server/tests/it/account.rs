//! One line in the log for each request, whatever becomes of it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use testkit::{Script, Upstream};
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::chat;
use crate::rig::{Rig, Settings};

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
    let with_id = || -> Vec<Line> {
        let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().filter(|line| line.get("request_id").is_some_and(|found| found == id)).cloned().collect()
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
    check(&line("left-2").await, &[("outcome", "client_left"), ("status", ""), ("model", "m")]);

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
