//! MCP servers that are processes: one for each declared server and tenant, started when it is first needed and again when
//! it has died, but not over and over. It sees nothing of our environment but what its configuration says, and ends with
//! us. What a process remembers is one tenant's: no two tenants ever speak to the same one.
//!
//! There are only so many. One that nobody has used for a while ends, and so does the one that was not used for longest when
//! another is needed; those of the tenant `default` stay, as they do where there is no other tenant.

use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::mcp::{Client, Failure, Opening};
use store::Tenant;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep};

use crate::config::{McpAddress, McpServerConfig, Secret};
use crate::process_group::Group;
use crate::tasks;

/// The wait after the first death; each further one doubles it.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// The longest wait that somebody waits for.
const PATIENCE: Duration = Duration::from_secs(2);
/// One that has run so long did not die of its beginning.
const HEALTHY: Duration = Duration::from_secs(30);
/// The most of a line that is logged.
const LONGEST_LINE: usize = 1024;
/// The most processes, of all servers and all tenants but `default`, which has one for each server at most.
const MOST: usize = 128;
/// One that nobody has used for so long ends.
const IDLE: Duration = Duration::from_mins(15);
/// Who has not begun by then was asked in both ways.
const UNDECIDED: Duration = Duration::from_secs(9);

/// All that run.
#[derive(Debug, Default)]
pub(super) struct Processes(Mutex<Vec<Arc<Process>>>);

/// The process of one declared server for one tenant, whether it runs or not.
#[derive(Debug)]
struct Process {
    tenant: Tenant,
    label: String,
    at: McpAddress,
    slot: Mutex<Slot>,
}

#[derive(Debug, Default)]
struct Slot {
    running: Arc<OnceCell<Arc<Running>>>,
    /// How often it has died in a row.
    deaths: u32,
    not_before: Option<Instant>,
    /// When somebody was last seen to use it.
    used_at: Option<Instant>,
}

/// A process that runs.
#[derive(Debug)]
pub(crate) struct Running {
    client: Client,
    since: Instant,
    _child: Group,
}

impl Running {
    pub(crate) const fn client(&self) -> &Client {
        &self.client
    }
}

impl Processes {
    /// The tenant's process of this server, started if it does not run.
    pub(super) async fn get(&self, tenant: &Tenant, config: &McpServerConfig) -> Result<Arc<Running>, Failure> {
        let Some(process) = self.process(tenant, config) else {
            return Err(Failure::broken("As many MCP servers run as may run at the same time. Please retry."));
        };
        let (running, wait) = process.slot();
        if wait > PATIENCE {
            return Err(Failure::broken("The server has ended several times, and is not started again at once."));
        }
        sleep(wait).await;
        match running.get_or_try_init(|| process.start()).await {
            Ok(running) => Ok(Arc::clone(running)),
            Err(failure) => {
                process.died();
                Err(failure)
            }
        }
    }

    /// None: there are too many, and all of them are in use.
    fn process(&self, tenant: &Tenant, config: &McpServerConfig) -> Option<Arc<Process>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(process) = all.iter().find(|process| process.tenant == *tenant && process.is_of(config)) {
            process.used();
            return Some(Arc::clone(process));
        }
        let others = all.iter().filter(|process| !process.stays()).count();
        if *tenant != Tenant::default() && others >= MOST {
            let idle = all.iter().enumerate().filter_map(|(at, process)| Some((process.idle_since()?, at)));
            let (_, longest) = idle.min()?;
            drop(all.swap_remove(longest));
        }
        let (tenant, label, at) = (tenant.clone(), config.label.clone(), config.at.clone());
        let process = Arc::new(Process { tenant, label, at, slot: Mutex::default() });
        process.used();
        all.push(Arc::clone(&process));
        Some(process)
    }

    /// Ends those that nobody has used for a while; called now and then.
    pub(super) fn tidy(&self) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|process| process.idle_since().is_none_or(|since| since.elapsed() < IDLE));
    }

    /// Ends all but those of these servers; a call that is under way keeps its process to its end.
    pub(super) fn keep(&self, servers: &[McpServerConfig]) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|process| servers.iter().any(|config| process.is_of(config)));
    }
}

impl Process {
    fn is_of(&self, config: &McpServerConfig) -> bool {
        self.label == config.label && self.at == config.at
    }

    /// Whether it stays while nobody uses it.
    fn stays(&self) -> bool {
        self.tenant == Tenant::default()
    }

