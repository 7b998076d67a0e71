//! A provider at several addresses, or with several keys: the turns of a conversation go to one of them, over whatever they
//! come, and move only when they must.

mod cache;
mod failing;
mod instances;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use testkit::{Received, Script, Upstream, forgetful};

use crate::rig::{Rig, object, parse, stream};
use crate::websocket::Client as Socket;

/// What one of them does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Mood {
    Well,
    /// It takes requests and never answers.
    Hangs,
    /// It lists its models, and fails at everything else.
    Fails,
    /// It says that it wants no new requests.
    Drains,
}

/// A scripted server that can be in trouble.
struct Replica {
    upstream: Upstream,
    mood: Arc<AtomicU8>,
}

impl Replica {
    async fn start() -> Self {
        Self::answering(forgetful).await
    }

    async fn answering(answer: impl Fn(&Received) -> Script + Send + Sync + 'static) -> Self {
        let mood = Arc::new(AtomicU8::new(Mood::Well as u8));
        let now = Arc::clone(&mood);
        let upstream = Upstream::start_with(move |received| {
            let (mood, get) = (now.load(Ordering::SeqCst), received.method == "GET");
            let busy = || Script::json(503, &json!({"error": {"message": "not now"}}));
            match mood {
                mood if mood == Mood::Hangs as u8 => Script::silent(),
                mood if mood == Mood::Drains as u8 && get => busy(),
                mood if mood == Mood::Fails as u8 && !get => busy(),
                _ if get => Script::json(200, &json!({"object": "list", "data": [{"id": "m", "object": "model"}]})),
                _ => answer(received),
            }
        });
        Self { upstream: upstream.await.unwrap(), mood }
    }

    fn is(&self, mood: Mood) {
        self.mood.store(mood as u8, Ordering::SeqCst);
    }

    /// How many chat requests came that hold these words.
    fn heard(&self, words: &str) -> usize {
        let asked = self.upstream.requests();
        asked.iter().filter(|one| one.method == "POST" && String::from_utf8_lossy(&one.body).contains(words)).count()
    }

    fn url(&self) -> String {
        format!("{}/v1", self.upstream.url())
    }
}

async fn replicas(count: usize) -> Vec<Replica> {
    let mut replicas = Vec::new();
    for _ in 0..count {
        replicas.push(Replica::start().await);
    }
    replicas
}

/// A configuration with a provider at these addresses.
fn text(urls: &[String], session: &str) -> String {
    let urls: Vec<String> = urls.iter().map(|url| format!("'{url}'")).collect();
    format!(
        "session: {{{session}}}\nresilience: {{backoff_ms: 2, breaker_failures: 3}}\nproviders:\n  up:\n    spec: \
         openai-compatible\n    endpoint: {{base_urls: [{}]}}\n    credentials: {{api_key: k}}\n    models: [m]\n",
        urls.join(", ")
    )
}

async fn serving(urls: &[String], session: &str) -> Rig {
    let unused = Upstream::start(Script::hang_up()).await.unwrap();
    Rig::serving(unused, parse(&text(urls, session))).await.unwrap()
}

fn urls(replicas: &[Replica]) -> Vec<String> {
    replicas.iter().map(Replica::url).collect()
}

/// Where these words were heard, and how often.
fn heard(replicas: &[Replica], words: &str) -> BTreeMap<usize, usize> {
    let heard = replicas.iter().map(|replica| replica.heard(words)).enumerate();
    heard.filter(|(_, count)| *count > 0).collect()
}

/// How the turns of a conversation come.
#[derive(Debug, Clone, Copy)]
enum Way {
    Sync,
    Sse,
    Background,
    Conversation,
    CacheKey,
    OwnHistory,
}

const WAYS: [Way; 6] = [Way::Sync, Way::Sse, Way::Background, Way::Conversation, Way::CacheKey, Way::OwnHistory];

/// A client in the middle of a conversation.
struct Talk {
    way: Way,
    words: String,
    turns: usize,
    last: Value,
    history: Vec<Value>,
}

impl Talk {
    fn new(way: Way, number: usize) -> Self {
        Self { way, words: format!("talk {number} {way:?}."), turns: 0, last: Value::Null, history: Vec::new() }
    }

