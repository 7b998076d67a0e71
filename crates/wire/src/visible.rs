//! Text that others wrote, as people may be shown it: nothing in it moves a cursor, begins a line of its own, turns
//! the order in which the rest is read, or is there without being seen. For terminals, logs and messages; never for what goes over the network.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// Whether a character does something instead of being seen, or is not seen at all: control characters, line separators,
/// marks that change the direction of writing, and those that Unicode shows as nothing (a name with one looks like another,
/// and with tags whole sentences are hidden).
///
/// Three of the latter stay, since ordinary text has them: both joiners (U+200C, U+200D: emoji, Persian, the scripts of India)
/// and the variation selectors up to U+FE0F (emoji).
pub const fn acts(c: char) -> bool {
    matches!(c,
        '\0'..='\x1f'
        | '\x7f'..='\u{9f}'
        | '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// The text with such characters as escapes: `\n`, `\u{1b}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    // Writing to a String cannot fail.
    let _ = Visible(&mut out).write_str(text);
    Cow::Owned(out)
}

/// The same for a text of several lines that are ours.
pub fn visible_lines(text: &str) -> String {
    text.split('\n').map(visible).collect::<Vec<_>>().join("\n")
}

/// JSON with such characters as its own escapes: in a document they are in strings only, but for the ends of lines.
pub fn visible_json(json: &str) -> Cow<'_, str> {
    let acts = |c: char| c != '\n' && acts(c);
    if !json.contains(acts) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if acts(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// A string in double quotes that YAML reads as the same text, with such characters as escapes. JSON does, too, but for
/// characters of more than four digits: there is no escape of these that both know.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if acts(c) => {
                // Writing to a String cannot fail.
                let _ = match u32::from(c) {
                    c @ ..=0xffff => write!(out, "\\u{c:04x}"),
                    c => write!(out, "\\U{c:08x}"),
                };
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A writer that escapes such characters in what goes through it.
#[derive(Debug)]
pub struct Visible<W>(pub W);

impl<W: Write> Write for Visible<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some(at) = rest.find(acts) {
            self.0.write_str(&rest[..at])?;
            let mut after = rest[at..].chars();
            if let Some(c) = after.next() {
                write!(self.0, "{}", c.escape_default())?;
            }
            rest = after.as_str();
        }
        self.0.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_stays_the_same_document() {
        let document = serde_json::json!({"a": "x\u{9b}\u{202e}\n\u{feff}é\u{200b}\u{e0041}😀", "b": [1]});
        for text in [format!("{document:#}\n"), document.to_string()] {
            let shown = visible_json(&text);
            assert!(shown.chars().all(|c| c == '\n' || !acts(c)), "{shown}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), document);
        }
        assert!(matches!(visible_json("{\"a\":\n1}"), Cow::Borrowed(_)));
    }

    #[test]
    fn what_acts_is_escaped_and_the_rest_stays() {
        for (text, expected) in [
            ("plain, é, 漢字, 👩‍💻", "plain, é, 漢字, 👩‍💻"),
            ("❤️ می‌خواهم", "❤️ می‌خواهم"),
            ("a\u{200b}\u{ad}\u{2060}\u{3164}b", r"a\u{200b}\u{ad}\u{2060}\u{3164}b"),
            ("a\u{34f}\u{115f}\u{180e}\u{206f}\u{fff0}", r"a\u{34f}\u{115f}\u{180e}\u{206f}\u{fff0}"),
            ("a\nb\r\tc\0", r"a\nb\r\tc\u{0}"),
            ("\x1b[31mred\x07\x7f", r"\u{1b}[31mred\u{7}\u{7f}"),
            ("\u{9b}2J\u{85}", r"\u{9b}2J\u{85}"),
            ("a\u{202e}b\u{2066}c\u{200f}\u{61c}", r"a\u{202e}b\u{2066}c\u{200f}\u{61c}"),
            ("a\u{2028}b\u{2029}\u{feff}", r"a\u{2028}b\u{2029}\u{feff}"),
            (r"\n stays", r"\n stays"),
            ("", ""),
        ] {
            assert_eq!(visible(text), expected);
            assert_eq!(serde_json::from_str::<String>(&quoted(text)).unwrap(), text);
            assert!(!quoted(text).contains(acts), "{expected}");
        }
        assert_eq!(visible("a\u{e0001}\u{e0041}\u{e01ef}"), r"a\u{e0001}\u{e0041}\u{e01ef}");
        assert_eq!(quoted("a\u{e0041}"), r#""a\U000e0041""#);
        assert_eq!(visible_lines("a\x1b\nb\r"), "a\\u{1b}\nb\\r");
        assert_eq!(quoted("a\"\\\u{202e}\n"), r#""a\"\\\u202e\u000a""#);
    }
}
