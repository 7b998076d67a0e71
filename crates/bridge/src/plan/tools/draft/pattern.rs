//! Whether a pattern can be a regular expression of ECMAScript, which those of JSON schemas are. Not all that it refuses is
//! found, but what only other languages have is: inline flags, `(?P<name>`, `\A` and `\Z`, groups and repetitions that give
//! nothing back. What only its Unicode mode refuses, such as `\-` or a single `]`, may stay.

use std::str::Chars;

/// Letters that mean something behind a backslash, and stand alone.
const ESCAPES: &str = "dDsSwWbBfnrtv";

/// What a group may begin with, behind `(?`. A name is another matter.
const GROUPS: &[&str] = &[":", "=", "!", "<=", "<!"];

pub(super) fn may_be_one(pattern: &str) -> bool {
    read(pattern).is_some()
}

/// None at the first thing that cannot be.
fn read(pattern: &str) -> Option<()> {
    let mut rest = pattern.chars();
    let mut depth = 0_usize;
    // Whether there is something that can be repeated.
    let mut repeats = false;
    while let Some(next) = rest.next() {
        repeats = match next {
            '\\' => escape(&mut rest)?,
            '[' => class(&mut rest)?,
            '(' => {
                depth += 1;
                group(&mut rest)?
            }
            ')' => {
                depth = depth.checked_sub(1)?;
                true
            }
            '|' | '^' | '$' => false,
            '*' | '+' | '?' => repetition(repeats, &mut rest)?,
            '{' if bounds(&mut rest) => repetition(repeats, &mut rest)?,
            _ => true,
        };
    }
    (depth == 0).then_some(())
}

/// What follows a backslash; whether it can be repeated.
fn escape(rest: &mut Chars<'_>) -> Option<bool> {
    let next = rest.next()?;
    let is_hex = |text: &str| text.chars().all(|c| c.is_ascii_hexdigit());
    let digits = |count: usize| rest.as_str().get(..count).is_some_and(is_hex);
    let begins = |with: char| rest.as_str().starts_with(with);
    let is_good = match next {
        'x' => digits(2),
        'u' => digits(4) || begins('{'),
        'p' | 'P' => begins('{'),
        'k' => begins('<'),
        'c' => rest.as_str().starts_with(|c: char| c.is_ascii_alphabetic()),
        _ => !next.is_ascii_alphabetic() || ESCAPES.contains(next),
    };
    is_good.then_some(!matches!(next, 'b' | 'B'))
}

/// All of a class, behind its first bracket.
fn class(rest: &mut Chars<'_>) -> Option<bool> {
    loop {
        match rest.next()? {
            ']' => return Some(true),
            '\\' => drop(escape(rest)?),
            _ => {}
        }
    }
}

/// The beginning of a group, behind its parenthesis.
fn group(rest: &mut Chars<'_>) -> Option<bool> {
    let Some(kind) = rest.as_str().strip_prefix('?') else { return Some(false) };
    let behind = GROUPS.iter().find_map(|group| kind.strip_prefix(group)).or_else(|| name(kind))?;
    *rest = behind.chars();
    Some(false)
}

/// What is behind a name.
fn name(group: &str) -> Option<&str> {
    let (name, behind) = group.strip_prefix('<')?.split_once('>')?;
    let begins = |c: char| c.is_alphabetic() || matches!(c, '_' | '$');
    let is_name = name.starts_with(begins) && name.chars().all(|c| begins(c) || c.is_alphanumeric());
    is_name.then_some(behind)
}

/// Takes what says how often something is repeated, behind its first brace. Anything else there is text.
fn bounds(rest: &mut Chars<'_>) -> bool {
    let Some((bounds, behind)) = rest.as_str().split_once('}') else { return false };
    let (least, most) = bounds.split_once(',').unwrap_or((bounds, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_one = !least.is_empty() && is_number(least) && is_number(most);
    if is_one {
        *rest = behind.chars();
    }
    is_one
}

/// A repetition, of something; it may be lazy, and is not repeated itself.
fn repetition(repeats: bool, rest: &mut Chars<'_>) -> Option<bool> {
    if let Some(behind) = rest.as_str().strip_prefix('?') {
        *rest = behind.chars();
    }
    repeats.then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_other_languages_have_is_found() {
        for pattern in [
            "^(?i)x$",
            "(?s:.)",
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
        ] {
            assert!(may_be_one(pattern), "{pattern}");
        }
    }
}
