//! Asking providers for their own lists of models, in the background: nobody who asks godex waits for it, and a provider
//! that fails hurts nobody. Who may be asked is the operator's word (`models.discover`).

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream;
use tokio::time::{Instant, sleep_until, timeout};

use super::Discovered;
use crate::app::{App, Snapshot};
use crate::clock;
use crate::config::Config;
use crate::upstream::{Connections, Listing};

/// Asked at the same time.
const AT_ONCE: usize = 8;
/// How often a list is asked for; one that failed, sooner: a server on this machine may only just have started.
const REFRESH: Duration = Duration::from_mins(5);
const RETRY: Duration = Duration::from_secs(10);
/// How soon another configuration is noticed.
const LOOK: Duration = Duration::from_secs(2);
/// How long a client's request may wait for lists that nobody has asked for yet.
const FIRST: Duration = Duration::from_secs(1);

/// Runs for as long as the server does.
pub(crate) async fn maintain(app: Arc<App>) {
    loop {
        let snapshot = app.snapshot();
        let now = Instant::now();
        let providers = snapshot.config.providers.iter().filter(|provider| snapshot.config.discovers(provider));
        let due = providers.filter_map(|provider| {
            let connections = snapshot.connections(&provider.name)?;
            connections.listing.due().is_none_or(|due| due <= now).then_some((provider, connections))
        });
        let asking = due.map(|(provider, connections)| async move {
            let listed = connections.list_models(&provider.provider.discovery).await;
            let pause = if listed.is_ok() { REFRESH } else { RETRY };
            let problem = listed.as_ref().err().cloned();
            let changed = connections.listing.put(listed.ok(), Instant::now() + jittered(pause));
            // It is asked often: once is enough.
            match problem {
                Some(problem) if changed => {
                    tracing::info!(provider = provider.name, problem, "its list of models cannot be had");
                }
                None if changed => tracing::info!(provider = provider.name, "its list of models can be had again"),
                _ => {}
            }
        });
        let asking: Vec<_> = asking.collect();
        let were_asked = !asking.is_empty();
        stream::iter(asking).buffer_unordered(AT_ONCE).for_each(|()| async {}).await;
        if were_asked {
            app.name_models();
        }
        sleep_until(Instant::now() + LOOK).await;
    }
}

/// A fifth more or less: instances that started together do not ask together for ever.
fn jittered(pause: Duration) -> Duration {
    let part = u32::try_from(clock::random() % 401).unwrap_or_default();
    pause * (800 + part) / 1000
}

impl Discovered {
    /// What is known by now. Lists that have never been asked for are waited for, but only so long.
    pub(crate) async fn of(snapshot: &Snapshot) -> Self {
        let asked = snapshot.config.providers.iter().filter(|provider| snapshot.config.discovers(provider));
        let asked: Vec<_> =
            asked.filter_map(|provider| Some((provider.name.clone(), snapshot.connections(&provider.name)?))).collect();
        let all = join_all(asked.iter().map(|(_, connections)| connections.listing.was_asked()));
        let _ = timeout(FIRST, all).await;
        let known = |(name, connections): (String, &Arc<Connections>)| Some((name, connections.listing.get()?));
        Self(asked.into_iter().filter_map(known).collect())
    }
}

/// Asks every provider that may be asked, all at once, and takes what comes in time: for those who want to know without a
/// server.
pub async fn discover(config: &Config, within: Duration) -> Discovered {
    let ask = |provider| async move {
        let connections = Connections::new(provider, config.resilience).ok()?;
        let listing: Listing = connections.list_models(&provider.provider.discovery).await.ok()?;
        Some((provider.name.clone(), Arc::new(listing)))
    };
    let providers = config.providers.iter().filter(|provider| config.discovers(provider));
    let asking = providers.map(|provider| timeout(within, ask(provider)));
    let asking: Vec<_> = asking.collect();
    let found: Vec<_> = stream::iter(asking).buffer_unordered(AT_ONCE).collect().await;
    Discovered(found.into_iter().filter_map(|found| found.ok().flatten()).collect())
}
