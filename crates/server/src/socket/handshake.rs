//! The request that becomes a WebSocket, and its answer (RFC 6455, section 4.2).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    CONNECTION, CONTENT_LENGTH, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION,
    TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version};

use crate::access;
use crate::body::Body;
use crate::error::{ApiError, Code};

/// What the client's key is hashed with.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The answer to a request that may become a WebSocket, or why it may not. No extension is agreed to.
pub(super) fn accept<B>(request: &Request<B>) -> Result<Response<Body>, ApiError> {
    let headers = request.headers();
    if !names(headers, &UPGRADE, "websocket") || only(headers, &SEC_WEBSOCKET_VERSION) != Some("13") {
        return Err(ApiError::upgrade_required());
    }
    let has_body = headers.contains_key(TRANSFER_ENCODING) || only(headers, &CONTENT_LENGTH).unwrap_or("0") != "0";
    if *request.method() != Method::GET || request.version() != Version::HTTP_11 || has_body {
        return Err(wrong("A WebSocket begins with a GET of HTTP/1.1 without a body."));
    }
    if !names(headers, &CONNECTION, "upgrade") {
        return Err(wrong("The Connection header does not say 'Upgrade'."));
    }
    let key = only(headers, &SEC_WEBSOCKET_KEY).filter(|key| STANDARD.decode(key).is_ok_and(|key| key.len() == 16));
    let Some(key) = key else {
        return Err(wrong("The Sec-WebSocket-Key header is not 16 bytes in base64."));
    };
    let mut response = Response::new(Body::full(bytes::Bytes::new()));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let answer = response.headers_mut();
    answer.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    answer.insert(UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(accepted) = HeaderValue::try_from(accepted(key)) {
        answer.insert(SEC_WEBSOCKET_ACCEPT, accepted);
    }
    if let Some(protocol) = access::answered_protocol(headers) {
        answer.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    Ok(response)
}

fn wrong(message: &str) -> ApiError {
    ApiError::bad_request(Code::InvalidHandshake, message)
}

/// The proof that the key was understood. SHA-1 is what the protocol says, and guards nothing.
fn accepted(key: &str) -> String {
    let mut hash = aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY);
    hash.update(key.as_bytes());
    hash.update(GUID);
    STANDARD.encode(hash.finish())
}

/// Whether a header has that word in its list.
fn names(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|part| part.trim().eq_ignore_ascii_case(word))
}

/// A header that must not be there twice.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?.trim();
    values.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 6455, section 1.3.
    const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

    fn request(changes: &[(&'static str, &'static str)]) -> Request<()> {
        let mut request = Request::new(());
        for (name, value) in [
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "WebSocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", KEY),
        ]
        .iter()
        .chain(changes)
        {
            request.headers_mut().insert(*name, HeaderValue::from_static(value));
            if value.is_empty() {
                request.headers_mut().remove(*name);
            }
        }
        request
    }

    #[test]
    fn a_handshake_is_answered_as_the_protocol_says() {
        let response = accept(&request(&[])).unwrap();
        assert_eq!(response.status(), 101);
        assert_eq!(response.headers()["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert!(!response.headers().contains_key("sec-websocket-extensions"));
        for (changes, status) in [
            (&[("upgrade", "h2c")][..], 426),
            (&[("sec-websocket-version", "8")], 426),
            (&[("sec-websocket-version", "")], 426),
            (&[("connection", "keep-alive")], 400),
            (&[("sec-websocket-key", "")], 400),
            (&[("sec-websocket-key", "c2hvcnQ=")], 400),
            (&[("content-length", "5")], 400),
            (&[("transfer-encoding", "chunked")], 400),
        ] {
            assert_eq!(accept(&request(changes)).unwrap_err().status, status, "{changes:?}");
        }
        let mut head = request(&[]);
        *head.method_mut() = Method::HEAD;
        assert_eq!(accept(&head).unwrap_err().status, 400);
    }
}
