//! Looking at addresses, all the time, where a provider has several: the cheapest question that there is, for its list of
//! models or whatever path the operator says. Where there is only one, nobody else could be asked, and nobody looks.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::Replicas;
use crate::upstream::UpstreamClient;
use crate::upstream::replica::Replica;

/// How often it is looked who is due.
const LOOK: Duration = Duration::from_millis(250);

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// Runs for as long as the server does. Who is due is said by whoever knows all providers.
pub(crate) async fn maintain(due: impl Fn() -> Vec<Due>) {
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut asking = FuturesUnordered::new();
    loop {
        tokio::select! {
            _ = looks.tick() => asking.extend(due().into_iter().map(|Due { replica, path }| look(replica, path))),
            Some(()) = asking.next(), if !asking.is_empty() => {}
        }
    }
}

/// Whom it is time to ask, and for what.
#[derive(Debug)]
pub(crate) struct Due {
    replica: Arc<Replica>,
    path: String,
}

impl Replicas {
    /// Of several addresses those that are due.
    pub(crate) fn due(&self) -> impl Iterator<Item = Due> {
        let due = self.all.iter().filter(|replica| self.are_several() && replica.take_due());
        due.map(|replica| Due { replica: Arc::clone(replica), path: self.health.clone() })
    }
}

/// Asks one. Whatever it answers, it is there; what it answers does not matter.
async fn look(replica: Arc<Replica>, path: String) {
    let UpstreamClient::Http(client) = &replica.client else { return };
    match timeout(PATIENCE, client.get(&path)).await {
        Ok(Ok(answer)) => {
            let status = answer.status().as_u16();
            // Read to its end, the connection can be used again.
            let _ = timeout(PATIENCE, read(answer.into_body())).await;
            replica.answered(status);
        }
        _ => replica.missed(),
    }
}

async fn read(mut body: crate::upstream::HttpBody) {
    /// More than any list; what sends more is hung up on.
    const MOST: usize = 1 << 20;
    let mut length = 0;
    while let Ok(Some(chunk)) = body.chunk().await {
        length += chunk.len();
        if length > MOST {
            return;
        }
    }
}
