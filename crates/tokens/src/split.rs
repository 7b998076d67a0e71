//! Text as the pieces that a tokenizer encodes one by one: words, numbers, signs, blanks.

use regex_automata::meta::{BuildError, Regex};
use regex_automata::{Anchored, Input};

/// What OpenAI's models are said to split by, in the order in which it is tried. That engine has no look-ahead: the blanks
/// before a word are matched up to the last one, which is [`LAST_GOES`] with the word.
pub(crate) const O200K: [&str; 3] = [
    concat!(
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+$",
    ),
    r"\s+\s",
    r"\s+",
];
pub(crate) const CL100K: [&str; 3] = [
    concat!(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|",
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+$",
    ),
    r"\s+\s",
    r"\s+",
];
/// The pattern of which the last character belongs to the next piece.
const LAST_GOES: usize = 1;

pub(crate) struct Splitter(Regex);

impl Splitter {
    pub(crate) fn new(patterns: &[&str]) -> Result<Self, Box<BuildError>> {
        Ok(Self(Regex::new_many(patterns).map_err(Box::new)?))
    }

    /// The pieces of a text; all of them together are all of it.
    pub(crate) fn pieces<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a str> {
        let mut rest = text;
        std::iter::from_fn(move || {
            let found = self.0.find(Input::new(rest).anchored(Anchored::Yes))?;
            let matched = rest.get(found.range())?;
            let goes = if found.pattern().as_usize() == LAST_GOES { matched.chars().next_back() } else { None };
            let (piece, next) = rest.split_at_checked(matched.len() - goes.map_or(0, char::len_utf8))?;
            rest = next;
            Some(piece)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_words_numbers_signs_and_blanks() {
        let (o200k, cl100k) = (Splitter::new(&O200K).unwrap(), Splitter::new(&CL100K).unwrap());
        for (text, newer, older) in [
            ("", "", ""),
            ("Hello world", "Hello| world", "Hello| world"),
            ("two   words  ", "two|  | words|  ", "two|  | words|  "),
            ("12345 x", "123|45| x", "123|45| x"),
            ("CamelCase's", "Camel|Case's", "CamelCase|'s"),
            ("a://b\r\n \n c", "a|://|b|\r\n \n| c", "a|://|b|\r\n \n| c"),
            ("//\n/x", "//\n/|x", "//\n|/x"),
        ] {
            assert_eq!(o200k.pieces(text).collect::<Vec<_>>().join("|"), newer);
            assert_eq!(cl100k.pieces(text).collect::<Vec<_>>().join("|"), older);
        }
    }
}
