//! Usage under any of the names that servers give it, normalised so that totals add up.

use wire::json::{Raw, Text};
use wire::responses::Usage;

/// `None` where the counts are missing.
pub(super) fn read(usage: Raw<'_>) -> Option<Usage> {
    let usage = Members::of(usage);
    let input_tokens = usage.first(&["prompt_tokens", "input_tokens"])?;
    let mut output_tokens = usage.first(&["completion_tokens", "output_tokens"])?;
    let nested = |objects: &[&str], names: &[&str]| {
        objects.iter().filter_map(|object| usage.get(object)).find_map(|details| Members::of(details).first(names))
    };
    let input_details = ["prompt_tokens_details", "input_tokens_details"];
    let cached = nested(&input_details, &["cached_tokens"])
        .or_else(|| usage.first(&["prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens"]));
    let written = nested(&input_details, &["cache_write_tokens", "cache_creation_tokens"])
        .or_else(|| usage.first(&["cache_creation_input_tokens"]));
    let reasoning = nested(&["completion_tokens_details", "output_tokens_details"], &["reasoning_tokens"])
        .or_else(|| usage.first(&["reasoning_tokens"]))
        .unwrap_or(0);
    // Some servers count reasoning outside of the completion; the total tells, or the sizes.
    match usage.first(&["total_tokens"]) {
        Some(total) => output_tokens = output_tokens.max(total.saturating_sub(input_tokens)),
        None if reasoning > output_tokens => output_tokens = output_tokens.saturating_add(reasoning),
        None => {}
    }
    Some(Usage {
        input_tokens,
        cached_tokens: cached.unwrap_or(0).min(input_tokens),
        cache_write_tokens: written.unwrap_or(0),
        output_tokens,
        reasoning_tokens: reasoning.min(output_tokens),
        total_tokens: input_tokens.saturating_add(output_tokens),
    })
}

/// An object's members, found once: it is asked for many names.
struct Members<'a>(Vec<(Text<'a>, Raw<'a>)>);

impl<'a> Members<'a> {
    fn of(object: Raw<'a>) -> Self {
        Self(object.fields().collect())
    }

    /// As [`Raw::get`].
    fn get(&self, name: &str) -> Option<Raw<'a>> {
        self.0.iter().rev().find(|(key, _)| key.is(name)).map(|(_, value)| *value)
    }

    fn first(&self, names: &[&str]) -> Option<u64> {
        names.iter().filter_map(|name| self.get(name)).find_map(number)
    }
}

/// A guess from sizes, for servers that send no usage: four bytes to a token, at least one.
pub(super) fn estimate(prompt_bytes: usize, answer_bytes: usize, reasoning_bytes: usize) -> Usage {
    let tokens = |bytes: usize| u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX);
    let reasoning_tokens = tokens(reasoning_bytes);
    let (input_tokens, output_tokens) = (tokens(prompt_bytes), tokens(answer_bytes).saturating_add(reasoning_tokens));
    let total_tokens = input_tokens.saturating_add(output_tokens);
    Usage { input_tokens, output_tokens, reasoning_tokens, total_tokens, ..Usage::default() }
}

/// More tokens than this nobody has ever read or written at once.
const MOST: u64 = 1 << 40;

/// A count, also where it is written as a float. What cannot be one is not said.
pub(super) fn number(raw: Raw<'_>) -> Option<u64> {
    let text = raw.as_str();
    let count = text.parse().ok().or_else(|| text.strip_suffix(".0")?.parse().ok());
    count.filter(|count| *count <= MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_sums() {
        let usage = |input, cached, output, reasoning| Usage {
            input_tokens: input,
            cached_tokens: cached,
            output_tokens: output,
            reasoning_tokens: reasoning,
            total_tokens: input + output,
            cache_write_tokens: 0,
        };
        for (json, expected) in [
            (r#"{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}"#, Some(usage(5, 0, 7, 0))),
            (
                r#"{"prompt_tokens":5,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":3},
                "completion_tokens_details":{"reasoning_tokens":2}}"#,
                Some(usage(5, 3, 7, 2)),
            ),
            (r#"{"prompt_tokens":5.0,"completion_tokens":7,"prompt_cache_hit_tokens":4}"#, Some(usage(5, 4, 7, 0))),
            (
                r#"{"prompt_tokens":5,"completion_tokens":7,"total_tokens":20,
                "completion_tokens_details":{"reasoning_tokens":8}}"#,
                Some(usage(5, 0, 15, 8)),
            ),
            (
                r#"{"prompt_tokens":5,"completion_tokens":7,"completion_tokens_details":{"reasoning_tokens":8}}"#,
                Some(usage(5, 0, 15, 8)),
            ),
            (r#"{"input_tokens":5,"output_tokens":7,"cache_read_input_tokens":2}"#, Some(usage(5, 2, 7, 0))),
            (r#"{"prompt_tokens":5,"completion_tokens":7,"prompt_tokens_details":null}"#, Some(usage(5, 0, 7, 0))),
            (r#"{"prompt_tokens":"x"}"#, None),
            // No count at all, or of more than there can be: not said.
            (r#"{"prompt_tokens":-5,"completion_tokens":7}"#, None),
            (r#"{"prompt_tokens":5,"completion_tokens":1e18}"#, None),
            (r#"{"prompt_tokens":5,"completion_tokens":1099511627777}"#, None),
            (r#"{"prompt_tokens":5,"completion_tokens":1099511627776}"#, Some(usage(5, 0, 1 << 40, 0))),
            (
                r#"{"prompt_tokens":5,"completion_tokens":7,"total_tokens":18446744073709551615,
                "prompt_tokens_details":{"cached_tokens":9999999999999},
                "completion_tokens_details":{"reasoning_tokens":9999999999999}}"#,
                Some(usage(5, 0, 7, 0)),
            ),
            ("{}", None),
        ] {
            assert_eq!(read(Raw::parse(json).unwrap()), expected, "{json}");
        }
        assert_eq!(estimate(17, 9, 4), usage(5, 0, 4, 1));
    }
}