    /// One more turn; it must go well.
    async fn turn(&mut self, rig: &Rig) {
        self.turns += 1;
        let said = if self.turns == 1 { self.words.clone() } else { format!("And then? {}", self.turns) };
        let mut body = json!({"model": "m", "input": said, "instructions": "Be kind."});
        match self.way {
            Way::Sync | Way::Sse => body["previous_response_id"] = self.last["id"].clone(),
            Way::Background => {
                body["previous_response_id"] = self.last["id"].clone();
                body["background"] = json!(true);
            }
            Way::Conversation => {
                if self.turns == 1 {
                    self.last = rig.send(Method::POST, "/v1/conversations", &json!({})).await.json();
                }
                body["conversation"] = self.last["id"].clone();
            }
            Way::CacheKey => {
                // What is said differs from the first word on.
                body = json!({"model": "m", "input": format!("{} {said} {}", self.turns, self.words), "store": false,
                    "prompt_cache_key": self.words});
            }
            Way::OwnHistory => {
                self.history.push(json!({"role": "user", "content": said}));
                (body["input"], body["store"]) = (json!(self.history), json!(false));
            }
        }
        let streamed = matches!(self.way, Way::Sse);
        body["stream"] = json!(streamed);
        let answer = rig.post(&body).await;
        let mut response = match self.way {
            Way::Sse => stream(&answer).response,
            Way::Background => answer.json(),
            _ => object(&answer),
        };
        while matches!(response["status"].as_str(), Some("queued" | "in_progress")) {
            tokio::time::sleep(Duration::from_millis(20)).await;
            response = rig.get(&format!("/v1/responses/{}", response["id"].as_str().unwrap())).await.json();
        }
        assert_eq!(response["status"], "completed", "{}: {response}", self.words);
        self.history.push(json!({"role": "assistant", "content": response["output"][0]["content"][0]["text"]}));
        if !matches!(self.way, Way::Conversation) {
            self.last = response;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turns_of_a_conversation_stay_together_over_whatever_they_come() {
    let replicas = replicas(4).await;
    let rig = serving(&urls(&replicas), "backend: memory").await;
    let mut used = BTreeSet::new();
    for way in WAYS {
        for number in 0..6 {
            let mut talk = Talk::new(way, number);
            for _ in 0..4 {
                talk.turn(&rig).await;
            }
            let places = heard(&replicas, &talk.words);
            assert_eq!(places.values().copied().collect::<Vec<_>>(), [4], "{}: {places:?}", talk.words);
            used.extend(places.into_keys());
        }
    }
    assert_eq!(used.len(), 4, "all have something to do");
}

/// What is not stored is known to the connection alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn and_over_a_websocket() {
    let replicas = replicas(4).await;
    let rig = serving(&urls(&replicas), "backend: memory").await;
    let mut used = BTreeSet::new();
    for number in 0..12 {
        let mut socket = Socket::connect(&rig).await;
        let (words, mut previous) = (format!("socket talk {number}."), Value::Null);
        for turn in 0..4 {
            let said = if turn == 0 { words.clone() } else { format!("And then? {turn}") };
            let message = json!({"type": "response.create", "model": "m", "input": said, "store": number % 2 == 0,
                "previous_response_id": previous});
            let stream = socket.respond(&message).await;
            assert_eq!(stream.response["status"], "completed", "{}", stream.response);
            previous = stream.response["id"].clone();
        }
        let places = heard(&replicas, &words);
        assert_eq!(places.values().copied().collect::<Vec<_>>(), [4], "{words}: {places:?}");
        used.extend(places.into_keys());
    }
    assert!(used.len() > 1);
}

/// Accounts have caches of their own: a conversation has one key of several.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_has_one_key() {
    let replica = Replica::start().await;
    let unused = Upstream::start(Script::hang_up()).await.unwrap();
    let text = text(&[replica.url()], "backend: memory").replace("api_key: k", "api_keys: [k-1, k-2, k-3]");
    let rig = Rig::serving(unused, parse(&text)).await.unwrap();
    let mut used = BTreeSet::new();
    for number in 0..12 {
        let mut talk = Talk::new(Way::Sync, number);
        for _ in 0..3 {
            talk.turn(&rig).await;
        }
        let asked = replica.upstream.requests();
        let theirs = asked.iter().filter(|one| String::from_utf8_lossy(&one.body).contains(&talk.words));
        let keys: BTreeSet<String> = theirs.map(|one| one.header("authorization").unwrap().to_owned()).collect();
        assert_eq!(keys.len(), 1, "{keys:?}");
        used.extend(keys);
    }
    assert_eq!(used.len(), 3);
}

/// An address is known by what it is, and not by its number in the list.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_list_moves_only_what_it_must() {
    let replicas = replicas(4).await;
    let all = urls(&replicas);
    let rig = serving(&all, "backend: memory").await;
    let mut talks: Vec<Talk> = (0..24).map(|number| Talk::new(Way::OwnHistory, number)).collect();
    for talk in &mut talks {
        talk.turn(&rig).await;
    }
    let home: Vec<usize> = talks.iter().map(|talk| *heard(&replicas, &talk.words).keys().next().unwrap()).collect();
    // The first is gone, and the rest is turned round.
    let fewer: Vec<String> = all[1..].iter().rev().cloned().collect();
    rig.reloader.reload(parse(&text(&fewer, "backend: memory"))).unwrap();
    for (talk, home) in talks.iter_mut().zip(&home) {
        talk.turn(&rig).await;
        let now = heard(&replicas, &talk.words);
        let moved = now.len() > 1;
        assert_eq!(moved, *home == 0, "{}: {home} {now:?}", talk.words);
    }
    assert!(home.contains(&0));
}

/// What operators see of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_are_in_health_metrics_and_traces() {
    let replicas = replicas(2).await;
    let rig = serving(&urls(&replicas), "backend: memory").await;
    let mut talk = Talk::new(Way::Sync, 0);
    talk.turn(&rig).await;
    talk.turn(&rig).await;
    assert_eq!(rig.get("/health").await.json()["replicas"], json!({"up": {"up": 2, "of": 2}}));
    let metrics = rig.get("/metrics").await;
    let metrics = String::from_utf8_lossy(&metrics.body);
    let home = *heard(&replicas, &talk.words).keys().next().unwrap();
    let labels = |at: usize| format!("{{provider=\"up\",replica=\"{}\"", replicas[at].url());
    for expected in [
        format!("godex_replica_requests_total{},kind=\"own\"}} 2", labels(home)),
        format!("godex_replica_requests_total{},kind=\"own\"}} 0", labels(1 - home)),
        format!("godex_replica_up{}}} 1", labels(1 - home)),
        format!("godex_replica_open_requests{}}} 0", labels(home)),
    ] {
        assert!(metrics.contains(&expected), "{expected}\n{metrics}");
    }
}
