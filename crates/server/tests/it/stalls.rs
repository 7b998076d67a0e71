//! Clients that stop reading are waited for, but not for ever.

use std::time::Duration;

use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use server::config::Config;
use testkit::{Fate, Script};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;

use crate::chat;
use crate::rig::{Rig, Settings, spawn};
use crate::socket::Socket;

const PATIENCE: Duration = Duration::from_secs(20);

/// More than all buffers between here and there hold, then nothing: only the client's own end ends it.
fn flood() -> Script {
    let block = format!("data: {}\n\n", chat::text(&"x".repeat(8000))).repeat(64);
    (0..32).fold(Script::event_stream(), |script, _| script.send(block.clone())).stall()
}

async fn rig(script: Script, tweak: fn(&mut Config)) -> Rig {
    Rig::with(script, Settings { tweak: Some(tweak), ..Settings::default() }).await
}

fn impatient(config: &mut Config) {
    config.limits.write_stall = Duration::from_millis(300);
}

fn request(conversation: &Value) -> Value {
    json!({"model": "m", "input": "Hello", "stream": true, "conversation": conversation})
}

async fn conversation(rig: &Rig) -> Value {
    rig.send(http::Method::POST, "/v1/conversations", &json!({})).await.json()["id"].clone()
}

async fn is_let_go(rig: &Rig, conversation: &Value) {
    let closed = tokio::time::timeout(PATIENCE, rig.upstream.closed_after(0)).await;
    assert!(closed.is_ok(), "the provider still works for a client that reads nothing");
    rig.upstream.queue(chat::answer(false));
    // The conversation is given back a moment after the provider is left.
    let freed = async {
        loop {
            let next = rig.post(&json!({"model": "m", "input": "Again", "conversation": conversation})).await;
            match next.status {
                200 => break,
                status => assert_eq!(status, 400, "{}", String::from_utf8_lossy(&next.body)),
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, freed).await.is_ok(), "the conversation is still taken");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_stops_reading_is_let_go() {
    let rig = rig(flood(), impatient).await;
    let conversation = conversation(&rig).await;
    let client = TcpSocket::new_v4().unwrap();
    client.set_recv_buffer_size(16 << 10).unwrap();
    let mut socket = Socket::from(client.connect(rig.address).await.unwrap());
    socket.send_post(&request(&conversation)).await;
    socket.read_until("\"delta\":\"x").await;
    is_let_go(&rig, &conversation).await;
}

/// With HTTP/2 the connection is read, and only this stream is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_http2_that_is_not_read_is_let_go() {
    let rig = rig(flood(), impatient).await;
    let conversation = conversation(&rig).await;
    let (mut sender, _running) = http2(&rig).await;
    let body = request(&conversation).to_string();
    let request = Request::post(rig.url("/v1/responses")).header("content-type", "application/json");
    let mut answer = sender.send_request(request.body(Full::from(body)).unwrap()).await.unwrap();
    assert!(answer.body_mut().frame().await.is_some_and(|frame| frame.is_ok()));
    is_let_go(&rig, &conversation).await;
    // The connection itself goes on.
    let health = Request::get(rig.url("/health")).body(Full::from(String::new())).unwrap();
    assert_eq!(sender.send_request(health).await.unwrap().status(), 200);
    drop(answer);
}

/// Slow is not gone: each read is a sign of life.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_gets_everything() {
    let whole = chat::answer(true);
    let rig = rig(whole, |config| config.limits.write_stall = Duration::from_secs(5)).await;
    let mut streaming = rig.client.post_stream(&rig.url("/v1/responses"), &request(&Value::Null)).await.unwrap();
    let read = streaming.read_until("response.completed").await.unwrap();
    assert!(String::from_utf8_lossy(&read).contains("response.completed"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_without_requests_are_closed() {
    let rig = rig(chat::answer(false), |config| config.server.idle_timeout = Some(Duration::from_millis(300))).await;
    let (mut sender, ended) = http2(&rig).await;
    let health = Request::get(rig.url("/health")).body(Full::from(String::new())).unwrap();
    assert_eq!(sender.send_request(health).await.unwrap().status(), 200);
    // The sender lives, so that nothing but the server ends it. The first look is when the head's time is over.
    let ended = tokio::time::timeout(PATIENCE, ended).await;
    assert!(ended.is_ok(), "an idle connection is kept");
    drop(sender);
}

/// A long answer is no idling.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_with_a_request_is_kept() {
    let slow = Script::event_stream()
        .event(&chat::text("a"))
        .delay(Duration::from_millis(1500))
        .event(&chat::text("b"))
        .event(&chat::stop())
        .done();
    let tweak: fn(&mut Config) = |config| {
        config.server.idle_timeout = Some(Duration::from_millis(200));
        config.server.header_timeout = Duration::from_millis(200);
    };
    let rig = rig(slow, tweak).await;
    let (mut sender, _running) = http2(&rig).await;
    let request = Request::post(rig.url("/v1/responses")).header("content-type", "application/json");
    let body = Full::from(self::request(&Value::Null).to_string());
    let answer = sender.send_request(request.body(body).unwrap()).await.unwrap();
    let read = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&read).contains("response.completed"));
    assert_eq!(rig.upstream.fate(0), Some(Fate::Open));
}

pub(crate) type Sender = hyper::client::conn::http2::SendRequest<Full<bytes::Bytes>>;

#[expect(clippy::disallowed_methods, reason = "the test's runtime ends with the test")]
pub(crate) async fn http2(rig: &Rig) -> (Sender, JoinHandle<hyper::Result<()>>) {
    let stream = TcpStream::connect(rig.address).await.unwrap();
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    (sender, spawn(connection))
}
