//! A process that may open no more files: whoever comes is told so, what runs goes on, and all is well afterwards.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, prlimit};
use serde_json::json;

use crate::cli::home;
use crate::sessions::Godex;

/// Nothing here takes as long.
const PATIENCE: Duration = Duration::from_secs(30);
const FILES: u64 = 100;

/// The answer to a request on a new connection; empty if it was closed without one.
fn health(address: &str) -> String {
    let mut answer = String::new();
    if let Ok(mut stream) = TcpStream::connect(address) {
        let _ = stream.set_read_timeout(Some(PATIENCE));
        let _ = stream.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        let _ = stream.read_to_string(&mut answer);
    }
    answer
}

/// Asks until the answer begins so.
#[expect(clippy::disallowed_methods, reason = "the test waits for it")]
fn until(address: &str, status: &str) -> String {
    let began = Instant::now();
    loop {
        let answer = health(address);
        if answer.starts_with(status) {
            return answer;
        }
        assert!(began.elapsed() < PATIENCE, "{answer:?} instead of {status}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_comes_when_there_are_no_files_left_is_told_so() {
    let home = home("session: {backend: memory}\n");
    let godex = Godex::logging_to(home.path(), Stdio::null());
    let address = godex.url.strip_prefix("http://").unwrap().to_owned();
    let body = json!({"model": "demo", "input": "slow 30", "stream": true});
    let mut streaming = godex.client.post_stream(&format!("{}/v1/responses", godex.url), &body).await.unwrap();
    let mut read = streaming.read_until("response.output_text.delta").await.unwrap();
    let limit = Rlimit { current: Some(FILES), maximum: Some(FILES) };
    prlimit(Some(godex.pid()), Resource::Nofile, limit).unwrap();
    // They say nothing, and stay.
    let idle: Vec<TcpStream> = (0..FILES + 20).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let told = until(&address, "HTTP/1.1 503 ");
    assert!(told.contains("retry-after: 1\r\n") && told.contains("\"code\":\"overloaded\""), "{told}");
    while let Some(bytes) = streaming.next().await.unwrap() {
        read.extend_from_slice(&bytes);
    }
    assert_eq!(testkit::grammar::check(&read).unwrap().response["status"], "completed");
    drop(idle);
    until(&address, "HTTP/1.1 200 ");
}
