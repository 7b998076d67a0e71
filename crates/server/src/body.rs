//! Bodies: reading requests with caps, and the two kinds of answers.

use std::convert::Infallible;
use std::io::Read;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderMap, header};
use http_body::Frame;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::Instant;

use wire::json::{FromRaw, Raw};

use crate::error::{ApiError, clip};

/// A body may take this long, and a second more for each of its KiB: who is slower holds a connection for nothing.
const BODY_GRACE: Duration = Duration::from_secs(10);
const BODY_RATE: usize = 1024;

/// The largest zstd window: 8 MiB. A larger one is a way to make us allocate.
const ZSTD_WINDOW_LOG: u32 = 23;

/// The whole body of a request that says it is JSON, or says nothing about it.
pub(crate) async fn read_json(headers: &HeaderMap, incoming: Incoming, limit: usize) -> Result<Bytes, ApiError> {
    if let Some(value) = headers.get(header::CONTENT_TYPE) {
        let name = value.to_str().unwrap_or("?").split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if name != "application/json" && !name.ends_with("+json") {
            return Err(ApiError::unsupported_content_type(&clip(&name)));
        }
    }
    read(headers, incoming, limit).await
}

/// The request that the body is.
pub(crate) fn parse<'a, T: FromRaw<'a>>(bytes: &'a Bytes) -> Result<T, ApiError> {
    let text = str::from_utf8(bytes).map_err(|error| {
        let message = format!("The request body is not valid UTF-8 (byte {}).", error.valid_up_to());
        ApiError::bad_request("invalid_utf8", message)
    })?;
    let raw = Raw::parse(text).map_err(|error| {
        let message = format!("We could not parse the JSON body of your request: {error}.");
        ApiError::bad_request("invalid_json", message)
    })?;
    T::from_raw(raw).map_err(|mut invalid| {
        if invalid.path.is_empty() {
            invalid = invalid.at("body");
        }
        ApiError::from(invalid)
    })
}

/// The whole request body, decoded, or why not.
async fn read(headers: &HeaderMap, mut incoming: Incoming, limit: usize) -> Result<Bytes, ApiError> {
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|length| length > limit) {
        return Err(ApiError::too_large(limit));
    }
    // A length that is not kept to costs address space, not memory.
    let mut body = Vec::with_capacity(declared.unwrap_or(8 * 1024));
    let began = Instant::now();
    loop {
        let earned = Duration::from_secs((body.len() / BODY_RATE) as u64);
        let frame = tokio::time::timeout_at(began + BODY_GRACE + earned, incoming.frame()).await;
        let frame = frame.map_err(|_| ApiError::request_timeout())?;
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|_| ApiError::bad_request("request_aborted", "The request body broke off."))?;
        let Ok(data) = frame.into_data() else { continue };
        if body.len() + data.len() > limit {
            return Err(ApiError::too_large(limit));
        }
        body.extend_from_slice(&data);
    }
    decode(headers, body, limit)
}

fn decode(headers: &HeaderMap, body: Vec<u8>, limit: usize) -> Result<Bytes, ApiError> {
    let encoding = headers.get(header::CONTENT_ENCODING).map_or("identity", |value| value.to_str().unwrap_or("?"));
    match encoding.trim().to_ascii_lowercase().as_str() {
        "" | "identity" => Ok(body.into()),
        "gzip" | "x-gzip" => inflate(flate2::read::MultiGzDecoder::new(body.as_slice()), "gzip", limit),
        "zstd" => {
            let mut decoder = zstd::Decoder::new(body.as_slice()).map_err(|_| broken("zstd"))?;
            decoder.window_log_max(ZSTD_WINDOW_LOG).map_err(|_| broken("zstd"))?;
            inflate(decoder, "zstd", limit)
        }
        other => {
            let message = format!("Unsupported content encoding '{other}'. Supported: gzip, zstd.");
            Err(ApiError::bad_request("unsupported_content_encoding", message))
        }
    }
}

fn inflate(decoder: impl Read, name: &str, limit: usize) -> Result<Bytes, ApiError> {
    let mut body = Vec::new();
    let cap = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    decoder.take(cap).read_to_end(&mut body).map_err(|_| broken(name))?;
    if body.len() > limit { Err(ApiError::too_large(limit)) } else { Ok(body.into()) }
}

fn broken(encoding: &str) -> ApiError {
    ApiError::bad_request("invalid_content_encoding", format!("The request body is not valid {encoding}."))
}

type Frames = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// An answer's body: whole, or pulled by hyper frame by frame.
pub(crate) struct Body(Kind);

enum Kind {
    Full(Option<Bytes>),
    Stream(Frames),
}

impl Body {
    pub(crate) fn full(bytes: Bytes) -> Self {
        Self(Kind::Full((!bytes.is_empty()).then_some(bytes)))
    }

    pub(crate) fn stream(frames: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self(Kind::Stream(Box::pin(frames)))
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            Kind::Full(_) => "Body::Full",
            Kind::Stream(_) => "Body::Stream",
        })
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Kind::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Stream(frames) => frames.as_mut().poll_next(cx).map(|next| next.map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Kind::Full(None))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match &self.0 {
            Kind::Full(bytes) => http_body::SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Kind::Stream(_) => http_body::SizeHint::default(),
        }
    }
}
