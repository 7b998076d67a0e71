//! Numbers as they are written, compared without rounding and without large integers: a client's `1e999999999` costs
//! nine digits, not a billion.

use std::cmp::Ordering;
use std::fmt::Write;

/// `digits` × 10^`exponent`; no zeros at either end of the digits, none at all for zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decimal {
    negative: bool,
    digits: String,
    exponent: i64,
}

/// Larger exponents are cut to this: nobody can tell.
const MAX_EXPONENT: i64 = 1 << 40;
/// As many digits as a divisor may have.
const MAX_DIVISOR: usize = 18;

impl Decimal {
    /// Of a number that is valid JSON.
    pub(crate) fn parse(text: &str) -> Self {
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let exponent = exponent.parse::<i64>().unwrap_or(if exponent.starts_with('-') { i64::MIN } else { i64::MAX });
        let mut digits = [whole, fraction].concat();
        let zeros = digits.len() - digits.trim_end_matches('0').len();
        digits.truncate(digits.len() - zeros);
        let leading = digits.len() - digits.trim_start_matches('0').len();
        digits.drain(..leading);
        if digits.is_empty() {
            return Self { negative: false, digits, exponent: 0 };
        }
        let length = |length: usize| i64::try_from(length).unwrap_or(MAX_EXPONENT);
        let exponent = exponent.clamp(-MAX_EXPONENT, MAX_EXPONENT) - length(fraction.len()) + length(zeros);
        Self { negative, digits, exponent }
    }

    pub(crate) const fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    pub(crate) const fn is_positive(&self) -> bool {
        !self.negative && !self.digits.is_empty()
    }

    /// A count, for `maxItems` and its like; too large a one is as good as the largest.
    pub(crate) fn count(&self) -> Option<u64> {
        if self.negative || !self.is_integer() {
            return None;
        }
        let zeros = usize::try_from(self.exponent).unwrap_or(usize::MAX).min(32);
        let digits = if self.digits.is_empty() { "0".to_owned() } else { self.digits.clone() + &"0".repeat(zeros) };
        Some(digits.parse().unwrap_or(u64::MAX))
    }

    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        match (self.sign(), other.sign()) {
            (a, b) if a != b => a.cmp(&b),
            (-1, _) => other.magnitude(self),
            _ => self.magnitude(other),
        }
    }

    fn sign(&self) -> i8 {
        match (self.digits.is_empty(), self.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }

    fn magnitude(&self, other: &Self) -> Ordering {
        // The place of the first digit; then digit by digit.
        let top = |number: &Self| number.exponent + i64::try_from(number.digits.len()).unwrap_or(MAX_EXPONENT);
        top(self).cmp(&top(other)).then_with(|| self.digits.cmp(&other.digits))
    }

    /// Whether a divisor is small enough for [`Decimal::is_multiple_of`].
    pub(crate) const fn can_divide(&self) -> bool {
        self.digits.len() <= MAX_DIVISOR
    }

    pub(crate) fn is_multiple_of(&self, divisor: &Self) -> bool {
        let Ok(modulus) = divisor.digits.parse::<u64>() else { return true };
        if self.digits.is_empty() || modulus == 0 {
            return true;
        }
        // The last digit is not 0, so it is no multiple of what ends further up.
        let Ok(zeros) = u64::try_from(self.exponent - divisor.exponent) else { return false };
        let modulus = u128::from(modulus);
        let digits = self.digits.bytes().map(|digit| u128::from(digit - b'0'));
        let rest = digits.fold(0, |rest, digit| (rest * 10 + digit) % modulus);
        (rest * power_of_ten(zeros, modulus)).is_multiple_of(modulus)
    }

    pub(crate) fn canonical(&self, out: &mut String) {
        let sign = if self.negative { '-' } else { '+' };
        let _ = write!(out, "{sign}{}e{}", self.digits, self.exponent);
    }
}

impl std::fmt::Display for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { digits, exponent, .. } = self;
        let sign = if self.negative { "-" } else { "" };
        let point = i64::try_from(digits.len()).unwrap_or(0) + exponent;
        match (usize::try_from(*exponent), usize::try_from(point)) {
            _ if digits.is_empty() => f.write_str("0"),
            (Ok(zeros), _) if zeros < 20 => write!(f, "{sign}{digits}{}", "0".repeat(zeros)),
            (Err(_), Ok(point)) if point > 0 => write!(f, "{sign}{}.{}", &digits[..point], &digits[point..]),
            _ => write!(f, "{sign}{digits}e{exponent}"),
        }
    }
}

/// 10^`power` mod `modulus`, which is below 10^18.
fn power_of_ten(mut power: u64, modulus: u128) -> u128 {
    let (mut result, mut base) = (1 % modulus, 10 % modulus);
    while power > 0 {
        if power & 1 == 1 {
            result = result * base % modulus;
        }
        base = base * base % modulus;
        power >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_compare_exactly() {
        let ascending = [
            "-1e400",
            "-10",
            "-9.5",
            "-1e-400",
            "0",
            "1e-7",
            "0.1",
            "0.10000000000000000001",
            "1",
            "9007199254740993",
            "9007199254740994",
            "1e308",
            "1e309",
            "1e99999999999999999999",
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(Decimal::parse(a).compare(&Decimal::parse(b)), i.cmp(&j), "{a} {b}");
            }
        }
        assert_eq!(Decimal::parse("1.50e1"), Decimal::parse("15"));
        for (written, shown) in [("-0.0", "0"), ("1e2", "100"), ("-12.50", "-12.5"), ("0.05", "5e-2"), ("1e99", "1e99")]
        {
            assert_eq!(Decimal::parse(written).to_string(), shown);
        }
    }

    #[test]
    fn multiples_and_integers() {
        for (number, divisor, is_multiple) in [
            ("9", "3", true),
            ("10", "3", false),
            ("19.99", "0.01", true),
            ("0.075", "0.01", false),
            ("0", "7", true),
            ("-6", "3", true),
            ("1e308", "5", true),
            ("1e308", "3", false),
            ("7", "1e3", false),
            ("1.5", "0.5", true),
            ("12391239123", "1e-8", true),
        ] {
            assert_eq!(
                Decimal::parse(number).is_multiple_of(&Decimal::parse(divisor)),
                is_multiple,
                "{number} {divisor}"
            );
        }
        for (number, count) in
            [("3", Some(3)), ("3.0", Some(3)), ("1e308", Some(u64::MAX)), ("0", Some(0)), ("-1", None), ("1.5", None)]
        {
            assert_eq!(Decimal::parse(number).count(), count, "{number}");
        }
    }
}
