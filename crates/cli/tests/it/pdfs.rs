//! PDFs for a model that takes none, read by the binary as it is shipped: over HTTP, and the process that reads them with
//! everything that a hostile file can do to it.

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::pdf::{bomb, document, hostile};
use testkit::{Upstream, forgetful};

use crate::cli::home;
use crate::sessions::Godex;

const MEMORY: u64 = 256 << 20;

fn configured(upstream: &Upstream, files: &str) -> TempDir {
    let endpoint = format!("{{base_url: '{}/v1'}}", upstream.url());
    home(&format!(
        "files: {{{files}}}\nsession: {{sqlite: {{path: sessions.db}}}}\nmodels: {{discover: off}}\n\
         providers: {{up: {{spec: openai-compatible, endpoint: {endpoint}, models: [m]}}}}\n"
    ))
}

fn file(name: &str, bytes: &[u8]) -> Value {
    let data = format!("data:application/pdf;base64,{}", STANDARD.encode(bytes));
    json!({"type": "input_file", "filename": name, "file_data": data})
}

fn user(part: &Value) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Look:"}, part]})
}

/// One turn: the finished response, and what was not done as asked.
async fn turn(godex: &Godex, input: &Value, previous: Option<&Value>, streamed: bool) -> (Value, String) {
    let body = json!({"model": "m", "input": input, "stream": streamed, "previous_response_id": previous});
    let answer = godex.client.post_json(&format!("{}/v1/responses", godex.url), &body).await.unwrap();
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    let notes = answer.header("x-godex-compat").unwrap_or_default().to_owned();
    let response = if streamed {
        testkit::grammar::check(&answer.body).unwrap().events.pop().unwrap().1["response"].clone()
    } else {
        answer.json()
    };
    assert_eq!(response["status"], "completed", "{response}");
    (response, notes)
}

/// What the provider was sent, turn by turn.
fn sent(upstream: &Upstream) -> Vec<Value> {
    upstream.requests().iter().map(|request| request.json()["messages"].clone()).collect()
}

/// Whoever only wants to know what would be sent sees what would be.
#[tokio::test]
async fn a_plan_has_the_text_of_a_pdf() {
    let upstream = Upstream::start_with(forgetful).await.unwrap();
    let home = configured(&upstream, "");
    let request = json!({"model": "m", "input": [user(&file("a.pdf", &document(&["Hello planner"])))]});
    std::fs::write(home.path().join("request.json"), request.to_string()).unwrap();
    let (code, out, err) = crate::cli::godex(home.path(), &["explain", "--dry-run", "request.json", "--json"]);
    assert!(code == Some(0) && out.contains("Hello planner"), "{out}{err}");
    assert!(upstream.requests().is_empty());
}

/// Read once, the same in every later turn: streamed or not, and after another process has taken over.
#[tokio::test]
async fn a_pdf_is_text_in_every_turn_of_its_conversation() {
    let upstream = Upstream::start_with(forgetful).await.unwrap();
    let home = configured(&upstream, "");
    let pdf = document(&["my name is Alice.", "Second page"]);
    let godex = Godex::logging_to(home.path(), Stdio::null());
    let (first, notes) = turn(&godex, &json!([user(&file("a.pdf", &pdf))]), None, false).await;
    assert_eq!(first["output"][0]["content"][0]["text"], "Alice (1)");
    assert!(notes.starts_with("input[0].content[1]=degraded"), "{notes}");
    let (second, _) = turn(&godex, &json!("And?"), Some(&first["id"]), true).await;
    drop(godex);
    let godex = Godex::logging_to(home.path(), Stdio::null());
    turn(&godex, &json!("Really?"), Some(&second["id"]), false).await;
    let sent = sent(&upstream);
    let expected = "Look:\n[a.pdf: PDF of 2 pages, as text]\n[page 1]\nmy name is Alice.\n[page 2]\nSecond page";
    assert_eq!(sent[0][0]["content"], expected);
    assert_eq!((sent[1].as_array().unwrap().len(), sent[2].as_array().unwrap().len()), (3, 5));
    for later in &sent[1..] {
        assert_eq!(later[0], sent[0][0]);
    }

    // Also where it is only counted.
    let counted = |input: Value| {
        let url = format!("{}/v1/responses/input_tokens", godex.url);
        let client = &godex.client;
        async move {
            client.post_json(&url, &json!({"model": "m", "input": input})).await.unwrap().json()["input_tokens"]
                .as_u64()
        }
    };
    let long = document(&[&"word ".repeat(500)]);
    let (with, without) = (counted(json!([user(&file("b.pdf", &long))])).await, counted(json!("Look:")).await);
    assert!(with.unwrap() > without.unwrap() + 300, "{with:?} {without:?}");
}

/// Whatever comes, the model is asked, the client is told, and the server goes on.
#[tokio::test]
async fn hostile_files_cost_a_placeholder() {
    let upstream = Upstream::start_with(forgetful).await.unwrap();
    let home = configured(&upstream, "timeout: 1s, memory: 256MiB, max_pages: 5");
    let godex = Godex::logging_to(home.path(), Stdio::null());
    let expected = [
        ("empty", "it is damaged"),
        ("text", "it is damaged"),
        ("encrypted", "it needs a password"),
        ("scanned", "its pages have no text, only images"),
        ("forms that draw forms", "reading it took more time or memory than it may"),
        ("a page tree in a circle", "it is damaged"),
    ];
    let files: Vec<(&str, Vec<u8>)> = hostile().into_iter().chain([("bomb", bomb(400))]).collect();
    for (name, bytes) in &files {
        let (_, notes) = turn(&godex, &json!([user(&file("a.pdf", bytes))]), None, true).await;
        assert!(notes.starts_with("input[0].content[1]=degraded"), "{name}: {notes}");
        let sent = sent(&upstream).pop().unwrap()[0]["content"].as_str().unwrap().to_owned();
        assert!(sent.starts_with("Look:\n[a.pdf: PDF o"), "{name}: {sent}");
        if let Some((_, why)) = expected.iter().find(|(known, _)| known == name) {
            assert_eq!(sent, format!("Look:\n[a.pdf: PDF omitted: {why}]"), "{name}");
        }
    }
    turn(&godex, &json!([user(&file("good.pdf", &document(&["fine"])))]), None, false).await;
    assert!(sent(&upstream).pop().unwrap()[0]["content"].as_str().unwrap().ends_with("[page 1]\nfine"));
}