    fn used(&self) {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner).used_at = Some(Instant::now());
    }

    /// Since when nobody uses it; None while somebody does, and of those that stay.
    fn idle_since(self: &Arc<Self>) -> Option<Instant> {
        if self.stays() {
            return None;
        }
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        let held = slot.running.get().is_some_and(|running| Arc::strong_count(running) > 1);
        // Whoever is about to start it, or waits for it, has the process or its place.
        if held || Arc::strong_count(self) > 1 || Arc::strong_count(&slot.running) > 1 {
            slot.used_at = Some(Instant::now());
            return None;
        }
        slot.used_at
    }

    /// Where it is, or will be. A dead one makes room for the next, which is not started before this wait.
    fn slot(&self) -> (Arc<OnceCell<Arc<Running>>>, Duration) {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = slot.running.get().filter(|running| running.client.is_closed()).map(|running| running.since);
        if let Some(since) = ended {
            tracing::warn!(server = %self.label, "the MCP server has ended");
            slot.running = Arc::default();
            if since.elapsed() >= HEALTHY {
                slot.deaths = 0;
            }
            slot.wait();
        }
        let until = slot.not_before.filter(|_| slot.running.get().is_none());
        let wait = until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()));
        (Arc::clone(&slot.running), wait)
    }

    fn died(&self) {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner).wait();
    }

    /// A program that takes its time, because it has to be fetched first, finds two openings before it and answers the one
    /// that is given up: it is started once more, and waited for.
    async fn start(&self) -> Result<Arc<Running>, Failure> {
        let began = Instant::now();
        match Box::pin(self.launch(Opening::Either)).await {
            Err(failure) if began.elapsed() >= UNDECIDED => {
                tracing::info!(server = %self.label, %failure, "the MCP server was slow to begin: once more");
                Box::pin(self.launch(Opening::Initialize)).await
            }
            launched => launched,
        }
    }

    async fn launch(&self, opening: Opening) -> Result<Arc<Running>, Failure> {
        let McpAddress::Command { command, env, inherited } = &self.at else {
            return Err(Failure::broken("The server is no process."));
        };
        let Some((program, arguments)) = command.split_first() else {
            return Err(Failure::broken("The server has no program."));
        };
        let mut command = Command::new(program);
        command.args(arguments).env_clear();
        command.envs(inherited.iter().map(|(name, value)| (name, value)));
        command.envs(env.iter().map(|(name, value)| (name, value.expose())));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        // What it starts itself ends with it.
        #[cfg(unix)]
        command.process_group(0);
        let started = command.spawn();
        let mut child =
            started.map_err(|error| Failure::broken(format!("The server's program does not start: {error}.")))?;
        let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let child = Group(child);
        if let Some(errors) = errors {
            let secrets: Vec<Secret> = env.iter().map(|(_, value)| value.clone()).collect();
            tasks::spawn_service(log(self.label.clone(), errors, secrets));
        }
        let (Some(input), Some(output)) = (input, output) else {
            return Err(Failure::broken("The server's program has no streams."));
        };
        let secrets = env.iter().map(|(_, value)| value.expose());
        let client = Box::pin(Client::over_streams(output, input, secrets, opening)).await?;
        tracing::info!(server = %self.label, version = client.version(), "the MCP server runs");
        Ok(Arc::new(Running { client, since: Instant::now(), _child: child }))
    }
}

impl Slot {
    fn wait(&mut self) {
        let wait = FIRST_WAIT.saturating_mul(1 << self.deaths.min(10)).min(LONGEST_WAIT);
        self.deaths = self.deaths.saturating_add(1);
        self.not_before = Some(Instant::now() + wait);
    }
}

/// What the process says beside the protocol is for whoever looks for a mistake.
async fn log(server: String, mut errors: impl AsyncRead + Unpin, secrets: Vec<Secret>) {
    let (mut buffer, mut line) = ([0_u8; 1024], Vec::new());
    while let Ok(read @ 1..) = errors.read(&mut buffer).await {
        for &byte in &buffer[..read] {
            match byte {
                b'\n' => said(&server, &std::mem::take(&mut line), &secrets),
                _ if line.len() < LONGEST_LINE => line.push(byte),
                _ => {}
            }
        }
    }
    said(&server, &line, &secrets);
}

fn said(server: &str, line: &[u8], secrets: &[Secret]) {
    if line.is_empty() || !tracing::enabled!(tracing::Level::DEBUG) {
        return;
    }
    let long = secrets.iter().map(Secret::expose).filter(|secret| secret.len() >= 6);
    let line = long.fold(String::from_utf8_lossy(line).into_owned(), |line, secret| line.replace(secret, "[redacted]"));
    tracing::debug!(server, line, "an MCP server says");
}
