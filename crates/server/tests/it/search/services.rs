//! What is sent to each service, and what is made of its documented answer; what is done about one that fails.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::Script;

use super::{CANARY, config, entry, service};

/// The documented answer of each, cut to what counts, with the result that it has.
fn documented() -> Vec<(&'static str, &'static str, &'static str, Value, [&'static str; 4])> {
    let page = "https://www.rust-lang.org/";
    let found = |text, date| ["Rust & more", page, text, date];
    vec![
        (
            "searxng",
            "GET /base/search?q=rust+%26+%C3%A9&format=json",
            "",
            json!({"query": "rust", "number_of_results": 0, "results": [{"url": page, "title": "Rust &amp; more",
                "content": "A language", "publishedDate": "2026-01-02T00:00:00", "engine": "bing", "score": 1.0}],
                "answers": [], "suggestions": []}),
            found("A language", "2026-01-02T00:00:00"),
        ),
        (
            "brave",
            "GET /base/web/search?q=rust+%26+%C3%A9&count=5",
            "x-subscription-token",
            json!({"type": "search", "query": {"original": "rust"}, "web": {"type": "search", "results": [{
                "title": "<strong>Rust</strong> &amp; more", "url": page, "description": "A <strong>language</strong>",
                "page_age": "2026-01-02T00:00:00", "age": "January 2, 2026", "language": "en"}]}}),
            found("A language", "2026-01-02T00:00:00"),
        ),
        (
            "tavily",
            "POST /base/search",
            "authorization",
            json!({"query": "rust", "answer": null, "images": [], "results": [{"title": "Rust & more", "url": page,
                "content": "A language", "score": 0.9, "raw_content": null}], "response_time": 1.2}),
            found("A language", ""),
        ),
        (
            "exa",
            "POST /base/search",
            "x-api-key",
            json!({"requestId": "r", "resolvedSearchType": "neural", "results": [{"title": "Rust & more", "url": page,
                "publishedDate": "2026-01-02T00:00:00.000Z", "author": null, "id": page, "text": "A language"}]}),
            found("A language", "2026-01-02T00:00:00.000Z"),
        ),
        (
            "serper",
            "POST /base/search",
            "x-api-key",
            json!({"searchParameters": {"q": "rust"}, "organic": [{"title": "Rust & more", "link": page,
                "snippet": "A language", "date": "Jan 2, 2026", "position": 1}], "credits": 1}),
            found("A language", "Jan 2, 2026"),
        ),
        (
            "perplexity",
            "POST /base/search",
            "authorization",
            json!({"id": "i", "results": [{"title": "Rust & more", "url": page, "snippet": "A language",
                "date": "2026-01-02", "last_updated": "2026-01-03"}]}),
            found("A language", "2026-01-02"),
        ),
        (
            "firecrawl",
            "POST /base/search",
            "authorization",
            json!({"success": true, "data": {"web": [{"title": "Rust & more", "url": page, "description": "A language",
                "position": 1}], "images": []}}),
            found("A language", ""),
        ),
        (
            "jina",
            "GET /base/?q=rust+%26+%C3%A9&num=5",
            "authorization",
            json!({"code": 200, "status": 20000, "data": [{"title": "Rust & more", "url": page, "content": "",
                "description": "A language", "usage": {"tokens": 10}}]}),
            found("A language", ""),
        ),
        (
            "zhipu",
            "POST /base/web_search",
            "authorization",
            json!({"id": "i", "created": 1, "search_result": [{"title": "Rust & more", "link": page, "content": "A language",
                "media": "m", "icon": "", "refer": "ref_1", "publish_date": "2026-01-02"}], "search_intent": []}),
            found("A language", "2026-01-02"),
        ),
    ]
}

