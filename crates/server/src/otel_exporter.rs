//! Sends spans to a collector: OTLP over HTTP, a batch at a time. A collector that is slow, broken or gone makes nobody
//! wait but this; what it does not take is dropped and counted.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, header};

use crate::otel::Waiting;
use crate::outbound::{Outbound, Reach};

/// How long spans wait for others to be sent with.
const GATHER: Duration = Duration::from_secs(1);
/// How long a collector may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long what is left may take at the end.
const FAREWELL: Duration = Duration::from_secs(2);
/// The pauses after which a batch is sent again.
const PAUSES: &[Duration] = &[Duration::from_secs(1), Duration::from_secs(4)];

/// What came of sending a batch.
enum Sent {
    Taken,
    /// It may be taken later.
    NotNow(String),
    Refused(String),
}

/// Sends what waits, for as long as the server runs.
pub(crate) async fn maintain(waiting: Option<&Waiting>, outbound: &Outbound) {
    let Some(waiting) = waiting else { return std::future::pending().await };
    let mut failing = false;
    loop {
        let _ = tokio::time::timeout(GATHER, waiting.enough.notified()).await;
        while let Some((body, spans)) = waiting.batch() {
            let problem = insist(waiting, outbound, body.into()).await;
            waiting.settle(spans, problem.is_none());
            // Once is enough, until it changes.
            match &problem {
                Some(problem) if !failing => tracing::warn!(problem, spans, "the collector does not take spans"),
                None if failing => tracing::info!("the collector takes spans again"),
                _ => {}
            }
            failing = problem.is_some();
        }
    }
}

/// Sends what still waits, if that can be done soon.
pub(crate) async fn flush(waiting: Option<&Waiting>, outbound: &Outbound) {
    let Some(waiting) = waiting else { return };
    let sending = async {
        while let Some((body, spans)) = waiting.batch() {
            let taken = matches!(send(waiting, outbound, body.into()).await, Sent::Taken);
            waiting.settle(spans, taken);
        }
    };
    let _ = tokio::time::timeout(FAREWELL, sending).await;
}

impl Waiting {
    /// What became of so many spans.
    fn settle(&self, spans: usize, taken: bool) {
        let counter = if taken { &self.exported } else { &self.dropped };
        counter.fetch_add(spans as u64, Relaxed);
    }
}

/// Sends a batch, more than once if need be. The problem, if it is not taken.
async fn insist(waiting: &Waiting, outbound: &Outbound, body: Bytes) -> Option<String> {
    let mut pauses = PAUSES.iter();
    loop {
        let problem = match send(waiting, outbound, body.clone()).await {
            Sent::Taken => return None,
            Sent::Refused(problem) => return Some(problem),
            Sent::NotNow(problem) => problem,
        };
        match pauses.next() {
            Some(pause) => tokio::time::sleep(*pause).await,
            None => return Some(problem),
        }
    }
}

async fn send(waiting: &Waiting, outbound: &Outbound, body: Bytes) -> Sent {
    let mut request = Request::new(body);
    *request.method_mut() = Method::POST;
    let Ok(uri) = waiting.config.endpoint.parse() else {
        return Sent::Refused("its address cannot be used".to_owned());
    };
    *request.uri_mut() = uri;
    let headers = request.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
    headers.insert(header::USER_AGENT, HeaderValue::from_static(concat!("godex/", env!("CARGO_PKG_VERSION"))));
    for (name, value) in &waiting.config.headers {
        let name = http::HeaderName::try_from(name.as_str());
        if let (Ok(name), Ok(mut value)) = (name, HeaderValue::try_from(value.expose())) {
            value.set_sensitive(true);
            headers.insert(name, value);
        }
    }
    let sending = Box::pin(outbound.send_to_any_port(request, Reach::Anywhere));
    match tokio::time::timeout(PATIENCE, sending).await {
        Err(_) => Sent::NotNow("it does not answer".to_owned()),
        Ok(Err(error)) => Sent::NotNow(error.to_string()),
        Ok(Ok(response)) => match response.status().as_u16() {
            200..=299 => Sent::Taken,
            status @ (408 | 429 | 502..=504) => Sent::NotNow(format!("it answers with {status}")),
            status => Sent::Refused(format!("it answers with {status}")),
        },
    }
}
