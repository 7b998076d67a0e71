//! Outputs that cannot be written: a log on a full disk, a pipe that nobody reads any more.

use std::fs::{File, OpenOptions};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::cli::{command, home};
use crate::sessions::Godex;

/// The writing end of a pipe whose reader is gone.
fn closed() -> Stdio {
    let (_, writer) = std::io::pipe().unwrap();
    writer.into()
}

/// Every write to it fails with "no space left on device".
#[cfg(target_os = "linux")]
fn full() -> Stdio {
    Stdio::from(OpenOptions::new().write(true).open("/dev/full").unwrap())
}

#[cfg(not(target_os = "linux"))]
fn full() -> Stdio {
    closed()
}

#[tokio::test]
async fn a_log_that_cannot_be_written_stops_nothing() {
    for (format, log) in [("human", full()), ("json", full()), ("human", closed()), ("json", closed())] {
        let home = home(&format!("session: {{backend: memory}}\nlogging: {{level: debug, format: {format}}}\n"));
        let godex = Godex::logging_to(home.path(), log);
        for _ in 0..3 {
            // Refusals and compatibility notes are logged.
            assert_eq!(godex.get("/nothing/here").await.0, 404);
            let body = json!({"model": "demo", "input": "Hello", "truncation": "auto", "made_up": 1});
            let answer = godex.client.post_json(&format!("{}/v1/responses", godex.url), &body).await.unwrap();
            assert_eq!((answer.status, &answer.json()["status"]), (200, &json!("completed")));
        }
        // A thread of its own finds out.
        while godex.get("/health").await.1["lost_log_lines"].as_u64().is_none_or(|lost| lost < 6) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(godex.end(Signal::TERM).code(), Some(0), "{format}");
    }
}

/// More than any pipe holds.
#[tokio::test]
async fn a_log_that_nobody_reads_holds_up_nothing() {
    let home = home("session: {backend: memory}\nlogging: {format: json}\n");
    let (reader, writer) = std::io::pipe().unwrap();
    let godex = Godex::logging_to(home.path(), writer);
    for _ in 0..3000 {
        assert_eq!(godex.get("/nothing/here").await.0, 404);
    }
    assert!(godex.get("/health").await.1["lost_log_lines"].as_u64().is_some_and(|lost| lost > 0));
    assert!(godex.end(Signal::TERM).success());
    drop(reader);
}

#[tokio::test]
async fn a_log_that_is_written_loses_nothing() {
    let home = home("session: {backend: memory}\nlogging: {format: json}\n");
    let log = home.path().join("log");
    let godex = Godex::logging_to(home.path(), File::create(&log).unwrap());
    assert_eq!(godex.get("/nothing/here").await.0, 404);
    assert_eq!(godex.get("/health").await.1.get("lost_log_lines"), None);
    assert!(godex.end(Signal::TERM).success());
    let text = std::fs::read_to_string(log).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["path"] == "/nothing/here"), "{text}");
}

/// `godex models | head -0`.
#[test]
fn a_reader_that_has_enough_is_no_error() {
    let home = home("");
    for args in [
        &["models"][..],
        &["config", "check"],
        &["config", "print"],
        &["providers"],
        &["providers", "--json"],
        &["providers", "show", "demo"],
        &["completions", "bash"],
        &["demo"],
        &["--help"],
        &["--version"],
        &["probe", "demo", "--max-requests", "1"],
    ] {
        let output = command(home.path(), args).stdout(closed()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {said}");
        assert!(!said.contains("panicked") && !said.contains("error:"), "{args:?}: {said}");
    }
}

/// What was asked for and cannot be given is an error, and the rest is done all the same.
#[test]
fn a_full_disk_is_an_error_and_nobody_to_tell_is_none() {
    let home = home("");
    let disk = command(home.path(), &["models"]).stdout(full()).output().unwrap();
    if cfg!(target_os = "linux") {
        assert_eq!(disk.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&disk.stderr).starts_with("error: cannot write to stdout: "), "{disk:?}");
    }
    for stderr in [full(), closed()] {
        let args = ["probe", "demo", "--max-requests", "1", "--write", "spec.yaml"];
        let probed = command(home.path(), &args).stdout(closed()).stderr(stderr).status().unwrap();
        assert_eq!(probed.code(), Some(0));
        assert!(home.path().join("spec.yaml").exists());
        std::fs::remove_file(home.path().join("spec.yaml")).unwrap();
    }
    let wrong = command(home.path(), &["--port", "0", "--config", "gone.yaml"]).stderr(closed()).status().unwrap();
    assert_eq!(wrong.code(), Some(1));
}
