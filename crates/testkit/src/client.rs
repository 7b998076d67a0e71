//! A small HTTP client for tests: whole answers, or a stream chunk by chunk. It follows nothing, retries
//! nothing and uses no proxy, so that a test sees what the server did.

use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::Value;

#[derive(Debug, Clone)]
pub struct Client(reqwest::Client);

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// An answer whose body is still coming; dropping it closes the connection.
#[derive(Debug)]
pub struct Streaming {
    pub status: u16,
    pub headers: HeaderMap,
    response: reqwest::Response,
}

impl Client {
    pub fn new() -> Result<Self> {
        Self::with_patience(Duration::from_secs(30))
    }

    /// One that waits so long for the next bytes.
    pub fn with_patience(patience: Duration) -> Result<Self> {
        let client = reqwest::Client::builder()
            .no_proxy()
            .http1_only()
            .tcp_nodelay(true)
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_secs(5))
            // A test that hangs should fail by itself, and say where.
            .read_timeout(patience)
            .build()?;
        Ok(Self(client))
    }

    pub async fn get(&self, url: &str) -> Result<Answer> {
        self.request(Method::GET, url, &[], Bytes::new()).await
    }

    pub async fn post_json(&self, url: &str, body: &Value) -> Result<Answer> {
        self.request(Method::POST, url, &[("content-type", "application/json")], body.to_string()).await
    }

    /// Like [`Client::post_json`], returning once the head is there.
    pub async fn post_stream(&self, url: &str, body: &Value) -> Result<Streaming> {
        self.open(Method::POST, url, &[("content-type", "application/json")], body.to_string()).await
    }

    /// Any request, whole.
    pub async fn request(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Answer> {
        self.open(method, url, headers, body).await?.collect().await
    }

    /// Any request, up to the head of the answer.
    pub async fn open(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Streaming> {
        let mut request = self.0.request(method, url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.body(body.into()).send().await?;
        Ok(Streaming { status: response.status().as_u16(), headers: response.headers().clone(), response })
    }
}

impl Answer {
    /// The body as JSON; `Null` when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

impl Streaming {
    /// The next piece of the body as it came from the socket; `None` at its proper end.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        Ok(self.response.chunk().await?)
    }

    /// Reads until the body contains `needle`; gives all that was read.
    pub async fn read_until(&mut self, needle: &str) -> Result<Vec<u8>> {
        let mut read = Vec::new();
        while let Some(chunk) = self.next().await? {
            read.extend_from_slice(&chunk);
            if read.windows(needle.len()).any(|window| window == needle.as_bytes()) {
                return Ok(read);
            }
        }
        anyhow::bail!("the stream ended before {needle:?}: {}", String::from_utf8_lossy(&read))
    }

    pub async fn collect(self) -> Result<Answer> {
        Ok(Answer { status: self.status, headers: self.headers, body: self.response.bytes().await? })
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}
