//! Spans: what a collector gets of each request, and what goes to providers along with it.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::json;
use testkit::{Answer, Script, Upstream};

use crate::chat;
use crate::rig::{self, Rig, object};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// A server that tells this collector.
async fn telling(upstream: Upstream, collector: Option<&Upstream>, more: &str) -> Rig {
    let otel = collector.map(|collector| {
        format!(
            "otel: {{endpoint: '{}', headers: {{x-token: secret-of-the-collector}}, service_name: edge{more}}}\n",
            collector.url()
        )
    });
    let config = rig::parse(&format!(
        "session: {{backend: memory}}\nresilience: {{backoff_ms: 1}}\n{}providers:\n  up:\n    spec: mistral\n    endpoint: \
         {{base_url: '{}/v1'}}\n    credentials: {{api_key: k}}\n    models: [m]\n",
        otel.unwrap_or_default(),
        upstream.url()
    ));
    Rig::serving(upstream, config).await.unwrap()
}

async fn collector() -> Upstream {
    Upstream::start(Script::body(200, "application/x-protobuf", "")).await.unwrap()
}

async fn provider() -> Upstream {
    Upstream::start_with(|request| chat::answer(request.json()["stream"] == true)).await.unwrap()
}

async fn ask(rig: &Rig, headers: &[(&str, &str)]) -> Answer {
    let headers: Vec<_> = [("content-type", "application/json")].into_iter().chain(headers.iter().copied()).collect();
    let body = json!({"model": "m", "input": "the prompt is nobody's business", "made_up": 1}).to_string();
    rig.client.request(Method::POST, &rig.url("/v1/responses"), &headers, body).await.unwrap()
}

/// What came of so many requests to a collector, decoded.
async fn told(collector: &Upstream, requests: usize) -> Vec<ExportTraceServiceRequest> {
    tokio::time::timeout(Duration::from_secs(20), collector.arrived(requests)).await.unwrap();
    let decoded = |body: &[u8]| ExportTraceServiceRequest::decode(body).unwrap();
    collector.requests().iter().map(|request| decoded(&request.body)).collect()
}

fn spans(told: &[ExportTraceServiceRequest]) -> Vec<&Span> {
    let scopes = told.iter().flat_map(|request| &request.resource_spans).flat_map(|resource| &resource.scope_spans);
    scopes.flat_map(|scope| &scope.spans).collect()
}

