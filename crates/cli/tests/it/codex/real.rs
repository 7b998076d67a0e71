//! With the Codex that the clients' tests install under `target/`: it really runs what the demo model calls.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::Home;
use super::terminal::Terminal;
use crate::sessions::Godex;

/// The program, and the path that it needs: it is a script of Node's.
fn codex() -> Option<(PathBuf, String)> {
    let program = testkit::root().join("target/clients/node/node_modules/.bin/codex");
    let path = std::env::var_os("PATH").unwrap_or_default().into_string().unwrap_or_default();
    let has_node = std::env::split_paths(&path).any(|folder| folder.join("node").exists());
    if !program.exists() || !has_node {
        testkit::skipped("the Codex CLI under target/clients/node");
        return None;
    }
    Some((program, path))
}

const TASK: &str = "call exec_command {\"cmd\": \"echo made-by-a-tool-$((6 * 7)) > proof.txt; cat proof.txt\"}";
const EXEC: [&str; 3] = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"];

fn proof(home: &Home) -> String {
    std::fs::read_to_string(home.path().join("proof.txt")).unwrap_or_default()
}

#[test]
fn godex_codex_runs_a_tool() {
    let Some((codex, path)) = codex() else { return };
    let home = Home::new("session: {backend: memory}");
    let program = codex.display().to_string();
    let args = [&["codex", "--port", "1", "--codex", &program, "--"][..], &EXEC, &["--json", TASK]].concat();
    let output = home.command(&args).env("PATH", &path).stdin(Stdio::null()).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    assert_eq!(proof(&home), "made-by-a-tool-42\n", "{out}{err}");
    let events: Vec<Value> = out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert!(events.iter().any(|event| event["type"] == "turn.completed"), "{out}");
    assert!(!out.contains("Model metadata for") && !err.contains("Model metadata for"), "{out}{err}");
}

/// In a terminal, up to where it asks whether the folder is trusted, or shows its prompt: it has got the terminal.
#[test]
fn godex_codex_shows_codexs_own_screen() {
    let Some((codex, path)) = codex() else { return };
    let home = Home::new("session: {backend: memory}");
    let program = codex.display().to_string();
    let mut command = home.command(&["codex", "--port", "1", "--codex", &program]);
    command.env("PATH", path).env("TERM", "xterm-256color");
    let mut terminal = Terminal::start(&command);
    let screen = terminal.until("started for this session");
    assert!(screen.contains("model demo"), "{screen}");
    // What terminals are asked when a full screen begins; it waits for our answer, or goes on without.
    terminal.until("\x1b[");
    terminal.keys("\x03\x03");
    terminal.signal(rustix::process::Signal::TERM);
    terminal.end();
}

#[tokio::test]
async fn a_profile_that_was_set_up_works_by_itself() {
    let Some((codex, path)) = codex() else { return };
    let home = Home::new("session: {backend: memory}");
    let running = Godex::logging_to(home.path(), Stdio::null());
    let port = running.url.rsplit(':').next().unwrap().to_owned();
    let program = codex.display().to_string();
    home.write("config.toml", "# mine\nmodel_reasoning_summary = \"auto\"\n");
    let mut set_up = home.command(&["codex", "setup", "--yes", "--port", &port, "--codex", &program]);
    assert!(set_up.env("PATH", &path).output().unwrap().status.success());
    let mut command = Command::new(&codex);
    command.args(["--strict-config", "--profile", "godex"]).args(EXEC).arg(TASK);
    command.env_clear().env("HOME", home.path()).env("PATH", &path).current_dir(home.path());
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(proof(&home), "made-by-a-tool-42\n", "{output:?}");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("Model metadata for"), "{output:?}");
    let args = ["codex", "doctor", "--run", "--port", &port, "--model", "demo", "--codex", &program];
    let output = home.command(&args).env("PATH", &path).output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(out.contains("codex exec  demo ran a command and finished"), "{out}");
    assert!(output.status.success() && out.lines().all(|line| line.starts_with("ok ")), "{out}");
}
