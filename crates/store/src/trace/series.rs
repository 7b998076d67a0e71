//! Sums in steps of time, for charts.

use std::ops::ControlFlow;

use super::query::Query;
use super::{Block, Header, TraceFilter, TracePoint, Visit};
use crate::Error;

/// Points of one series.
const MOST: i64 = 500;
/// Times that are kept of one step, to find its percentiles.
const SAMPLES: usize = 2_000;

#[derive(Debug)]
pub(super) struct Series {
    query: Query,
    from: i64,
    step: i64,
    points: Vec<Point>,
}

#[derive(Debug, Default)]
struct Point {
    sums: TracePoint,
    took: Samples,
    first_token: Samples,
}

impl Series {
    /// Up to `until`, or to the newest; the last steps, if there are too many.
    pub(super) fn new(filter: TraceFilter, step: i64, newest: i64) -> Self {
        let step = step.max(1);
        let until = filter.until.unwrap_or_else(|| newest.saturating_add(1));
        let since = filter.since.unwrap_or_else(|| until.saturating_sub(step.saturating_mul(MOST)));
        let last = until.saturating_sub(1).div_euclid(step);
        let first = since.div_euclid(step).max(last.saturating_sub(MOST - 1));
        let count = if since < until { last - first + 1 } else { 0 };
        let from = first.saturating_mul(step);
        let point = |index: i64| {
            let at = from.saturating_add(index.saturating_mul(step));
            Point { sums: TracePoint { at, ..TracePoint::default() }, ..Point::default() }
        };
        let points = (0..count).map(point).collect();
        let since = Some(since.max(from));
        Self { query: Query::new(TraceFilter { since, until: Some(until), ..filter }), from, step, points }
    }

    pub(super) fn finish(self) -> Vec<TracePoint> {
        let finish = |point: Point| TracePoint {
            took_p95_micros: point.took.percentile(95),
            took_p50_micros: point.took.percentile(50),
            first_token_p50_micros: point.first_token.percentile(50),
            ..point.sums
        };
        self.points.into_iter().map(finish).collect()
    }
}

impl Visit for Series {
    fn by_ids(&self) -> bool {
        self.query.by_ids()
    }

    fn wants(&self, header: &Header) -> bool {
        self.query.wants(header)
    }

    fn wants_ids(&self, ids: &[u8]) -> bool {
        self.query.wants_ids(ids)
    }

    fn see(&mut self, block: &Block) -> Result<ControlFlow<()>, Error> {
        for entry in block.entries()? {
            let entry = entry?;
            if !self.query.matches(&entry)? {
                continue;
            }
            let index = usize::try_from(entry.began_at.saturating_sub(self.from) / self.step).unwrap_or(usize::MAX);
            let Some(Point { sums, took, first_token }) = self.points.get_mut(index) else { continue };
            sums.requests += 1;
            sums.errors += u64::from(entry.is_error);
            for (sum, more) in [
                (&mut sums.input_tokens, entry.input),
                (&mut sums.cached_tokens, entry.cached),
                (&mut sums.output_tokens, entry.output),
                (&mut sums.nanodollars, entry.nanodollars),
            ] {
                *sum = sum.saturating_add(more.unwrap_or(0));
            }
            took.add(entry.took);
            if let Some(micros) = entry.first_token {
                first_token.add(micros);
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Some of many values, evenly: when there are too many, every other one goes, and from then on fewer come.
#[derive(Debug, Default)]
struct Samples {
    kept: Vec<i64>,
    /// One of two to this many is kept.
    halvings: u32,
    seen: u64,
}

impl Samples {
    fn add(&mut self, value: i64) {
        let keep = self.seen.trailing_zeros() >= self.halvings || self.seen == 0;
        self.seen += 1;
        if !keep {
            return;
        }
        self.kept.push(value);
        if self.kept.len() > SAMPLES {
            let mut index = 0;
            self.kept.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.halvings += 1;
        }
    }

    fn percentile(&self, percent: usize) -> Option<i64> {
        let mut sorted = self.kept.clone();
        sorted.sort_unstable();
        sorted.get((sorted.len() * percent).div_ceil(100).saturating_sub(1)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_all_or_evenly_of_many() {
        for (count, p50, p95, within) in [(1, 0, 0, 0), (2, 0, 1, 0), (20, 9, 18, 0), (100_000, 49_999, 94_999, 100)] {
            let mut samples = Samples::default();
            (0..count).for_each(|value| samples.add(value));
            assert!(samples.kept.len() <= SAMPLES);
            assert!((samples.percentile(50).unwrap() - p50).abs() <= within, "{count}");
            assert!((samples.percentile(95).unwrap() - p95).abs() <= within, "{count}");
        }
        assert_eq!(Samples::default().percentile(50), None);
    }

    #[test]
    fn steps_are_whole_and_not_too_many() {
        // Since, until, step, newest: how many points, where the first and the last begin.
        for (since, until, step, newest, expected) in [
            (Some(0), Some(100), 10, 0, Some((10, 0, 90))),
            (Some(5), Some(95), 10, 0, Some((10, 0, 90))),
            (Some(0), Some(1), 10, 0, Some((1, 0, 0))),
            (Some(5), Some(5), 10, 0, None),
            (Some(9), Some(5), 10, 0, None),
            (Some(0), Some(100_000), 10, 0, Some((500, 95_000, 99_990))),
            (None, None, 10, 99_999, Some((500, 95_000, 99_990))),
            (Some(i64::MIN), Some(i64::MAX), 0, 0, Some((500, i64::MAX - 500, i64::MAX - 1))),
        ] {
            let filter = TraceFilter { since, until, ..TraceFilter::default() };
            let points = Series::new(filter, step, newest).finish();
            let found = points.first().zip(points.last()).map(|(first, last)| (points.len(), first.at, last.at));
            assert_eq!(found, expected, "{since:?} {until:?} {step}");
        }
    }
}
