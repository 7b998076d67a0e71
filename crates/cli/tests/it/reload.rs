//! SIGHUP to the binary: the file is read anew, and a bad one changes nothing.

use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::cli::{godex, home};
use crate::sessions::Godex;

/// A running godex whose log is a file.
struct Logged {
    home: TempDir,
    godex: Godex,
    /// How much of the log was looked at.
    seen: usize,
}

impl Logged {
    fn start(config: &str) -> Self {
        let home = home(config);
        let log = File::create(home.path().join("log")).unwrap();
        let godex = Godex::logging_to(home.path(), log);
        Self { home, godex, seen: 0 }
    }

    fn file(&self) -> std::path::PathBuf {
        self.home.path().join("godex.yaml")
    }

    /// Sends SIGHUP: what the log then says, up to a line with `expected`.
    async fn hang_up(&mut self, expected: &str) -> String {
        self.godex.signal(Signal::HUP);
        for _ in 0..1000 {
            let log = fs::read_to_string(self.home.path().join("log")).unwrap();
            let new = &log[self.seen..];
            if new.contains(expected) && new.ends_with('\n') {
                self.seen = log.len();
                return log[log.len() - new.len()..].to_owned();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("no {expected:?} in the log");
    }

    async fn models(&self) -> String {
        self.godex.get("/v1/models").await.1["data"].to_string()
    }
}

fn config(more: &str) -> String {
    format!("session: {{backend: memory}}\nlogging: {{format: human}}\n{more}")
}

/// What `godex config check` says of the home's file, without the word before it.
fn checked(home: &Path) -> String {
    let (code, _, said) = godex(home, &["config", "check"]);
    assert_eq!(code, Some(1), "{said}");
    said.trim_start_matches("error: ").trim_end().to_owned()
}

#[tokio::test]
async fn a_good_file_is_taken_and_a_bad_one_is_not() {
    let mut godex = Logged::start(&config("models: {aliases: {first: demo/demo}}\n"));
    assert!(godex.models().await.contains("\"first\""));
    fs::write(godex.file(), config("models: {aliases: {second: demo/demo}}\n")).unwrap();
    godex.hang_up("configuration reloaded").await;
    let models = godex.models().await;
    assert!(models.contains("\"second\"") && !models.contains("\"first\""), "{models}");

    for bad in ["server: {prot: 1}\n", "server: {prot: 1}\nlimits: {write_stall: 7}\n", "providers: [\n"] {
        fs::write(godex.file(), config(bad)).unwrap();
        let check = checked(godex.home.path());
        let last = check.lines().last().unwrap().to_owned();
        let log = godex.hang_up(&last).await;
        for line in check.lines() {
            assert!(log.contains(&format!("ERROR the configuration stays as it was: {line}")), "{line}\n{log}");
        }
        assert!(check.contains("godex.yaml:"), "{check}");
        assert_eq!(godex.models().await, models);
    }

    fs::write(godex.file(), config("server: {max_connections: 7}\nmodels: {aliases: {third: demo/demo}}\n")).unwrap();
    godex.hang_up("the section `server` cannot change while the server runs").await;
    fs::remove_file(godex.file()).unwrap();
    godex.hang_up("godex.yaml: the file is gone").await;
    assert_eq!(godex.models().await, models);
    fs::write(godex.file(), config("models: {aliases: {fourth: demo/demo}}\n")).unwrap();
    godex.hang_up("configuration reloaded").await;
    assert!(godex.models().await.contains("\"fourth\""));
    assert!(godex.godex.end(Signal::TERM).success());
    let log = fs::read_to_string(godex.home.path().join("log")).unwrap();
    assert!(!log.contains("panicked"), "{log}");
}

#[tokio::test]
async fn without_a_file_there_is_nothing_to_reload_until_there_is_one() {
    let mut godex = Logged::start("");
    godex.hang_up("there is no configuration file").await;
    assert_eq!(godex.godex.get("/health").await.0, 200);
    fs::write(godex.file(), "models: {aliases: {fast: demo/demo}}\n").unwrap();
    godex.hang_up("configuration reloaded").await;
    assert!(godex.models().await.contains("\"fast\""));
    assert!(godex.godex.end(Signal::TERM).success());
}
