//! What a Messages answer took. Its counts come several times, each time as they are by then: the last word on each
//! counts, and nothing is added up. What was read from a cache, or written into it, is no part of `input_tokens` there.

use wire::json::{Kind, Raw};
use wire::responses::Usage;

use super::super::report::Volume;
use super::super::usage;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    input: Option<u64>,
    cache_read: Option<u64>,
    cache_written: Option<u64>,
    output: Option<u64>,
    thinking: Option<u64>,
    /// They are of the whole answer, and not of its beginning.
    is_final: bool,
}

impl Counts {
    /// What the beginning of an answer says.
    pub(super) fn begin(&mut self, usage: Option<Raw<'_>>) {
        self.read(usage);
    }

    /// What its end says.
    pub(super) fn end(&mut self, usage: Option<Raw<'_>>) {
        self.is_final |= self.read(usage);
    }

    /// Whether it says what the answer has.
    fn read(&mut self, usage: Option<Raw<'_>>) -> bool {
        let Some(usage) = usage.filter(|usage| usage.kind() == Kind::Object) else { return false };
        let count = |name: &str| usage.get(name).and_then(usage::number);
        let input = [count("input_tokens"), count("cache_read_input_tokens"), count("cache_creation_input_tokens")];
        // Some servers know the input in the beginning only, and say zero at the end; there is no prompt of nothing.
        if input.iter().flatten().any(|count| *count > 0) || self.input.is_none() {
            let [input, cache_read, cache_written] = input;
            self.input = input.or(self.input);
            self.cache_read = cache_read.or(self.cache_read);
            self.cache_written = cache_written.or(self.cache_written);
        }
        let output = count("output_tokens");
        self.output = output.or(self.output);
        let thinking = usage.get("output_tokens_details").and_then(|details| details.get("thinking_tokens"));
        self.thinking = thinking.and_then(usage::number).or(self.thinking);
        output.is_some_and(|output| output > 0)
    }

    /// What the answer took so far; what is not said of it is estimated from sizes. None where nothing is said.
    pub(super) fn usage(&self, prompt_bytes: usize, volume: Volume) -> Option<Usage> {
        self.input.or(self.output)?;
        let (cached, written) = (self.cache_read.unwrap_or(0), self.cache_written.unwrap_or(0));
        let guess = usage::estimate(prompt_bytes, volume.answered, volume.reasoned);
        let stored = cached.saturating_add(written);
        let input_tokens =
            self.input.map_or_else(|| stored.max(guess.input_tokens), |input| input.saturating_add(stored));
        let output = self.output.unwrap_or(0);
        let output_tokens = if self.is_final { output } else { output.max(guess.output_tokens) };
        let total_tokens = input_tokens.saturating_add(output_tokens);
        (total_tokens > 0).then(|| Usage {
            input_tokens,
            cached_tokens: cached,
            cache_write_tokens: written,
            output_tokens,
            reasoning_tokens: self.thinking.unwrap_or(0).min(output_tokens),
            total_tokens,
        })
    }

    /// Whether the upstream said all of it.
    pub(super) const fn is_final(&self) -> bool {
        self.is_final && self.input.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_counts_and_caches_are_part_of_the_input() {
        let full =
            r#"{"input_tokens":43,"cache_read_input_tokens":100,"cache_creation_input_tokens":7,"output_tokens":1}"#;
        let size = Volume { answered: 40, reasoned: 0 };
        for (begin, end, expected) in [
            (full, r#"{"output_tokens":9}"#, Some((150, 100, 7, 9, 0))),
            (full, r#"{"input_tokens":61,"output_tokens":9}"#, Some((168, 100, 7, 9, 0))),
            (full, r#"{"input_tokens":0,"output_tokens":9}"#, Some((150, 100, 7, 9, 0))),
            (full, r#"{"output_tokens":9,"output_tokens_details":{"thinking_tokens":4}}"#, Some((150, 100, 7, 9, 4))),
            // What it ends with is not said: by size.
            (full, "null", Some((150, 100, 7, 10, 0))),
            (
                r#"{"input_tokens":0,"output_tokens":0}"#,
                r#"{"input_tokens":8,"output_tokens":3}"#,
                Some((8, 0, 0, 3, 0)),
            ),
            ("null", "null", None),
            // One odd number costs no other: the prompt has 80 bytes.
            (r#"{"input_tokens":"x"}"#, r#"{"output_tokens":3}"#, Some((20, 0, 0, 3, 0))),
            (r#"{"input_tokens":-1,"output_tokens":1}"#, r#"{"output_tokens":3}"#, Some((20, 0, 0, 3, 0))),
            (r#"{"input_tokens":1.5,"cache_read_input_tokens":50}"#, r#"{"output_tokens":3}"#, Some((50, 50, 0, 3, 0))),
            (
                r#"{"input_tokens":-1,"output_tokens":1}"#,
                r#"{"input_tokens":8,"output_tokens":3}"#,
                Some((8, 0, 0, 3, 0)),
            ),
            (full, r#"{"input_tokens":1099511627777,"output_tokens":9}"#, Some((150, 100, 7, 9, 0))),
            (full, r#"{"output_tokens":1099511627777}"#, Some((150, 100, 7, 10, 0))),
        ] {
            let mut counts = Counts::default();
            counts.begin(Raw::parse(begin).ok());
            counts.end(Raw::parse(end).ok());
            let found = counts.usage(80, size).map(|usage| {
                assert_eq!(usage.total_tokens, usage.input_tokens + usage.output_tokens);
                let Usage { input_tokens, cached_tokens, cache_write_tokens, output_tokens, reasoning_tokens, .. } =
                    usage;
                (input_tokens, cached_tokens, cache_write_tokens, output_tokens, reasoning_tokens)
            });
            assert_eq!(found, expected, "{begin} {end}");
        }
    }
}