fn attributes(pairs: &[KeyValue]) -> BTreeMap<&str, String> {
    fn shown(value: &AnyValue) -> String {
        match value.value.as_ref().unwrap() {
            Any::StringValue(text) => text.clone(),
            Any::IntValue(number) => number.to_string(),
            Any::DoubleValue(number) => format!("{number:.3}"),
            Any::ArrayValue(array) => array.values.iter().map(shown).collect::<Vec<_>>().join(","),
            other => panic!("{other:?}"),
        }
    }
    pairs.iter().map(|pair| (pair.key.as_str(), shown(pair.value.as_ref().unwrap()))).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

#[tokio::test]
async fn a_collector_gets_a_span_of_the_request_and_one_of_each_try() {
    let (collector, upstream) = (collector().await, provider().await);
    upstream.queue(Script::json(500, &json!({"error": {"message": "down"}})));
    let rig = telling(upstream, Some(&collector), "").await;
    let response = object(&ask(&rig, &[("traceparent", PARENT), ("tracestate", "a=1")]).await);
    let told = told(&collector, 1).await;
    let request = &collector.requests()[0];
    assert_eq!((&*request.method, &*request.path), ("POST", "/v1/traces"));
    assert_eq!(request.header("content-type"), Some("application/x-protobuf"));
    assert_eq!(request.header("x-token"), Some("secret-of-the-collector"));
    let resource = attributes(&told[0].resource_spans[0].resource.as_ref().unwrap().attributes);
    assert_eq!((&*resource["service.name"], &*resource["service.version"]), ("edge", env!("CARGO_PKG_VERSION")));

    let spans = spans(&told);
    let [server, refused, accepted] = spans[..] else { panic!("{spans:?}") };
    for span in &spans {
        assert_eq!((hex(&span.trace_id), &*span.trace_state), (TRACE.to_owned(), "a=1"));
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano && span.start_time_unix_nano > 1 << 60);
        assert!(
            span.start_time_unix_nano >= server.start_time_unix_nano
                && span.end_time_unix_nano <= server.end_time_unix_nano
        );
    }
    assert_eq!(
        (&*server.name, server.kind, &*hex(&server.parent_span_id)),
        ("POST /v1/responses", 2, "00f067aa0ba902b7")
    );
    assert_eq!((server.flags, server.status.is_none()), (0x301, true));
    let found = attributes(&server.attributes);
    for (name, value) in [
        ("http.request.method", "POST"),
        ("http.route", "/v1/responses"),
        ("http.response.status_code", "200"),
        ("gen_ai.request.model", "m"),
        ("gen_ai.response.id", response["id"].as_str().unwrap()),
        ("gen_ai.usage.input_tokens", "5"),
        ("godex.outcome", "completed"),
        ("godex.tenant", "default"),
    ] {
        assert_eq!(found.get(name).map(String::as_str), Some(value), "{found:?}");
    }
    assert!(
        !found["godex.notes"].is_empty() && found.contains_key("godex.overhead") && !found.contains_key("error.type")
    );

    for (span, error) in [(refused, Some("upstream_error")), (accepted, None)] {
        assert_eq!((&*span.name, span.kind, &span.parent_span_id, span.flags), ("chat m", 3, &server.span_id, 0x101));
        let found = attributes(&span.attributes);
        assert_eq!(found.get("error.type").map(String::as_str), error);
        assert_eq!(span.status.as_ref().map(|status| status.code), error.map(|_| 2));
        for (name, value) in [
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.provider.name", "mistral_ai"),
            ("gen_ai.request.model", "m"),
            ("godex.provider", "up"),
            ("server.address", "127.0.0.1"),
            ("server.port", &rig.upstream.address().port().to_string()),
        ] {
            assert_eq!(found.get(name).map(String::as_str), Some(value), "{found:?}");
        }
    }
    let found = attributes(&accepted.attributes);
    assert_eq!((&*found["gen_ai.usage.input_tokens"], &*found["gen_ai.usage.output_tokens"]), ("5", "2"));
    assert!(found.contains_key("gen_ai.response.time_to_first_chunk"));

    // The provider is told of the very span that the collector gets.
    let sent = rig.upstream.requests();
    for (sent, span) in sent.iter().zip([refused, accepted]) {
        let expected = format!("00-{TRACE}-{}-01", hex(&span.span_id));
        assert_eq!((sent.header("traceparent"), sent.header("tracestate")), (Some(&*expected), Some("a=1")));
    }
    let everything = format!("{told:?}{:?}", collector.requests()[0].body);
    assert!(!everything.contains("business") && !everything.contains("Hello"), "nothing that was said");
}

/// What has no usage of its own to tell a client has used what its tries have.
#[tokio::test]
async fn a_compaction_says_what_it_used() {
    let (collector, upstream) = (collector().await, provider().await);
    let rig = telling(upstream, Some(&collector), "").await;
    let body = json!({"model": "m", "input": "Hi"});
    assert_eq!(rig.send(Method::POST, "/v1/responses/compact", &body).await.status, 200);
    let told = told(&collector, 1).await;
    let [server, tried] = spans(&told)[..] else { panic!("{told:?}") };
    assert_eq!(&*server.name, "POST /v1/responses/compact");
    for span in [server, tried] {
        let found = attributes(&span.attributes);
        assert_eq!(
            (&*found["gen_ai.usage.input_tokens"], &*found["gen_ai.usage.output_tokens"]),
            ("5", "2"),
            "{found:?}"
        );
    }
}

