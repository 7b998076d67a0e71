//! What a command writes is read on: how wide it is, and whether colours show. In a pipe there are none, and lines may be as
//! long as they are.

use std::borrow::Cow;

use wire::visible::visible;

use crate::args::variable;
use crate::terminal;

/// Where nobody says how wide it is.
const USUAL: usize = 100;
const NARROWEST: usize = 40;

/// How something is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    Warn,
    Bad,
    Faint,
    Strong,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Screen {
    /// In characters.
    pub(crate) width: usize,
    pub(crate) colours: bool,
}

impl Screen {
    /// Where stdout goes.
    pub(crate) fn of_stdout() -> Self {
        let said = variable("COLUMNS").and_then(|columns| columns.trim().parse().ok());
        let width: usize = said.or_else(terminal::width).unwrap_or(USUAL);
        Self { width: width.max(NARROWEST), colours: terminal::has_colors() }
    }

    /// The text in the colour of its meaning.
    pub(crate) fn paint<'t>(&self, tone: Tone, text: &'t str) -> Cow<'t, str> {
        if !self.colours || text.is_empty() {
            return Cow::Borrowed(text);
        }
        let code = match tone {
            Tone::Good => "32",
            Tone::Warn => "33",
            Tone::Bad => "31",
            Tone::Faint => "2",
            Tone::Strong => "1",
        };
        Cow::Owned(format!("\u{1b}[{code}m{text}\u{1b}[0m"))
    }
}

/// What others wrote, on one line of at most so many characters.
pub(crate) fn brief(text: &str, width: usize) -> String {
    // Escapes are longer than what they stand for: what is cut is cut after them.
    let some: String = text.chars().take(width.saturating_add(1)).collect();
    let shown = visible(&some);
    if shown.chars().count() <= width && some.len() == text.len() {
        return shown.into_owned();
    }
    shown.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// The text in lines of at most so many characters, broken at blanks where there are some.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let (mut lines, width) = (Vec::new(), width.max(8));
    for line in text.split('\n') {
        let shown = visible(line);
        let mut rest: Vec<char> = shown.chars().collect();
        while rest.len() > width {
            let blank = rest.iter().take(width + 1).rposition(|c| *c == ' ').filter(|at| *at > width / 3);
            let end = blank.unwrap_or(width);
            lines.push(rest.iter().take(end).collect::<String>());
            rest.drain(..end + usize::from(blank.is_some()));
        }
        lines.push(rest.into_iter().collect());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_cut_and_what_acts_is_seen() {
        for (text, width, expected) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("a\nb", 4, "a\\nb"),
            ("\u{1b}[31m", 6, "\\u{1b…"),
            ("é😀é", 3, "é😀é"),
            ("", 3, ""),
            ("abc", 0, "…"),
        ] {
            assert_eq!(brief(text, width), expected, "{text:?}");
        }
    }

    #[test]
    fn lines_are_broken_at_blanks() {
        assert_eq!(wrapped("one two three four", 9), ["one two", "three", "four"]);
        assert_eq!(wrapped("abcdefghijkl", 8), ["abcdefgh", "ijkl"]);
        assert_eq!(wrapped("a\n\u{1b}b", 8), ["a", "\\u{1b}b"]);
    }

    #[test]
    fn colours_are_for_terminals() {
        let (pipe, terminal) = (Screen { width: 80, colours: false }, Screen { width: 80, colours: true });
        assert_eq!(pipe.paint(Tone::Bad, "x"), "x");
        assert_eq!(terminal.paint(Tone::Bad, "x"), "\u{1b}[31mx\u{1b}[0m");
    }
}
