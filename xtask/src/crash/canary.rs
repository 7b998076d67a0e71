//! `store: false` leaves no byte behind: requests full of canaries, also ones that fail, break off or are killed, at the
//! loudest log level; then a search through everything that godex may have written.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};

use super::chance::Chance;
use super::http::Http;
use super::server::{Godex, Home};
use super::socket::Socket;

const CLIENTS: usize = 8;
/// Requests between two kills.
const ROUND: usize = 100;

/// What the requests share.
struct Aviary {
    /// Every canary begins so, and nothing else does.
    mark: String,
    /// A stored response and a stored conversation, for requests that read them.
    previous: String,
    conversation: String,
    hatched: AtomicUsize,
    /// Answers in which a canary came back: the proof that they reached the model.
    sung: AtomicUsize,
}

pub(super) fn run(requests: usize, seed: u64) -> Result<()> {
    let home = Home::new("canary", "sqlite")?;
    let mut chance = Chance::new(seed);
    let [mark, control] = ["Qz", "Kx"].map(|first| format!("{first}{:014x}", chance.next()));
    let mut godex = home.start(0)?;
    let mut http = Http::connect(godex.address)?;
    // The control is short: what is longer is compressed, and no search would find it.
    let stored = http.post("/v1/responses", &json!({"model": "demo", "input": format!("echo {control}")}))?;
    let previous = id(&stored.body)?;
    let conversation = id(&http.post("/v1/conversations", &json!({}))?.body)?;
    let (hatched, sung) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let aviary = Aviary { mark, previous, conversation, hatched, sung };
    let rounds = requests.div_ceil(ROUND);
    for round in 0..rounds {
        round_of(&aviary, godex.address)?;
        godex = killed_while_streaming(&aviary, &home, godex, round + 1)?;
    }
    drop(godex);
    let found = search(&home.written(), &aviary.mark)?;
    let controlled = search(&home.written(), &control)?;
    println!(
        "{} requests with store: false and {} canaries, {} of them heard in answers, {rounds} kills: found in {} files; \
         the control, stored, in {}",
        rounds * (ROUND + CLIENTS),
        aviary.hatched.load(Ordering::Relaxed),
        aviary.sung.load(Ordering::Relaxed),
        found.len(),
        controlled.len()
    );
    ensure!(found.is_empty(), "what was not to be stored is in {found:?} (look for {})", aviary.mark);
    ensure!(controlled.iter().any(|file| file.starts_with(home.folder().join("home"))), "the search finds nothing");
    ensure!(aviary.sung.load(Ordering::Relaxed) * 2 > requests, "too few requests reached the model");
    let logged = fs::metadata(home.folder().join("log/0.log"))?.len();
    ensure!(logged > 0, "nothing was logged, so the log proves nothing");
    Ok(())
}

/// Every kind of request, from several clients at once.
fn round_of(aviary: &Aviary, address: SocketAddr) -> Result<()> {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let client = || -> Result<()> {
            let mut http = Http::connect(address)?;
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= ROUND {
                    return Ok(());
                }
                let (kind, asks) = KINDS[number % KINDS.len()];
                let request = asks(aviary, &aviary.hatch());
                if let Err(error) = aviary.ask(&mut http, request, WAYS[number / KINDS.len() % WAYS.len()]) {
                    // A stream that was made to break takes its connection with it.
                    ensure!(kind.starts_with("fail"), "{kind}: {error:#}");
                    http = Http::connect(address)?;
                }
            }
        };
        let threads: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(client)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_panic| anyhow!("a client panicked"))?)
    })
}

/// Kills it in the middle of slow streams, and starts it again.
fn killed_while_streaming(aviary: &Aviary, home: &Home, godex: Godex, start: usize) -> Result<Godex> {
    let address = godex.address;
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            scope.spawn(move || {
                let input = aviary.hatch();
                let request = json!({"input": format!("slow 50\n{input}"), "instructions": input});
                // It ends with the process.
                Http::connect(address).and_then(|mut http| aviary.ask(&mut http, request, WAYS[1 + client % 2])).ok();
            });
        }
        thread::sleep(Duration::from_millis(300));
        drop(godex);
    });
    home.start(start)
}

impl Aviary {
    fn hatch(&self) -> String {
        format!("{}n{}", self.mark, self.hatched.fetch_add(1, Ordering::Relaxed))
    }