#[tokio::test]
async fn limits_and_off_are_kept() {
    let upstream = Upstream::start_with(forgetful).await.unwrap();
    let pdf = document(&[&"x".repeat(3000), "two", "three"]);
    for (files, expected) in [
        ("max_pages: 2", "two\n[cut here: page 3 is left out]"),
        ("max_bytes: 1KiB", "x\n[cut here: the rest of page 1 and pages 2 to 3 are left out]"),
        (
            "max_request_bytes: 2KiB",
            "x\n[cut here: the rest is left out: the files of this request have too much text]",
        ),
        ("pdf: off", "[file omitted: this model cannot read it]"),
    ] {
        let home = configured(&upstream, files);
        let godex = Godex::logging_to(home.path(), Stdio::null());
        turn(&godex, &json!([user(&file("a.pdf", &pdf))]), None, false).await;
        let sent = sent(&upstream).pop().unwrap()[0]["content"].as_str().unwrap().to_owned();
        assert!(sent.ends_with(expected), "{files}: {sent}");
    }
}

/// The process, before it has its file.
fn start(seconds: u64, memory: u64) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_godex"));
    command.args(["read-pdf", "50", "100000", &seconds.to_string(), &memory.to_string()]);
    command.env_clear().env("MIMALLOC_ARENA_RESERVE", "0");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// The process by itself: how it ended, and what it said.
fn child(file: &[u8], seconds: u64, memory: u64) -> (ExitStatus, Vec<u8>) {
    let mut process = start(seconds, memory);
    let _ = process.stdin.take().unwrap().write_all(file);
    let mut said = Vec::new();
    process.stdout.take().unwrap().read_to_end(&mut said).unwrap();
    (process.wait().unwrap(), said)
}

/// The same bomb is harmless to a process that may have the memory for it, and the end of one that may not.
#[test]
fn a_process_has_no_more_than_its_limits() {
    let bomb = bomb(400);
    assert!(bomb.len() < 100_000, "{}", bomb.len());
    let (status, said) = child(&bomb, 60, 4 << 30);
    assert!(status.success() && said.ends_with(b"end\n"), "{status}");
    let (status, said) = child(&bomb, 60, MEMORY);
    assert!(status.signal().is_some() && said.is_empty(), "{status}");
    let (_, endless) = hostile().into_iter().find(|(name, _)| *name == "forms that draw forms").unwrap();
    let (status, said) = child(&endless, 1, MEMORY);
    assert!(status.success(), "{status}");
    assert_eq!(pdf::Reading::of_message(&said), Some(Err(pdf::Unreadable::Limits)));
}

/// Before it has seen a byte of the file it can have no more of anything.
#[test]
#[cfg(target_os = "linux")]
fn a_process_limits_itself_before_it_reads() {
    let mut process = start(7, MEMORY);
    let path = format!("/proc/{}/limits", process.id());
    let wanted = [("Max cpu time", "7"), ("Max address space", "268435456"), ("Max open files", "3")];
    let is_limited = |limits: &str| {
        wanted.iter().all(|(name, most)| {
            let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.split_whitespace().take(2).all(|limit| limit == *most)
        })
    };
    while !is_limited(&std::fs::read_to_string(&path).unwrap()) {
        assert!(process.try_wait().unwrap().is_none(), "it has not waited for its file");
        std::thread::yield_now();
    }
    drop(process.stdin.take());
    assert!(process.wait().unwrap().success());
}

/// Files with random damage: each is read, or said to be unreadable, or ends its process.
#[test]
fn damaged_files_end_at_most_their_process() {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % below as u64).unwrap()
    };
    let plain = testkit::pdf::file(
        &testkit::pdf::pages(&[testkit::pdf::stream("", &testkit::pdf::lines("Some words\non a page"))], "", &[]),
        "",
    );
    let originals = [document(&["Some words", "on pages"]), plain];
    let mut said_something = 0;
    for round in 0..120 {
        let mut file = originals[round % 2].clone();
        for _ in 0..=random(12) {
            let at = random(file.len());
            match random(3) {
                0 => file[at] = u8::try_from(random(256)).unwrap(),
                1 => drop(file.drain(at..(at + random(40)).min(file.len()))),
                _ => {
                    let part = file[at..(at + random(200)).min(file.len())].to_vec();
                    let to = random(file.len());
                    drop(file.splice(to..to, part));
                }
            }
            if file.is_empty() {
                break;
            }
        }
        let (status, said) = child(&file, 2, MEMORY);
        if status.success() {
            assert!(said.starts_with(b"godex pdf 1\n") && said.ends_with(b"\nend\n"), "{round}");
            said_something += 1;
        } else {
            assert!(said.is_empty(), "{round}: {status}");
        }
    }
    assert!(said_something > 100, "{said_something}");
}
