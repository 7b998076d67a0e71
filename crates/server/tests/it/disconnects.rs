//! Clients that go away, and clients that do not read.

use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Fate, Script};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::chat;
use crate::rig::{Rig, Settings, spawn};
use crate::socket::Socket;

/// The provider must not work for a client that is gone. The machine may be busy: one good measurement of three.
const AT_ONCE: Duration = Duration::from_millis(100);

fn request(stream: bool) -> Value {
    json!({"model": "m", "input": "Hello", "stream": stream})
}

#[derive(Debug, Clone, Copy)]
enum Leave {
    Close,
    Reset,
    /// Only its sending half: a client that says no more is as good as gone.
    HalfClose,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_leaves_takes_the_provider_with_it() {
    let begun = || Script::event_stream().event(&chat::text("Hel"));
    let half_json = || Script::body(200, "application/json", "{\"choi").stall().send("ces\":[]}");
    for (name, script, streamed, seen) in [
        ("before the first byte", Script::silent(), true, None),
        ("before the first event", Script::event_stream().stall(), true, Some("response.in_progress")),
        ("in mid-stream", begun().stall(), true, Some("\"delta\":\"Hel\"")),
        ("waiting for a whole answer", Script::silent(), false, None),
        ("waiting for its rest", half_json(), false, None),
        ("waiting for a stream's rest", begun().stall(), false, None),
    ] {
        for leave in [Leave::Close, Leave::Reset, Leave::HalfClose] {
            let mut measured = Vec::new();
            while measured.len() < 3 && measured.last().is_none_or(|took| *took >= AT_ONCE) {
                measured.push(gone(&script, streamed, seen, leave).await);
            }
            assert!(measured.last().is_some_and(|took| *took < AT_ONCE), "{name}, {leave:?}: {measured:?}");
        }
    }
}

/// How long it takes the provider to see that the client left.
async fn gone(script: &Script, streamed: bool, seen: Option<&str>, leave: Leave) -> Duration {
    let rig = Rig::start(script.clone()).await;
    let mut socket = Socket::post(rig.address, &request(streamed)).await;
    rig.upstream.arrived(1).await;
    if let Some(needle) = seen {
        let read = socket.read_until(needle).await;
        assert!(read.contains(needle), "{read}");
    }
    assert_eq!(rig.upstream.fate(0), Some(Fate::Open));
    let stream = socket.into_inner();
    let kept = match leave {
        Leave::Close => {
            drop(stream);
            None
        }
        Leave::Reset => {
            stream.set_zero_linger().unwrap();
            drop(stream);
            None
        }
        Leave::HalfClose => {
            let stream = stream.into_std().unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            Some(stream)
        }
    };
    let closed = rig.upstream.closed_after(0);
    let took = tokio::time::timeout(Duration::from_secs(5), closed).await.unwrap_or(Duration::MAX);
    drop(kept);
    took
}

/// A provider that sends as fast as it is read, and counts.
async fn firehose(listener: TcpListener, sent: Arc<AtomicUsize>) -> bool {
    let (stream, _) = listener.accept().await.unwrap();
    let mut request = Vec::new();
    while !request.ends_with(b"}") {
        stream.readable().await.unwrap();
        stream.try_read_buf(&mut request).ok();
    }
    let event = format!("data: {}\n\n", chat::text(&"x".repeat(1000)));
    let mut head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n".to_owned();
    head.push_str(&event.repeat(50));
    let mut rest = head.as_bytes();
    let block = event.repeat(50);
    loop {
        if write(&stream, &mut rest, &sent).await.is_none() {
            return true;
        }
        if rest.is_empty() {
            rest = block.as_bytes();
        }
    }
}

/// `None` when the peer is gone.
async fn write(stream: &TcpStream, rest: &mut &[u8], sent: &AtomicUsize) -> Option<()> {
    stream.writable().await.ok()?;
    match stream.try_write(rest) {
        Ok(written) => {
            sent.fetch_add(written, Ordering::Relaxed);
            *rest = &rest[written..];
            Some(())
        }
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Some(()),
        Err(_) => None,
    }
}

/// What the client does not read is not read from the provider either: only the kernel's buffers fill.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_stops_the_provider() {
    let listener = TcpSocket::new_v4().unwrap();
    listener.set_send_buffer_size(64 << 10).unwrap();
    listener.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = listener.listen(4).unwrap();
    let settings =
        Settings { base_url: Some(format!("http://{}/v1", listener.local_addr().unwrap())), ..Settings::default() };
    let rig = Rig::with(Script::hang_up(), settings).await;
    let sent = Arc::new(AtomicUsize::new(0));
    let provider = spawn(firehose(listener, Arc::clone(&sent)));

    let client = TcpSocket::new_v4().unwrap();
    client.set_recv_buffer_size(16 << 10).unwrap();
    let client = client.connect(rig.address).await.unwrap();
    let mut socket = Socket::from(client);
    socket.send_post(&request(true)).await;
    socket.read_until("\"delta\":\"x").await;

    let mut before = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(400)).await;
        let now = sent.load(Ordering::Relaxed);
        assert!(now < 16 << 20, "{now} bytes went into a client that reads nothing");
        if now == before {
            break;
        }
        before = now;
    }
    // It was back-pressure, not the end: reading on makes it flow again.
    for _ in 0..400 {
        socket.read_until("response.output_text.delta").await;
    }
    assert!(!provider.is_finished());
    drop(socket);
    let seen = tokio::time::timeout(Duration::from_secs(5), provider).await;
    assert!(seen.is_ok_and(|closed| closed.unwrap()), "the provider sends on to nobody");
}
