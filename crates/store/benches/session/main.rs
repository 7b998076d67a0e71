//! Sessions on SQLite, beside the way of the system that godex began from: one row per response with everything in it,
//! one point read per ancestor, a rollback journal. Prints KEY=VALUE lines; `cargo xtask bench` shows them.
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "a bench: it measures real time and spawns its own tasks")]
#![expect(clippy::print_stdout, reason = "what it prints is its interface to xtask")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot measure ends")]

mod seed;
mod words;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use bytes::Bytes;
use seed::Seed;
use store::{ChainLimits, Encryption, Item, NewTurn, Parent, SqliteOptions, Status, Store, StoreKey, Tenant, Tenanted};
use words::Words;

const TURNS_RESENT: usize = 400;
const DEEPEST: usize = 2_000;
const WRITING: Duration = Duration::from_secs(3);

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    // `cargo test --benches` runs this, too, and wants nothing of it.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    resent().await;
    histories().await;
    durable().await;
    encrypted().await;
}

/// A turn of about 5 kB.
fn pair(words: &mut Words, n: usize) -> (Item, Item) {
    let user = format!(r#"{{"type":"message","role":"user","content":"{}"}}"#, words.prose(1_500));
    let id = format!("msg_{n:048x}");
    let answer = format!(
        r#"{{"id":"{id}","type":"message","status":"completed","role":"assistant","content":[{{"type":"output_text","annotations":[],"logprobs":[],"text":"{}"}}]}}"#,
        words.prose(3_500)
    );
    (Item { id: format!("msg_u{n:047x}"), body: user.into() }, Item { id, body: answer.into() })
}

fn turn(n: usize, parent: Parent, input: Vec<Item>, output: Vec<Item>) -> NewTurn {
    NewTurn {
        id: response(n),
        parent,
        status: Status::Completed,
        created_at: 1,
        expires_at: None,
        head: Bytes::from_static(br#"{"object":"response","status":"completed","output":[],"usage":null}"#),
        settings: None,
        input,
        output,
        events: None,
        key: None,
    }
}

fn response(n: usize) -> String {
    format!("resp_{n:048x}")
}

fn open(folder: &Path) -> (Store, Tenanted) {
    let store = Store::sqlite(&folder.join("sessions.db"), &SqliteOptions::default()).unwrap();
    let tenant = store.for_tenant(Tenant::default());
    (store, tenant)
}

/// A session of which the client sends everything again with each turn: bytes on the disk per byte of it.
async fn resent() {
    for (name, respelled) in [("resent", false), ("respelled", true)] {
        let folder = tempfile::tempdir().unwrap();
        let (store, tenant) = open(folder.path());
        let mut words = Words::new();
        let (mut input, mut payload) = (Vec::new(), 0);
        for n in 0..TURNS_RESENT {
            let (user, answer) = pair(&mut words, n);
            payload += user.body.len() + answer.body.len();
            input.push(user);
            tenant.put(turn(n, Parent::None, input.clone(), vec![answer.clone()])).await.unwrap();
            input.push(if respelled { respell(&answer) } else { answer });
        }
        store.close().await;
        println!("{name}={:.2}", ratio(bytes_in(folder.path()), payload));
    }
    let folder = tempfile::tempdir().unwrap();
    let mut seed = Seed::open(folder.path());
    let mut words = Words::new();
    let (mut input, mut payload) = (Vec::new(), 0);
    for n in 0..TURNS_RESENT {
        let (user, answer) = pair(&mut words, n);
        payload += user.body.len() + answer.body.len();
        input.push(user);
        seed.put(&response(n), None, &input, std::slice::from_ref(&answer));
        input.push(answer);
    }
    drop(seed);
    println!("seed_resent={:.2}", ratio(bytes_in(folder.path()), payload));
}

/// As most clients send our items back: members that say nothing left out, in another order.
fn respell(item: &Item) -> Item {
    let text = str::from_utf8(&item.body).unwrap();
    let said = text.split(r#""text":""#).nth(1).unwrap().trim_end_matches(r#""}]}"#);
    let body = format!(
        r#"{{"type": "message", "role": "assistant", "id": "{}", "content": [{{"type": "output_text", "text": "{said}"}}]}}"#,
        item.id
    );
    Item { id: item.id.clone(), body: body.into() }
}

/// The history of a turn, with the disk's cache empty and full.
async fn histories() {
    let (ours, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (store, tenant) = open(ours.path());
    let mut seed = Seed::open(theirs.path());
    let mut words = Words::new();
    for n in 0..DEEPEST {
        let (user, answer) = pair(&mut words, n);
        let previous = n.checked_sub(1).map(response);
        seed.put_quickly(&response(n), previous.as_deref(), std::slice::from_ref(&user), std::slice::from_ref(&answer));
        let parent = previous.map_or(Parent::None, Parent::Response);
        tenant.put(turn(n, parent, vec![user], vec![answer])).await.unwrap();
    }
    store.close().await;
    seed.close();
    let limits = ChainLimits { max_depth: 10_000, settings: false };
    for depth in [200, DEEPEST] {
        let last = response(depth - 1);
        let (store, tenant) = open(ours.path());
        forget(ours.path());
        let mut took = Vec::new();
        for _ in 0..21 {
            let began = Instant::now();
            assert_eq!(tenant.history(&last, limits).await.unwrap().items.len(), 2 * depth);
            took.push(began.elapsed());
        }
        print_reads(&format!("history_{depth}"), took);
        store.close().await;
        let seed = Seed::open(theirs.path());
        forget(theirs.path());
        let mut took = Vec::new();
        for _ in 0..21 {
            let began = Instant::now();
            assert_eq!(seed.history(&last), 2 * depth);
            took.push(began.elapsed());
        }
        print_reads(&format!("seed_history_{depth}"), took);
    }
}

fn print_reads(name: &str, mut took: Vec<Duration>) {
    println!("{name}_cold_us={}", took[0].as_micros());
    took.sort_unstable();
    println!("{name}_warm_us={}", took[took.len() / 2].as_micros());
}

/// Responses per second that a power cut cannot take back, and how long one waits to be.
async fn durable() {
    for writers in [1, 64] {
        let folder = tempfile::tempdir().unwrap();
        let (store, tenant) = open(folder.path());
        let until = Instant::now() + WRITING;
        let tasks = (0..writers).map(|writer| {
            let tenant = tenant.clone();
            tokio::spawn(async move {
                let (mut words, mut took) = (Words::new(), Vec::new());
                let (user, answer) = pair(&mut words, 0);
                let mut last: Option<usize> = None;
                while Instant::now() < until {
                    let n = writer * 1_000_000 + took.len();
                    let named = |item: &Item, kind: &str| Item {
                        id: format!("{kind}{n}"),
                        body: String::from_utf8_lossy(&item.body).replacen("the", &n.to_string(), 1).into(),
                    };
                    let parent = last.map_or(Parent::None, |last| Parent::Response(response(last)));
                    let new = turn(n, parent, vec![named(&user, "u")], vec![named(&answer, "a")]);
                    let began = Instant::now();
                    tenant.put(new).await.unwrap();
                    took.push(began.elapsed());
                    last = Some(n);
                }
                took
            })
        });
        let mut took = Vec::new();
        for task in tasks.collect::<Vec<_>>() {
            took.extend(task.await.unwrap());
        }
        took.sort_unstable();
        println!("durable_{writers}={:.0}", ratio(took.len() as u64, 1) / WRITING.as_secs_f64());
        println!("commit_{writers}_p50_us={}", took[took.len() / 2].as_micros());
        store.close().await;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut seed = Seed::open(folder.path());
    let (user, answer) = pair(&mut Words::new(), 0);
    let (began, mut count) = (Instant::now(), 0);
    while began.elapsed() < WRITING {
        seed.put(&response(count), None, std::slice::from_ref(&user), std::slice::from_ref(&answer));
        count += 1;
    }
    println!("seed_durable={:.0}", ratio(count as u64, 1) / WRITING.as_secs_f64());
}

/// What encryption costs: the same turns and the same history in clear and encrypted, by turns, so that whatever else the
/// machine does meets both.
async fn encrypted() {
    const TURNS: usize = 200;
    const ROUNDS: usize = 15;
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let keys = Encryption { key: Some(StoreKey::new(&[7; 32]).unwrap()), previous: Vec::new() };
    let open = |index: usize, keys: Encryption| {
        let path = folders[index].path().join("sessions.db");
        Store::encrypted_sqlite(&path, &SqliteOptions::default(), keys).unwrap()
    };
    let stores = [open(0, Encryption::default()), open(1, keys)];
    let limits = ChainLimits { max_depth: 10_000, settings: false };
    let (mut writes, mut reads) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for round in 0..ROUNDS {
        for (index, store) in stores.iter().enumerate() {
            let tenant = store.for_tenant(Tenant::new(&format!("t{round}")));
            let mut words = Words::new();
            let turns: Vec<_> = (0..TURNS).map(|n| (n, pair(&mut words, n))).collect();
            let began = Instant::now();
            for (n, (user, answer)) in turns {
                let parent = n.checked_sub(1).map_or(Parent::None, |last| Parent::Response(response(last)));
                tenant.put(turn(n, parent, vec![user], vec![answer])).await.unwrap();
            }
            writes[index].push(began.elapsed() / u32::try_from(TURNS).unwrap());
            let began = Instant::now();
            for _ in 0..5 {
                let history = tenant.history(&response(TURNS - 1), limits).await.unwrap();
                assert_eq!(history.items.len(), 2 * TURNS);
            }
            reads[index].push(began.elapsed() / 5);
        }
    }
    for (name, [clear, sealed]) in [("put", &mut writes), ("history_200", &mut reads)] {
        clear.sort_unstable();
        sealed.sort_unstable();
        let (clear, sealed) = (clear[ROUNDS / 2], sealed[ROUNDS / 2]);
        println!("encrypted_{name}={:.2}", sealed.as_secs_f64() / clear.as_secs_f64());
    }
    for store in stores {
        store.close().await;
    }
}

fn bytes_in(folder: &Path) -> u64 {
    std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

/// Takes the files out of the system's cache. Where that cannot be done, cold is a little warm.
fn forget(folder: &Path) {
    for file in std::fs::read_dir(folder).unwrap() {
        let input = format!("if={}", file.unwrap().path().display());
        let _ = Command::new("dd").args([&input, "iflag=nocache", "count=0", "status=none"]).status();
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures")]
fn ratio(a: u64, b: usize) -> f64 {
    a as f64 / b as f64
}
