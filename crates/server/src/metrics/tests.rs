//! What is counted of requests, without a server.

use std::time::Duration;

use http::{HeaderValue, Method};
use wire::responses::Usage;

use super::*;
use crate::trace::Head;

fn head() -> Head {
    let request_id = HeaderValue::from_static("req");
    Head { method: Method::POST, path: "/v1/responses".into(), request_id, began_at: 0, took: Duration::from_millis(3) }
}

fn trace(model: &str, target: &str) -> Trace {
    let attempt = Attempted {
        replica: None,
        target: target.to_owned(),
        wire: "chat",
        bytes: 0,
        status: Some(200),
        outcome: Some(Attempted::ACCEPTED),
        began: Duration::ZERO,
        took: Duration::from_millis(1),
        ended: None,
        usage: None,
    };
    let (provider, name) = target.split_once('/').unwrap();
    let usage = Usage { input_tokens: 5, output_tokens: 2, ..Usage::default() };
    let charge = Charge {
        provider: provider.to_owned(),
        model: name.to_owned(),
        usage,
        estimated: false,
        nanodollars: Some(500_000_000),
        tool_calls: 0,
    };
    let facts = Facts {
        route: Some("/v1/responses"),
        model: Some(model.into()),
        attempts: vec![attempt],
        charges: vec![charge],
        status: Some(200),
        outcome: Some(Outcome::Completed),
        ..Facts::default()
    };
    Trace { head: head(), facts }
}

fn text(metrics: &Metrics) -> String {
    let mut text = String::new();
    metrics.write(&mut text);
    text
}

/// A hundred thousand names that nobody configured cost nothing, and show nowhere.
#[test]
fn names_of_clients_are_no_labels() {
    let metrics = Metrics::new(true);
    for number in 0..100_000 {
        metrics.count(&trace(&format!("made-up-{number}\"}}\n"), &format!("provider-{number}/model-{number}")));
    }
    let text = text(&metrics);
    assert!(!text.contains("made-up") && !text.contains("model-1"), "{text}");
    assert!(text.contains("godex_requests_total{route=\"/v1/responses\",status=\"200\",outcome=\"completed\",model=\"other\",target=\"other\"} 100000"), "{text}");
    assert!(text.contains("godex_tokens_total{provider=\"other\",target=\"other\",kind=\"input\"} 500000"), "{text}");
    assert!(text.contains("godex_cost_dollars_total{provider=\"other\",target=\"other\"} 50000"), "{text}");
    let rows = metrics.rows.read().unwrap().len();
    assert_eq!((metrics.sets[0].load(Relaxed), metrics.targets.read().unwrap().len(), rows), (1, 1, 0));
}

/// What hosted tools cost is in the sum, too.
#[test]
fn calls_of_tools_cost() {
    let metrics = Metrics::new(true);
    let mut turn = trace("m", "p/m");
    turn.facts.charges = vec![
        Charge::of_call("brave", "web_search", Some(5_000_000)),
        Charge::of_call("brave", "web_search", Some(5_000_000)),
        Charge::of_call("files", "read", None),
    ];
    metrics.count(&turn);
    let text = text(&metrics);
    assert!(
        text.contains("godex_cost_dollars_total{provider=\"(tools)\",target=\"(tools)/web_search\"} 0.01"),
        "{text}"
    );
    assert!(!text.contains("(tools)/mcp") && text.contains("godex_tool_calls_total{tool=\"mcp\"} 1"), "{text}");
}

/// Even what is known by name is not without end.
#[test]
fn label_sets_have_an_end() {
    let metrics = Metrics::new(true);
    for number in 0..3 * MOST_SETS {
        let (route, model): (_, Arc<str>) = ("/v1/responses", number.to_string().into());
        let of_route = RouteLabels { route, model: Arc::clone(&model) };
        let labels = RequestLabels { route, status: 200, outcome: "completed", target: Arc::clone(&model), model };
        let row = metrics.families.row(labels, of_route, None, &metrics.sets);
        row.requests.inc();
        row.duration.observe(Duration::ZERO);
    }
    let text = text(&metrics);
    for (name, cut) in [
        ("godex_requests_total{", "model=\"other\",target=\"other\"} 10000"),
        ("godex_request_duration_seconds_count{", "model=\"other\"} 10000"),
    ] {
        let samples: Vec<&str> = text.lines().filter(|line| line.starts_with(name)).collect();
        assert_eq!(samples.len(), MOST_SETS + 1);
        assert!(samples.iter().any(|sample| sample.contains(cut)), "{name}");
    }
    for number in 0..3 * MOST_TARGETS {
        let name: Arc<str> = number.to_string().into();
        let labels = TargetLabels { provider: Arc::clone(&name), target: name };
        let mut targets = metrics.targets.write().unwrap();
        if targets.len() < MOST_TARGETS {
            targets.insert(Arc::clone(&labels.target), Arc::new(metrics.families.target(labels)));
        }
    }
    metrics.count(&trace("m", "one/more"));
    assert!(metrics.targets.read().unwrap().len() <= MOST_TARGETS + 1);
}

#[test]
fn nothing_is_counted_where_nobody_asks() {
    let metrics = Metrics::new(false);
    metrics.count(&trace("m", "p/m"));
    assert!(!text(&metrics).contains("godex_requests_total"));
}

#[test]
fn open_streams_are_those_that_are_there() {
    let metrics = Metrics::new(true);
    let (one, two) = (metrics.open_stream(StreamKind::Sse), metrics.open_stream(StreamKind::WebSocket));
    let third = metrics.open_stream(StreamKind::Sse);
    drop((one, two));
    let text = text(&metrics);
    assert!(text.contains("godex_open_streams{kind=\"sse\"} 1") && text.contains("kind=\"websocket\"} 0"), "{text}");
    drop(third);
}
