//! The calendar of budgets, in hours since 1970, UTC.

use crate::terms::Period;

const DAY: i64 = 24;

/// The first hour of the period that this one is in.
pub(super) const fn begin(period: Period, hour: i64) -> i64 {
    let day = hour.div_euclid(DAY);
    match period {
        Period::Day => day * DAY,
        // 1970 began on a Thursday.
        Period::Week => (day - (day + 3).rem_euclid(7)) * DAY,
        Period::Month => {
            let (year, month, _) = date(day);
            day_of(year, month) * DAY
        }
        Period::Total => 0,
    }
}

/// When the period that this hour is in ends, in words; None: never.
pub(super) fn end(period: Period, hour: i64) -> Option<String> {
    let first = begin(period, hour).div_euclid(DAY);
    let next = match period {
        Period::Day => first + 1,
        Period::Week => first + 7,
        Period::Month => match date(first) {
            (year, 12, _) => day_of(year + 1, 1),
            (year, month, _) => day_of(year, month + 1),
        },
        Period::Total => return None,
    };
    Some(format!("{}, 00:00 UTC", day_name(next)))
}

/// `2026-11-16`.
pub(super) fn day_name(day: i64) -> String {
    let (year, month, day) = date(day);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Year, month and day of a day since 1970. Years begin in March here, so that the odd day is the last one.
const fn date(day: i64) -> (i64, i64, i64) {
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
const fn day_of(year: i64, month: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * shifted + 2) / 5;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_those_of_the_calendar() {
        // Unix seconds of the hour, of the period's begin, and its end.
        for (at, period, first, end_of) in [
            // 2026-11-16, a Monday, 13:00.
            (1_794_834_000, Period::Day, 1_794_787_200, Some("2026-11-17, 00:00 UTC")),
            (1_794_834_000, Period::Week, 1_794_787_200, Some("2026-11-23, 00:00 UTC")),
            (1_794_834_000, Period::Month, 1_793_491_200, Some("2026-12-01, 00:00 UTC")),
            (1_794_834_000, Period::Total, 0, None),
            // The hour before, a Sunday.
            (1_794_783_600, Period::Week, 1_794_182_400, Some("2026-11-16, 00:00 UTC")),
            // 2028-02-29.
            (1_835_433_600, Period::Month, 1_832_976_000, Some("2028-03-01, 00:00 UTC")),
            // 2026-12-31 23:00.
            (1_798_758_000, Period::Month, 1_796_083_200, Some("2027-01-01, 00:00 UTC")),
            (0, Period::Month, 0, Some("1970-02-01, 00:00 UTC")),
            (0, Period::Week, -259_200, Some("1970-01-05, 00:00 UTC")),
        ] {
            assert_eq!(begin(period, at / 3600) * 3600, first, "{at} {period:?}");
            assert_eq!(end(period, at / 3600).as_deref(), end_of, "{at} {period:?}");
        }
    }

    #[test]
    fn every_day_of_centuries_follows_the_one_before() {
        let mut before = day_name(-1);
        assert_eq!(before, "1969-12-31");
        for day in 0..150_000 {
            let (year, month, of_month) = date(day);
            assert_eq!(day_of(year, month) + of_month - 1, day);
            let name = day_name(day);
            assert!(name > before, "{name} after {before}");
            before = name;
        }
    }
}
