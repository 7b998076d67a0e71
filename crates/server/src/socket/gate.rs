//! Between the network and the framing: it reads the lengths in the frames' heads, so that a message that is too
//! large is refused before it comes, counts what comes of the others as it comes (what is announced and does not come takes
//! address space, and no memory), and never lets a read go beyond the frame that it is in, so that between two
//! frames nothing waits in the framing's own buffer. It changes no byte and judges no frame.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::body::{BODY_GRACE, BODY_RATE, Budget, Share};
use crate::error::ApiError;

/// The longest head of a frame.
const LONGEST_HEAD: usize = 14;

/// What is read at once where a frame may begin: a small message is one read.
const AHEAD: usize = 2048;

/// A connection's bytes, frame by frame.
#[derive(Debug)]
pub(super) struct Gate<S> {
    stream: S,
    budget: Arc<Budget>,
    /// The largest message.
    limit: usize,
    /// Read and not handed on. Its memory is given back when it is empty.
    ahead: BytesMut,
    /// What of the frame under way was not handed on.
    left: u64,
    /// Whether it is a part of a message.
    is_data: bool,
    message: Option<Message>,
    /// Why a message was not let in.
    refused: Option<ApiError>,
    /// When something was last read.
    heard: Instant,
}

/// A message of which a part has come.
#[derive(Debug)]
struct Message {
    share: Share,
    /// What its frames have announced so far.
    announced: usize,
    /// What of that has come.
    received: usize,
    began: Instant,
}

/// A frame's head, as far as it matters here.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    bytes: usize,
    payload: u64,
    is_data: bool,
}

impl<S> Gate<S> {
    pub(super) fn new(stream: S, budget: Arc<Budget>, limit: usize) -> Self {
        let (ahead, heard) = (BytesMut::new(), Instant::now());
        Self { stream, budget, limit, ahead, left: 0, is_data: false, message: None, refused: None, heard }
    }

    pub(super) fn stream(&mut self) -> &mut S {
        &mut self.stream
    }

    /// A whole message was taken out: it is no longer this gate's to pay for.
    pub(super) fn taken(&mut self) -> Option<Share> {
        self.message.take().map(|message| message.share)
    }

    /// Whether a part of a frame or of a message has come.
    pub(super) const fn is_within(&self) -> bool {
        self.left > 0 || self.message.is_some()
    }

    pub(super) fn take_refused(&mut self) -> Option<ApiError> {
        self.refused.take()
    }

    /// How long nothing has been read.
    pub(super) fn silence(&self) -> Duration {
        self.heard.elapsed()
    }

    /// Whether a message takes longer than a request's body may.
    pub(super) fn is_late(&self) -> bool {
        let earned = |message: &Message| BODY_GRACE + Duration::from_secs((message.received / BODY_RATE) as u64);
        self.message.as_ref().is_some_and(|message| message.began.elapsed() > earned(message))
    }

    /// A frame begins.
    fn enter(&mut self, head: &Head) -> io::Result<()> {
        self.left = head.bytes as u64 + head.payload;
        self.is_data = head.is_data;
        if !head.is_data {
            return Ok(());
        }
        let new = || Message { share: Share::new(&self.budget), announced: 0, received: 0, began: Instant::now() };
        let message = self.message.get_or_insert_with(new);
        let payload = usize::try_from(head.payload).unwrap_or(usize::MAX);
        message.announced = message.announced.saturating_add(payload);
        if message.announced > self.limit {
            return Err(self.refuse(ApiError::too_large(self.limit)));
        }
        let expected = message.share.expects(message.announced);
        expected.map_err(|error| self.refuse(error))
    }

    /// So much of the frame is handed on; what of it is a message takes memory from now on.
    fn handed_on(&mut self, count: usize) -> io::Result<()> {
        self.left -= count as u64;
        let Some(message) = self.message.as_mut().filter(|_| self.is_data) else { return Ok(()) };
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        message.received = message.announced.saturating_sub(left);
        let paid = message.share.grow_to(message.received);
        paid.map_err(|error| self.refuse(error))
    }

    fn refuse(&mut self, error: ApiError) -> io::Error {
        self.refused = Some(error);
        io::Error::other("there is no room for the message")
    }
}

