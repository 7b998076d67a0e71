//! A godex of our own, in a folder of its own, at an address that stays when it is started again.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;

use crate::process::{self, Running};

/// Longer than any end takes here.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct Instance {
    folder: PathBuf,
    pub(crate) address: SocketAddr,
    running: Option<Running>,
    starts: usize,
}

impl Instance {
    /// One with this configuration, running.
    pub(crate) fn new(name: &str, config: &str) -> Result<Self> {
        let folder = crate::root().join("target/drain").join(name);
        fs::remove_dir_all(&folder).ok();
        fs::create_dir_all(&folder)?;
        let mut instance = Self { folder, address: process::free_address()?, running: None, starts: 0 };
        instance.configure(config)?;
        instance.start()?;
        Ok(instance)
    }

    /// Writes its file, in one step.
    pub(crate) fn configure(&self, config: &str) -> Result<()> {
        let new = self.folder.join("godex.yaml.new");
        fs::write(&new, config)?;
        Ok(fs::rename(new, self.folder.join("godex.yaml"))?)
    }

    pub(crate) fn start(&mut self) -> Result<()> {
        self.starts += 1;
        let mut command = Command::new(crate::root().join("target/debug/godex"));
        command.args(["serve", "--port", &self.address.port().to_string()]).current_dir(&self.folder);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", &self.folder);
        let mut running = Running::start_logged(&mut command, &self.log_file())?;
        running.until_healthy(self.address).with_context(|| format!("see {}", self.log_file().display()))?;
        self.running = Some(running);
        Ok(())
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        self.running.as_ref().context("it does not run")?.signal(signal)
    }

    /// Waits for its end, which must be a good one.
    pub(crate) fn ended(&mut self) -> Result<()> {
        let status = self.running.take().context("it does not run")?.ended_within(PATIENCE)?;
        ensure!(status.success(), "{} ended with {status}, see {}", self.address, self.log_file().display());
        Ok(())
    }

    /// Ends it, well.
    pub(crate) fn end(&mut self) -> Result<()> {
        self.signal(Signal::TERM)?;
        self.ended()
    }

    /// The most memory that it has used, in bytes.
    pub(crate) fn peak_memory(&self) -> Result<u64> {
        let pid = self.running.as_ref().context("it does not run")?.pid();
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
        Ok(line.trim().trim_end_matches("kB").trim().parse::<u64>()? * 1024)
    }

    /// What it has logged since it was started last.
    pub(crate) fn log(&self) -> Result<String> {
        Ok(fs::read_to_string(self.log_file())?)
    }

    fn log_file(&self) -> PathBuf {
        self.folder.join(format!("{}.log", self.starts))
    }
}