#[tokio::test]
async fn each_service_is_asked_as_documented_and_its_answer_read() {
    for (spec, line, key_in, answer, expected) in documented() {
        let service = service(Script::json(200, &answer)).await;
        let config = config(&[entry(spec, &service, "")]);
        let found = server::search(&config, "rust & é").await.unwrap_or_else(|why| panic!("{spec}: {why}"));
        let found: Vec<[&str; 4]> = found
            .iter()
            .map(|found| [&*found.title, &*found.url, &*found.text, found.date.as_deref().unwrap_or_default()])
            .collect();
        assert_eq!(found, [expected], "{spec}");
        let received = service.requests().remove(0);
        assert_eq!(format!("{} {}", received.method, received.path), line, "{spec}");
        assert_eq!(received.header("user-agent"), Some("godex/0.1.0"), "{spec}");
        let holds = |value: &http::HeaderValue| value.to_str().is_ok_and(|value| value.contains(CANARY));
        let holding = received.headers.iter().filter(|(_, value)| holds(value));
        let names: Vec<_> = holding.map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, if key_in.is_empty() { vec![] } else { vec![key_in] }, "{spec}");
        if received.method == "POST" {
            let body = received.json().to_string();
            assert!(body.contains("rust & é") && !body.contains(CANARY), "{spec}: {body}");
        }
    }
}

#[tokio::test]
async fn every_failure_is_said_without_a_secret_and_the_next_service_is_asked() {
    let answer = json!({"results": [{"title": "T", "url": "https://a.org/", "content": "c"}]});
    let huge = format!(r#"{{"results":[],"x":"{}"}}"#, "x".repeat(10 << 20));
    for (script, expected) in [
        (Script::json(401, &json!({"error": CANARY})), "tavily: it answered with HTTP status 401"),
        (Script::json(429, &json!({})), "tavily: it answered with HTTP status 429"),
        (Script::json(500, &json!({})), "tavily: it answered with HTTP status 500"),
        (Script::respond(302).header("location", "http://127.0.0.1:1/"), "tavily: it answered with HTTP status 302"),
        (Script::body(200, "text/html", "<html>"), "tavily: its answer is not JSON"),
        (Script::json(200, &json!({"error": {"message": CANARY}})), "tavily: its answer is an error"),
        (
            Script::json(200, &json!({"results": "none"})),
            "tavily: its answer has no list of results where the spec says",
        ),
        (Script::body(200, "application/json", huge), "tavily: its answer is larger than 2 MiB"),
        (Script::garbage("nonsense\r\n\r\n"), "tavily: the connection broke off"),
        (Script::hang_up(), "tavily: the connection broke off"),
        (Script::silent(), "tavily: it did not answer in time"),
        (
            Script::respond(200).header("content-type", "application/json").send("{").stall(),
            "tavily: it did not answer in time",
        ),
    ] {
        let failing = service(script).await;
        let good = service(Script::json(200, &answer)).await;
        let broken = entry("tavily", &failing, ", timeout: 500ms");
        let why = server::search(&config(std::slice::from_ref(&broken)), "q").await.unwrap_err();
        assert!(why.starts_with(expected) && !why.contains(CANARY) && !why.contains("127.0.0.1"), "{expected}: {why}");
        let found = server::search(&config(&[broken, entry("searxng", &good, "")]), "q").await.unwrap();
        assert_eq!((found.len(), good.requests().len()), (1, 1), "{expected}");
    }
}

#[tokio::test]
async fn nobody_is_asked_unless_the_file_says_so() {
    let nobody = crate::rig::parse("session: {backend: memory}\n");
    let why = server::search(&nobody, "q").await.unwrap_err();
    assert_eq!(why, "there is no search service: name one in `tools.web_search`");
    let service = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = service.local_addr().unwrap().port();
    drop(service);
    let gone = format!("{{spec: searxng, endpoint: {{base_url: 'http://127.0.0.1:{port}'}}}}");
    let asked = tokio::time::timeout(Duration::from_secs(20), server::search(&config(&[gone]), "q")).await.unwrap();
    assert!(asked.unwrap_err().starts_with("searxng: no connection"));
}
