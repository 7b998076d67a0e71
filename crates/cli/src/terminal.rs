//! What is known of the terminal that somebody reads, if it is one.

use std::io::IsTerminal;

use crate::args::variable;

/// How wide stdout is; None: it is no terminal, and lines may be as long as they are.
pub(crate) fn width() -> Option<usize> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    let said = || variable("COLUMNS")?.parse().ok();
    Some(size().or_else(said).filter(|width| *width > 0).unwrap_or(80))
}

#[cfg(unix)]
fn size() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(size.ws_col.into()).filter(|width| *width > 0)
}

#[cfg(not(unix))]
fn size() -> Option<usize> {
    None
}

/// Whether colours are seen as such, and wanted.
pub(crate) fn has_colors() -> bool {
    std::io::stdout().is_terminal()
        && variable("NO_COLOR").is_none_or(|value| value.is_empty())
        && variable("TERM").is_none_or(|name| name != "dumb")
}

/// How many columns a text takes at the most.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(|c| if c.is_ascii() || c == '…' { 1 } else { 2 }).sum()
}

/// The text in so many columns: with blanks, or without its end.
pub(crate) fn fit(text: &str, width: usize, right: bool) -> String {
    let mut out = String::new();
    if columns(text) <= width {
        out.push_str(text);
    } else {
        let mut used = 1;
        for c in text.chars() {
            used += columns(c.encode_utf8(&mut [0; 4]));
            if used > width {
                break;
            }
            out.push(c);
        }
        out.push('…');
    }
    let blanks = " ".repeat(width.saturating_sub(columns(&out)));
    if right { blanks + &out } else { out + &blanks }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fit() {
        for (text, width, right, expected) in [
            ("abc", 5, false, "abc  "),
            ("abc", 5, true, "  abc"),
            ("abcdef", 5, false, "abcd…"),
            ("日本語", 5, false, "日本…"),
            ("日本", 4, false, "日本"),
            ("", 2, true, "  "),
        ] {
            let fitted = fit(text, width, right);
            assert_eq!(fitted, expected, "{text}");
            assert!(columns(&fitted) <= width);
        }
    }
}
