//! How long to wait, from an error's words: "Please try again in 1m20.5s".

/// The longest wait that is passed on: clients give up retrying beyond two minutes, or hang.
const MOST: f64 = 120.0;

/// A longer wait than this is for no limit of a minute.
const SHORT: f64 = 300.0;

/// Whole seconds from 1 to 120, out of a message in lower case. `before`: what comes before the time.
pub(super) fn seconds(message: &str, before: &[String]) -> Option<u32> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 1..=120 right here")]
    named(message, before).map(|seconds| seconds.ceil().clamp(1.0, MOST) as u32)
}

/// Whether it names a wait after which a limit of a minute has passed.
pub(super) fn is_short(message: &str, before: &[String]) -> bool {
    named(message, before).is_some_and(|seconds| seconds <= SHORT)
}

/// Seconds, as many as are named.
fn named(message: &str, before: &[String]) -> Option<f64> {
    let rest = before.iter().find_map(|words| message.split_once(words.as_str()).map(|(_, rest)| rest))?;
    let mut rest = rest.trim_start_matches([' ', '"', ':']);
    let mut total: Option<f64> = None;
    // `1m20s` is two amounts.
    while let Some((amount, scale, after)) = amount(rest) {
        total = Some(total.unwrap_or(0.0) + amount * scale);
        rest = after;
    }
    total
}

/// One number and its unit, in seconds, and what follows.
fn amount(text: &str) -> Option<(f64, f64, &str)> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number = text[..end].trim_end_matches('.').parse().ok()?;
    let rest = text[end..].trim_start();
    let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    let scale = match &rest[..end] {
        "ms" | "millisecond" | "milliseconds" => 0.001,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        _ => 1.0,
    };
    Some((number, scale, &rest[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_out_of_words() {
        let before = ["try again in", "retry in", "retry after", "\"retrydelay\":"].map(str::to_owned);
        for (message, expected) in [
            ("rate limit reached. please try again in 20s.", Some(20)),
            ("please try again in 250ms. visit", Some(1)),
            ("please try again in 1m20.5s. need more?", Some(81)),
            ("please retry in 34.074824224s.", Some(35)),
            ("retry after 7 seconds", Some(7)),
            ("try again in 2 hours", Some(120)),
            ("try again in 99999999999999999999999999", Some(120)),
            ("{\"retrydelay\": \"12s\"}", Some(12)),
            ("try again in 6 seconds, or use 2 keys", Some(6)),
            ("try again in a while", None),
            ("try again in ...", None),
            ("slow down", None),
        ] {
            assert_eq!(seconds(message, &before), expected, "{message}");
        }
    }
}
