//! `godex health`: whether a godex answers, for health checks that have no other program to ask with.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::Value;
use server::peer::Peer;

use super::codex;
use crate::args::{Flags, HealthArgs, variable};
use crate::output;

/// Less than what container engines wait for a check.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) fn run(flags: &Flags, args: &HealthArgs) -> anyhow::Result<()> {
    let url = match &args.url {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => codex::gateway::url(&flags.manage()?),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the runtime")?.block_on(ask(&url, args.ready))
}

async fn ask(url: &str, ready: bool) -> anyhow::Result<()> {
    let peer = Peer::new(url, None, &[], &variable).map_err(anyhow::Error::msg)?;
    let absent = |why: String| anyhow::anyhow!("godex does not answer at {url}: {}", cause(&why));
    let get = async |path| peer.get(path, PATIENCE).await.map_err(absent);
    let health = get("/health").await?;
    let said: Value = serde_json::from_slice(&health.body).unwrap_or_default();
    ensure!(said["name"] == "godex", "{url}: what answers is not godex");
    ensure!(health.status == 200, "{url}: it answers {}", health.status);
    if ready {
        let ready = get("/ready").await?;
        let said: Value = serde_json::from_slice(&ready.body).unwrap_or_default();
        if ready.status != 200 {
            bail!("{url}: it is not ready: {}", said["error"]["message"].as_str().unwrap_or("no reason given"));
        }
    }
    output::print(if ready { "ready\n" } else { "ok\n" })
}

/// Who asks providers says what is wrong with one; here is none.
fn cause(why: &str) -> &str {
    why.strip_prefix("The provider cannot be reached: ").unwrap_or(why).trim_end_matches('.')
}
