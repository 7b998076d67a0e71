//! One try to tell one receiver: signed as Standard Webhooks say, within a deadline, to this address and no other.

use std::error::Error;
use std::pin::pin;
use std::time::Duration;

use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, StatusCode, Uri, header};
use http_body_util::Full;
use hyper::client::conn::http1;

use super::connect::{Connector, Stream};
use crate::clock;
use crate::config::{SigningKey, WebhookConfig};

/// For all of it: names, connection, request, and the head of the answer.
const DEADLINE: Duration = Duration::from_secs(15);

type Fault = Box<dyn Error + Send + Sync>;

/// What the receiver said, or why it said nothing.
pub(super) async fn send(
    connector: &Connector,
    endpoint: &WebhookConfig,
    id: &str,
    body: Bytes,
) -> Result<StatusCode, String> {
    let sending = Box::pin(async {
        let to: Uri = endpoint.url.parse()?;
        let request = request(&to, &endpoint.key, id, body)?;
        let stream = connector.connect(to, endpoint.allow_private).await?;
        exchange(stream, request).await
    });
    match tokio::time::timeout(DEADLINE, sending).await {
        Ok(answer) => answer.map_err(|fault: Fault| innermost(&*fault)),
        Err(_) => Err(format!("no answer within {} seconds", DEADLINE.as_secs())),
    }
}

fn request(to: &Uri, key: &SigningKey, id: &str, body: Bytes) -> Result<Request<Full<Bytes>>, Fault> {
    // Each try has its own: receivers refuse what was signed long ago.
    let timestamp = clock::unix_seconds().to_string();
    let authority = to.authority().ok_or("there is no host in its URL")?;
    let path = to.path_and_query().map_or("/", |path| path.as_str());
    Ok(Request::post(path)
        .header(header::HOST, authority.as_str())
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::USER_AGENT, concat!("godex/", env!("CARGO_PKG_VERSION")))
        .header(header::CONNECTION, "close")
        .header("webhook-signature", signature(key, id, &timestamp, &body))
        .header("webhook-id", id)
        .header("webhook-timestamp", timestamp)
        .body(Full::new(body))?)
}

fn signature(key: &SigningKey, id: &str, timestamp: &str, body: &[u8]) -> String {
    let mut signing = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key.expose()));
    for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
        signing.update(part);
    }
    format!("v1,{}", STANDARD.encode(signing.sign()))
}

/// Sends it, and reads no more of the answer than its head; the connection is driven meanwhile, and closed.
async fn exchange(stream: Stream, request: Request<Full<Bytes>>) -> Result<StatusCode, Fault> {
    let (mut sender, connection) = http1::handshake(stream).await?;
    let (mut answer, mut connection) = (pin!(sender.send_request(request)), pin!(connection));
    let mut over = false;
    loop {
        tokio::select! {
            biased;
            answer = &mut answer => return Ok(answer?.status()),
            // Whatever became of it, the answer knows.
            _ = &mut connection, if !over => over = true,
        }
    }
}

/// The cause at the bottom; what wraps it is about our own machinery.
fn innermost(fault: &(dyn Error + 'static)) -> String {
    std::iter::successors(Some(fault), |&cause| cause.source()).last().unwrap_or(fault).to_string()
}
