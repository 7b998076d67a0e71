//! `godex codex [-- ARGS]`: runs the installed Codex on a godex, with a provider that is only on its command line. The
//! terminal, the signals of its keys and the exit status are Codex's; no file of the user's is written.

use std::fmt::Write;
use std::fs::OpenOptions;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::thread;

use anyhow::Context;
use server::config::{Backend, Config};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use wire::visible::visible_lines;

use super::choice::{self, Choice};
use super::gateway::{self, Absent, Gateway};
use super::overrides::{self, Session};
use super::{KEY_VARIABLE, catalog, codex_home, installed};
use crate::args::{CodexArgs, Flags, home, variable};
use crate::files;
use crate::{logs, output};

/// A log that is longer than this at the start makes room for a new one.
const LONGEST_LOG: u64 = 8 << 20;

pub(super) fn run(flags: &Flags, args: &CodexArgs) -> anyhow::Result<ExitCode> {
    let config = flags.load()?;
    let codex = installed::find(args.codex.as_deref())?;
    let choice = choice::choose(&config, args.model.as_deref())?;
    let log = log_to_file(&config);
    let ended = runtime()?.block_on(async {
        let signals = Signals::listen()?;
        let gateway = Gateway::find(&config).await.context("cannot start godex")?;
        output::tell(&visible_lines(&introduction(&config, &choice, args.model.is_some(), &gateway, log.as_deref())));
        let catalog = catalog::of(&config).await;
        let mut command = command(&codex, args, &config, &choice, &gateway, catalog);
        gateway.during(async move { signals.during(&mut command).await }).await?
    });
    logs::finish();
    Ok(exit_code(ended?))
}

/// As many threads as a server has: it is one.
pub(super) fn runtime() -> anyhow::Result<Runtime> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    Builder::new_multi_thread().worker_threads(threads).enable_all().build().context("cannot start the runtime")
}

fn command(
    codex: &Path,
    args: &CodexArgs,
    config: &Config,
    choice: &Choice,
    gateway: &Gateway,
    catalog: anyhow::Result<Vec<u8>>,
) -> Command {
    let users = codex_home().ok().and_then(|home| files::read(&home.join("config.toml")).ok().flatten());
    let catalog = catalog_file(config, catalog);
    let session = Session {
        provider: overrides::provider_id(&users.unwrap_or_default()),
        base_url: &format!("{}/v1", gateway.url),
        model: &choice.model,
        catalog: catalog.as_deref(),
        searches: !config.tools.web_search.services.is_empty(),
    };
    let mut command = Command::new(codex);
    command.args(session.arguments()).args(&args.args).env(KEY_VARIABLE, gateway.key.expose());
    for (name, value) in past_proxies(&variable) {
        command.env(name, value);
    }
    command
}

/// A proxy for the outside must not be asked for this machine.
fn past_proxies(env: &dyn Fn(&str) -> Option<String>) -> Vec<(&'static str, String)> {
    let proxies = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
    if proxies.iter().all(|name| env(name).is_none_or(|value| value.is_empty())) {
        return Vec::new();
    }
    let known = env("NO_PROXY").or_else(|| env("no_proxy")).filter(|value| !value.is_empty());
    let value =
        known.map_or_else(|| "127.0.0.1,localhost,::1".to_owned(), |known| format!("{known},127.0.0.1,localhost,::1"));
    vec![("NO_PROXY", value.clone()), ("no_proxy", value)]
}

/// The catalogue, where Codex can read it. Without one it still works, with what it assumes of models that it does not
/// know.
fn catalog_file(config: &Config, catalog: anyhow::Result<Vec<u8>>) -> Option<PathBuf> {
    let path = std::path::absolute(data_folder(config)?.join("codex-models.json")).ok()?;
    let written = catalog.and_then(|catalog| files::write(&path, &catalog));
    match written {
        Ok(()) => Some(path),
        Err(error) => {
            tracing::warn!("there is no catalogue for Codex: {error:#}");
            None
        }
    }
}

/// Where the database is, or would be.
fn data_folder(config: &Config) -> Option<PathBuf> {
    match &config.session.backend {
        Backend::Sqlite { path } => path.parent().map(Path::to_owned),
        Backend::Memory { .. } | Backend::Postgres(_) => Some(home()?.join(".godex").join("data")),
    }
}

