//! The end of the server, seen by those who come, wait or idle while it begins: each request that was sent on a
//! connection that the server keeps is answered.

use std::net::SocketAddr;
use std::time::Duration;

use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use server::config::Config;
use testkit::Script;
use tokio::net::TcpStream;

use crate::chat;
use crate::rig::{Rig, Settings, spawn};
use crate::socket::Socket;
use crate::stalls::http2;

const PATIENCE: Duration = Duration::from_secs(20);

/// Only what a test expects ends anything.
fn patient(config: &mut Config) {
    config.server.drain_timeout = Duration::from_hours(1);
}

async fn rig(script: Script, tweak: fn(&mut Config)) -> Rig {
    Rig::with(script, Settings { tweak: Some(tweak), ..Settings::default() }).await
}

fn request() -> Value {
    json!({"model": "m", "input": "Hello"})
}

/// The answer on this connection: whether it was good, and whether the connection ends with it.
async fn answered(socket: &mut Socket) -> (bool, bool) {
    let answer = tokio::time::timeout(PATIENCE, socket.read_until("\"user\":null}")).await.unwrap();
    let good = answer.starts_with("HTTP/1.1 200 ") && answer.ends_with('}');
    (good, answer.to_ascii_lowercase().contains("\r\nconnection: close\r\n"))
}

/// Waits until nobody gets in.
async fn closed(address: SocketAddr) {
    let refused = async { while TcpStream::connect(address).await.is_ok() {} };
    tokio::time::timeout(PATIENCE, refused).await.unwrap();
}

async fn ended(socket: &mut Socket) {
    assert_eq!(tokio::time::timeout(PATIENCE, socket.read_to_end()).await.unwrap(), "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn during_the_delay_all_are_answered_and_told_to_go() {
    let mut rig = rig(chat::answer(false), |config| config.server.drain_delay = Duration::from_hours(1)).await;
    let mut kept = Socket::post(rig.address, &request()).await;
    assert_eq!(answered(&mut kept).await, (true, false));
    assert_eq!(rig.get("/ready").await.status, 200);
    rig.drain();
    let not_ready = async { while rig.get("/ready").await.status != 503 {} };
    tokio::time::timeout(PATIENCE, not_ready).await.unwrap();
    // Who is there, who comes, and who comes again.
    kept.send_post(&request()).await;
    let mut new = Socket::post(rig.address, &request()).await;
    for socket in [&mut kept, &mut new] {
        assert_eq!(answered(socket).await, (true, true));
        ended(socket).await;
    }
    let (mut sender, running) = http2(&rig).await;
    let health = Request::get(rig.url("/health")).body(Full::from(String::new())).unwrap();
    let answer = sender.send_request(health).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.headers().get("connection")), (200, None));
    answer.into_body().collect().await.unwrap();
    tokio::time::timeout(PATIENCE, running).await.unwrap().unwrap().unwrap();
    // A second signal does not wait for the rest of the delay.
    tokio::time::timeout(PATIENCE, rig.stop_at_once()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_at_the_door_is_answered() {
    let tweak: fn(&mut Config) = |config| {
        patient(config);
        config.server.max_connections = 1;
    };
    let mut rig = rig(chat::answer(false), tweak).await;
    rig.upstream.queue(Script::event_stream().event(&chat::text("Hel")).stall());
    let body = json!({"model": "m", "input": "Hello", "stream": true});
    let mut streaming = rig.client.post_stream(&rig.url("/v1/responses"), &body).await.unwrap();
    streaming.read_until("\"delta\":\"Hel\"").await.unwrap();
    let mut waiting = Vec::new();
    for _ in 0..20 {
        waiting.push(Socket::post(rig.address, &request()).await);
    }
    rig.drain();
    for socket in &mut waiting {
        assert_eq!(answered(socket).await, (true, true));
    }
    drop(streaming);
    tokio::time::timeout(PATIENCE, rig.stop()).await.unwrap();
}

/// Answers that are over before the end begins, and one that is over after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_brings_nothing_more_ends_behind_its_answer() {
    let mut rig = rig(chat::answer(false), patient).await;
    let slow = Script::event_stream().event(&chat::text("Hel")).delay(Duration::from_millis(1500));
    rig.upstream.queue(slow.event(&chat::text("lo")).event(&chat::stop()).done());
    let mut streaming = Socket::post(rig.address, &json!({"model": "m", "input": "Hello", "stream": true})).await;
    streaming.read_until("\"delta\":\"Hel\"").await;
    let mut asked = Socket::connect(rig.address).await;
    asked.send("GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    asked.read_until("}").await;
    rig.drain();
    let rest = tokio::time::timeout(PATIENCE, streaming.read_to_end()).await.unwrap();
    assert!(rest.ends_with("\r\n0\r\n\r\n"), "{rest}");
    ended(&mut asked).await;
    tokio::time::timeout(PATIENCE, rig.stop()).await.unwrap();
}

