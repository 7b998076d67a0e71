//! How many tokens a model takes, out of the words with which its server refuses more.

/// What servers say before the number.
const BEFORE: &[&str] = &[
    "maximum context length",
    "maximum context size",
    "maximum prompt length",
    "maximum input length",
    "available context size",
    "context window",
    "context length",
    "context size",
    "maximum number of tokens allowed",
    "maximum number of input tokens allowed",
    "maximum model length",
    "model token limit",
    "range of input length should be [1",
    "max_new_tokens must be <=",
    "max_new_tokens` must be <=",
    "inputs must have less than",
    "inputs` must have less than",
    "exceeds the limit",
    "n_ctx",
];

/// What may be between them.
const BETWEEN: &[&str] = &["is", "of", "only", "limit", "size", "this", "model", "for"];

/// Nothing else in such a message is taken for a window.
const SENSIBLE: std::ops::RangeInclusive<u64> = 256..=100_000_000;

/// The words of an error are looked at this far.
const LOOKED_AT: usize = 4096;

/// The window that the message of an overflow names: `maximum context length is 32768 tokens`.
pub fn window_in(message: &str) -> Option<u64> {
    let message = message.get(..message.floor_char_boundary(LOOKED_AT))?.to_ascii_lowercase();
    let after = BEFORE.iter().find_map(|words| {
        let places = message.match_indices(words);
        places
            .filter_map(|(at, words)| number_after(&message[at + words.len()..]))
            .find(|window| SENSIBLE.contains(window))
    });
    // `prompt is too long: 215000 tokens > 200000 maximum`.
    let compared = || number_before(message.split_once(" maximum")?.0);
    // "input length and `max_tokens` exceed context limit: 10 + 64000 > 60000, decrease input length".
    let summed = || number_after(message.split_once("exceed context limit")?.1.split_once('>')?.1);
    after.or_else(|| compared().or_else(summed).filter(|window| SENSIBLE.contains(window)))
}

/// The number that follows, with at most a few words that mean nothing before it.
fn number_after(text: &str) -> Option<u64> {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != ';');
        if rest.starts_with(|c: char| c.is_ascii_digit()) {
            return number(rest.split(|c: char| !c.is_ascii_digit() && c != ',').next()?);
        }
        let word = BETWEEN.iter().find(|word| {
            rest.strip_prefix(**word).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
        })?;
        rest = &rest[word.len()..];
    }
}

fn number_before(text: &str) -> Option<u64> {
    let (_, digits) = text.rsplit_once('>')?;
    number(digits.trim())
}

/// `32768`, `32,768`; a comma may also follow.
fn number(digits: &str) -> Option<u64> {
    digits.trim_end_matches(',').replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_read_where_a_server_names_them() {
        for (message, window) in [
            (
                "This model's maximum context length is 4096 tokens. However, your prompt contains at least 4097 input tokens",
                Some(4096),
            ),
            (
                "This model's maximum context length is 4096 tokens. However, you requested 8205 tokens (8201 in the messages, 4 in the completion).",
                Some(4096),
            ),
            ("request (8212 tokens) exceeds the available context size (4096 tokens), try increasing it", Some(4096)),
            (
                "Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a total of 140000 tokens",
                Some(131_072),
            ),
            ("This model's maximum prompt length is 131,072 but the request contains 139421 tokens.", Some(131_072)),
            (
                "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
                Some(1_048_576),
            ),
            ("prompt is too long: 215000 tokens > 200000 maximum", Some(200_000)),
            ("InternalError.Algo.InvalidParameter: Range of input length should be [1, 983616]", Some(983_616)),
            ("Your request exceeded model token limit: 262144 (requested: 269030)", Some(262_144)),
            ("The input (9000 tokens) is longer than the model's context length (8192 tokens).", Some(8192)),
            ("The decoder prompt (length 8357) is longer than the maximum model length of 8192.", Some(8192)),
            ("prompt token count of 93854 exceeds the limit of 90000", Some(90_000)),
            (
                "Trying to keep the first 10136 tokens when context the overflows. However, the model is loaded with context length of only 7866 tokens, which is not enough.",
                Some(7866),
            ),
            ("`inputs` tokens + `max_new_tokens` must be <= 1512. Given: 1000 `inputs` tokens", Some(1512)),
            ("inputs tokens + max_new_tokens must be <= 2048", Some(2048)),
            ("`inputs` must have less than 4095 tokens. Given: 5000", Some(4095)),
            (
                "'max_tokens' or 'max_completion_tokens' is too large: 9000. This model's maximum context length is 8000 tokens and your request has 5 input tokens (9000 > 8000 - 5).",
                Some(8000),
            ),
            (
                "input length and `max_tokens` exceed context limit: 10 + 64000 > 60000, decrease input length or `max_tokens`",
                Some(60_000),
            ),
            ("Prompt exceeds max length", None),
            ("Your input exceeds the context window of this model. Please adjust your input and try again.", None),
            ("context length exceeded: 8212 tokens", None),
            ("maximum context length is 12 tokens", None),
            ("maximum context length is 99999999999999999999999 tokens", None),
            ("the maximum context length is exceeded; 8192 were sent", None),
            ("", None),
        ] {
            assert_eq!(window_in(message), window, "{message}");
        }
        assert_eq!(window_in(&"context window ".repeat(100_000)), None);
        assert_eq!(window_in(&"é".repeat(100_000)), None);
    }
}
