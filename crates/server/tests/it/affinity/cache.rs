//! What it is good for: how much of what is sent a server has cached, with servers that cache prefixes as `vLLM`, `SGLang` and
//! llama.cpp do, beside what they would have if requests were dealt out in turn.

use std::sync::Mutex;

use bytes::Bytes;
use futures_util::future::join_all;
use testkit::Client;

use super::*;
use crate::chat;

const REPLICAS: usize = 4;
const TALKS: usize = 24;
const TURNS: usize = 8;
/// Of one server: room for a good half of all conversations.
const ROOM: usize = 384 << 10;

/// A cache of prefixes: what was seen last, up to so many bytes.
struct PrefixCache {
    room: usize,
    /// The latest at the end.
    seen: Vec<Bytes>,
}

impl PrefixCache {
    const fn new(room: usize) -> Self {
        Self { room, seen: Vec::new() }
    }

    /// How many bytes of it are cached, and caches it.
    fn take(&mut self, body: &Bytes) -> usize {
        let common = |seen: &Bytes| seen.iter().zip(body).take_while(|(one, other)| one == other).count();
        let best = self.seen.iter().map(common).enumerate().max_by_key(|(_, common)| *common);
        let cached = best.map_or(0, |(_, common)| common);
        // What it extends needs no room of its own: but for the end of a body, which is no part of a prompt.
        if let Some((at, common)) = best
            && common + 64 >= self.seen[at].len()
        {
            self.seen.remove(at);
        }
        self.seen.push(body.clone());
        while self.seen.len() > 1 && self.seen.iter().map(Bytes::len).sum::<usize>() > self.room {
            self.seen.remove(0);
        }
        cached
    }
}

/// The part of all bytes that was cached, if each goes to the cache that is said.
#[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
fn ratio(sent: &[(usize, Bytes)], mut caches: Vec<PrefixCache>, at: impl Fn(usize, usize) -> usize) -> f64 {
    let all: usize = sent.iter().map(|(_, body)| body.len()).sum();
    let cached: usize = sent.iter().enumerate().map(|(n, (replica, body))| caches[at(n, *replica)].take(body)).sum();
    cached as f64 / all as f64
}

/// A text that no other conversation has.
fn words(talk: usize, turn: usize) -> String {
    (0..240)
        .map(|word| format!("w{talk}x{turn}y{word}z{} ", (talk * 31 + turn * 17 + word * 7) % 997))
        .collect::<Vec<_>>()
        .concat()
}

/// One conversation: a third of them chains, a third with a key, a third with histories of their own.
async fn converse(client: Client, url: String, talk: usize) {
    let (mut previous, mut history) = (Value::Null, Vec::new());
    let instructions = "You help with the code of one large project. ".repeat(60);
    for turn in 0..TURNS {
        let said = words(talk, turn);
        history.push(json!({"role": "user", "content": said}));
        let mut body = match talk % 3 {
            0 => json!({"previous_response_id": previous, "input": said}),
            1 => json!({"prompt_cache_key": format!("session-{talk}"), "input": history, "store": false}),
            _ => json!({"input": history, "store": false}),
        };
        (body["model"], body["instructions"], body["stream"]) = (json!("m"), json!(instructions), json!(true));
        let answer = client.post_json(&url, &body).await.unwrap();
        let response = stream(&answer).response;
        assert_eq!(response["status"], "completed");
        previous = response["id"].clone();
        history.push(json!({"role": "assistant", "content": response["output"][0]["content"][0]["text"]}));
        // People read before they answer, each at their own pace.
        tokio::time::sleep(Duration::from_millis(20 + (talk * 37 + turn * 53) as u64 % 60)).await;
    }
}

/// Prints what it finds: `cargo nextest run -p server --no-capture -E 'test(affinity::cache)'`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prefixes_are_cached_nearly_as_well_as_by_one_large_server() {
    let sent: Arc<Mutex<Vec<(usize, Bytes)>>> = Arc::default();
    let mut replicas = Vec::new();
    for number in 0..REPLICAS {
        let sent = Arc::clone(&sent);
        let answer = move |received: &Received| {
            sent.lock().unwrap().push((number, received.body.clone()));
            chat::answer(true).delay(Duration::from_millis(5))
        };
        replicas.push(Replica::answering(answer).await);
    }
    let rig = serving(&urls(&replicas), "backend: memory").await;
    join_all((0..TALKS).map(|talk| converse(rig.client.clone(), rig.url("/v1/responses"), talk))).await;
    let sent = sent.lock().unwrap().clone();
    assert_eq!(sent.len(), TALKS * TURNS);
    let caches = || (0..REPLICAS).map(|_| PrefixCache::new(ROOM)).collect();
    let ideal = ratio(&sent, vec![PrefixCache::new(usize::MAX)], |_, _| 0);
    let affinity = ratio(&sent, caches(), |_, replica| replica);
    let in_turn = ratio(&sent, caches(), |number, _| number % REPLICAS);
    println!("{TALKS} conversations of {TURNS} turns, {REPLICAS} servers with {} KiB of cache each", ROOM >> 10);
    for (name, ratio) in [("one server, no limit", ideal), ("affinity", affinity), ("in turn", in_turn)] {
        println!("{name:<22}{:>6.1} % of the bytes cached", ratio * 100.0);
    }
    assert!(affinity >= 0.8 * ideal, "{affinity:.3} of {ideal:.3}");
    assert!(affinity >= in_turn + 0.15, "{affinity:.3}, in turn {in_turn:.3}");
}
