//! A connection's socket that does not wait for ever for its client, neither to read nor to ask.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::pause::Pause;
use super::stall::Stalling;

#[derive(Debug)]
pub(super) struct Socket {
    stream: Stalling<TcpStream>,
    pause: Pause,
}

impl Socket {
    pub(super) fn new(stream: TcpStream, stall: Duration, pause: Pause) -> Self {
        Self { stream: Stalling::new(stream, stall), pause }
    }

    /// The first byte that the client sends, which stays to be read; None if there is none.
    pub(super) async fn first_byte(&self) -> io::Result<Option<u8>> {
        let mut first = [0];
        let length = self.stream.stream().peek(&mut first).await?;
        Ok((length > 0).then_some(first[0]))
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if read.is_ready() {
            if buf.filled().len() > before {
                self.pause.heard();
            }
            return read;
        }
        // What was answered is not on its way yet.
        if self.stream.is_waiting() {
            return Poll::Pending;
        }
        let Self { stream, pause } = &mut *self;
        pause.poll_end(cx, stream.stream())
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
