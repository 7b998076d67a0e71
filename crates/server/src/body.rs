//! Bodies: reading requests with caps, and the two kinds of answers.

mod budget;

use std::convert::Infallible;
use std::io::Read;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderMap, StatusCode, header};
use http_body::Frame;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::Instant;

use wire::json::{FromRaw, Raw};

use crate::account::Account;
use crate::delivery::{Pace, Running};
use crate::error::{ApiError, Code, clip};
use crate::metrics::{OpenStream, StreamKind};
pub(crate) use budget::{Budget, Room, Share};

/// A body may take this long, and a second more for each of its KiB: who is slower holds a connection for nothing.
pub(crate) const BODY_GRACE: Duration = Duration::from_secs(10);
pub(crate) const BODY_RATE: usize = 1024;

/// The largest zstd window: 8 MiB. A larger one is a way to make us allocate.
const ZSTD_WINDOW_LOG: u32 = 23;

/// How much of a body is inflated before the budget is asked for more.
const STEP: usize = 64 * 1024;

/// Agents send fewer objects, and fewer values in all. Each one more is taken to need so much: a list of many small items
/// becomes far more than its text.
const FEW_OBJECTS: usize = 4096;
const OBJECT: usize = 1024;
const FEW_VALUES: usize = 65_536;
const VALUE: usize = 64;
/// What is shorter becomes nothing worth counting.
const SHORT: usize = 4 * FEW_OBJECTS;

/// Frames of a whole answer are of this size: how fast a client takes them can be seen.
const FRAME: usize = 64 * 1024;

/// How large a body may be, and all of them together.
#[derive(Debug)]
pub(crate) struct Limits {
    pub(crate) body: usize,
    pub(crate) budget: Arc<Budget>,
}

/// The whole body of a request that says it is JSON. One that says nothing may be empty: every web page can have a
/// browser send a body without a type, and none can have it send one as JSON unasked.
pub(crate) async fn read_json(headers: &HeaderMap, incoming: Incoming, limits: &Limits) -> Result<Bytes, ApiError> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        let nothing = Limits { body: 0, budget: Arc::clone(&limits.budget) };
        let unsaid = |error: ApiError| match error.status {
            StatusCode::PAYLOAD_TOO_LARGE => ApiError::unsupported_content_type(""),
            _ => error,
        };
        return read(headers, incoming, &nothing).await.map_err(unsaid);
    };
    let name = value.to_str().unwrap_or("?").split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if name != "application/json" && !name.ends_with("+json") {
        return Err(ApiError::unsupported_content_type(&clip(&name)));
    }
    read(headers, incoming, limits).await
}

/// The request that the body is.
pub(crate) fn parse<'a, T: FromRaw<'a>>(bytes: &'a Bytes) -> Result<T, ApiError> {
    let text = str::from_utf8(bytes).map_err(|error| {
        let message = format!("The request body is not valid UTF-8 (byte {}).", error.valid_up_to());
        ApiError::bad_request(Code::InvalidUtf8, message)
    })?;
    let raw = Raw::parse(text).map_err(|error| {
        let message = format!("We could not parse the JSON body of your request: {error}.");
        ApiError::bad_request(Code::InvalidJson, message)
    })?;
    T::from_raw(raw).map_err(|invalid| {
        if invalid.path.is_empty() { ApiError::invalid_body(invalid) } else { ApiError::from(invalid) }
    })
}

/// The whole request body, decoded, or why not.
async fn read(headers: &HeaderMap, mut incoming: Incoming, limits: &Limits) -> Result<Bytes, ApiError> {
    let limit = limits.body;
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|length| length > limit) {
        return Err(ApiError::too_large(limit));
    }
    // A length that is not kept to costs address space, not memory.
    let mut body = Vec::with_capacity(declared.unwrap_or(8 * 1024));
    let mut share = Share::new(&limits.budget);
    share.expects(declared.unwrap_or(0))?;
    let began = Instant::now();
    loop {
        let earned = Duration::from_secs((body.len() / BODY_RATE) as u64);
        let frame = tokio::time::timeout_at(began + BODY_GRACE + earned, incoming.frame()).await;
        let frame = frame.map_err(|_| ApiError::request_timeout())?;
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|_| ApiError::bad_request(Code::RequestAborted, "The request body broke off."))?;
        let Ok(data) = frame.into_data() else { continue };
        if body.len() + data.len() > limit {
            return Err(ApiError::too_large(limit));
        }
        share.grow_to(body.len() + data.len())?;
        body.extend_from_slice(&data);
    }
    decode(headers, body, share, limits)
}

