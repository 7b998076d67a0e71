//! The processes under load, and what the kernel says about them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use super::Gateway;
use crate::process::{self, Running};

/// What the upstream has; listed, as they are where godex finds a provider's models by itself.
const MODELS: &str = "[sync, stream-200-0, stream-200-5, hold, large, tool]";
/// Of godex, in the folder of its setup.
const LOG: &str = "godex.log";

pub(super) struct Servers {
    pub(super) targets: [Target; 3],
    place: Place,
    _upstream: Running,
}

/// How the processes are started.
#[derive(Clone, Copy, Default)]
pub(super) struct Setup {
    pub(super) place: Place,
    /// The floor is the least that hyper allows.
    pub(super) bare: bool,
    /// The spec of its provider; empty for the usual one, which speaks chat.
    pub(super) spec: &'static str,
    /// More lines of godex's `session` section, each with its indent and end.
    pub(super) session: &'static str,
    /// More lines of its provider, likewise.
    pub(super) provider: &'static str,
    /// More sections of godex's configuration; `{upstream}` is the upstream's address.
    pub(super) more: &'static str,
}

/// Where they run.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Place {
    #[default]
    Anywhere,
    /// Each proxy on the last core alone, all else on the first.
    Pinned,
    /// godex in valgrind, which counts its instructions.
    Counted,
}

/// One column of the table.
pub(super) struct Target {
    pub(super) name: &'static str,
    pub(super) url: String,
    /// None for the column without a proxy.
    pub(super) proxy: Option<Running>,
}

impl Servers {
    pub(super) fn start(gateway: Gateway, binary: &Path, setup: Setup) -> Result<Self> {
        let place = setup.place;
        let mut upstream = Running::start(limited(&bench(), place.core(false)).arg("upstream"))?;
        let address = upstream.line_after("address:")?;
        let (floor_url, floor) = start_floor(&address, setup)?;
        let (url, proxy) = match gateway {
            Gateway::Godex => start_godex(binary, &address, setup)?,
            Gateway::Floor => start_floor(&address, setup)?,
        };
        let direct = format!("http://{address}/v1/chat/completions");
        let targets = [
            Target { name: "direct", url: direct, proxy: None },
            Target { name: "floor", url: floor_url, proxy: Some(floor) },
            Target { name: "godex", url, proxy: Some(proxy) },
        ];
        Ok(Self { targets, place, _upstream: upstream })
    }

    /// Ends godex, and says how many instructions it has run (`Place::Counted`).
    pub(super) fn counted(self, setup: Setup) -> Result<f64> {
        let [.., godex] = self.targets;
        let godex = godex.proxy.context("no process")?;
        godex.signal(Signal::TERM)?;
        godex.ended_within(Duration::from_mins(1))?;
        let log = fs::read_to_string(setup.folder().join(LOG))?;
        let count = log.lines().find_map(|line| line.split_once("Collected :")).context("valgrind counted nothing")?;
        Ok(count.1.trim().parse()?)
    }

    /// The load generator, ready for its arguments.
    pub(super) fn load(&self, target: &Target) -> Command {
        let mut load = limited(&bench(), self.place.core(false));
        load.args(["load", &target.url]);
        load
    }
}

impl Setup {
    /// Two may run at once, if they differ in what is most different about them.
    const fn name(self) -> &'static str {
        match (self.spec.is_empty(), self.more.is_empty()) {
            (false, _) => "spec",
            (true, true) => "plain",
            (true, false) => "more",
        }
    }

    fn folder(self) -> PathBuf {
        crate::root().join("target/bench").join(self.name())
    }
}

impl Place {
    fn core(self, is_proxy: bool) -> Option<usize> {
        let last = std::thread::available_parallelism().map_or(0, |cores| cores.get() - 1);
        (self == Self::Pinned).then_some(if is_proxy { last } else { 0 })
    }
}

