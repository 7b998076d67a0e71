//! The earlier version's binary.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The commit that it is made from.
pub(super) const COMMIT: &str = "d9233fe";

/// Where `cargo xtask fixture` has built it.
pub(super) fn binary() -> Option<PathBuf> {
    let binary = std::env::var_os("GODEX_OLD").map(PathBuf::from);
    if binary.is_none() {
        println!("SKIPPED: GODEX_OLD names no binary of {COMMIT}; run `cargo xtask fixture`");
    }
    binary
}

/// A folder with this configuration of sessions, and no provider but the demo model.
pub(super) fn home(session: &str) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("godex.yaml"), format!("session: {{{session}}}\n")).unwrap();
    home
}

/// It runs until the test ends, or longer ago.
pub(super) struct Godex {
    process: Child,
    pub(super) url: String,
}

impl Godex {
    pub(super) fn start(binary: &Path, home: &Path) -> Self {
        let mut command = Command::new(binary);
        command.args(["serve", "--port", "0"]).current_dir(home).env_clear().env("HOME", home);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        let url = lines.find_map(|line| Some(line.strip_prefix("address:")?.trim().to_owned()));
        let url = url.expect("it does not start");
        // Read on, so that a full pipe never blocks it.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, url }
    }

    pub(super) fn stop(mut self) {
        kill_process(Pid::from_child(&self.process), Signal::TERM).unwrap();
        assert!(self.process.wait().unwrap().success());
    }
}

impl Drop for Godex {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