fn decode(headers: &HeaderMap, body: Vec<u8>, share: Share, limits: &Limits) -> Result<Bytes, ApiError> {
    let encoding = headers.get(header::CONTENT_ENCODING).map_or("identity", |value| value.to_str().unwrap_or("?"));
    match encoding.trim().to_ascii_lowercase().as_str() {
        "" | "identity" => held(share, body),
        "gzip" | "x-gzip" => inflate(flate2::read::MultiGzDecoder::new(body.as_slice()), "gzip", limits),
        "zstd" => {
            let mut decoder = zstd::Decoder::new(body.as_slice()).map_err(|_| broken("zstd"))?;
            decoder.window_log_max(ZSTD_WINDOW_LOG).map_err(|_| broken("zstd"))?;
            inflate(decoder, "zstd", limits)
        }
        other => {
            let message = format!("Unsupported content encoding '{}'. Supported: gzip, zstd.", clip(other));
            Err(ApiError::bad_request(Code::UnsupportedContentEncoding, message))
        }
    }
}

fn inflate(mut decoder: impl Read, name: &str, limits: &Limits) -> Result<Bytes, ApiError> {
    let mut share = Share::new(&limits.budget);
    let mut body = Vec::new();
    loop {
        let read = decoder.by_ref().take(STEP as u64).read_to_end(&mut body).map_err(|_| broken(name))?;
        share.grow_to(body.len())?;
        if body.len() > limits.body {
            return Err(ApiError::too_large(limits.body));
        }
        if read < STEP {
            body.shrink_to_fit();
            return held(share, body);
        }
    }
}

/// Counts what the body will become, from now until it is gone.
pub(crate) fn held(mut share: Share, body: Vec<u8>) -> Result<Bytes, ApiError> {
    let (objects, values) = if body.len() < SHORT { (0, 0) } else { counted(&body) };
    let of_objects = objects.saturating_sub(FEW_OBJECTS).saturating_mul(OBJECT);
    let beyond = of_objects.saturating_add(values.saturating_sub(FEW_VALUES).saturating_mul(VALUE));
    let needed = body.len().saturating_add(beyond);
    if beyond > 0 && needed > share.most() {
        return Err(ApiError::too_many_values(values));
    }
    share.grow_to(needed)?;
    Ok(if beyond > 0 { share.hold_all(body) } else { share.hold(body) })
}

/// How many objects there are in a JSON text, and how many values: all but the first of a list or an object come after a
/// comma.
fn counted(body: &[u8]) -> (usize, usize) {
    let (mut rest, mut objects, mut values) = (body, 0, 1);
    while let Some(at) = memchr::memchr3(b'"', b'{', b',', rest) {
        let (sign, after) = (rest.get(at), rest.get(at + 1..).unwrap_or_default());
        rest = match sign {
            Some(b'"') => after_text(after),
            Some(b'{') => {
                objects += 1;
                after
            }
            _ => {
                values += 1;
                after
            }
        };
    }
    (objects, values + objects)
}

/// What comes after a text whose beginning was read.
fn after_text(mut rest: &[u8]) -> &[u8] {
    while let Some(at) = memchr::memchr2(b'"', b'\\', rest) {
        let is_end = rest.get(at) == Some(&b'"');
        rest = rest.get(at + if is_end { 1 } else { 2 }..).unwrap_or_default();
        if is_end {
            return rest;
        }
    }
    &[]
}

fn broken(encoding: &str) -> ApiError {
    ApiError::bad_request(Code::InvalidContentEncoding, format!("The request body is not valid {encoding}."))
}

type Frames = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// An answer's body: whole, or pulled by hyper frame by frame.
pub(crate) struct Body {
    kind: Kind,
    /// Its request is under way until the body is gone.
    running: Option<Running>,
    /// Learns what was taken of it.
    account: Option<Account>,
    /// Counted while it is there, if it is a stream.
    open: Option<OpenStream>,
    sent: u64,
    /// Since when its client has a frame to take, where more of a whole body follows. What streams wait is their turn's to
    /// say.
    handed: Option<Instant>,
}

enum Kind {
    Full(Option<Bytes>),
    Stream(Frames),
    /// A stream at its end.
    Over,
}

impl Body {
    pub(crate) fn full(bytes: Bytes) -> Self {
        Self::new(Kind::Full((!bytes.is_empty()).then_some(bytes)))
    }

    pub(crate) fn stream(frames: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self::new(Kind::Stream(Box::pin(frames)))
    }

    const fn new(kind: Kind) -> Self {
        Self { kind, running: None, account: None, open: None, sent: 0, handed: None }
    }

