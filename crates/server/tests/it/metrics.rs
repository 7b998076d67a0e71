//! `/metrics`: what happened is there, under bounded names, for whoever may see it.

mod deploy;
mod exposition;

use std::time::Duration;

use http::Method;
use serde_json::json;
use server::METRICS;
use server::config::{Config, Secret};
use testkit::{Answer, Script, Upstream};

use crate::chat;
use crate::rig::{self, Rig, Settings, error, object};
use exposition::{Described, Format, Sample, read};

const TOKEN: &str = "token-of-the-operator-01";
const KEY: &str = "key-of-a-client-that-asks-1";

async fn scrape(rig: &Rig, accept: &str) -> Answer {
    rig.client.request(Method::GET, &rig.url("/metrics"), &[("accept", accept)], String::new()).await.unwrap()
}

async fn scraped(rig: &Rig) -> Vec<Described> {
    let answer = scrape(rig, "*/*").await;
    assert_eq!(answer.status, 200);
    read(std::str::from_utf8(&answer.body).unwrap(), Format::Plain).unwrap()
}

fn samples<'a>(all: &'a [Described], name: &str, labels: &[(&str, &str)]) -> Vec<&'a Sample> {
    let samples = all.iter().flat_map(|family| &family.samples).filter(|sample| sample.name == name);
    let fits = |sample: &&Sample| {
        labels.iter().all(|(label, value)| sample.labels.get(*label).is_some_and(|found| found == value))
    };
    samples.filter(fits).collect()
}

/// The sum of all samples with these labels.
fn sum(all: &[Described], name: &str, labels: &[(&str, &str)]) -> f64 {
    samples(all, name, labels).iter().map(|sample| sample.value).sum()
}

