//! Figures, not a test: `cargo test -p store --release -- --ignored --nocapture figures`.

use std::fmt::Write;
use std::time::Duration;

use bytes::Bytes;
use store::{Item, MemoryLimits, NewTurn, Store};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::chance::Chance;
use crate::make::{DEEP, after, tenant, turn};
use crate::sqlite::open;

/// Text that compresses about as prose does: common words in random order.
fn prose(chance: &mut Chance, bytes: usize) -> String {
    const WORDS: &[&str] = &[
        "the", "store", "keeps", "each", "turn", "of", "a", "session", "and", "gives", "it", "back", "whole", "or",
        "not", "at", "all", "so", "that", "nobody", "builds", "upon", "what", "was", "never", "there", "function",
        "returns", "value", "error", "when", "file", "cannot", "be", "read", "line", "number", "because",
    ];
    let mut text = String::new();
    while text.len() < bytes {
        text.push_str(WORDS[chance.below(WORDS.len())]);
        // Names, numbers and hashes, of which real sessions are full.
        let extra = chance.below(1_000_000);
        let _ = if extra.is_multiple_of(4) { write!(text, " {extra:x} ") } else { write!(text, " ") };
    }
    text
}

/// Noise as base64 would be, which does not compress much.
fn noise(chance: &mut Chance, bytes: usize) -> String {
    (0..bytes).map(|_| char::from(b'0' + u8::try_from(chance.below(64)).unwrap())).collect()
}

fn message(id: String, text: &str) -> Item {
    Item { body: Bytes::from(format!(r#"{{"type":"message","role":"user","content":"{text}"}}"#)), id }
}

type Text = fn(&mut Chance, usize) -> String;

/// A session of turns of 5 kB that is resent whole each time; what it weighs on the disk per byte of its items.
async fn resent(turns: usize, echo_differs: bool, text: Text) -> (f64, f64) {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("s.db")).unwrap();
    let (t, mut chance) = (tenant(&store, "default"), Chance::new(1));
    let (mut input, mut payload) = (Vec::new(), 0);
    for n in 0..turns {
        input.push(message(format!("msg_{n:048x}"), &text(&mut chance, 1_500)));
        let answer = message(format!("msg_{:048x}", n + 1_000_000), &text(&mut chance, 3_500));
        payload += input[input.len() - 1].body.len() + answer.body.len();
        let id = format!("resp_{n:048x}");
        t.put(NewTurn { input: input.clone(), output: vec![answer.clone()], ..turn(&id, "", "") }).await.unwrap();
        // Clients send our items back in their own spelling.
        let spelt = if echo_differs { Bytes::from([&answer.body[..], b" "].concat()) } else { answer.body };
        input.push(Item { id: answer.id, body: spelt });
    }
    let began = Instant::now();
    let whole = t.history(&format!("resp_{:048x}", turns - 1), DEEP).await.unwrap();
    println!("  read of the last history: {:?}", began.elapsed());
    assert_eq!(whole.items.len(), 2 * turns);
    store.close().await;
    let size =
        std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum::<u64>();
    #[expect(clippy::cast_precision_loss, reason = "figures")]
    (payload as f64 / 1e6, size as f64 / 1e6)
}

async fn rate(store: &Store, writers: usize, seconds: u64) -> (usize, Duration, Duration) {
    let mut tasks = JoinSet::new();
    let until = Instant::now() + Duration::from_secs(seconds);
    for writer in 0..writers {
        let t = tenant(store, "default");
        tasks.spawn(async move {
            let (mut chance, mut took) = (Chance::new(writer as u64 + 1), Vec::new());
            let (question, answer) = (prose(&mut chance, 1_500), prose(&mut chance, 3_500));
            let mut last: Option<String> = None;
            while Instant::now() < until {
                let id = format!("resp_{writer:08x}{writers:08x}{:032x}", took.len());
                let input = vec![message(format!("u{id}"), &format!("{id}{question}"))];
                let output = vec![message(format!("a{id}"), &format!("{id}{answer}"))];
                let new = NewTurn { input, output, ..turn(&id, "", "") };
                let new = last
                    .as_ref()
                    .filter(|_| !took.len().is_multiple_of(20))
                    .map_or(new.clone(), |last| after(last, new));
                let began = Instant::now();
                t.put(new).await.unwrap();
                took.push(began.elapsed());
                last = Some(id);
            }
            took
        });
    }
    let mut took: Vec<Duration> = tasks.join_all().await.into_iter().flatten().collect();
    took.sort_unstable();
    let done = took.len() / usize::try_from(seconds).unwrap();
    (done, took[took.len() / 2], took[took.len() * 99 / 100])
}

async fn histories(store: &Store, depth: usize) {
    let (t, mut chance) = (tenant(store, "histories"), Chance::new(3));
    let mut last: Option<String> = None;
    for n in 0..depth {
        let id = format!("resp_{n:048x}");
        let input = vec![message(format!("u{n}"), &prose(&mut chance, 1_500))];
        let output = vec![message(format!("a{n}"), &prose(&mut chance, 3_500))];
        let new = NewTurn { input, output, ..turn(&id, "", "") };
        t.put(last.as_ref().map_or(new.clone(), |last| after(last, new))).await.unwrap();
        last = Some(id);
    }
    for at in [200, 2_000] {
        let id = format!("resp_{:048x}", at - 1);
        let mut took = Vec::new();
        for _ in 0..50 {
            let began = Instant::now();
            assert_eq!(t.history(&id, DEEP).await.unwrap().items.len(), 2 * at);
            took.push(began.elapsed());
        }
        let first = took[0];
        took.sort_unstable();
        println!("  history of turn {at}: first {first:?}, best {:?}, p50 {:?}", took[0], took[25]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "figures, not a test"]
async fn figures() {
    for (name, echo_differs, text) in [
        ("prose, echoed as it was", false, prose as Text),
        ("prose, echoed in another spelling", true, prose as Text),
        ("noise, echoed as it was", false, noise as Text),
    ] {
        let (payload, size) = resent(400, echo_differs, text).await;
        println!(
            "400 turns resent whole, {name}: {payload:.2} MB of items, {size:.2} MB on disk, {:.2}",
            size / payload
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let mut stores = vec![("memory", Store::memory(MemoryLimits { bytes: 4 << 30, responses: 10_000_000 }).unwrap())];
    stores.push(("sqlite", open(&folder.path().join("s.db")).unwrap()));
    #[cfg(unix)]
    let server = crate::server::Postgres::start();
    #[cfg(unix)]
    if let Some(server) = &server {
        stores.push(("postgres (fsync off)", server.store().await));
    }
    for (name, store) in &stores {
        for writers in [1, 16, 64] {
            let (done, half, most) = rate(store, writers, 3).await;
            println!("{name}: {writers} writers: {done} turns/s, p50 {half:?}, p99 {most:?}");
        }
        println!("{name}:");
        histories(store, 2_000).await;
    }
}