impl<S: AsyncRead + Unpin> Gate<S> {
    /// Reads until the head of the next frame is there. False at the end of the stream.
    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        loop {
            if let Some(head) = Head::read(&self.ahead) {
                return Poll::Ready(self.enter(&head).map(|()| true));
            }
            // A stretch of the stack, so that a connection that waits holds no memory for it.
            let mut space = [0; AHEAD];
            let mut read = ReadBuf::new(&mut space);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(Ok(false));
            }
            self.heard = Instant::now();
            self.ahead.extend_from_slice(read.filled());
        }
    }

    /// Hands on what was read ahead of the frame under way.
    fn hand_on(&mut self, buf: &mut ReadBuf<'_>) -> io::Result<bool> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let count = self.ahead.len().min(buf.remaining()).min(most);
        if count == 0 {
            return Ok(false);
        }
        buf.put_slice(&self.ahead[..count]);
        self.ahead.advance(count);
        if self.ahead.is_empty() {
            self.ahead = BytesMut::new();
        }
        self.handed_on(count).map(|()| true)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gate<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.left == 0 && !ready!(self.poll_head(cx))? {
            return Poll::Ready(Ok(()));
        }
        if self.hand_on(buf)? {
            return Poll::Ready(Ok(()));
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buf.remaining());
        let mut part = ReadBuf::new(buf.initialize_unfilled_to(most));
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut part))?;
        let count = part.filled().len();
        if count > 0 {
            self.heard = Instant::now();
        }
        buf.advance(count);
        Poll::Ready(self.handed_on(count))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gate<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl Head {
    /// The head that these bytes begin with, if it is whole.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (first, second) = (*bytes.first()?, *bytes.get(1)?);
        let masked = second & 0x80 != 0;
        let (length, payload) = match second & 0x7f {
            126 => (4, u64::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?))),
            127 => (10, u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?)),
            short => (2, u64::from(short)),
        };
        let head = length + if masked { 4 } else { 0 };
        debug_assert!(head <= LONGEST_HEAD, "the longest head is that long");
        let whole = bytes.len() >= head;
        let payload = payload.min(u64::MAX >> 1);
        whole.then_some(Self { bytes: head, payload, is_data: first & 0x08 == 0 })
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[test]
    fn heads_say_how_long_their_frames_are() {
        let of = |bytes: &[u8]| Head::read(bytes).map(|head| (head.bytes, head.payload, head.is_data));
        for (bytes, expected) in [
            (&[0x81][..], None),
            (&[0x81, 0x05], Some((2, 5, true))),
            (&[0x81, 0x85, 1, 2, 3], None),
            (&[0x81, 0x85, 1, 2, 3, 4], Some((6, 5, true))),
            (&[0x89, 0x80, 1, 2, 3, 4], Some((6, 0, false))),
            (&[0x81, 0xfe, 1], None),
            (&[0x81, 0xfe, 1, 0, 1, 2, 3, 4], Some((8, 256, true))),
            (&[0x80, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0], Some((10, 65_536, true))),
            (&[0x82, 0x7f, 255, 255, 255, 255, 255, 255, 255, 255], Some((10, u64::MAX >> 1, true))),
        ] {
            assert_eq!(of(bytes), expected, "{bytes:?}");
        }
    }

    /// Two frames in one write: no read goes beyond the first, and both are paid for until they are taken.
    #[tokio::test]
    async fn a_read_stays_in_its_frame_and_a_message_is_paid_for() {
        let (mut client, server) = tokio::io::duplex(1024);
        let budget = Budget::new(8);
        let mut gate = Gate::new(server, Arc::clone(&budget), 8);
        client.write_all(&[0x01, 0x03, b'a', b'b', b'c', 0x89, 0x00, 0x80, 0x02, b'd', b'e']).await.unwrap();
        let mut space = [0; 64];
        for (expected, paid) in [(&b"\x01\x03abc"[..], 3), (b"\x89\x00", 3), (b"\x80\x02de", 5)] {
            let count = gate.read(&mut space).await.unwrap();
            assert_eq!((&space[..count], budget.used()), (expected, paid));
        }
        drop(gate.taken());
        assert_eq!(budget.used(), 0);
        // What is too large, alone or with what came before it, and what there is no room for.
        for (bytes, elsewhere, status) in [
            (&[0x81, 0x09][..], 0, 413),
            (&[0x01, 0x05, 1, 2, 3, 4, 5, 0x80, 0x04], 0, 413),
            (&[0x81, 0x07, 1, 2, 3, 4, 5, 6, 7], 2, 503),
        ] {
            let (mut client, server) = tokio::io::duplex(1024);
            let mut gate = Gate::new(server, Arc::clone(&budget), 8);
            let _elsewhere = budget.reserve(elsewhere).unwrap();
            client.write_all(bytes).await.unwrap();
            while gate.read(&mut space).await.is_ok() {}
            assert_eq!(gate.take_refused().unwrap().status.as_u16(), status, "{bytes:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_has_as_long_as_a_body_has() {
        let (mut client, server) = tokio::io::duplex(1024);
        let mut gate = Gate::new(server, Budget::new(100), 100);
        // What is announced earns no time.
        client.write_all(&[0x89, 0x00, 0x01, 0x50, b'a', b'b']).await.unwrap();
        let mut space = [0; 64];
        assert_eq!(gate.read(&mut space).await.unwrap(), 2);
        tokio::time::advance(BODY_GRACE * 2).await;
        assert!(!gate.is_late(), "nothing of a message has come");
        assert_eq!(gate.read(&mut space).await.unwrap(), 4);
        tokio::time::advance(BODY_GRACE).await;
        assert!(!gate.is_late());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(gate.is_late());
        assert!(gate.silence() >= BODY_GRACE);
        gate.taken();
        assert!(!gate.is_late());
    }
}