#[tokio::test]
async fn a_trace_begins_here_if_no_client_has_begun_it() {
    let (collector, upstream) = (collector().await, provider().await);
    let rig = telling(upstream, Some(&collector), "").await;
    object(&ask(&rig, &[("traceparent", "no trace at all")]).await);
    let told = told(&collector, 1).await;
    let spans = spans(&told);
    assert_eq!(spans.len(), 2);
    assert!(spans[0].parent_span_id.is_empty() && spans[0].trace_id.iter().any(|byte| *byte != 0));
    let sent = rig.upstream.requests()[0].header("traceparent").unwrap().to_owned();
    assert_eq!(sent, format!("00-{}-{}-01", hex(&spans[0].trace_id), hex(&spans[1].span_id)));
    rig.stop().await;
}

/// What a client says is not to be kept is not sent, and the provider hears so.
#[tokio::test]
async fn a_trace_that_is_not_kept_is_not_sent() {
    let (collector, upstream) = (collector().await, provider().await);
    let rig = telling(upstream, Some(&collector), "").await;
    object(&ask(&rig, &[("traceparent", &PARENT.replace("-01", "-00"))]).await);
    object(&ask(&rig, &[("traceparent", PARENT)]).await);
    let told = told(&collector, 1).await;
    assert_eq!(spans(&told).len(), 2);
    assert!(rig.upstream.requests()[0].header("traceparent").unwrap().ends_with("-00"));
}

/// Without a collector a client's trace still goes on to the provider, and no other begins.
#[tokio::test]
async fn a_clients_trace_goes_on_without_a_collector() {
    let rig = telling(provider().await, None, "").await;
    object(&ask(&rig, &[("traceparent", PARENT), ("tracestate", "a=1")]).await);
    object(&ask(&rig, &[]).await);
    object(
        &ask(
            &rig,
            &[("traceparent", "00-00000000000000000000000000000000-00f067aa0ba902b7-01"), ("tracestate", "a=1")],
        )
        .await,
    );
    let sent = rig.upstream.requests();
    let parent = sent[0].header("traceparent").unwrap();
    assert!(parent.starts_with(&format!("00-{TRACE}-")) && !parent.contains("00f067aa0ba902b7"), "{parent}");
    assert_eq!(sent[0].header("tracestate"), Some("a=1"));
    for sent in &sent[1..] {
        assert_eq!((sent.header("traceparent"), sent.header("tracestate")), (None, None));
    }
}

/// A collector that takes connections and says nothing, one that refuses, one that is not there: nobody waits for any.
#[tokio::test]
async fn a_broken_collector_blocks_nothing() {
    let frozen = Upstream::start(Script::silent()).await.unwrap();
    let refusing = Upstream::start(Script::json(400, &json!({}))).await.unwrap();
    let gone = Upstream::start(Script::silent()).await.unwrap();
    let address = gone.url();
    drop(gone);
    for collector in [frozen.url(), refusing.url(), address] {
        let upstream = provider().await;
        let config = rig::parse(&format!(
            "session: {{backend: memory}}\notel: {{endpoint: '{collector}'}}\nproviders:\n  up:\n    spec: openai-compatible\n    \
             endpoint: {{base_url: '{}/v1'}}\n    credentials: {{api_key: k}}\n    models: [m]\n",
            upstream.url()
        ));
        let rig = Rig::serving(upstream, config).await.unwrap();
        for _ in 0..50 {
            object(&ask(&rig, &[]).await);
        }
        // Nor does the end.
        tokio::time::timeout(Duration::from_secs(15), rig.stop()).await.unwrap();
    }
}

/// What a collector does not take shows in the metrics.
#[tokio::test]
async fn what_is_not_taken_is_counted() {
    let collector = Upstream::start(Script::json(400, &json!({}))).await.unwrap();
    let rig = telling(provider().await, Some(&collector), "").await;
    object(&ask(&rig, &[]).await);
    told_of_a_drop(&rig).await;
}

async fn told_of_a_drop(rig: &Rig) {
    for _ in 0..1000 {
        let text = String::from_utf8(rig.get("/metrics").await.body.to_vec()).unwrap();
        if text.contains("godex_queue_dropped_total{queue=\"spans\"} 2\n") {
            assert!(text.contains("godex_spans_exported_total 0\n"), "{text}");
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it is not counted");
}
