//! `godex search`: what is found, or why nothing is.

use crate::cli::{godex, home};

#[test]
fn results_are_printed_and_failures_said() {
    let (address, title) = ("https://example.com/search/rust-news", "Mock result for rust news");
    let mock = home("tools: {web_search: mock}\n");
    let (code, out, err) = godex(mock.path(), &["search", "rust  news"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.starts_with(&format!("1. {title} (2026-01-01)\n   {address}\n   This result")), "{out}");
    let (code, out, _) = godex(mock.path(), &["search", "--json", "rust news"]);
    let found: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &found[0]["title"], &found[0]["url"]), (Some(0), &title.into(), &address.into()));
    for (config, expected) in [
        ("", "error: there is no search service: name one in `tools.web_search`\n"),
        (
            "tools: {web_search: {spec: searxng, endpoint: {base_url: 'http://127.0.0.1:9'}}}\n",
            "error: searxng: no connection: ",
        ),
    ] {
        let (code, out, err) = godex(home(config).path(), &["search", "q"]);
        assert_eq!((code, out.as_str()), (Some(1), ""));
        assert!(err.starts_with(expected), "{err}");
    }
}