    /// The client took the last frame, or is gone.
    fn waited(&mut self) {
        if let (Some(handed), Some(account)) = (self.handed.take(), &self.account) {
            account.pace().waited_client(handed.elapsed());
        }
    }

    /// Enters in the account what becomes of the body.
    pub(crate) fn charge(&mut self, account: Account) {
        if let Kind::Stream(_) = self.kind {
            self.open = account.observers().map(|observers| observers.metrics.open_stream(StreamKind::Sse));
        }
        self.account = Some(account);
    }

    pub(crate) fn hold(&mut self, running: Running) {
        self.running = Some(running);
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.kind {
            Kind::Full(_) => "Body::Full",
            Kind::Stream(_) | Kind::Over => "Body::Stream",
        })
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pace::asked();
        self.waited();
        let next = match &mut self.kind {
            Kind::Full(bytes) => {
                let next = bytes.as_mut().map(|bytes| bytes.split_to(bytes.len().min(FRAME)));
                if bytes.as_ref().is_some_and(Bytes::is_empty) {
                    *bytes = None;
                }
                let is_more = bytes.is_some();
                self.handed = is_more.then(Instant::now);
                next
            }
            Kind::Stream(frames) => {
                let next = std::task::ready!(frames.as_mut().poll_next(cx));
                if next.is_none() {
                    self.kind = Kind::Over;
                }
                next
            }
            Kind::Over => None,
        };
        if let Some(bytes) = &next {
            self.sent += bytes.len() as u64;
            Pace::handed();
        }
        Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.kind, Kind::Full(None) | Kind::Over)
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match &self.kind {
            Kind::Full(bytes) => http_body::SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Kind::Stream(_) => http_body::SizeHint::default(),
            Kind::Over => http_body::SizeHint::with_exact(0),
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.waited();
        if let Some(account) = self.account.take() {
            account.delivered(self.sent, matches!(self.kind, Kind::Full(None) | Kind::Over));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What clients took of the time of one request.
    fn waited(account: &Account) -> Duration {
        let [mut upstream, mut tools, mut client] = [Duration::ZERO; 3];
        account.pace().settle(&mut upstream, &mut tools, &mut client);
        client
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_of_a_whole_answer_is_waited_for() {
        let pause = || tokio::time::sleep(Duration::from_secs(1));
        for (frames, taken, expected) in [(1, 1, 0), (3, 3, 2), (3, 1, 1)] {
            let account = Account::of_job("req");
            let mut body = Body::full(vec![b' '; FRAME * (frames - 1) + 1].into());
            body.charge(account.clone());
            for _ in 0..taken {
                body.frame().await.unwrap().unwrap();
                // What comes after the last frame is the connection's business.
                pause().await;
            }
            drop(body);
            assert_eq!(waited(&account), Duration::from_secs(expected), "{taken} of {frames}");
        }
    }

    #[test]
    fn many_small_values_count_for_more_than_their_text() {
        let body = |value: &str, count: usize| format!("[{}]", vec![value; count].join(",")).into_bytes();
        let objects = |count| body(r#"{"a":"{\"b\":1,"}"#, count);
        let budget = Budget::new(8 << 20);
        for (body, beyond) in [
            (objects(FEW_OBJECTS), 0),
            (objects(FEW_OBJECTS + 100), 100 * OBJECT),
            (body("1", FEW_VALUES), 0),
            (body("1", FEW_VALUES + 100), 100 * VALUE),
            (body(r#""","#, 1), 0),
        ] {
            let length = body.len();
            let held = held(Share::new(&budget), body).unwrap();
            assert_eq!(budget.used(), length + beyond);
            drop(held);
            assert_eq!(budget.used(), 0);
        }
        // More than there will ever be is the request's fault, and no reason to wait.
        let small = budget.part("key", 100);
        for body in [objects(FEW_OBJECTS + 100), body(r#""":1"#, FEW_VALUES * 2)] {
            assert_eq!(held(Share::new(&small), body).unwrap_err().status.as_u16(), 413);
        }
        for (text, expected) in [
            ("{}", (1, 2)),
            ("{ \"a\": {\n}}", (2, 3)),
            (r#""{\"a\":1,\\\"{""#, (0, 1)),
            (r#"[1,"\\",{"a":2,"b":3}]"#, (1, 5)),
            ("", (0, 1)),
            ("\"{,", (0, 1)),
            ("\"\\", (0, 1)),
        ] {
            assert_eq!(counted(text.as_bytes()), expected, "{text}");
        }
    }
}