/// The terminal is Codex's: the log goes to a file. None, and no log, where none can be opened.
fn log_to_file(config: &Config) -> Option<PathBuf> {
    let folder = data_folder(config)?;
    std::fs::create_dir_all(&folder).ok()?;
    let path = folder.join("codex.log");
    if std::fs::metadata(&path).is_ok_and(|log| log.len() > LONGEST_LOG) {
        let _ = std::fs::rename(&path, folder.join("codex.log.1"));
    }
    let file = OpenOptions::new().create(true).append(true).open(&path).ok()?;
    logs::start(&config.logging, logs::Destination::File(file));
    Some(path)
}

/// What is said before Codex takes the terminal.
fn introduction(config: &Config, choice: &Choice, asked: bool, gateway: &Gateway, log: Option<&Path>) -> String {
    let mut out = format!("godex: model {}, provider {}\n", choice.model, choice.provider);
    if choice.offline && !asked {
        out.push_str(
            "godex: no provider has a key, so this is the offline demo model, which only follows commands (`godex demo`);\n\
             godex: set a key such as DEEPSEEK_API_KEY, or configure a provider in godex.yaml\n",
        );
    }
    match &gateway.absent {
        // Writing to a String cannot fail.
        None => {
            let _ = writeln!(out, "godex: the one that runs at {}", gateway.url);
        }
        Some(absent) => {
            if *absent != Absent::Nobody {
                let _ = writeln!(out, "godex: {}: {absent}", gateway::url(config));
            }
            let log = log.map(|log| format!(", log in {}", log.display())).unwrap_or_default();
            let _ = writeln!(out, "godex: started for this session at {}{log}", gateway.url);
        }
    }
    out
}

/// As shells say it: the program's own status, or 128 and the signal that ended it.
fn exit_code(status: ExitStatus) -> ExitCode {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal: Option<i32> = None;
    let code = status.code().or(signal.map(|signal| 128 + signal)).and_then(|code| u8::try_from(code).ok());
    ExitCode::from(code.unwrap_or(1))
}

/// Starts the program, and gives its status when it has ended.
fn start(command: &mut Command) -> anyhow::Result<(u32, oneshot::Receiver<std::io::Result<ExitStatus>>)> {
    let mut child =
        command.spawn().with_context(|| format!("cannot run {}", Path::new(command.get_program()).display()))?;
    let (id, (ended, has_ended)) = (child.id(), oneshot::channel());
    thread::spawn(move || {
        let _ = ended.send(child.wait());
    });
    Ok((id, has_ended))
}

/// Whether keys of a terminal reach the program by themselves: the system signals everybody in the foreground.
fn in_terminal() -> bool {
    std::io::stdin().is_terminal() || std::io::stdout().is_terminal() || std::io::stderr().is_terminal()
}

/// Signals from now on: none of them ends us before Codex has ended.
#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    quit: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn listen() -> anyhow::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            quit: listen(SignalKind::quit())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// Runs the program. What is sent to us alone is passed on; what a terminal's keys send, it has got already.
    async fn during(mut self, command: &mut Command) -> anyhow::Result<ExitStatus> {
        use rustix::process::{Pid, Signal, kill_process};
        let keys = in_terminal();
        let (id, mut ended) = start(command)?;
        let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
        loop {
            let signal = tokio::select! {
                biased;
                status = &mut ended => return Ok(status.context("nobody waits for it")??),
                _ = self.interrupt.recv() => if keys { None } else { Some(Signal::INT) },
                _ = self.quit.recv() => if keys { None } else { Some(Signal::QUIT) },
                _ = self.terminate.recv() => Some(Signal::TERM),
                _ = self.hangup.recv() => Some(Signal::HUP),
            };
            if let (Some(pid), Some(signal)) = (pid, signal) {
                // It may have ended meanwhile.
                let _ = kill_process(pid, signal);
            }
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn listen() -> anyhow::Result<Self> {
        Ok(Self)
    }

    /// Runs the program; Ctrl-C reaches it by itself.
    async fn during(self, command: &mut Command) -> anyhow::Result<ExitStatus> {
        let (_, mut ended) = start(command)?;
        loop {
            tokio::select! {
                biased;
                status = &mut ended => return Ok(status.context("nobody waits for it")??),
                _ = tokio::signal::ctrl_c(), if in_terminal() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_not_asked_for_this_machine() {
        let env = |pairs: &'static [(&str, &str)]| {
            move |name: &str| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        assert_eq!(past_proxies(&env(&[("NO_PROXY", "x")])), []);
        assert_eq!(past_proxies(&env(&[("HTTP_PROXY", "")])), []);
        let found = past_proxies(&env(&[("all_proxy", "socks5://p"), ("no_proxy", "a.example")]));
        assert_eq!(found[0], ("NO_PROXY", "a.example,127.0.0.1,localhost,::1".to_owned()));
        assert_eq!(found[1].0, "no_proxy");
    }
}
