//! Whether a pattern can be a regular expression of ECMAScript, which those of JSON schemas are. Not all that it refuses is
//! found, but what only other languages have is: inline flags, `(?P<name>`, `\A` and `\Z`, groups and repetitions that give
//! nothing back; and bounds and ranges the wrong way round, characters and groups that there are not. What only its Unicode
//! mode refuses, such as `\-` or a single `]`, may stay.
//!
//! Flags for a part of a pattern, `(?i:…)`, count as those of others: ECMAScript has them since 2025, which is newer than
//! what validators of schemas know, and nobody has told by what Claude's API reads patterns.
//!
//! Every character is looked at a fixed number of times, whatever the pattern: it is the client's.

use std::collections::BTreeSet;

/// What a group may begin with, behind `(?`. A name is another matter.
const GROUPS: &[&str] = &[":", "=", "!", "<=", "<!"];

pub(super) fn may_be_one(pattern: &str) -> bool {
    Reading { rest: pattern, ..Reading::default() }.all().is_some()
}

/// What a part of a pattern stands for.
enum Atom {
    /// This character.
    One(u32),
    /// Some character, or several.
    Other,
    /// No character, but a place between two.
    Edge,
    /// The end of a class.
    End,
}

/// Everything that reads gives none at the first thing that cannot be.
#[derive(Default)]
struct Reading<'p> {
    rest: &'p str,
    /// Of groups.
    names: BTreeSet<&'p str>,
    /// Those that are referred to.
    references: BTreeSet<&'p str>,
    is_name_repeated: bool,
    has_alternatives: bool,
}

impl<'p> Reading<'p> {
    fn all(mut self) -> Option<()> {
        let mut depth = 0_usize;
        // Whether there is something that can be repeated.
        let mut repeats = false;
        while let Some(next) = self.next() {
            repeats = match next {
                '\\' => !matches!(self.escape()?, Atom::Edge),
                '[' => self.class()?,
                '(' => {
                    depth += 1;
                    self.group()?
                }
                ')' => {
                    depth = depth.checked_sub(1)?;
                    true
                }
                '|' => {
                    self.has_alternatives = true;
                    false
                }
                '^' | '$' => false,
                '*' | '+' | '?' => self.repetition(repeats)?,
                '{' => self.braces(repeats)?,
                _ => true,
            };
        }
        // In another alternative a name may be repeated.
        let is_clear = self.has_alternatives || !self.is_name_repeated;
        (depth == 0 && is_clear && self.references.is_subset(&self.names)).then_some(())
    }

    fn next(&mut self) -> Option<char> {
        let mut rest = self.rest.chars();
        let next = rest.next()?;
        self.rest = rest.as_str();
        Some(next)
    }

    fn take(&mut self, text: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(text)?;
        Some(())
    }