/// The answer's head was sent before anybody knew of the end, and says that the connection stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_was_to_stay_takes_one_more_request() {
    let mut rig = rig(chat::answer(false), patient).await;
    let slow = Script::event_stream().event(&chat::text("Hel")).delay(Duration::from_secs(2));
    rig.upstream.queue(slow.event(&chat::text("lo")).event(&chat::stop()).done());
    let mut socket = Socket::post(rig.address, &json!({"model": "m", "input": "Hello", "stream": true})).await;
    socket.read_until("\"delta\":\"Hel\"").await;
    rig.drain();
    closed(rig.address).await;
    assert!(socket.read_until("\r\n0\r\n\r\n").await.contains("response.completed"));
    socket.send_post(&request()).await;
    assert_eq!(answered(&mut socket).await, (true, true));
    ended(&mut socket).await;
    tokio::time::timeout(PATIENCE, rig.stop()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_half_sent_is_waited_for() {
    let mut rig = rig(chat::answer(false), patient).await;
    let (mut first, mut second) = (Socket::connect(rig.address).await, Socket::post(rig.address, &request()).await);
    assert_eq!(answered(&mut second).await, (true, false));
    let body = request().to_string();
    for socket in [&mut first, &mut second] {
        socket.send("POST /v1/responses HTTP/1.1\r\nhost: localhost\r\ncontent-ty").await;
    }
    // So that it has read what was sent.
    assert_eq!(rig.get("/health").await.status, 200);
    rig.drain();
    closed(rig.address).await;
    for socket in [&mut first, &mut second] {
        socket.send(&format!("pe: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())).await;
        assert_eq!(answered(socket).await, (true, true));
    }
    tokio::time::timeout(PATIENCE, rig.stop()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_hold_nothing_up() {
    let mut rig = rig(chat::answer(false), patient).await;
    let (mut used, mut unused) = (Socket::post(rig.address, &request()).await, Socket::connect(rig.address).await);
    assert_eq!(answered(&mut used).await, (true, false));
    let (sender, running) = http2(&rig).await;
    rig.drain();
    ended(&mut used).await;
    ended(&mut unused).await;
    // It has said hello and nothing else, which might have become a request.
    drop(sender);
    let _ = running.await.unwrap();
    tokio::time::timeout(PATIENCE, rig.stop()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_of_http2_end_as_ever_and_then_their_connection_does() {
    let rig = rig(chat::answer(true), patient).await;
    let slow = Script::event_stream().event(&chat::text("Hel")).delay(Duration::from_millis(500));
    rig.upstream.queue(slow.event(&chat::text("lo")).event(&chat::stop()).done());
    let (mut sender, running) = http2(&rig).await;
    let body = json!({"model": "m", "input": "Hello", "stream": true}).to_string();
    let request = Request::post(rig.url("/v1/responses")).header("content-type", "application/json");
    let answer = sender.send_request(request.body(Full::from(body)).unwrap()).await.unwrap();
    let stopped = spawn(rig.stop());
    let read = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&read).contains("response.completed"));
    // The sender lives, so that nothing but the server ends it.
    tokio::time::timeout(PATIENCE, running).await.unwrap().unwrap().unwrap();
    drop(sender);
    stopped.await.unwrap();
}
