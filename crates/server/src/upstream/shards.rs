//! HTTP/2: many streams over a few connections. One connection takes only so many streams (servers allow about a
//! hundred, and what is beyond that waits in silence), so more are opened as they fill.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::rt::Executor;
use hyper_util::rt::TokioTimer;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::connect::Connector;
use super::link::LinkError;
use super::pool::{HttpBody, SendError, Sending};
use crate::tasks;

/// Streams on one connection before the next is opened.
const STREAMS: usize = 64;

/// Connections before streams crowd together.
const CONNECTIONS: usize = 32;

/// A connection that does not answer a ping for this long is dead.
const PING: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(super) struct Shards {
    connector: Connector,
    open: Mutex<Vec<Arc<Shard>>>,
    /// One connection is opened at a time: those who wait will find room on it.
    opening: Semaphore,
}

#[derive(Debug)]
struct Shard {
    sender: SendRequest<Full<Bytes>>,
    streams: AtomicUsize,
}

/// A stream in use; its connection knows when it ends.
#[derive(Debug)]
pub(super) struct InFlight {
    shard: Arc<Shard>,
}

impl Shards {
    pub(super) fn new(connector: Connector) -> Self {
        Self { connector, open: Mutex::default(), opening: Semaphore::new(1) }
    }

    /// Sends a request over the connection with the fewest streams.
    pub(super) async fn send(
        &self,
        request: Request<Full<Bytes>>,
        sending: &mut Sending,
    ) -> Result<Response<HttpBody>, SendError> {
        let mut fresh = false;
        loop {
            let (stream, is_new) = self.stream().await?;
            fresh |= is_new;
            if is_new {
                sending.connected = Instant::now();
            }
            sending.goes_out();
            let mut sender = stream.shard.sender.clone();
            match sender.send_request(request.clone()).await {
                Ok(answer) => return Ok(answer.map(|incoming| HttpBody::shared(incoming, stream))),
                // An old connection ended before it took the request: a new one will do.
                Err(error) if !fresh && error.is_canceled() => self.forget(&stream.shard),
                Err(error) => return Err(LinkError::from(error).into()),
            }
        }
    }

    /// A place on a connection, and whether that was opened for it.
    async fn stream(&self) -> Result<(InFlight, bool), SendError> {
        if let Some(stream) = self.room() {
            return Ok((stream, false));
        }
        let _one_at_a_time = self.opening.acquire().await;
        if let Some(stream) = self.room() {
            return Ok((stream, false));
        }
        let shard = Arc::new(Shard { sender: self.connect().await?, streams: AtomicUsize::new(1) });
        self.shards().push(Arc::clone(&shard));
        Ok((InFlight { shard }, true))
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, SendError> {
        let stream = self.connector.connect().await?;
        let mut builder = http2::Builder::new(Services);
        builder.timer(TokioTimer::new()).keep_alive_interval(PING).keep_alive_timeout(PING);
        let (sender, connection) = builder.handshake(stream).await.map_err(LinkError::from)?;
        // It ends when its last sender and its last stream are gone.
        tasks::spawn_service(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "an HTTP/2 connection to a provider ended");
            }
        });
        Ok(sender)
    }

    /// The emptiest connection, if it has room or there may be no more connections.
    fn room(&self) -> Option<InFlight> {
        let mut open = self.shards();
        open.retain(|shard| !shard.sender.is_closed());
        let full = open.len() >= CONNECTIONS;
        let shard = open.iter().min_by_key(|shard| shard.streams.load(Ordering::Relaxed))?;
        if shard.streams.load(Ordering::Relaxed) >= STREAMS && !full {
            return None;
        }
        shard.streams.fetch_add(1, Ordering::Relaxed);
        Some(InFlight { shard: Arc::clone(shard) })
    }

    fn forget(&self, shard: &Arc<Shard>) {
        self.shards().retain(|known| !Arc::ptr_eq(known, shard));
    }

    /// Closes connections without streams, but for one.
    pub(super) fn tidy(&self) {
        let mut spare = 0;
        self.shards().retain(|shard| {
            let idle = shard.streams.load(Ordering::Relaxed) == 0;
            spare += usize::from(idle);
            !shard.sender.is_closed() && (!idle || spare == 1)
        });
    }

    fn shards(&self) -> MutexGuard<'_, Vec<Arc<Shard>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What hyper starts for a connection ends with it.
#[derive(Debug, Clone, Copy)]
struct Services;

impl<F> Executor<F> for Services
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, task: F) {
        tasks::spawn_service(async move {
            let _ = task.await;
        });
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.shard.streams.fetch_sub(1, Ordering::Relaxed);
    }
}
