//! Hints between instances: that something happened to a response. Whoever waits for it looks at once instead of at its next
//! look; nothing depends on a hint, and any of them may get lost, as with a transaction pooler.
//!
//! A hint is never part of a commit: that would make all commits of the database wait for each other. What is told in 50 ms
//! goes out together, in a statement of its own. The two tasks end with the store.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deadpool_postgres::Pool;
use futures_util::StreamExt as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{sleep, timeout};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{Database, sql, typed};
use crate::{OpenError, PostgresOptions};

/// The shortest time from one telling to the next.
const PACE: Duration = Duration::from_millis(50);
/// What a payload may hold; Postgres takes less than 8,000 bytes.
const PAYLOAD: usize = 7_500;
/// Ids that wait to be told. More are lost.
const MOST: usize = 10_000;
/// Hints that wait to be taken. More are lost.
const HEARD: usize = 1_024;
/// The first wait before listening is tried again; each one is twice as long, up to the last.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

const LISTEN: &str = "LISTEN godex";

#[derive(Debug)]
pub(super) struct Hints {
    told: Arc<Told>,
    /// Taken by whoever listens.
    ear: Mutex<Option<Ear>>,
    /// Ends the tasks, also by being dropped.
    stop: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Told {
    ids: Mutex<HashSet<String>>,
    wake: Notify,
}

/// What listening needs.
struct Ear {
    config: Config,
    tls: Option<MakeRustlsConnect>,
    /// This instance, whose own hints are no news.
    name: String,
    patience: Duration,
}

/// The address may hold a password.
impl std::fmt::Debug for Ear {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ear").finish_non_exhaustive()
    }
}

impl Hints {
    pub(super) fn new(
        pool: &Pool,
        options: &PostgresOptions,
        config: Config,
        tls: Option<MakeRustlsConnect>,
    ) -> Result<Self, OpenError> {
        let mut name = [0; 8];
        getrandom::fill(&mut name).map_err(|_| OpenError::Random)?;
        let name = format!("{:016x}", u64::from_be_bytes(name));
        let told = Arc::<Told>::default();
        let (stop, stopped) = watch::channel(false);
        spawn(until(stopped, tell(pool.clone(), Arc::clone(&told), name.clone(), options.statement)));
        let ear = Mutex::new(Some(Ear { config, tls, name, patience: options.acquire }));
        Ok(Self { told, ear, stop })
    }

    pub(super) fn stop(&self) {
        // Nobody left to hear it is as good.
        let _ = self.stop.send(true);
    }
}

impl Database {
    pub(crate) fn tell(&self, response: &str) {
        let told = &self.hints.told;
        let mut ids = told.ids.lock().unwrap_or_else(PoisonError::into_inner);
        if ids.len() < MOST && !ids.contains(response) {
            ids.insert(response.to_owned());
        }
        drop(ids);
        told.wake.notify_one();
    }

    pub(crate) fn hints(&self) -> Option<mpsc::Receiver<String>> {
        let ear = self.hints.ear.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let (heard, hints) = mpsc::channel(HEARD);
        spawn(until(self.hints.stop.subscribe(), listen(ear, heard)));
        Some(hints)
    }
}

/// Does it until the store is closed or gone.
async fn until(mut stop: watch::Receiver<bool>, work: impl Future<Output = ()>) {
    tokio::select! {
        _ = stop.changed() => {}
        () = work => {}
    }
}

#[expect(clippy::disallowed_methods, reason = "it ends with the store, and nothing is lost if it is cut off")]
fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    drop(tokio::spawn(task));
}

async fn tell(pool: Pool, told: Arc<Told>, name: String, patience: Duration) {
    loop {
        told.wake.notified().await;
        let ids = std::mem::take(&mut *told.ids.lock().unwrap_or_else(PoisonError::into_inner));
        for payload in payloads(&name, &ids) {
            let send = async {
                let client = pool.get().await.ok()?;
                client.query_typed(sql::TELL, typed![payload => TEXT]).await.ok()
            };
            // A database that is away hears nothing, and nobody else does.
            let _ = timeout(patience, send).await;
        }
        sleep(PACE).await;
    }
}

