//! The calendar, in UTC: days since 1970 as dates, moments as RFC 3339 has them.

const DAY: i64 = 86_400_000_000;

/// `2026-11-16`.
pub(crate) fn day_name(day: i64) -> String {
    let (year, month, day) = date(day);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Year, month and day of a day since 1970. Years begin in March here, so that the odd day is the last one.
pub(crate) const fn date(day: i64) -> (i64, i64, i64) {
    let days = day + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + (if month <= 2 { 1 } else { 0 });
    (year, month, of_year - (153 * shifted + 2) / 5 + 1)
}

/// The first of a month as a day since 1970.
pub(crate) const fn day_of(year: i64, month: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * shifted + 2) / 5;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year - 719_468
}

/// Microseconds since 1970 as `2026-11-16T16:33:12.345Z`.
pub(crate) fn rfc3339(micros: i64) -> String {
    let (day, of_day) = (micros.div_euclid(DAY), micros.rem_euclid(DAY) / 1000);
    let (seconds, millis) = (of_day / 1000, of_day % 1000);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{}T{hours:02}:{minutes:02}:{seconds:02}.{millis:03}Z", day_name(day))
}

/// The same read, with or without parts of a second; only UTC.
pub(crate) fn parse_rfc3339(text: &str) -> Option<i64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let number = |text: &str, range: std::ops::RangeInclusive<i64>| {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i64>().ok().filter(|number| is_plain && range.contains(number))
    };
    let mut date = date.splitn(3, '-');
    let (year, month) = (number(date.next()?, 1970..=9999)?, number(date.next()?, 1..=12)?);
    let day = number(date.next()?, 1..=31)?;
    let (next_year, next_month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    let day = Some(day_of(year, month) + day - 1).filter(|day| *day < day_of(next_year, next_month))?;
    let (time, part) = time.split_once('.').unwrap_or((time, "0"));
    let mut time = time.splitn(3, ':');
    let (hours, minutes) = (number(time.next()?, 0..=23)?, number(time.next()?, 0..=59)?);
    let seconds = (hours * 60 + minutes) * 60 + number(time.next()?, 0..=60)?;
    let part = number(&format!("{part:0<6}")[..part.len().max(6)], 0..=999_999)?;
    Some(day * DAY + seconds * 1_000_000 + part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_and_read() {
        for (micros, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999_000, "2000-02-28T23:59:59.999Z"),
            (1_794_846_792_345_000, "2026-11-16T16:33:12.345Z"),
            (1_798_761_599_000_000, "2026-12-31T23:59:59.000Z"),
        ] {
            assert_eq!((rfc3339(micros), parse_rfc3339(text)), (text.to_owned(), Some(micros)));
        }
        assert_eq!(parse_rfc3339("2026-11-16T16:33:12Z"), Some(1_794_846_792_000_000));
        assert_eq!(parse_rfc3339("2026-11-16T16:33:12.5Z"), Some(1_794_846_792_500_000));
        for wrong in [
            "",
            "2026-11-16",
            "2026-11-16T16:33:12",
            "2026-13-16T16:33:12Z",
            "2026-02-30T00:00:00Z",
            "2026-11-16T16:33:12.é5Z",
            "T:Z",
        ] {
            assert_eq!(parse_rfc3339(wrong), None, "{wrong}");
        }
    }
}
