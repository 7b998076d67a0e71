//! What a request shows of who sends it. Headers only: addresses end up in logs, histories and the hands of others.

use http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::key;
use crate::error::{ApiError, Code};

/// Where clients of Azure's form of the API have it.
const API_KEY: HeaderName = HeaderName::from_static("api-key");
/// Pages can set no header of a WebSocket but the protocols that it is to speak: there OpenAI takes a key as one.
const PROTOCOL: &str = "openai-insecure-api-key.";

/// What was sent as a key or a token; none if nothing was.
pub(super) fn of(headers: &HeaderMap) -> Result<Option<&[u8]>, ApiError> {
    let bearer = only(headers, &AUTHORIZATION)?.map(HeaderValue::as_bytes).and_then(bearer);
    if bearer.is_some() {
        return Ok(bearer);
    }
    let key = only(headers, &API_KEY)?.map(|value| value.as_bytes().trim_ascii()).filter(|key| !key.is_empty());
    Ok(key.or_else(|| protocols(headers).find_map(|word| word.strip_prefix(PROTOCOL)).map(str::as_bytes)))
}

/// Of the protocols that a WebSocket's client offers, what is answered where one of them is its key: another one.
/// Browsers close a WebSocket that takes up none of what they have offered.
pub(crate) fn answered_protocol(headers: &HeaderMap) -> Option<HeaderValue> {
    let is_key = |word: &str| word.starts_with(PROTOCOL);
    protocols(headers).find(|word| is_key(word))?;
    protocols(headers).find(|word| !is_key(word)).and_then(|word| HeaderValue::from_str(word).ok())
}

fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|word| !word.is_empty())
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked("bearer".len())?;
    let token = token.strip_prefix(b" ")?.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"bearer") && !token.is_empty()).then_some(token)
}

/// Of two it could not be said which one a proxy has looked at.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h HeaderValue>, ApiError> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        _ => Err(ApiError::new(Code::InvalidHeader, format!("The request has more than one {name} header."))),
    }
}

/// Nothing was shown where something has to be.
pub(super) fn missing() -> ApiError {
    let message = "You didn't provide an API key. You need to provide your API key in an Authorization header using \
                   Bearer auth (i.e. Authorization: Bearer YOUR_KEY). You can obtain one from whoever runs this server.";
    ApiError::new(Code::MissingApiKey, message)
}

/// What was shown is nobody's: it never was, or is so no more.
pub(super) fn incorrect(sent: &[u8]) -> ApiError {
    let shown = key::shown(sent);
    let message = if key::is_mistyped(sent) {
        format!("Incorrect API key provided: {shown}. It is mistyped or cut: its last characters do not fit the rest.")
    } else {
        format!("Incorrect API key provided: {shown}. You can obtain one from whoever runs this server.")
    };
    ApiError::new(Code::InvalidApiKey, message)
}

pub(super) fn expired(sent: &[u8]) -> ApiError {
    let message = format!(
        "The API key provided has expired: {}. You can obtain one from whoever runs this server.",
        key::shown(sent)
    );
    ApiError::new(Code::ExpiredApiKey, message)
}

/// Of a turn that waited.
pub(super) fn revoked_meanwhile() -> ApiError {
    ApiError::new(Code::InvalidApiKey, "The API key that this was asked for with has been revoked.")
}

/// Of a turn that waited.
pub(super) fn wanted_meanwhile() -> ApiError {
    ApiError::new(Code::InvalidApiKey, "This was asked for without an API key, and by now one is needed.")
}

/// Of a turn that waited.
pub(super) fn expired_meanwhile() -> ApiError {
    ApiError::new(Code::ExpiredApiKey, "The API key that this was asked for with has expired.")
}

/// It is not known whether what was shown is still good.
pub(super) fn unknown_now() -> ApiError {
    ApiError::new(Code::KeysUnavailable, "The API keys cannot be read at the moment. Please retry in a moment.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(values: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in values {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn credentials_are_found_in_headers() {
        for (values, expected) in [
            (&[][..], None),
            (&[("authorization", "Bearer abc")], Some("abc")),
            (&[("authorization", "bearer   abc ")], Some("abc")),
            (&[("authorization", "BEARER abc")], Some("abc")),
            (&[("authorization", "Bearer")], None),
            (&[("authorization", "Bearer ")], None),
            (&[("authorization", "Bearerabc")], None),
            (&[("authorization", "Basic abc")], None),
            (&[("authorization", "abc")], None),
            (&[("authorization", "")], None),
            (&[("api-key", "abc")], Some("abc")),
            (&[("api-key", " ")], None),
            (&[("authorization", "Bearer abc"), ("api-key", "def")], Some("abc")),
            (&[("authorization", "Basic abc"), ("api-key", "def")], Some("def")),
            (&[("x-api-key", "abc"), ("cookie", "key=abc")], None),
            (&[("sec-websocket-protocol", "realtime, openai-insecure-api-key.abc")], Some("abc")),
            (&[("sec-websocket-protocol", "realtime")], None),
        ] {
            assert_eq!(of(&headers(values)).unwrap(), expected.map(str::as_bytes), "{values:?}");
        }
        for name in ["authorization", "api-key"] {
            let error = of(&headers(&[(name, "Bearer abc"), (name, "Bearer abc")])).unwrap_err();
            assert_eq!((error.status.as_u16(), error.code), (400, Code::InvalidHeader));
        }
    }

    #[test]
    fn the_key_is_no_protocol_that_is_answered() {
        for (offered, answered) in [
            ("openai-insecure-api-key.abc, realtime", Some("realtime")),
            ("realtime,openai-insecure-api-key.abc, other", Some("realtime")),
            ("openai-insecure-api-key.abc", None),
            ("realtime", None),
        ] {
            let headers = headers(&[("sec-websocket-protocol", offered)]);
            assert_eq!(answered_protocol(&headers).as_ref().map(|value| value.to_str().unwrap()), answered);
        }
    }

    #[test]
    fn what_is_said_of_a_wrong_key_does_not_repeat_it() {
        let good = key::make().unwrap();
        let typo = good.expose().replace("gdx_", "gdx_x");
        for (sent, says) in
            [(good.expose(), "whoever runs"), (&typo, "mistyped or cut"), ("a long key of others", "whoever")]
        {
            for error in [incorrect(sent.as_bytes()), expired(sent.as_bytes())] {
                assert!(!error.message.contains(&sent[..sent.len() - 4]), "{error:?}");
            }
            let error = incorrect(sent.as_bytes());
            assert!(error.message.contains(says), "{error:?}");
            assert_eq!((error.status.as_u16(), error.wire.as_deref()), (401, Some("invalid_api_key")));
        }
        assert_eq!((missing().status.as_u16(), missing().wire), (401, None));
    }
}
