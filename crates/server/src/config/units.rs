//! Durations (`250ms`, `30s`, `5m`, `1h`, `30d`) and sizes (`64KiB`, `256MiB`, or bytes), read and printed. The only
//! reader of either: every key, and every flag, takes them in the same forms.

use std::ops::RangeInclusive;
use std::time::Duration;

use providers::yaml::Field;

const DURATIONS: &[(&str, u64)] = &[("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
const SIZES: &[(&str, u64)] = &[("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];

/// What a number without a unit means. Keys that took bare numbers before there were units go on doing so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bare {
    /// Nothing: it could be anything.
    Refused,
    Milliseconds,
    Seconds,
}

impl Bare {
    const fn unit(self) -> Option<(&'static str, u64)> {
        match self {
            Self::Refused => None,
            Self::Milliseconds => Some(("milliseconds", 1)),
            Self::Seconds => Some(("seconds", 1000)),
        }
    }
}

/// What a number without a unit is taken for, in words.
pub(super) fn bare_name(bare: Bare) -> Option<&'static str> {
    bare.unit().map(|(name, _)| name)
}

/// A duration within `range`.
pub(super) fn duration(field: &Field<'_>, bare: Bare, range: &RangeInclusive<Duration>) -> Option<Duration> {
    let text = field.text()?;
    let found = parse_duration(&text, bare).filter(|duration| range.contains(duration));
    if found.is_none() {
        let (low, high) = (print_duration(*range.start()), print_duration(*range.end()));
        let bare = bare_name(bare).map(|name| format!(", or {name}")).unwrap_or_default();
        return field.expected(&format!("a duration from `{low}` to `{high}`, such as `30s` or `5m`{bare}"));
    }
    found
}

/// A duration as people write it.
pub fn parse_duration(text: &str, bare: Bare) -> Option<Duration> {
    let plain = || text.parse::<u64>().ok()?.checked_mul(bare.unit()?.1);
    // `ms` ends in `s`, and `m` begins it: the number tells them apart.
    DURATIONS.iter().find_map(|(name, unit)| number(text, name, *unit)).or_else(plain).map(Duration::from_millis)
}

/// In the largest unit that divides it.
pub fn print_duration(duration: Duration) -> String {
    let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if milliseconds == 0 {
        return "0s".to_owned();
    }
    let (name, unit) = DURATIONS.iter().rfind(|(_, unit)| milliseconds.is_multiple_of(*unit)).unwrap_or(&DURATIONS[0]);
    format!("{}{name}", milliseconds / unit)
}

/// A size in bytes within `range`.
pub(super) fn size(field: &Field<'_>, range: &RangeInclusive<u64>) -> Option<u64> {
    let text = field.text()?;
    let parsed = text.parse().ok().or_else(|| SIZES.iter().find_map(|(name, unit)| number(&text, name, *unit)));
    let found = parsed.filter(|bytes| range.contains(bytes));
    if found.is_none() {
        let (low, high) = (print_size(*range.start()), print_size(*range.end()));
        return field.expected(&format!("a size from `{low}` to `{high}`, such as `256MiB`, or bytes"));
    }
    found
}

/// In the largest unit that divides it.
pub(super) fn print_size(bytes: u64) -> String {
    match SIZES.iter().rfind(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{}{name}", bytes / unit),
        None => bytes.to_string(),
    }
}

fn number(text: &str, name: &str, unit: u64) -> Option<u64> {
    text.strip_suffix(name)?.trim_end().parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, milliseconds, printed) in [
            ("250ms", 250, "250ms"),
            ("30s", 30_000, "30s"),
            ("90 s", 90_000, "90s"),
            ("5m", 300_000, "5m"),
            ("120m", 7_200_000, "2h"),
            ("30d", 2_592_000_000, "30d"),
            ("0s", 0, "0s"),
        ] {
            for bare in [Bare::Refused, Bare::Milliseconds, Bare::Seconds] {
                let duration = parse_duration(text, bare).unwrap();
                assert_eq!(
                    (duration.as_millis(), print_duration(duration).as_str()),
                    (milliseconds, printed),
                    "{text}"
                );
            }
        }
        for text in ["30", "", "s", "-1s", "1.5s", "1w", "99999999999999999999d", "9999999999999999d"] {
            assert_eq!(parse_duration(text, Bare::Refused), None, "{text}");
        }
        for (bare, milliseconds) in [(Bare::Milliseconds, 30), (Bare::Seconds, 30_000)] {
            assert_eq!(parse_duration("30", bare), Some(Duration::from_millis(milliseconds)));
            assert_eq!(parse_duration("99999999999999999999", bare), None);
        }
    }

    #[test]
    fn sizes_are_printed_as_they_are_read() {
        for (bytes, printed) in [(0, "0"), (1, "1"), (1025, "1025"), (65_536, "64KiB"), (256 << 20, "256MiB")] {
            assert_eq!(print_size(bytes), printed);
        }
    }
}
