//! `godex codex catalog`: the models as Codex's `model_catalog_json` wants them.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use server::Discovered;
use server::config::Config;
use server::peer::Peer;
use wire::visible::visible;

use super::{gateway, own_key};
use crate::args::{Flags, variable};
use crate::files;
use crate::output;

/// How long a godex may take to list its models.
const LISTING: Duration = Duration::from_secs(5);

pub(super) fn run(flags: &Flags, file: Option<&Path>) -> anyhow::Result<ExitCode> {
    let catalog = here(&flags.look()?)?;
    match file {
        Some(file) => {
            files::write(file, &catalog)?;
            output::tell(&format!("wrote {}\n", visible(&file.display().to_string())));
        }
        None => output::print(&String::from_utf8_lossy(&catalog))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// That of the godex that runs, which also knows what its providers list; else that of the configuration alone.
pub(super) fn here(config: &Config) -> anyhow::Result<Vec<u8>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the runtime")?.block_on(of(config))
}

/// The same for who has a runtime.
pub(super) async fn of(config: &Config) -> anyhow::Result<Vec<u8>> {
    let url = gateway::url(config);
    if gateway::look(&url, config).await.is_ok()
        && let Ok(peer) = Peer::new(&url, own_key(), &[], &variable)
        && let Ok(answer) = peer.get("/v1/models", LISTING).await
        && !models(&answer.body).is_empty()
    {
        return written(&answer.body);
    }
    own(config)
}

/// That of the configuration alone.
pub(super) fn own(config: &Config) -> anyhow::Result<Vec<u8>> {
    written(&server::codex_catalog(config, &Discovered::default()))
}

/// Only the catalogue of what was answered, always in the same form, whoever wrote it.
fn written(answer: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut answer: Value = serde_json::from_slice(answer).context("the catalogue is not JSON")?;
    let mut bytes = serde_json::to_vec(&json!({"models": answer["models"].take()}))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// The entries of a catalogue.
pub(super) fn models(catalog: &[u8]) -> Vec<Value> {
    let Ok(mut catalog) = serde_json::from_slice::<Value>(catalog) else { return Vec::new() };
    match catalog["models"].take() {
        Value::Array(models) => models,
        _ => Vec::new(),
    }
}

/// Whether a file is a catalogue that we wrote: each entry says so.
pub(super) fn is_ours(text: &str) -> bool {
    let says_so = |entry: &Value| entry["description"].as_str().is_some_and(|about| about.ends_with(" through godex."));
    text.is_empty() || (!models(text.as_bytes()).is_empty() && models(text.as_bytes()).iter().all(says_so))
}

/// How many, in words.
pub(super) fn counted(models: usize) -> String {
    if models == 1 { "1 model".to_owned() } else { format!("{models} models") }
}
