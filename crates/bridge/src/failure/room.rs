//! How much output there is, or there is room for, out of the numbers of an error: "128000 > 64000", and "185000 + 32000 >
//! 200000", where the first is the input.

use super::unsupported::{Proof, Refusal, Unsupported};

/// Less room than this is none: an answer that hardly begins helps nobody.
const LEAST: u64 = 1024;

/// What is too much, of an error that is known to be about it.
pub(super) fn allowed(message: &str) -> Option<Refusal> {
    message.match_indices('>').find_map(|(at, _)| {
        let after = message[at + 1..].trim_start();
        let most: u64 = after[..after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len())].parse().ok()?;
        let (before, _asked) = last_number(&message[..at])?;
        match before.trim_end().strip_suffix('+') {
            // So much is left beside this input.
            Some(before) => {
                let (_, input) = last_number(before)?;
                let room = most.checked_sub(input).filter(|room| *room >= LEAST)?;
                Some(Refusal { unsupported: Unsupported::Room(room), proof: Proof::Hearsay })
            }
            None if most > 0 => Some(Refusal { unsupported: Unsupported::Output(most), proof: Proof::Words }),
            None => None,
        }
    })
}

/// The number at the end of a text, and what is before it.
fn last_number(text: &str) -> Option<(&str, u64)> {
    let text = text.trim_end();
    let before = text.trim_end_matches(|c: char| c.is_ascii_digit());
    Some((before, text[before.len()..].parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_say_how_much_there_is() {
        for (message, expected) in [
            ("max_tokens: 128000 > 64000, which is the most", Some(Unsupported::Output(64_000))),
            ("exceed context limit: 185000 + 32000 > 200000, decrease", Some(Unsupported::Room(15_000))),
            ("exceed context limit: 185000+32000>200000", Some(Unsupported::Room(15_000))),
            // There is hardly any, or none at all.
            ("exceed context limit: 199500 + 32000 > 200000", None),
            ("exceed context limit: 215000 + 32000 > 200000", None),
            ("max_tokens: 5 > 0", None),
            ("a -> b: 7 > 3", Some(Unsupported::Output(3))),
            ("too many > few", None),
            ("> 99999999999999999999999", None),
            ("", None),
        ] {
            assert_eq!(allowed(message).map(|refusal| refusal.unsupported), expected, "{message}");
        }
    }
}
