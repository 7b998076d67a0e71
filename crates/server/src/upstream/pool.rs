//! Idle connections of one target, and the bodies that come over them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::time::Instant;

use super::connect::{ConnectError, Connector};
use super::link::{Link, LinkError};

/// Below the keep-alive of most servers and balancers.
const IDLE: Duration = Duration::from_secs(55);

#[derive(Debug)]
pub(super) struct Pool {
    connector: Connector,
    /// The last used is the first taken; the oldest stand in front.
    idle: Mutex<Vec<(Link, Instant)>>,
}

/// Why no answer began.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Link(#[from] LinkError),
}

/// An answer's body. Its connection goes back to the pool at its end, and is closed when it is dropped before.
#[derive(Debug)]
pub(crate) struct HttpBody {
    incoming: Incoming,
    link: Option<Link>,
    pool: Arc<Pool>,
}

impl Pool {
    pub(super) fn new(connector: Connector) -> Arc<Self> {
        Arc::new(Self { connector, idle: Mutex::new(Vec::new()) })
    }

    /// Sends a request over an idle connection, or over a new one.
    pub(super) async fn send(self: &Arc<Self>, request: Request<Full<Bytes>>) -> Result<Response<HttpBody>, SendError> {
        if let Some(mut link) = self.take() {
            match link.exchange(request.clone()).await {
                Ok(answer) => return Ok(self.answer(answer, link)),
                // It was closed just now: a new connection will do.
                Err(error) if error.is_stale() => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut link = Link::open(self.connector.connect().await?).await?;
        let answer = link.exchange(request).await?;
        Ok(self.answer(answer, link))
    }

    fn answer(self: &Arc<Self>, answer: Response<Incoming>, link: Link) -> Response<HttpBody> {
        answer.map(|incoming| HttpBody { incoming, link: Some(link), pool: Arc::clone(self) })
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
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let stale = idle.iter().take_while(|(_, since)| since.elapsed() >= IDLE).count();
        idle.drain(..stale);
        idle.push((link, Instant::now()));
    }
}

impl HttpBody {
    /// The next data; `None` at the end. May be dropped and called again at any time.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, LinkError> {
        let Some(link) = self.link.as_mut() else { return Ok(None) };
        let incoming = &mut self.incoming;
        let data = std::future::poll_fn(|context| link.poll_data(incoming, context)).await;
        if let (Ok(None), Some(link)) = (&data, self.link.take_if(|_| matches!(data, Ok(None)))) {
            self.pool.put(link);
        }
        data
    }
}
