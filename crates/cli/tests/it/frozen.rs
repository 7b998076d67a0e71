//! A godex that listens and does not answer: whoever asks it is told so, and nobody waits for ever.

use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use tokio::time::Instant;

use crate::cli::{command, home};
use crate::sessions::Godex;

/// More than any of them waits.
const LONG: Duration = Duration::from_secs(40);

/// What it has said, on both, and how it ended.
fn ended(mut child: Child, by: Instant) -> (Option<i32>, String, String) {
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > by {
            child.kill().unwrap();
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let output = child.wait_with_output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code(), out, err)
}

#[test]
fn commands_do_not_wait_for_ever_for_a_godex_that_does_not_answer() {
    let home = home("session: {sqlite: {path: data/sessions.db}}\n");
    let running = Godex::logging_to(home.path(), Stdio::null());
    running.signal(Signal::STOP);
    let by = Instant::now() + LONG;
    let all = [
        &["traces"][..],
        &["explain", "resp_1"],
        &["keys", "list"],
        &["drain"],
        &["page", "--no-open"],
        &["doctor", "--offline", "--json"],
    ];
    let start =
        |args: &&[&str]| command(home.path(), args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let children: Vec<Child> = all.iter().map(start).collect();
    for (args, child) in all.iter().zip(children) {
        let (code, out, err) = ended(child, by);
        assert_eq!(code, Some(1), "{args:?}: {out}{err}");
        if args[0] == "doctor" {
            let report: Value = serde_json::from_str(&out).unwrap();
            let checks = report["checks"].as_array().unwrap();
            let admin = checks.iter().find(|check| check["check"] == "admin").unwrap();
            assert_eq!(admin["status"], "fail", "{report:#}");
            assert!(admin.to_string().contains("a godex is there") && admin["advice"].is_string(), "{report:#}");
            // It goes on.
            assert!(checks.iter().any(|check| check["check"] == "codex"), "{report:#}");
        } else {
            let said = err.contains("a godex is there (unix:") && err.contains("admin.sock), but does not answer");
            assert!(said, "{args:?}: {err}");
        }
    }
    running.signal(Signal::CONT);
    assert!(running.end(Signal::TERM).success());
}
