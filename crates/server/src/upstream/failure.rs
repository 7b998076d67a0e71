//! Transport errors → failures, and what `Retry-After` means.

use std::error::Error;

use bridge::{Failure, FailureClass};
use http::HeaderMap;
use http::header::RETRY_AFTER;

use super::connect::ConnectError;
use super::link::LinkError;
use super::pool::SendError;

/// The longest wait that is passed on: clients give up retrying beyond two minutes, or hang.
const MAX_WAIT: f64 = 120.0;

/// The request could not be sent, or no answer began.
pub(super) fn unsent(error: &SendError) -> Failure {
    match error {
        SendError::Connect(ConnectError::TooSlow(_)) => super::timeout("connecting"),
        SendError::Link(LinkError::Http(http)) if http.is_parse() => {
            let message = format!("The provider's answer is not HTTP: {}.", innermost(error));
            Failure::new(FailureClass::Protocol, message)
        }
        SendError::Connect(ConnectError::Failed(_)) | SendError::Link(_) => {
            let message = format!("The provider cannot be reached: {}.", innermost(error));
            Failure::new(FailureClass::Unreachable, message)
        }
    }
}

/// The answer broke off.
pub(super) fn cut(error: &LinkError) -> Failure {
    let message = format!("The provider's answer broke off: {}.", innermost(error));
    Failure::new(FailureClass::Truncated, message)
}

/// The cause at the bottom; what wraps it is about our own machinery.
fn innermost(error: &dyn Error) -> String {
    std::iter::successors(Some(error), |&cause| cause.source()).last().unwrap_or(error).to_string()
}

/// Seconds to wait, from seconds or a date; at least one, at most two minutes.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<u32> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let seconds = match value.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => seconds.ceil(),
        Ok(_) => return None,
        Err(_) => {
            let then = httpdate::parse_http_date(value).ok()?;
            let now = std::time::UNIX_EPOCH + std::time::Duration::from_millis(crate::clock::unix_millis());
            then.duration_since(now).unwrap_or_default().as_secs_f64().ceil()
        }
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 1..=120 right here")]
    Some(seconds.clamp(1.0, MAX_WAIT) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_clamped() {
        for (value, expected) in [
            ("7", Some(7)),
            ("0", Some(1)),
            ("0.2", Some(1)),
            ("1e30", Some(120)),
            ("99999999999", Some(120)),
            ("Thu, 31 Dec 2099 23:59:59 GMT", Some(120)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(1)),
            ("-5", None),
            ("soon", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, value.parse().unwrap());
            assert_eq!(retry_after(&headers), expected, "{value}");
        }
    }
}
