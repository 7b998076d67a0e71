//! How much output there is, or there is room for, out of the numbers of an error: "128000 > 64000"; "185000 + 32000 >
//! 200000" and "32000 > 16384 - 20", which tell the input; "1000 input tokens" beside a "context length" of so many; and a
//! limit that is more than the whole window, "a=32000 … greater than b=16384".

use super::unsupported::{Proof, Refusal, Unsupported};

/// Less room than this is none: an answer that hardly begins helps nobody.
const LEAST: u64 = 1024;

/// What is too much, of an error that is known to be about it; its message in lower case.
pub(super) fn allowed(message: &str) -> Option<Refusal> {
    compared(message).or_else(|| beside_the_input(message)).or_else(|| more_than_the_window(message))
}

/// A comparison in numbers.
fn compared(message: &str) -> Option<Refusal> {
    // A prompt beside its window is no limit.
    let is_of_a_window = message.contains("context length");
    message.match_indices('>').find_map(|(at, _)| {
        let (most, after) = first_number(&message[at + 1..])?;
        let (before, _asked) = last_number(&message[..at])?;
        let input = match (before.trim_end().strip_suffix('+'), after.trim_start().strip_prefix('-')) {
            (Some(before), _) => last_number(before).map(|(_, input)| input),
            (None, Some(after)) => first_number(after).map(|(input, _)| input),
            (None, None) => None,
        };
        match input {
            Some(input) => room(most, input),
            None if before.trim_end().ends_with('+') => None,
            None if most > 0 && !is_of_a_window => {
                Some(Refusal { unsupported: Unsupported::Output(most), proof: Proof::Words })
            }
            None => None,
        }
    })
}

/// A window and an input, each in its words.
fn beside_the_input(message: &str) -> Option<Refusal> {
    // At most a few words are between: "is only", "of".
    let behind = |words: &str| {
        let (_, after) = message.split_once(words)?;
        let at = after.find(|c: char| c.is_ascii_digit()).filter(|at| *at <= 24)?;
        first_number(&after[at..]).map(|(number, _)| number)
    };
    let before = |words: &str| {
        message.match_indices(words).find_map(|(at, _)| last_number(&message[..at]).map(|(_, number)| number))
    };
    let input = ["input tokens", "tokens from the input", "in the messages", "in the prompt"];
    room(behind("context length")?, input.into_iter().find_map(before)?)
}

/// A limit above all that there is, of an input that is not told. Half of it is a guess that leaves the input as much.
fn more_than_the_window(message: &str) -> Option<Refusal> {
    let (_, after) = message.split_once("greater than ")?;
    let names_and_number = after.split_whitespace().next()?.trim_end_matches(['.', ',']);
    let (names, most) = last_number(names_and_number)?;
    names.ends_with('=').then(|| room(most, most.div_ceil(2)))?
}

/// So much is left beside this input.
fn room(window: u64, input: u64) -> Option<Refusal> {
    let room = window.checked_sub(input).filter(|room| *room >= LEAST)?;
    Some(Refusal { unsupported: Unsupported::Room(room), proof: Proof::Hearsay })
}

/// The number at the beginning of a text, and what comes after it.
fn first_number(text: &str) -> Option<(u64, &str)> {
    let text = text.trim_start();
    let (digits, after) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    Some((digits.parse().ok()?, after))
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
            ("your request has 20 input tokens (32000 > 16384 - 20).", Some(Unsupported::Room(16_364))),
            ("your request has 16000 input tokens (32000 > 16384 - 16000).", None),
            ("(32000 > 16384 - 20000)", None),
            (
                "you passed 1000 input tokens and requested 131072 output tokens. however, the model's context length is \
                 only 131072 tokens, resulting in a maximum input length of 0 tokens.",
                Some(Unsupported::Room(130_072)),
            ),
            (
                "you passed 140000 input tokens and requested 32000 output tokens. however, the model's context length is \
                 only 131072 tokens, resulting in a maximum input length of 99072 tokens.",
                None,
            ),
            (
                "this model's maximum context length is 8192 tokens. however, you requested 9005 tokens (5 in the \
                 messages, 9000 in the completion).",
                Some(Unsupported::Room(8187)),
            ),
            (
                "the model's maximum context length of 16384 tokens. you requested a total of 33000 tokens: 1000 tokens \
                 from the input messages and 32000 tokens for the completion.",
                Some(Unsupported::Room(15_384)),
            ),
            // It says nothing of the input, or of the window.
            ("maximum context length is 8192 tokens. however, you requested 9005 tokens.", None),
            ("you passed 1000 input tokens", None),
            (
                "max_tokens=32000 cannot be greater than max_model_len=max_total_tokens=16384. please request less.",
                Some(Unsupported::Room(8192)),
            ),
            ("your prompt: 9000 > 8192, the maximum context length", None),
            ("top_p cannot be greater than 1.", None),
            ("x cannot be greater than y=5", None),
        ] {
            assert_eq!(allowed(message).map(|refusal| refusal.unsupported), expected, "{message}");
        }
    }
}
