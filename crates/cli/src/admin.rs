//! Who manages keys and tenants for a command: the godex that runs, or, if none does, the store itself.

use anyhow::{Context, bail};
use serde_json::Value;
use server::admin::{AdminAnswer, AdminClient, Unreachable};
use server::config::Config;
use wire::visible::visible_json;

use crate::args::Flags;
use crate::progress::Progress;

/// Does something with whoever manages what the configuration is about.
pub(crate) fn with<T>(flags: &Flags, work: impl AsyncFnOnce(&AdminClient) -> anyhow::Result<T>) -> anyhow::Result<T> {
    let config = flags.look()?;
    block_on(async {
        let client = find(&config).await?;
        let done = work(&client).await;
        if let Some(store) = client.store() {
            store.clone().close().await;
        }
        done
    })
}

/// Does something with the godex that runs; what it is for is said if there is none.
pub(crate) fn with_running<T>(
    flags: &Flags,
    what: &str,
    work: impl AsyncFnOnce(&AdminClient) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let config = flags.look()?;
    block_on(async {
        let client = AdminClient::started_with(&config).await.with_context(|| format!("there is nothing to {what}"))?;
        work(&client).await
    })
}

/// Waits for it.
pub(crate) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the runtime")?.block_on(work)
}

async fn find(config: &Config) -> anyhow::Result<AdminClient> {
    let absent = match AdminClient::running(config).await {
        Ok(client) => return Ok(client),
        Err(failed @ Unreachable::Failed(..)) => return Err(failed.into()),
        Err(absent) => absent,
    };
    match AdminClient::direct(config).await {
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