    /// What is before the next `close`, if there is nothing else before it; that is taken, too.
    fn enclosed(&mut self, close: char, is_part: fn(char) -> bool) -> Option<&'p str> {
        let (inside, behind) = self.rest.split_at_checked(self.rest.find(|c| !is_part(c))?)?;
        self.rest = behind.strip_prefix(close)?;
        Some(inside)
    }

    /// What follows a backslash.
    fn escape(&mut self) -> Option<Atom> {
        Some(match self.next()? {
            'b' | 'B' => Atom::Edge,
            'd' | 'D' | 's' | 'S' | 'w' | 'W' | 'f' | 'n' | 'r' | 't' | 'v' | '0'..='9' => Atom::Other,
            'x' => self.hexadecimal(2)?,
            'u' if self.take("{").is_some() => {
                let digits = self.enclosed('}', |c| c.is_ascii_hexdigit())?;
                let code = u32::from_str_radix(digits, 16).ok();
                Atom::One(code.filter(|code| *code <= u32::from(char::MAX))?)
            }
            'u' => self.hexadecimal(4)?,
            'p' | 'P' => {
                self.take("{")?;
                self.enclosed('}', |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '='))?;
                Atom::Other
            }
            'k' => {
                self.take("<")?;
                let name = self.name()?;
                self.references.insert(name);
                Atom::Other
            }
            'c' => {
                self.next().filter(char::is_ascii_alphabetic)?;
                Atom::Other
            }
            letter if letter.is_ascii_alphabetic() => return None,
            other => Atom::One(other.into()),
        })
    }

    fn hexadecimal(&mut self, count: usize) -> Option<Atom> {
        let (digits, behind) = self.rest.split_at_checked(count)?;
        let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let code = u32::from_str_radix(digits, 16).ok().filter(|_| is_number)?;
        self.rest = behind;
        // Half of a pair may be one character with its other half.
        Some(char::from_u32(code).map_or(Atom::Other, |_| Atom::One(code)))
    }

    /// All of a class, behind its first bracket.
    fn class(&mut self) -> Option<bool> {
        self.take("^");
        loop {
            let from = self.member()?;
            if matches!(from, Atom::End) {
                return Some(true);
            }
            if !self.rest.starts_with('-') || self.rest.starts_with("-]") {
                continue;
            }
            self.take("-");
            if let (Atom::One(from), Atom::One(to)) = (from, self.member()?)
                && from > to
            {
                return None;
            }
        }
    }

    /// The next of a class.
    fn member(&mut self) -> Option<Atom> {
        Some(match self.next()? {
            ']' => Atom::End,
            '\\' => self.escape()?,
            other => Atom::One(other.into()),
        })
    }

    /// The beginning of a group, behind its parenthesis.
    fn group(&mut self) -> Option<bool> {
        let Some(kind) = self.rest.strip_prefix('?') else { return Some(false) };
        if let Some(behind) = GROUPS.iter().find_map(|group| kind.strip_prefix(group)) {
            self.rest = behind;
            return Some(false);
        }
        self.rest = kind.strip_prefix('<')?;
        let name = self.name()?;
        self.is_name_repeated |= !self.names.insert(name);
        Some(false)
    }

    /// A name, and the bracket behind it.
    fn name(&mut self) -> Option<&'p str> {
        let name = self.enclosed('>', |c| c.is_alphanumeric() || matches!(c, '_' | '$'))?;
        name.starts_with(|c: char| !c.is_numeric()).then_some(name)
    }

    /// What says how often something is repeated, behind its first brace. Anything else there is text.
    fn braces(&mut self, repeats: bool) -> Option<bool> {
        let Some(bounds) = self.enclosed('}', |c| c.is_ascii_digit() || c == ',') else { return Some(true) };
        let (least, most) = bounds.split_once(',').unwrap_or((bounds, ""));
        if least.is_empty() || most.contains(',') {
            return Some(true);
        }
        // They may be longer than any number that we have.
        let size = |number: &'p str| {
            let digits = number.trim_start_matches('0');
            (digits.len(), digits)
        };
        if !most.is_empty() && size(least) > size(most) {
            return None;
        }
        self.repetition(repeats)
    }

    /// A repetition, of something; it may be lazy, and is not repeated itself.
    fn repetition(&mut self, repeats: bool) -> Option<bool> {
        self.take("?");
        repeats.then_some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_other_languages_have_is_found() {
        for pattern in [
            "^(?i)x$",
            "(?i:x)",
            "(?s:.)",
            "(?-i:x)",
            "(?P<x>a)",
            "(?P=x)",
            "(?>a)",
            "(?#a)",
            "(?|a)",
            "(?R)",
            "(?<1>a)",
            "(?<a-b>c)",
            "(?'x'a)",
            "(?",
            "(*UTF8)a",
            r"\Ax",
            r"x\Z",
            r"x\z",
            r"\Ga",
            r"\Qa\E",
            r"[\h]",
            r"\x{41}",
            r"\pL",
            r"\u12",
            r"\g1",
            r"\c",
            "a*+",
            "a++",
            "a?+",
            "a{2}+",
            "a**",
            "a???",
            "a{1,2}{3}",
            "*.txt",
            "+",
            "^*",
            "(*)",
            "a|?",
            "{1}",
            "(?:+)",
            "(",
            ")",
            "a)(",
            "(a",
            "[a",
            r"[a\]",
            "a\\",
            // The wrong way round.
            "a{2,1}",
            "a{10,9}?",
            "a{99999999999999999999999,99999999999999999999998}",
            "[z-a]",
            "[^a-cz-b]",
            "[a-z--+]",
            r"[\x5A-\x41]",
            r"[\u0062-a]",
            r"[\u{1F64F}-😀]",
            r"[\]-\[]",
            // What there is not.
            r"\u{110000}",
            r"\u{99999999999}",
            r"\u{}",
            r"\u{+1}",
            r"\u{41",
            r"\x+1",
            r"\k<x>",
            r"(?<y>a)\k<x>",
            r"\k<>",
            r"\p{L",
            r"\p{^L}",
            "(?<x>a)(?<x>b)",
            "(?<x>(?<x>a))",
            "(?<x",
            "(?<>a)",
        ] {
            assert!(!may_be_one(pattern), "{pattern}");
        }
    }

    #[test]
    fn what_it_has_and_what_is_usual_stays() {
        for pattern in [
            "",
            "^a$",
            "a*?",
            "a+?b??",
            "a{2}",
            "a{2,}?",
            "a{,2}",
            "a{x}",
            "{",
            "}",
            "]",
            "[]",
            "[^]",
            "[a-z]",
            "[(*+?]",
            "()",
            "(?:a)*",
            "(?=a)b",
            "(?!a)b",
            "(?<=a)b",
            "(?<!a)b",
            "(?<year>[0-9]{4})-\\k<year>",
            "(?<$é1>a)",
            "(a|b|)+",
            "|",
            r"\d+\.\-\/\_",
            r"\x41\u0041\u{1F600}\cJ\0\1",
            r"^(?!__.*__$)[^\p{Cc}\P{L}\\./[\]]{1,200}$",
            r"[\b\w\-\]]*",
            r"\bé\B",
            "^{.*}$",
            "é*",
            "^#[0-9a-fA-F]{6}$",
            "a{1,1}b{01,2}c{0,}",
            "a{2,1,}",
            "{,}{}",
            "{1{1{1",
            "[^-Z]",
            "[-a]",
            "[a-]",
            "[+--]",
            "[--a]",
            r"[\w-a]",
            r"[a-\d]",
            r"[\x19-5]",
            r"[\0-9\b-a]",
            r"[ -~\x00-\x1f\u00a0-\uFFEF]",
            r"[\ud83c\udc00-\ud83d\udfff]",
            "[😀-🙏]",
            r"[\u{1F600}-\u{1F64F}]",
            r"\u{00000000000041}\u{10FFFF}",
            r"\p{Script=Greek}\p{L}\P{Script_Extensions=Latin}",
            r"\k<x>(?<x>a)",
            "(?<x>a)|(?<x>b)",
        ] {
            assert!(may_be_one(pattern), "{pattern}");
        }
    }

    /// However often something begins that may never end.
    #[test]
    fn no_pattern_takes_long() {
        let start = |part: &str| part.repeat(2_000_000 / part.len());
        for part in ["{", "{1", "{1,", "(?<a>", "(?<a", r"\k<a>", r"\p{L}", "[", "[a-", "(", "a|", r"\u{1}"] {
            may_be_one(&start(part));
        }
    }
}
