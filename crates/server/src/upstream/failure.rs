//! Transport errors → failures, and what `Retry-After` means.

use std::error::Error;

use bridge::{Failure, FailureClass};
use http::HeaderMap;

use super::connect::ConnectError;
use super::link::LinkError;
use super::pool::SendError;
use super::refused::{Refused, Remedy};
use crate::account::Deadline;

/// The longest wait that is passed on: clients give up retrying beyond two minutes, or hang.
const MAX_WAIT: f64 = 120.0;

/// The request could not be sent, or no answer began. Who cannot be connected to now cannot in a moment either; who
/// hung up may.
pub(super) fn unsent(error: &SendError) -> Refused {
    let cause = innermost(error);
    match error {
        SendError::Connect(ConnectError::TooSlow(_)) => Refused::late(Deadline::Connect),
        SendError::Connect(ConnectError::NotHttp2) => protocol(format!("The provider cannot be used: {error}.")),
        SendError::Link(LinkError::Http(http)) if http.is_parse() => {
            protocol(format!("The provider's answer is not HTTP: {cause}."))
        }
        SendError::Connect(ConnectError::Failed(_)) if is_out_of_files(error) => {
            let failure = Failure::new(FailureClass::Overloaded, "This server has too many open files.");
            Refused { is_ours: true, ..Refused::new(failure, Remedy::Again) }
        }
        SendError::Connect(ConnectError::Failed(_)) => unreachable(&cause, Remedy::Elsewhere),
        SendError::Link(_) => unreachable(&cause, Remedy::Again),
    }
}

fn protocol(message: String) -> Refused {
    Refused::new(Failure::new(FailureClass::Protocol, message), Remedy::Elsewhere)
}

fn unreachable(cause: &str, remedy: Remedy) -> Refused {
    let message = format!("The provider cannot be reached: {cause}.");
    Refused::new(Failure::new(FailureClass::Unreachable, message), remedy)
}

/// The answer broke off.
pub(super) fn cut(error: &LinkError) -> Failure {
    let message = format!("The provider's answer broke off: {}.", innermost(error));
    Failure::new(FailureClass::Truncated, message)
}

/// Whether there was no file descriptor for a connection.
fn is_out_of_files(error: &(dyn Error + 'static)) -> bool {
    let causes = std::iter::successors(Some(error), |&cause| cause.source());
    let mut codes = causes.filter_map(|cause| cause.downcast_ref::<std::io::Error>()?.raw_os_error());
    codes.any(|code| cfg!(unix) && matches!(code, 23 | 24))
}

/// The cause at the bottom; what wraps it is about our own machinery.
fn innermost(error: &dyn Error) -> String {
    std::iter::successors(Some(error), |&cause| cause.source()).last().unwrap_or(error).to_string()
}

/// Seconds to wait: milliseconds, seconds or a date; at least one, at most two minutes.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<u32> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    let exact = text("retry-after-ms").and_then(number).map(|milliseconds| milliseconds / 1000.0);
    let seconds = exact.filter(|seconds| *seconds >= 0.0).or_else(|| {
        let value = text("retry-after")?;
        match number(value) {
            Some(seconds) => (seconds >= 0.0).then_some(seconds),
            None => {
                let then = httpdate::parse_http_date(value).ok()?;
                let now = std::time::UNIX_EPOCH + std::time::Duration::from_millis(crate::clock::unix_millis());
                Some(then.duration_since(now).unwrap_or_default().as_secs_f64())
            }
        }
    })?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 1..=120 right here")]
    Some(seconds.ceil().clamp(1.0, MAX_WAIT) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_clamped() {
        for (name, value, expected) in [
            ("retry-after", "7", Some(7)),
            ("retry-after", "0", Some(1)),
            ("retry-after", "0.2", Some(1)),
            ("retry-after", "1e30", Some(120)),
            ("retry-after", "99999999999", Some(120)),
            ("retry-after", "Thu, 31 Dec 2099 23:59:59 GMT", Some(120)),
            ("retry-after", "Thu, 01 Jan 1970 00:00:00 GMT", Some(1)),
            ("retry-after", "-5", None),
            ("retry-after", "NaN", None),
            ("retry-after", "soon", None),
            ("retry-after-ms", "250", Some(1)),
            ("retry-after-ms", "2500", Some(3)),
            ("retry-after-ms", "soon", None),
            ("retry-after-ms", "-1", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            assert_eq!(retry_after(&headers), expected, "{name}: {value}");
        }
        let both = [("retry-after", "9"), ("retry-after-ms", "2000")];
        let headers = both.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        assert_eq!(retry_after(&headers.into_iter().collect()), Some(2), "the more exact one");
    }
}