/// The ids in as few payloads as can be, each with our name first.
fn payloads(name: &str, ids: &HashSet<String>) -> Vec<String> {
    let mut payloads: Vec<String> = Vec::new();
    for id in ids.iter().filter(|id| id.len() < PAYLOAD / 2 && !id.contains(['\n', '\0'])) {
        match payloads.last_mut().filter(|payload| payload.len() + id.len() < PAYLOAD) {
            // Writing to a string does not fail.
            Some(payload) => write!(payload, "\n{id}").unwrap_or(()),
            None => payloads.push(format!("{name}\n{id}")),
        }
    }
    payloads
}

/// Listens on a connection of its own, and on another one when that is lost.
async fn listen(mut ear: Ear, heard: mpsc::Sender<String>) {
    // A connection on which nothing is ever said must notice that its other end is gone.
    ear.config.keepalives_idle(Duration::from_secs(30));
    let mut pause = PAUSE;
    while !heard.is_closed() {
        let connected = match ear.tls.clone() {
            None => match timeout(ear.patience, ear.config.connect(NoTls)).await {
                Ok(Ok((client, connection))) => hear(client, connection, &ear.name, &heard).await,
                _ => false,
            },
            Some(tls) => match timeout(ear.patience, ear.config.connect(tls)).await {
                Ok(Ok((client, connection))) => hear(client, connection, &ear.name, &heard).await,
                _ => false,
            },
        };
        pause = if connected { PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
        sleep(pause).await;
    }
}

/// Passes on what others tell, until the connection is lost or nobody wants to hear it; says whether it ever listened.
async fn hear<S>(
    client: Client,
    mut connection: Connection<Socket, S>,
    name: &str,
    heard: &mpsc::Sender<String>,
) -> bool
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let mut messages = std::pin::pin!(futures_util::stream::poll_fn(move |context| connection.poll_message(context)));
    let mut asked = std::pin::pin!(client.batch_execute(LISTEN));
    let mut listens = false;
    loop {
        let message = tokio::select! {
            answered = &mut asked, if !listens => {
                if answered.is_err() {
                    return false;
                }
                listens = true;
                continue;
            }
            message = messages.next() => message,
            () = heard.closed() => return listens,
        };
        match message {
            Some(Ok(AsyncMessage::Notification(told))) => pass_on(told.payload(), name, heard),
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return listens,
        }
    }
}

fn pass_on(payload: &str, name: &str, heard: &mpsc::Sender<String>) {
    let mut lines = payload.lines();
    if lines.next() == Some(name) {
        return;
    }
    for id in lines {
        // Whoever does not keep up looks by himself.
        let _ = heard.try_send(id.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_share_payloads_and_none_is_too_long() {
        let ids: HashSet<String> = (0..500).map(|n| format!("resp_{n:048}")).collect();
        let payloads = payloads("me", &ids);
        assert!(payloads.len() < 6 && payloads.iter().all(|payload| payload.len() < 8_000));
        let (heard, mut hints) = mpsc::channel(1_000);
        for (listener, count) in [("me", 0), ("other", ids.len())] {
            for payload in &payloads {
                pass_on(payload, listener, &heard);
            }
            assert_eq!(hints.len(), count, "our own is no news");
        }
        let found: HashSet<String> = std::iter::from_fn(|| hints.try_recv().ok()).collect();
        assert_eq!(found, ids);
    }

    #[test]
    fn what_would_break_a_payload_is_not_told() {
        let odd = ["a\nb".to_owned(), "a\0b".to_owned(), "x".repeat(9_000)];
        assert!(payloads("me", &odd.into_iter().collect()).is_empty());
    }
}
