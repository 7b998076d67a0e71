//! Who manages keys and tenants for a command: the godex that runs, or, if none does, the store itself.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::Value;
use server::admin::{AdminAnswer, AdminClient, Unreachable};
use server::config::{Backend, Config, Secret, TracePlace};
use wire::visible::{visible, visible_json};

use crate::args::Flags;
use crate::output;
use crate::progress::Progress;

/// Does something with whoever manages what the configuration is about.
pub(crate) fn with<T>(flags: &Flags, work: impl AsyncFnOnce(&AdminClient) -> anyhow::Result<T>) -> anyhow::Result<T> {
    let config = flags.manage()?;
    block_on(async { work_with(&find(flags, &config).await?, work).await })
}

/// A database that is not there. Whoever only looks makes none: what root makes, a service of another user cannot open.
#[derive(Debug)]
pub(crate) struct NoDatabase(PathBuf);

impl fmt::Display for NoDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no database at {}", self.0.display())
    }
}

impl std::error::Error for NoDatabase {}

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Sessions; traces as far as there are any.
    Sessions,
    /// Sessions, and what requests would become.
    Plans,
    Traces,
}

/// The same for a command that only looks: it makes no file.
pub(crate) fn look<T>(
    flags: &Flags,
    at: Look,
    work: impl AsyncFnOnce(&AdminClient) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut config = flags.manage()?;
    block_on(async {
        let client = match running(&config).await {
            Ok(client) => client,
            Err(failed @ (Unreachable::Failed(..) | Unreachable::Silent(_))) => return Err(failed.into()),
            Err(absent) => {
                match at {
                    Look::Plans => config = flags.look()?,
                    Look::Sessions => config = flags.manage_alone()?,
                    Look::Traces => {}
                }
                // Another godex that runs may be the one that was meant.
                let meant = matches!(absent, Unreachable::Another(..)).then(|| absent.to_string());
                only_what_is_there(&mut config, at).map_err(|none| match meant {
                    Some(another) => anyhow::Error::from(none).context(another),
                    None => none.into(),
                })?;
                match (&config.trace.place, at) {
                    (TracePlace::File(path), Look::Traces) if config.trace.enabled => {
                        opened(AdminClient::of_trace_file(&config, path), &absent)?
                    }
                    _ => direct(&config, &absent).await?,
                }
            }
        };
        work_with(&client, work).await
    })
}

/// What a look found; where there is no database, that is said, and what is found without one.
pub(crate) fn or_empty<T>(found: anyhow::Result<T>, empty: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    match found {
        Err(error) if error.is::<NoDatabase>() => {
            output::tell(&format!("{}\n", visible(&format!("{error:#}"))));
            empty()
        }
        found => found,
    }
}

/// Leaves out what opening would make: traces, and the key of seals.
fn only_what_is_there(config: &mut Config, at: Look) -> Result<(), NoDatabase> {
    // What cannot be told is told by opening it.
    let is_missing = |path: &Path| matches!(path.try_exists(), Ok(false));
    match &config.trace.place {
        // They are there also where nothing is, or nothing is left, of the sessions.
        TracePlace::File(path) if at == Look::Traces && config.trace.enabled => {
            return if is_missing(path) { Err(NoDatabase(path.clone())) } else { Ok(()) };
        }
        _ => {}
    }
    let Backend::Sqlite { path } = &config.session.backend else { return Ok(()) };
    if is_missing(path) {
        return Err(NoDatabase(path.clone()));
    }
    if config.session.seal_key.is_none() && is_missing(&path.with_file_name("seal.key")) {
        // Without that file nothing was sealed: any key opens as much.
        config.session.seal_key = Some(Secret::new("nothing was sealed with this one".to_owned()));
    }
    match &config.trace.place {
        TracePlace::File(path) if is_missing(path) => config.trace.enabled = false,
        _ => {}
    }
    Ok(())
}

async fn work_with<T>(
    client: &AdminClient,
    work: impl AsyncFnOnce(&AdminClient) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let done = work(client).await;
    if let Some(store) = client.store() {
        store.clone().close().await;
    }
    done
}

/// Does something with the godex that runs; what it is for is said if there is none.
pub(crate) fn with_running<T>(
    flags: &Flags,
    what: &str,
    work: impl AsyncFnOnce(&AdminClient) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let config = flags.manage()?;
    block_on(async {
        let progress = Progress::start("waiting for godex");
        let client = AdminClient::started_with(&config).await;
        drop(progress);
        let client = client.map_err(|absent| match absent {
            Unreachable::Silent(_) => absent.into(),
            absent => anyhow::Error::from(absent).context(format!("there is nothing to {what}")),
        })?;
        work(&client).await
    })
}

/// Waits for it.
pub(crate) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the runtime")?.block_on(work)
}

async fn running(config: &Config) -> Result<AdminClient, Unreachable> {
    let _progress = Progress::start("waiting for godex");
    AdminClient::running(config).await
}

async fn find(flags: &Flags, config: &Config) -> anyhow::Result<AdminClient> {
    let absent = match running(config).await {
        Ok(client) => return Ok(client),
        Err(failed @ (Unreachable::Failed(..) | Unreachable::Silent(_))) => return Err(failed.into()),
        Err(absent) => absent,
    };
    direct(&flags.manage_alone()?, &absent).await
}

async fn direct(config: &Config, absent: &Unreachable) -> anyhow::Result<AdminClient> {
    opened(AdminClient::direct(config).await, absent)
}

fn opened(found: Result<AdminClient, Unreachable>, absent: &Unreachable) -> anyhow::Result<AdminClient> {
    match found {
        // A godex may have it that cannot be asked.
        Err(error @ Unreachable::Store(_)) => Err(anyhow::Error::from(error).context(absent.to_string())),
        found => Ok(found?),
    }
}

/// What is answered, or why not, in the words of who was asked.
pub(crate) async fn ask(client: &AdminClient, method: &str, path: &str, body: Option<&Value>) -> anyhow::Result<Value> {
    let _progress = Progress::start("waiting for godex");
    let AdminAnswer { status, body } = client.ask(method, path, body).await?;
    let answer: Value = serde_json::from_slice(&body).context("the answer is not JSON")?;
    if status >= 400 {
        bail!("{}", answer["error"]["message"].as_str().unwrap_or("refused"));
    }
    Ok(answer)
}

/// A name as a part of a path: nothing in it means anything else there.
pub(crate) fn segment(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let part = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(part).collect()
}

/// JSON for people and programs.
pub(crate) fn pretty(value: &Value) -> String {
    visible_json(&format!("{value:#}\n")).into_owned()
}