fn start_floor(upstream: &str, setup: Setup) -> Result<(String, Running)> {
    let mut command = limited(&bench(), setup.place.core(true));
    command.args(["floor", upstream]);
    if setup.bare {
        command.arg("--bare");
    }
    let mut floor = Running::start(&mut command)?;
    let address = floor.line_after("address:")?;
    Ok((format!("http://{address}/v1/responses"), floor))
}

fn start_godex(binary: &Path, upstream: &str, setup: Setup) -> Result<(String, Running)> {
    let address = process::free_address()?;
    let folder = setup.folder();
    fs::create_dir_all(&folder)?;
    // Fresh, and on the disk that the rest of the build is on: a store in memory would flatter us.
    let sessions = folder.join("sessions");
    let _ = fs::remove_dir_all(&sessions);
    let config = folder.join("godex.yaml");
    let Setup { session, provider, .. } = setup;
    let spec = if setup.spec.is_empty() { "openai-compatible" } else { setup.spec };
    let more = setup.more.replace("{upstream}", upstream);
    let text = format!(
        "server:\n  host: {}\n  port: {}\ndefault_provider: bench\nmodels:\n  discover: off\nproviders:\n  bench:\n    \
         spec: {spec}\n    credentials:\n      api_key: bench\n    endpoint:\n      \
         base_url: http://{upstream}/v1\n    models: {MODELS}\n{provider}session:\n{session}  sqlite:\n    path: {}\n\
         logging:\n  level: error\n{more}",
        address.ip(),
        address.port(),
        sessions.join("sessions.db").display(),
    );
    fs::write(&config, text)?;
    let mut command = match setup.place {
        Place::Counted => {
            let mut command = limited(Path::new("valgrind"), None);
            command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(binary);
            // It takes each byte of a `rep movsb` for an instruction: long copies are to be made without.
            command.env(
                "GLIBC_TUNABLES",
                "glibc.cpu.x86_rep_movsb_threshold=1073741824:glibc.cpu.x86_rep_stosb_threshold=1073741824",
            );
            command
        }
        place => limited(binary, place.core(true)),
    };
    command.args(["serve", "--config"]).arg(&config).env("HOME", &folder);
    let mut godex = Running::start_logged(&mut command, &folder.join(LOG))?;
    godex.until_healthy(address)?;
    Ok((format!("http://{address}/v1/responses"), godex))
}

fn bench() -> PathBuf {
    crate::root().join("target/release/bench")
}

/// Thousands of held streams need more file descriptors than some shells allow by default.
fn limited(program: &Path, core: Option<usize>) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n \"$(ulimit -H -n)\"; exec \"$@\"", "sh"]);
    if let Some(core) = core {
        command.args(["taskset", "--cpu-list", &core.to_string()]);
    }
    command.arg(program);
    command
}

impl Target {
    /// CPU time used so far by the threads that there are, in microseconds; 0 without a proxy.
    pub(super) fn cpu(&self) -> Result<f64> {
        let Some(proxy) = &self.proxy else { return Ok(0.0) };
        let mut nanoseconds = 0.0;
        for thread in fs::read_dir(format!("/proc/{}/task", proxy.pid()))? {
            // One that ends meanwhile has done nothing for a while.
            let Ok(times) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
            let ran: Option<f64> = times.split_whitespace().next().and_then(|ran| ran.parse().ok());
            nanoseconds += ran.context("no time in schedstat")?;
        }
        Ok(nanoseconds / 1000.0)
    }

    /// Resident memory, in KiB; 0 without a proxy.
    pub(super) fn rss(&self) -> Result<f64> {
        let Some(proxy) = &self.proxy else { return Ok(0.0) };
        let status = fs::read_to_string(format!("/proc/{}/status", proxy.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let Some(kib) = line.and_then(|line| line.split_whitespace().next()) else { bail!("no VmRSS") };
        Ok(kib.parse()?)
    }
}
