//! The messages of one WebSocket: framing, pings, and its end. It knows nothing of what they say.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Sink, Stream};
use http::StatusCode;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use super::gate::Gate;
use crate::body::{Budget, Share};
use crate::error::ApiError;

/// What is read at once of a long message. Every connection has such a buffer, so it is small.
const READ: usize = 4096;

/// What is gathered before it is written.
const WRITE: usize = 16 << 10;

/// What may wait for a client that does not read, before nothing more is read from it.
const UNSENT: usize = 64 << 10;

/// After a message of this size the buffers are made anew: they never shrink by themselves.
const LARGE: usize = 64 << 10;

/// Pings and pongs that a client may send without saying anything.
const MOST_PINGS: u32 = 1000;

/// How long the other side may take to say goodbye.
const FAREWELL: Duration = Duration::from_secs(1);

type Framed = WebSocketStream<Gate<TokioIo<Upgraded>>>;

/// A WebSocket.
pub(super) struct Channel {
    framed: Framed,
    limit: usize,
    outgoing: VecDeque<Message>,
    unsent: usize,
    /// Whether something was written that may not have left yet.
    unflushed: bool,
    /// Whether the buffers have grown.
    grown: bool,
    pings: u32,
}

/// What a client sent.
pub(super) enum Received {
    /// A text, and what it is paid with.
    Text(Bytes, Option<Share>),
    /// The connection cannot go on.
    Over(Over),
}

/// Why a connection ends.
pub(super) enum Over {
    /// The client is gone, or says goodbye itself.
    Gone,
    /// It gets an error first, where it could do something about it.
    Closed(CloseCode, &'static str, Option<ApiError>),
}

impl Channel {
    pub(super) async fn new(stream: TokioIo<Upgraded>, budget: Arc<Budget>, limit: usize) -> Self {
        let framed = framed(Gate::new(stream, budget, limit), limit).await;
        let outgoing = VecDeque::new();
        Self { framed, limit, outgoing, unsent: 0, unflushed: false, grown: false, pings: 0 }
    }

    /// Queues a message; it leaves when the channel is polled.
    pub(super) fn say(&mut self, text: Bytes) {
        // What is sent is JSON that we wrote.
        let Ok(text) = Utf8Bytes::try_from(text) else { return };
        self.unsent += text.len();
        self.grown |= text.len() > LARGE;
        self.outgoing.push_back(Message::Text(text));
    }

    /// Looks whether the client is still there; called every `ping`.
    pub(super) fn look(&mut self, ping: Duration) -> Result<(), Over> {
        self.pings = 0;
        let (silence, late) = (self.framed.get_ref().silence(), self.framed.get_ref().is_late());
        if late {
            return Err(Over::Closed(CloseCode::Policy, "the message did not arrive in time", None));
        }
        if silence >= ping * 3 {
            return Err(Over::Gone);
        }
        if silence >= ping {
            self.outgoing.push_back(Message::Ping(Bytes::new()));
        }
        Ok(())
    }

