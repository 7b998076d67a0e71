//! One connection: reads requests by hand, plays their scripts, and notices at every moment that the peer is
//! gone.

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Fate, Received, Shared};
use crate::Script;
use crate::script::{Framing, Head, Step};

/// Serves until one side closes; gives the indices of the requests that this connection carried.
pub(super) async fn serve(stream: TcpStream, number: usize, shared: &Shared) -> (Vec<usize>, Fate) {
    let mut connection = Connection { stream, buffer: BytesMut::new() };
    let mut requests = Vec::new();
    connection.stream.set_nodelay(true).ok();
    while let Ok(received) = connection.read_request(number).await {
        let (index, script) = shared.arrive(received);
        requests.push(index);
        match connection.play(&script).await {
            Ok(Played::KeepAlive) => {}
            Ok(Played::Closed) => return (requests, Fate::WeClosed),
            Err(_) => break,
        }
    }
    (requests, Fate::PeerClosed)
}

struct Connection {
    stream: TcpStream,
    /// Bytes read and not used yet.
    buffer: BytesMut,
}

enum Played {
    KeepAlive,
    Closed,
}

// === requests ===

impl Connection {
    async fn read_request(&mut self, connection: usize) -> io::Result<Received> {
        let (method, path) = {
            let line = self.line().await?;
            let mut words = line.split(' ');
            (words.next().unwrap_or_default().to_owned(), words.next().unwrap_or_default().to_owned())
        };
        let headers = self.read_headers().await?;
        if headers.get("expect").is_some() {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let body = if text("transfer-encoding").is_some_and(|coding| coding.contains("chunked")) {
            self.read_chunked().await?
        } else {
            let length = text("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
            self.take(length).await?
        };
        Ok(Received { method, path, headers, body, connection })
    }

    async fn read_headers(&mut self) -> io::Result<HeaderMap> {
        let mut headers = HeaderMap::new();
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                return Ok(headers);
            }
            let (name, value) = line.split_once(':').ok_or(io::ErrorKind::InvalidData)?;
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(io::Error::other)?;
            headers.append(name, HeaderValue::from_str(value.trim()).map_err(io::Error::other)?);
        }
    }

    async fn read_chunked(&mut self) -> io::Result<Bytes> {
        let mut body = BytesMut::new();
        loop {
            let line = self.line().await?;
            let digits = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(digits, 16).map_err(io::Error::other)?;
            body.extend_from_slice(&self.take(size).await?);
            // After a chunk this is its line end; after the last one, the end of (no) trailers.
            self.line().await?;
            if size == 0 {
                return Ok(body.freeze());
            }
        }
    }

    async fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|&byte| byte == b'\n') {
                let line = self.buffer.split_to(end + 1);
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            self.fill().await?;
        }
    }

    async fn take(&mut self, count: usize) -> io::Result<Bytes> {
        while self.buffer.remaining() < count {
            self.fill().await?;
        }
        Ok(self.buffer.split_to(count).freeze())
    }

    async fn fill(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

// === answers ===

impl Connection {
    /// An error means that the peer is gone.
    async fn play(&mut self, script: &Script) -> io::Result<Played> {
        self.write_head(script).await?;
        for step in &script.steps {
            match step {
                Step::Send(bytes) => self.write_body(script, bytes).await?,
                Step::Delay(duration) => self.hold(Some(*duration)).await?,
                Step::Stall => self.hold(None).await?,
                Step::Cut => {
                    self.stream.shutdown().await?;
                    return Ok(Played::Closed);
                }
                Step::Reset => {
                    self.stream.set_zero_linger()?;
                    return Ok(Played::Closed);
                }
            }
        }
        match script.head {
            Head::Http { framing: Framing::Chunked, .. } => self.stream.write_all(b"0\r\n\r\n").await?,
            Head::Http { framing: Framing::Length, .. } => {}
            Head::Raw => return Ok(Played::Closed),
        }
        Ok(Played::KeepAlive)
    }

    async fn write_head(&mut self, script: &Script) -> io::Result<()> {
        let Head::Http { status, headers, framing } = &script.head else { return Ok(()) };
        let lines: String =
            headers.iter().map(|(name, value)| [name.as_str(), ": ", value.as_str(), "\r\n"].concat()).collect();
        let framing = match framing {
            Framing::Chunked => "transfer-encoding: chunked".to_owned(),
            Framing::Length => format!("content-length: {}", script.body_length()),
        };
        let head = format!("HTTP/1.1 {status} Scripted\r\n{lines}{framing}\r\n\r\n");
        self.stream.write_all(head.as_bytes()).await
    }

    async fn write_body(&mut self, script: &Script, bytes: &[u8]) -> io::Result<()> {
        if !matches!(script.head, Head::Http { framing: Framing::Chunked, .. }) {
            return self.stream.write_all(bytes).await;
        }
        // An empty chunk would end the body.
        if bytes.is_empty() {
            return Ok(());
        }
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.stream.write_all(&chunk).await
    }

    /// Waits, for ever or for this long, and fails as soon as the peer has closed.
    async fn hold(&mut self, duration: Option<std::time::Duration>) -> io::Result<()> {
        let peer_gone = async {
            loop {
                if let Err(error) = self.fill().await {
                    return error;
                }
            }
        };
        match duration {
            None => Err(peer_gone.await),
            Some(duration) => match tokio::time::timeout(duration, peer_gone).await {
                Ok(error) => Err(error),
                Err(_elapsed) => Ok(()),
            },
        }
    }
}
