//! The form of an API key: `gdx_`, 160 random bits as 27 base62 digits, and 6 more that are the CRC-32 of all before
//! them. Whoever looks for leaked keys finds them by `gdx_[0-9A-Za-z]{33}` and need not ask whether they are some; and
//! one that was mistyped or cut is told from one that is not known.

use aws_lc_rs::digest::{SHA256, digest};

use crate::clock;
use crate::config::{KEY_PREFIX as PREFIX, Secret};

/// 62^27 > 2^160.
const RANDOM: usize = 27;
/// 62^6 > 2^32.
const CHECK: usize = 6;
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// How many of a key's last characters people may see.
const SHOWN: usize = 4;
/// Of shorter ones these would be too much.
const SHORTEST_SHOWN: usize = 16;

/// A new key; none where the system has no random numbers.
pub fn make() -> Option<Secret> {
    clock::secret_bits().map(|bits| Secret::new(of(bits)))
}

fn of(bits: [u8; 20]) -> String {
    let mut digits = [0_u8; RANDOM];
    let mut rest = bits;
    for digit in digits.iter_mut().rev() {
        // The number divided by 62, byte by byte.
        let remainder = rest.iter_mut().fold(0_u32, |carried, byte| {
            let part = carried << 8 | u32::from(*byte);
            *byte = u8::try_from(part / 62).unwrap_or_default();
            part % 62
        });
        *digit = base62(remainder);
    }
    let mut key = PREFIX.to_owned();
    key.extend(digits.map(char::from));
    let check = checksum(&key);
    key.extend(check.map(char::from));
    key
}

fn checksum(text: &str) -> [u8; CHECK] {
    let mut crc = flate2::Crc::new();
    crc.update(text.as_bytes());
    let (mut rest, mut digits) = (crc.sum(), [0; CHECK]);
    for digit in digits.iter_mut().rev() {
        *digit = base62(rest % 62);
        rest /= 62;
    }
    digits
}

fn base62(digit: u32) -> u8 {
    usize::try_from(digit).ok().and_then(|at| DIGITS.get(at)).copied().unwrap_or(b'0')
}

/// Whether it was to be one of ours and is none that was ever made. Nothing secret is compared: the check is of what was
/// sent alone.
pub(super) fn is_mistyped(sent: &[u8]) -> bool {
    sent.starts_with(PREFIX.as_bytes()) && str::from_utf8(sent).is_ok() && !is_whole(sent)
}

/// Whether it may be one that was made.
pub(super) fn is_whole(sent: &[u8]) -> bool {
    let Some(sent) = str::from_utf8(sent).ok().filter(|text| text.starts_with(PREFIX)) else { return false };
    let whole = sent.len() == PREFIX.len() + RANDOM + CHECK;
    let checked = sent.split_at_checked(PREFIX.len() + RANDOM).filter(|_| whole);
    checked.is_some_and(|(before, check)| checksum(before) == check.as_bytes())
}

/// By which people tell keys apart.
pub(super) fn hint(key: &str) -> String {
    let mut from = key.len().saturating_sub(SHOWN);
    while !key.is_char_boundary(from) {
        from += 1;
    }
    key[from..].to_owned()
}

/// As much of a credential as may be said to whoever sent it.
pub(super) fn shown(sent: &[u8]) -> String {
    let text = str::from_utf8(sent).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_graphic()));
    let end = text.filter(|text| text.len() >= SHORTEST_SHOWN).map(hint).unwrap_or_default();
    let start = if sent.starts_with(PREFIX.as_bytes()) { PREFIX } else { "" };
    format!("{start}****{end}")
}

/// By what keys are known and found. A key is random or long, so nothing slower is needed.
pub(super) fn hash(sent: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, sent).as_ref());
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_a_form_that_scanners_find() {
        for (bits, random) in [
            ([0; 20], "0".repeat(27)),
            ([0xff; 20], "aWgEPTl1tmebfsQzFP4bxwgy80V".to_owned()),
            (std::array::from_fn(|at| u8::from(at == 19) * 61), format!("{}z", "0".repeat(26))),
            (std::array::from_fn(|at| u8::from(at == 19) * 62), format!("{}10", "0".repeat(25))),
        ] {
            let key = of(bits);
            assert_eq!(key.len(), 37, "{key}");
            assert_eq!(key[4..31], random, "{key}");
            assert!(key.starts_with("gdx_") && key[4..].bytes().all(|byte| byte.is_ascii_alphanumeric()), "{key}");
            assert!(!is_mistyped(key.as_bytes()), "{key}");
        }
        let (one, other) = (make().unwrap(), make().unwrap());
        assert!(one.expose() != other.expose() && !is_mistyped(one.expose().as_bytes()));
    }

    #[test]
    fn every_bit_of_the_random_number_is_in_the_key() {
        let keys: std::collections::BTreeSet<String> =
            (0..160).map(|bit| of(std::array::from_fn(|at| u8::from(at == bit / 8) << (bit % 8)))).collect();
        assert_eq!(keys.len(), 160);
    }

    #[test]
    fn a_mistyped_key_is_known_as_one() {
        let key = of([7; 20]);
        for at in PREFIX.len()..key.len() {
            for other in ['0', 'z'] {
                let mut wrong = key.clone();
                wrong.replace_range(at..=at, &other.to_string());
                assert_eq!(is_mistyped(wrong.as_bytes()), wrong != key, "{wrong}");
            }
        }
        let swapped = format!("{}{}{}{}", &key[..10], &key[11..12], &key[10..11], &key[12..]);
        for (sent, mistyped) in [
            (key[..36].to_owned(), true),
            (format!("{key}0"), true),
            ("gdx_".to_owned(), true),
            (swapped.clone(), swapped != key),
            (format!("gdx_{}", "\u{e9}".repeat(20)), true),
            ("sk-proj-0123456789012345".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(is_mistyped(sent.as_bytes()), mistyped, "{sent}");
        }
    }

    #[test]
    fn little_of_a_credential_is_shown() {
        for (sent, expected) in [
            (&b"gdx_0123456789abcdef"[..], "gdx_****cdef"),
            (b"sk-proj-0123456789abcdef", "****cdef"),
            (b"secret", "****"),
            (b"gdx_secret", "gdx_****"),
            (b"0123456789 with a blank", "****"),
            (b"0123456789abcdef\xff", "****"),
            ("0123456789abcdef\u{e9}".as_bytes(), "****"),
        ] {
            assert_eq!(shown(sent), expected);
        }
        assert_eq!((hint("0123456789\u{e9}ab"), hint("ab")), ("\u{e9}ab".to_owned(), "ab".to_owned()));
    }
}
