//! What a provider counts, by what was estimated: a line, `reported = fixed + slope × estimated`, fitted to the last
//! requests of one model. The fixed part is what its chat form adds to every request, the slope how its tokenizer cuts.
//!
//! Recent requests weigh more than old ones, each by its relative error, and none can move the line far: a provider may
//! report what it added to a request by itself, or leave out what it had cached.

/// How much of what was known counts after one more request.
const DECAY: f64 = 0.93;
/// What the first guess (the estimate as it is) weighs against requests.
const GUESS: f64 = 0.25;
/// About what a chat form may add to a request: a fixed part beyond it needs more proof.
const USUAL_FIXED: f64 = 60.0;
/// A request counts at most as if it differed by this factor from what was expected, beside the usual fixed part.
const STEP: f64 = 1.3;
/// What is reported is not counted at all beyond these ratios to the estimate.
const PLAUSIBLE: std::ops::RangeInclusive<f64> = 0.1..=10.0;

/// What is known of one model's counts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Learned {
    seen: u32,
    // Sums over the requests, for estimates `x` and reports `y`: of (1/y)², (1/y)·(x/y), (x/y)², 1/y, x/y.
    ones: f64,
    mixed: f64,
    squares: f64,
    one: f64,
    ratio: f64,
}

impl Learned {
    /// How many requests it was learned from.
    pub const fn seen(&self) -> u32 {
        self.seen
    }

    /// One more request: what was estimated for it, what its provider reported.
    pub fn learn(&mut self, estimated: u64, reported: u64) {
        let (x, mut y) = (float(estimated), float(reported));
        if estimated == 0 || reported == 0 || !PLAUSIBLE.contains(&(y / x)) {
            return;
        }
        let (fixed, slope) = self.line();
        let expected = fixed + slope * x;
        y = y.clamp((expected / STEP - USUAL_FIXED).max(1.0), expected * STEP + USUAL_FIXED);
        self.seen = self.seen.saturating_add(1);
        let (one, ratio) = (1.0 / y, x / y);
        for (sum, new) in [
            (&mut self.ones, one * one),
            (&mut self.mixed, one * ratio),
            (&mut self.squares, ratio * ratio),
            (&mut self.one, one),
            (&mut self.ratio, ratio),
        ] {
            *sum = *sum * DECAY + new;
        }
    }

    /// The estimate, corrected.
    pub fn correct(&self, estimated: u64) -> u64 {
        let (fixed, slope) = self.line();
        rounded(fixed + slope * float(estimated)).max(u64::from(estimated > 0))
    }

    /// The line that fits best: least squares of relative errors, with the first guess as one more observation.
    fn line(&self) -> (f64, f64) {
        let ones = self.ones + GUESS / (USUAL_FIXED * USUAL_FIXED);
        let (squares, ratio) = (self.squares + GUESS, self.ratio + GUESS);
        let determinant = ones * squares - self.mixed * self.mixed;
        if determinant <= f64::EPSILON * ones * squares {
            return (0.0, 1.0);
        }
        let fixed = (self.one * squares - ratio * self.mixed) / determinant;
        let slope = (ones * ratio - self.mixed * self.one) / determinant;
        // A chat form takes nothing away, and no tokenizer is that different.
        if fixed < 0.0 {
            return (0.0, (ratio / squares).clamp(0.2, 5.0));
        }
        (fixed, slope.clamp(0.2, 5.0))
    }
}

#[expect(clippy::cast_precision_loss, reason = "no request has that many tokens")]
const fn float(tokens: u64) -> f64 {
    tokens as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is rounded, and not negative")]
fn rounded(tokens: f64) -> u64 {
    tokens.max(0.0).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taught(requests: impl IntoIterator<Item = (u64, u64)>) -> Learned {
        let mut learned = Learned::default();
        requests.into_iter().for_each(|(estimated, reported)| learned.learn(estimated, reported));
        learned
    }

    /// Whether it is off by no more than so many percent.
    fn near(tokens: u64, expected: u64, percent: u64) -> bool {
        tokens.abs_diff(expected) * 100 <= expected * percent
    }

    #[test]
    fn without_a_word_the_estimate_stays() {
        assert_eq!([0, 1, 77, 1 << 40].map(|tokens| Learned::default().correct(tokens)), [0, 1, 77, 1 << 40]);
    }

    #[test]
    fn the_form_and_the_tokenizer_are_told_apart() {
        let truth = |x: u64| 40 + x * 13 / 10;
        let sizes = [20, 400, 90, 3000, 150, 60, 900, 5000];
        let learned = taught([sizes, sizes, sizes].as_flattened().iter().map(|x| (*x, truth(*x))));
        for x in [50, 100, 1000, 100_000] {
            assert!(near(learned.correct(x), truth(x), 5), "{x}: {}", learned.correct(x));
        }
        // From requests of one size nothing is concluded about others that is far from the ratio.
        let learned = taught([(1000, 1200); 8]);
        assert!(near(learned.correct(1000), 1200, 3) && near(learned.correct(100_000), 120_000, 5));
    }

    #[test]
    fn one_odd_report_does_not_spoil_what_is_known() {
        let known = taught((0..20).map(|n| (500 + n * 100, (500 + n * 100) * 11 / 10)));
        for odd in [(1000, 9000), (1000, 110), (1000, 0), (0, 50), (1000, u64::MAX), (u64::MAX, 1000)] {
            let mut learned = known;
            learned.learn(odd.0, odd.1);
            assert!(near(learned.correct(1000), 1100, 12), "{odd:?}: {}", learned.correct(1000));
        }
    }

    #[test]
    fn another_model_under_the_same_name_is_followed() {
        let mut learned = taught([(1000, 1000); 50]);
        for _ in 0..80 {
            learned.learn(1000, 1700);
        }
        assert!(near(learned.correct(1000), 1700, 8), "{}", learned.correct(1000));
    }
}
