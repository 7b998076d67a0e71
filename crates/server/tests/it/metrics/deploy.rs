//! The dashboard and the alert rules that are shipped use what there is: every name and every label of every query.

use std::collections::BTreeSet;

use serde_json::Value;
use server::{METRICS, MetricKind};

/// Labels that Prometheus adds, and those of buckets.
const ADDED: &[&str] = &["instance", "job", "le"];

fn file(path: &str) -> String {
    std::fs::read_to_string(testkit::root().join("deploy").join(path)).unwrap()
}

/// Every query of a dashboard, with the title of its panel.
fn queries(dashboard: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut panels: Vec<&Value> = dashboard["panels"].as_array().unwrap().iter().collect();
    while let Some(panel) = panels.pop() {
        panels.extend(panel["panels"].as_array().into_iter().flatten());
        for target in panel["targets"].as_array().into_iter().flatten() {
            found.push((panel["title"].as_str().unwrap().to_owned(), target["expr"].as_str().unwrap().to_owned()));
        }
    }
    found
}

/// The names in a query that are metrics, each with the labels that it is asked for by.
fn used(query: &str) -> Vec<(String, BTreeSet<String>)> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    // What is summed up by labels has them, wherever in the query that is said.
    let mut grouped = BTreeSet::new();
    for by in ["by (", "by("] {
        for (at, _) in query.match_indices(by) {
            let inside = query[at + by.len()..].split(')').next().unwrap_or_default();
            grouped.extend(inside.split(',').map(|label| label.trim().to_owned()).filter(|label| !label.is_empty()));
        }
    }
    let mut found = Vec::new();
    let mut rest = query;
    while let Some(at) = ["godex_", "process_"].iter().filter_map(|start| rest.find(start)).min() {
        let from = &rest[at..];
        let name: String = from.chars().take_while(|c| word(*c)).collect();
        let mut labels = grouped.clone();
        if let Some(inside) = from[name.len()..].strip_prefix('{') {
            let inside = inside.split('}').next().unwrap_or_default();
            for pair in inside.split(',').filter(|pair| !pair.trim().is_empty()) {
                labels.insert(pair.trim().chars().take_while(|c| word(*c)).collect());
            }
        }
        rest = &from[name.len()..];
        found.push((name, labels));
    }
    found
}

fn check(place: &str, query: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let used = used(query);
    assert!(!used.is_empty(), "{place}: no metric in {query}");
    for (name, labels) in used {
        let row = METRICS.iter().find(|row| {
            let parts: &[&str] = if row.kind == MetricKind::Histogram { &["_bucket", "_sum", "_count"] } else { &[""] };
            parts.iter().any(|part| format!("{}{part}", row.name()) == name)
        });
        let row = row.unwrap_or_else(|| panic!("{place}: there is no {name}"));
        for label in &labels {
            assert!(
                row.labels.contains(&&**label) || ADDED.contains(&&**label),
                "{place}: {name} has no label {label}"
            );
        }
        names.insert(row.name());
    }
    names
}

#[test]
fn the_dashboard_asks_for_what_there_is() {
    let dashboard: Value = serde_json::from_str(&file("grafana/godex.json")).unwrap();
    let queries = queries(&dashboard);
    let shown: BTreeSet<String> = queries.iter().flat_map(|(panel, query)| check(panel, query)).collect();
    assert!(queries.len() > 15 && shown.len() > 20, "{shown:?}");
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(panel["gridPos"]["w"].as_u64().unwrap() <= 24, "{}", panel["title"]);
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        if let Some(query) = variable["query"].as_str().filter(|query| query.contains('(')) {
            let inside = query.trim_start_matches("label_values(").trim_end_matches(')');
            let (metric, label) = inside.rsplit_once(',').unwrap();
            check("a variable", &format!("sum by ({}) ({metric})", label.trim()));
        }
    }
}

#[test]
fn the_alerts_ask_for_what_there_is() {
    let rules = file("alerts/godex.yaml");
    let mut alerts = 0;
    for rule in rules.split("- alert: ").skip(1) {
        let name = rule.lines().next().unwrap();
        let query = rule.split("expr: ").nth(1).unwrap().lines().next().unwrap();
        check(name, query);
        assert!(rule.contains("summary: ") && rule.contains("description: ") && rule.contains("severity: "), "{name}");
        alerts += 1;
    }
    assert!(alerts > 8);
}

#[test]
fn what_a_query_uses_is_found() {
    let query = r#"sum by (provider) (rate(godex_tokens_total{kind="input", provider=~"$p"}[5m])) / process_open_fds"#;
    let labels = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    let expected = vec![
        ("godex_tokens_total".to_owned(), labels(&["kind", "provider"])),
        ("process_open_fds".to_owned(), labels(&["provider"])),
    ];
    assert_eq!(used(query), expected);
}
