//! Idle connections to one provider, and the bodies that come over connections of both kinds.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::time::Instant;

use super::connect::{ConnectError, Connector};
use super::link::{self, Link, LinkError};
use super::shards::InFlight;
use crate::account::Account;

/// Below the keep-alive of most servers and balancers.
const IDLE: Duration = Duration::from_secs(55);

#[derive(Debug)]
pub(super) struct Pool {
    connector: Connector,
    /// The last used is the first taken; the oldest come first.
    idle: Mutex<Vec<(Link, Instant)>>,
}

/// How a request is getting there.
#[derive(Debug)]
pub(super) struct Sending {
    /// When there was a connection.
    pub(super) connected: Instant,
    /// It was sent a second time, because the connection that it was sent over first had ended.
    pub(super) resent: bool,
    /// Learns when it goes out.
    pub(super) account: Option<Account>,
}

impl Sending {
    pub(super) fn new(account: Option<Account>) -> Self {
        Self { connected: Instant::now(), resent: false, account }
    }

    /// The connection had ended: it goes out once more.
    fn came_back(&mut self) {
        self.resent = true;
        if let Some(account) = &self.account {
            account.pace().asks();
        }
    }

    pub(super) fn goes_out(&self) {
        if let Some(account) = &self.account {
            account.pace().goes_out();
        }
    }
}

/// Why no answer began.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Link(#[from] LinkError),
}

/// An answer's body. What it came over is given back at its end, and closed when it is dropped before.
#[derive(Debug)]
pub(crate) struct HttpBody {
    incoming: Incoming,
    carrier: Carrier,
}

#[derive(Debug)]
enum Carrier {
    /// A connection of its own, driven by whoever reads the body.
    Own(Link, Arc<Pool>),
    /// A stream of a connection that others use as well.
    Shared(#[expect(dead_code, reason = "its drop says that the stream has ended")] InFlight),
    /// The body has ended.
    Gone,
}

impl Pool {
    pub(super) fn new(connector: Connector) -> Arc<Self> {
        Arc::new(Self { connector, idle: Mutex::new(Vec::new()) })
    }

    /// Sends a request over an idle connection, or over a new one.
    pub(super) async fn send(
        self: &Arc<Self>,
        request: Request<Full<Bytes>>,
        sending: &mut Sending,
    ) -> Result<Response<HttpBody>, SendError> {
        if let Some(mut link) = self.take() {
            sending.goes_out();
            match link.exchange(request.clone()).await {
                Ok(answer) => return Ok(self.answer(answer, link)),
                // It was closed just now: a new connection will do.
                Err(error) if error.is_stale() => sending.came_back(),
                Err(error) => return Err(error.into()),
            }
        }
        let mut link = Link::open(self.connector.connect().await?).await?;
        sending.connected = Instant::now();
        sending.goes_out();
        let answer = link.exchange(request).await?;
        Ok(self.answer(answer, link))
    }

    fn answer(self: &Arc<Self>, answer: Response<Incoming>, link: Link) -> Response<HttpBody> {
        answer.map(|incoming| HttpBody { incoming, carrier: Carrier::Own(link, Arc::clone(self)) })
    }

    fn take(&self) -> Option<Link> {
        loop {
            let (mut link, since) = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
            if since.elapsed() < IDLE && link.is_usable() {
                return Some(link);
            }
        }
    }

    fn put(&self, link: Link) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push((link, Instant::now()));
    }

    /// Closes what nobody will want: connections that are too old, or that the other side has closed.
    pub(super) fn tidy(&self) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain_mut(|(link, since)| since.elapsed() < IDLE && link.is_usable());
        idle.shrink_to(64);
    }

    /// Closes all that nobody uses: memory is short, and each has buffers.
    pub(super) fn shed(&self) {
        drop(std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner)));
    }
}

impl HttpBody {
    /// Over a connection that others use as well.
    pub(super) fn shared(incoming: Incoming, stream: InFlight) -> Self {
        Self { incoming, carrier: Carrier::Shared(stream) }
    }

    /// The next data; `None` at the end. May be dropped and called again at any time.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, LinkError> {
        let Self { incoming, carrier } = self;
        let data = std::future::poll_fn(|context| match carrier {
            Carrier::Own(link, _) => link.poll_data(incoming, context),
            Carrier::Shared(_) => link::poll_body(incoming, context),
            Carrier::Gone => std::task::Poll::Ready(Ok(None)),
        })
        .await;
        if matches!(data, Ok(None))
            && let Carrier::Own(link, pool) = std::mem::replace(carrier, Carrier::Gone)
        {
            pool.put(link);
        }
        data
    }
}
