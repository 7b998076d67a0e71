//! Byte-pair encoding: of all neighbours that are a token together, the one of the lowest rank is merged, the leftmost first,
//! until there is none.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::vocabulary::{Rank, Vocabulary};

/// Longer pieces are merged by windows of this length, so that what is to be merged stays little. No token is as long as
/// the quarter of it in which two of them overlap.
const WINDOW: usize = 1 << 10;

/// Counts the tokens of pieces of text, one after the other, in the same memory.
pub(crate) struct Merge<'a> {
    vocabulary: &'a Vocabulary,
    /// By where they begin: the parts of the window, from one byte each to a token each.
    parts: Vec<Part>,
    /// Neighbours that are a token together: its rank, and where it begins. Some are not neighbours any more.
    pairs: BinaryHeap<Reverse<(Rank, usize)>>,
}

#[derive(Clone, Copy)]
struct Part {
    /// Where the part before it begins.
    before: usize,
    /// Where it ends, and the next one begins; 0 for what has become the inside of a part.
    end: usize,
}

impl<'a> Merge<'a> {
    pub(crate) const fn new(vocabulary: &'a Vocabulary) -> Self {
        Self { vocabulary, parts: Vec::new(), pairs: BinaryHeap::new() }
    }

    /// How many tokens a piece has.
    pub(crate) fn count(&mut self, piece: &[u8]) -> usize {
        if self.vocabulary.rank(piece).is_some() { 1 } else { self.count_parts(piece, WINDOW) }
    }

    fn count_parts(&mut self, piece: &[u8], mut window: usize) -> usize {
        loop {
            if let Some(tokens) = self.count_windows(piece, window) {
                return tokens;
            }
            window *= 2;
        }
    }

    /// Windows overlap. Where a token of one is the first of the next, what is before it and what follows is the encoding of
    /// both together: merging across one of its ends would have been seen in one of them. None where it is not: the windows
    /// are too small to tell.
    fn count_windows(&mut self, piece: &[u8], window: usize) -> Option<usize> {
        let (mut rest, mut tokens) = (piece, 0);
        self.merge(rest, window);
        while rest.len() > window {
            let (before, start, end) = self.middle(window - window / 4);
            let next = rest.get(start..)?;
            // Where a text repeats itself, its windows do.
            if next.get(..window) != rest.get(..window) {
                self.merge(next, window);
            }
            rest = next;
            if self.end(0) != end - start {
                return None;
            }
            tokens += before;
        }
        Some(tokens + self.middle(rest.len()).0)
    }

    /// How many tokens are before the first that begins there or later, and where that one begins and ends.
    fn middle(&self, least: usize) -> (usize, usize, usize) {
        let (mut before, mut start) = (0, 0);
        while start < least {
            start = self.end(start);
            before += 1;
        }
        (before, start, self.end(start))
    }

    /// Where the part that begins there ends.
    fn end(&self, start: usize) -> usize {
        self.parts.get(start).map_or(usize::MAX, |part| part.end)
    }

    /// Makes parts of the beginning of a text that are its tokens.
    fn merge(&mut self, text: &[u8], window: usize) {
        let text = text.get(..window).unwrap_or(text);
        self.parts.clear();
        self.parts.extend((0..text.len()).map(|at| Part { before: at.saturating_sub(1), end: at + 1 }));
        self.pairs.clear();
        for at in 1..text.len() {
            self.pair(text, at - 1, at + 1);
        }
        while let Some(Reverse((rank, start))) = self.pairs.pop() {
            self.join(text, start, start + self.vocabulary.length(rank));
        }
    }

    /// Remembers two neighbours, where they are a token together.
    fn pair(&mut self, text: &[u8], start: usize, end: usize) {
        if let Some(rank) = text.get(start..end).and_then(|both| self.vocabulary.rank(both)) {
            self.pairs.push(Reverse((rank, start)));
        }
    }

    /// Makes one part of two, if these still are two.
    fn join(&mut self, text: &[u8], start: usize, end: usize) {
        let Some(first) = self.parts.get(start).copied().filter(|first| first.end > 0 && first.end < end) else {
            return;
        };
        let Some(second) = self.parts.get_mut(first.end).filter(|second| second.end == end) else { return };
        second.end = 0;
        if let Some(joined) = self.parts.get_mut(start) {
            joined.end = end;
        }
        if let Some(next) = self.parts.get_mut(end) {
            next.before = start;
            let next_end = next.end;
            self.pair(text, start, next_end);
        }
        if start > 0 {
            self.pair(text, first.before, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "a" to "e", and what they become.
    fn vocabulary() -> Vocabulary {
        let tokens = ["a", "b", "c", "d", "e", "bc", "ab", "aa", "abc", "de", "aaaa", "cd"];
        let list: Vec<u8> = tokens
            .iter()
            .flat_map(|token| [&[u8::try_from(token.len()).unwrap()], token.as_bytes()].concat())
            .collect();
        Vocabulary::new(list.leak())
    }

    #[test]
    fn the_lowest_rank_is_merged_first_and_the_leftmost_of_it() {
        let vocabulary = vocabulary();
        let mut merge = Merge::new(&vocabulary);
        for (text, tokens) in [
            ("", 0),
            ("a", 1),
            ("ac", 2),
            // a bc: then they are a token together.
            ("abc", 1),
            // a bc d, and not ab cd.
            ("abcd", 2),
            ("cde", 2),
            ("aaaaa", 2),
            ("aaab", 2),
        ] {
            assert_eq!(merge.count(text.as_bytes()), tokens, "{text}");
        }
    }

    /// Slowly, as it is defined.
    fn plainly(vocabulary: &Vocabulary, text: &[u8]) -> usize {
        let mut parts: Vec<&[u8]> = text.chunks(1).collect();
        loop {
            let both = |at: usize| vocabulary.rank(&[parts[at], parts[at + 1]].concat()).map(|rank| (rank, at));
            let Some((_, at)) = (0..parts.len().saturating_sub(1)).filter_map(both).min() else { return parts.len() };
            let start: usize = parts[..at].iter().map(|part| part.len()).sum();
            let length = parts[at].len() + parts[at + 1].len();
            parts.splice(at..at + 2, [&text[start..start + length]]);
        }
    }

    #[test]
    fn windows_of_any_size_change_nothing() {
        let vocabulary = vocabulary();
        let mut seed: u32 = 7;
        for round in 0..400 {
            let text: Vec<u8> = (0..round % 90)
                .map(|_| {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    b"aaabcde"[(seed >> 16) as usize % 7]
                })
                .collect();
            let tokens = plainly(&vocabulary, &text);
            for window in [2, 3, 8, 16, 50, 1000] {
                let counted = Merge::new(&vocabulary).count_parts(&text, window);
                assert_eq!(counted, tokens, "{window}: {}", String::from_utf8_lossy(&text));
            }
        }
    }
}