    /// Writes what waits. Ready when all of it has left.
    pub(super) fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Over>> {
        while !self.outgoing.is_empty() {
            ready!(Pin::new(&mut self.framed).poll_ready(cx)).map_err(|_| Over::Gone)?;
            let Some(message) = self.outgoing.pop_front() else { break };
            self.unsent -= if message.is_text() { message.len() } else { 0 };
            self.unflushed = true;
            Pin::new(&mut self.framed).start_send(message).map_err(|_| Over::Gone)?;
            if self.outgoing.is_empty() {
                self.outgoing = VecDeque::new();
            }
        }
        if self.unflushed {
            ready!(Pin::new(&mut self.framed).poll_flush(cx)).map_err(|_| Over::Gone)?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    /// The next message. A client that takes nothing of what is said to it is not listened to either.
    pub(super) fn poll_received(&mut self, cx: &mut Context<'_>) -> Poll<Received> {
        loop {
            if self.unsent > UNSENT {
                return Poll::Pending;
            }
            let Some(message) = ready!(Pin::new(&mut self.framed).poll_next(cx)) else {
                return Poll::Ready(Received::Over(Over::Gone));
            };
            let over = match message {
                Ok(Message::Text(text)) => {
                    let share = self.framed.get_mut().taken();
                    self.grown |= text.len() > LARGE;
                    self.pings = 0;
                    return Poll::Ready(Received::Text(text.into(), share));
                }
                Ok(Message::Binary(_)) => {
                    Over::Closed(CloseCode::Unsupported, "only text messages are understood", None)
                }
                Ok(Message::Ping(_) | Message::Pong(_)) => {
                    self.pings += 1;
                    if self.pings <= MOST_PINGS {
                        continue;
                    }
                    Over::Closed(CloseCode::Policy, "too many pings", None)
                }
                Ok(Message::Close(_)) => Over::Gone,
                Ok(Message::Frame(_)) => continue,
                Err(error) => self.broken(&error),
            };
            return Poll::Ready(Received::Over(over));
        }
    }

    /// What to say about frames that cannot be read.
    fn broken(&mut self, error: &Error) -> Over {
        tracing::debug!(%error, "a WebSocket cannot go on");
        match self.framed.get_mut().take_refused() {
            Some(refused) if refused.status == StatusCode::PAYLOAD_TOO_LARGE => {
                return Over::Closed(CloseCode::Size, "the message is too large", Some(refused));
            }
            Some(refused) => {
                return Over::Closed(CloseCode::Again, "the server has no room for the message", Some(refused));
            }
            None => {}
        }
        match error {
            Error::Capacity(_) => Over::Closed(CloseCode::Size, "the message is too large", None),
            Error::Utf8(_) => Over::Closed(CloseCode::Invalid, "the message is not UTF-8", None),
            Error::Protocol(_) => Over::Closed(CloseCode::Protocol, "the frame is not as the protocol wants it", None),
            _ => Over::Gone,
        }
    }

    /// Whether the buffers hold the memory of large messages, and nothing else.
    pub(super) fn is_bloated(&self) -> bool {
        self.grown && !self.framed.get_ref().is_within() && self.outgoing.is_empty() && !self.unflushed
    }

    /// The same channel with new buffers.
    pub(super) async fn shrunk(mut self) -> Self {
        self.grown = false;
        self.framed = framed(self.framed.into_inner(), self.limit).await;
        self
    }

    /// Says goodbye, and waits a moment for the other side to do so: whatever still comes is read, or the goodbye may
    /// be lost with it.
    pub(super) async fn close(mut self, code: CloseCode, reason: &'static str) {
        let farewell = async {
            poll_fn(|cx| self.poll_sent(cx)).await.map_err(drop)?;
            let frame = CloseFrame { code, reason: Utf8Bytes::from_static(reason) };
            self.framed.close(Some(frame)).await.map_err(drop)?;
            self.framed.get_mut().stream().shutdown().await.map_err(drop)?;
            let mut rest = vec![0; READ];
            while self.framed.get_mut().stream().read(&mut rest).await.map_err(drop)? > 0 {}
            Ok::<(), ()>(())
        };
        let _ = tokio::time::timeout(FAREWELL, farewell).await;
    }

    /// The client has said goodbye, or is gone.
    pub(super) async fn end(mut self) {
        let _ = tokio::time::timeout(FAREWELL, poll_fn(|cx| Pin::new(&mut self.framed).poll_flush(cx))).await;
    }
}

async fn framed(gate: Gate<TokioIo<Upgraded>>, limit: usize) -> Framed {
    let config = WebSocketConfig::default()
        .read_buffer_size(READ)
        .write_buffer_size(WRITE)
        .max_message_size(Some(limit))
        .max_frame_size(Some(limit));
    WebSocketStream::from_raw_socket(gate, Role::Server, Some(config)).await
}