/// What is there once so many requests are counted: they are when their clients have everything.
async fn after(rig: &Rig, requests: f64) -> Vec<Described> {
    for _ in 0..500 {
        let all = scraped(rig).await;
        if sum(&all, "godex_requests_total", &[("route", "/v1/responses")]) >= requests {
            return all;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("they are not counted");
}

fn is(value: f64, expected: f64) -> bool {
    (value - expected).abs() < 1e-9
}

#[tokio::test]
async fn what_happened_is_counted() {
    let upstream = Upstream::start_with(|request| chat::answer(request.json()["stream"] == true)).await.unwrap();
    let rig = Rig::before(upstream, Settings::default()).await;
    rig.upstream.queue(Script::json(500, &json!({"error": {"message": "down"}})));
    object(&rig.post(&json!({"model": "m", "input": "Hi", "made_up": 1})).await);
    rig::stream(&rig.post(&json!({"model": "m", "input": "Hi", "stream": true})).await);
    error(&rig.post(&json!({"model": "m", "input": 1})).await);
    error(&rig.get("/v1/responses/resp_none").await);
    let all = after(&rig, 3.0).await;
    for (name, labels, value) in [
        (
            "godex_requests_total",
            &[("status", "200"), ("outcome", "completed"), ("model", "m"), ("target", "up/m")][..],
            2.0,
        ),
        ("godex_requests_total", &[("status", "400"), ("outcome", "answered"), ("model", ""), ("target", "")], 1.0),
        ("godex_requests_total", &[("route", "/v1/responses/{id}"), ("status", "404")], 1.0),
        ("godex_errors_total", &[("code", "response_not_found")], 1.0),
        ("godex_upstream_attempts_total", &[("provider", "up"), ("target", "up/m"), ("outcome", "accepted")], 2.0),
        ("godex_upstream_attempts_total", &[("outcome", "upstream_error")], 1.0),
        ("godex_upstream_retries_total", &[("target", "up/m"), ("outcome", "upstream_error")], 1.0),
        ("godex_upstream_latency_seconds_count", &[("target", "up/m")], 2.0),
        ("godex_first_token_seconds_count", &[("target", "up/m")], 2.0),
        ("godex_overhead_seconds_count", &[("model", "m")], 2.0),
        ("godex_request_duration_seconds_count", &[("route", "/v1/responses"), ("model", "m")], 2.0),
        ("godex_tokens_total", &[("target", "up/m"), ("kind", "input")], 10.0),
        ("godex_tokens_total", &[("target", "up/m"), ("kind", "output")], 4.0),
        ("godex_store_commit_seconds_count", &[], 2.0),
        ("godex_open_streams", &[], 0.0),
        ("godex_turns", &[], 0.0),
        ("godex_breaker_open", &[("target", "up/m")], 0.0),
        ("godex_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0),
        ("godex_draining", &[], 0.0),
    ] {
        let found = sum(&all, name, labels);
        assert!(is(found, value), "{name} {labels:?}: {found}, not {value}: {:?}", samples(&all, name, &[]));
    }
    assert!(sum(&all, "godex_notes_total", &[]) >= 1.0 && sum(&all, "godex_received_bytes_total", &[]) > 50.0);
    assert!(sum(&all, "godex_sent_bytes_total", &[]) > 500.0 && sum(&all, "process_start_time_seconds", &[]) > 1e9);
}

/// What is ours is what is left when nobody else is waited for.
#[tokio::test]
async fn what_others_take_is_not_our_time() {
    let slow = Script::event_stream()
        .delay(Duration::from_millis(700))
        .event(&chat::text("Hel"))
        .delay(Duration::from_millis(700))
        .event(&chat::text("lo"))
        .event(&chat::stop())
        .done();
    let rig = Rig::start(slow).await;
    rig::stream(&rig.post(&json!({"model": "m", "input": "Hi", "stream": true})).await);
    let all = after(&rig, 1.0).await;
    let (whole, ours) = ("godex_request_duration_seconds_sum", "godex_overhead_seconds_sum");
    let (whole, ours) = (sum(&all, whole, &[("model", "m")]), sum(&all, ours, &[("model", "m")]));
    assert!(whole > 1.4 && ours < whole - 1.3, "{ours} of {whole}");
    let gaps = sum(&all, "godex_chunk_gap_seconds_sum", &[]);
    assert!(gaps > 0.6 && gaps < whole, "{gaps}");
}

/// Every metric that can be there is in the table, with exactly its labels, and what is in the table is there as its kind.
#[tokio::test]
async fn everything_is_in_the_table() {
    let upstream = Upstream::start_with(|request| chat::answer(request.json()["stream"] == true)).await.unwrap();
    let rig = Rig::before(upstream, Settings::default()).await;
    rig.upstream.queue(Script::json(500, &json!({"error": {"message": "down"}})));
    rig.post(&json!({"model": "m", "input": "Hi", "made_up": 1})).await;
    rig.post(&json!({"model": "m", "input": 1})).await;
    let all = after(&rig, 2.0).await;
    for family in &all {
        let row = METRICS.iter().find(|row| row.name() == family.name);
        let row = row.unwrap_or_else(|| panic!("{} is not in the table", family.name));
        assert_eq!(row.kind.name(), family.kind, "{}", family.name);
        for sample in &family.samples {
            let mut labels: Vec<&str> =
                sample.labels.keys().map(String::as_str).filter(|label| *label != "le").collect();
            let mut expected = row.labels.to_vec();
            labels.sort_unstable();
            expected.sort_unstable();
            assert_eq!(labels, expected, "{sample:?}");
        }
    }
    let absent: Vec<String> =
        METRICS.iter().map(|row| row.name()).filter(|name| !all.iter().any(|family| family.name == *name)).collect();
    // A hosted tool, and several addresses of a provider, are not there for all.
    let may_be = [
        "godex_replica_up",
        "godex_replica_share_percent",
        "godex_replica_open_requests",
        "godex_replica_requests_total",
        "godex_tool_calls_total",
    ];
    if cfg!(target_os = "linux") {
        assert_eq!(absent, may_be);
    }
}

#[tokio::test]
async fn both_formats_are_whole() {
    let rig = Rig::start(Script::json(200, &chat::completion())).await;
    object(&rig.post(&json!({"model": "m", "input": "Hi"})).await);
    let plain = after(&rig, 1.0).await;
    let answer = scrape(&rig, "application/openmetrics-text;version=1.0.0,text/plain;q=0.5").await;
    assert_eq!(answer.header("content-type"), Some("application/openmetrics-text; version=1.0.0; charset=utf-8"));
    let open = read(std::str::from_utf8(&answer.body).unwrap(), Format::Open).unwrap();
    assert_eq!(open.len(), plain.len());
    let head = rig.client.request(Method::HEAD, &rig.url("/metrics"), &[], String::new()).await.unwrap();
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
}

/// Names that clients make up are no labels, whatever is in them, and nothing grows with them.
#[tokio::test]
async fn names_that_nobody_configured_are_other() {
    let rig = Rig::start(Script::json(200, &chat::completion())).await;
    for number in 0..40 {
        let model = format!("up/hostile-{number}\"}} 1\n# HELP x");
        assert_eq!(rig.post(&json!({"model": model, "input": "Hi"})).await.status, 200);
    }
    let all = after(&rig, 40.0).await;
    let requests = samples(&all, "godex_requests_total", &[("route", "/v1/responses")]);
    assert_eq!(requests.len(), 1, "{requests:?}");
    assert_eq!((&*requests[0].labels["model"], &*requests[0].labels["target"]), ("other", "up/other"));
    assert!(is(
        sum(&all, "godex_tokens_total", &[("provider", "up"), ("target", "up/other"), ("kind", "input")]),
        200.0
    ));
    assert!(all.iter().flat_map(|family| &family.samples).all(|sample| !format!("{sample:?}").contains("hostile")));
    assert!(is(sum(&all, "godex_breaker_open", &[("target", "up/other")]), 0.0));
}

#[tokio::test]
async fn a_target_that_fails_shows() {
    let settings = Settings { resilience: "breaker_failures: 2, retries: 0", ..Settings::default() };
    let rig = Rig::with(Script::json(500, &json!({"error": {"message": "down"}})), settings).await;
    for _ in 0..3 {
        assert!(rig.post(&json!({"model": "m", "input": "Hi"})).await.status >= 500);
    }
    let all = after(&rig, 3.0).await;
    assert!(is(sum(&all, "godex_breaker_open", &[("provider", "up"), ("target", "up/m")]), 1.0));
    assert!(is(sum(&all, "godex_upstream_attempts_total", &[("outcome", "kept_away")]), 1.0));
}

#[tokio::test]
async fn a_stream_is_open_while_it_is() {
    let rig = Rig::start(Script::event_stream().event(&chat::text("Hel")).stall()).await;
    let mut stream = rig
        .client
        .post_stream(&rig.url("/v1/responses"), &json!({"model": "m", "input": "Hi", "stream": true}))
        .await
        .unwrap();
    stream.read_until("Hel").await.unwrap();
    let all = scraped(&rig).await;
    assert!(is(sum(&all, "godex_open_streams", &[("kind", "sse")]), 1.0) && is(sum(&all, "godex_turns", &[]), 1.0));
    drop(stream);
    let all = after(&rig, 1.0).await;
    assert!(is(sum(&all, "godex_open_streams", &[("kind", "sse")]), 0.0));
    assert!(is(sum(&all, "godex_requests_total", &[("outcome", "client_left")]), 1.0));
}

fn keyed(upstream: &Upstream, more: &str) -> Config {
    rig::parse(&format!(
        "session: {{backend: memory}}\nkeys:\n- {{name: a, key: {KEY}}}\nproviders:\n  up:\n    spec: openai-compatible\n    \
         endpoint: {{base_url: '{}/v1'}}\n    credentials: {{api_key: k}}\n    models: [m]\n{more}",
        upstream.url()
    ))
}

async fn show(rig: &Rig, headers: &[(&str, &str)]) -> Answer {
    rig.client.request(Method::GET, &rig.url("/metrics"), headers, String::new()).await.unwrap()
}

#[tokio::test]
async fn with_keys_it_is_for_the_operator_alone() {
    let upstream = Upstream::start(Script::json(200, &chat::completion())).await.unwrap();
    let mut config = keyed(&upstream, "metrics: {listen: '127.0.0.1:0'}\n");
    config.admin.token = Some(Secret::new(TOKEN.to_owned()));
    let rig = Rig::serving(upstream, config).await.unwrap();
    let (operator, client) = (format!("Bearer {TOKEN}"), format!("Bearer {KEY}"));
    for headers in [&[][..], &[("authorization", client.as_str())], &[("api-key", TOKEN)], &[("authorization", TOKEN)]]
    {
        let refused = error(&show(&rig, headers).await);
        assert_eq!((refused.status, &*refused.code), (401, "invalid_admin_token"), "{headers:?}");
        assert!(refused.message.contains("admin.token"), "{}", refused.message);
    }
    assert_eq!(show(&rig, &[("authorization", &operator)]).await.status, 200);
    // No page may read it, whatever it shows.
    let page = show(&rig, &[("authorization", &operator), ("origin", "https://evil.example")]).await;
    assert_eq!(error(&page).code, "origin_not_allowed");
    // A client's key is for clients, the operator's token is not.
    assert_eq!(
        rig.client
            .request(Method::GET, &rig.url("/v1/models"), &[("authorization", &operator)], String::new())
            .await
            .unwrap()
            .status,
        401
    );

    let url = format!("http://{}", rig.metrics.unwrap());
    // By whatever name a web page finds it.
    let headers = [("host", "evil.example")];
    let page = rig.client.request(Method::GET, &format!("{url}/metrics"), &headers, String::new()).await.unwrap();
    assert_eq!((page.status, page.header("x-godex-error")), (403, Some("host_not_allowed")));
    let own = rig.client.get(&format!("{url}/metrics")).await.unwrap();
    assert_eq!(own.status, 200);
    read(std::str::from_utf8(&own.body).unwrap(), Format::Plain).unwrap();
    for path in ["/", "/v1/models", "/health", "/admin/keys"] {
        assert_eq!(rig.client.get(&format!("{url}{path}")).await.unwrap().status, 404, "{path}");
    }
    let posted = rig.client.request(Method::POST, &format!("{url}/metrics"), &[], String::new()).await.unwrap();
    assert_eq!((posted.status, posted.header("allow")), (405, Some("GET")));
    rig.stop().await;
}

#[tokio::test]
async fn without_a_token_there_is_nothing_to_show() {
    let upstream = Upstream::start(Script::json(200, &chat::completion())).await.unwrap();
    let config = keyed(&upstream, "");
    let rig = Rig::serving(upstream, config).await.unwrap();
    let refused = error(&show(&rig, &[]).await);
    assert_eq!(refused.status, 401);
    assert!(refused.message.contains("metrics.listen"), "{}", refused.message);
}

#[tokio::test]
async fn it_can_be_switched_off() {
    let tweak: fn(&mut Config) = |config| config.metrics.enabled = false;
    let settings = Settings { tweak: Some(tweak), ..Settings::default() };
    let rig = Rig::with(Script::json(200, &chat::completion()), settings).await;
    assert_eq!(error(&rig.get("/metrics").await).code, "not_found");
}
