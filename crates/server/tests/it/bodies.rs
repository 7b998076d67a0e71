//! Bodies as they travel: sizes, encodings, content types.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::Method;
use serde_json::json;
use testkit::{Answer, Script};

use crate::chat;
use crate::rig::{Rig, Settings, error, object, spawn};
use crate::socket::Socket;

const LIMIT: usize = 4096;

const JSON: (&str, &str) = ("content-type", "application/json");

async fn rig() -> Rig {
    Rig::with(chat::answer(false), Settings { server: "max_body_bytes: 4096", ..Settings::default() }).await
}

fn request() -> Vec<u8> {
    json!({"model": "m", "input": "Hello"}).to_string().into_bytes()
}

pub(crate) fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn zstd(body: &[u8]) -> Vec<u8> {
    zstd::encode_all(body, 19).unwrap()
}

async fn post(rig: &Rig, headers: &[(&str, &str)], body: Vec<u8>) -> Answer {
    rig.client.request(Method::POST, &rig.url("/v1/responses"), headers, body).await.unwrap()
}

#[tokio::test]
async fn encodings_that_are_understood() {
    let rig = rig().await;
    for (encoding, body) in [
        ("identity", request()),
        ("", request()),
        ("gzip", gzip(&request())),
        ("x-gzip", gzip(&request())),
        ("GZIP", gzip(&request())),
        ("zstd", zstd(&request())),
        // Two members and two frames are one body.
        ("gzip", [gzip(&request()[..9]), gzip(&request()[9..])].concat()),
        ("zstd", [zstd(&request()[..9]), zstd(&request()[9..])].concat()),
    ] {
        let answer = post(&rig, &[JSON, ("content-encoding", encoding)], body).await;
        assert_eq!(object(&answer)["status"], "completed", "{encoding}");
    }
    for content_type in ["application/json; charset=utf-8", "APPLICATION/JSON", "application/vnd.api+json"] {
        object(&post(&rig, &[("content-type", content_type)], request()).await);
    }
}

#[tokio::test]
async fn encodings_that_are_not() {
    let rig = rig().await;
    let bomb = vec![b' '; 64 << 20];
    let half = |body: Vec<u8>| body[..body.len() / 2].to_vec();
    for (name, encoding, body, status, code) in [
        ("gzip bomb", "gzip", gzip(&bomb), 413, "request_too_large"),
        ("zstd bomb", "zstd", zstd(&bomb), 413, "request_too_large"),
        ("broken gzip", "gzip", b"nonsense".to_vec(), 400, "invalid_content_encoding"),
        ("half a gzip", "gzip", half(gzip(&request())), 400, "invalid_content_encoding"),
        ("broken zstd", "zstd", b"nonsense".to_vec(), 400, "invalid_content_encoding"),
        ("half a zstd", "zstd", half(zstd(&request())), 400, "invalid_content_encoding"),
        ("plain as gzip", "gzip", request(), 400, "invalid_content_encoding"),
        ("unknown", "br", request(), 400, "unsupported_content_encoding"),
        ("two", "gzip, zstd", request(), 400, "unsupported_content_encoding"),
    ] {
        // The 64 MiB of blanks compress to more than the limit for gzip: the size on the wire is also refused.
        let answer = post(&rig, &[JSON, ("content-encoding", encoding)], body).await;
        let error = error(&answer);
        assert_eq!(error.key(), (status, "invalid_request_error", code, None), "{name}");
        assert_eq!(error.domain, code, "{name}");
    }
    for content_type in ["text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded", ""] {
        let error = error(&post(&rig, &[("content-type", content_type)], request()).await);
        assert_eq!(error.key(), (415, "invalid_request_error", "unsupported_content_type", None), "{content_type}");
    }
}

/// Small on the wire, large inside: only the decoded size gives it away.
#[tokio::test]
async fn a_small_bomb_is_caught_by_its_decoded_size() {
    let rig = rig().await;
    let bomb = vec![b' '; 512 << 10];
    for (encoding, body) in [("gzip", gzip(&bomb)), ("zstd", zstd(&bomb))] {
        assert!(body.len() < LIMIT, "{encoding}: {}", body.len());
        let answer = post(&rig, &[JSON, ("content-encoding", encoding)], body).await;
        assert_eq!((answer.status, error(&answer).code.as_str()), (413, "request_too_large"), "{encoding}");
    }
    assert_eq!(rig.upstream.requests().len(), 0);
}

#[tokio::test]
async fn the_limit_is_exact() {
    let rig = rig().await;
    for (size, status) in [(LIMIT, 200), (LIMIT + 1, 413)] {
        let mut body = request();
        body.resize(size, b' ');
        assert_eq!(post(&rig, &[JSON], body).await.status, status, "{size}");
    }
}

/// Without a length the limit is found while reading; what was announced and is too large is not read at all.
#[tokio::test]
async fn a_chunked_body_is_limited_as_well() {
    let rig = rig().await;
    let head = "POST /v1/responses HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let chunk = format!("400\r\n{}\r\n", " ".repeat(0x400));
    let endless = format!("{head}transfer-encoding: chunked\r\n\r\n{}", chunk.repeat(5));
    let announced = format!("{head}content-length: 99999999999\r\n\r\n");
    let beyond_usize = format!("{head}content-length: 99999999999999999999999999\r\n\r\n");
    for (name, text, status) in
        [("chunked", endless, "413"), ("announced", announced, "413"), ("absurd", beyond_usize, "400")]
    {
        let mut socket = Socket::connect(rig.address).await;
        socket.send(&text).await;
        let head = socket.read_until("\r\n\r\n").await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{name}: {head}");
    }
    let mut socket = Socket::connect(rig.address).await;
    let whole = String::from_utf8(request()).unwrap();
    socket.send(&format!("{head}transfer-encoding: chunked\r\n\r\n{:x}\r\n{whole}\r\n0\r\n\r\n", whole.len())).await;
    assert!(socket.read_until("\r\n\r\n").await.starts_with("HTTP/1.1 200 "));
}

/// A kilobyte on the wire may be megabytes here, and a silent provider makes it stay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_bodies_together_have_a_budget() {
    let tweak: fn(&mut server::config::Config) = |config| config.limits.body_bytes_in_flight = 1 << 20;
    let rig = Rig::with(Script::silent(), Settings { tweak: Some(tweak), ..Settings::default() }).await;
    let body = zstd(json!({"model": "m", "input": "x".repeat(400_000)}).to_string().as_bytes());
    assert!(body.len() < 1024);
    let headers = [JSON, ("content-encoding", "zstd")];
    let held = {
        let (client, url, body) = (rig.client.clone(), rig.url("/v1/responses"), body.clone());
        spawn(async move { client.request(Method::POST, &url, &headers, body).await })
    };
    rig.upstream.arrived(1).await;
    let refused = post(&rig, &headers, body.clone()).await;
    assert_eq!(refused.header("retry-after"), Some("1"));
    let found = error(&refused);
    assert_eq!((found.status, found.domain.as_str()), (503, "too_many_bytes_in_flight"));
    assert_eq!(rig.upstream.requests().len(), 1);
    // What fits is served meanwhile; and when the large one's client is gone, another may come.
    rig.upstream.queue(chat::answer(false));
    object(&post(&rig, &[JSON], request()).await);
    held.abort();
    rig.upstream.closed_after(0).await;
    rig.upstream.queue(chat::answer(false));
    let mut again = post(&rig, &headers, body.clone()).await;
    while again.status == 503 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        again = post(&rig, &headers, body.clone()).await;
    }
    object(&again);
}
