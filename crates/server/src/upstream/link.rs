//! One HTTP/1.1 connection to an upstream (or to whoever else is asked), driven by the turn that uses it.
//!
//! The usual client gives each connection a task and hands the body over through a channel: a wake-up, and often a
//! change of thread, for every chunk. Here the reader polls the connection itself, so all that one read brought is
//! taken in one go, and dropping the reader closes the socket at once.

use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};

use super::connect::Stream;

/// What is read from a provider in one go becomes one frame for the client, which waits whole if the client does not
/// read.
const READ: usize = 64 * 1024;

/// Why an exchange did not come to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    #[error(transparent)]
    Http(#[from] hyper::Error),
    #[error("the connection was closed")]
    Closed,
}

impl LinkError {
    /// The connection ended before any byte of an answer: over an idle one that was taken up again, this is nearly
    /// always a server that closed it at that moment. The request is sent once more, over a new one; that is counted,
    /// since the first may have been read and be billed.
    pub(super) fn is_stale(&self) -> bool {
        let Self::Http(error) = self else { return true };
        let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
        error.is_canceled()
            || error.is_incomplete_message()
            || matches!(cause, Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe))
    }
}

pub(crate) struct Link {
    sender: SendRequest<Full<Bytes>>,
    connection: Pin<Box<Connection<Stream, Full<Bytes>>>>,
    /// The connection has ended; it must not be polled again.
    over: bool,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("over", &self.over).finish_non_exhaustive()
    }
}

impl Link {
    pub(crate) async fn open(stream: Stream) -> Result<Self, LinkError> {
        let (sender, connection) = Builder::new().max_buf_size(READ).handshake(stream).await?;
        Ok(Self { sender, connection: Box::pin(connection), over: false })
    }

    /// Whether it is idle and the other side has not closed it. Nobody watches an idle link; this looks.
    pub(super) fn is_usable(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        self.drive(&mut context);
        !self.over && matches!(self.sender.poll_ready(&mut context), Poll::Ready(Ok(())))
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn exchange(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, LinkError> {
        let mut answer = std::pin::pin!(self.sender.send_request(request));
        std::future::poll_fn(|context| {
            if let Poll::Ready(answer) = answer.as_mut().poll(context) {
                return Poll::Ready(answer.map_err(Into::into));
            }
            if !self.over && self.connection.as_mut().poll(context).is_ready() {
                self.over = true;
            }
            match answer.as_mut().poll(context) {
                Poll::Ready(answer) => Poll::Ready(answer.map_err(Into::into)),
                Poll::Pending if self.over => Poll::Ready(Err(LinkError::Closed)),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// The next data of an answer's body; `None` at its end.
    pub(crate) fn poll_data(
        &mut self,
        body: &mut Incoming,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, LinkError>> {
        if let Poll::Ready(data) = poll_body(body, context) {
            return Poll::Ready(data);
        }
        self.drive(context);
        match poll_body(body, context) {
            Poll::Pending if self.over => Poll::Ready(Err(LinkError::Closed)),
            data => data,
        }
    }

    fn drive(&mut self, context: &mut Context<'_>) {
        // Its errors reach the body or the answer, where they belong.
        if !self.over && self.connection.as_mut().poll(context).is_ready() {
            self.over = true;
        }
    }
}

pub(super) fn poll_body(body: &mut Incoming, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, LinkError>> {
    loop {
        match Pin::new(&mut *body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                // Trailers are of no use to us.
                if let Ok(data) = frame.into_data() {
                    return Poll::Ready(Ok(Some(data)));
                }
            }
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error.into())),
            Poll::Ready(None) => return Poll::Ready(Ok(None)),
            Poll::Pending => return Poll::Pending,
        }
    }
}
