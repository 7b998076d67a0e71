//! Web pages in the user's browser must not use the user's keys. What real browsers do is in `tests/browser`; here is
//! every header that they could send.

use http::Method;
use serde_json::json;
use testkit::Answer;

use crate::chat;
use crate::rig::{Rig, Settings, error};
use crate::socket::Socket;

const APP: &str = "https://app.example";

async fn rig(server: &'static str) -> Rig {
    Rig::with(chat::answer(false), Settings { server, ..Settings::default() }).await
}

async fn post(rig: &Rig, headers: &[(&str, &str)]) -> Answer {
    let body = json!({"model": "m", "input": "Hello"}).to_string();
    rig.client.request(Method::POST, &rig.url("/v1/responses"), headers, body).await.unwrap()
}

const JSON: (&str, &str) = ("content-type", "application/json");

#[tokio::test]
async fn names_that_pages_can_give_this_machine_are_refused() {
    let rig = rig("allowed_hosts: [godex.example.com, '*.inner.example']").await;
    for (host, status) in [
        ("localhost", 200),
        ("localhost:5678", 200),
        ("127.0.0.1", 200),
        ("[::1]:5678", 200),
        ("192.168.7.7:80", 200),
        ("godex.example.com", 200),
        ("GODEX.example.com.:443", 200),
        ("a.inner.example", 200),
        ("evil.example", 403),
        ("evil.example:5678", 403),
        ("localhost.evil.example", 403),
        ("inner.example", 403),
        ("", 403),
        ("localhost:80@evil.example", 403),
    ] {
        for (method, path) in
            [("GET", "/v1/models"), ("GET", "/health"), ("POST", "/v1/responses"), ("OPTIONS", "/v1/responses")]
        {
            let mut socket = Socket::connect(rig.address).await;
            let head = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
            socket.send(&head).await;
            let answer = socket.read_to_end().await;
            assert_eq!(answer.contains("\"host_not_allowed\""), status == 403, "{method} {path} {host}: {answer}");
        }
    }
    assert!(rig.upstream.requests().is_empty());
}

#[tokio::test]
async fn a_request_names_one_host() {
    let rig = rig("").await;
    for (name, head, code) in [
        ("none", "GET /health HTTP/1.1\r\n", Some("missing_host")),
        ("none, as HTTP/1.0 may", "GET /health HTTP/1.0\r\n", None),
        ("two", "GET /health HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\n", Some("invalid_header")),
        ("two that differ", "GET http://localhost/health HTTP/1.1\r\nhost: evil.example\r\n", Some("invalid_host")),
        (
            "in the target",
            "GET http://evil.example/health HTTP/1.1\r\nhost: evil.example\r\n",
            Some("host_not_allowed"),
        ),
        ("in the target, ours", "GET http://localhost/health HTTP/1.1\r\nhost: localhost\r\n", None),
    ] {
        let mut socket = Socket::connect(rig.address).await;
        socket.send(&format!("{head}connection: close\r\n\r\n")).await;
        let answer = socket.read_to_end().await;
        match code {
            Some(code) => assert!(answer.contains(code) && answer.contains("\"error\""), "{name}: {answer}"),
            None => assert!(answer.contains(" 200 OK"), "{name}: {answer}"),
        }
    }
}

#[tokio::test]
async fn pages_of_other_origins_get_nothing_done() {
    let rig = rig("").await;
    let own = format!("http://{}", rig.address);
    for (name, headers, allowed) in [
        ("a program", &[][..], true),
        ("another site", &[("origin", "https://evil.example")], false),
        ("a sandboxed page", &[("origin", "null")], false),
        ("an extension", &[("origin", "chrome-extension://abc")], false),
        ("another port of this machine", &[("origin", "http://127.0.0.1:1")], false),
        ("our own page", &[("origin", own.as_str())], true),
        ("no origin, but another site", &[("sec-fetch-site", "cross-site")], false),
        ("no origin, but the same site", &[("sec-fetch-site", "same-site")], false),
        ("typed by the user", &[("sec-fetch-site", "none")], true),
        ("our own page, as browsers say it", &[("origin", own.as_str()), ("sec-fetch-site", "same-origin")], true),
        ("two origins", &[("origin", own.as_str()), ("origin", "https://evil.example")], false),
    ] {
        for (method, path) in [
            (Method::POST, "/v1/responses"),
            (Method::POST, "/v1/conversations"),
            (Method::GET, "/v1/models"),
            (Method::HEAD, "/v1/models"),
            (Method::GET, "/v1/responses/resp_1"),
            (Method::DELETE, "/v1/responses/resp_1"),
            (Method::OPTIONS, "/v1/responses"),
            (Method::POST, "/health"),
        ] {
            let headers: Vec<(&str, &str)> = headers.iter().copied().chain([JSON]).collect();
            let answer = rig.client.request(method.clone(), &rig.url(path), &headers, "{}").await.unwrap();
            let refused = matches!(answer.header("x-godex-error"), Some("origin_not_allowed" | "invalid_header"));
            assert_eq!(refused, !allowed, "{name}: {method} {path} {}", answer.status);
            assert_eq!(answer.header("access-control-allow-origin"), None, "{name}: {method} {path}");
        }
        for path in ["/health", "/ready"] {
            let answer = rig.client.request(Method::GET, &rig.url(path), headers, "").await.unwrap();
            assert!(answer.status == 200 || name == "two origins", "{name}: GET {path}");
        }
    }
    assert!(rig.upstream.requests().is_empty());
}

