//! Signals to the binary: the first lets requests end, the second ends them.

use std::process::Stdio;

use rustix::process::Signal;
use serde_json::json;

use crate::cli::home;
use crate::sessions::Godex;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_means_now() {
    let home = home("server: {drain_timeout: 1h}\nsession: {backend: memory}\n");
    let godex = Godex::logging_to(home.path(), Stdio::null());
    let body = json!({"model": "demo", "input": "slow 100000", "stream": true});
    let mut streaming = godex.client.post_stream(&format!("{}/v1/responses", godex.url), &body).await.unwrap();
    let mut read = streaming.read_until("response.output_text.delta").await.unwrap();
    godex.signal(Signal::TERM);
    // It goes on after the first one.
    for _ in 0..3 {
        read.extend_from_slice(&streaming.next().await.unwrap().unwrap());
    }
    #[expect(clippy::disallowed_methods, reason = "the test waits for it")]
    let ended = tokio::task::spawn_blocking(move || godex.end(Signal::INT));
    while let Ok(Some(bytes)) = streaming.next().await {
        read.extend_from_slice(&bytes);
    }
    assert!(ended.await.unwrap().success());
    let stream = testkit::grammar::check(&read).unwrap();
    assert_eq!(stream.response["status"], "failed", "{}", stream.response);
}
