//! A scripted upstream: an HTTP/1.1 server on a loopback port that answers each request as its script says
//! and remembers what it received and how the connection ended. Written on bare TCP, because an HTTP library
//! would not let a script send a reset, half an event or garbage.

mod connection;

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::Script;

/// One request as the upstream received it.
#[derive(Debug, Clone)]
pub struct Received {
    pub method: String,
    /// Path and query.
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// Number of the TCP connection, from 0: shows whether connections are reused.
    pub connection: usize,
}

impl Received {
    /// The body as JSON; `Null` when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// How the connection of a request ended, so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Open,
    /// The peer closed it (FIN or RST).
    PeerClosed,
    /// The script closed it.
    WeClosed,
}

/// The server; dropping it closes every connection.
pub struct Upstream {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

impl Upstream {
    /// Answers every request with this script, unless [`Upstream::queue`] has one for it.
    pub async fn start(default: Script) -> Result<Self> {
        Self::start_with(move |_| default.clone()).await
    }

    /// Answers every request with the script that `choose` gives for it.
    pub async fn start_with(choose: impl Fn(&Received) -> Script + Send + Sync + 'static) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            choose: Box::new(choose),
            state: Mutex::new(State::default()),
            changed: watch::Sender::new(()),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, accepting })
    }

    /// Plays this script for the next request that has none yet, before the default.
    pub fn queue(&self, script: Script) {
        self.shared.state().queue.push_back(script);
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:PORT`, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What was received so far, in order of arrival.
    pub fn requests(&self) -> Vec<Received> {
        self.shared.state().entries.iter().map(|entry| entry.received.clone()).collect()
    }

    /// What became of the connection of this request; `None` when there was no such request.
    pub fn fate(&self, request: usize) -> Option<Fate> {
        self.shared.state().entries.get(request).map(|entry| entry.fate)
    }

    /// Waits until this many requests have arrived.
    pub async fn arrived(&self, count: usize) {
        self.shared.until(|state| (state.entries.len() >= count).then_some(())).await;
    }

    /// Waits until the peer has closed the connection of this request, and says how long that took from the
    /// call of this function (nothing, when it was closed before).
    pub async fn closed_after(&self, request: usize) -> Duration {
        let asked = Instant::now();
        let closed = |state: &State| state.entries.get(request).and_then(|entry| entry.closed_at);
        self.shared.until(closed).await.saturating_duration_since(asked)
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        // The accepting task owns the connections' tasks: they end with it.
        self.accepting.abort();
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").field("address", &self.address).finish_non_exhaustive()
    }
}

// === shared state ===

struct Shared {
    choose: Box<dyn Fn(&Received) -> Script + Send + Sync>,
    state: Mutex<State>,
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Script>,
    entries: Vec<Entry>,
}

struct Entry {
    received: Received,
    fate: Fate,
    closed_at: Option<Instant>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // A test that panicked elsewhere must not turn this one into noise.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the request; gives its index and the script to play.
    fn arrive(&self, received: Received) -> (usize, Script) {
        let queued = self.state().queue.pop_front();
        let script = queued.unwrap_or_else(|| (self.choose)(&received));
        let index = {
            let mut state = self.state();
            state.entries.push(Entry { received, fate: Fate::Open, closed_at: None });
            state.entries.len() - 1
        };
        self.changed.send_replace(());
        (index, script)
    }

    /// Records the end of the connection that carried these requests.
    fn ended(&self, requests: &[usize], fate: Fate) {
        for &request in requests {
            if let Some(entry) = self.state().entries.get_mut(request) {
                entry.fate = fate;
                entry.closed_at = Some(Instant::now());
            }
        }
        self.changed.send_replace(());
    }

    async fn until<T>(&self, ready: impl Fn(&State) -> Option<T>) -> T {
        let mut changed = self.changed.subscribe();
        loop {
            if let Some(value) = ready(&self.state()) {
                return value;
            }
            // The sender lives in `self`: this cannot fail while we wait.
            changed.changed().await.ok();
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    let mut number = 0;
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            let (requests, fate) = connection::serve(stream, number, &shared).await;
            shared.ended(&requests, fate);
        });
        number += 1;
    }
}

#[cfg(test)]
mod tests;
