//! The installed Codex at work: one command in an empty folder, with its sandbox and its configuration as they are.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use server::config::Secret;
use tokio::sync::oneshot;

use super::super::choice::Choice;
use super::super::overrides::{self, Session};
use super::super::{KEY_VARIABLE, codex_home};
use super::Check;
use crate::files;

const NAME: &str = "codex exec";
/// Codex has its own patience, which is longer.
const LONGEST: Duration = Duration::from_mins(5);
/// What its output may hold: a line per event.
const LARGEST: u64 = 16 << 20;
const PROOF: &str = "it works: 42";

/// Lets Codex run a command that the model calls.
pub(super) async fn check(codex: &Path, url: &str, key: &Secret, choice: &Choice) -> Check {
    match run(codex, url, key, choice).await {
        Ok(output) if ran(&output) => Check::ok(NAME, format!("{} ran a command and finished", choice.model)),
        Ok(output) => Check::fail(NAME, reason(&output), "run `godex codex -- exec 'say hello'` to see all of it"),
        Err(error) => Check::fail(NAME, format!("{error:#}"), "run `godex codex -- exec 'say hello'` to see all of it"),
    }
}

async fn run(codex: &Path, url: &str, key: &Secret, choice: &Choice) -> anyhow::Result<String> {
    let folder = Folder::make()?;
    let users = files::read(&codex_home()?.join("config.toml"))?.unwrap_or_default();
    let (provider, base_url) = (overrides::provider_id(&users), format!("{url}/v1"));
    let session = Session { provider, base_url: &base_url, model: &choice.model, catalog: None, searches: false };
    let mut command = Command::new(codex);
    command
        .args(session.arguments())
        .args(["exec", "--json", "--ephemeral", "--skip-git-repo-check"])
        .arg(prompt(choice));
    command.env(KEY_VARIABLE, key.expose()).env("NO_PROXY", "127.0.0.1,localhost").current_dir(&folder.0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = Running(command.spawn()?);
    let Some(stdout) = child.0.stdout.take() else { anyhow::bail!("it has no output") };
    let (said, hears) = oneshot::channel();
    thread::spawn(move || {
        let mut text = Vec::new();
        let _ = stdout.take(LARGEST).read_to_end(&mut text);
        let _ = said.send(String::from_utf8_lossy(&text).into_owned());
    });
    match tokio::time::timeout(LONGEST, hears).await {
        Ok(output) => Ok(output?),
        Err(_) => anyhow::bail!("it did not end in {} minutes", LONGEST.as_secs() / 60),
    }
}

fn prompt(choice: &Choice) -> String {
    let command = "echo \"it works: $((6 * 7))\"";
    if choice.offline {
        return format!("call exec_command {}", serde_json::json!({"cmd": command}));
    }
    format!("Run this command in the shell, and say what it printed: {command}")
}

fn events(output: &str) -> impl Iterator<Item = Value> {
    output.lines().filter_map(|line| serde_json::from_str(line).ok())
}

/// Whether a command of the model's ran to its end, and the turn as well.
fn ran(output: &str) -> bool {
    let command = |event: &Value| {
        let printed = event["item"]["aggregated_output"].as_str().is_some_and(|text| text.contains(PROOF));
        event["item"]["type"] == "command_execution" && printed
    };
    events(output).any(|event| command(&event)) && events(output).any(|event| event["type"] == "turn.completed")
}

/// The last that Codex said went wrong.
fn reason(output: &str) -> String {
    let message = |event: Value| {
        let message = event["error"]["message"].as_str().or(event["message"].as_str()).map(str::to_owned);
        let failed = event["item"]["type"] == "command_execution" && event["item"]["exit_code"] != 0;
        message.or_else(|| failed.then(|| format!("the command failed: {}", event["item"]["aggregated_output"])))
    };
    let last = events(output).filter_map(message).last();
    last.unwrap_or_else(|| "the model ran no command".to_owned())
}

/// It ends with the check.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A folder that is gone when the check is over.
struct Folder(PathBuf);

impl Folder {
    fn make() -> std::io::Result<Self> {
        let path = std::env::temp_dir().join(format!("godex-doctor-{}", std::process::id()));
        std::fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
