//! A godex of our own: its home, its temporary files and its log in one folder, no key and no network.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process::{self, Running};

/// Where a godex lives, running or not.
pub(super) struct Home {
    folder: PathBuf,
}

/// A running godex. Dropping it is `kill -9`.
pub(super) struct Godex {
    running: Running,
    pub(super) address: SocketAddr,
}

impl Home {
    /// An empty one.
    pub(super) fn new(name: &str, backend: &str) -> Result<Self> {
        let folder = crate::root().join("target/crash").join(name);
        fs::remove_dir_all(&folder).ok();
        for part in ["home", "tmp", "ledger"] {
            fs::create_dir_all(folder.join(part))?;
        }
        let config = format!("session:\n  backend: {backend}\nlogging:\n  level: trace\n");
        fs::write(folder.join("home/godex.yaml"), config)?;
        Ok(Self { folder })
    }

    pub(super) fn database(&self) -> PathBuf {
        self.folder.join("home/.godex/data/sessions.db")
    }

    pub(super) fn ledger(&self, client: usize) -> PathBuf {
        self.folder.join(format!("ledger/{client}.jsonl"))
    }

    /// What godex may have written to.
    pub(super) fn written(&self) -> [PathBuf; 3] {
        ["home", "tmp", "log"].map(|part| self.folder.join(part))
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts it and does not wait. `start` counts the starts, so that each has its log.
    pub(super) fn begin(&self, start: usize) -> Result<Godex> {
        fs::create_dir_all(self.folder.join("log"))?;
        let address = process::free_address()?;
        let mut command = Command::new(crate::root().join("target/debug/godex"));
        command.args(["serve", "--port", &address.port().to_string()]).current_dir(self.folder.join("home"));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.folder.join("home")).env("TMPDIR", self.folder.join("tmp"));
        let running = Running::start_logged(&mut command, &self.folder.join(format!("log/{start}.log")))?;
        Ok(Godex { running, address })
    }

    /// Starts it and waits until it answers.
    pub(super) fn start(&self, start: usize) -> Result<Godex> {
        let mut godex = self.begin(start)?;
        let healthy = godex.running.until_healthy(godex.address);
        healthy.with_context(|| format!("see {}/log/{start}.log", self.folder.display()))?;
        Ok(godex)
    }
}