/// Any page can have a browser send these three types, and no type at all, without asking first.
#[tokio::test]
async fn bodies_are_json_and_say_so() {
    let rig = rig("").await;
    let mut refused: Vec<Vec<(&str, &str)>> = vec![vec![]];
    for name in
        ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain;application/json"]
    {
        refused.push(vec![("content-type", name)]);
    }
    for headers in refused {
        let error = error(&post(&rig, &headers).await);
        assert_eq!((error.status, error.domain.as_str()), (415, "unsupported_content_type"), "{headers:?}");
    }
    assert!(rig.upstream.requests().is_empty());
    // Nothing is no body.
    let empty = rig.client.request(Method::POST, &rig.url("/v1/conversations"), &[], "").await.unwrap();
    assert_eq!(empty.status, 200);
}

#[tokio::test]
async fn pages_that_are_listed_may_call_and_read() {
    let rig = rig("cors: {origins: ['https://app.example', 'http://localhost:3000/']}").await;
    let from = |origin: &'static str| [("origin", origin), ("sec-fetch-site", "cross-site"), JSON];
    let answer = post(&rig, &from(APP)).await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, Some(APP)));
    assert_eq!(answer.header("vary"), Some("origin"));
    assert!(answer.header("access-control-expose-headers").is_some_and(|names| names.contains("x-request-id")));
    assert_eq!(post(&rig, &from("http://localhost:3000")).await.status, 200);
    assert_eq!(error(&post(&rig, &from("https://evil.example")).await).domain, "origin_not_allowed");
    // Errors can be read too.
    let headers = [("origin", APP), ("sec-fetch-site", "cross-site")];
    let unknown = rig.client.request(Method::GET, &rig.url("/v1/responses/resp_1"), &headers, "").await.unwrap();
    assert_eq!((unknown.status, unknown.header("access-control-allow-origin")), (404, Some(APP)));

    let ask = |origin: &'static str| {
        [
            ("origin", origin),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "authorization,content-type,x-stainless-os"),
        ]
    };
    let preflight = |path: &'static str, origin: &'static str| {
        let (rig, headers) = (&rig, ask(origin));
        async move { rig.client.request(Method::OPTIONS, &rig.url(path), &headers, "").await.unwrap() }
    };
    let allowed = preflight("/v1/responses", APP).await;
    assert_eq!((allowed.status, allowed.header("access-control-allow-origin")), (204, Some(APP)));
    assert_eq!(allowed.header("access-control-allow-headers"), Some("authorization,content-type,x-stainless-os"));
    assert!(allowed.header("access-control-allow-methods").is_some_and(|methods| methods.contains("POST")));
    let refused = preflight("/v1/responses", "https://evil.example").await;
    assert_eq!((refused.status, refused.header("access-control-allow-origin")), (403, None));
}

#[tokio::test]
async fn a_head_is_a_get_without_the_body() {
    let rig = rig("").await;
    for path in ["/v1/models", "/v1/models/m", "/v1/responses/resp_unknown", "/health"] {
        let get = rig.get(path).await;
        let head = rig.client.request(Method::HEAD, &rig.url(path), &[], "").await.unwrap();
        assert_eq!((head.status, head.body.len()), (get.status, 0), "{path}");
        assert_eq!(head.header("content-length"), Some(get.body.len().to_string().as_str()), "{path}");
    }
}
