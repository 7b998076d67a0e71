//! The calendar of budgets, in hours since 1970, UTC.

use crate::clock::{date, day_name, day_of};
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
