//! Many streams over one provider that goes down and comes back: nobody hangs, nothing is left over, and every client
//! gets a terminal event or a clean error.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use testkit::Client;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::chat;
use crate::rig::{Rig, Settings, error, spawn, stream};

/// How many clients at once, how often each asks, and how long the provider stays up and down.
struct Size {
    clients: usize,
    rounds: usize,
    phase: Duration,
}

fn size() -> Size {
    #[expect(clippy::disallowed_methods, reason = "a switch for the people who run the test")]
    let full = std::env::var("GODEX_FULL").is_ok_and(|value| value == "1");
    if full {
        Size { clients: 1000, rounds: 10, phase: Duration::from_secs(2) }
    } else {
        Size { clients: 200, rounds: 5, phase: Duration::from_millis(600) }
    }
}

/// A provider whose answers take about half of the time for which it is up. When it goes down it cuts what it has begun and hangs up on the rest.
struct Flapping {
    up: AtomicBool,
    open: AtomicUsize,
    /// The most that were open at once.
    peak: AtomicUsize,
    went_down: Notify,
    /// Between two chunks.
    pause: Duration,
}

/// Counts a connection for as long as it is open.
struct Connected(Arc<Flapping>);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn serve(listener: TcpListener, state: Arc<Flapping>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let open = state.open.fetch_add(1, Ordering::SeqCst) + 1;
        state.peak.fetch_max(open, Ordering::SeqCst);
        let connected = Connected(Arc::clone(&state));
        connections.spawn(async move {
            let _ = connection(stream, &connected.0).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

/// Answers requests until the provider goes down or the peer leaves.
async fn connection(mut stream: TcpStream, state: &Flapping) -> std::io::Result<()> {
    loop {
        let mut request = Vec::new();
        // A chat request ends with a brace, and ours have no other at the end of a read.
        while !request.ends_with(b"}") {
            if stream.read_buf(&mut request).await? == 0 {
                return Ok(());
            }
        }
        if !state.up.load(Ordering::SeqCst) {
            return Ok(());
        }
        let down = state.went_down.notified();
        let answer = async {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
                .await?;
            for chunk in chat::chunks() {
                let event = format!("data: {chunk}\n\n");
                stream.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes()).await?;
                tokio::time::sleep(state.pause).await;
            }
            stream.write_all(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n").await
        };
        tokio::select! {
            () = down => return Ok(()),
            done = answer => done?,
        }
    }
}

#[derive(Debug, Default)]
struct Outcomes {
    completed: AtomicUsize,
    failed: AtomicUsize,
    refused: AtomicUsize,
}

/// One client: asks again and again, and looks at everything it gets.
async fn client(client: Client, url: String, rounds: usize, outcomes: Arc<Outcomes>) {
    let body = json!({"model": "m", "input": "Hello", "stream": true});
    for _ in 0..rounds {
        let answer = tokio::time::timeout(Duration::from_mins(1), client.post_json(&url, &body)).await;
        let answer = answer.expect("a client hangs").expect("the connection to us broke");
        let outcome = if answer.status == 200 {
            match stream(&answer).response["status"].as_str() {
                Some("completed") => &outcomes.completed,
                Some("failed") => &outcomes.failed,
                other => panic!("{other:?}"),
            }
        } else {
            let error = error(&answer);
            assert!(matches!(error.status, 502..=504), "{error:?}");
            &outcomes.refused
        };
        outcome.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Open files of this process.
fn files() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

/// Waits until a number is back where it was.
async fn back_to(what: &str, most: usize, now: impl Fn() -> usize) {
    for _ in 0..600 {
        if now() <= most {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{what}: {} instead of {most}", now());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_over_a_provider_that_flaps() {
    let Size { clients, rounds, phase } = size();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = Some(format!("http://{}/v1", listener.local_addr().unwrap()));
    let state = Arc::new(Flapping {
        up: AtomicBool::new(true),
        open: AtomicUsize::new(0),
        peak: AtomicUsize::new(0),
        went_down: Notify::new(),
        pause: phase / 10,
    });
    let provider = spawn(serve(listener, Arc::clone(&state)));
    let settings = Settings { base_url, resilience: "retries: 2", ..Settings::default() };
    let rig = Rig::with(testkit::Script::hang_up(), settings).await;
    // Whatever is opened once and stays has been opened.
    let warm = Client::new().unwrap();
    let one = Arc::new(Outcomes::default());
    client(warm.clone(), rig.url("/v1/responses"), 2, Arc::clone(&one)).await;
    drop(warm);
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let (files_before, tasks_before) = (files(), tasks());

    let flips = Arc::clone(&state);
    let switch = spawn(async move {
        loop {
            tokio::time::sleep(phase).await;
            flips.up.store(false, Ordering::SeqCst);
            flips.went_down.notify_waiters();
            tokio::time::sleep(phase).await;
            flips.up.store(true, Ordering::SeqCst);
        }
    });
    let outcomes = Arc::new(Outcomes::default());
    let http = Client::new().unwrap();
    let mut running = JoinSet::new();
    for _ in 0..clients {
        running.spawn(client(http.clone(), rig.url("/v1/responses"), rounds, Arc::clone(&outcomes)));
    }
    while let Some(ended) = running.join_next().await {
        ended.unwrap();
    }
    switch.abort();
    drop(http);
    let count = |outcome: &AtomicUsize| outcome.load(Ordering::SeqCst);
    let (completed, failed, refused) = (count(&outcomes.completed), count(&outcomes.failed), count(&outcomes.refused));
    let peak = count(&state.peak);
    println!("{completed} completed, {failed} failed in mid-stream, {refused} refused; at most {peak} streams at once");
    assert_eq!(completed + failed + refused, clients * rounds, "every client got its answer");
    assert!(peak > clients / 4, "they were there at the same time: {peak}");
    assert!(completed > 0 && failed + refused > 0, "it was up, and it was down");

    // When it is up for good everything goes well again.
    state.up.store(true, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let after = Arc::new(Outcomes::default());
    client(Client::new().unwrap(), rig.url("/v1/responses"), 4, Arc::clone(&after)).await;
    assert!(count(&after.completed) >= 3, "{after:?}");

    // When it goes for good, nothing is left of the connections to it.
    state.up.store(false, Ordering::SeqCst);
    provider.abort();
    let _ = provider.await;
    back_to("connections to the provider", 0, || state.open.load(Ordering::SeqCst)).await;
    back_to("open files", files_before, files).await;
    back_to("tasks", tasks_before, tasks).await;
    rig.stop().await;
}
