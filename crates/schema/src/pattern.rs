//! The patterns of schemas: ECMA-262 in name, run by an engine that is linear in the text.

use regex_lite::{Regex, RegexBuilder};

/// A program that can be run, and what a byte of text costs in it.
#[derive(Debug)]
pub(crate) struct Pattern {
    program: Regex,
    /// How large the program may be.
    size: usize,
}

/// Sizes that are tried; the larger the program, the more a byte costs.
const SIZES: [usize; 3] = [1 << 10, 8 << 10, 64 << 10];
const MAX_PATTERN: usize = 4 << 10;

impl Pattern {
    /// `budget`: what the programs of all patterns may still take.
    pub(crate) fn compile(pattern: &str, budget: &mut usize) -> Result<Self, String> {
        if pattern.len() > MAX_PATTERN {
            return Err("is too long".to_owned());
        }
        let translated = translate(pattern);
        for size in SIZES.into_iter().filter(|size| size <= budget) {
            match RegexBuilder::new(&translated).size_limit(size).build() {
                Ok(program) => {
                    *budget -= size;
                    return Ok(Self { program, size });
                }
                Err(error) if error.to_string().contains("size") => {}
                Err(error) => return Err(format!("cannot be checked ({error})")),
            }
        }
        Err("is too large".to_owned())
    }

    /// How many steps it costs to look at the text.
    pub(crate) const fn cost(&self, text: &str) -> u64 {
        (text.len() as u64 + 1).saturating_mul(self.size as u64 / 256)
    }

    pub(crate) fn matches(&self, text: &str) -> bool {
        self.program.is_match(text)
    }
}

/// What means something else to our engine: inside of brackets, brackets and doubled signs are just characters.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 8);
    let (mut in_class, mut characters) = (false, pattern.chars().peekable());
    while let Some(c) = characters.next() {
        match c {
            '\\' => {
                let next = characters.next();
                match next {
                    // Only needed where patterns are written between slashes.
                    Some('/') => out.push('/'),
                    _ => {
                        out.push('\\');
                        out.extend(next);
                    }
                }
            }
            '[' if !in_class => {
                in_class = true;
                out.push('[');
                if characters.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
            }
            '[' => out.push_str("\\["),
            ']' => {
                in_class = false;
                out.push(']');
            }
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_ecma() {
        for (pattern, text, expected) in [
            ("^a+$", "aaa", Ok(true)),
            ("b", "abc", Ok(true)),
            (r"^\d{3}-\w$", "123-x", Ok(true)),
            (r"^\d$", "٣", Ok(false)),
            ("^[[]$", "[", Ok(true)),
            ("^[a&&b]$", "&", Ok(true)),
            (r"^a\/b$", "a/b", Ok(true)),
            (r"^[\]]$", "]", Ok(true)),
            (r"^\u0041$", "A", Ok(true)),
            ("^(a|a)*$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", Ok(false)),
            ("^(?=a)", "a", Err(())),
            (r"(a)\1", "aa", Err(())),
            ("(", "", Err(())),
            (r"((a{100}){100}){100}", "", Err(())),
        ] {
            let found = Pattern::compile(pattern, &mut (1 << 20)).map(|pattern| pattern.matches(text)).map_err(drop);
            assert_eq!(found, expected, "{pattern} {text}");
        }
        assert!(Pattern::compile("a", &mut 100).is_err(), "beyond the budget");
    }
}
