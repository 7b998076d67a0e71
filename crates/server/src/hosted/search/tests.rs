//! The three functions over a search that asks nobody.

use std::sync::Arc;

use bridge::{HostedEnd, ToolKind};

use super::{Services, State, WebSearch, Wishes, searched};
use crate::config::{SearchService, WebSearchConfig};
use web::search::{Found, SearchSpec};

fn mock() -> SearchService {
    SearchService {
        spec: SearchSpec::named("mock", &|_| None).unwrap().unwrap(),
        base_url: String::new(),
        api_key: None,
        timeout: std::time::Duration::from_secs(10),
        country: None,
        language: None,
        price_per_call: None,
    }
}

fn search(config: &WebSearchConfig, wishes: Wishes) -> WebSearch {
    let services = Services::new(config.services.clone(), Arc::default(), None);
    WebSearch::new(config, wishes, true, services, Arc::default())
}

fn usual() -> WebSearchConfig {
    WebSearchConfig { services: vec![mock()], ..WebSearchConfig::default() }
}

#[tokio::test]
async fn several_queries_are_one_search() {
    let search = search(&usual(), Wishes::default());
    let output = search.call(ToolKind::WebSearch, r#"{"queries":["Rust 2026","rust 2026!","other"]}"#).await;
    let urls: Vec<_> = output.sources.iter().map(|source| source.url.as_str()).collect();
    assert_eq!(urls, ["https://example.com/search/rust-2026", "https://example.com/search/other"]);
    let HostedEnd::Searched { action } = output.end else { panic!("{output:?}") };
    let expected = r#"{"type":"search","query":"Rust 2026","queries":["Rust 2026","rust 2026!","other"],"sources":[{"type":"url","url":"https://example.com/search/rust-2026"},{"type":"url","url":"https://example.com/search/other"}]}"#;
    assert_eq!(action, expected);
    assert!(
        output.text.starts_with("Results for \"Rust 2026\", ") && output.text.contains("1. Mock result"),
        "{}",
        output.text
    );
}

#[tokio::test]
async fn what_cannot_be_done_is_told_to_the_model() {
    let domains = Wishes { domains: vec!["a.org".into()], ..Wishes::default() };
    let index = Wishes { pages: false, ..Wishes::default() };
    let limited = || WebSearchConfig { max_calls: Some(0), ..usual() };
    let without = || WebSearchConfig { pages: false, ..usual() };
    let (open, find) = (ToolKind::OpenPage, ToolKind::FindInPage);
    for (config, wishes, kind, arguments, expected) in [
        (usual(), Wishes::default(), ToolKind::WebSearch, "{}", "Nothing was searched: give `queries`"),
        (limited(), Wishes::default(), ToolKind::WebSearch, r#"{"query":"q"}"#, "Skipped: no more than 0 searches"),
        (limited(), Wishes::default(), open, r#"{"url":"https://a.org"}"#, "Skipped: no more than 0 searches"),
        (without(), Wishes::default(), open, r#"{"url":"https://a.org"}"#, "Pages cannot be opened here"),
        (usual(), index, open, r#"{"url":"https://a.org"}"#, "Pages cannot be opened here"),
        (usual(), Wishes::default(), open, "{}", "No page was opened: give `url`"),
        (usual(), Wishes::default(), open, r#"{"url":"ftp://a.org/"}"#, "No page was opened: give `url`"),
        (
            usual(),
            Wishes::default(),
            open,
            r#"{"url":"https://a.org/?secret"}"#,
            "only addresses that this conversation",
        ),
        (usual(), domains, open, r#"{"url":"https://b.org/"}"#, "it is in none of the domains"),
        (usual(), Wishes::default(), find, r#"{"url":"https://a.org"}"#, "Nothing was looked for: give `pattern`"),
    ] {
        let search = search(&config, wishes);
        search.shown("look at https://a.org and b.org");
        let output = search.call(kind, arguments).await;
        assert!(matches!(output.end, HostedEnd::NotSearched { .. }), "{output:?}");
        assert!(output.text.contains(expected) && output.sources.is_empty(), "{arguments}: {}", output.text);
    }
}

#[tokio::test]
async fn what_a_search_has_shown_may_be_opened() {
    let search = search(&usual(), Wishes::default());
    let url = r#"{"url":"https://example.com/search/q"}"#;
    let may_open = |search: &WebSearch| {
        let State { shown, .. } = &*search.0;
        shown.lock().unwrap().has("https://example.com/search/q")
    };
    assert!(search.call(ToolKind::OpenPage, url).await.text.contains("only addresses that this conversation"));
    assert!(!may_open(&search));
    search.call(ToolKind::WebSearch, r#"{"query":"q"}"#).await;
    assert!(may_open(&search));
}

#[tokio::test]
async fn results_elsewhere_are_left_out() {
    let services = Services::new(vec![mock()], Arc::default(), None);
    let wishes = Wishes { blocked: vec!["example.com".into()], ..Wishes::default() };
    assert_eq!(services.search("q", &wishes).await, Ok(vec![]));
    let wishes = Wishes { domains: vec!["a.org".into()], ..Wishes::default() };
    assert_eq!(services.search("q", &wishes).await.unwrap()[0].url, "https://a.org/search/q");
}

#[test]
fn the_best_of_each_query_comes_first() {
    let found = |url: &str| Found { title: String::new(), url: url.to_owned(), text: String::new(), date: None };
    let lists = vec![
        vec![found("https://a.org/"), found("https://b.org/")],
        vec![found("http://a.org#x"), found("https://c.org/"), found("https://d.org/?utm_source=x")],
        vec![],
    ];
    let urls: Vec<_> = searched(lists).into_iter().map(|found| found.url).collect();
    assert_eq!(urls, ["https://a.org/", "https://b.org/", "https://c.org/", "https://d.org/?utm_source=x"]);
}
