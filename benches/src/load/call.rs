//! One keep-alive connection and one call on it, timed.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use memchr::memmem;
use tokio::net::TcpStream;

use crate::chunks::LAST_WORD;

/// How a text delta looks, on either API.
const DELTAS: [&[u8]; 2] = [b"\"delta\":{\"content\":\" ", b"event: response.output_text.delta"];

pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    uri: Uri,
}

/// What one call took.
pub(super) struct Sample {
    pub(super) total: Duration,
    /// None when nothing was streamed.
    pub(super) first_delta: Option<Duration>,
    /// The longest silence between two deltas. Not up to the end: a gateway may say nothing about the
    /// upstream's last chunks until it has all of them.
    pub(super) max_gap: Duration,
}

impl Connection {
    pub(super) async fn open(url: &str) -> Result<Self> {
        let uri: Uri = url.parse()?;
        let authority = uri.authority().context("no host in the URL")?.as_str();
        let stream = TcpStream::connect(authority).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self { sender, uri })
    }

    /// A whole call; fails unless the answer is all there.
    pub(super) async fn call(&mut self, body: Bytes) -> Result<Sample> {
        let started = Instant::now();
        let mut answer = self.send(body).await?;
        let mut read = Vec::new();
        let (mut first_delta, mut max_gap, mut last) = (None, Duration::ZERO, started);
        while let Some(frame) = answer.body_mut().frame().await {
            let now = Instant::now();
            let Ok(data) = frame?.into_data() else { continue };
            read.extend_from_slice(&data);
            if first_delta.is_none() && has_delta(&read) {
                first_delta = Some(now - started);
                last = now;
            } else if first_delta.is_some() && has_delta(&data) {
                max_gap = max_gap.max(now - last);
                last = now;
            }
        }
        let whole = memmem::find(&read, LAST_WORD.as_bytes()).is_some();
        ensure!(answer.status().is_success() && whole, "{}: {}", answer.status(), String::from_utf8_lossy(&read));
        Ok(Sample { total: started.elapsed(), first_delta, max_gap })
    }

    /// A call whose answer is read and not looked at; how long it took.
    pub(super) async fn exchange(&mut self, body: Bytes) -> Result<Duration> {
        let started = Instant::now();
        let answer = self.send(body).await?;
        ensure!(answer.status().is_success(), "{}", answer.status());
        answer.into_body().collect().await?;
        Ok(started.elapsed())
    }

    /// Reads until the first delta; the stream stays open as long as what is returned lives.
    pub(super) async fn first_delta(&mut self, body: Bytes) -> Result<Response<Incoming>> {
        let mut answer = self.send(body).await?;
        let mut read = Vec::new();
        while !has_delta(&read) {
            let frame = answer.body_mut().frame().await;
            let frame = frame.with_context(|| format!("no delta in {}", String::from_utf8_lossy(&read)))?;
            if let Ok(data) = frame?.into_data() {
                read.extend_from_slice(&data);
            }
        }
        Ok(answer)
    }

    async fn send(&mut self, body: Bytes) -> Result<Response<Incoming>> {
        let host = self.uri.authority().map_or("", |authority| authority.as_str());
        let request = Request::post(self.uri.path())
            .header("host", host)
            .header("content-type", "application/json")
            .header("authorization", crate::load::BEARER)
            .body(Full::new(body))?;
        self.sender.ready().await?;
        Ok(self.sender.send_request(request).await?)
    }
}

fn has_delta(read: &[u8]) -> bool {
    DELTAS.iter().any(|delta| memmem::find(read, delta).is_some())
}
