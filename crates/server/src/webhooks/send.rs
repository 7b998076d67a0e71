//! One try to tell one receiver: signed as Standard Webhooks say, within a deadline, to this address and no other.

use std::time::Duration;

use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, StatusCode, header};

use crate::clock;
use crate::config::{SigningKey, WebhookConfig};
use crate::outbound::{NOT_PUBLIC, Outbound, OutboundError, Reach};

/// For all of it: names, connection, request, and the head of the answer.
const DEADLINE: Duration = Duration::from_secs(15);

/// What the receiver said, or why it said nothing.
pub(super) async fn send(
    outbound: &Outbound,
    endpoint: &WebhookConfig,
    id: &str,
    body: Bytes,
) -> Result<StatusCode, String> {
    let request = request(&endpoint.url, &endpoint.key, id, body).map_err(|error| error.to_string())?;
    let reach = if endpoint.allow_private { Reach::Anywhere } else { Reach::Public };
    if reach == Reach::Public && request.uri().scheme_str() != Some("https") {
        return Err(not_public());
    }
    let sending = Box::pin(outbound.send_to_any_port(request, reach));
    match tokio::time::timeout(DEADLINE, sending).await {
        // No more of the answer is read than its head.
        Ok(Ok(answer)) => Ok(answer.status()),
        Ok(Err(OutboundError::Refused(NOT_PUBLIC))) => Err(not_public()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {} seconds", DEADLINE.as_secs())),
    }
}

fn not_public() -> String {
    format!("{NOT_PUBLIC}; `allow_private: true` lets it be")
}

fn request(to: &str, key: &SigningKey, id: &str, body: Bytes) -> Result<Request<Bytes>, http::Error> {
    // Each try has its own: receivers refuse what was signed long ago.
    let timestamp = clock::unix_seconds().to_string();
    Request::post(to)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::USER_AGENT, concat!("godex/", env!("CARGO_PKG_VERSION")))
        .header("webhook-signature", signature(key, id, &timestamp, &body))
        .header("webhook-id", id)
        .header("webhook-timestamp", timestamp)
        .body(body)
}

fn signature(key: &SigningKey, id: &str, timestamp: &str, body: &[u8]) -> String {
    let mut signing = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key.expose()));
    for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
        signing.update(part);
    }
    format!("v1,{}", STANDARD.encode(signing.sign()))
}