    fn ask(&self, http: &mut Http, mut request: Value, way: Way) -> Result<()> {
        let canary = self.hatch();
        let common = json!({
            "model": "demo", "store": false, "stream": way == Way::Stream, "metadata": {"bird": canary}, "user": canary,
            "prompt_cache_key": canary, "safety_identifier": canary,
        });
        for (name, value) in common.as_object().into_iter().flatten() {
            if request.get(name).is_none() {
                request[name] = value.clone();
            }
        }
        if request.get("instructions").is_none() {
            request["instructions"] = json!(canary);
        }
        let mut heard = false;
        match way {
            Way::Whole => {
                heard = http.post("/v1/responses", &request)?.body["output"].to_string().contains(&self.mark);
            }
            Way::Stream => {
                http.stream("/v1/responses", &request, |event| {
                    heard |= event["response"]["output"].to_string().contains(&self.mark);
                    Ok(false)
                })?;
            }
            Way::Socket => {
                let mut socket = Socket::connect(http.address())?;
                let object = socket.create(&request)?;
                heard = object["output"].to_string().contains(&self.mark);
                // Remembered by the connection, and nowhere else.
                if object["status"] == json!("completed") && request.get("conversation").is_none() {
                    let input = format!("echo {}", self.hatch());
                    let next =
                        json!({"model": "demo", "store": false, "input": input, "previous_response_id": object["id"]});
                    let next = socket.create(&next)?;
                    ensure!(next["status"] == json!("completed"), "a turn is not continued: {next}");
                }
            }
        }
        self.sung.fetch_add(usize::from(heard), Ordering::Relaxed);
        Ok(())
    }
}

/// How a request is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Whole,
    Stream,
    Socket,
}

const WAYS: [Way; 3] = [Way::Whole, Way::Stream, Way::Socket];

type Asks = fn(&Aviary, &str) -> Value;

/// Requests that work, and ones that fail at each step at which one can fail.
const KINDS: &[(&str, Asks)] = &[
    ("plain", |_, bird| json!({"input": format!("echo {bird}")})),
    ("long", |_, bird| json!({"input": format!("echo {}", format!("{bird} ").repeat(200))})),
    (
        "items",
        |_, bird| json!({"input": [{"role": "developer", "content": bird}, {"role": "user", "content": format!("echo {bird}")}]}),
    ),
    ("thinking", |_, bird| json!({"input": format!("think {bird}"), "include": ["reasoning.encrypted_content"]})),
    ("tool", |_, bird| {
        let tool = json!({"type": "function", "name": bird, "description": bird, "parameters": {"type": "object"}});
        json!({"input": format!("call {bird} {{\"a\": \"{bird}\"}}"), "tools": [tool]})
    }),
    ("tool result", |_, bird| {
        let call = json!({"type": "function_call", "call_id": "call_1", "name": bird, "arguments": format!("{{\"a\": {bird}")});
        let output = json!({"type": "function_call_output", "call_id": "call_1", "output": bird});
        json!({"input": [call, output, {"role": "user", "content": format!("echo {bird}")}]})
    }),
    ("chained", |all, bird| json!({"input": format!("echo {bird}"), "previous_response_id": all.previous})),
    ("in a conversation", |all, bird| json!({"input": format!("echo {bird}"), "conversation": all.conversation})),
    ("structured", |_, bird| {
        let schema = json!({"type": "object", "properties": {bird: {"type": "string", "const": bird}}, "required": [bird], "additionalProperties": false});
        json!({"input": "hello", "text": {"format": {"type": "json_schema", "name": bird, "schema": schema, "strict": true}}})
    }),
    (
        "unknown items",
        |_, bird| json!({"input": [{"type": "novelty", "content": bird}, {"role": "user", "content": format!("echo {bird}")}]}),
    ),
    ("cut short", |_, bird| json!({"input": format!("length\n{bird}")})),
    ("fail: in the background", |_, bird| json!({"input": format!("echo {bird}"), "background": true})),
    ("fail: refused by the provider", |_, bird| json!({"input": format!("fail 400 {bird}")})),
    ("fail: provider down", |_, bird| json!({"input": format!("fail 500 {bird}")})),
    ("fail: in the stream", |_, bird| json!({"input": format!("fail stream\n{bird}")})),
    ("fail: broken off", |_, bird| json!({"input": format!("fail cut\n{bird}")})),
    (
        "fail: an unknown item reference",
        |_, bird| json!({"input": [{"type": "item_reference", "id": "msg_1"}, {"role": "user", "content": bird}]}),
    ),
    (
        "fail: a wrong type",
        |_, bird| json!({"input": [{"role": "user", "content": [{"type": "input_text", "text": {"no": bird}}]}]}),
    ),
    (
        "fail: a lone result",
        |_, bird| json!({"input": [{"type": "function_call_output", "call_id": "call_9", "output": bird}]}),
    ),
];

/// The files below these folders that contain the text.
fn search(folders: &[PathBuf], text: &str) -> Result<Vec<PathBuf>> {
    let (mut found, mut left) = (Vec::new(), folders.to_vec());
    while let Some(path) = left.pop() {
        if path.is_dir() {
            for entry in fs::read_dir(&path)? {
                left.push(entry?.path());
            }
        // A socket holds nothing.
        } else if path.is_file() && contains(&path, text)? {
            found.push(path);
        }
    }
    Ok(found)
}

fn contains(file: &Path, text: &str) -> Result<bool> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(String::from_utf8_lossy(&bytes).contains(text))
}

fn id(object: &Value) -> Result<String> {
    Ok(object["id"].as_str().with_context(|| format!("no id in {object}"))?.to_owned())
}
