//! Text that compresses about as prose does: common words in random order, names and numbers among them.

use std::fmt::Write;

const WORDS: &[&str] = &[
    "the", "store", "keeps", "each", "turn", "of", "a", "session", "and", "gives", "it", "back", "whole", "or", "not",
    "at", "all", "so", "that", "nobody", "builds", "upon", "what", "was", "never", "there", "function", "returns",
    "value", "error", "when", "file", "cannot", "be", "read", "line", "number", "because",
];

pub(super) struct Words(u64);

impl Words {
    pub(super) const fn new() -> Self {
        Self(1)
    }

    pub(super) fn prose(&mut self, bytes: usize) -> String {
        let mut text = String::from("the ");
        while text.len() < bytes {
            text.push_str(WORDS[self.below(WORDS.len())]);
            let extra = self.below(1_000_000);
            let _ = if extra.is_multiple_of(4) { write!(text, " {extra:x} ") } else { write!(text, " ") };
        }
        text
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}
